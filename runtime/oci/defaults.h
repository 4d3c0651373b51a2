// SPDX-License-Identifier: Apache-2.0
// What a container gets when nobody says otherwise. Declared for others in runtime/runtime.h (default_spec,
// default_seccomp); here is what the runtime itself needs of it.
#pragma once

#include "runtime/oci/spec.h"

namespace coracle::oci {

Spec default_spec();
// Devices that the specification promises to every container, and the rules that let it use them.
const std::vector<Device>& default_devices();
const std::vector<DeviceRule>& default_device_rules();

// The RuntimeDefault profile: what a container may call, everything else fails with EPERM. One member is ours:
// "capabilities" maps a capability to more calls that are allowed to those who hold it.
const json::value& default_seccomp();
// The RuntimeDefault profile for AppArmor's compiler, under this name.
std::string default_apparmor_profile(const std::string& name);

}  // namespace coracle::oci
