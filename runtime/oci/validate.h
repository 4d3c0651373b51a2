// SPDX-License-Identifier: Apache-2.0
// What a container's specification must satisfy before anything is done for it: lists of named checks, each pure.
// Source: opencontainers/runtime-spec v1.2 and v1.3 for what is allowed; the attacks each check answers are named
// beside it.
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
const std::vector<Check>& checks();        // of every specification
const std::vector<Check>& checks_alone();  // of one that names all its namespaces itself, as a bundle's config.json does

// Runs checks(); the first that fails is the answer. Errors: invalid, unsupported, too_large, each naming its field.
Result<void> validate(const Spec& spec);
// Runs checks() and checks_alone(): a namespace that is not named is the host's. Not for containers of a sandbox, whose
// namespaces are the sandbox's.
Result<void> validate_alone(const Spec& spec);

// A path as the container sees it, absolute and without empty, "." and trailing parts; ".." stays, and is refused
// elsewhere: only the kernel knows where it leads.
std::string plain_path(std::string_view path);

// Namespaces of the container's own; false: shared with the host.
struct OwnNamespaces {
  bool network = false, ipc = false, uts = false, user = false;
};
// Sysctls of a namespace of the container's own. Everything else would change the machine. Errors: invalid.
Result<void> check_sysctls(const std::map<std::string, std::string>& sysctls, const OwnNamespaces& own);
Result<void> check_sysctls(const std::map<std::string, std::string>& sysctls, bool has_network, bool has_ipc, bool has_uts);
// "net.ipv4.ip_forward" → "net/ipv4/ip_forward", "net.ipv4.conf.eth0/1.forwarding" → "net/ipv4/conf/eth0.1/forwarding".
// What begins with a part and a slash is taken as it is. Source: sysctl(8).
std::string sysctl_path(const std::string& name);

}  // namespace coracle::oci
