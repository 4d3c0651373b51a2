// SPDX-License-Identifier: Apache-2.0
// Go templates, as kubectl -o go-template takes them: all of text/template's grammar and functions, and kubectl's.
//   text ─▶ template_lexer.h: tokens ─▶ template_parser.cc: trees of template_nodes.h ─▶ go_template.cc, template_functions.h:
//   output
// What a template may do is bounded: how deep it nests, how much it prints, how many steps it takes. Pure.
// Source: https://pkg.go.dev/text/template; k8s.io/cli-runtime pkg/printers/template.go.
#pragma once

#include <string>

#include "ctl/template_nodes.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

struct TemplateLimits {
  size_t bytes_max = 64u << 20;    // of the output, and of any text on the way
  size_t steps_max = 100'000'000;  // nodes and bytes
};

constexpr int kTemplateDepthMax = 300;  // of templates that call each other, with the control structures around the calls

class GoTemplate {
 public:
  // Errors: invalid, "template: output:1: unclosed action"; too_large.
  static Result<GoTemplate> parse(std::string text);

  // Appends to `out`; also what was printed before an error. A key that is absent prints "<no value>", or is an error.
  // Errors: invalid, with the template's name, line and column, in Go's words; too_large for a limit.
  Result<void> execute(const json::value& data, bool missing_key_is_error, std::string& out,
                       const TemplateLimits& limits = {}) const;
  const std::string& text() const { return parsed_.text; }

 private:
  explicit GoTemplate(ParsedTemplate parsed) : parsed_(std::move(parsed)) {}
  ParsedTemplate parsed_;
};

}  // namespace coracle::ctl
