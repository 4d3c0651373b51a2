// SPDX-License-Identifier: Apache-2.0
// Clients that repeat the same request with as little work as possible: the server is measured, which shares the machine with
// them.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "runtime/base/result.h"
#include "store/client/kubeconfig.h"

namespace coracle {

// Returns responses per second: so many TLS connections request `path`, each again as soon as it has the response, for the given
// time. They authenticate with the token in `access`, if there is one, otherwise with the certificate. Errors: unavailable, also
// when a response is not 200.
Result<double> answers_per_second(const ServerAccess& access, const std::string& path, int connections,
                                  std::chrono::milliseconds span);

// The whole response to one GET of `path`, head and body, as it came. Errors: as above.
Result<std::string> answer_bytes(const ServerAccess& access, const std::string& path);

// Clients that send a request and never read the response.
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
