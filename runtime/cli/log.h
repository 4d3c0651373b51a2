// SPDX-License-Identifier: Apache-2.0
// Messages of the command line: warnings and the final error, on standard error and in the file of --log, as text or JSON, one
// line each. Engines read the file to report errors to the user. As with crun it may also be "file:PATH", "syslog:NAME" or
// "journald:NAME"; without a name that is the container's id.
#pragma once

#include <string>

#include "runtime/base/result.h"
#include "runtime/cli/options.h"

namespace coracle::cli {

Result<void> open_log(const Options& options);  // call before the first message. Errors: --log, with its path
void debug(const std::string& text);            // only with --debug or --log-level debug
void warn(const std::string& text);             // not with --log-level error
void say_error(const std::string& text);

}  // namespace coracle::cli
