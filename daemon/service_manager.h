// SPDX-License-Identifier: Apache-2.0
// What systemd is about to do, as far as it concerns the pods. Asked over its own socket, which is there without a message bus.
// Where systemd does not run, it is about to do nothing. Block for two seconds at the most.
// Source: org.freedesktop.systemd1(5).
#pragma once

#include <string>

namespace coracle {

// Whether the unit is to be stopped: a job that stops or restarts it waits or runs.
bool is_to_be_stopped(const std::string& unit);
// Whether the machine is being switched off or started anew.
bool is_machine_ending();

}  // namespace coracle
