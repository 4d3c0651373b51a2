// SPDX-License-Identifier: Apache-2.0
// See hooks.h.
#include "runtime/cli/hooks.h"

#include "runtime/base/text.h"
#include "runtime/cli/log.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"
#include "runtime/sys/run.h"

namespace coracle::cli {
namespace {

Result<void> run_hook(const oci::Hook& hook, const std::string& what, const json::object& state, bool is_late) {
  sys::RunSpec spec;
  spec.path = hook.path;
  spec.argv = hook.args;
  spec.env = hook.env ? *hook.env : sys::own_environment();
  spec.input = to_text(state);
  std::string bundle(get_string(json::value(state), "bundle"));
  if (!is_late || sys::exists(bundle)) spec.directory = bundle;  // it may have been deleted before the container
  if (hook.timeout_seconds) spec.timeout = std::chrono::seconds(*hook.timeout_seconds);
  sys::Heard heard = TRY(sys::run_and_hear(spec).wrap(what));
  if (heard.exit_code == 0) return {};
  std::string said(trim(heard.text));
  return Error(Code::internal, what + ": " + hook.path + " ended with exit code " + std::to_string(heard.exit_code) +
                                   (said.empty() ? "" : ": " + said));
}

// The words are runc's.
std::string failure_of(const char* field, size_t at) {
  return std::string("error running ") + field + " hook #" + std::to_string(at);
}

}  // namespace

Result<void> run_hooks(const std::vector<oci::Hook>& hooks, const char* field, const json::object& state) {
  for (size_t i = 0; i < hooks.size(); ++i) TRY(run_hook(hooks[i], failure_of(field, i), state, false));
  return {};
}

void run_late_hooks(const std::vector<oci::Hook>& hooks, const char* field, const json::object& state) {
  for (size_t i = 0; i < hooks.size(); ++i) {
    auto ran = run_hook(hooks[i], failure_of(field, i), state, true);
    if (!ran) warn(ran.error().text());
  }
}

}  // namespace coracle::cli
