// SPDX-License-Identifier: Apache-2.0
// The requirements on a specification, checked before anything is done for the container: lists of named, pure checks. Source:
// opencontainers/runtime-spec v1.2 and v1.3 for what is valid; each check names the attack that it prevents.
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
const std::vector<Check>& checks();        // for every specification
const std::vector<Check>& checks_alone();  // for one that defines all its namespaces itself, as a bundle's config.json does

// Runs checks() and returns the first failure. Errors: invalid, unsupported, too_large, each with the field.
Result<void> validate(const Spec& spec);
// Runs checks() and checks_alone(): a namespace that is not listed is the host's. Not for the containers of a sandbox: they use
// its namespaces.
Result<void> validate_alone(const Spec& spec);

// Normalises a container path: absolute, without empty and "." components and without a trailing slash. ".." is kept, and other
// checks reject it: only the kernel can resolve it.
std::string plain_path(std::string_view path);

// The container's own namespaces; false: shared with the host.
struct OwnNamespaces {
  bool network = false, ipc = false, uts = false, user = false;
};
// Allows only sysctls of the container's own namespaces. All others would change the machine. Errors: invalid.
Result<void> check_sysctls(const std::map<std::string, std::string>& sysctls, const OwnNamespaces& own);
Result<void> check_sysctls(const std::map<std::string, std::string>& sysctls, bool has_network, bool has_ipc, bool has_uts);
// "net.ipv4.ip_forward" → "net/ipv4/ip_forward", "net.ipv4.conf.eth0/1.forwarding" → "net/ipv4/conf/eth0.1/forwarding".
// A name whose first separator is a slash is used unchanged. Source: sysctl(8).
std::string sysctl_path(const std::string& name);

}  // namespace coracle::oci
