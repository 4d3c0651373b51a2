// SPDX-License-Identifier: Apache-2.0
// What a container's specification must satisfy before anything is done for it: a list of named checks, each pure.
// Source: opencontainers/runtime-spec v1.2 for what is allowed; the attacks each check answers are named beside it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/oci/spec.h"

namespace coracle::oci {

struct Check {
  const char* name;
  Result<void> (*run)(const Spec& spec);
};
const std::vector<Check>& checks();

// Runs all of them; the first that fails is the answer, with its name in front. Errors: invalid, unsupported.
Result<void> validate(const Spec& spec);

// A sysctl that belongs to a namespace of the container's own, of which `has_network`, `has_ipc` and `has_uts` say
// which there are. Everything else would change the machine. Errors: invalid.
Result<void> check_sysctls(const std::map<std::string, std::string>& sysctls, bool has_network, bool has_ipc,
                           bool has_uts);
// "net.ipv4.ip_forward" → "net/ipv4/ip_forward"
std::string sysctl_path(const std::string& name);

}  // namespace coracle::oci
