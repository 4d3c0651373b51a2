// SPDX-License-Identifier: Apache-2.0
// See template_functions.h.
#include "ctl/template_functions.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "ctl/go_format.h"
#include "ctl/go_text.h"
#include "ctl/template_nodes.h"

namespace coracle::ctl {
namespace {

using ValueKind = GoValue::Kind;
using GoValues = std::vector<GoValue>;

constexpr TemplateFunction kFunctions[] = {
    {"and", 1, true, TemplateParameter::value, TemplateParameter::value},
    {"base64decode", 1, false, TemplateParameter::text, TemplateParameter::text},
    {"call", 1, true, TemplateParameter::value, TemplateParameter::value},
    {"eq", 1, true, TemplateParameter::value, TemplateParameter::value},
    {"exists", 1, true, TemplateParameter::any, TemplateParameter::any},
    {"ge", 2, false, TemplateParameter::value, TemplateParameter::value},
    {"gt", 2, false, TemplateParameter::value, TemplateParameter::value},
    {"html", 0, true, TemplateParameter::any, TemplateParameter::any},
    {"index", 1, true, TemplateParameter::value, TemplateParameter::value},
    {"js", 0, true, TemplateParameter::any, TemplateParameter::any},
    {"le", 2, false, TemplateParameter::value, TemplateParameter::value},
    {"len", 1, false, TemplateParameter::value, TemplateParameter::value},
    {"lt", 2, false, TemplateParameter::value, TemplateParameter::value},
    {"ne", 2, false, TemplateParameter::value, TemplateParameter::value},
    {"not", 1, false, TemplateParameter::value, TemplateParameter::value},
    {"or", 1, true, TemplateParameter::value, TemplateParameter::value},
    {"print", 0, true, TemplateParameter::any, TemplateParameter::any},
    {"printf", 1, true, TemplateParameter::text, TemplateParameter::any},
    {"println", 0, true, TemplateParameter::any, TemplateParameter::any},
    {"slice", 1, true, TemplateParameter::value, TemplateParameter::value},
    {"urlquery", 0, true, TemplateParameter::any, TemplateParameter::any},
};

Error function_error(std::string text) { return Error(Code::invalid, std::move(text)); }

bool is_nil(const GoValue& value) { return value.is_nothing() && value.boxed(); }

// ---- index, slice, len ----

Result<size_t> template_index(const GoValue& index, size_t most) {
  if (index.is_nothing() && !index.boxed()) return function_error("cannot index slice/array with nil");
  if (index.boxed() || !index.is_whole()) return function_error("cannot index slice/array with type " + index.type());
  if (index.integer() < 0 || uint64_t(index.integer()) > most)
    return function_error("index out of range: " + std::to_string(index.integer()));
  return size_t(index.integer());
}

Result<GoValue> index_item(GoValues arguments) {
  GoValue item = arguments[0].unboxed();
  if (item.is_nothing()) return function_error("index of untyped nil");
  for (size_t i = 1; i < arguments.size(); ++i) {
    GoValue index = arguments[i].unboxed();
    if (is_nil(item)) return function_error("index of nil pointer");
    if (item.has_elements()) {
      size_t at = TRY(template_index(index, item.length()));
      if (at >= item.length())
        return function_error(std::string("reflect: ") + (item.is_text() ? "string" : "slice") + " index out of range");
      item = item.at(at);
    } else if (item.kind() == ValueKind::map) {
      if (index.is_nothing()) return function_error("value is nil; should be of type string");
      if (!index.is_text()) return function_error("value has type " + index.type() + "; should be string");
      const json::value* member = item.member(index.text());
      item = member ? GoValue::of_json(*member, true) : GoValue::nil();
    } else {
      return function_error("can't index item of type " + item.concrete_type());
    }
  }
  return item;
}

Result<GoValue> slice_item(GoValues arguments) {
  GoValue item = arguments[0].unboxed();
  if (item.is_nothing()) return function_error("slice of untyped nil");
  size_t count = arguments.size() - 1;
  if (count > 3) return function_error("too many slice indexes: " + std::to_string(count));
  if (item.is_text() && count == 3) return function_error("cannot 3-index slice a string");
  if (!item.has_elements()) return function_error("can't slice item of type " + item.concrete_type());
  std::array<size_t, 3> at{0, item.length(), 0};
  for (size_t i = 0; i < count; ++i) at[i] = TRY(template_index(arguments[i + 1], item.capacity()));
  auto ordered = [&](size_t first) -> Result<void> {
    if (at[first] <= at[first + 1]) return {};
    return function_error("invalid slice index: " + std::to_string(at[first]) + " > " + std::to_string(at[first + 1]));
  };
  TRY(ordered(0));
  if (count == 3) TRY(ordered(1));
  return item.part(at[0], at[1]);
}

Result<GoValue> length_of(const GoValue& item) {
  if (is_nil(item)) return function_error("len of nil pointer");
  if (item.is_nothing()) return function_error("reflect: call of reflect.Value.Type on zero Value");
  if (!item.has_elements() && item.kind() != ValueKind::map) return function_error("len of type " + item.concrete_type());
  return GoValue::of_int(int64_t(item.length()));
}

Result<GoValue> item_exists(const GoValues& arguments) {
  GoValue item = arguments[0];
  for (size_t i = 1; i < arguments.size(); ++i) {
    const GoValue& index = arguments[i];
    if (item.has_elements()) {
      if (!index.is_whole() || index.integer() < 0 || uint64_t(index.integer()) >= item.length()) return GoValue::of_bool(false);
      item = item.at(size_t(index.integer()));
    } else if (item.kind() == ValueKind::map) {
      if (!index.is_text() && !index.is_nothing()) return GoValue::of_bool(false);
      const json::value* member = item.member(index.is_text() ? index.text() : std::string_view());
      item = member ? GoValue::of_json(*member, true) : GoValue::nil();
    } else {
      return GoValue::of_bool(false);
    }
  }
  return GoValue::of_bool(!is_nil(item));
}

// ---- comparisons ----

Error incomparable(const GoValue& a, const GoValue& b) {
  return function_error("incompatible types for comparison: " + a.type() + " and " + b.type());
}

Result<bool> template_equals_one(const GoValue& a, const GoValue& b, size_t bytes_max) {
  if (a.is_whole() && b.is_whole()) return a.integer() == b.integer();
  if ((a.is_basic() || b.is_basic()) && a.kind() != b.kind()) {
    if (!a.is_nothing() && !b.is_nothing()) return incomparable(a, b);
    return false;
  }
  switch (a.kind()) {
    case ValueKind::boolean: return a.boolean() == b.boolean();
    case ValueKind::complex: return a.real() == b.real() && a.imaginary() == b.imaginary();
    case ValueKind::real: return a.real() == b.real();
    case ValueKind::text: return a.text() == b.text();
    default: break;
  }
  if (a.is_nothing() || b.is_nothing()) return a.is_nothing() == b.is_nothing();
  if (a.kind() != b.kind())
    return function_error("non-comparable types " + go_sprintf("%s: ", {a}, bytes_max) + a.type() + ", " + b.type() + ": " +
                          go_sprint({b}, bytes_max));
  return function_error("non-comparable type " + go_sprintf("%s: ", {b}, bytes_max) + b.type());
}

Result<bool> template_equals(const GoValues& arguments, size_t bytes_max) {
  if (arguments.size() < 2) return function_error("missing argument for comparison");
  GoValue first = arguments[0].unboxed();
  for (size_t i = 1; i < arguments.size(); ++i) {
    bool same = TRY(template_equals_one(first, arguments[i].unboxed(), bytes_max));
    if (same) return true;
  }
  return false;
}

Result<bool> template_less(const GoValue& boxed_a, const GoValue& boxed_b) {
  GoValue a = boxed_a.unboxed(), b = boxed_b.unboxed();
  if (!a.is_basic() || !b.is_basic()) return function_error("invalid type for comparison");
  if (a.is_whole() && b.is_whole()) return a.integer() < b.integer();
  if (a.kind() != b.kind()) return incomparable(a, b);
  if (a.kind() == ValueKind::real) return a.real() < b.real();
  if (a.is_text()) return a.text() < b.text();
  return function_error("invalid type for comparison");
}

Result<bool> template_less_or_equal(const GoValues& arguments, size_t bytes_max) {
  bool less = TRY(template_less(arguments[0], arguments[1]));
  if (less) return true;
  return template_equals(arguments, bytes_max);
}

Result<bool> template_compare(std::string_view name, const GoValues& arguments, size_t bytes_max) {
  if (name == "lt") return template_less(arguments[0], arguments[1]);
  if (name == "le") return template_less_or_equal(arguments, bytes_max);
  if (name == "eq") return template_equals(arguments, bytes_max);
  bool holds = false;  // what the others are the contrary of
  if (name == "ne") holds = TRY(template_equals(arguments, bytes_max));
  else if (name == "ge") holds = TRY(template_less(arguments[0], arguments[1]));
  else holds = TRY(template_less_or_equal(arguments, bytes_max));
  return !holds;
}

bool is_comparison(std::string_view name) {
  return name == "eq" || name == "ne" || name == "lt" || name == "le" || name == "gt" || name == "ge";
}

// ---- text ----

// The arguments as one text, which html, js and urlquery escape.
std::string all_as_text(GoValues arguments, size_t bytes_max) {
  for (auto& argument : arguments)
    if (argument.is_nothing()) argument = GoValue::of_name("<no value>");
  return go_sprint(arguments, bytes_max);
}

std::string escaped_html(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '\0': out += "\xef\xbf\xbd"; break;
      case '"': out += "&#34;"; break;
      case '\'': out += "&#39;"; break;
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string escaped_javascript(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    Rune rune = first_rune(text);
    char c = text.front();
    if (rune.value < 0x80 && std::string_view("\\'\"").find(c) != std::string_view::npos) {
      (out += '\\') += c;
    } else if (rune.value < ' ' || (rune.value < 0x80 && std::string_view("<>&=").find(c) != std::string_view::npos) ||
               (rune.value >= 0x80 && !is_printable(rune.value))) {
      char code[16];
      std::snprintf(code, sizeof code, "\\u%04X", unsigned(rune.value));
      out += code;
    } else {
      out += text.substr(0, rune.width);
    }
    text.remove_prefix(rune.width);
  }
  return out;
}

std::string escaped_query(std::string_view text) {
  constexpr const char* kDigits = "0123456789ABCDEF";
  std::string out;
  for (char c : text) {
    bool plain = uint8_t(c) < 0x80 && (is_alphanumeric(char32_t(c)) || c == '-' || c == '_' || c == '.' || c == '~');
    if (c == ' ') out += '+';
    else if (plain) out += c;
    else ((out += '%') += kDigits[uint8_t(c) >> 4]) += kDigits[uint8_t(c) & 0xf];
  }
  return out;
}

int base64_value(char c) {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  size_t at = kAlphabet.find(c);
  return at == kAlphabet.npos ? -1 : int(at);
}

// As Go decodes it: line breaks are skipped, and a message has the place of the first bad byte.
Result<std::string> decode_base64(std::string_view text) {
  auto corrupt = [](size_t at) {
    return function_error("base64 decode failed: illegal base64 data at input byte " + std::to_string(at));
  };
  auto skip_breaks = [&](size_t at) {
    while (at < text.size() && (text[at] == '\n' || text[at] == '\r')) ++at;
    return at;
  };
  std::string out;
  uint32_t bits = 0;
  size_t count = 0;  // of characters in this group
  size_t at = skip_breaks(0);
  for (; at < text.size(); at = skip_breaks(at)) {
    char c = text[at++];
    if (int value = base64_value(c); value >= 0) {
      bits = bits << 6 | uint32_t(value);
      if (++count < 4) continue;
      for (int shift : {16, 8, 0}) out += char(bits >> shift & 0xff);
      bits = 0, count = 0;
      continue;
    }
    if (c != '=' || count < 2) return corrupt(at - 1);
    if (count == 2) {
      at = skip_breaks(at);
      if (at == text.size()) return corrupt(text.size());
      if (text[at] != '=') return corrupt(at - 1);
      ++at;
    }
    if (size_t more = skip_breaks(at); more < text.size()) return corrupt(more);
    bits <<= 6 * (4 - count);
    for (size_t i = 0; i + 1 < count; ++i) out += char(bits >> (16 - 8 * i) & 0xff);
    return out;
  }
  if (count > 0) return corrupt(text.size() - count);
  return out;
}

Result<GoValue> call_text_function(std::string_view name, GoValues arguments, size_t bytes_max) {
  std::string text;
  if (name == "base64decode") {
    text = TRY(decode_base64(arguments[0].text()));
  } else if (name == "printf") {
    std::string format(arguments[0].text());
    arguments.erase(arguments.begin());
    text = go_sprintf(format, arguments, bytes_max);
  } else if (name == "print") {
    text = go_sprint(arguments, bytes_max);
  } else if (name == "println") {
    text = go_sprintln(arguments, bytes_max);
  } else {
    text = all_as_text(std::move(arguments), bytes_max);
    if (text.size() <= bytes_max)
      text = name == "html" ? escaped_html(text) : name == "js" ? escaped_javascript(text) : escaped_query(text);
  }
  if (text.size() > bytes_max) return Error(Code::too_large, "the text is longer than " + std::to_string(bytes_max) + " bytes");
  return GoValue::of_text(std::move(text));
}

}  // namespace

const TemplateFunction* template_function(std::string_view name) {
  for (const auto& function : kFunctions)
    if (function.name == name) return &function;
  return nullptr;
}

bool is_template_function(std::string_view name) { return template_function(name) != nullptr; }

Result<GoValue> call_template_function(const TemplateFunction& function, GoValues arguments, const std::string& callee,
                                       size_t bytes_max) {
  std::string_view name = function.name;
  if (name == "index") return index_item(std::move(arguments));
  if (name == "slice") return slice_item(std::move(arguments));
  if (name == "len") return length_of(arguments[0]);
  if (name == "not") return GoValue::of_bool(!arguments[0].truth());
  if (name == "exists") return item_exists(arguments);
  if (name == "call") {  // there are no functions among the values
    if (arguments[0].is_nothing()) return function_error("call of nil");
    return function_error("non-function " + callee + " of type " + arguments[0].concrete_type());
  }
  if (is_comparison(name)) {
    bool holds = TRY(template_compare(name, arguments, bytes_max));
    return GoValue::of_bool(holds);
  }
  return call_text_function(name, std::move(arguments), bytes_max);
}

}  // namespace coracle::ctl
