// SPDX-License-Identifier: Apache-2.0
// Parses JSONPath templates. See jsonpath_nodes.h.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "ctl/go_text.h"
#include "ctl/jsonpath.h"
#include "ctl/jsonpath_nodes.h"
#include "runtime/base/text.h"

namespace coracle::ctl {
namespace {

using PathNode = JsonPathNode;
using PathKind = JsonPathNode::Kind;

constexpr char32_t kNoRune = char32_t(-1);  // behind the last one

bool is_line_break(char32_t c) { return c == '\r' || c == '\n'; }
bool is_digit_rune(char32_t c) { return c >= '0' && c <= '9'; }
bool is_word_rune(char32_t c) { return c != kNoRune && (c == '_' || is_alphanumeric(c)); }

bool ends_name(char32_t c) {
  return c == kNoRune || c == ' ' || c == '\t' || is_line_break(c) ||
         (c < 0x80 && std::string_view(".,[]$@{}").find(char(c)) != std::string_view::npos);
}

bool is_operator(char c) { return c == '!' || c == '<' || c == '>' || c == '='; }

PathNode path_node(PathKind kind, std::string text) {
  PathNode node;
  node.kind = kind, node.text = std::move(text);
  return node;
}

std::optional<int64_t> parse_path_int(std::string_view text) {
  if (text.starts_with('+') && !text.substr(1).starts_with('-')) text.remove_prefix(1);
  return parse_number<int64_t>(text);
}

class JsonPathParser {
 public:
  JsonPathParser(std::string_view input, int nesting) : input_(input), nesting_(nesting) {}

  Result<PathNode> parse() {
    PathNode root;
    for (;;) {
      size_t brace = input_.find('{', at_);
      size_t end = brace == input_.npos ? input_.size() : brace;
      if (end > at_) root.children.push_back(path_node(PathKind::text, std::string(input_.substr(at_, end - at_))));
      if (brace == input_.npos) return root;
      at_ = start_ = brace + 1;
      PathNode list;
      TRY(parse_braces(list));
      root.children.push_back(std::move(list));
    }
  }

 private:
  char32_t take() {
    if (at_ >= input_.size()) return width_ = 0, kNoRune;
    Rune rune = first_rune(input_.substr(at_));
    width_ = rune.width;
    at_ += width_;
    return rune.value;
  }
  void back() { at_ -= std::exchange(width_, 0); }
  char32_t peek() const { return at_ < input_.size() ? first_rune(input_.substr(at_)).value : kNoRune; }
  std::string_view taken() {
    std::string_view text = input_.substr(start_, at_ - start_);
    start_ = at_;
    return text;
  }

  // The content of one pair of braces, written as `text`: what stands behind the first closing brace is checked, and left out.
  Result<PathNode> nested(const std::string& text) {
    if (nesting_ >= kJsonPathNestingMax) return path_error("nested too deeply");
    PathNode root = TRY(parse_jsonpath("{" + text + "}", nesting_ + 1));
    return std::move(root.children.front());
  }

  Result<void> parse_braces(PathNode& list);  // to the closing one
  Result<void> parse_recursive(PathNode& list);
  Result<void> parse_array(PathNode& list);
  Result<void> parse_filter(PathNode& list);
  Result<void> parse_quoted(PathNode& list, char32_t quote);
  Result<void> parse_a_number(PathNode& list);
  Result<PathNode> parse_slice(std::string_view text);
  void parse_field(PathNode& list);
  void parse_identifier(PathNode& list);

  std::string_view input_;
  int nesting_;
  size_t at_ = 0, start_ = 0, width_ = 0;
};

Result<void> JsonPathParser::parse_braces(PathNode& list) {
  for (;;) {
    std::string_view rest = input_.substr(at_);
    if (rest.starts_with('}')) {
      start_ = ++at_;
      return {};
    }
    if (rest.starts_with("[?(")) {
      TRY(parse_filter(list));
      continue;
    }
    if (rest.starts_with("..")) {
      TRY(parse_recursive(list));
      continue;
    }
    char32_t c = take();
    if (c == kNoRune || is_line_break(c)) return path_error("unclosed action");
    if (c == ' ' || c == '@' || c == '$') {  // the current value, which is what the next node begins with anyway
      (void)taken();
    } else if (c == '[') {
      TRY(parse_array(list));
    } else if (c == '"' || c == '\'') {
      TRY(parse_quoted(list, c));
    } else if (c == '.') {
      parse_field(list);
    } else if (c == '+' || c == '-' || is_digit_rune(c)) {
      back();
      TRY(parse_a_number(list));
    } else if (is_word_rune(c)) {
      back();
      parse_identifier(list);
    } else {
      return path_error("unrecognized character in action: " + shown_rune(c));
    }
  }
}

void JsonPathParser::parse_identifier(PathNode& list) {
  while (!ends_name(peek())) take();
  std::string value(taken());
  PathNode node = path_node(PathKind::identifier, value);
  if (value == "true" || value == "false") node.kind = PathKind::boolean, node.flag = value == "true";
  list.children.push_back(std::move(node));
}

Result<void> JsonPathParser::parse_recursive(PathNode& list) {
  if (!list.children.empty() && list.children.back().kind == PathKind::recursive)
    return path_error("invalid multiple recursive descent");
  at_ += 2;
  (void)taken();
  list.children.push_back(path_node(PathKind::recursive, ""));
  if (is_word_rune(peek())) parse_field(list);
  return {};
}

void JsonPathParser::parse_field(PathNode& list) {
  (void)taken();
  for (;;) {
    char32_t c = peek();
    if (c == '\\') take(), take();
    else if (ends_name(c)) break;
    else take();
  }
  std::string value(taken());
  if (value == "*") return void(list.children.push_back(path_node(PathKind::wildcard, "")));
  value.erase(std::remove(value.begin(), value.end(), '\\'), value.end());
  list.children.push_back(path_node(PathKind::field, std::move(value)));
}

Result<void> JsonPathParser::parse_a_number(PathNode& list) {
  if (peek() == '+' || peek() == '-') take();
  while (peek() == '.' || is_digit_rune(peek())) take();
  std::string_view text = taken();
  PathNode node;
  if (auto whole = parse_path_int(text)) {
    node.kind = PathKind::integer, node.integer = *whole;
  } else {
    std::string_view digits = text.starts_with('+') ? text.substr(1) : text;
    node.kind = PathKind::real;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), node.real);
    bool read = !digits.empty() && error == std::errc() && end == digits.data() + digits.size();
    if (!read || !std::isfinite(node.real)) return path_error("cannot parse number " + std::string(text));
  }
  list.children.push_back(std::move(node));
  return {};
}

Result<void> JsonPathParser::parse_quoted(PathNode& list, char32_t quote) {
  for (;;) {
    char32_t c = take();
    if (c == kNoRune || c == '\n') return path_error("unterminated quoted string");
    if (c == quote && input_[at_ - 2] != '\\') break;
  }
  std::string value(taken());
  auto text = unquoted_extended(value);
  if (!text) return path_error("unquote string " + value + " error " + text.error().text());
  list.children.push_back(path_node(PathKind::text, std::move(*text)));
  return {};
}

Result<PathNode> JsonPathParser::parse_slice(std::string_view text) {
  auto invalid = [&] { return path_error("invalid array index " + std::string(text)); };
  std::vector<std::string_view> parts = split(text, ':');
  if (parts.size() > 3) return invalid();
  PathNode node;
  node.kind = PathKind::array;
  for (size_t i = 0; i < parts.size(); ++i) {
    std::string_view digits = parts[i].starts_with('-') ? parts[i].substr(1) : parts[i];
    if (!std::all_of(digits.begin(), digits.end(), [](char c) { return is_digit_rune(uint8_t(c)); })) return invalid();
    if (parts[i].empty()) continue;
    auto value = parse_path_int(parts[i]);
    if (!value) return path_error("array index " + std::string(parts[i]) + " is not a number");
    node.bounds[i] = {*value, true, false};
  }
  if (parts.size() == 1) node.bounds[1] = {wrapping_sum(node.bounds[0].value, 1), true, true};
  return node;
}

Result<void> JsonPathParser::parse_array(PathNode& list) {
  for (;;) {
    char32_t c = take();
    if (c == kNoRune || c == '\n') return path_error("unterminated array");
    if (c == ']') break;
  }
  std::string_view text = taken();
  text = text.substr(1, text.size() - 2);
  if (text == "*") text = ":";
  if (std::vector<std::string_view> parts = split(text, ','); parts.size() > 1) {
    PathNode node;
    node.kind = PathKind::union_;
    for (std::string_view part : parts) {
      while (part.starts_with(' ')) part.remove_prefix(1);
      while (part.ends_with(' ')) part.remove_suffix(1);
      PathNode one = TRY(nested("[" + std::string(part) + "]"));
      node.children.push_back(std::move(one));
    }
    list.children.push_back(std::move(node));
    return {};
  }
  bool is_key = text.size() >= 2 && text.front() == '\'' && text.back() == '\'';
  if (is_key && text.substr(1, text.size() - 2).find('\'') == text.npos) {
    PathNode key = TRY(nested("." + std::string(text.substr(1, text.size() - 2))));
    for (auto& node : key.children) list.children.push_back(std::move(node));
    return {};
  }
  PathNode slice = TRY(parse_slice(text));
  list.children.push_back(std::move(slice));
  return {};
}

Result<void> JsonPathParser::parse_filter(PathNode& list) {
  at_ += 3;
  (void)taken();
  bool begun = false, ended = false;
  for (char32_t pair = 0;;) {
    char32_t c = take();
    if (c == kNoRune || c == '\n') return path_error("unterminated filter");
    if (c == ')' && begun == ended) break;
    if (c != '"' && c != '\'') continue;
    if (!begun) begun = true, pair = c;
    else if (input_[at_ - 2] != '\\' && c == pair) ended = true;
  }
  if (take() != ']') return path_error("unclosed array expect ]");
  std::string text(taken());
  text.resize(text.size() - 2);
  size_t begin = size_t(std::find_if(text.begin(), text.end(), is_operator) - text.begin()), end = begin;
  while (end < text.size() && is_operator(text[end])) ++end;
  if (end == text.size() && end > begin + 1) --end;  // something has to be on the right side
  PathNode node = path_node(PathKind::filter, "exists");
  if (begin == 0 || begin == end || end == text.size()) {
    PathNode left = TRY(nested(text));
    node.children.push_back(std::move(left));
  } else {
    node.text = text.substr(begin, end - begin);
    PathNode left = TRY(nested(text.substr(0, begin)));
    PathNode right = TRY(nested(text.substr(end)));
    node.children.push_back(std::move(left));
    node.children.push_back(std::move(right));
  }
  list.children.push_back(std::move(node));
  return {};
}

}  // namespace

Result<JsonPathNode> parse_jsonpath(std::string_view text, int nesting) { return JsonPathParser(text, nesting).parse(); }

}  // namespace coracle::ctl
