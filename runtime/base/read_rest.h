// SPDX-License-Identifier: Apache-2.0
// Reads a stream to its end. Apart from the C++ library's ways, because those that take a buffer's iterator throw where a read
// fails: at a directory, or at a broken disk.
#pragma once

#include <cerrno>
#include <istream>
#include <string>

#include "runtime/base/result.h"

namespace coracle {

// What is left of `in`, which reads `path`. Blocks. Errors: errno's.
inline Result<std::string> read_rest(std::istream& in, const std::string& path) {
  std::string text;
  char buffer[16384];
  errno = 0;
  do {
    in.read(buffer, sizeof buffer);
    text.append(buffer, size_t(in.gcount()));
  } while (in);
  if (in.bad()) return Error::from_errno(errno ? errno : EIO, "read " + path);
  return text;
}

}  // namespace coracle
