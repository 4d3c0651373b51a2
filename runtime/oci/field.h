// SPDX-License-Identifier: Apache-2.0
// One value of config.json and its path ("linux.resources.memory.limit"). Reading does not fail immediately: the first error of a
// document is stored, and the caller checks it once at the end. So the code that reads a struct is a plain list of its fields. An
// absent or null value leaves the output unchanged; a value of the wrong type is an error.
#pragma once

#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "runtime/base/text.h"

namespace coracle::oci {

class Field {
 public:
  // `error` belongs to the whole document and must outlive the field.
  Field(const json::value* value, std::string path, std::optional<Error>* error)
      : value_(value), path_(std::move(path)), error_(error) {}

  bool is_there() const { return value_ != nullptr; }
  bool has(std::string_view name) const { return at(name).is_there(); }
  Field at(std::string_view name) const {
    const json::object* object = value_ ? value_->if_object() : nullptr;
    const json::value* found = object ? object->if_contains(name) : nullptr;
    if (found && found->is_null()) found = nullptr;
    return Field(found, below(name), error_);
  }
  Field need(std::string_view name) const {  // a required member, if the object is present
    Field out = at(name);
    if (is_there() && !out.is_there()) out.complain("missing");
    return out;
  }
  Field object(std::string_view name) const {
    Field out = at(name);
    out.must_be_object();
    return out;
  }
  template <typename F>
  void each(F&& f) const {  // calls `f` for each item of a list
    if (!value_) return;
    if (!value_->is_array()) return complain("not a list");
    size_t i = 0;
    for (const json::value& item : value_->get_array()) f(Field(&item, path_ + "[" + std::to_string(i++) + "]", error_));
  }
  template <typename F>
  void each_object(F&& f) const {  // the same; the items must be objects
    each([&](const Field& item) {
      item.must_be_object();
      f(item);
    });
  }
  template <typename F>
  void each_entry(F&& f) const {  // calls `f` for each member of an object
    if (!value_) return;
    if (!value_->is_object()) return complain("not an object");
    for (const auto& [key, item] : value_->get_object()) {
      std::string name(key);
      Field entry(item.is_null() ? nullptr : &item, below(name), error_);
      if (name.find('\0') != name.npos) entry.complain("holds a NUL byte");
      f(name, entry);
    }
  }

  void read(std::string& out) const {
    if (!value_) return;
    if (!value_->is_string()) return complain("not a string");
    out.assign(value_->get_string().data(), value_->get_string().size());
    if (out.find('\0') != out.npos) complain("holds a NUL byte");
  }
  void read(bool& out) const {
    if (!value_) return;
    if (!value_->is_bool()) return complain("not true or false");
    out = value_->get_bool();
  }
  template <std::integral T>
  void read(T& out) const {
    if (!value_) return;
    if (value_->is_int64()) return take(value_->get_int64(), out);
    if (value_->is_uint64()) return take(value_->get_uint64(), out);
    complain("not a whole number");
  }
  template <typename T>
  void read(std::optional<T>& out) const {
    if (!value_) return;
    T value{};
    read(value);
    out = std::move(value);
  }
  template <typename T>
  void read(std::vector<T>& out) const {
    each([&](const Field& item) {
      T value{};
      item.read(value);
      out.push_back(std::move(value));
    });
  }
  void read(std::map<std::string, std::string>& out) const {
    each_entry([&](const std::string& name, const Field& item) { item.read(out[name]); });
  }

  void must_be_object() const {
    if (value_ && !value_->is_object()) complain("not an object");
  }
  void complain(const std::string& what) const {
    if (!error_->has_value()) *error_ = Error(Code::invalid, (path_.empty() ? "config" : path_) + ": " + what);
  }
  const json::value* raw() const { return value_; }

 private:
  template <typename From, std::integral T>
  void take(From number, T& out) const {
    if (!std::in_range<T>(number)) return complain("out of range");
    out = T(number);
  }
  // Quotes a name that would break the path into lines or make it ambiguous.
  std::string below(std::string_view name) const {
    constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/";
    if (name.empty() || name.find_first_not_of(kPlain) != name.npos) return path_ + "[" + quoted(name) + "]";
    return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
  }

  const json::value* value_;
  std::string path_;
  std::optional<Error>* error_;
};

}  // namespace coracle::oci
