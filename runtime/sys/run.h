// SPDX-License-Identifier: Apache-2.0
// Runs a program to completion, with a text as its standard input and a time limit. Source: posix_spawn(3), pidfd_open(2).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace coracle::sys {

struct RunSpec {
  std::string path;               // not looked up in PATH
  std::vector<std::string> argv;  // with argv[0]; empty: the path
  std::vector<std::string> env;   // NAME=value, the whole environment
  std::string input;              // standard input; 1 and 2 are inherited
  std::string directory;          // working directory; "": ours
  std::optional<std::chrono::seconds> timeout;
  std::stop_token stop = {};
};
// Runs the program. Blocks. Returns the exit code or 128 + signal. Errors: exec's; timeout or cancelled after killing it.
Result<int> run(const RunSpec& spec);
struct Heard {
  int exit_code = 0;  // 128 + signal
  std::string text;   // its output on descriptors 1 and 2, truncated after 64 KiB
};
Result<Heard> run_and_hear(const RunSpec& spec);  // the same; the text of an error ends with the output so far
// Replaces this program by another one, with the same descriptors and signals. `path` is not looked up in PATH. Gives only the
// error. Source: execve(2).
Error become(const std::string& path, std::vector<std::string> argv, std::vector<std::string> env);
// The path of a program in PATH or in root's default PATH of Debian; "" if there is none.
std::string find_program(const std::string& name);
enum class Complaints : uint8_t { shown, dropped };  // what happens to a program's stderr
// The standard output of a program in PATH that must succeed; it gets no input. Blocks. Errors: not_found; internal, with its
// exit code.
Result<std::string> output_of(const std::vector<std::string>& argv, Complaints complaints = Complaints::shown);

}  // namespace coracle::sys
