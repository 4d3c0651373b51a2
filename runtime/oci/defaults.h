// SPDX-License-Identifier: Apache-2.0
// Defaults of a container. runtime/runtime.h declares default_spec and default_seccomp for others; these are for the runtime.
#pragma once

#include "runtime/oci/spec.h"

namespace coracle::oci {

Spec default_spec();
// The devices that the specification guarantees to every container, and the rules that allow their use.
const std::vector<Device>& default_devices();
const std::vector<DeviceRule>& default_device_rules();

// The RuntimeDefault profile: the allowed system calls; all others fail with EPERM. It has one extension: the member
// "capabilities" maps a capability to further calls that are allowed to its holders.
const json::value& default_seccomp();
// The RuntimeDefault profile in the language of apparmor_parser, under this name.
std::string default_apparmor_profile(const std::string& name);

}  // namespace coracle::oci
