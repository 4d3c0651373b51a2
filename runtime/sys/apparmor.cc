// SPDX-License-Identifier: Apache-2.0
// See apparmor.h.
#include "runtime/sys/apparmor.h"

#include <chrono>

#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "runtime/sys/run.h"

namespace coracle::sys {

namespace {

constexpr std::chrono::seconds kParserTimeout{60};

}  // namespace

bool is_apparmor_enabled() {
  auto enabled = read_file("/sys/module/apparmor/parameters/enabled", 64);
  return enabled && enabled->starts_with("Y");
}

Result<bool> is_apparmor_profile_loaded(const std::string& profile) {
  std::string known = TRY(read_file("/sys/kernel/security/apparmor/profiles"));
  for (std::string_view line : split(known, '\n'))  // "name (mode)"
    if (line.substr(0, line.rfind(" (")) == profile) return true;
  return false;
}

Result<void> load_apparmor_profile(const std::string& text) {
  for (const char* path : {"/sbin/apparmor_parser", "/usr/sbin/apparmor_parser"}) {
    if (!exists(path)) continue;
    // Replaces the profile and ignores the cache, so that exactly this text is loaded.
    int code = TRY(run({.path = path, .argv = {"apparmor_parser", "-Kr"}, .env = {}, .input = text, .timeout = kParserTimeout}));
    if (code == 0) return {};
    return Error(Code::invalid, "apparmor_parser refuses the profile with exit code " + std::to_string(code));
  }
  return Error(Code::not_found, "there is no apparmor_parser on this machine; Debian has it in the package apparmor");
}

}  // namespace coracle::sys
