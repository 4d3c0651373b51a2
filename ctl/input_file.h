// SPDX-License-Identifier: Apache-2.0
// A local file, or standard input, as a request body.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "ctl/session.h"
#include "runtime/base/fd.h"

namespace coracle::ctl {

class InputFile {
 public:
  static Result<InputFile> open(const std::string& path);  // "-": standard input. Errors: bad_request for a directory; errno's
  InputFile(Fd file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

  double size() const;  // bytes; 0 if unknown
  // Uploads the file with Session::upload. Calls `sent` with the number of bytes sent so far. Errors: a read error is reported
  // instead of the server's error that it causes.
  Result<void> upload(Session& session, const Request& request, const std::function<bool(std::string_view)>& sink,
                      const std::function<void(double)>& sent = {});

 private:
  int fd() const;

  Fd file_;  // empty: standard input
  std::string path_;
};

}  // namespace coracle::ctl
