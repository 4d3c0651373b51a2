// SPDX-License-Identifier: Apache-2.0
// Serves the machine's logs, as a kubelet does at /logs/: a directory as an HTML page of links, a file with its current content.
// Source: kubelet server (/logs/), Go's net/http FileServer (the page).
#pragma once

#include <string>

#include "daemon/api/call.h"

namespace coracle::api {

// Responds with the file or directory `path` ("/", "/pods/a/0.log"; percent-decoded) below `root`. Symbolic links are followed,
// but not out of `root`: a pod that can write there must not choose which files of the machine are shown. Blocks while a file is
// sent. Errors: not_found, also for anything other than a directory or a regular file, and for a link that leads out of `root`.
Result<void> serve_system_logs(Call& call, const std::string& root, const std::string& path);

}  // namespace coracle::api
