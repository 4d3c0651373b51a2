// SPDX-License-Identifier: Apache-2.0
// Untrusted templates: a Go template or, behind "{{/*path*/}}", a JSONPath template gives output within its limits, or an error
// with its name; both give the same again.
#include "ctl/go_template.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "ctl/jsonpath.h"
#include "tests/ctl/go_template_cases.h"

using namespace coracle;

namespace {

constexpr std::string_view kPathMark = "{{/*path*/}}";
constexpr ctl::TemplateLimits kLimits{.bytes_max = 64 * 1024, .steps_max = 50'000};

void run_path(std::string_view text, const json::value& object) {
  auto path = ctl::JsonPath::parse(text);
  if (!path) return;
  auto first = path->print(object), again = path->print(object);
  if (bool(first) != bool(again) || (first && *first != *again)) __builtin_trap();
  (void)path->print_json(object, true);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const json::value object = MUST(parse_json(ctl::kPrintedObject));
  std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with(kPathMark)) return run_path(text.substr(kPathMark.size()), object), 0;
  auto parsed = ctl::GoTemplate::parse(std::string(text));
  if (!parsed) {
    if (!parsed.error().text().starts_with("template: output:")) __builtin_trap();
    return 0;
  }
  for (bool missing_key_is_error : {false, true}) {
    std::string first, again;
    auto ran = parsed->execute(object, missing_key_is_error, first, kLimits);
    auto ran_again = parsed->execute(object, missing_key_is_error, again, kLimits);
    if (first != again || bool(ran) != bool(ran_again)) __builtin_trap();
    if (!ran && !ran.error().text().starts_with("template: output:")) __builtin_trap();
  }
  return 0;
}
