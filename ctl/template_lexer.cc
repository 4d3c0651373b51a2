// SPDX-License-Identifier: Apache-2.0
// See template_lexer.h.
#include "ctl/template_lexer.h"

#include <algorithm>
#include <utility>

#include "ctl/go_text.h"

namespace coracle::ctl {
namespace {

constexpr char32_t kNoMoreRunes = char32_t(-1);
constexpr std::string_view kLeftDelimiter = "{{", kRightDelimiter = "}}", kLeftComment = "/*", kRightComment = "*/",
                           kTemplateSpaces = " \t\r\n";
constexpr size_t kTrimMarkerBytes = 2;  // "- " behind {{, " -" before }}
constexpr size_t kShownRunes = 10;      // of a token in a message

using TokenType = TemplateToken::Type;

bool is_template_space(char32_t c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool is_template_word(char32_t c) { return c != kNoMoreRunes && (c == '_' || is_alphanumeric(c)); }

bool has_left_trim_marker(std::string_view text) {
  return text.size() >= 2 && text[0] == '-' && is_template_space(uint8_t(text[1]));
}
bool has_right_trim_marker(std::string_view text) {
  return text.size() >= 2 && is_template_space(uint8_t(text[0])) && text[1] == '-';
}

size_t spaces_before_text(std::string_view text) { return std::min(text.find_first_not_of(kTemplateSpaces), text.size()); }

TokenType template_keyword(std::string_view word) {
  static constexpr std::pair<std::string_view, TokenType> kWords[] = {
      {"block", TokenType::block},
      {"break", TokenType::break_},
      {"continue", TokenType::continue_},
      {"define", TokenType::define},
      {"else", TokenType::else_},
      {"end", TokenType::end},
      {"if", TokenType::if_},
      {"nil", TokenType::nil},
      {"range", TokenType::range},
      {"template", TokenType::template_},
      {"with", TokenType::with},
  };
  for (const auto& [name, type] : kWords)
    if (word == name) return type;
  return word == "true" || word == "false" ? TokenType::boolean : TokenType::identifier;
}

}  // namespace

std::string TemplateToken::shown() const {
  if (type == Type::end_of_text) return "EOF";
  if (type == Type::error) return text;
  if (is_keyword()) return "<" + text + ">";
  if (text.size() > kShownRunes) return go_quoted(first_runes(text, kShownRunes)) + "...";
  return go_quoted(text);
}

char32_t TemplateLexer::take() {
  if (at_ >= input_.size()) return last_width_ = 0, kNoMoreRunes;
  Rune rune = first_rune(rest());
  last_width_ = rune.width;
  at_ += rune.width;
  if (rune.value == '\n') ++line_;
  return rune.value;
}

void TemplateLexer::back() {
  at_ -= last_width_;
  if (last_width_ == 1 && input_[at_] == '\n') --line_;
  last_width_ = 0;
}

char32_t TemplateLexer::peek() const { return at_ < input_.size() ? first_rune(rest()).value : kNoMoreRunes; }

bool TemplateLexer::accept(std::string_view set) {
  if (at_ >= input_.size() || set.find(input_[at_]) == set.npos) return false;
  ++at_;
  return true;
}

void TemplateLexer::accept_run(std::string_view set) {
  while (accept(set)) continue;
}

void TemplateLexer::move(size_t bytes) {
  line_ += size_t(std::count(input_.begin() + ptrdiff_t(at_), input_.begin() + ptrdiff_t(at_ + bytes), '\n'));
  at_ += bytes;
}

TemplateToken TemplateLexer::token(Type type) {
  TemplateToken out{type, start_, std::string(input_.substr(start_, at_ - start_)), start_line_};
  skip();
  return out;
}

TemplateToken TemplateLexer::wrong(std::string text) {
  TemplateToken out{Type::error, start_, std::move(text), start_line_};
  input_ = {};
  at_ = start_ = 0;
  in_action_ = false;
  return out;
}

TemplateToken TemplateLexer::next() {
  if (in_action_) return lex_action();
  return lex_text();
}

TemplateToken TemplateLexer::lex_text() {
  for (;;) {
    size_t left = input_.find(kLeftDelimiter, at_);
    if (left == input_.npos) {
      move(input_.size() - at_);
      return token(at_ > start_ ? Type::text : Type::end_of_text);
    }
    bool trims = has_left_trim_marker(input_.substr(left + kLeftDelimiter.size()));
    if (left > at_) {
      size_t text_end = left;
      if (trims) {
        size_t last = input_.substr(at_, left - at_).find_last_not_of(kTemplateSpaces);
        text_end = last == input_.npos ? at_ : at_ + last + 1;
      }
      move(text_end - at_);
      TemplateToken text = token(Type::text);
      move(left - at_);
      skip();
      if (!text.text.empty()) return text;
    }
    size_t marker = trims ? kTrimMarkerBytes : 0;
    if (input_.substr(left + kLeftDelimiter.size() + marker).starts_with(kLeftComment)) {
      move(kLeftDelimiter.size() + marker);
      skip();
      if (TemplateToken error; !skip_comment(error)) return error;
      continue;
    }
    move(kLeftDelimiter.size());
    TemplateToken delimiter = token(Type::left_delimiter);
    move(marker);
    skip();
    in_action_ = true;
    parentheses_ = 0;
    return delimiter;
  }
}

bool TemplateLexer::skip_comment(TemplateToken& error) {
  size_t end = input_.find(kRightComment, at_ + kLeftComment.size());
  if (end == input_.npos) return error = wrong("unclosed comment"), false;
  move(end + kRightComment.size() - at_);
  bool trims = false;
  if (!at_right_delimiter(trims)) return error = wrong("comment ends before closing delimiter"), false;
  move((trims ? kTrimMarkerBytes : 0) + kRightDelimiter.size());
  if (trims) move(spaces_before_text(rest()));
  skip();
  return true;
}

bool TemplateLexer::at_right_delimiter(bool& trims) const {
  trims = has_right_trim_marker(rest()) && rest().substr(kTrimMarkerBytes).starts_with(kRightDelimiter);
  return trims || rest().starts_with(kRightDelimiter);
}

TemplateToken TemplateLexer::lex_right_delimiter() {
  bool trims = false;
  (void)at_right_delimiter(trims);  // true, as the caller has seen
  if (trims) {
    move(kTrimMarkerBytes);
    skip();
  }
  move(kRightDelimiter.size());
  TemplateToken out = token(Type::right_delimiter);
  if (trims) {
    move(spaces_before_text(rest()));
    skip();
  }
  in_action_ = false;
  return out;
}

TemplateToken TemplateLexer::lex_action() {
  bool trims = false;
  if (at_right_delimiter(trims)) return parentheses_ == 0 ? lex_right_delimiter() : wrong("unclosed left paren");
  char32_t c = take();
  if (c == kNoMoreRunes) return wrong("unclosed action");
  if (is_template_space(c)) {
    back();
    return lex_space();
  }
  if (is_template_word(c) && !(c >= '0' && c <= '9')) {
    back();
    return lex_identifier();
  }
  switch (c) {
    case '=': return token(Type::assign);
    case ':': return take() == '=' ? token(Type::declare) : wrong("expected :=");
    case '|': return token(Type::pipe);
    case '"': return lex_quoted('"', Type::string, "quoted string");
    case '\'': return lex_quoted('\'', Type::char_constant, "character constant");
    case '`': return lex_raw_string();
    case '$': return at_terminator() ? token(Type::variable) : lex_name(Type::variable);
    case '(': ++parentheses_; return token(Type::left_parenthesis);
    case ')': return --parentheses_ < 0 ? wrong("unexpected right paren") : token(Type::right_parenthesis);
    case '.':
      if (at_ < input_.size() && !(input_[at_] >= '0' && input_[at_] <= '9')) return lex_name(Type::field);
      break;
    default: break;
  }
  if (c == '.' || c == '+' || c == '-' || (c >= '0' && c <= '9')) {
    back();
    return lex_number();
  }
  if (c < 0x80 && is_printable(c)) return token(Type::character);
  return wrong("unrecognized character in action: " + shown_rune(c));
}

TemplateToken TemplateLexer::lex_space() {
  size_t count = 0;
  while (is_template_space(peek())) take(), ++count;
  std::string_view from_last = input_.substr(at_ - 1);
  if (has_right_trim_marker(from_last) && from_last.substr(kTrimMarkerBytes).starts_with(kRightDelimiter)) {
    back();  // the last space belongs to the delimiter
    if (count == 1) return lex_right_delimiter();
  }
  return token(Type::space);
}

TemplateToken TemplateLexer::lex_identifier() {
  char32_t c = take();
  while (is_template_word(c)) c = take();
  back();
  if (!at_terminator()) return wrong("bad character " + shown_rune(c));
  return token(template_keyword(input_.substr(start_, at_ - start_)));
}

TemplateToken TemplateLexer::lex_name(Type type) {
  if (at_terminator()) return token(type == Type::variable ? type : Type::dot);
  char32_t c = take();
  while (is_template_word(c)) c = take();
  back();
  if (!at_terminator()) return wrong("bad character " + shown_rune(c));
  return token(type);
}

bool TemplateLexer::at_terminator() const {
  char32_t c = peek();
  if (c == kNoMoreRunes || is_template_space(c) || c == '.' || c == ',' || c == '|' || c == ':' || c == ')' || c == '(')
    return true;
  return rest().starts_with(kRightDelimiter);
}

TemplateToken TemplateLexer::lex_quoted(char32_t quote, Type type, const char* what) {
  for (;;) {
    char32_t c = take();
    if (c == quote) return token(type);
    if (c == '\\' && (c = take()) != '\n' && c != kNoMoreRunes) continue;
    if (c == kNoMoreRunes || c == '\n') return wrong(std::string("unterminated ") + what);
  }
}

TemplateToken TemplateLexer::lex_raw_string() {
  for (;;) {
    char32_t c = take();
    if (c == '`') return token(Type::raw_string);
    if (c == kNoMoreRunes) return wrong("unterminated raw quoted string");
  }
}

TemplateToken TemplateLexer::lex_number() {
  auto bad = [&] { return wrong("bad number syntax: " + go_quoted(input_.substr(start_, at_ - start_))); };
  if (!scan_number()) return bad();
  if (peek() != '+' && peek() != '-') return token(Type::number);
  if (!scan_number() || input_[at_ - 1] != 'i') return bad();
  return token(Type::complex);
}

bool TemplateLexer::scan_number() {
  accept("+-");
  std::string_view digits = "0123456789_";
  char exponent = 'e';
  if (accept("0")) {
    if (accept("xX")) digits = "0123456789abcdefABCDEF_", exponent = 'p';
    else if (accept("oO")) digits = "01234567_", exponent = 0;
    else if (accept("bB")) digits = "01_", exponent = 0;
  }
  accept_run(digits);
  if (accept(".")) accept_run(digits);
  if ((exponent == 'e' && accept("eE")) || (exponent == 'p' && accept("pP"))) {
    accept("+-");
    accept_run("0123456789_");
  }
  accept("i");
  if (!is_template_word(peek())) return true;
  take();
  return false;
}

}  // namespace coracle::ctl
