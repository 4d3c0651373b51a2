// SPDX-License-Identifier: Apache-2.0
// Quantity. See quantity.h.
//   text ▸ sign ▸ digits . digits ▸ suffix = 10^a or 2^b ▸ nanos = digits * 2^b * 10^(9+a-decimals), rounded away from 0
#include "store/object/quantity.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "runtime/base/text.h"

namespace coracle {
namespace {

using Wide = unsigned __int128;

constexpr Wide kNanosMax = Wide(std::numeric_limits<int64_t>::max()) * 1'000'000'000;
constexpr size_t kTextMax = 256;
constexpr int kNanoExponent = -9;
constexpr std::string_view kDecimalSuffixes[] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};  // 10^-9 … 10^18
constexpr std::string_view kBinarySuffixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};            // 2^0 … 2^60

struct Suffix {
  Quantity::Notation notation = Quantity::Notation::decimal;
  int ten = 0;  // power of 10
  int two = 0;  // power of 2
};

std::optional<Suffix> parse_suffix(std::string_view text) {
  for (int i = 1; i < int(std::size(kBinarySuffixes)); i++)
    if (text == kBinarySuffixes[i]) return Suffix{Quantity::Notation::binary, 0, i * 10};
  for (int i = 0; i < int(std::size(kDecimalSuffixes)); i++)
    if (text == kDecimalSuffixes[i]) return Suffix{Quantity::Notation::decimal, kNanoExponent + i * 3, 0};
  if (text.size() < 2 || (text[0] != 'e' && text[0] != 'E')) return std::nullopt;
  bool plus = text[1] == '+';
  text.remove_prefix(plus ? 2 : 1);
  if (plus && text.starts_with('-')) return std::nullopt;
  auto exponent = parse_number<int32_t>(text);
  if (!exponent) return std::nullopt;
  return Suffix{Quantity::Notation::exponent, std::clamp(*exponent, -1000, 1000), 0};
}

// Decimal digits, most significant first: exact for any length. Simplicity matters more than speed, because texts are short and
// few.
std::string times_1024(std::string digits) {
  unsigned carry = 0;
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit) {
    carry += unsigned(*digit - '0') * 1024;
    *digit = char('0' + carry % 10);
    carry /= 10;
  }
  return carry ? std::to_string(carry) + digits : digits;
}

// digits * 10^exponent, rounded up, at most kNanosMax.
Wide whole_number(std::string_view digits, int exponent) {
  bool more = false;  // a non-zero digit was cut off
  if (exponent < 0) {
    size_t cut = std::min(digits.size(), size_t(-exponent));
    more = digits.substr(digits.size() - cut).find_first_not_of('0') != digits.npos;
    digits.remove_suffix(cut);
    exponent = 0;
  }
  Wide value = 0;
  auto append = [&](unsigned digit) { value = value > kNanosMax / 10 ? kNanosMax : value * 10 + digit; };
  for (char digit : digits) append(unsigned(digit - '0'));
  for (; exponent > 0 && value > 0 && value < kNanosMax; exponent--) append(0);
  return std::min(value + (more ? 1 : 0), kNanosMax);
}

Wide nanos_of(std::string_view whole, std::string_view fraction, Suffix suffix) {
  std::string digits = std::string(whole) + std::string(fraction);
  for (int two = suffix.two; two > 0; two -= 10) digits = times_1024(std::move(digits));
  return whole_number(digits, suffix.ten - kNanoExponent - int(fraction.size()));
}

bool all_digits(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::string digits_of(Wide value) {
  if (value == 0) return "0";
  std::string out;
  for (; value > 0; value /= 10) out.insert(out.begin(), char('0' + int(value % 10)));
  return out;
}

int64_t divided_up(__int128 nanos, int64_t divisor) {
  __int128 quotient = nanos / divisor;
  if (nanos % divisor > 0) quotient++;
  if (quotient > std::numeric_limits<int64_t>::max()) return std::numeric_limits<int64_t>::max();
  if (quotient < -std::numeric_limits<int64_t>::max()) return -std::numeric_limits<int64_t>::max();
  return int64_t(quotient);
}

}  // namespace

Quantity::Nanos Quantity::capped(Nanos nanos) {
  return nanos < 0 ? std::max(nanos, -Nanos(kNanosMax)) : std::min(nanos, Nanos(kNanosMax));
}

Result<Quantity> Quantity::parse(std::string_view text) {
  auto fail = [&](const char* why) { return Error(Code::invalid, "invalid quantity " + quoted(text) + ": " + why); };
  if (text.empty()) return fail("must not be empty");
  if (text.size() > kTextMax) return Error(Code::invalid, "invalid quantity: longer than 256 characters");
  std::string_view rest = text;
  bool minus = rest[0] == '-';
  if (minus || rest[0] == '+') rest.remove_prefix(1);
  size_t end = std::min(rest.find_first_not_of("0123456789."), rest.size());
  std::string_view digits = rest.substr(0, end);
  size_t point = std::min(digits.find('.'), digits.size());
  std::string_view whole = digits.substr(0, point);
  std::string_view fraction = point < digits.size() ? digits.substr(point + 1) : std::string_view();
  if ((whole.empty() && fraction.empty()) || !all_digits(fraction)) return fail("must be a number");
  auto suffix = parse_suffix(rest.substr(end));
  if (!suffix) return fail("unknown suffix; use n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or e3");

  Quantity quantity;
  Nanos nanos = Nanos(nanos_of(whole, fraction, *suffix));
  quantity.nanos_ = minus ? -nanos : nanos;
  quantity.notation_ = suffix->notation;
  return quantity;
}

Result<Quantity> Quantity::from_json(const json::value& value) {
  if (const json::string* text = value.if_string()) return parse(trim(std::string_view(text->data(), text->size())));
  if (const double* number = value.if_double()) {
    char plain[400];
    auto done = std::to_chars(plain, plain + sizeof plain, *number, std::chars_format::fixed);
    return parse(std::string_view(plain, size_t(done.ptr - plain)));
  }
  if (value.is_int64() || value.is_uint64()) return parse(to_text(value));
  return Error(Code::invalid, "invalid quantity: must be a string or a number");
}

Quantity Quantity::of(Bytes bytes) {
  Quantity quantity = of_count(bytes.count);
  quantity.notation_ = Notation::binary;
  return quantity;
}

Quantity Quantity::of(Millicores millicores) {
  Quantity quantity;
  quantity.nanos_ = capped(Nanos(millicores.count) * 1'000'000);
  return quantity;
}

Quantity Quantity::of_count(int64_t count) {
  Quantity quantity;
  quantity.nanos_ = capped(Nanos(count) * 1'000'000'000);
  return quantity;
}

std::string Quantity::text() const {
  if (nanos_ == 0) return "0";
  std::string sign = nanos_ < 0 ? "-" : "";
  Wide amount = Wide(nanos_ < 0 ? -nanos_ : nanos_);
  Wide unit = 1'000'000'000;
  if (notation_ == Notation::binary && amount % unit == 0 && amount >= 1024 * unit) {
    amount /= unit;
    size_t power = 0;
    for (; power + 1 < std::size(kBinarySuffixes) && amount % 1024 == 0; power++) amount /= 1024;
    return sign + digits_of(amount) + std::string(kBinarySuffixes[power]);
  }
  size_t thousands = 0;
  for (; thousands + 1 < std::size(kDecimalSuffixes) && amount % 1000 == 0; thousands++) amount /= 1000;
  int exponent = kNanoExponent + int(thousands) * 3;
  if (notation_ != Notation::exponent) return sign + digits_of(amount) + std::string(kDecimalSuffixes[thousands]);
  return sign + digits_of(amount) + (exponent ? "e" + std::to_string(exponent) : "");
}

int64_t Quantity::value() const { return divided_up(nanos_, 1'000'000'000); }
int64_t Quantity::milli_value() const { return divided_up(nanos_, 1'000'000); }

Quantity Quantity::rounded_to_milli() const {
  constexpr Nanos kMilli = 1'000'000;
  Quantity rounded = *this;
  if (Nanos rest = nanos_ % kMilli; rest != 0) rounded.nanos_ = capped(nanos_ - rest + (nanos_ < 0 ? -kMilli : kMilli));
  return rounded;
}

Quantity& Quantity::operator+=(const Quantity& other) {
  if (is_zero()) notation_ = other.notation_;
  nanos_ = capped(nanos_ + other.nanos_);
  return *this;
}

Quantity& Quantity::operator-=(const Quantity& other) {
  if (is_zero()) notation_ = other.notation_;
  nanos_ = capped(nanos_ - other.nanos_);
  return *this;
}

}  // namespace coracle
