// SPDX-License-Identifier: Apache-2.0
// FakeServer: a FakeClient behind plain HTTP, for tests of API clients. It only translates requests.
#pragma once

#include <memory>
#include <string>

#include "tests/store/client/fake_client.h"

namespace coracle {

class FakeServer {
 public:
  FakeServer();
  ~FakeServer();
  std::string url() const;  // "http://127.0.0.1:40123"
  FakeClient& objects();
  void answer_next(int status, int retry_after_seconds);  // the next request gets this response and is not executed
  void end_watches_cleanly();                             // as a server does when a watch's time is over

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace coracle
