// SPDX-License-Identifier: Apache-2.0
// The places inside volumes where something is mounted, or which are mounted themselves: subPaths, and mount points of other
// volumes. Paths that a container controls are never followed out of a volume (openat2).
// Source: Kubernetes core/v1 VolumeMount; kubelet's subpath and volume errors (texts).
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "daemon/node/container_spec.h"
#include "runtime/base/fd.h"
#include "store/schema/views.h"

namespace coracle::node {

constexpr unsigned kUnfinished = 01500;  // mode of a directory under construction; programs do not use it

// The path in the volume that a mount shows; "": all of it. Errors: invalid.
Result<std::string> sub_path_of(view::VolumeMount mount, const std::map<std::string, std::string>& environment);
// Creates a subPath directory with the mode of its volume, because its user need not be root. The mode is set last and marks it
// as complete. Errors: errno's.
Result<Fd> make_sub_path(const Fd& volume, const std::string& path);
// Whether an opened subPath does not exist, or an earlier daemon ended while creating it.
bool is_to_be_made(const Result<Fd>& sub_path);

// By volume: the names in it at which containers mount something else.
using NamesByVolume = std::unordered_map<std::string_view, std::set<std::string>>;

NamesByVolume mounted_names(const json::value& pod);

// Creates mount points inside volumes that the container may not be able to write to. They stay when the volume's files are
// replaced. Errors: errno's.
Result<void> make_mount_points(const std::vector<VolumeMount>& volumes, const std::vector<ManagedFile>& files);

}  // namespace coracle::node
