// SPDX-License-Identifier: Apache-2.0
// Queries systemd about shutdowns that concern the pods. It uses systemd's private socket, which works without a message bus.
// Without systemd the functions return false. They block for at most two seconds. Source: org.freedesktop.systemd1(5).
#pragma once

#include <string>

namespace coracle {

// Whether a stop or restart job for the unit is queued or running.
bool is_to_be_stopped(const std::string& unit);
// Whether the machine is shutting down or rebooting.
bool is_machine_ending();

}  // namespace coracle
