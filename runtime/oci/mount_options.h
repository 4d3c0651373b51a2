// SPDX-License-Identifier: Apache-2.0
// Mount options that are not the file system's own: one table for the launch and for `features`, which lists them. All other
// options are passed to the file system.
// Source: runtime-spec config.md "Linux mount options"; mount(8), mount_setattr(2), fsconfig(2); those for links: crun.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace coracle::oci {

enum class MountOptionKind : uint8_t {
  nothing,              // requests the default
  bind,                 // "bind", "rbind"
  attribute,            // of the mount: MOUNT_ATTR_*
  recursive_attribute,  // also of the mounts beneath it: "rro"
  propagation,          // MS_SHARED, ...
  super_flag,           // of the file system, by name
  copy_up,              // "tmpcopyup"
  id_mapped,            // "idmap", "ridmap"
  copy_link,            // "copy-symlink": a source that is a link is made anew at the destination
  link_source,          // "src-nofollow": such a link itself is bound
  link_destination,     // "dest-nofollow": a destination that is a link is covered itself
};

struct MountOption {
  MountOptionKind kind = MountOptionKind::nothing;
  uint64_t set = 0, clear = 0;  // MOUNT_ATTR_*; for propagation, `set` is MS_*
  bool is_recursive = false;    // "rbind", "ridmap"
};

std::optional<MountOption> mount_option(const std::string& name);  // nothing: an option of the file system
std::vector<std::string> mount_option_names();                     // sorted

}  // namespace coracle::oci
