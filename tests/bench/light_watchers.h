// SPDX-License-Identifier: Apache-2.0
// Many watches of one object, as light as clients can be: one thread looks for one word in what comes. What is measured then is
// the server, not three hundred clients on the same two cores.
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
  // Connects `count` watches to `path` ("/api/v1/…?watch=true"), each over TLS of its own; they are answered later.
  // `seen` gets the watch's number and the text behind `word` in an event, on the reading thread. Errors: unavailable.
  static Result<std::unique_ptr<LightWatchers>> make(const ServerAccess& access, const std::string& path, int count,
                                                     std::string word,
                                                     std::function<void(int watch, std::string_view text)> seen);
  ~LightWatchers();  // ends the reading

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
