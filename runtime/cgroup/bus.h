// SPDX-License-Identifier: Apache-2.0
// The systemd client: creates, changes and stops scopes over D-Bus. It tries systemd's private socket first, which exists without
// a bus daemon for root and for the user's own systemd. It waits for the signal that a job has finished.
// Source: org.freedesktop.systemd1(5); the D-Bus Specification, "Authentication Protocol", "Message Bus".
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/cgroup/unit.h"

namespace coracle::cgroup {

constexpr std::chrono::seconds kJobTimeout{30};  // the maximum time for systemd to start or stop a unit

class Bus {
 public:
  // Connects to the system instance of systemd, or to the user's own. Errors: unavailable, with the addresses that were tried.
  static Result<Bus> open(bool is_user);
  Bus(Bus&&) noexcept;
  Bus& operator=(Bus&&) noexcept;
  ~Bus();

  // StartTransientUnit; returns when the scope is active and contains its processes. Resets a failed unit of that name first.
  // Errors: conflict if the scope exists; forbidden; systemd's.
  Result<void> start_scope(const std::string& unit, std::vector<Property> properties);
  Result<void> set_properties(const std::string& unit, std::vector<Property> properties);
  // `inside`: a cgroup within the unit's own, "/" or "/a". Errors: systemd's.
  Result<void> attach(const std::string& unit, const std::string& inside, int pid);
  // StopUnit, waiting for the job, and ResetFailedUnit. It is no error if the unit does not exist.
  Result<void> stop(const std::string& unit);

 private:
  struct Connection;
  explicit Bus(std::unique_ptr<Connection> connection);
  std::unique_ptr<Connection> connection_;
};

}  // namespace coracle::cgroup
