// SPDX-License-Identifier: Apache-2.0
// See template_number.h.
#include "ctl/template_number.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "ctl/go_text.h"

namespace coracle::ctl {
namespace {

// Underscores stand between digits, or between a prefix such as 0x and a digit.
bool has_good_underscores(std::string_view text) {
  if (text.find('_') == text.npos) return true;
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  bool after_digit = false;
  if (text.size() >= 2 && text[0] == '0' && std::string_view("xXoObB").find(text[1]) != std::string_view::npos)
    text.remove_prefix(2), after_digit = true;
  else if (text.starts_with('0')) text.remove_prefix(1), after_digit = true;
  bool after_underscore = false;
  for (char c : text) {
    bool digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    if (c == '_' && !after_digit) return false;
    if (after_underscore && !digit) return false;
    after_underscore = c == '_';
    after_digit = digit;
  }
  return !after_underscore;
}

std::string without_underscores(std::string_view text) {
  std::string out;
  for (char c : text)
    if (c != '_') out += c;
  return out;
}

struct Whole {
  uint64_t size = 0;
  bool negative = false;
};

// As strconv.ParseInt with base 0: by its prefix, 0 alone being octal.
std::optional<Whole> parse_whole(std::string_view given) {
  if (!has_good_underscores(given)) return std::nullopt;
  std::string digits = without_underscores(given);
  std::string_view text = digits;
  Whole out;
  if (text.starts_with('+') || text.starts_with('-')) out.negative = text.front() == '-', text.remove_prefix(1);
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    char letter = char(text[1] | 0x20);
    base = letter == 'x' ? 16 : letter == 'b' ? 2 : 8;
    text.remove_prefix(base == 8 && letter != 'o' ? 1 : 2);
  }
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out.size, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

std::optional<double> parse_real(std::string_view given) {
  if (!has_good_underscores(given)) return std::nullopt;
  std::string digits = without_underscores(given);
  std::string_view text = digits;
  bool negative = text.starts_with('-');
  if (text.starts_with('+') || negative) text.remove_prefix(1);
  if (text.starts_with('+') || text.starts_with('-')) return std::nullopt;
  bool hexadecimal = text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == 'x';
  if (hexadecimal) text.remove_prefix(2);
  if (hexadecimal && text.find_first_of("pP") == text.npos) return std::nullopt;  // Go needs the exponent
  double value = 0;
  auto form = hexadecimal ? std::chars_format::hex : std::chars_format::general;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, form);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return negative ? -value : value;
}

Error illegal(std::string_view text) { return Error(Code::invalid, "illegal number syntax: " + go_quoted(text)); }

Result<TemplateNumber> parse_char(std::string_view literal) {
  std::string_view text = literal.substr(1);
  UnquotedChar c = TRY(take_unquoted(text, '\''));
  if (text != "'") return Error(Code::invalid, "malformed character constant: " + std::string(literal));
  return TemplateNumber{GoValue::of_int(int64_t(c.value))};
}

}  // namespace

Result<TemplateNumber> parse_template_number(std::string_view text, TemplateToken::Type type) {
  if (type == TemplateToken::Type::char_constant) return parse_char(text);
  if (text.ends_with('i')) {
    std::string_view both = text.substr(0, text.size() - 1);
    size_t sign = type == TemplateToken::Type::complex ? both.find_first_of("+-", 1) : both.npos;
    while (sign != both.npos && std::string_view("eEpP").find(both[sign - 1]) != std::string_view::npos)
      sign = both.find_first_of("+-", sign + 1);
    auto real = sign == both.npos ? std::optional<double>(0) : parse_real(both.substr(0, sign));
    auto imaginary = parse_real(sign == both.npos ? both : both.substr(sign));
    if (!real || !imaginary) return illegal(text);
    return TemplateNumber{GoValue::of_complex({*real, *imaginary})};
  }
  // A number with a point or an exponent is a float64, whatever its value; one in hexadecimal has its exponent behind a p.
  bool hexadecimal = text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == 'x' && text.find_first_of("pP") == text.npos;
  bool looks_real = !hexadecimal && text.find_first_of(".eEpP") != text.npos;
  if (auto whole = looks_real ? std::nullopt : parse_whole(text)) {
    uint64_t most = uint64_t(INT64_MAX) + (whole->negative ? 1 : 0);
    if (whole->size <= most) return TemplateNumber{GoValue::of_int(int64_t(whole->negative ? 0 - whole->size : whole->size))};
    if (!whole->negative && !text.starts_with('+')) return TemplateNumber{GoValue(), true};
  }
  auto real = parse_real(text);
  if (!real) return illegal(text);
  if (!looks_real) return Error(Code::invalid, "integer overflow: " + go_quoted(text));
  return TemplateNumber{GoValue::of_real(*real)};
}

}  // namespace coracle::ctl
