// SPDX-License-Identifier: Apache-2.0
// See go_format.h. A printer's methods are named after those of Go's fmt.pp and fmt.fmt, whose order of steps they keep: a wrong
// verb prints what it was given with the same flags.
#include "ctl/go_format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <tuple>
#include <utility>

#include "ctl/go_text.h"

namespace coracle::ctl {
namespace {

using ValueKind = GoValue::Kind;

constexpr int kWidthMax = 1'000'000;  // Go's limit for a width or precision in a format
constexpr size_t kDoubleDigitsMax = 1100;
constexpr int kShortestExponent = 6;  // %g with as many digits as are needed has an exponent from here on
constexpr const char* kLowerDigits = "0123456789abcdefx";
constexpr const char* kUpperDigits = "0123456789ABCDEFX";

struct FormatFlags {
  bool width_given = false, precision_given = false, minus = false, plus = false, sharp = false, space = false, zero = false;
  bool sharp_v = false;  // %#v
  int width = 0, precision = 0;
};

// ---- numbers, as strconv formats them ----

struct FloatDigits {  // 0.ddd × 10^point
  std::string digits;
  int point = 0;
};

FloatDigits shortest_digits(double value) {
  char buffer[64];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  (void)error;  // the buffer is large enough for any double
  std::string_view text(buffer, size_t(end - buffer));
  size_t exponent_at = text.find('e');
  FloatDigits out;
  for (char c : text.substr(0, exponent_at))
    if (c >= '0' && c <= '9') out.digits += c;
  std::string_view exponent = text.substr(exponent_at + 1);
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  std::from_chars(exponent.data(), exponent.data() + exponent.size(), out.point);
  out.point = value == 0 ? 0 : out.point + 1;
  return out;
}

std::string exponent_text(int exponent, size_t digits_min) {
  std::string digits = std::to_string(std::abs(exponent));
  return std::string(1, exponent < 0 ? '-' : '+') +
         std::string(digits_min > digits.size() ? digits_min - digits.size() : 0, '0') + digits;
}

std::string shortest_exponential(const FloatDigits& digits, char e) {
  std::string out(1, digits.digits.front());
  if (digits.digits.size() > 1) out.append(".").append(digits.digits, 1);
  int exponent = digits.digits == "0" ? 0 : digits.point - 1;
  return (out += e) + exponent_text(exponent, 2);
}

std::string shortest_fixed(const FloatDigits& digits) {
  if (digits.point <= 0) {
    if (digits.digits == "0") return "0";
    return "0." + std::string(size_t(-digits.point), '0') + digits.digits;
  }
  auto point = size_t(digits.point);
  if (point >= digits.digits.size()) return digits.digits + std::string(point - digits.digits.size(), '0');
  return digits.digits.substr(0, point) + "." + digits.digits.substr(point);
}

std::string with_precision(double value, std::chars_format form, int precision) {
  std::string buffer(kDoubleDigitsMax + size_t(precision), '\0');
  auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, form, precision);
  (void)error;  // the buffer is large enough
  buffer.resize(size_t(end - buffer.data()));
  return buffer;
}

std::string hexadecimal_float(double value, int precision, bool upper) {
  int exponent = 0;
  double fraction = value == 0 ? 0 : std::frexp(value, &exponent) * 2;  // 1.x
  if (value != 0) --exponent;
  auto mantissa = uint64_t(std::ldexp(fraction, 52));  // 1.52 bits
  if (precision >= 0 && precision < 13) {
    int shift = 52 - 4 * precision;
    uint64_t rest = mantissa & ((uint64_t(1) << shift) - 1), half = uint64_t(1) << (shift - 1);
    mantissa >>= shift;
    if (rest > half || (rest == half && (mantissa & 1))) ++mantissa;
    mantissa <<= shift;
    if (mantissa >> 53) mantissa >>= 1, ++exponent;
  }
  std::string digits;
  for (int shift = 48; shift >= 0; shift -= 4) digits += kLowerDigits[(mantissa >> shift) & 0xf];
  if (precision < 0) digits.erase(digits.find_last_not_of('0') + 1);
  else digits.resize(size_t(precision), '0');
  std::string out = std::string("0x") + (mantissa >> 52 ? "1" : "0");
  if (!digits.empty()) out += "." + digits;
  out += "p" + exponent_text(exponent, 2);
  if (upper)
    for (char& c : out) c = c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c;
  return out;
}

std::string binary_float(double value) {  // mantissa and exponent of two
  if (value == 0) return "0p-1074";
  int exponent = 0;
  double fraction = std::frexp(value, &exponent);
  int shift = 53;
  while (exponent - shift < -1074) --shift;  // a subnormal number
  auto mantissa = uint64_t(std::ldexp(fraction, shift));
  return std::to_string(mantissa) + "p" + exponent_text(exponent - shift, 1);
}

// ---- the printer ----

class FormatPrinter {
 public:
  explicit FormatPrinter(size_t bytes_max) : bytes_max_(bytes_max) {}

  void print(const std::vector<GoValue>& values) {
    bool text_before = false;
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0 && !values[i].is_text() && !text_before) write(" ");
      print_argument(values[i], 'v');
      text_before = values[i].is_text();
    }
  }

  void print_line(const std::vector<GoValue>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) write(" ");
      print_argument(values[i], 'v');
    }
    write("\n");
  }

  void print_format(std::string_view format, const std::vector<GoValue>& values);

  void print_as(const GoValue& value, bool syntax) {
    flags_.sharp_v = syntax;
    print_argument(value, 'v');
  }
  std::string take() { return std::move(out_); }

 private:
  void write(std::string_view text) {
    if (out_.size() <= bytes_max_) out_ += text;
  }
  void write_rune(char32_t rune) {
    std::string text;
    append_rune(text, rune);
    write(text);
  }
  void fill(int count, bool zeros) {
    if (count > 0 && out_.size() <= bytes_max_) out_.append(size_t(count), zeros ? '0' : ' ');
  }
  void write_padding(int count) { fill(count, flags_.zero && !flags_.minus); }

  void pad(std::string_view text) {
    if (!flags_.width_given || flags_.width == 0) return write(text);
    int padding = flags_.width - int(std::min<size_t>(count_runes(text), kWidthMax));
    if (!flags_.minus) write_padding(padding);
    write(text);
    if (flags_.minus) write_padding(padding);
  }
  void pad_without_zeros(std::string_view text) {
    bool zero = std::exchange(flags_.zero, false);
    pad(text);
    flags_.zero = zero;
  }

  std::string_view truncated(std::string_view text) const {
    return flags_.precision_given ? first_runes(text, size_t(flags_.precision)) : text;
  }

  void format_integer(uint64_t value, unsigned base, bool is_signed, char32_t verb, const char* digits);
  void format_unicode(uint64_t value);
  void format_hexadecimal_text(std::string_view text, const char* digits);
  void format_quoted(std::string_view text);
  void format_float(double value, char verb, int precision);

  void print_boolean(const GoValue& value, char32_t verb) {
    if (verb == 't' || verb == 'v') pad(value.boolean() ? "true" : "false");
    else bad_verb(value, verb);
  }
  void print_integer(const GoValue& value, char32_t verb);
  void print_real(const GoValue& value, double number, char32_t verb);
  void print_complex(const GoValue& value, char32_t verb);
  void print_text(const GoValue& value, char32_t verb);
  void print_address(const GoValue& value, char32_t verb);
  void print_argument(const GoValue& value, char32_t verb);
  void print_value(const GoValue& value, char32_t verb);
  void print_map(const GoValue& value, char32_t verb);
  void print_list(const GoValue& value, char32_t verb);
  void bad_verb(const GoValue& value, char32_t verb);

  // The argument that "[n]" in the format chooses, or `argument`.
  size_t chosen_argument(size_t argument, std::string_view format, size_t& at, size_t count, bool& found);
  void print_one_verb(std::string_view format, size_t& at, const std::vector<GoValue>& values, size_t& argument);

  size_t bytes_max_;
  std::string out_;
  FormatFlags flags_;
  bool reordered_ = false, good_argument_ = true;
};

void FormatPrinter::format_integer(uint64_t value, unsigned base, bool is_signed, char32_t verb, const char* digits) {
  bool negative = is_signed && int64_t(value) < 0;
  if (negative) value = -value;
  int digits_min = 0;
  if (flags_.precision_given) {
    digits_min = flags_.precision;
    if (digits_min == 0 && value == 0) {
      bool zero = std::exchange(flags_.zero, false);
      write_padding(flags_.width);
      flags_.zero = zero;
      return;
    }
  } else if (flags_.zero && !flags_.minus && flags_.width_given) {
    digits_min = flags_.width;
    if (negative || flags_.plus || flags_.space) --digits_min;
  }
  std::string text;  // from its end
  do text += digits[value % base];
  while ((value /= base) != 0);
  if (int(text.size()) < digits_min) text.append(size_t(digits_min) - text.size(), '0');
  if (flags_.sharp && base == 2) text += "b0";
  if (flags_.sharp && base == 8 && text.back() != '0') text += '0';
  if (flags_.sharp && base == 16) (text += digits[16]) += '0';
  if (verb == 'O') text += "o0";
  if (negative) text += '-';
  else if (flags_.plus) text += '+';
  else if (flags_.space) text += ' ';
  std::reverse(text.begin(), text.end());
  pad_without_zeros(text);
}

void FormatPrinter::format_unicode(uint64_t value) {
  std::string digits;
  uint64_t rest = value;
  do digits += kUpperDigits[rest % 16];
  while ((rest /= 16) != 0);
  size_t digits_min = flags_.precision_given && flags_.precision > 4 ? size_t(flags_.precision) : 4;
  if (digits.size() < digits_min) digits.append(digits_min - digits.size(), '0');
  std::reverse(digits.begin(), digits.end());
  std::string text = "U+" + digits;
  if (flags_.sharp && value <= kRuneMax && is_printable(char32_t(value))) {
    text += " '";
    append_rune(text, char32_t(value));
    text += '\'';
  }
  pad_without_zeros(text);
}

void FormatPrinter::format_hexadecimal_text(std::string_view text, const char* digits) {
  size_t length = flags_.precision_given ? std::min(text.size(), size_t(flags_.precision)) : text.size();
  if (length == 0) {
    if (flags_.width_given) write_padding(flags_.width);
    return;
  }
  std::string out;
  auto prefix = [&] { (out += '0') += digits[16]; };
  if (flags_.sharp) prefix();
  for (size_t i = 0; i < length; ++i) {
    if (flags_.space && i > 0) {
      out += ' ';
      if (flags_.sharp) prefix();
    }
    (out += digits[uint8_t(text[i]) >> 4]) += digits[uint8_t(text[i]) & 0xf];
  }
  int padding = flags_.width_given ? flags_.width - int(std::min<size_t>(out.size(), kWidthMax)) : 0;
  if (!flags_.minus) write_padding(padding);
  write(out);
  if (flags_.minus) write_padding(padding);
}

void FormatPrinter::format_quoted(std::string_view text) {
  text = truncated(text);
  bool backquotes = flags_.sharp;
  for (std::string_view rest = text; backquotes && !rest.empty();) {
    Rune rune = first_rune(rest);
    bool control = (rune.value < ' ' && rune.value != '\t') || rune.value == '`' || rune.value == 0x7f;
    backquotes = !rune.broken() && rune.value != 0xfeff && !control;
    rest.remove_prefix(rune.width);
  }
  if (backquotes) pad("`" + std::string(text) + "`");
  else pad(go_quoted(text, '"', flags_.plus));
}

void FormatPrinter::format_float(double value, char verb, int precision) {
  if (flags_.precision_given) precision = flags_.precision;
  std::string number = go_float(value, verb, precision);
  if (number.front() != '-' && number.front() != '+') number.insert(0, "+");
  if (flags_.space && number.front() == '+' && !flags_.plus) number.front() = ' ';
  if (number[1] == 'I' || number[1] == 'N') {
    if (number[1] == 'N' && !flags_.space && !flags_.plus) number.erase(0, 1);
    return pad_without_zeros(number);
  }
  if (flags_.sharp && verb != 'b') {  // always a point, and all digits
    int digits = 0;
    if (verb == 'g' || verb == 'G' || verb == 'x') digits = precision == -1 ? 6 : precision;
    bool hexadecimal_form = verb == 'x' || verb == 'X', point = false, significant = false;
    std::string tail;
    for (size_t i = 1; i < number.size(); ++i) {
      char c = number[i];
      if (c == '.') {
        point = true;
      } else if (c == 'p' || c == 'P' || (!hexadecimal_form && (c == 'e' || c == 'E'))) {
        tail = number.substr(i);
        number.resize(i);
      } else {
        significant = significant || c != '0';
        if (significant) --digits;
      }
    }
    if (!point) {
      if (number.size() == 2 && number[1] == '0') --digits;
      number += '.';
    }
    if (digits > 0) number.append(size_t(digits), '0');
    number += tail;
  }
  if (!flags_.plus && number.front() == '+') return pad(std::string_view(number).substr(1));
  if (flags_.zero && !flags_.minus && flags_.width_given && flags_.width > int(number.size())) {
    write(std::string_view(number).substr(0, 1));
    write_padding(flags_.width - int(number.size()));
    return write(std::string_view(number).substr(1));
  }
  pad(number);
}

void FormatPrinter::print_integer(const GoValue& value, char32_t verb) {
  auto number = uint64_t(value.integer());
  bool is_signed = value.kind() == ValueKind::integer;
  switch (verb) {
    case 'v':
      if (flags_.sharp_v && !is_signed) {
        bool sharp = std::exchange(flags_.sharp, true);
        format_integer(number, 16, false, 'v', kLowerDigits);
        flags_.sharp = sharp;
        return;
      }
      return format_integer(number, 10, is_signed, verb, kLowerDigits);
    case 'd': return format_integer(number, 10, is_signed, verb, kLowerDigits);
    case 'b': return format_integer(number, 2, is_signed, verb, kLowerDigits);
    case 'o':
    case 'O': return format_integer(number, 8, is_signed, verb, kLowerDigits);
    case 'x': return format_integer(number, 16, is_signed, verb, kLowerDigits);
    case 'X': return format_integer(number, 16, is_signed, verb, kUpperDigits);
    case 'c': {
      std::string text;
      append_rune(text, number > kRuneMax ? kRuneError : char32_t(number));
      return pad(text);
    }
    case 'q': return pad(go_quoted_rune(number > kRuneMax ? kRuneError : char32_t(number), flags_.plus));
    case 'U': return format_unicode(number);
    default: return bad_verb(value, verb);
  }
}

void FormatPrinter::print_real(const GoValue& value, double number, char32_t verb) {
  switch (verb) {
    case 'v': return format_float(number, 'g', -1);
    case 'b':
    case 'g':
    case 'G':
    case 'x':
    case 'X': return format_float(number, char(verb), -1);
    case 'f':
    case 'e':
    case 'E': return format_float(number, char(verb), 6);
    case 'F': return format_float(number, 'f', 6);
    default: return bad_verb(value, verb);
  }
}

void FormatPrinter::print_complex(const GoValue& value, char32_t verb) {
  if (verb > 0x7f || verb == 0 || !std::strchr("vbgGxXfFeE", int(verb))) return bad_verb(value, verb);
  bool plus = flags_.plus;
  write("(");
  print_real(value, value.real(), verb);
  flags_.plus = true;
  print_real(value, value.imaginary(), verb);
  write("i)");
  flags_.plus = plus;
}

void FormatPrinter::print_text(const GoValue& value, char32_t verb) {
  switch (verb) {
    case 'v':
      if (flags_.sharp_v) return format_quoted(value.text());
      return pad(truncated(value.text()));
    case 's': return pad(truncated(value.text()));
    case 'x': return format_hexadecimal_text(value.text(), kLowerDigits);
    case 'X': return format_hexadecimal_text(value.text(), kUpperDigits);
    case 'q': return format_quoted(value.text());
    default: return bad_verb(value, verb);
  }
}

void FormatPrinter::print_address(const GoValue& value, char32_t verb) {
  if (value.kind() != ValueKind::list && value.kind() != ValueKind::map) return bad_verb(value, verb);
  bool sharp = std::exchange(flags_.sharp, !flags_.sharp);
  format_integer(uint64_t(reinterpret_cast<uintptr_t>(value.address())), 16, false, 'v', kLowerDigits);
  flags_.sharp = sharp;
}

void FormatPrinter::print_argument(const GoValue& value, char32_t verb) {
  if (value.is_nothing()) {
    if (verb == 'T' || verb == 'v') pad("<nil>");
    else bad_verb(value, verb);
    return;
  }
  if (verb == 'T') return pad(truncated(value.concrete_type()));
  if (verb == 'p') return print_address(value, verb);
  print_value(value, verb);
}

void FormatPrinter::print_value(const GoValue& value, char32_t verb) {
  switch (value.kind()) {
    case ValueKind::nothing: return write(flags_.sharp_v ? "interface {}(nil)" : "<nil>");
    case ValueKind::boolean: return print_boolean(value, verb);
    case ValueKind::integer:
    case ValueKind::octet: return print_integer(value, verb);
    case ValueKind::real: return print_real(value, value.real(), verb);
    case ValueKind::complex: return print_complex(value, verb);
    case ValueKind::text: return print_text(value, verb);
    case ValueKind::list: return verb == 'w' ? bad_verb(value, verb) : print_list(value, verb);
    case ValueKind::map: return verb == 'w' ? bad_verb(value, verb) : print_map(value, verb);
  }
}

void FormatPrinter::print_map(const GoValue& value, char32_t verb) {
  write(flags_.sharp_v ? value.concrete_type() + "{" : "map[");
  bool first = true;
  for (const auto& [name, member] : value.members()) {
    if (!std::exchange(first, false)) write(flags_.sharp_v ? ", " : " ");
    print_value(GoValue::of_name(name), verb);
    write(":");
    print_value(GoValue::of_json(*member, true), verb);
  }
  write(flags_.sharp_v ? "}" : "]");
}

void FormatPrinter::print_list(const GoValue& value, char32_t verb) {
  write(flags_.sharp_v ? value.concrete_type() + "{" : "[");
  for (size_t i = 0; i < value.length(); ++i) {
    if (i > 0) write(flags_.sharp_v ? ", " : " ");
    print_value(value.at(i), verb);
  }
  write(flags_.sharp_v ? "}" : "]");
}

void FormatPrinter::bad_verb(const GoValue& value, char32_t verb) {
  write("%!");
  write_rune(verb);
  write("(");
  if (value.is_nothing()) {
    write("<nil>");
  } else {
    write(value.concrete_type() + "=");
    print_argument(value, 'v');
  }
  write(")");
}

// A whole number of the text from `at`, which it moves. Nothing where there is none, or one too large: then `at` is the end.
std::pair<int, bool> take_count(std::string_view text, size_t& at) {
  int number = 0;
  bool given = false;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    if (number > kWidthMax) {
      at = text.size();
      return {0, false};
    }
    number = number * 10 + (text[at] - '0');
    given = true;
  }
  return {number, given};
}

std::pair<int, bool> count_of_argument(const std::vector<GoValue>& values, size_t& argument) {
  if (argument >= values.size()) return {0, false};
  const GoValue& value = values[argument++];
  bool whole = value.kind() == ValueKind::integer || value.kind() == ValueKind::octet;
  if (!whole || value.integer() > kWidthMax || value.integer() < -kWidthMax) return {0, false};
  return {int(value.integer()), true};
}

size_t FormatPrinter::chosen_argument(size_t argument, std::string_view format, size_t& at, size_t count, bool& found) {
  found = false;
  if (at >= format.size() || format[at] != '[') return argument;
  reordered_ = true;
  size_t end = format.find(']', at);
  if (format.size() - at < 3 || end == format.npos) {
    good_argument_ = false;
    ++at;
    return argument;
  }
  size_t digits_end = at + 1;
  auto [number, given] = take_count(format.substr(0, end), digits_end);
  at = end + 1;
  bool read = given && digits_end == end;
  if (read && number >= 1 && size_t(number) <= count) {
    found = true;
    return size_t(number - 1);
  }
  good_argument_ = false;
  found = read;
  return argument;
}

void FormatPrinter::print_one_verb(std::string_view format, size_t& at, const std::vector<GoValue>& values, size_t& argument) {
  flags_ = {};
  for (; at < format.size(); ++at) {
    char c = format[at];
    if (c == '#') flags_.sharp = true;
    else if (c == '0') flags_.zero = true;
    else if (c == '+') flags_.plus = true;
    else if (c == '-') flags_.minus = true;
    else if (c == ' ') flags_.space = true;
    else break;
  }
  bool after_index = false;
  argument = chosen_argument(argument, format, at, values.size(), after_index);
  if (at < format.size() && format[at] == '*') {
    ++at;
    std::tie(flags_.width, flags_.width_given) = count_of_argument(values, argument);
    if (!flags_.width_given) write("%!(BADWIDTH)");
    if (flags_.width < 0) flags_.width = -flags_.width, flags_.minus = true, flags_.zero = false;
    after_index = false;
  } else {
    std::tie(flags_.width, flags_.width_given) = take_count(format, at);
    if (after_index && flags_.width_given) good_argument_ = false;
  }
  if (at + 1 < format.size() && format[at] == '.') {
    ++at;
    if (after_index) good_argument_ = false;
    argument = chosen_argument(argument, format, at, values.size(), after_index);
    if (at < format.size() && format[at] == '*') {
      ++at;
      std::tie(flags_.precision, flags_.precision_given) = count_of_argument(values, argument);
      if (flags_.precision < 0) flags_.precision = 0, flags_.precision_given = false;
      if (!flags_.precision_given) write("%!(BADPREC)");
      after_index = false;
    } else {
      flags_.precision = take_count(format, at).first;
      flags_.precision_given = true;
    }
  }
  if (!after_index) argument = chosen_argument(argument, format, at, values.size(), after_index);
  if (at >= format.size()) return write("%!(NOVERB)");
  Rune verb = first_rune(format.substr(at));
  at += verb.width;
  auto remark = [&](const char* what) {
    write("%!");
    write_rune(verb.value);
    write(what);
  };
  if (verb.value == '%') return write("%");
  if (!good_argument_) return remark("(BADINDEX)");
  if (argument >= values.size()) return remark("(MISSING)");
  if (verb.value == 'v' || verb.value == 'w') {
    flags_.sharp_v = std::exchange(flags_.sharp, false);
    flags_.plus = false;  // it would name the fields of structs
  }
  print_argument(values[argument++], verb.value);
}

void FormatPrinter::print_format(std::string_view format, const std::vector<GoValue>& values) {
  size_t argument = 0;
  for (size_t at = 0; at < format.size() && out_.size() <= bytes_max_;) {
    good_argument_ = true;
    size_t percent = format.find('%', at);
    write(format.substr(at, percent == format.npos ? format.npos : percent - at));
    if (percent == format.npos) break;
    at = percent + 1;
    print_one_verb(format, at, values, argument);
  }
  if (reordered_ || argument >= values.size()) return;
  flags_ = {};
  write("%!(EXTRA ");
  for (size_t i = argument; i < values.size(); ++i) {
    if (i > argument) write(", ");
    if (values[i].is_nothing()) {
      write("<nil>");
    } else {
      write(values[i].concrete_type() + "=");
      print_argument(values[i], 'v');
    }
  }
  write(")");
}

std::string formatted(const GoValue& value, bool syntax) {
  FormatPrinter printer(std::string::npos - 1);
  printer.print_as(value, syntax);
  return printer.take();
}

}  // namespace

std::string go_float(double value, char format, int precision) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  std::string sign = std::signbit(value) ? "-" : "";
  value = std::fabs(value);
  auto upper_e = [](std::string text) {
    if (size_t at = text.find('e'); at != text.npos) text[at] = 'E';
    return text;
  };
  switch (format) {
    case 'b': return sign + binary_float(value);
    case 'x':
    case 'X': return sign + hexadecimal_float(value, precision, format == 'X');
    case 'e':
    case 'E':
      if (precision < 0) return sign + shortest_exponential(shortest_digits(value), format);
      if (format == 'e') return sign + with_precision(value, std::chars_format::scientific, precision);
      return sign + upper_e(with_precision(value, std::chars_format::scientific, precision));
    case 'f':
      if (precision < 0) return sign + shortest_fixed(shortest_digits(value));
      return sign + with_precision(value, std::chars_format::fixed, precision);
    default: break;
  }
  if (precision >= 0) {
    std::string text = with_precision(value, std::chars_format::general, std::max(precision, 1));
    return sign + (format == 'G' ? upper_e(std::move(text)) : text);
  }
  FloatDigits digits = shortest_digits(value);
  int exponent = digits.point - 1;
  if (digits.digits != "0" && (exponent < -4 || exponent >= kShortestExponent))
    return sign + shortest_exponential(digits, format == 'G' ? 'E' : 'e');
  return sign + shortest_fixed(digits);
}

std::string go_sprint(const std::vector<GoValue>& values, size_t bytes_max) {
  FormatPrinter printer(bytes_max);
  printer.print(values);
  return printer.take();
}

std::string go_sprintln(const std::vector<GoValue>& values, size_t bytes_max) {
  FormatPrinter printer(bytes_max);
  printer.print_line(values);
  return printer.take();
}

std::string go_sprintf(std::string_view format, const std::vector<GoValue>& values, size_t bytes_max) {
  FormatPrinter printer(bytes_max);
  printer.print_format(format, values);
  return printer.take();
}

std::string go_text(const GoValue& value) { return formatted(value, false); }
std::string go_syntax(const GoValue& value) { return formatted(value, true); }

}  // namespace coracle::ctl
