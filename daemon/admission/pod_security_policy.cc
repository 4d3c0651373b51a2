// SPDX-License-Identifier: Apache-2.0
// See pod_security_policy.h: parses the labels and contains the table of checks with the versions in which they apply. The checks
// are in pod_security_checks.cc.
#include "daemon/admission/pod_security_policy.h"

#include <algorithm>
#include <array>

#include "daemon/admission/pod_security_checks.h"
#include "runtime/base/text.h"
#include "store/object/status.h"

namespace coracle::admission {
namespace {

constexpr int kMinorLatest = 36;  // the latest supported version of the standards

const char* level_text(SecurityLevel level) {
  switch (level) {
    case SecurityLevel::privileged: return "privileged";
    case SecurityLevel::baseline: return "baseline";
    case SecurityLevel::restricted: return "restricted";
  }
  return "";
}

std::optional<SecurityLevel> parse_level(std::string_view text) {
  for (SecurityLevel level : {SecurityLevel::privileged, SecurityLevel::baseline, SecurityLevel::restricted})
    if (text == level_text(level)) return level;
  return std::nullopt;
}

// nullopt: malformed. An inner nullopt: latest.
std::optional<std::optional<int>> parse_version(std::string_view text) {
  if (text == "latest") return std::optional<int>();
  if (!text.starts_with("v1.")) return std::nullopt;
  std::string_view digits = text.substr(3);
  bool plain = digits.find_first_not_of("0123456789") == digits.npos && (digits.size() == 1 || !digits.starts_with('0'));
  auto minor = plain ? parse_number<int>(digits) : std::nullopt;
  if (!minor) return std::nullopt;
  return minor;
}

struct Label {
  std::string level, version;  // of one mode
  std::optional<std::string_view> level_value, version_value;
};

Label label_of(const json::object& labels, std::string_view mode) {
  Label out{
      "pod-security.kubernetes.io/" + std::string(mode), "pod-security.kubernetes.io/" + std::string(mode) + "-version", {}, {}};
  if (const json::value* value = labels.if_contains(out.level); value && value->is_string())
    out.level_value = value->get_string();
  if (const json::value* value = labels.if_contains(out.version); value && value->is_string())
    out.version_value = value->get_string();
  return out;
}

// Reads one mode into `into`. Returns whether its level is present and valid.
bool read_mode(const Label& label, SecurityLevel if_wrong, LevelVersion& into, std::vector<Cause>& errors) {
  bool right = false;
  if (label.level_value) {
    auto level = parse_level(*label.level_value);
    right = level.has_value();
    into.level = level.value_or(if_wrong);
    if (!level)
      errors.push_back(invalid_value("metadata.labels[" + label.level + "]", quoted(*label.level_value),
                                     "must be one of privileged, baseline, restricted"));
  }
  if (label.version_value) {
    auto version = parse_version(*label.version_value);
    into.minor = version.value_or(std::nullopt);
    if (!version)
      errors.push_back(invalid_value("metadata.labels[" + label.version + "]", quoted(*label.version_value),
                                     "must be \"latest\" or \"v1.x\""));
  }
  return right;
}

// ---- the standards ----

using CheckPod = std::optional<Violation> (*)(const CheckedPod& pod);
struct Version {
  int from;  // minor version
  CheckPod check;
};
struct Check {
  std::string_view id;
  std::array<Version, 5> versions;  // ascending; unused ones have no check
  std::string_view overrides = {};  // of a restricted check: the baseline check that it replaces
};

CheckPod at(const Check& check, int minor) {
  CheckPod found = nullptr;
  for (const Version& version : check.versions)
    if (version.check && version.from <= minor) found = version.check;
  return found;
}

// Sorted by id, the order of violations.
const Check kBaselineChecks[] = {
    {"appArmorProfile", {{{0, check_app_armor}}}},
    {"capabilities_baseline", {{{0, check_capabilities_baseline}}}},
    {"hostNamespaces", {{{0, check_host_namespaces}}}},
    {"hostPathVolumes", {{{0, check_host_path_volumes}}}},
    {"hostPorts", {{{0, check_host_ports}}}},
    {"hostProbesAndHostLifecycle", {{{34, check_host_probes}}}},
    {"privileged", {{{0, check_privileged}}}},
    {"procMount", {{{0, check_proc_mount}, {35, check_proc_mount_1_35}}}},
    {"seLinuxOptions", {{{0, check_se_linux}, {31, check_se_linux_1_31}}}},
    {"seccompProfile_baseline", {{{0, check_seccomp_annotations}, {19, check_seccomp_baseline}}}},
    {"sysctls", {{{0, check_sysctls}, {27, check_sysctls_1_27}, {29, check_sysctls_1_29}, {32, check_sysctls_1_32}}}},
    {"windowsHostProcess", {{{0, check_windows_host_process}}}},
};
const Check kRestrictedChecks[] = {
    {"allowPrivilegeEscalation", {{{8, check_privilege_escalation}, {25, check_privilege_escalation_1_25}}}},
    {"capabilities_restricted",
     {{{22, check_capabilities_restricted}, {25, check_capabilities_restricted_1_25}}},
     "capabilities_baseline"},
    {"procMount_restricted", {{{35, check_proc_mount}}}, "procMount"},
    {"restrictedVolumes", {{{0, check_restricted_volumes}}}, "hostPathVolumes"},
    {"runAsNonRoot", {{{0, check_run_as_non_root}, {35, check_run_as_non_root_1_35}}}},
    {"runAsUser", {{{23, check_run_as_user}, {35, check_run_as_user_1_35}}}},
    {"seccompProfile_restricted",
     {{{19, check_seccomp_restricted}, {25, check_seccomp_restricted_1_25}}},
     "seccompProfile_baseline"},
};

bool overridden(const Check& baseline, int minor) {
  return std::any_of(std::begin(kRestrictedChecks), std::end(kRestrictedChecks),
                     [&](const Check& check) { return check.overrides == baseline.id && at(check, minor); });
}

}  // namespace

std::string LevelVersion::text() const {
  return std::string(level_text(level)) + ":" + (minor ? "v1." + std::to_string(*minor) : "latest");
}

bool SecurityPolicy::privileged() const {
  return enforce.level == SecurityLevel::privileged && audit.level == SecurityLevel::privileged &&
         warn.level == SecurityLevel::privileged;
}

SecurityPolicy policy_of(const json::object& labels) {
  SecurityPolicy policy;
  bool enforced = read_mode(label_of(labels, "enforce"), SecurityLevel::restricted, policy.enforce, policy.errors);
  read_mode(label_of(labels, "audit"), SecurityLevel::privileged, policy.audit, policy.errors);
  Label warn = label_of(labels, "warn");
  read_mode(warn, SecurityLevel::privileged, policy.warn, policy.errors);
  if (!warn.level_value && enforced && policy.enforce.level > policy.warn.level) {  // warns at the enforced level at least
    policy.warn.level = policy.enforce.level;
    if (!warn.version_value) policy.warn.minor = policy.enforce.minor;
  }
  return policy;
}

std::vector<Violation> violations(const LevelVersion& allowed, view::ObjectMeta metadata, view::PodSpec spec) {
  std::vector<Violation> out;
  if (allowed.level == SecurityLevel::privileged) return out;
  int minor = std::min(allowed.minor.value_or(kMinorLatest), kMinorLatest);
  CheckedPod pod{metadata, spec};
  auto run = [&](const Check& check) {
    CheckPod function = at(check, minor);
    auto found = function ? function(pod) : std::nullopt;
    if (found) out.push_back(std::move(*found));
  };
  bool restricted = allowed.level == SecurityLevel::restricted;
  for (const Check& check : kBaselineChecks)
    if (!restricted || !overridden(check, minor)) run(check);
  if (restricted)
    for (const Check& check : kRestrictedChecks) run(check);
  return out;
}

std::string reasons(const std::vector<Violation>& violations) {
  std::vector<std::string> parts;
  for (const Violation& violation : violations) parts.push_back(violation.reason);
  return join(parts, ", ");
}

std::string details(const std::vector<Violation>& violations) {
  std::vector<std::string> parts;
  for (const Violation& violation : violations)
    parts.push_back(violation.reason + (violation.detail.empty() ? "" : " (" + violation.detail + ")"));
  return join(parts, ", ");
}

}  // namespace coracle::admission
