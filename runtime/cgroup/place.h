// SPDX-License-Identifier: Apache-2.0
// Where a container's own cgroup stands: linux.cgroupsPath, by the manager that makes it. Pure.
//
//   cgroupfs   "/a/b"               /a/b beneath the mount point
//              "a/b", ""            a/b, or the container's id, beneath the caller's base: "/coracle-oci" for root; for
//                                   others the place that was delegated to them
//   systemd    "slice:prefix:name"  prefix-name.scope in slice; "" = ":coracle:<id>"; slice "" = system.slice, and
//                                   user.slice in a user's own systemd
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
  std::string path;  // cgroupfs: beneath the mount point, or beneath the base when `is_relative`
  bool is_relative = false;
  bool is_given = false;    // config.json names it
  std::string slice, unit;  // systemd: "machine.slice", "libpod-1a2b.scope"
};

// Errors: invalid, with linux.cgroupsPath and what is wrong with it.
Result<Place> plan_place(Manager manager, const std::string& cgroups_path, const std::string& id, bool is_user);

// "/a.slice/a-b.slice" of "a-b.slice". Errors: invalid.
Result<std::string> slice_path(const std::string& slice);

}  // namespace coracle::cgroup
