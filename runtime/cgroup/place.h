// SPDX-License-Identifier: Apache-2.0
// The location of a container's cgroup: interprets linux.cgroupsPath for each manager. Pure.
//
//   cgroupfs   "/a/b"               /a/b below the mount point
//              "a/b", ""            a/b, or the container's id, below the caller's base: "/coracle-oci" for root; for
//                                   others the cgroup that is delegated to them
//   systemd    "slice:prefix:name"  prefix-name.scope in slice; "" = ":coracle:<id>"; slice "" = system.slice, or
//                                   user.slice in the user's own systemd
//   disabled   none
// Source: runtime-spec config-linux.md "Cgroups Path"; runc docs/systemd.md for the form with colons.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/result.h"

namespace coracle::cgroup {

enum class Manager : uint8_t { cgroupfs, systemd, disabled };
Result<Manager> manager_of(const std::string& name);  // Errors: invalid
const char* name_of(Manager manager);

struct Place {
  Manager manager = Manager::cgroupfs;
  std::string path;  // cgroupfs: below the mount point, or below the base if `is_relative`
  bool is_relative = false;
  bool is_given = false;    // set in config.json
  std::string slice, unit;  // systemd: "machine.slice", "libpod-1a2b.scope"
};

// Errors: invalid, with linux.cgroupsPath and the reason.
Result<Place> plan_place(Manager manager, const std::string& cgroups_path, const std::string& id, bool is_user);

// The path of a slice: "/a.slice/a-b.slice" for "a-b.slice". Errors: invalid.
Result<std::string> slice_path(const std::string& slice);

}  // namespace coracle::cgroup
