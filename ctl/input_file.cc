// SPDX-License-Identifier: Apache-2.0
// See input_file.h.
#include "ctl/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace coracle::ctl {

Result<InputFile> InputFile::open(const std::string& path) {
  if (path == "-") return InputFile(Fd(), path);
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return Error::from_errno("open " + path);
  struct stat about {};
  if (::fstat(file.get(), &about) == 0 && S_ISDIR(about.st_mode)) return Error(Code::bad_request, path + " is a directory");
  return InputFile(std::move(file), path);
}

int InputFile::fd() const { return file_ ? file_.get() : STDIN_FILENO; }

double InputFile::size() const {
  struct stat about {};
  return ::fstat(fd(), &about) == 0 && S_ISREG(about.st_mode) ? double(about.st_size) : 0;
}

Result<void> InputFile::upload(Session& session, const Request& request, const std::function<bool(std::string_view)>& sink,
                               const std::function<void(double)>& sent) {
  int failed = 0;  // errno of a failed read
  double bytes = 0;
  auto source = [&](char* buffer, size_t size) {
    const ssize_t got = ::read(fd(), buffer, size);
    if (got < 0) failed = errno;
    bytes += double(std::max<ssize_t>(got, 0));
    if (sent) sent(bytes);
    return size_t(std::max<ssize_t>(got, 0));
  };
  auto done = session.upload(request, source, sink);
  if (failed) return Error::from_errno(failed, "read " + path_);
  return done;
}

}  // namespace coracle::ctl
