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

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr uint32_t kNanos = 1'000'000'000, kNanosOfMilli = 1'000'000;
constexpr size_t kNanoDigits = 9, kWholeDigits = 19;  // of 2^63-1
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

bool all_digits(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

uint64_t magnitude_of(int64_t number) { return number < 0 ? 0 - uint64_t(number) : uint64_t(number); }

}  // namespace

Quantity::Amount Quantity::capped(Amount amount) {
  const bool exceeds = amount.whole > uint64_t(kMost) || (amount.whole == uint64_t(kMost) && amount.nanos > 0);
  return exceeds ? Amount{uint64_t(kMost), 0} : amount;
}

Quantity::Amount Quantity::sum(Amount a, Amount b) {
  Amount out{a.whole + b.whole, a.nanos + b.nanos};  // twice 2^63-1 and 10^9 have room
  if (out.nanos >= kNanos) ++out.whole, out.nanos -= kNanos;
  return capped(out);
}

Quantity::Amount Quantity::difference(Amount a, Amount b) {
  if (a.nanos < b.nanos) return {a.whole - b.whole - 1, a.nanos + kNanos - b.nanos};
  return {a.whole - b.whole, a.nanos - b.nanos};
}

Quantity::Amount Quantity::nanos_of(std::string digits, int exponent) {
  constexpr Amount kLargest{uint64_t(kMost), 0};
  digits.erase(0, digits.find_first_not_of('0'));
  bool more = false;  // a non-zero digit was cut off
  if (exponent < 0) {
    const size_t kept = digits.size() - std::min(digits.size(), size_t(-exponent));
    more = digits.find_first_not_of('0', kept) != digits.npos;
    digits.resize(kept);
  } else if (!digits.empty()) {
    if (digits.size() + size_t(exponent) > kWholeDigits + kNanoDigits) return kLargest;
    digits.append(size_t(exponent), '0');
  }
  if (digits.size() > kWholeDigits + kNanoDigits) return kLargest;
  const std::string_view all = digits;
  const size_t whole_digits = all.size() > kNanoDigits ? all.size() - kNanoDigits : 0;
  Amount out;  // 19 digits fit into 64 bits
  for (char digit : all.substr(0, whole_digits)) out.whole = out.whole * 10 + uint64_t(digit - '0');
  for (char digit : all.substr(whole_digits)) out.nanos = out.nanos * 10 + uint32_t(digit - '0');
  return sum(capped(out), {0, more ? 1u : 0u});
}

void Quantity::set(Amount amount, bool negative) {
  amount_ = amount;
  negative_ = negative && !is_zero();
}

Quantity& Quantity::add(const Quantity& other, bool negative) {
  if (is_zero()) notation_ = other.notation_, negative_ = negative;
  if (negative_ == negative) set(sum(amount_, other.amount_), negative);
  else if (amount_ >= other.amount_) set(difference(amount_, other.amount_), negative_);
  else set(difference(other.amount_, amount_), negative);
  return *this;
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

  std::string all = std::string(whole) + std::string(fraction);
  for (int two = suffix->two; two > 0; two -= 10) all = times_1024(std::move(all));
  Quantity quantity;
  quantity.set(nanos_of(std::move(all), suffix->ten - kNanoExponent - int(fraction.size())), minus);
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
  const uint64_t millis = magnitude_of(millicores.count);
  Quantity quantity;
  quantity.set({millis / 1000, uint32_t(millis % 1000) * kNanosOfMilli}, millicores.count < 0);
  return quantity;
}

Quantity Quantity::of_count(int64_t count) {
  Quantity quantity;
  quantity.set(capped({magnitude_of(count), 0}), count < 0);
  return quantity;
}

std::string Quantity::text() const {
  if (is_zero()) return "0";
  std::string sign = negative_ ? "-" : "";
  if (notation_ == Notation::binary && amount_.nanos == 0 && amount_.whole >= 1024) {
    uint64_t amount = amount_.whole;
    size_t power = 0;
    for (; power + 1 < std::size(kBinarySuffixes) && amount % 1024 == 0; power++) amount /= 1024;
    return sign + std::to_string(amount) + std::string(kBinarySuffixes[power]);
  }
  std::string digits = std::to_string(kNanos + amount_.nanos);  // 1 and nine digits
  digits = (amount_.whole > 0 ? std::to_string(amount_.whole) : "") + digits.substr(1);
  digits.erase(0, digits.find_first_not_of('0'));
  size_t thousands = 0;
  for (; thousands + 1 < std::size(kDecimalSuffixes) && digits.ends_with("000"); thousands++) digits.resize(digits.size() - 3);
  int exponent = kNanoExponent + int(thousands) * 3;
  if (notation_ != Notation::exponent) return sign + digits + std::string(kDecimalSuffixes[thousands]);
  return sign + digits + (exponent ? "e" + std::to_string(exponent) : "");
}

int64_t Quantity::value() const {
  if (negative_) return -int64_t(amount_.whole);
  return int64_t(amount_.whole) + (amount_.nanos > 0 ? 1 : 0);  // the largest has no nanos
}

int64_t Quantity::milli_value() const {
  const int64_t whole = int64_t(amount_.whole), rest = amount_.nanos / kNanosOfMilli;
  const int64_t millis = rest + (!negative_ && amount_.nanos % kNanosOfMilli > 0 ? 1 : 0);
  if (whole > (kMost - millis) / 1000) return negative_ ? -kMost : kMost;
  return negative_ ? -(whole * 1000 + millis) : whole * 1000 + millis;
}

Quantity Quantity::rounded_to_milli() const {
  Quantity rounded = *this;
  if (uint32_t rest = amount_.nanos % kNanosOfMilli; rest != 0) rounded.amount_ = sum(amount_, {0, kNanosOfMilli - rest});
  return rounded;
}

std::optional<Quantity> amount_in(const json::object& amounts, std::string_view name) {
  const json::value* found = amounts.if_contains(name);
  auto amount = found ? Quantity::from_json(*found) : Quantity();
  return found && amount ? std::optional(*amount) : std::nullopt;
}

}  // namespace coracle
