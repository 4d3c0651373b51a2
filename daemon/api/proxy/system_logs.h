// SPDX-License-Identifier: Apache-2.0
// The logs of the machine, as a node agent shows them at /logs/: a directory as a page of links, a file as it is now.
// Source: kubelet server (/logs/), Go's net/http FileServer (the page).
#pragma once

#include <string>

#include "daemon/api/call.h"

namespace coracle::api {

// Answers with what stands at `path` ("/", "/pods/a/0.log"; percent-decoded) beneath `root`. Links are followed, but not out of
// it: a pod that may write there must not choose which files of the machine are shown. Blocks while a file is sent.
// Errors: not_found, also for what is neither directory nor file, and for a link that leads out.
Result<void> serve_system_logs(Call& call, const std::string& root, const std::string& path);

}  // namespace coracle::api
