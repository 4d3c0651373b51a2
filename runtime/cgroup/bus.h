// SPDX-License-Identifier: Apache-2.0
// The wall to systemd: scopes made, changed and ended over D-Bus. systemd's own socket is asked first, which root and the
// user's own systemd have without any bus daemon. Waits for a job's end by its signal.
// Source: org.freedesktop.systemd1(5); the D-Bus Specification, "Authentication Protocol", "Message Bus".
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/cgroup/unit.h"

namespace coracle::cgroup {

constexpr std::chrono::seconds kJobPatience{30};  // for systemd to make or end a unit

class Bus {
 public:
  // The machine's systemd, or the user's own. Errors: unavailable, with what was tried.
  static Result<Bus> open(bool is_user);
  Bus(Bus&&) noexcept;
  Bus& operator=(Bus&&) noexcept;
  ~Bus();

  // StartTransientUnit; returns when the scope is there and its processes stand in it. A failed one of that name, left
  // behind, is forgotten first. Errors: conflict, there is such a scope; forbidden; what systemd says.
  Result<void> start_scope(const std::string& unit, std::vector<Property> properties);
  Result<void> set_properties(const std::string& unit, std::vector<Property> properties);
  // `inside`: a cgroup within the unit's own, "/" or "/a". Errors: as systemd says.
  Result<void> attach(const std::string& unit, const std::string& inside, int pid);
  // StopUnit, to its end, and ResetFailedUnit. None of that name is success.
  Result<void> stop(const std::string& unit);

 private:
  struct Connection;
  explicit Bus(std::unique_ptr<Connection> connection);
  std::unique_ptr<Connection> connection_;
};

}  // namespace coracle::cgroup
