// SPDX-License-Identifier: Apache-2.0
// See resolver.h.
#include "daemon/node/resolver.h"

#include <atomic>
#include <optional>

#include "runtime/base/guarded.h"

namespace coracle::node {
namespace {

constexpr size_t kLookupsAtOnce = 64, kLookupsOfOneAtOnce = 8;

Result<Addresses> get_addresses(const std::string& host, uint16_t port, int flags) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  int failed = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failed) return Error(Code::unavailable, "lookup " + host + ": " + ::gai_strerror(failed));
  return Addresses(found, ::freeaddrinfo);
}

struct Asked {
  Guarded<std::optional<Result<Addresses>>> answer;
  std::atomic<bool> given_up{false};
};

}  // namespace

Resolver::Resolver(Ask ask)
    : ask_(ask ? std::move(ask) : [](const std::string& host, uint16_t port) { return get_addresses(host, port, 0); }),
      lookups_("lookups", kLookupsAtOnce, kLookupsOfOneAtOnce) {}

Result<Addresses> Resolver::find(const std::string& asker, const std::string& host, uint16_t port, const Patience& patience) {
  if (auto address = get_addresses(host, port, AI_NUMERICHOST)) return address;
  auto asked = std::make_shared<Asked>();
  lookups_.post(
      [this, asked, host, port](std::stop_token stop) {
        if (stop.stop_requested() || asked->given_up) return;
        auto found = ask_(host, port);
        asked->answer.with([&](auto& answer) { answer = std::move(found); });
        asked->answer.notify();
      },
      asker);
  auto answer = asked->answer.wait_until(
      patience.stop, patience.deadline, [](const auto& answer) { return answer.has_value(); },
      [](auto& answer) { return std::move(answer); });
  if (answer) return *std::move(answer);
  asked->given_up = true;
  if (patience.stop.stop_requested()) return Error(Code::cancelled, "cancelled");
  return Error(Code::timeout, "lookup " + host + ": i/o timeout");
}

}  // namespace coracle::node
