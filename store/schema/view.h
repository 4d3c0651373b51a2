// SPDX-License-Identifier: Apache-2.0
// View: typed, read-only access to a JSON object, so that code reads pod.spec().node_name() and the compiler checks the names.
// The classes are generated from the schema into views.h; this is their base.
//
// A view borrows: the json::value (or Object) must outlive the view and everything it returned. Reads are total: an absent value
// or one of another type reads as "", 0, false, an empty list or an empty view; has_x() distinguishes absent from empty.
// Numbers and flags that are optional or have a default are also read by x_or(value), which is the value if they are absent.
//   view::Pod pod(*object);
//   for (view::Container container : pod.spec().containers()) use(container.image());
#pragma once

#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "runtime/base/json.h"
#include "store/object/object_ptr.h"

namespace coracle::view {

class View;

namespace detail {

inline const json::value kAbsent;  // null

inline std::string_view text(const json::value& value) {
  const json::string* string = value.if_string();
  return string ? std::string_view(string->data(), string->size()) : std::string_view();
}

inline int64_t integer(const json::value& value) {
  if (const int64_t* number = value.if_int64()) return *number;
  if (const uint64_t* number = value.if_uint64()) return int64_t(*number);
  return 0;
}

inline double real(const json::value& value) {
  if (const double* number = value.if_double()) return *number;
  return double(integer(value));
}

template <typename T>
T as(const json::value& value) {
  if constexpr (std::is_same_v<T, std::string_view>) return text(value);
  else if constexpr (std::is_same_v<T, int64_t>) return integer(value);
  else if constexpr (std::is_same_v<T, bool>) return value.is_bool() && value.get_bool();
  else if constexpr (std::is_same_v<T, double>) return real(value);
  else if constexpr (std::is_same_v<T, const json::value*>) return value.is_null() ? nullptr : &value;
  else return T(value);  // a View or a Range
}

}  // namespace detail

template <typename T>
class Range {  // a JSON array, read as T
 public:
  Range() = default;
  explicit Range(const json::value& value) : array_(value.if_array()) {}
  size_t size() const { return array_ ? array_->size() : 0; }
  bool empty() const { return size() == 0; }
  T operator[](size_t at) const { return detail::as<T>((*array_)[at]); }
  const json::array& raw() const {  // empty if absent
    static const json::array empty;
    return array_ ? *array_ : empty;
  }

  class Iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    explicit Iterator(const json::value* at) : at_(at) {}
    T operator*() const { return detail::as<T>(*at_); }
    Iterator& operator++() { return ++at_, *this; }
    Iterator operator++(int) { return Iterator(at_++); }
    bool operator==(const Iterator&) const = default;

   private:
    const json::value* at_ = nullptr;
  };
  Iterator begin() const { return Iterator(array_ ? array_->data() : nullptr); }
  Iterator end() const { return Iterator(array_ ? array_->data() + array_->size() : nullptr); }

 private:
  const json::array* array_ = nullptr;
};

// A copy of the texts.
inline std::vector<std::string> strings(Range<std::string_view> texts) { return {texts.begin(), texts.end()}; }

class View {
 public:
  View() = default;
  explicit View(const json::value& value) : object_(value.if_object()), value_(&value) {}
  explicit View(const json::value* value) : View(value ? *value : detail::kAbsent) {}  // null: absent
  explicit View(const json::object& object) : object_(&object), value_(nullptr) {}     // has no raw() and no pointer()
  explicit View(const Object& object) : View(json_of(object)) {}
  explicit View(const json::value&&) = delete;  // a temporary would be gone before the view is read
  explicit View(const json::object&&) = delete;
  explicit operator bool() const { return object_; }  // present
  const json::value& raw() const {                    // null if absent
    if (!value_) [[unlikely]]
      bug("View::raw", "the view is of a json::object, which is no json::value", std::source_location::current());
    return *value_;
  }
  // The same as a pointer, for a value that is to be copied only if it is there. Null if absent.
  const json::value* pointer() const { return raw().is_null() ? nullptr : value_; }
  const json::object& members() const {  // empty if absent
    static const json::object empty;
    return object_ ? *object_ : empty;
  }

 protected:
  const json::value& at(std::string_view key) const {
    const json::value* found = object_ ? object_->if_contains(key) : nullptr;
    return found ? *found : detail::kAbsent;
  }
  bool has(std::string_view key) const { return !at(key).is_null(); }

  template <typename T>
  T read(std::string_view key) const {
    const json::value& value = at(key);
    if constexpr (std::is_same_v<T, const json::object&>) {
      static const json::object empty;
      const json::object* object = value.if_object();
      return object ? *object : empty;
    } else {
      return detail::as<T>(value);
    }
  }

  template <typename T>
  T read_or(std::string_view key, T absent) const {
    return has(key) ? read<T>(key) : absent;
  }

 private:
  const json::object* object_ = nullptr;
  const json::value* value_ = &detail::kAbsent;  // null: the view is of a json::object
};

}  // namespace coracle::view
