// SPDX-License-Identifier: Apache-2.0
// See features_document.h. The lists come from the tables that parsing and execution use; without a table, from the checks.
#include "runtime/oci/features_document.h"

#include <algorithm>

#include "runtime/oci/capabilities.h"
#include "runtime/oci/checks.h"
#include "runtime/oci/mount_options.h"
#include "runtime/oci/seccomp_profile.h"

namespace coracle::oci {
namespace {

json::array list(const std::vector<std::string>& items) { return json::array(items.begin(), items.end()); }

json::array sorted(std::vector<std::string> items) {
  std::sort(items.begin(), items.end());
  return list(items);
}

json::array hooks() {
  json::array out;
  for (const HookKind& kind : kHookKinds) out.emplace_back(kind.name);
  return out;
}

json::object enabled(bool value) { return {{"enabled", value}}; }

json::object seccomp(const FeatureFacts& facts) {
  if (facts.seccomp_version.empty()) return enabled(false);
  std::vector<std::string> supported;
  for (const std::string& flag : seccomp_flag_names())
    if (std::find(facts.seccomp_flags.begin(), facts.seccomp_flags.end(), flag) != facts.seccomp_flags.end())
      supported.push_back(flag);
  return {{"enabled", true},
          {"actions", sorted(seccomp_action_names())},
          {"operators", sorted(seccomp_operator_names())},
          {"archs", sorted(facts.seccomp_architectures)},
          {"knownFlags", list(seccomp_flag_names())},
          {"supportedFlags", list(supported)}};
}

json::object linux_features(const FeatureFacts& facts) {
  return {
      {"namespaces", list(namespace_names())},
      {"capabilities", list(all_capabilities())},
      {"cgroup",
       json::object{
           {"v1", true}, {"v2", true}, {"systemd", facts.has_systemd}, {"systemdUser", facts.has_systemd_user}, {"rdma", true}}},
      {"seccomp", seccomp(facts)},
      {"apparmor", enabled(true)},
      {"selinux", enabled(true)},
      {"memoryPolicy", json::object{{"modes", list(memory_policy_modes())}, {"flags", list(memory_policy_flags())}}},
      {"intelRdt", enabled(false)},
      {"mountExtensions", json::object{{"idmap", enabled(true)}}},
      {"netDevices", enabled(true)}};
}

}  // namespace

json::value features(const FeatureFacts& facts) {
  json::object annotations{{"io.coracle.version", facts.runtime_version}, {"io.coracle.checkpoint.enabled", "false"}};
  if (!facts.seccomp_version.empty()) annotations["io.github.seccomp.libseccomp.version"] = facts.seccomp_version;
  json::object out{{"ociVersionMin", kVersionMin},
                   {"ociVersionMax", kVersionMax},
                   {"hooks", hooks()},
                   {"mountOptions", list(mount_option_names())},
                   {"linux", linux_features(facts)},
                   {"annotations", std::move(annotations)}};
  // systemd properties are passed to systemd unchanged.
  out["potentiallyUnsafeConfigAnnotations"] = json::array{};
  if (facts.has_systemd) out["potentiallyUnsafeConfigAnnotations"] = json::array{"org.systemd.property."};
  return out;
}

}  // namespace coracle::oci
