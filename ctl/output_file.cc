// SPDX-License-Identifier: Apache-2.0
// See output_file.h.
#include "ctl/output_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "runtime/sys/file.h"

namespace coracle::ctl {
namespace {

std::string directory_of(const std::string& path) {
  std::filesystem::path target(path);
  return target.has_parent_path() ? target.parent_path().string() : ".";
}

}  // namespace

Result<OutputFile> OutputFile::open(const std::string& path, bool replaces) {
  OutputFile out;
  if (path == "-") {
    if (::isatty(STDOUT_FILENO))
      return Error(Code::bad_request, "this is no text for a terminal: name a file, or lead the output into one");
    out.fd_ = Fd(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
    if (!out.fd_) return Error::from_errno("write to standard output");
    return out;
  }
  struct stat there {};
  const bool exists = ::stat(path.c_str(), &there) == 0;
  if (exists && S_ISDIR(there.st_mode)) return Error(Code::bad_request, path + " is a directory");
  if (exists && !S_ISREG(there.st_mode)) {
    out.fd_ = TRY(sys::open(path, O_WRONLY));
    return out;
  }
  if (exists && !replaces) return Error(Code::already_exists, path + " exists; --force replaces it");
  out.path_ = path;
  if (exists) out.path_ = TRY(sys::absolute_path(path));
  out.replaces_ = replaces;
  const std::string directory = directory_of(out.path_);
  std::string temporary = directory + "/." + std::filesystem::path(out.path_).filename().string() + ".XXXXXX";
  out.fd_ = Fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!out.fd_) return Error::from_errno("write to " + directory);
  out.temporary_ = std::move(temporary);
  return out;
}

OutputFile::~OutputFile() {
  if (fd_ && !temporary_.empty()) (void)sys::unlink(temporary_);  // the earlier error is the one to report
}

Result<void> OutputFile::finish() {
  if (temporary_.empty()) return {};
  TRY(sys::sync(fd_).wrap("write " + path_));
  if (!replaces_ && sys::exists(path_))
    return Error(Code::already_exists, path_ + " has come to be meanwhile; --force replaces it");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return Error::from_errno("rename to " + path_);
  temporary_.clear();
  Fd beside = TRY(sys::open_directory(directory_of(path_)));
  return sys::sync(beside);
}

}  // namespace coracle::ctl
