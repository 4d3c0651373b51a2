// SPDX-License-Identifier: Apache-2.0
// See kyaml.h.
#include "ctl/kyaml.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <vector>

#include "ctl/flags.h"
#include "ctl/go_text.h"
#include "runtime/base/text.h"

namespace coracle::ctl {
namespace {

constexpr const char* kFold = "\\\n";  // YAML drops a line break after a backslash, and the spaces behind it

bool is_one_of_words(std::string_view text, std::initializer_list<std::string_view> all) {
  return std::find(all.begin(), all.end(), text) != all.end();
}

// As strconv.ParseInt with base 0 and ParseFloat read it, beyond what fits, too.
bool looks_like_number(std::string_view given) {
  std::string text;
  for (char c : given)
    if (c != '_') text += c;
  std::string_view digits = text;
  if (digits.starts_with('+') || digits.starts_with('-')) digits.remove_prefix(1);
  if (digits.empty() || digits.starts_with('+') || digits.starts_with('-')) return false;
  std::string lower = to_lower(digits);
  if (is_one_of_words(lower, {"inf", "infinity"}) || to_lower(text) == "nan") return true;
  auto whole = [](std::string_view part, int base) {
    uint64_t value = 0;
    auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value, base);
    return !part.empty() && error == std::errc() && end == part.data() + part.size();
  };
  std::string_view prefixed = std::string_view(lower).size() > 2 ? std::string_view(lower).substr(2) : std::string_view();
  if (lower.starts_with("0x") && whole(prefixed, 16)) return true;
  if (lower.starts_with("0b") && whole(prefixed, 2)) return true;
  if (lower.starts_with("0o") && whole(prefixed, 8)) return true;
  double value = 0;
  bool hexadecimal = lower.starts_with("0x");
  if (hexadecimal && prefixed.find('p') == prefixed.npos) return false;
  std::string_view part = hexadecimal ? prefixed : std::string_view(lower);
  auto form = hexadecimal ? std::chars_format::hex : std::chars_format::general;
  auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value, form);
  return !part.empty() && end == part.data() + part.size() && error == std::errc();
}

size_t count_digits(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
  return end - at;
}

// Numbers to base 60, which YAML 1.1 has: ^[+-]?[1-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$
bool is_sexagesimal(std::string_view text) {
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  if (text.empty() || text[0] < '1' || text[0] > '9') return false;
  size_t at = std::min(text.find_first_not_of("0123456789_"), text.size());
  if (at == text.size() || text[at] != ':') return false;
  while (at < text.size() && text[at] == ':') {
    size_t count = count_digits(text, at + 1);
    if (count == 0 || count > 2 || (count == 2 && text[at + 1] > '5')) return false;
    at += 1 + count;
  }
  if (at < text.size() && text[at] == '.') at = std::min(text.find_first_not_of("0123456789_", at + 1), text.size());
  return at == text.size();
}

class TimeReader {
 public:
  explicit TimeReader(std::string_view text) : text_(text) {}

  // "2026-1-2", alone or with a time of day behind it. Source: the layouts in kyaml.go.
  bool reads() {
    int year = 0, month = 0, day = 0;
    if (count_digits(text_, 0) != 4 || !number(4, 4, year) || !sign('-') || !number(1, 2, month) || !sign('-') ||
        !number(1, 2, day))
      return false;
    static constexpr int kDays[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if (month < 1 || month > 12 || day < 1 || day > kDays[month - 1] || (month == 2 && day == 29 && !leap)) return false;
    if (done()) return true;
    bool zoned = sign('T') || sign('t');
    if (!zoned && !sign(' ')) return false;
    int hour = 0, minute = 0, second = 0;
    if (!number(1, 2, hour) || !sign(':') || !number(1, 2, minute) || !sign(':') || !number(1, 2, second)) return false;
    if (hour > 23 || minute > 59 || second > 59) return false;
    if (at_ + 1 < text_.size() && (text_[at_] == '.' || text_[at_] == ',') && count_digits(text_, at_ + 1) > 0)
      at_ += 1 + count_digits(text_, at_ + 1);
    if (!zoned || sign('Z')) return done();
    int offset_hour = 0, offset_minute = 0;
    if (!sign('+') && !sign('-')) return false;
    return number(2, 2, offset_hour) && sign(':') && number(2, 2, offset_minute) && done() && offset_hour <= 24 &&
           offset_minute <= 60;
  }

 private:
  bool done() const { return at_ == text_.size(); }
  bool sign(char c) {
    if (done() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool number(size_t least, size_t most, int& value) {
    size_t count = std::min(count_digits(text_, at_), most);
    if (count < least) return false;
    auto read = parse_number<int>(text_.substr(at_, count));
    at_ += count;
    value = read.value_or(0);
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

bool needs_quotes(std::string_view key) {
  if (is_ambiguous_yaml(key)) return true;
  for (size_t at = 0; at < key.size();) {
    Rune rune = first_rune(key.substr(at));
    bool inside = at > 0 && at + rune.width < key.size();
    bool plain = is_alphanumeric(rune.value) || rune.value == '_' ||
                 (inside && (rune.value == '-' || rune.value == '.' || rune.value == '/'));
    if (!plain || rune.broken()) return true;
    at += rune.width;
  }
  return false;
}

class KyamlWriter {
 public:
  explicit KyamlWriter(JsonOrder order) : order_(order) {}

  void write(const json::value& value, size_t depth) {
    if (const auto* object = value.if_object()) write_object(*object, depth);
    else if (const auto* array = value.if_array()) write_array(*array, depth);
    else if (const auto* text = value.if_string()) write_text({text->data(), text->size()}, depth + 1, false);
    else if (value.is_number()) out_ += go_json_number(value);
    else out_ += value.is_null() ? "null" : value.get_bool() ? "true" : "false";
  }
  std::string out_;

 private:
  void indent(size_t depth) { out_.append(2 * depth, ' '); }

  void write_object(const json::object& object, size_t depth) {
    if (object.empty()) return void(out_ += "{}");
    std::vector<const json::key_value_pair*> members;
    for (const auto& member : object) members.push_back(&member);
    if (order_ == JsonOrder::sorted)
      std::sort(members.begin(), members.end(), [](auto* a, auto* b) { return a->key() < b->key(); });
    out_ += "{\n";
    for (const auto* member : members) {
      indent(depth + 1);
      std::string_view key(member->key().data(), member->key().size());
      if (needs_quotes(key)) write_text(key, depth + 1, true);
      else out_ += key;
      out_ += ": ";
      write(member->value(), depth + 1);
      out_ += ",\n";
    }
    indent(depth);
    out_ += '}';
  }

  void write_array(const json::array& array, size_t depth) {
    if (array.empty()) return void(out_ += "[]");
    bool cuddled = std::all_of(array.begin(), array.end(), [](const json::value& item) { return item.is_structured(); });
    out_ += cuddled ? "[" : "[\n";
    for (const auto& item : array) {
      if (cuddled && &item != array.begin()) out_ += ", ";
      if (!cuddled) indent(depth + 1);
      write(item, cuddled ? depth : depth + 1);
      if (!cuddled) out_ += ",\n";
    }
    if (!cuddled) indent(depth);
    out_ += ']';
  }

  // A text of several lines has each on a line of its own, unless it is to be `compact`.
  void write_text(std::string_view text, size_t depth, bool compact) {
    bool folds = !compact && text.find('\n') != text.npos;
    out_ += '"';
    if (folds) out_ += kFold;
    while (!text.empty()) {
      Rune rune = first_rune(text);
      if (out_.back() == '\n') {  // a space stands for nothing there: one of the text's own is escaped
        indent(depth);
        out_ += is_space_rune(rune.value) && rune.value != '\n' ? '\\' : ' ';
      }
      if (rune.broken()) write_hex("\\x", uint8_t(text.front()), 2);
      else write_rune(rune.value, folds, compact);
      text.remove_prefix(rune.width);
    }
    if (folds && out_.back() != '\n') out_ += kFold;
    if (folds) indent(depth);
    out_ += '"';
  }

  void write_hex(const char* prefix, char32_t value, int digits) {
    out_ += prefix;
    for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out_ += "0123456789abcdef"[value >> shift & 0xf];
  }

  void write_rune(char32_t c, bool folds, bool compact) {
    if (c == '\n') return void((out_ += "\\n") += folds ? kFold : "");
    if (c == '\t') return void(out_ += compact ? "\\t" : "\t");
    if (c == '"' || c == '\\') return void((out_ += '\\') += char(c));
    if (is_printable(c)) return append_rune(out_, c);
    static constexpr std::pair<char32_t, char> kNamed[] = {{'\a', 'a'}, {'\b', 'b'},   {'\f', 'f'},  {'\r', 'r'},
                                                           {'\v', 'v'}, {0, '0'},      {0x1b, 'e'},  {0x85, 'N'},
                                                           {0xa0, '_'}, {0x2028, 'L'}, {0x2029, 'P'}};
    for (const auto& [value, name] : kNamed)
      if (c == value) return void((out_ += '\\') += name);
    if (c < ' ' || c == 0x7f) write_hex("\\x", c, 2);
    else if (c < 0x10000) write_hex("\\u", c, 4);
    else write_hex("\\U", c, 8);
  }

  JsonOrder order_;
};

}  // namespace

bool is_ambiguous_yaml(std::string_view text) {
  std::string lower = to_lower(text);
  if (is_one_of_words(lower,
                      {"", "null", "~", "true", "y", "yes", "on", "false", "n", "no", "off", ".inf", "-.inf", "+.inf", ".nan"}))
    return true;
  return parse_bool(text) || looks_like_number(text) || is_sexagesimal(text) || TimeReader(text).reads();
}

std::string to_kyaml(const json::value& value, JsonOrder order) {
  KyamlWriter writer(order);
  writer.out_ = "---\n";
  writer.write(value, 0);
  return std::move(writer.out_) + "\n";
}

}  // namespace coracle::ctl
