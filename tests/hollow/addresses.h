// SPDX-License-Identifier: Apache-2.0
// Addresses: those of a fleet's hollow nodes, followed by those of their pods. Pure.
#pragma once

#include <string>
#include <utility>

namespace coracle::hollow {

class Addresses {
 public:
  static constexpr int kOfNet = 250;              // per network 10.99.0.*: no address ends in 0 or 255
  static constexpr int kNodesMax = 250 * kOfNet;  // leaves addresses for pods

  // `net`: the first half of the addresses, "10.99".
  Addresses(std::string net, int nodes) : net_(std::move(net)), first_pod_((nodes + kOfNet - 1) / kOfNet * kOfNet) {}
  std::string of_node(int number) const {
    return net_ + "." + std::to_string(number / kOfNet) + "." + std::to_string(number % kOfNet + 1);
  }
  // After all addresses are used, they are reused from the first one on.
  std::string next_of_pod() {
    const int pods = 256 * kOfNet - first_pod_;
    return of_node(first_pod_ + next_pod_++ % pods);
  }

 private:
  std::string net_;
  int first_pod_, next_pod_ = 0;
};

}  // namespace coracle::hollow
