// SPDX-License-Identifier: Apache-2.0
// --raw: a request to a path of the server's as it is, whose answer is printed as it comes.
// Source: kubectl pkg/rawhttp.
#pragma once

#include <string>
#include <vector>

#include "ctl/command.h"

namespace coracle::ctl {

struct RawRequest {
  std::string method, path;        // "/api/v1/pods?limit=1"
  std::vector<std::string> files;  // whose content is the body: one, "-" for standard input
  bool needs_file = false;
  bool other_flags = false;  // the line has flags that only objects have
};

// Errors: bad_request, in kubectl's words; not_found for the file; the server's.
Result<int> run_raw(Commands& commands, const RawRequest& raw);

}  // namespace coracle::ctl
