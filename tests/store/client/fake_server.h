// SPDX-License-Identifier: Apache-2.0
// FakeServer: a FakeClient behind plain HTTP, for testing what speaks to API servers. It translates; it decides nothing.
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
  void answer_next(int status, int retry_after_seconds);  // instead of doing what the next request asks
  void end_watches_cleanly();                             // as a server does when their time is over

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace coracle
