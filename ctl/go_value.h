// SPDX-License-Identifier: Apache-2.0
// A JSON value, or one that a template made, as a Go program sees it by reflection: with a type whose name stands in messages,
// and perhaps "boxed", that is, as the content of an interface{} (members of maps and lists are). kubectl's templates and
// JSONPath expressions are defined by these types. A value refers to the JSON that it was made from, which has to outlive it.
// Source: Go's reflect package.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/json.h"

namespace coracle::ctl {

class GoValue {
 public:
  enum class Kind : uint8_t { nothing, boolean, integer, octet, real, complex, text, list, map };

  GoValue() = default;  // nothing: Go's zero reflect.Value, or nil if boxed
  // Whole numbers are int64, others float64, as kubectl reads them.
  static GoValue of_json(const json::value& value, bool boxed);
  static GoValue of_bool(bool value);
  static GoValue of_int(int64_t value);    // of type int, as constants and lengths are
  static GoValue of_octet(uint8_t value);  // of type uint8: an element of a string
  static GoValue of_real(double value);
  static GoValue of_complex(std::complex<double> value);
  static GoValue of_text(std::string value);
  static GoValue of_name(std::string_view value);  // of text that outlives it
  static GoValue nil();                            // a boxed nothing

  Kind kind() const { return kind_; }
  bool boxed() const { return boxed_; }
  bool is_nothing() const { return kind_ == Kind::nothing; }
  bool is_text() const { return kind_ == Kind::text; }
  bool has_elements() const { return kind_ == Kind::text || kind_ == Kind::list; }
  bool is_whole() const { return kind_ == Kind::integer || kind_ == Kind::octet; }
  bool is_basic() const { return kind_ != Kind::nothing && kind_ != Kind::list && kind_ != Kind::map; }  // and may be compared
  std::string type() const;                  // "map[string]interface {}"; "interface {}" of what is boxed, "<nil>" of nothing
  std::string concrete_type() const;         // of the content
  GoValue same_type(int64_t integer) const;  // of an integer or octet: another of its type
  GoValue unboxed() const&;
  GoValue unboxed() &&;
  bool truth() const;  // not empty, not zero, not nothing

  bool boolean() const { return integer_ != 0; }
  int64_t integer() const { return integer_; }  // and octet
  double real() const { return real_; }
  double imaginary() const { return imaginary_; }
  std::string_view text() const { return text_; }

  size_t length() const;                       // of a text, a list, a map; else 0
  size_t capacity() const;                     // of a list: its length, or what Go has kept ready for it
  GoValue at(size_t index) const;              // of a list: boxed; of a text: an octet. `index` is below the capacity
  GoValue part(size_t from, size_t to) const;  // of a list or text: its elements [from, to)
  const json::value* member(std::string_view name) const;
  // Of a map, sorted by name.
  std::vector<std::pair<std::string_view, const json::value*>> members() const;
  const void* address() const;  // of a list's or map's JSON

 private:
  Kind kind_ = Kind::nothing;
  bool boxed_ = false, wide_ = false;  // wide: an int64, not an int
  int64_t integer_ = 0;
  double real_ = 0, imaginary_ = 0;
  std::string_view text_;
  std::shared_ptr<const std::string> owner_;  // of `text_`, unless that is JSON's
  const json::array* items_ = nullptr;
  const json::object* members_ = nullptr;
  size_t from_ = 0, length_ = 0, capacity_ = 0;  // of the list, in `items_`
};

}  // namespace coracle::ctl
