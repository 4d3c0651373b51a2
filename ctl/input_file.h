// SPDX-License-Identifier: Apache-2.0
// A file of the person's, or standard input, as the body of a request.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "ctl/session.h"
#include "runtime/base/fd.h"

namespace coracle::ctl {

class InputFile {
 public:
  static Result<InputFile> open(const std::string& path);  // "-" is standard input. Errors: bad_request, it is a directory
  InputFile(Fd file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

  double size() const;  // bytes; 0 when that is not known
  // As Session::upload. `sent` hears how many bytes have been sent. Errors: what reading gave, since the server knows less of it.
  Result<void> upload(Session& session, const Request& request, const std::function<bool(std::string_view)>& sink,
                      const std::function<void(double)>& sent = {});

 private:
  int fd() const;

  Fd file_;  // none: standard input
  std::string path_;
};

}  // namespace coracle::ctl
