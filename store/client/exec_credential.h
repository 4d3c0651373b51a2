// SPDX-License-Identifier: Apache-2.0
// A user's credential that a plugin prints: the program is run when the first request needs it, again when what it printed is no
// longer good.
// Source: client-go plugin/pkg/client/auth/exec; the API group client.authentication.k8s.io.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/clock.h"
#include "runtime/base/guarded.h"
#include "runtime/base/result.h"
#include "store/client/kubeconfig.h"

namespace coracle {

struct Credential {
  std::string token, client_certificate_pem, client_key_pem;
  std::optional<WallTime> expires;
};

// What the plugin printed, JSON or YAML. Errors: invalid, in client-go's words. Pure.
Result<Credential> parse_exec_credential(std::string_view text, const std::string& api_version);
// The ExecCredential that the plugin gets as KUBERNETES_EXEC_INFO. Pure.
std::string exec_info(const ExecPlugin& plugin, bool interactive);
// Whether a plugin of that mode gets our standard input, which is a terminal or not, and is read for something else or not.
// Errors: unavailable, in client-go's words, if it needs it. Pure.
Result<bool> is_interactive(ExecPlugin::Interactive mode, bool terminal, bool input_taken);
// This process reads its standard input itself, as for "-f -": plugins that run later do not get it. Thread-safe.
void keep_input_from_plugins();

// Thread-safe. Blocks while the plugin runs; one runs at a time.
class ExecCredential {
 public:
  explicit ExecCredential(ExecPlugin plugin) : plugin_(std::move(plugin)) {}

  // Runs the plugin unless what it printed before is still good. Errors: unavailable, in client-go's words, with the
  // kubeconfig's hint where the program is not installed.
  Result<std::shared_ptr<const Credential>> get();
  // The server did not take `refused`: the next get() runs the plugin, unless another thread's did so meanwhile.
  void reject(const std::shared_ptr<const Credential>& refused);

 private:
  Result<Credential> run() const;

  const ExecPlugin plugin_;
  Guarded<std::shared_ptr<const Credential>> current_;
};

}  // namespace coracle
