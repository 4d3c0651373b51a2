// SPDX-License-Identifier: Apache-2.0
// See settings.h.
#include "runtime/cgroup/settings.h"

#include <algorithm>

#include "runtime/base/cpu_weight.h"
#include "runtime/base/text.h"

namespace coracle::cgroup {
namespace {

constexpr const char* kResources = "linux.resources.";

Error invalid_resource(const std::string& field, const std::string& text) {
  return Error(Code::invalid, kResources + field + ": " + text);
}
Error no_counterpart(const std::string& field) {
  return Error(Code::unsupported, kResources + field + ": cgroup v2 has no such setting");
}

class Writer {  // collects settings
 public:
  Setting& add(const std::string& field, const std::string& file, const std::string& value) {
    out.push_back({.file = file, .value = value, .field = kResources + field});
    return out.back();
  }
  std::vector<Setting> out;
};

std::string limit_text(int64_t value) { return value < 0 ? "max" : std::to_string(value); }

Result<void> check_amount(const char* field, const std::optional<int64_t>& value) {
  if (value && *value < -1) return invalid_resource(field, "is " + std::to_string(*value) + "; -1 is unlimited, less is nothing");
  return {};
}

// Settings of v1 without a counterpart in v2: an error, unless they request nothing or what v2 does anyway.
Result<void> check_lost(const oci::Resources& in) {
  // runc ignores both silently, as the kernel did before; crun rejects them. A limit that is not enforced must be an error;
  // "unlimited" is already the case.
  if (in.memory_kernel_bytes.value_or(-1) > 0) return no_counterpart("memory.kernel");
  if (in.memory_kernel_tcp_bytes.value_or(-1) > 0) return no_counterpart("memory.kernelTCP");
  // Engines write 60, the kernel's default, or -1 for "not set", if the user has set nothing.
  bool is_default = !in.memory_swappiness || *in.memory_swappiness == 60 || *in.memory_swappiness > 100;
  if (!is_default) return no_counterpart("memory.swappiness");
  if (in.memory_disable_oom_killer.value_or(false)) return no_counterpart("memory.disableOOMKiller");
  if (!in.memory_use_hierarchy.value_or(true))
    return Error(Code::unsupported, std::string(kResources) + "memory.useHierarchy: cgroup v2 is always hierarchical");
  if (in.cpu_realtime_runtime_us.value_or(0)) return no_counterpart("cpu.realtimeRuntime");
  if (in.cpu_realtime_period_us.value_or(0)) return no_counterpart("cpu.realtimePeriod");
  if (in.block_io.leaf_weight.value_or(0)) return no_counterpart("blockIO.leafWeight");
  for (const auto& device : in.block_io.weight_devices)
    if (device.leaf_weight.value_or(0)) return no_counterpart("blockIO.weightDevice.leafWeight");
  if (in.network_class_id.value_or(0)) return no_counterpart("network.classID");
  if (!in.network_priorities.empty()) return no_counterpart("network.priorities");
  return {};
}

// The part of memory.swap for swap only. Nothing: no limit is requested.
Result<std::optional<int64_t>> swap_alone(std::optional<int64_t> limit, std::optional<int64_t> both) {
  // Unlimited memory without a swap setting means both: v1 could not limit swap below memory.
  if (!both) return limit == -1 ? std::optional<int64_t>(-1) : std::nullopt;
  if (*both == -1) return both;
  if (!limit) return invalid_resource("memory.swap", "is set without memory.limit");
  if (*limit == -1) return both;
  if (*both < *limit) return invalid_resource("memory.swap", "is below memory.limit; it counts memory and swap together");
  return std::optional<int64_t>(*both - *limit);
}

// 0 means "not set" for all of them, as engines write it.
std::optional<int64_t> unless_zero(std::optional<int64_t> value) { return value == 0 ? std::nullopt : value; }

Result<void> add_memory(const oci::Resources& in, Writer& to) {
  TRY(check_amount("memory.limit", in.memory_limit_bytes));
  TRY(check_amount("memory.swap", in.memory_swap_bytes));
  TRY(check_amount("memory.reservation", in.memory_reservation_bytes));
  auto limit = unless_zero(in.memory_limit_bytes), reservation = unless_zero(in.memory_reservation_bytes);
  auto swap = TRY(swap_alone(limit, unless_zero(in.memory_swap_bytes)));
  if (swap) to.add("memory.swap", "memory.swap.max", limit_text(*swap)).may_be_absent = *swap <= 0;  // as is_no_swap
  if (limit) to.add("memory.limit", "memory.max", limit_text(*limit));
  if (reservation) to.add("memory.reservation", "memory.low", limit_text(*reservation));
  return {};
}

Result<void> add_cpu(const oci::Resources& in, Writer& to) {
  bool is_idle = in.cpu_idle.value_or(0) == 1;
  if (in.cpu_idle && *in.cpu_idle != 0 && *in.cpu_idle != 1) return invalid_resource("cpu.idle", "is 0 or 1");
  if (is_idle && in.cpu_shares.value_or(0)) return invalid_resource("cpu.shares", "an idle group (cpu.idle) has none");
  if (in.cpu_idle) to.add("cpu.idle", "cpu.idle", std::to_string(*in.cpu_idle)).may_be_absent = !is_idle;
  if (in.cpu_shares.value_or(0)) to.add("cpu.shares", "cpu.weight", std::to_string(weight_of_shares(*in.cpu_shares)));
  bool is_limited = in.cpu_quota_us.value_or(0) > 0;
  if (in.cpu_burst_us && is_limited && *in.cpu_burst_us > uint64_t(*in.cpu_quota_us))
    return invalid_resource("cpu.burst", "is larger than cpu.quota");
  // 0 for both means "not set"; podman and docker write that.
  if (in.cpu_quota_us.value_or(0) != 0 || in.cpu_period_us.value_or(0) != 0) {
    constexpr uint64_t kPeriodDefault = 100000;
    uint64_t period = in.cpu_period_us.value_or(0) ? *in.cpu_period_us : kPeriodDefault;
    std::string quota = is_limited ? std::to_string(*in.cpu_quota_us) : "max";
    to.add(in.cpu_quota_us.value_or(0) ? "cpu.quota" : "cpu.period", "cpu.max", quota + " " + std::to_string(period));
  }
  if (in.cpu_burst_us)
    to.add("cpu.burst", "cpu.max.burst", std::to_string(*in.cpu_burst_us)).may_be_absent = *in.cpu_burst_us == 0;
  if (!in.cpuset_cpus.empty()) to.add("cpu.cpus", "cpuset.cpus", in.cpuset_cpus);
  if (!in.cpuset_mems.empty()) to.add("cpu.mems", "cpuset.mems", in.cpuset_mems);
  return {};
}

Result<void> check_weight(const char* field, uint16_t weight) {
  if (weight < 10 || weight > 1000) return invalid_resource(field, "is " + std::to_string(weight) + ", not of 10 to 1000");
  return {};
}

std::string device_name(int64_t major, int64_t minor) { return std::to_string(major) + ":" + std::to_string(minor); }

void add_weight(Writer& to, const char* field, const std::string& whose, uint16_t weight) {
  Setting& added = to.add(field, "io.bfq.weight", whose + std::to_string(weight));
  added.other_file = "io.weight";
  added.other_value = whose + std::to_string(io_weight_of(weight));
}

Result<void> add_block_io(const oci::BlockIo& in, Writer& to) {
  if (in.weight.value_or(0)) {
    TRY(check_weight("blockIO.weight", *in.weight));
    add_weight(to, "blockIO.weight", "", *in.weight);
  }
  for (const oci::BlockWeight& device : in.weight_devices) {
    if (!device.weight) continue;
    TRY(check_weight("blockIO.weightDevice.weight", *device.weight));
    add_weight(to, "blockIO.weightDevice", device_name(device.major, device.minor) + " ", *device.weight);
  }
  const std::pair<const char*, const std::vector<oci::BlockThrottle>*> kinds[] = {
      {"rbps", &in.read_bps}, {"wbps", &in.write_bps}, {"riops", &in.read_iops}, {"wiops", &in.write_iops}};
  const char* fields[] = {"blockIO.throttleReadBpsDevice", "blockIO.throttleWriteBpsDevice", "blockIO.throttleReadIOPSDevice",
                          "blockIO.throttleWriteIOPSDevice"};
  for (size_t kind = 0; kind < std::size(kinds); ++kind)
    for (const oci::BlockThrottle& device : *kinds[kind].second) {
      // In v1 a rate of 0 removed a limit; v2 rejects it.
      std::string rate = device.rate ? std::to_string(device.rate) : "max";
      to.add(fields[kind], "io.max", device_name(device.major, device.minor) + " " + kinds[kind].first + "=" + rate);
    }
  return {};
}

// "2MB" becomes part of a file's name, so it must be a number and a unit.
bool is_page_size(std::string_view text) {
  size_t digits = text.find_first_not_of("0123456789");
  if (digits == 0 || digits == text.npos) return false;
  std::string_view unit = text.substr(digits);
  return unit == "KB" || unit == "MB" || unit == "GB";
}

Result<void> add_hugepages(const std::vector<oci::HugepageLimit>& in, Writer& to) {
  for (const oci::HugepageLimit& each : in) {
    if (!is_page_size(each.page_size))
      return invalid_resource("hugepageLimits.pageSize", quoted(each.page_size) + " is no size like 2MB");
    std::string file = "hugetlb." + each.page_size, value = std::to_string(each.limit_bytes);
    // Reservations first: they fail where a program can react; a failed page fault kills it.
    to.add("hugepageLimits", file + ".rsvd.max", value).may_be_absent = true;
    to.add("hugepageLimits", file + ".max", value);
  }
  return {};
}

Result<void> add_rdma(const std::map<std::string, oci::RdmaLimit>& in, Writer& to) {
  for (const auto& [device, limit] : in) {
    if (!limit.hca_handles && !limit.hca_objects)
      return invalid_resource("rdma." + device, "names neither hcaHandles nor hcaObjects");
    std::string value = device;
    if (limit.hca_handles) value += " hca_handle=" + std::to_string(*limit.hca_handles);
    if (limit.hca_objects) value += " hca_object=" + std::to_string(*limit.hca_objects);
    to.add("rdma." + device, "rdma.max", value);
  }
  return {};
}

// A file of a controller, without path separators. The core files are rejected: with them a configuration could freeze, kill or
// move processes.
Result<void> check_unified(const std::string& file) {
  bool is_name = file.find('/') == file.npos && file.find('.') != file.npos && file.find('.') > 0;
  if (!is_name) return invalid_resource("unified", quoted(file) + " is not of the form CONTROLLER.PARAMETER");
  if (controller_of(file) == "cgroup" && file != "cgroup.max.depth" && file != "cgroup.max.descendants" &&
      file != "cgroup.pressure")
    return invalid_resource("unified", quoted(file) + " is no limit");
  return {};
}

// Without swap accounting no swap is used, so the limit 0 holds.
bool is_no_swap(std::string_view file, std::string_view value) { return file == "memory.swap.max" && trim(value) == "0"; }

Result<void> add_unified(const std::map<std::string, std::string>& in, Writer& to) {
  for (const auto& [file, value] : in) {
    TRY(check_unified(file));
    std::erase_if(to.out, [&file = file](const Setting& each) { return each.file == file || each.other_file == file; });
    bool is_empty = trim(value).empty();              // resets the setting, for cpuset.cpus
    for (std::string_view line : split(value, '\n'))  // io.max and rdma.max accept one device per write
      if (!trim(line).empty() || is_empty)
        to.add("unified." + file, file, std::string(trim(line))).may_be_absent = is_no_swap(file, line);
  }
  return {};
}

}  // namespace

uint64_t io_weight_of(uint16_t weight) { return 1 + (std::clamp<uint64_t>(weight, 10, 1000) - 10) * 9999 / 990; }

bool is_no_op(const Setting& setting) {
  return setting.may_be_absent || setting.value == "max" || setting.value.starts_with("max ");
}

oci::Resources of_version(oci::Resources resources, const std::string& oci_version) {
  auto numbers = split(oci_version, '.');
  int major = parse_number<int>(numbers[0]).value_or(0);
  int minor = numbers.size() > 1 ? parse_number<int>(numbers[1]).value_or(0) : 0;
  bool is_before = major < 1 || (major == 1 && minor < 3);
  if (is_before && resources.pids_limit == 0) resources.pids_limit = -1;
  return resources;
}

std::string controller_of(const std::string& file) { return file.substr(0, file.find('.')); }

Result<std::vector<Setting>> settings(const oci::Resources& resources) {
  Writer to;
  TRY(check_lost(resources));
  TRY(add_memory(resources, to));
  TRY(add_cpu(resources, to));
  TRY(check_amount("pids.limit", resources.pids_limit));
  // A limit of 0 would forbid even the first process, so 1 is written. systemd rejects 0 too, and runc writes 1.
  if (resources.pids_limit) to.add("pids.limit", "pids.max", limit_text(*resources.pids_limit == 0 ? 1 : *resources.pids_limit));
  TRY(add_block_io(resources.block_io, to));
  TRY(add_hugepages(resources.hugepage_limits, to));
  TRY(add_rdma(resources.rdma, to));
  TRY(add_unified(resources.unified, to));
  return std::move(to.out);
}

}  // namespace coracle::cgroup
