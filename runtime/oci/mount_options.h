// SPDX-License-Identifier: Apache-2.0
// Options of mounts that are not the file system's own: one table for those who carry them out and for `features`,
// which lists them. What is not in it goes to the file system as it is.
// Source: runtime-spec config.md "Linux mount options"; mount(8), mount_setattr(2), fsconfig(2).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace coracle::oci {

enum class MountOptionKind : uint8_t {
  nothing,              // says what is so anyway
  bind,                 // "bind", "rbind"
  attribute,            // of the mount: MOUNT_ATTR_*
  recursive_attribute,  // the same, of those beneath it too: "rro"
  propagation,          // MS_SHARED, ...
  super_flag,           // of the file system, by name
  copy_up,              // "tmpcopyup"
  id_mapped,            // "idmap", "ridmap"
};

struct MountOption {
  MountOptionKind kind = MountOptionKind::nothing;
  uint64_t set = 0, clear = 0;  // MOUNT_ATTR_*; of a propagation, `set` is MS_*
  bool is_recursive = false;    // "rbind", "ridmap"
};

std::optional<MountOption> mount_option(const std::string& name);  // nothing: the file system's own
std::vector<std::string> mount_option_names();                     // sorted

}  // namespace coracle::oci
