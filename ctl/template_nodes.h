// SPDX-License-Identifier: Apache-2.0
// A parsed Go template: its named trees of nodes. Source: Go's text/template/parse package.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/go_value.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

struct TemplateNode {
  enum class Kind : uint8_t {
    text,
    action,  // pipe
    boolean,
    chain,    // children[0] and the fields of it
    command,  // children: function or operand, and its arguments
    dot,
    field,       // names
    identifier,  // a function: text
    if_,         // pipe, body, and perhaps otherwise
    list,
    nil,
    number,
    pipe,  // declared variables, and commands
    range,
    string,
    template_,  // text: its name; perhaps pipe
    variable,   // names: itself, with $, and fields of it
    with,
    break_,
    continue_,
    else_,  // these two end a list; they stand in no tree
    end,
  };
  using Pointer = std::unique_ptr<TemplateNode>;

  Kind kind;
  size_t at;          // in the template
  std::string text;   // as it stands there, for text, numbers and strings
  std::string value;  // of a string
  std::vector<std::string> names;
  std::vector<Pointer> children;  // of lists, pipes (commands), commands (operands), chains
  std::vector<Pointer> declared;  // variables of a pipe
  bool assigns = false;           // a pipe: = instead of :=
  bool flag = false;              // of a boolean
  bool overflows = false;         // a number that is larger than an int
  GoValue number;
  Pointer pipe, body, otherwise;

  std::string shown() const;  // as written in a message

  TemplateNode(Kind kind, size_t at) : kind(kind), at(at) {}
};

struct ParsedTemplate {
  std::string name, text;
  std::map<std::string, TemplateNode::Pointer, std::less<>> trees;  // by name; `name` is the main one
};

constexpr int kTemplateNestingMax = 100;        // of parentheses and control structures
constexpr size_t kTemplateBytesMax = 1u << 20;  // of a template

// Whether a template may call it.
bool is_template_function(std::string_view name);

// Errors: invalid, "template: NAME:LINE: what is wrong", in Go's words.
Result<ParsedTemplate> parse_template(std::string name, std::string text);

}  // namespace coracle::ctl
