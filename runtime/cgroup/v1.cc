// SPDX-License-Identifier: Apache-2.0
// See v1.h.
#include "runtime/cgroup/v1.h"

#include <algorithm>
#include <optional>

#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/cgroup/control.h"
#include "runtime/cgroup/hierarchy.h"
#include "runtime/sys/file.h"

namespace coracle::cgroup {
namespace {

constexpr const char* kKnown[] = {"cpu",   "cpuacct", "cpuset",  "memory",   "pids",
                                  "blkio", "hugetlb", "net_cls", "net_prio", "rdma"};

bool is_known(std::string_view controller) { return std::ranges::find(kKnown, controller) != std::end(kKnown); }

// A new cpuset has no processors and no memory nodes, and accepts no process before it has both.
Result<void> inherit_set(const Fd& parent, const Fd& cgroup) {
  for (const char* file : {"cpuset.cpus", "cpuset.mems"}) {
    std::string own = TRY(sys::read_file_at(cgroup, file));
    if (!trim(own).empty()) continue;
    std::string above = TRY(sys::read_file_at(parent, file));
    TRY(sys::write_control(cgroup, file, trim(above)));
  }
  return {};
}

// Creates the missing cgroups of the path; `made`: the new paths, the outermost first. Errors: not_found if another caller has
// removed a parent meanwhile.
Result<Fd> try_to_make_path(const V1Hierarchy& hierarchy, const std::string& path, std::vector<std::string>& made) {
  Fd at = TRY(sys::open_directory(hierarchy.mount_point));
  std::string so_far = hierarchy.mount_point;
  const bool is_set = std::ranges::count(hierarchy.controllers, "cpuset");
  // Usually only the last one is missing. A set needs the processors of its parent, which may have none yet.
  if (!is_set) {
    const std::string whole = path.substr(1), what = "cgroup " + hierarchy.mount_point + path;
    auto is_new = sys::make_directory_at(at, whole, 0755);
    if (is_new) {
      made.push_back(hierarchy.mount_point + path);
      return sys::open_at(at, whole, O_RDONLY | O_DIRECTORY).wrap(what);
    }
    const bool has_more_to_make = is_new.error().code() == Code::not_found || is_new.error().code() == Code::already_exists;
    if (!has_more_to_make) return std::move(is_new).wrap(what).take_error();
  }
  for (std::string_view part : split(std::string_view(path).substr(1), '/')) {
    const std::string name(part);
    so_far += "/" + name;
    auto is_new = sys::make_directory_at(at, name, 0755);
    if (!is_new && is_new.error().code() != Code::already_exists) return std::move(is_new).wrap("cgroup " + so_far).take_error();
    if (is_new) made.push_back(so_far);
    Fd next = TRY(sys::open_at(at, name, O_RDONLY | O_DIRECTORY).wrap("cgroup " + so_far));
    if (is_set) TRY(inherit_set(at, next).wrap("cgroup " + so_far));
    at = std::move(next);
  }
  return at;
}

Result<Fd> make_path(const V1Hierarchy& hierarchy, const std::string& path, std::vector<std::string>& made) {
  constexpr int kTries = 8;
  for (int i = 1;; ++i) {
    auto directory = try_to_make_path(hierarchy, path, made);
    if (directory || directory.error().code() != Code::not_found || i == kTries) return directory;
  }
}

Result<void> remove_directory(const std::string& path) {
  auto parent = sys::open_directory(parent_of(path));
  if (!parent && parent.error().code() == Code::not_found) return {};
  if (!parent) return parent.take_error();
  return cgroup::remove(*parent, name_of_last(path)).wrap("cgroup " + path);
}

// ---- limits ----

class V1Writer {
 public:
  V1Setting& add(const char* controller, const char* file, const std::string& value, const char* field) {
    out.push_back({.controller = controller,
                   .file = std::string(controller) + "." + file,
                   .value = value,
                   .field = std::string("linux.resources.") + field});
    return out.back();
  }
  template <typename T>
  void add_amount(const char* controller, const char* file, std::optional<T>& value, const char* field) {
    if (value && *value != 0) add(controller, file, std::to_string(*value), field);  // engines write 0 for "not set"
    value.reset();
  }
  std::vector<V1Setting> out;
};

void take_memory(oci::Resources& in, V1Writer& to) {
  // Without a memory limit, memory and swap together have none: the kernel requires memory <= memory + swap.
  if (in.memory_limit_bytes == -1 && in.memory_swap_bytes.value_or(0) == 0) in.memory_swap_bytes = -1;
  if (in.memory_swap_bytes.value_or(0) != 0) {
    const bool is_free = *in.memory_swap_bytes == -1 || in.memory_swap_bytes == in.memory_limit_bytes;
    to.add("memory", "memsw.limit_in_bytes", std::to_string(*in.memory_swap_bytes), "memory.swap").may_be_absent = is_free;
  }
  in.memory_swap_bytes.reset();
  to.add_amount("memory", "limit_in_bytes", in.memory_limit_bytes, "memory.limit");
  to.add_amount("memory", "soft_limit_in_bytes", in.memory_reservation_bytes, "memory.reservation");
  to.add_amount("memory", "kmem.limit_in_bytes", in.memory_kernel_bytes, "memory.kernel");
  to.add_amount("memory", "kmem.tcp.limit_in_bytes", in.memory_kernel_tcp_bytes, "memory.kernelTCP");
  // Engines write -1 as unsigned 64 bits if the user has set nothing.
  if (in.memory_swappiness && *in.memory_swappiness <= 100)
    to.add("memory", "swappiness", std::to_string(*in.memory_swappiness), "memory.swappiness");
  if (in.memory_disable_oom_killer.value_or(false)) to.add("memory", "oom_control", "1", "memory.disableOOMKiller");
  in.memory_swappiness.reset();
  in.memory_disable_oom_killer.reset();
  in.memory_use_hierarchy.reset();  // always enabled since Linux 5.11
}

void take_cpu(oci::Resources& in, V1Writer& to) {
  to.add_amount("cpu", "shares", in.cpu_shares, "cpu.shares");
  to.add_amount("cpu", "cfs_period_us", in.cpu_period_us, "cpu.period");
  to.add_amount("cpu", "cfs_quota_us", in.cpu_quota_us, "cpu.quota");
  to.add_amount("cpu", "cfs_burst_us", in.cpu_burst_us, "cpu.burst");
  to.add_amount("cpu", "rt_period_us", in.cpu_realtime_period_us, "cpu.realtimePeriod");
  to.add_amount("cpu", "rt_runtime_us", in.cpu_realtime_runtime_us, "cpu.realtimeRuntime");
  if (in.cpu_idle) to.add("cpu", "idle", std::to_string(*in.cpu_idle), "cpu.idle").may_be_absent = *in.cpu_idle == 0;
  in.cpu_idle.reset();
}

void take_set(oci::Resources& in, V1Writer& to) {
  if (!in.cpuset_cpus.empty()) to.add("cpuset", "cpus", in.cpuset_cpus, "cpu.cpus");
  if (!in.cpuset_mems.empty()) to.add("cpuset", "mems", in.cpuset_mems, "cpu.mems");
  in.cpuset_cpus.clear();
  in.cpuset_mems.clear();
}

void take_pids(oci::Resources& in, V1Writer& to) {
  if (!in.pids_limit) return;
  // Only the first process, which already exists, as with cgroup v2.
  const std::string most = *in.pids_limit < 0 ? "max" : std::to_string(std::max<int64_t>(*in.pids_limit, 1));
  to.add("pids", "max", most, "pids.limit");
  in.pids_limit.reset();
}

std::string v1_name(const std::string& controller) { return controller == "io" ? "blkio" : controller; }

std::string device_of(int64_t major, int64_t minor) { return std::to_string(major) + ":" + std::to_string(minor) + " "; }

void take_block_io(oci::Resources& in, V1Writer& to) {
  auto add_weight = [&](const char* bfq, const char* plain, const std::string& value, const char* field) {
    to.add("blkio", bfq, value, field).other_file = std::string("blkio.") + plain;
  };
  if (in.block_io.weight.value_or(0)) add_weight("bfq.weight", "weight", std::to_string(*in.block_io.weight), "blockIO.weight");
  for (const oci::BlockWeight& one : in.block_io.weight_devices)
    if (one.weight)
      add_weight("bfq.weight_device", "weight_device", device_of(one.major, one.minor) + std::to_string(*one.weight),
                 "blockIO.weightDevice");
  struct Throttle {
    const std::vector<oci::BlockThrottle>& list;
    const char *file, *field;
  };
  for (const Throttle& each : {Throttle{in.block_io.read_bps, "throttle.read_bps_device", "blockIO.throttleReadBpsDevice"},
                               Throttle{in.block_io.write_bps, "throttle.write_bps_device", "blockIO.throttleWriteBpsDevice"},
                               Throttle{in.block_io.read_iops, "throttle.read_iops_device", "blockIO.throttleReadIOPSDevice"},
                               Throttle{in.block_io.write_iops, "throttle.write_iops_device", "blockIO.throttleWriteIOPSDevice"}})
    for (const oci::BlockThrottle& one : each.list)
      to.add("blkio", each.file, device_of(one.major, one.minor) + std::to_string(one.rate), each.field);
  oci::BlockIo rest{.leaf_weight = in.block_io.leaf_weight};  // no supported kernel has it: settings() rejects it
  for (oci::BlockWeight one : in.block_io.weight_devices) {
    one.weight.reset();
    if (one.leaf_weight) rest.weight_devices.push_back(one);
  }
  in.block_io = std::move(rest);
}

void take_hugepages(oci::Resources& in, V1Writer& to) {
  for (const oci::HugepageLimit& one : in.hugepage_limits) {
    const std::string value = std::to_string(one.limit_bytes);
    to.add("hugetlb", (one.page_size + ".rsvd.limit_in_bytes").c_str(), value, "hugepageLimits").may_be_absent = true;
    to.add("hugetlb", (one.page_size + ".limit_in_bytes").c_str(), value, "hugepageLimits");
  }
  in.hugepage_limits.clear();
}

void take_class(oci::Resources& in, V1Writer& to) {
  if (in.network_class_id.value_or(0)) to.add("net_cls", "classid", std::to_string(*in.network_class_id), "network.classID");
  in.network_class_id.reset();
}

void take_priorities(oci::Resources& in, V1Writer& to) {
  for (const auto& [interface, priority] : in.network_priorities)
    to.add("net_prio", "ifpriomap", interface + " " + std::to_string(priority), "network.priorities");
  in.network_priorities.clear();
}

}  // namespace

// The type follows after the dash; the controllers are among the options after it.
std::vector<V1Hierarchy> v1_hierarchies_in(std::string_view mountinfo) {
  std::vector<V1Hierarchy> out;
  for (std::string_view line : split(mountinfo, '\n')) {
    const size_t dash = line.find(" - cgroup ");
    auto words = split(line, ' ');
    if (dash == line.npos || words.size() < 6) continue;
    V1Hierarchy found{std::string(words[4]), {}};
    for (std::string_view option : split(words.back(), ','))
      if (is_known(option)) found.controllers.emplace_back(option);
    const bool is_again =
        std::ranges::any_of(out, [&](const V1Hierarchy& each) { return each.controllers == found.controllers; });
    if (!found.controllers.empty() && !is_again) out.push_back(std::move(found));
  }
  return out;
}

V1Limits v1_limits(const oci::Resources& resources, const std::vector<std::string>& held) {
  struct Taker {
    const char* controller;  // its v2 name
    void (*take)(oci::Resources&, V1Writer&);
  };
  V1Limits out{{}, resources};
  V1Writer to;
  for (const Taker& each : {Taker{"memory", take_memory}, Taker{"cpu", take_cpu}, Taker{"cpuset", take_set},
                            Taker{"pids", take_pids}, Taker{"io", take_block_io}, Taker{"hugetlb", take_hugepages},
                            Taker{"net_cls", take_class}, Taker{"net_prio", take_priorities}})
    if (std::ranges::count(held, each.controller)) each.take(out.rest, to);
  out.settings = std::move(to.out);
  return out;
}

Result<std::vector<V1Hierarchy>> v1_hierarchies() {
  std::string text = TRY(sys::read_file("/proc/self/mountinfo"));
  return v1_hierarchies_in(text);
}

std::vector<std::string> held_and_mounted(const std::vector<std::string>& held, const std::vector<V1Hierarchy>& hierarchies) {
  std::vector<std::string> out;
  for (const std::string& controller : held)
    if (std::ranges::any_of(hierarchies,
                            [&](const V1Hierarchy& each) { return std::ranges::count(each.controllers, v1_name(controller)); }))
      out.push_back(controller);
  return out;
}

Result<V1Cgroup> V1Cgroup::make(const std::vector<V1Hierarchy>& hierarchies, const std::string& path) {
  V1Cgroup out;
  std::vector<std::string> made;
  Scope undo([&] {
    out.parts_.clear();
    for (auto each = made.rbegin(); each != made.rend(); ++each)
      (void)remove_directory(*each);  // another container may be in it by now
  });
  for (const V1Hierarchy& hierarchy : hierarchies) {
    Fd directory = TRY(make_path(hierarchy, path, made));
    out.parts_.push_back({hierarchy.controllers, std::move(directory)});
  }
  undo.dismiss();
  return out;
}

V1Cgroup V1Cgroup::find(const std::vector<V1Hierarchy>& hierarchies, const std::string& path) {
  V1Cgroup out;
  for (const V1Hierarchy& hierarchy : hierarchies)
    if (auto directory = sys::open_directory(hierarchy.mount_point + path))
      out.parts_.push_back({hierarchy.controllers, std::move(*directory)});
  return out;
}

const Fd* V1Cgroup::directory_of(const std::string& controller) const {
  for (const Part& part : parts_)
    if (std::ranges::count(part.controllers, controller)) return &part.directory;
  return nullptr;
}

std::map<std::string, const Fd*> V1Cgroup::directories() const {
  std::map<std::string, const Fd*> out;
  for (const Part& part : parts_)
    for (const std::string& controller : part.controllers) out[controller] = &part.directory;
  return out;
}

std::vector<std::string> V1Cgroup::held_of(const std::vector<std::string>& held) const {
  std::vector<std::string> out;
  for (const std::string& controller : held)
    if (directory_of(v1_name(controller))) out.push_back(controller);
  return out;
}

Result<std::vector<Fd>> V1Cgroup::open_tasks(const std::vector<V1Hierarchy>& hierarchies, const std::string& path,
                                             const SubCgroups& inside) {
  std::vector<Fd> out;
  auto unknown = inside.of;
  for (const V1Hierarchy& hierarchy : hierarchies) {
    const std::string own = hierarchy.mount_point + path;
    std::optional<std::string> wanted;
    for (const std::string& controller : hierarchy.controllers)
      if (auto one = unknown.extract(controller)) wanted = one.mapped();
    const std::string beneath = wanted.value_or(inside.everywhere);
    auto tasks = sys::open(own + "/" + beneath + (beneath.empty() ? "tasks" : "/tasks"), O_WRONLY);
    auto is_absent = [&] { return !tasks && tasks.error().code() == Code::not_found && !wanted; };
    if (is_absent() && !beneath.empty()) tasks = sys::open(own + "/tasks", O_WRONLY);
    if (is_absent()) continue;
    if (!tasks) return tasks.take_error().wrap("cgroup " + own + "/" + beneath);
    out.push_back(std::move(*tasks));
  }
  if (!unknown.empty()) return Error(Code::invalid, "unknown controller " + quoted(unknown.begin()->first));
  return out;
}

Result<void> V1Cgroup::put_in(int pid) const {
  for (const Part& part : parts_) TRY(cgroup::put_in(part.directory, pid).wrap(part.controllers[0]));
  return {};
}

Result<void> V1Cgroup::write(const std::vector<V1Setting>& settings) const {
  std::vector<const V1Setting*> again;
  auto write_one = [&](const V1Setting& setting, bool is_last_try) -> Result<void> {
    const Fd* directory = directory_of(setting.controller);
    auto written = directory ? sys::write_control(*directory, setting.file, setting.value)
                             : Result<void>(Error::from_errno(ENOENT, setting.file));
    if (!written && written.error().err() == ENOENT && !setting.other_file.empty() && directory)
      written = sys::write_control(*directory, setting.other_file, setting.value);
    if (written) return {};
    if (written.error().err() == ENOENT && setting.may_be_absent) return {};
    if (!directory) return Error(Code::unsupported, setting.field + ": the container has no cgroup v1 of " + setting.controller);
    if (written.error().err() == ENOENT) return Error(Code::unsupported, setting.field + ": this kernel has no " + setting.file);
    // The memory limit may not exceed memory + swap, and vice versa: the order of writes depends on the current values.
    if (written.error().err() == EINVAL && !is_last_try) {
      again.push_back(&setting);
      return {};
    }
    return std::move(written).wrap(setting.field);
  };
  for (const V1Setting& setting : settings) TRY(write_one(setting, false));
  for (auto setting = again.rbegin(); setting != again.rend(); ++setting) TRY(write_one(**setting, true));
  return {};
}

Result<void> V1Cgroup::remove(const std::vector<V1Hierarchy>& hierarchies, const std::string& path, const std::string& base) {
  Result<void> first;
  for (const V1Hierarchy& hierarchy : hierarchies) {
    auto removed = remove_directory(hierarchy.mount_point + path);
    if (!removed && first) first = std::move(removed);
    for (std::string above = parent_of(path); (above + "/").starts_with(base + "/"); above = parent_of(above)) {
      auto parent = sys::open_directory(hierarchy.mount_point + parent_of(above));
      if (!parent || !sys::remove_directory_at(*parent, name_of_last(above))) break;
    }
  }
  return first;
}

}  // namespace coracle::cgroup
