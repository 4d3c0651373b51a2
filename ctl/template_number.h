// SPDX-License-Identifier: Apache-2.0
// Numbers in Go templates: 7, 0x1f, 1_000, 1.5e3, 'a', 1+2i. Pure. Source: Go's text/template/parse/node.go; strconv.
#pragma once

#include <string_view>

#include "ctl/go_value.h"
#include "ctl/template_lexer.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

struct TemplateNumber {
  GoValue value;
  bool overflows = false;  // a whole number larger than an int, but not than 64 bits: an error where it is used
};

// `type` is that of the token: number, complex or char_constant. Errors: invalid, in Go's words.
Result<TemplateNumber> parse_template_number(std::string_view text, TemplateToken::Type type);

}  // namespace coracle::ctl
