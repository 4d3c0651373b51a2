// SPDX-License-Identifier: Apache-2.0
// The functions that a Go template may call: those of text/template, and kubectl's exists and base64decode. Pure.
// Source: Go's text/template/funcs.go; k8s.io/cli-runtime pkg/printers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ctl/go_value.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

enum class TemplateParameter : uint8_t {
  value,  // as it is, perhaps boxed
  any,    // its content; nothing is nil
  text,   // nothing but a string
};

struct TemplateFunction {
  std::string_view name;
  size_t fixed;  // how many arguments it needs
  bool variadic;
  TemplateParameter first, others;

  TemplateParameter parameter(size_t index) const { return index == 0 && fixed > 0 ? first : others; }
};

const TemplateFunction* template_function(std::string_view name);  // null where there is none

// Calls one. `and` and `or` are no functions here: they do not evaluate all of their arguments. `callee` is what `call` was given
// for a function, as the template writes it. Errors: invalid, in Go's words; too_large for a text of more than `bytes_max`.
Result<GoValue> call_template_function(const TemplateFunction& function, std::vector<GoValue> arguments,
                                       const std::string& callee, size_t bytes_max);

}  // namespace coracle::ctl
