// SPDX-License-Identifier: Apache-2.0
// See validate.h: the lists of checks, and checks without a file of their own.
#include "runtime/oci/validate.h"

#include "runtime/oci/checks.h"

namespace coracle::oci {
namespace {

constexpr size_t kHostnameMax = 64;  // __NEW_UTS_LEN
constexpr size_t kHooksMax = 256;    // of one kind

Result<void> check_hook_list(const std::vector<Hook>& hooks, const std::string& name) {
  if (hooks.size() > kHooksMax) return Error(Code::too_large, name + ": more than " + std::to_string(kHooksMax));
  for (size_t i = 0; i < hooks.size(); ++i) {
    const Hook& hook = hooks[i];
    std::string where = at(name.c_str(), i);
    if (!is_absolute(hook.path)) return bad(where + ".path " + quoted(hook.path) + " is not absolute");
    if (hook.timeout_seconds && *hook.timeout_seconds <= 0)
      return bad(where + ".timeout: " + std::to_string(*hook.timeout_seconds) + " is not above 0");
    for (const std::string& item : hook.env.value_or(std::vector<std::string>()))
      if (item.find('=') == item.npos || item[0] == '=') return bad(where + ".env: " + quoted(item) + " is not NAME=value");
  }
  return {};
}

bool is_number(std::string_view text) { return parse_number<uint64_t>(text).has_value(); }

Result<void> run(const std::vector<Check>& list, const Spec& spec) {
  for (const Check& check : list) TRY(check.run(spec));
  return {};
}

}  // namespace

bool has_nul(const std::string& text) { return text.find('\0') != text.npos; }
bool is_absolute(const std::string& path) { return path.starts_with("/") && !has_nul(path); }

bool is_one_line(const std::string& text) {
  for (unsigned char c : text)
    if (c < 0x20 || c == 0x7f) return false;
  return true;
}

bool is_device_number(int64_t major, int64_t minor) {
  constexpr int64_t kMajorMax = 0xfff, kMinorMax = 0xfffff;
  return major >= 0 && minor >= 0 && major <= kMajorMax && minor <= kMinorMax;
}

bool climbs(std::string_view path) {
  for (std::string_view part : split(path, '/'))
    if (part == "..") return true;
  return false;
}

bool is_number_list(std::string_view text) {
  constexpr uint32_t kMax = 8191;  // NR_CPUS and MAX_NUMNODES of the largest machines
  if (text.empty()) return true;
  for (std::string_view item : split(text, ',')) {
    item = trim(item);
    size_t dash = item.find('-');
    auto first = parse_number<uint32_t>(trim(item.substr(0, dash)));
    auto last = dash == item.npos ? first : parse_number<uint32_t>(trim(item.substr(dash + 1)));
    if (!first || !last || *first > *last || *last > kMax) return false;
  }
  return true;
}

std::string plain_path(std::string_view path) {
  std::string out;
  for (std::string_view part : split(path, '/'))
    if (!part.empty() && part != ".") out.append("/").append(part);
  return out.empty() ? "/" : out;
}

// Semantic versioning: three numbers and optional suffixes.
Result<void> check_version(const Spec& spec) {
  std::string_view text = spec.version;
  std::vector<std::string_view> parts = split(text.substr(0, text.find_first_of("-+")), '.');
  if (parts.size() != 3 || !is_number(parts[0]) || !is_number(parts[1]) || !is_number(parts[2]) || !is_one_line(spec.version))
    return bad("ociVersion " + quoted(text) + " is not a version");
  if (parts[0] != "1") return unsupported("ociVersion " + quoted(text) + " is not 1.x");
  return {};
}

Result<void> check_names(const Spec& spec) {
  for (auto [field, name] : {std::pair("hostname", &spec.hostname), std::pair("domainname", &spec.domainname)}) {
    if (name->size() > kHostnameMax) return bad(std::string(field) + " " + quoted(*name) + " is too long");
    if (!is_one_line(*name)) return bad(std::string(field) + " " + quoted(*name) + " holds a control character");
  }
  return {};
}

Result<void> check_hooks(const Spec& spec) {
  for (const HookKind& kind : kHookKinds) TRY(check_hook_list(spec.hooks.*kind.list, std::string("hooks.") + kind.name));
  return {};
}

Result<void> check_annotations(const Spec& spec) {
  if (spec.annotations.count("")) return bad("annotations: a key is empty");
  return {};
}

const std::vector<Check>& checks() {
  static const std::vector<Check> all = {
      {"version", check_version},
      {"arguments", check_arguments},
      {"working directory", check_working_directory},
      {"user", check_user},
      {"capabilities", check_capabilities},
      {"labels", check_labels},
      {"rlimits", check_rlimits},
      {"oom score", check_oom_score},
      {"scheduler", check_scheduler},
      {"io priority", check_io_priority},
      {"affinity", check_affinity},
      {"names", check_names},
      {"mounts", check_mounts},
      {"procfs", check_procfs},
      {"hooks", check_hooks},
      {"annotations", check_annotations},
      {"namespaces", check_namespaces},
      {"id mappings", check_mappings},
      {"time offsets", check_time_offsets},
      {"devices", check_devices},
      {"network devices", check_net_devices},
      {"paths", check_paths},
      {"propagation", check_propagation},
      {"personality", check_personality},
      {"memory policy", check_memory_policy},
      {"intel rdt", check_intel_rdt},
      {"cgroup path", check_cgroup_path},
      {"device rules", check_device_rules},
      {"memory", check_memory},
      {"cpu", check_cpu},
      {"pids", check_pids},
      {"block io", check_block_io},
      {"hugepages", check_hugepages},
      {"rdma", check_rdma},
      {"network class", check_network_class},
      {"unified", check_unified},
  };
  return all;
}

const std::vector<Check>& checks_alone() {
  static const std::vector<Check> all = {
      {"root", check_root},
      {"own namespaces", check_own_namespaces},
      {"own user namespace", check_own_user_namespace},
      {"own sysctls", check_own_sysctls},
  };
  return all;
}

Result<void> validate(const Spec& spec) { return run(checks(), spec); }

Result<void> validate_alone(const Spec& spec) {
  TRY(run(checks(), spec));
  return run(checks_alone(), spec);
}

}  // namespace coracle::oci
