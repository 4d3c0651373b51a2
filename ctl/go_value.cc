// SPDX-License-Identifier: Apache-2.0
// See go_value.h.
#include "ctl/go_value.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace coracle::ctl {
namespace {

constexpr double kInt64End = 9223372036854775808.0;  // 2^63

// Go doubles a list that grows, at least up to this length.
constexpr size_t kDoubledMax = 512;

size_t capacity_of(size_t length) { return length <= kDoubledMax ? (length == 0 ? 0 : std::bit_ceil(length)) : length; }

}  // namespace

GoValue GoValue::of_json(const json::value& value, bool boxed) {
  GoValue out;
  out.boxed_ = boxed;
  switch (value.kind()) {
    case json::kind::null: break;
    case json::kind::bool_: out.kind_ = Kind::boolean, out.integer_ = value.get_bool(); break;
    case json::kind::int64: out.kind_ = Kind::integer, out.wide_ = true, out.integer_ = value.get_int64(); break;
    case json::kind::uint64:
      if (value.get_uint64() > uint64_t(INT64_MAX)) out.kind_ = Kind::real, out.real_ = double(value.get_uint64());
      else out.kind_ = Kind::integer, out.wide_ = true, out.integer_ = int64_t(value.get_uint64());
      break;
    case json::kind::double_: {
      double number = value.get_double();
      bool whole = number >= -kInt64End && number < kInt64End && number == std::trunc(number);
      if (whole) out.kind_ = Kind::integer, out.wide_ = true, out.integer_ = int64_t(number);
      else out.kind_ = Kind::real, out.real_ = number;
      break;
    }
    case json::kind::string:
      out.kind_ = Kind::text;
      out.text_ = std::string_view(value.get_string().data(), value.get_string().size());
      break;
    case json::kind::array:
      out.kind_ = Kind::list, out.items_ = &value.get_array(), out.length_ = out.items_->size();
      out.capacity_ = capacity_of(out.length_);
      break;
    case json::kind::object: out.kind_ = Kind::map, out.members_ = &value.get_object(); break;
  }
  return out;
}

GoValue GoValue::of_bool(bool value) {
  GoValue out;
  out.kind_ = Kind::boolean, out.integer_ = value;
  return out;
}

GoValue GoValue::of_int(int64_t value) {
  GoValue out;
  out.kind_ = Kind::integer, out.integer_ = value;
  return out;
}

GoValue GoValue::of_octet(uint8_t value) {
  GoValue out;
  out.kind_ = Kind::octet, out.integer_ = value;
  return out;
}

GoValue GoValue::of_real(double value) {
  GoValue out;
  out.kind_ = Kind::real, out.real_ = value;
  return out;
}

GoValue GoValue::of_complex(std::complex<double> value) {
  GoValue out;
  out.kind_ = Kind::complex, out.real_ = value.real(), out.imaginary_ = value.imag();
  return out;
}

GoValue GoValue::of_text(std::string value) {
  GoValue out;
  out.kind_ = Kind::text;
  out.owner_ = std::make_shared<const std::string>(std::move(value));
  out.text_ = *out.owner_;
  return out;
}

GoValue GoValue::of_name(std::string_view value) {
  GoValue out;
  out.kind_ = Kind::text, out.text_ = value;
  return out;
}

GoValue GoValue::nil() {
  GoValue out;
  out.boxed_ = true;
  return out;
}

std::string GoValue::type() const { return boxed_ ? "interface {}" : concrete_type(); }

std::string GoValue::concrete_type() const {
  switch (kind_) {
    case Kind::nothing: return "<nil>";
    case Kind::boolean: return "bool";
    case Kind::integer: return wide_ ? "int64" : "int";
    case Kind::octet: return "uint8";
    case Kind::real: return "float64";
    case Kind::complex: return "complex128";
    case Kind::text: return "string";
    case Kind::list: return "[]interface {}";
    case Kind::map: return "map[string]interface {}";
  }
  return {};
}

GoValue GoValue::same_type(int64_t integer) const {
  GoValue out = unboxed();
  out.integer_ = integer;
  return out;
}

GoValue GoValue::unboxed() const& {
  GoValue out = *this;
  out.boxed_ = false;
  return out;
}

GoValue GoValue::unboxed() && {
  boxed_ = false;
  return std::move(*this);
}

bool GoValue::truth() const {
  switch (kind_) {
    case Kind::nothing: return false;
    case Kind::boolean:
    case Kind::integer:
    case Kind::octet: return integer_ != 0;
    case Kind::real: return real_ != 0;
    case Kind::complex: return real_ != 0 || imaginary_ != 0;
    case Kind::text:
    case Kind::list:
    case Kind::map: return length() > 0;
  }
  return false;
}

size_t GoValue::length() const {
  return kind_ == Kind::text ? text_.size() : kind_ == Kind::list ? length_ : kind_ == Kind::map ? members_->size() : 0;
}

size_t GoValue::capacity() const { return kind_ == Kind::list ? capacity_ : length(); }

GoValue GoValue::at(size_t index) const {
  if (kind_ == Kind::text) return of_octet(uint8_t(text_[index]));
  return from_ + index < items_->size() ? of_json((*items_)[from_ + index], true) : nil();
}

GoValue GoValue::part(size_t from, size_t to) const {
  GoValue out = unboxed();
  if (kind_ == Kind::text) out.text_ = text_.substr(from, to - from);
  else out.from_ = from_ + from, out.length_ = to - from, out.capacity_ = capacity_ - from;
  return out;
}

const json::value* GoValue::member(std::string_view name) const { return members_ ? members_->if_contains(name) : nullptr; }

std::vector<std::pair<std::string_view, const json::value*>> GoValue::members() const {
  std::vector<std::pair<std::string_view, const json::value*>> out;
  if (!members_) return out;
  out.reserve(members_->size());
  for (const auto& member : *members_)
    out.emplace_back(std::string_view(member.key().data(), member.key().size()), &member.value());
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return out;
}

const void* GoValue::address() const { return kind_ == Kind::list ? static_cast<const void*>(items_) : members_; }

}  // namespace coracle::ctl
