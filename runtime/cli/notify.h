// SPDX-License-Identifier: Apache-2.0
// Readiness of a container for a service manager that waits for it (Type=notify). The manager does not know the container's
// processes, and its socket is out of their reach: the container gets a socket of its own, and its first READY=1 is passed on.
//
//   process ─▶ /run/notify/notify.sock = <root>/<id>/notify/notify.sock ─▶ start, or run ─▶ NOTIFY_SOCKET of our environment
//
// Other messages are dropped. Source: sd_notify(3), sd_notify_barrier(3); runc, crun, for what they pass on and when.
#pragma once

#include <optional>
#include <string>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/cli/state.h"
#include "runtime/oci/spec.h"

namespace coracle::cli {

// Gives the container a place for its socket, and the variable; does nothing without a NOTIFY_SOCKET of our own.
Result<void> add_notify_socket(oci::Spec& spec, const Container& container);

class NotifyRelay {
 public:
  // Call before the process starts. Nothing without a NOTIFY_SOCKET of our own, or for a container that was made without one.
  static Result<std::optional<NotifyRelay>> open(const Container& container);
  const Fd& fd() const { return socket_; }  // readable when there is something to pass on
  // Reads the messages that are there. Returns true once READY=1 was passed on, with `main_pid` as the service's main process.
  Result<bool> pass_on(int main_pid) const;
  // Blocks until READY=1 was passed on or the process has ended. Waits, for a limited time, until the manager has processed it:
  // call it where this process ends afterwards.
  Result<void> wait(const Fd& process, int main_pid) const;

 private:
  Result<Fd> send_ready(int main_pid) const;  // the connection to the manager; none without READY=1
  explicit NotifyRelay(Fd socket) : socket_(std::move(socket)) {}
  Fd socket_;
};

}  // namespace coracle::cli
