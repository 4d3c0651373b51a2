// SPDX-License-Identifier: Apache-2.0
// Checks of `linux.cgroupsPath` and `linux.resources`: formats, ranges, contradictions. Whether this machine's controllers can
// enforce them is checked by cgroup/. See checks.h. Source: runtime-spec config-linux.md "Control groups"; kernel
// Documentation/admin-guide/cgroup-v1, cgroup-v2.rst.
#include <set>

#include "runtime/oci/checks.h"

namespace coracle::oci {
namespace {

constexpr size_t kPathMax = 4096;
constexpr size_t kDeviceRulesMax = 4096;
constexpr uint64_t kSwappinessMax = 100, kSwappinessUnset = ~uint64_t(0);  // engines write -1 without a sign
constexpr uint64_t kPeriodMin = 1000, kPeriodMax = 1000000;                // microseconds
constexpr int64_t kQuotaMin = 1000;
constexpr uint16_t kWeightMin = 10, kWeightMax = 1000;

// -1 means "unlimited" everywhere.
Result<void> check_limit(const std::optional<int64_t>& limit, const char* field) {
  if (limit && *limit < -1) return bad(std::string(field) + ": " + std::to_string(*limit) + " is below -1");
  return {};
}

Result<void> check_weight(const std::optional<uint16_t>& weight, const std::string& field) {
  if (!weight || *weight == 0 || (*weight >= kWeightMin && *weight <= kWeightMax)) return {};  // others write 0 for "not set"
  return bad(field + ": " + std::to_string(*weight) + " is not between 10 and 1000");
}

Result<void> check_block_device(int64_t major, int64_t minor, const std::string& field) {
  if (!is_device_number(major, minor))
    return bad(field + ": device " + std::to_string(major) + ":" + std::to_string(minor) + " is out of range");
  return {};
}

// In the notation of hugetlb's file names: "64KB", "2MB", "1GB".
bool is_page_size(const std::string& text) {
  if (text.size() < 3 || !text.ends_with("B") || std::string_view("KMG").find(text[text.size() - 2]) == std::string::npos)
    return false;
  std::string digits = text.substr(0, text.size() - 2);
  return digits[0] != '0' && digits.find_first_not_of("0123456789") == digits.npos;
}

}  // namespace

Result<void> check_cgroup_path(const Spec& spec) {
  const std::string& path = spec.linux_.cgroups_path;
  if (path.size() >= kPathMax) return Error(Code::too_large, "linux.cgroupsPath");
  if (!is_one_line(path)) return bad("linux.cgroupsPath " + quoted(path) + " holds a control character");
  if (climbs(path)) return bad("linux.cgroupsPath " + quoted(path) + " holds \"..\"");
  return {};
}

Result<void> check_device_rules(const Spec& spec) {
  const std::vector<DeviceRule>& rules = spec.linux_.resources.devices;
  if (rules.size() > kDeviceRulesMax) return Error(Code::too_large, "linux.resources.devices");
  for (size_t i = 0; i < rules.size(); ++i) {
    const DeviceRule& rule = rules[i];
    std::string where = at("linux.resources.devices", i);
    if (rule.type != "a" && rule.type != "c" && rule.type != "b") return bad(where + ": type " + quoted(rule.type));
    if (rule.access.empty() || rule.access.find_first_not_of("rwm") != rule.access.npos)
      return bad(where + ": access " + quoted(rule.access));
    if (!is_device_number(rule.major.value_or(0), rule.minor.value_or(0))) return bad(where + ": numbers are out of range");
  }
  return {};
}

Result<void> check_memory(const Spec& spec) {
  const Resources& in = spec.linux_.resources;
  TRY(check_limit(in.memory_limit_bytes, "linux.resources.memory.limit"));
  TRY(check_limit(in.memory_reservation_bytes, "linux.resources.memory.reservation"));
  TRY(check_limit(in.memory_swap_bytes, "linux.resources.memory.swap"));
  TRY(check_limit(in.memory_kernel_bytes, "linux.resources.memory.kernel"));
  TRY(check_limit(in.memory_kernel_tcp_bytes, "linux.resources.memory.kernelTCP"));
  int64_t limit = in.memory_limit_bytes.value_or(0), swap = in.memory_swap_bytes.value_or(0);
  if (limit > 0 && swap > 0 && swap < limit)
    return bad("linux.resources.memory.swap counts memory and swap together: it is below linux.resources.memory.limit");
  if (swap > 0 && limit == 0)  // that of unlimited memory is one of swap alone
    return bad("linux.resources.memory.swap counts memory and swap together: it needs linux.resources.memory.limit");
  if (in.memory_swappiness && *in.memory_swappiness > kSwappinessMax && *in.memory_swappiness != kSwappinessUnset)
    return bad("linux.resources.memory.swappiness: " + std::to_string(*in.memory_swappiness) + " is above 100");
  return {};
}

Result<void> check_cpu(const Spec& spec) {
  const Resources& in = spec.linux_.resources;
  int64_t quota = in.cpu_quota_us.value_or(0);
  uint64_t period = in.cpu_period_us.value_or(0), burst = in.cpu_burst_us.value_or(0);
  TRY(check_limit(in.cpu_quota_us, "linux.resources.cpu.quota"));
  if (quota > 0 && quota < kQuotaMin)
    return bad("linux.resources.cpu.quota: " + std::to_string(quota) + " is below 1000 microseconds");
  if (period && (period < kPeriodMin || period > kPeriodMax))
    return bad("linux.resources.cpu.period: " + std::to_string(period) + " is not between 1000 and 1000000 microseconds");
  if (quota > 0 && burst > uint64_t(quota)) return bad("linux.resources.cpu.burst is above linux.resources.cpu.quota");
  TRY(check_limit(in.cpu_realtime_runtime_us, "linux.resources.cpu.realtimeRuntime"));
  if (in.cpu_idle && *in.cpu_idle != 0 && *in.cpu_idle != 1)
    return bad("linux.resources.cpu.idle: " + std::to_string(*in.cpu_idle) + " is neither 0 nor 1");
  if (!is_number_list(in.cpuset_cpus))
    return bad("linux.resources.cpu.cpus: " + quoted(in.cpuset_cpus) + " is no list of processors");
  if (!is_number_list(in.cpuset_mems))
    return bad("linux.resources.cpu.mems: " + quoted(in.cpuset_mems) + " is no list of memory nodes");
  return {};
}

Result<void> check_pids(const Spec& spec) { return check_limit(spec.linux_.resources.pids_limit, "linux.resources.pids.limit"); }

Result<void> check_block_io(const Spec& spec) {
  const BlockIo& in = spec.linux_.resources.block_io;
  std::string block = "linux.resources.blockIO.";
  TRY(check_weight(in.weight, block + "weight"));
  TRY(check_weight(in.leaf_weight, block + "leafWeight"));
  for (size_t i = 0; i < in.weight_devices.size(); ++i) {
    const BlockWeight& device = in.weight_devices[i];
    std::string where = at((block + "weightDevice").c_str(), i);
    TRY(check_block_device(device.major, device.minor, where));
    if (!device.weight && !device.leaf_weight) return bad(where + ": neither weight nor leafWeight");
    TRY(check_weight(device.weight, where + ".weight"));
    TRY(check_weight(device.leaf_weight, where + ".leafWeight"));
  }
  for (auto [name, list] :
       {std::pair("throttleReadBpsDevice", &in.read_bps), std::pair("throttleWriteBpsDevice", &in.write_bps),
        std::pair("throttleReadIOPSDevice", &in.read_iops), std::pair("throttleWriteIOPSDevice", &in.write_iops)})
    for (const BlockThrottle& throttle : *list) TRY(check_block_device(throttle.major, throttle.minor, block + name));
  return {};
}

Result<void> check_hugepages(const Spec& spec) {
  std::set<std::string> seen;
  for (const HugepageLimit& limit : spec.linux_.resources.hugepage_limits) {
    if (!is_page_size(limit.page_size))
      return bad("linux.resources.hugepageLimits: page size " + quoted(limit.page_size) + " is not like \"2MB\"");
    if (!seen.insert(limit.page_size).second) return bad("linux.resources.hugepageLimits: " + limit.page_size + " stands twice");
  }
  return {};
}

// CVE-2023-6476, CVE-2024-3154: exactly one line of the cgroup file.
Result<void> check_rdma(const Spec& spec) {
  for (const auto& [device, limit] : spec.linux_.resources.rdma) {
    if (device.empty() || !is_one_line(device) || device.find_first_of(" /") != device.npos)
      return bad("linux.resources.rdma: " + quoted(device) + " is no device's name");
    if (!limit.hca_handles && !limit.hca_objects)
      return bad("linux.resources.rdma." + device + ": neither hcaHandles nor hcaObjects");
  }
  return {};
}

Result<void> check_network_class(const Spec& spec) {
  for (const auto& [name, priority] : spec.linux_.resources.network_priorities)
    if (name.empty() || !is_one_line(name) || name.find_first_of(" /") != name.npos)
      return bad("linux.resources.network.priorities: " + quoted(name) + " is no interface's name");
  return {};
}

// CVE-2023-6476, CVE-2024-3154: exactly one file of a controller in the cgroup. Of the core files, only those that limit
// descendants.
Result<void> check_unified(const Spec& spec) {
  constexpr const char* kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
  for (const auto& [file, value] : spec.linux_.resources.unified) {
    bool is_bound = file == "cgroup.max.depth" || file == "cgroup.max.descendants";
    bool is_plain = file.find_first_not_of(kLetters) == file.npos && file.find('.') != file.npos &&
                    !file.starts_with("cgroup.") && !file.starts_with(".");
    if (!is_plain && !is_bound) return bad("linux.resources.unified: " + quoted(file) + " is no controller's file");
    if (has_nul(value)) return bad("linux.resources.unified." + file + " holds a NUL byte");
  }
  return {};
}

}  // namespace coracle::oci
