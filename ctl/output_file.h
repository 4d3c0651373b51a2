// SPDX-License-Identifier: Apache-2.0
// The output of a command: standard output, or a file that appears complete or not at all.
#pragma once

#include <string>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

class OutputFile {
 public:
  // `path` "-" is standard output. Symbolic links are followed. A device or FIFO is opened and written directly. A new file has
  // mode 0600. Errors: bad_request if standard output is a terminal; already_exists for a regular file unless `replaces`;
  // errno's.
  static Result<OutputFile> open(const std::string& path, bool replaces);
  OutputFile(OutputFile&& other) noexcept = default;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  // removes the file unless finish() succeeded

  const Fd& fd() const { return fd_; }
  // Syncs the file to disk and moves it to its path. Errors: already_exists if a file was created there meanwhile; errno's.
  Result<void> finish();

 private:
  OutputFile() = default;
  Fd fd_;
  std::string path_, temporary_;  // temporary_ is "" for output that is written directly
  bool replaces_ = false;
};

}  // namespace coracle::ctl
