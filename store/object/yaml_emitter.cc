// SPDX-License-Identifier: Apache-2.0
// See yaml_emitter.h.
#include "store/object/yaml_emitter.h"

#include <yaml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "runtime/base/text.h"

namespace coracle {
namespace {

bool is_digit_at(std::string_view text, size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; }

bool is_letter(char c) {  // each byte of a character that is not ASCII is taken for a letter
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
}

std::string_view without_sign(std::string_view text) {
  return text.starts_with('+') || text.starts_with('-') ? text.substr(1) : text;
}

// ---- what a plain text would be ----

bool is_word_of_another_type(std::string_view text) {
  static constexpr auto kWords = std::to_array<std::string_view>(
      {"",   "~",  "null", "Null", "NULL", "y",  "Y",  "yes", "Yes", "YES", "true",  "True",  "TRUE", "on",
       "On", "ON", "n",    "N",    "no",   "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"});
  static constexpr auto kNumbers = std::to_array<std::string_view>({".inf", ".Inf", ".INF"});
  static constexpr auto kNoNumbers = std::to_array<std::string_view>({".nan", ".NaN", ".NAN"});
  return std::ranges::find(kWords, text) != kWords.end() || std::ranges::find(kNoNumbers, text) != kNoNumbers.end() ||
         std::ranges::find(kNumbers, without_sign(text)) != kNumbers.end();
}

// An integer of 64 bits, with an optional sign and base: 0x, 0b, 0o, and a leading 0 for octal. A larger one is a float if it is
// decimal, and text otherwise.
bool is_integer(std::string_view text) {
  bool negative = text.starts_with('-');
  text = without_sign(text);
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    char mark = char(text[1] | 0x20);
    base = mark == 'x' ? 16 : mark == 'b' ? 2 : 8;
    text.remove_prefix(mark == 'x' || mark == 'b' || mark == 'o' ? 2 : 1);
  }
  auto magnitude = parse_number<uint64_t>(text, base);
  return magnitude && (!negative || *magnitude <= uint64_t(1) << 63);
}

// Digits with an optional sign, point and exponent; not one that no double holds.
bool is_float(std::string_view text) {
  std::string_view rest = without_sign(text);
  size_t at = 0, digits = 0;
  while (is_digit_at(rest, at)) ++at, ++digits;
  if (at < rest.size() && rest[at] == '.')
    for (++at; is_digit_at(rest, at); ++at) ++digits;
  if (digits == 0) return false;
  if (at < rest.size() && (rest[at] == 'e' || rest[at] == 'E')) {
    ++at;
    if (at < rest.size() && (rest[at] == '+' || rest[at] == '-')) ++at;
    if (!is_digit_at(rest, at)) return false;
    while (is_digit_at(rest, at)) ++at;
  }
  return at == rest.size() && std::isfinite(std::strtod(std::string(rest).c_str(), nullptr));
}

// 190:20:30 is a number of YAML 1.1.
bool is_base_60(std::string_view text) {
  text = without_sign(text);
  size_t at = 0, parts = 0;
  if (!is_digit_at(text, 0)) return false;
  while (is_digit_at(text, at) || (at < text.size() && text[at] == '_')) ++at;
  for (; at < text.size() && text[at] == ':'; ++parts) {
    ++at;
    if (!is_digit_at(text, at)) return false;
    at += is_digit_at(text, at + 1) && text[at] <= '5' ? 2 : 1;
  }
  if (parts && at < text.size() && text[at] == '.') at = std::min(text.size(), text.find_first_not_of("0123456789_", at + 1));
  return parts && at == text.size();
}

// 2006-1-2, 2006-01-02T15:04:05.999Z, 2006-01-02 15:04:05.
class TimeReader {
 public:
  explicit TimeReader(std::string_view text) : text_(text) {}

  bool is_time() {
    int year = 0, month = 0, day = 0;
    if (!number(4, 4, 0, 9999, &year) || !skip("-") || !number(1, 2, 1, 12, &month) || !skip("-") ||
        !number(1, 2, 1, days_of(year, month), &day))
      return false;
    if (at_ == text_.size()) return true;
    bool zone = skip("Tt");
    if (!zone && !skip(" ")) return false;
    if (!number(1, 2, 0, 23) || !skip(":") || !number(1, 2, 0, 59) || !skip(":") || !number(1, 2, 0, 59)) return false;
    if (at_ + 1 < text_.size() && is_digit_at(text_, at_ + 1) && skip(".,"))
      while (is_digit_at(text_, at_)) ++at_;
    if (zone && !skip("Z") && !(skip("+-") && number(2, 2, 0, 24) && skip(":") && number(2, 2, 0, 59))) return false;
    return at_ == text_.size();
  }

 private:
  static int days_of(int year, int month) {
    if (month == 2) return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28;
    return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
  }
  bool skip(std::string_view any_of) {
    if (at_ == text_.size() || any_of.find(text_[at_]) == any_of.npos) return false;
    ++at_;
    return true;
  }
  bool number(size_t least, size_t most, int low, int high, int* out = nullptr) {
    size_t begin = at_;
    int value = 0;
    for (; at_ - begin < most && is_digit_at(text_, at_); ++at_) value = value * 10 + (text_[at_] - '0');
    if (out) *out = value;
    return at_ - begin >= least && value >= low && value <= high;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

bool yaml_needs_quotes(std::string_view text) {
  if (is_word_of_another_type(text) || is_base_60(text)) return true;
  if (!is_digit_at(text, 0) && text[0] != '+' && text[0] != '-' && text[0] != '.') return false;
  if (TimeReader(text).is_time()) return true;
  if (text[0] == '.') return is_float(text);
  std::string digits(text);
  std::erase(digits, '_');
  return is_integer(digits) || is_float(digits);
}

bool yaml_key_less(std::string_view left, std::string_view right) {
  size_t i = 0;
  while (i < left.size() && i < right.size() && left[i] == right[i]) ++i;
  if (i == left.size() || i == right.size()) return left.size() < right.size();
  bool left_letter = is_letter(left[i]), right_letter = is_letter(right[i]);
  if (left_letter && right_letter) return static_cast<unsigned char>(left[i]) < static_cast<unsigned char>(right[i]);
  if (left_letter || right_letter) return right_letter;
  uint64_t left_number = 0, right_number = 0;
  if (left[i] == '0' || right[i] == '0')
    for (size_t j = i; j > 0 && is_digit_at(left, j - 1); --j)
      if (left[j - 1] != '0') left_number = right_number = 1;
  size_t left_end = i, right_end = i;
  for (; is_digit_at(left, left_end); ++left_end) left_number = left_number * 10 + uint64_t(left[left_end] - '0');
  for (; is_digit_at(right, right_end); ++right_end) right_number = right_number * 10 + uint64_t(right[right_end] - '0');
  if (left_number != right_number) return left_number < right_number;
  if (left_end != right_end) return left_end < right_end;
  return left[i] < right[i];
}

std::string yaml_number(double number) {
  // Go prints whole numbers without a point in JSON, and its YAML library reads JSON: then they are integers.
  if (std::trunc(number) == number && std::fabs(number) < 0x1p63) return std::to_string(int64_t(number));
  if (std::trunc(number) == number && number > 0 && number < 0x1p64) return std::to_string(uint64_t(number));
  char text[64];
  auto [end, error] = std::to_chars(text, text + sizeof text, number, std::chars_format::scientific);
  std::string scientific(text, end);
  int exponent = std::atoi(scientific.c_str() + scientific.find('e') + 1);
  if (exponent < -4 || exponent >= 6) return scientific;
  auto [fixed_end, fixed_error] = std::to_chars(text, text + sizeof text, number, std::chars_format::fixed);
  return std::string(text, fixed_end);
}

struct YamlEmitter::State {
  std::string out;
  yaml_emitter_t emitter{};
  yaml_event_t event{};
};

YamlEmitter::YamlEmitter(int width) : state_(std::make_unique<State>()) {
  auto append = [](void* out, unsigned char* bytes, size_t size) {
    static_cast<std::string*>(out)->append(reinterpret_cast<char*>(bytes), size);
    return 1;
  };
  yaml_emitter_initialize(&state_->emitter);
  yaml_emitter_set_output(&state_->emitter, append, &state_->out);
  yaml_emitter_set_unicode(&state_->emitter, 1);
  yaml_emitter_set_width(&state_->emitter, width);
  yaml_emitter_set_indent(&state_->emitter, 2);
  yaml_stream_start_event_initialize(&state_->event, YAML_UTF8_ENCODING);
  emit();
  yaml_document_start_event_initialize(&state_->event, nullptr, nullptr, nullptr, 1);
  emit();
}

YamlEmitter::~YamlEmitter() { yaml_emitter_delete(&state_->emitter); }

void YamlEmitter::emit() { (void)yaml_emitter_emit(&state_->emitter, &state_->event); }  // only fails without memory

void YamlEmitter::scalar(std::string_view text, int style) {
  if (!is_utf8(text)) return scalar(as_utf8(text), style);  // libyaml refuses it
  yaml_scalar_event_initialize(&state_->event, nullptr, nullptr, reinterpret_cast<const yaml_char_t*>(text.data()),
                               int(text.size()), 1, 1, yaml_scalar_style_t(style));
  emit();
}

void YamlEmitter::text(std::string_view text, bool quotes) {
  scalar(text, text.find('\n') != text.npos ? YAML_LITERAL_SCALAR_STYLE
               : quotes                     ? YAML_DOUBLE_QUOTED_SCALAR_STYLE
                                            : YAML_PLAIN_SCALAR_STYLE);
}

void YamlEmitter::line(std::string_view text, char quote) {
  scalar(text, quote == '"'    ? YAML_DOUBLE_QUOTED_SCALAR_STYLE
               : quote == '\'' ? YAML_SINGLE_QUOTED_SCALAR_STYLE
                               : YAML_PLAIN_SCALAR_STYLE);
}

// kubectl leaves "<<" without quotes, and then it is no key any more.
void YamlEmitter::key(std::string_view text) { this->text(text, text == "<<" || yaml_needs_quotes(text)); }

void YamlEmitter::plain(std::string_view text) { scalar(text, YAML_PLAIN_SCALAR_STYLE); }

void YamlEmitter::begin_map(bool empty) {
  yaml_mapping_start_event_initialize(&state_->event, nullptr, nullptr, 1,
                                      empty ? YAML_FLOW_MAPPING_STYLE : YAML_BLOCK_MAPPING_STYLE);
  emit();
}

void YamlEmitter::end_map() {
  yaml_mapping_end_event_initialize(&state_->event);
  emit();
}

void YamlEmitter::begin_list(bool empty) {
  yaml_sequence_start_event_initialize(&state_->event, nullptr, nullptr, 1,
                                       empty ? YAML_FLOW_SEQUENCE_STYLE : YAML_BLOCK_SEQUENCE_STYLE);
  emit();
}

void YamlEmitter::end_list() {
  yaml_sequence_end_event_initialize(&state_->event);
  emit();
}

void YamlEmitter::value(const json::value& value) {
  switch (value.kind()) {
    case json::kind::object: {
      const auto& object = value.get_object();
      std::vector<const json::key_value_pair*> members;
      for (const auto& member : object) members.push_back(&member);
      std::stable_sort(members.begin(), members.end(),
                       [](auto* left, auto* right) { return yaml_key_less(left->key(), right->key()); });
      begin_map(object.empty());
      for (const auto* member : members) {
        key(member->key());
        this->value(member->value());
      }
      end_map();
      break;
    }
    case json::kind::array:
      begin_list(value.get_array().empty());
      for (const auto& item : value.get_array()) this->value(item);
      end_list();
      break;
    case json::kind::string: text(value.get_string(), yaml_needs_quotes(value.get_string())); break;
    case json::kind::double_: plain(yaml_number(value.get_double())); break;
    default: plain(to_text(value));
  }
}

std::string YamlEmitter::finish() {
  yaml_document_end_event_initialize(&state_->event, 1);
  emit();
  yaml_stream_end_event_initialize(&state_->event);
  emit();
  yaml_emitter_flush(&state_->emitter);
  std::string out = std::move(state_->out);
  if (out.ends_with("...\n")) out.resize(out.size() - 4);  // libyaml appends it to a plain top-level scalar
  return out;
}

}  // namespace coracle
