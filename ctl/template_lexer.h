// SPDX-License-Identifier: Apache-2.0
// The tokens of a Go template: text, and between {{ and }} the words of an action. Pure. Source: Go's text/template/parse/lex.go.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace coracle::ctl {

struct TemplateToken {
  enum class Type : uint8_t {
    error,  // `text` says what is wrong
    boolean,
    character,  // a printable ASCII character without a meaning of its own, such as a comma
    char_constant,
    complex,
    assign,   // =
    declare,  // :=
    end_of_text,
    field,       // .name
    identifier,  // a function
    left_delimiter,
    left_parenthesis,
    number,
    pipe,
    raw_string,
    right_delimiter,
    right_parenthesis,
    space,
    string,
    text,
    variable,  // $name
    // keywords
    block,
    break_,
    continue_,
    dot,
    define,
    else_,
    end,
    if_,
    nil,
    range,
    template_,
    with,
  };
  Type type = Type::end_of_text;
  size_t at = 0;  // in the template
  std::string text;
  size_t line = 1;

  bool is_keyword() const { return type >= Type::block; }
  std::string shown() const;  // for a message: quoted and shortened; <end> for a keyword
};

class TemplateLexer {
 public:
  explicit TemplateLexer(std::string_view input) : input_(input) {}  // which has to outlive it
  TemplateToken next();                                              // behind an error and the end: always the end

 private:
  using Type = TemplateToken::Type;

  char32_t take();  // kEnd at the end
  char32_t peek() const;
  void back();  // undoes the last take()
  bool accept(std::string_view set);
  void accept_run(std::string_view set);
  void move(size_t bytes);  // counts the lines
  TemplateToken token(Type type);
  TemplateToken wrong(std::string text);
  void skip() { start_ = at_, start_line_ = line_; }
  std::string_view rest() const { return input_.substr(at_); }

  TemplateToken lex_text();
  TemplateToken lex_action();
  TemplateToken lex_space();
  TemplateToken lex_right_delimiter();
  TemplateToken lex_identifier();
  TemplateToken lex_name(Type type);
  TemplateToken lex_quoted(char32_t quote, Type type, const char* what);
  TemplateToken lex_raw_string();
  TemplateToken lex_number();
  bool skip_comment(TemplateToken& error);
  bool scan_number();
  bool at_terminator() const;
  // At }}, or at " -}}", which also trims what follows.
  bool at_right_delimiter(bool& trims) const;

  std::string_view input_;
  size_t at_ = 0, start_ = 0, line_ = 1, start_line_ = 1, last_width_ = 0;
  int parentheses_ = 0;
  bool in_action_ = false;
};

}  // namespace coracle::ctl
