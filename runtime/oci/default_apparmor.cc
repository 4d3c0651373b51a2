// SPDX-License-Identifier: Apache-2.0
// The RuntimeDefault profile in AppArmor's language: a program may use its capabilities and namespaces, but may not mount or
// write kernel settings in /proc and /sys outside its own. It may trace and signal only processes with the same profile. Source:
// apparmor.d(5); the profile that containers expect from Docker and containerd.
#include "runtime/oci/defaults.h"

namespace coracle::oci {

std::string default_apparmor_profile(const std::string& name) {
  std::string profile = R"(
profile NAME flags=(attach_disconnected,mediate_deleted) {
  network,
  unix,
  capability,
  file,
  umount,

  signal (receive) peer=unconfined,
  signal (send,receive) peer=NAME,
  ptrace (trace,read,tracedby,readby) peer=NAME,

  deny mount,

  deny /proc/* w,
  deny /proc/{[^1-9],[^1-9][^0-9],[^1-9s][^0-9y][^0-9s],[^1-9][^0-9][^0-9][^0-9/]*}/** w,
  deny /proc/sys/[^k]** w,
  deny /proc/sys/kernel/{?,??,[^s][^h][^m]**} w,
  deny /proc/sysrq-trigger rwklx,
  deny /proc/kcore rwklx,

  deny /sys/[^f]*/** wklx,
  deny /sys/f[^s]*/** wklx,
  deny /sys/fs/[^c]*/** wklx,
  deny /sys/fs/c[^g]*/** wklx,
  deny /sys/fs/cg[^r]*/** wklx,
  deny /sys/firmware/** rwklx,
  deny /sys/kernel/security/** rwklx,
}
)";
  for (size_t at = 0; (at = profile.find("NAME", at)) != profile.npos; at += name.size()) profile.replace(at, 4, name);
  return profile;
}

}  // namespace coracle::oci
