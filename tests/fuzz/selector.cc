// SPDX-License-Identifier: Apache-2.0
// Untrusted label and field selectors: the result is an error, or a selector whose text parses as an equivalent one.
#include "store/object/selector.h"

#include <cstdint>
#include <string>
#include <string_view>

using namespace coracle;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  static const json::object labels{{"app", "web"}, {"tier", ""}, {"n", "5"}};
  if (auto selector = LabelSelector::parse(text)) {
    auto again = LabelSelector::parse(selector->text());
    if (!again || again->text() != selector->text() || again->matches(labels) != selector->matches(labels)) __builtin_trap();
  }
  if (auto selector = FieldSelector::parse(text))
    (void)selector->matches([](std::string_view field) { return std::string(field); });
  return 0;
}
