// SPDX-License-Identifier: Apache-2.0
// See capabilities.h.
#include "runtime/oci/capabilities.h"

#include <sys/capability.h>

#include "runtime/base/text.h"

namespace coracle::oci {

std::optional<int> capability_number(const std::string& name) {
  cap_value_t number;
  // libcap also accepts plain numbers, which are not names.
  if (!name.starts_with("CAP_") || ::cap_from_name(name.c_str(), &number) < 0 || number < 0 || number > 63) return std::nullopt;
  return number;
}

Result<uint64_t> capability_set(const std::vector<std::string>& names) {
  uint64_t set = 0;
  for (const std::string& name : names) {
    auto number = capability_number(name);
    if (!number) return Error(Code::invalid, "unknown capability " + quoted(name));
    set |= uint64_t(1) << *number;
  }
  return set;
}

std::vector<std::string> all_capabilities() {
  std::vector<std::string> out;
  for (int number = 0; number < 64 && number <= ::cap_max_bits() - 1; ++number) {
    char* name = ::cap_to_name(number);
    if (!name) break;
    std::string text = name;
    ::cap_free(name);
    if (!text.starts_with("cap_")) break;  // a bare number: no further names
    for (char& c : text)
      if (c >= 'a' && c <= 'z') c = char(c - 'a' + 'A');
    out.push_back(std::move(text));
  }
  return out;
}

}  // namespace coracle::oci
