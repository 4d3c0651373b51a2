// SPDX-License-Identifier: Apache-2.0
// What a command writes for its user: standard output, or a file that appears whole or not at all.
#pragma once

#include <string>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

class OutputFile {
 public:
  // `path` "-": standard output. A link's file is meant; what is no regular file (a device, a fifo) is written to as it is. The
  // new file is its owner's alone to read. Errors: bad_request when standard output is a terminal; already_exists for a regular
  // file unless `replaces`; errno's.
  static Result<OutputFile> open(const std::string& path, bool replaces);
  OutputFile(OutputFile&& other) noexcept = default;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  // what is not finished goes

  const Fd& fd() const { return fd_; }
  // On the disk, and in its place. Errors: already_exists when a file has come to be meanwhile; errno's.
  Result<void> finish();

 private:
  OutputFile() = default;
  Fd fd_;
  std::string path_, temporary_;  // temporary_ "": written in place
  bool replaces_ = false;
};

}  // namespace coracle::ctl
