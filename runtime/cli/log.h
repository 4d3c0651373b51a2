// SPDX-License-Identifier: Apache-2.0
// The command line's words: warnings and the one error that ends it, on standard error and in the file of --log, as text
// or as JSON, one line each. Engines read the file to tell their user what went wrong.
#pragma once

#include <string>

#include "runtime/base/result.h"
#include "runtime/cli/options.h"

namespace coracle::cli {

Result<void> open_log(const Options& options);  // before anything is said. Errors: --log, with its path
void debug(const std::string& text);            // with --debug only
void warn(const std::string& text);
void say_error(const std::string& text);

}  // namespace coracle::cli
