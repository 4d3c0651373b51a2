// SPDX-License-Identifier: Apache-2.0
// Clients that ask the same question again and again, as light as clients can be: what is measured is the server, which has to
// share the machine with them.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "runtime/base/result.h"
#include "store/client/kubeconfig.h"

namespace coracle {

// Answers a second: so many TLS connections ask for `path`, each again as soon as it has the answer, for so long. With a token in
// `access` by that, else by its certificate. Errors: unavailable, also when an answer is not 200.
Result<double> answers_per_second(const ServerAccess& access, const std::string& path, int connections,
                                  std::chrono::milliseconds span);

// Clients that ask and then never read a byte of the answer.
class StalledClients {
 public:
  // Errors: unavailable.
  static Result<StalledClients> make(const ServerAccess& access, const std::string& path, int count);
  StalledClients(StalledClients&&) noexcept;
  ~StalledClients();  // closes the connections

 private:
  struct All;
  explicit StalledClients(std::unique_ptr<All> all);
  std::unique_ptr<All> all_;
};

}  // namespace coracle
