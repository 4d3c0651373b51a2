// SPDX-License-Identifier: Apache-2.0
// The mounts that this machine makes when it starts: entries of fstab(5), and enabled mount and automount units of systemd. They
// tell an empty mount point from a directory of the disk below it. An entry with noauto and a unit that is disabled or masked are
// mounted by hand only, so their absence means nothing.
// Source: fstab(5), systemd.mount(5), systemd.automount(5), systemd.unit(5) (paths, wants, names).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace coracle::volume {

struct ExpectedMounts {
  std::string fstab = "/etc/fstab";
  std::vector<std::string> unit_dirs = {"/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system"};
};

struct MissingMount {
  std::string place;   // the mount point
  std::string source;  // what says so: the path of fstab, or of the unit's link
};
// The innermost of these mounts that contains the directory, if nothing is mounted there now. Reads the files of `expected` and
// the table of mounts; does not open the mount point.
std::optional<MissingMount> missing_mount(const ExpectedMounts& expected, const std::string& directory);

// The name of systemd's unit for a path, without its suffix: "/srv/my disk" is "srv-my\x20disk".
std::string unit_name(std::string_view path);

}  // namespace coracle::volume
