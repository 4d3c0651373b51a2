// SPDX-License-Identifier: Apache-2.0
// See resolver.h.
#include "daemon/node/resolver.h"

#include <optional>

#include "runtime/base/thread.h"

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

}  // namespace

// A reservation of one of the concurrent lookups, until it ends.
class Resolver::Place {
 public:
  Place(std::shared_ptr<Shared> shared, std::string asker) : shared_(std::move(shared)), asker_(std::move(asker)) {}
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() {
    shared_->lasting.with([&](Lasting& lasting) {
      --lasting.all;
      if (auto its = lasting.by_asker.find(asker_); --its->second == 0) lasting.by_asker.erase(its);
    });
    shared_->lasting.notify();
  }

 private:
  const std::shared_ptr<Shared> shared_;
  const std::string asker_;
};

Resolver::Resolver(Ask ask) : shared_(std::make_shared<Shared>()) {
  shared_->ask = ask ? std::move(ask) : [](const std::string& host, uint16_t port) { return get_addresses(host, port, 0); };
}

// Null if none was free before the deadline.
std::shared_ptr<Resolver::Place> Resolver::take_place(const std::string& asker, const CallContext& context) {
  auto has_space = [&](const Lasting& lasting) {
    auto its = lasting.by_asker.find(asker);
    return lasting.all < kLookupsAtOnce && (its == lasting.by_asker.end() || its->second < kLookupsOfOneAtOnce);
  };
  const bool is_taken = shared_->lasting.wait_until(context.stop, context.deadline, has_space, [&](Lasting& lasting) {
    if (!has_space(lasting)) return false;
    ++lasting.all, ++lasting.by_asker[asker];
    return true;
  });
  return is_taken ? std::make_shared<Place>(shared_, asker) : nullptr;
}

Result<Addresses> Resolver::find(const std::string& asker, const std::string& host, uint16_t port, const CallContext& context) {
  if (auto address = get_addresses(host, port, AI_NUMERICHOST)) return address;
  auto asked = std::make_shared<Guarded<std::optional<Result<Addresses>>>>();
  if (auto place = take_place(asker, context)) {
    const bool begun = start_detached_thread("lookups", [shared = shared_, place = std::move(place), asked, host, port] {
      auto found = shared->ask(host, port);
      asked->with([&](auto& answer) { answer = std::move(found); });
      asked->notify();
    });
    if (!begun) return Error(Code::unavailable, "lookup " + host + ": the machine has no more threads");
  }
  auto answer = asked->wait_until(
      context.stop, context.deadline, [](const auto& answer) { return answer.has_value(); },
      [](auto& answer) { return std::move(answer); });
  if (answer) return *std::move(answer);
  if (context.stop.stop_requested()) return Error(Code::cancelled, "cancelled");
  return Error(Code::timeout, "lookup " + host + ": i/o timeout");
}

}  // namespace coracle::node
