// SPDX-License-Identifier: Apache-2.0
// The flags for deletions that other commands do on the way: replace --force, apply --force and --prune.
// Source: kubectl pkg/cmd/delete/delete_flags.go.
#pragma once

#include <chrono>
#include <string>

#include "ctl/command.h"

namespace coracle::ctl {

struct DeletionFlags {
  std::string cascade = "background", timeout = "0s";
  int64_t grace_period = -1;  // seconds; -1: the object's own
  bool force = false, wait = false;

  void add_to(Command command);
};

// "Background", "Foreground" or "Orphan". Pure. Errors: bad_request, worded as kubectl's.
Result<std::string> propagation_of(const std::string& cascade);
// The same errors. Warns on standard error of a bool, which --cascade was before 1.20: a command calls it once.
Result<void> check_cascade(const std::string& cascade);
// The options for a request that deletes. Errors: bad_request for another --cascade.
Result<json::object> deletion_options_of(const Session& session, const DeletionFlags& flags);
// How long to wait until a deleted object is gone: --timeout, or `otherwise` if that is 0. Errors: of the flag.
Result<std::chrono::milliseconds> deletion_timeout_of(const DeletionFlags& flags, std::chrono::milliseconds otherwise);

}  // namespace coracle::ctl
