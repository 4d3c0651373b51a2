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

json::object seccomp(const FeatureInfo& info) {
  if (info.seccomp_version.empty()) return enabled(false);
  std::vector<std::string> supported;
  for (const std::string& flag : seccomp_flag_names())
    if (std::find(info.seccomp_flags.begin(), info.seccomp_flags.end(), flag) != info.seccomp_flags.end())
      supported.push_back(flag);
  return {{"enabled", true},
          {"actions", sorted(seccomp_action_names())},
          {"operators", sorted(seccomp_operator_names())},
          {"archs", sorted(info.seccomp_architectures)},
          {"knownFlags", list(seccomp_flag_names())},
          {"supportedFlags", list(supported)}};
}

json::object linux_features(const FeatureInfo& info) {
  return {
      {"namespaces", list(namespace_names())},
      {"capabilities", list(all_capabilities())},
      {"cgroup",
       json::object{
           {"v1", true}, {"v2", true}, {"systemd", info.has_systemd}, {"systemdUser", info.has_systemd_user}, {"rdma", true}}},
      {"seccomp", seccomp(info)},
      {"apparmor", enabled(true)},
      {"selinux", enabled(true)},
      {"memoryPolicy", json::object{{"modes", list(memory_policy_modes())}, {"flags", list(memory_policy_flags())}}},
      {"intelRdt", json::object{{"enabled", false}, {"schemata", false}, {"monitoring", false}}},
      {"mountExtensions", json::object{{"idmap", enabled(true)}}},
      {"netDevices", enabled(true)}};
}

}  // namespace

json::value features(const FeatureInfo& info) {
  json::object annotations{{"io.coracle.version", info.runtime_version}, {"io.coracle.checkpoint.enabled", "false"}};
  if (!info.seccomp_version.empty()) annotations["io.github.seccomp.libseccomp.version"] = info.seccomp_version;
  json::object out{{"ociVersionMin", kVersionMin},
                   {"ociVersionMax", kVersionMax},
                   {"hooks", hooks()},
                   {"mountOptions", list(mount_option_names())},
                   {"linux", linux_features(info)},
                   {"annotations", std::move(annotations)}};
  json::array unsafe = list(info.own_annotations);
  if (info.has_systemd) unsafe.emplace_back("org.systemd.property.");  // passed to systemd unchanged
  out["potentiallyUnsafeConfigAnnotations"] = std::move(unsafe);
  return out;
}

}  // namespace coracle::oci
