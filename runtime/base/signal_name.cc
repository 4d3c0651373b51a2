// SPDX-License-Identifier: Apache-2.0
// See signal_name.h.
#include "runtime/base/signal_name.h"

#include <signal.h>
#include <string.h>

#include <tuple>
#include <utility>

#include "runtime/base/text.h"

namespace coracle {
namespace {

std::string upper_case(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c -= 'a' - 'A';
  return out;
}

}  // namespace

std::optional<int> signal_number(std::string_view name) {
  if (auto number = parse_number<int>(name)) return *number > 0 && *number < NSIG ? number : std::nullopt;
  const std::string upper = upper_case(name);
  const std::string_view bare = std::string_view(upper).substr(upper.starts_with("SIG") ? 3 : 0);
  for (int i = 1; i < NSIG; ++i) {
    const char* abbreviation = ::sigabbrev_np(i);
    if (abbreviation && bare == abbreviation) return i;
  }
  for (const auto& [other_name, number] : {std::pair("IO", SIGIO), std::pair("IOT", SIGIOT), std::pair("CLD", SIGCHLD)})
    if (bare == other_name) return number;
  for (const auto& [prefix, base, sign] : {std::tuple("RTMIN+", SIGRTMIN, 1), std::tuple("RTMAX-", SIGRTMAX, -1)}) {
    if (!bare.starts_with(prefix)) continue;
    auto offset = parse_number<int>(bare.substr(6));
    if (offset && *offset >= 0 && *offset <= SIGRTMAX - SIGRTMIN) return base + sign * *offset;
  }
  if (bare == "RTMIN") return SIGRTMIN;
  if (bare == "RTMAX") return SIGRTMAX;
  return std::nullopt;
}

}  // namespace coracle
