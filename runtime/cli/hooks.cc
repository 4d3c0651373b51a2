// SPDX-License-Identifier: Apache-2.0
// See hooks.h.
#include "runtime/cli/hooks.h"

#include "runtime/cli/log.h"
#include "runtime/sys/run.h"

namespace coracle::cli {
namespace {

Result<void> run_hook(const oci::Hook& hook, const std::string& what, const json::object& state) {
  sys::RunSpec spec;
  spec.path = hook.path;
  spec.argv = hook.args;
  spec.env = hook.env;
  spec.input = to_text(state);
  if (hook.timeout_seconds) spec.timeout = std::chrono::seconds(*hook.timeout_seconds);
  int code = TRY(sys::run(spec).wrap(what));
  if (code == 0) return {};
  return Error(Code::internal, what + ": " + hook.path + " ended with exit code " + std::to_string(code));
}

std::string field_of(const char* field, size_t at) { return std::string("hooks.") + field + "[" + std::to_string(at) + "]"; }

}  // namespace

Result<void> run_hooks(const std::vector<oci::Hook>& hooks, const char* field, const json::object& state) {
  for (size_t i = 0; i < hooks.size(); ++i) TRY(run_hook(hooks[i], field_of(field, i), state));
  return {};
}

void run_late_hooks(const std::vector<oci::Hook>& hooks, const char* field, const json::object& state) {
  for (size_t i = 0; i < hooks.size(); ++i) {
    auto ran = run_hook(hooks[i], field_of(field, i), state);
    if (!ran) warn(ran.error().text());
  }
}

}  // namespace coracle::cli
