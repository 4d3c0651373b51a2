// SPDX-License-Identifier: Apache-2.0
// See parse_error.h. A value is read by a loop and not by functions that call themselves: the text is a user's, of any depth.
#include "ctl/parse_error.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "ctl/go_text.h"

namespace coracle::ctl {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

class JsonScanner {
 public:
  explicit JsonScanner(std::string_view text) : text_(text) {}

  // The mistake in the values; the first `count()` have none.
  std::optional<std::string> run() {
    while (has_more()) {
      if (!value()) return mistake_;
      ++count_;
    }
    return std::nullopt;
  }
  size_t count() const { return count_; }
  size_t end() const { return end_; }  // of what is wrong

 private:
  enum class Next : uint8_t { value, value_or_end, key, key_or_end, colon, comma_or_end };

  bool at_end() const { return at_ == text_.size(); }
  bool has_more() {
    while (!at_end() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
    return !at_end();
  }
  bool wrong(const std::string& where) {
    if (at_end()) return mistake_ = "unexpected EOF", false;
    const Rune rune = first_rune(text_.substr(at_));
    end_ = at_ + rune.width;
    mistake_ = "invalid character " + (rune.value == '"' ? "'\"'" : go_quoted_rune(rune.value)) + " " + where;
    return false;
  }
  bool skip_if(std::string_view any) {
    if (at_end() || any.find(text_[at_]) == any.npos) return false;
    ++at_;
    return true;
  }

  bool value() {
    open_.clear();
    for (Next next = Next::value;;) {
      if (!has_more()) return wrong("");
      const char c = text_[at_];
      bool is_over = false;  // a value is
      switch (next) {
        case Next::value_or_end:
          if ((is_over = skip_if("]"))) {
            open_.pop_back();
            break;
          }
          [[fallthrough]];
        case Next::value:
          if (c == '{' || c == '[') {
            open_.push_back(c), ++at_;
            next = c == '{' ? Next::key_or_end : Next::value_or_end;
            continue;
          }
          if (!scalar()) return false;
          is_over = true;
          break;
        case Next::key_or_end:
          if ((is_over = skip_if("}"))) {
            open_.pop_back();
            break;
          }
          [[fallthrough]];
        case Next::key:
          if (c != '"') return wrong("looking for beginning of object key string");
          if (!string()) return false;
          next = Next::colon;
          continue;
        case Next::colon:
          if (!skip_if(":")) return wrong("after object key");
          next = Next::value;
          continue;
        case Next::comma_or_end:
          const bool in_object = open_.back() == '{';
          if (skip_if(",")) {
            next = in_object ? Next::key : Next::value;
            continue;
          }
          if (!skip_if(in_object ? "}" : "]")) return wrong(in_object ? "after object key:value pair" : "after array element");
          open_.pop_back();
          is_over = true;
          break;
      }
      if (is_over && open_.empty()) return true;
      next = Next::comma_or_end;
    }
  }

  bool scalar() {
    const char c = text_[at_];
    if (c == '"') return string();
    if (c == '-' || is_digit(c)) return number();
    for (std::string_view word : {"true", "false", "null"})
      if (c == word[0]) return literal(word);
    return wrong("looking for beginning of value");
  }
  bool literal(std::string_view word) {
    for (char want : word)
      if (!skip_if(std::string_view(&want, 1)))
        return wrong("in literal " + std::string(word) + " (expecting '" + std::string(1, want) + "')");
    return true;
  }
  bool string() {
    for (++at_; !at_end();) {
      const char c = text_[at_];
      if (c == '"') return ++at_, true;
      if (uint8_t(c) < 0x20) return wrong("in string");
      if (c == '\\' ? !escape() : (++at_, false)) return false;
    }
    return wrong("");
  }
  bool escape() {
    const size_t size = text_.substr(at_).starts_with("\\u") ? 6 : 2;
    const std::string_view whole = text_.substr(at_, size);
    const bool is_known = size == 6
                              ? std::all_of(whole.begin() + 2, whole.end(), [](char c) { return std::isxdigit(uint8_t(c)); })
                              : whole.size() < size || std::string_view("bfnrt\\/\"").find(whole[1]) != whole.npos;
    at_ += whole.size();
    if (is_known) return whole.size() == size || wrong("");
    end_ = at_;
    mistake_ = "invalid escape sequence `" + std::string(whole) + "` in string";
    return false;
  }
  bool digits() {
    if (at_end() || !is_digit(text_[at_])) return wrong("in numeric literal");
    while (!at_end() && is_digit(text_[at_])) ++at_;
    return true;
  }
  bool number() {
    (void)skip_if("-");
    if (!skip_if("0") && !digits()) return false;
    if (skip_if(".") && !digits()) return false;
    if (!skip_if("eE")) return true;
    (void)skip_if("+-");
    return digits();
  }

  std::string_view text_;
  size_t at_ = 0, count_ = 0, end_ = 0;
  std::vector<char> open_;
  std::string mistake_;
};

}  // namespace

std::optional<std::string> json_mistake(std::string_view text) {
  JsonScanner scanner(text);
  auto mistake = scanner.run();
  if (!mistake || scanner.end() == 0 || scanner.count() > 1) return mistake;  // Go forgets the place in a longer stream
  return "json: offset " + std::to_string(scanner.end()) + ": " + *mistake;
}

Error parse_error(Error error, const std::string& name, std::string_view text) {
  constexpr std::string_view kOurs = "error parsing YAML: ";
  if (!error.text().starts_with(kOurs)) return std::move(error).wrap(name);
  const size_t start = text.find_first_not_of(" \t\r\n");
  if (start != text.npos && text[start] == '{')
    if (auto mistake = json_mistake(text)) return Error(error.code(), "error parsing " + name + ": " + *mistake);
  return Error(error.code(),
               "error parsing " + name + ": error converting YAML to JSON: yaml: " + error.text().substr(kOurs.size()));
}

}  // namespace coracle::ctl
