// SPDX-License-Identifier: Apache-2.0
// Small replacements for functions that the runtime's library defines: these tests only link the fake runtime.
#include "runtime/runtime.h"

namespace coracle::runtime {

oci::Spec default_spec() {
  oci::Spec spec;
  spec.process.capabilities.emplace();
  spec.process.capabilities->bounding = {"CAP_CHOWN", "CAP_NET_RAW", "CAP_SETUID"};
  spec.mounts = {{.destination = "/proc", .type = "proc", .source = "proc"},
                 {.destination = "/dev/shm", .type = "tmpfs", .source = "shm"},
                 {.destination = "/sys", .type = "sysfs", .source = "sysfs", .options = {"nosuid", "ro"}}};
  spec.linux_.masked_paths = {"/proc/kcore"};
  spec.linux_.readonly_paths = {"/proc/sys"};
  spec.linux_.resources.devices = {oci::DeviceRule{.allow = false}};
  return spec;
}

const json::value& default_seccomp() {
  static const json::value profile = json::object{{"defaultAction", "SCMP_ACT_ERRNO"}};
  return profile;
}

}  // namespace coracle::runtime
