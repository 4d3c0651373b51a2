// SPDX-License-Identifier: Apache-2.0
// Many watches of one object with little work for the clients: one thread searches the data for one word. So the server is
// measured, and not three hundred clients on the same two cores.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/result.h"
#include "store/client/kubeconfig.h"

namespace coracle {

class LightWatchers {
 public:
  // Opens `count` watches of `path` ("/api/v1/…?watch=true"), each on its own TLS connection; the responses come later. `seen`
  // gets the watch's number and the text after `word` in an event, on the reading thread. Errors: unavailable.
  static Result<std::unique_ptr<LightWatchers>> make(const ServerAccess& access, const std::string& path, int count,
                                                     std::string word,
                                                     std::function<void(int watch, std::string_view text)> seen);
  ~LightWatchers();  // ends the reading thread

 private:
  struct Watch;
  LightWatchers();
  void read_all(std::stop_token stop);
  Result<void> take(int number);

  std::vector<std::unique_ptr<Watch>> watches_;
  std::string word_;
  std::function<void(int, std::string_view)> seen_;
  int epoll_ = -1;
  std::jthread reader_;
};

}  // namespace coracle
