// SPDX-License-Identifier: Apache-2.0
// Structs → config.json. See parse.h. Unset values are not written, so that reading the result yields the same structs.
#include "runtime/oci/parse.h"

namespace coracle::oci {
namespace {

void put(json::object& out, std::string_view name, const std::string& text) {
  if (!text.empty()) out[name] = text;
}
void put(json::object& out, std::string_view name, bool value) {
  if (value) out[name] = true;
}
template <typename T>
void put(json::object& out, std::string_view name, const std::optional<T>& value) {
  if (value) out[name] = *value;
}
template <typename T>
void put(json::object& out, std::string_view name, const std::vector<T>& items) {
  if (!items.empty()) out[name] = json::array(items.begin(), items.end());
}
void put(json::object& out, std::string_view name, json::object object) {
  if (!object.empty()) out[name] = std::move(object);
}
void put(json::object& out, std::string_view name, const std::map<std::string, std::string>& map) {
  json::object object;
  for (const auto& [key, value] : map) object[key] = value;
  put(out, name, std::move(object));
}
// A list of structs; `write` converts each.
template <typename T>
void put(json::object& out, std::string_view name, const std::vector<T>& items, json::object (*write)(const T&)) {
  json::array list;
  for (const T& item : items) list.push_back(write(item));
  if (!list.empty()) out[name] = std::move(list);
}

json::object write_mapping(const IdMapping& in) {
  return {{"containerID", in.container_id}, {"hostID", in.host_id}, {"size", in.size}};
}

// ---- the process ----

json::object write_user(const User& in) {
  json::object out{{"uid", in.uid}, {"gid", in.gid}};
  put(out, "umask", in.umask);
  put(out, "additionalGids", in.additional_gids);
  return out;
}

json::object write_capabilities(const Capabilities& in) {
  json::object out;
  put(out, "bounding", in.bounding);
  put(out, "effective", in.effective);
  put(out, "inheritable", in.inheritable);
  put(out, "permitted", in.permitted);
  put(out, "ambient", in.ambient);
  return out;
}

json::object write_rlimit(const Rlimit& in) { return {{"type", in.type}, {"hard", in.hard}, {"soft", in.soft}}; }

json::object write_scheduler(const Scheduler& in) {
  json::object out{{"policy", in.policy}};
  put(out, "nice", in.nice);
  put(out, "priority", in.priority);
  put(out, "flags", in.flags);
  put(out, "runtime", in.runtime_ns);
  put(out, "deadline", in.deadline_ns);
  put(out, "period", in.period_ns);
  return out;
}

json::object write_affinity(const CpuAffinity& in) {
  json::object out;
  put(out, "initial", in.initial);
  put(out, "final", in.final_cpus);
  return out;
}

// ---- resources ----

json::object write_device_rule(const DeviceRule& in) {
  json::object out{{"allow", in.allow}};
  if (in.type != "a") out["type"] = in.type;
  put(out, "major", in.major);
  put(out, "minor", in.minor);
  out["access"] = in.access;
  return out;
}

json::object write_memory(const Resources& in) {
  json::object out;
  put(out, "limit", in.memory_limit_bytes);
  put(out, "reservation", in.memory_reservation_bytes);
  put(out, "swap", in.memory_swap_bytes);
  put(out, "kernel", in.memory_kernel_bytes);
  put(out, "kernelTCP", in.memory_kernel_tcp_bytes);
  put(out, "swappiness", in.memory_swappiness);
  put(out, "disableOOMKiller", in.memory_disable_oom_killer);
  put(out, "useHierarchy", in.memory_use_hierarchy);
  put(out, "checkBeforeUpdate", in.memory_check_before_update);
  return out;
}

json::object write_cpu(const Resources& in) {
  json::object out;
  put(out, "shares", in.cpu_shares);
  put(out, "quota", in.cpu_quota_us);
  put(out, "burst", in.cpu_burst_us);
  put(out, "period", in.cpu_period_us);
  put(out, "realtimeRuntime", in.cpu_realtime_runtime_us);
  put(out, "realtimePeriod", in.cpu_realtime_period_us);
  put(out, "idle", in.cpu_idle);
  put(out, "cpus", in.cpuset_cpus);
  put(out, "mems", in.cpuset_mems);
  return out;
}

json::object write_block_weight(const BlockWeight& in) {
  json::object out{{"major", in.major}, {"minor", in.minor}};
  put(out, "weight", in.weight);
  put(out, "leafWeight", in.leaf_weight);
  return out;
}

json::object write_throttle(const BlockThrottle& in) { return {{"major", in.major}, {"minor", in.minor}, {"rate", in.rate}}; }

json::object write_block_io(const BlockIo& in) {
  json::object out;
  put(out, "weight", in.weight);
  put(out, "leafWeight", in.leaf_weight);
  put(out, "weightDevice", in.weight_devices, write_block_weight);
  put(out, "throttleReadBpsDevice", in.read_bps, write_throttle);
  put(out, "throttleWriteBpsDevice", in.write_bps, write_throttle);
  put(out, "throttleReadIOPSDevice", in.read_iops, write_throttle);
  put(out, "throttleWriteIOPSDevice", in.write_iops, write_throttle);
  return out;
}

json::object write_hugepages(const HugepageLimit& in) { return {{"pageSize", in.page_size}, {"limit", in.limit_bytes}}; }

json::object write_rdma(const std::map<std::string, RdmaLimit>& in) {
  json::object out;
  for (const auto& [device, limit] : in) {
    json::object item;
    put(item, "hcaHandles", limit.hca_handles);
    put(item, "hcaObjects", limit.hca_objects);
    out[device] = std::move(item);
  }
  return out;
}

json::object write_network(const Resources& in) {
  json::object out;
  put(out, "classID", in.network_class_id);
  json::array priorities;
  for (const auto& [name, priority] : in.network_priorities)
    priorities.push_back(json::object{{"name", name}, {"priority", priority}});
  if (!priorities.empty()) out["priorities"] = std::move(priorities);
  return out;
}

json::object write_resources(const Resources& in) {
  json::object out;
  put(out, "devices", in.devices, write_device_rule);
  put(out, "memory", write_memory(in));
  put(out, "cpu", write_cpu(in));
  if (in.pids_limit) out["pids"] = json::object{{"limit", *in.pids_limit}};
  put(out, "blockIO", write_block_io(in.block_io));
  put(out, "hugepageLimits", in.hugepage_limits, write_hugepages);
  put(out, "rdma", write_rdma(in.rdma));
  put(out, "network", write_network(in));
  put(out, "unified", in.unified);
  return out;
}

// ---- linux ----

json::object write_namespace(const Namespace& in) {
  json::object out{{"type", in.type}};
  put(out, "path", in.path);
  return out;
}

json::object write_device(const Device& in) {
  json::object out{{"path", in.path}, {"type", in.type}, {"major", in.major}, {"minor", in.minor}};
  put(out, "fileMode", in.file_mode);
  put(out, "uid", in.uid);
  put(out, "gid", in.gid);
  return out;
}

json::object write_net_devices(const std::map<std::string, std::string>& in) {
  json::object out;
  for (const auto& [name, inside] : in) {
    json::object item;
    put(item, "name", inside);
    out[name] = std::move(item);
  }
  return out;
}

json::object write_time_offsets(const std::map<std::string, TimeOffset>& in) {
  json::object out;
  for (const auto& [clock, offset] : in) out[clock] = json::object{{"secs", offset.secs}, {"nanosecs", offset.nanosecs}};
  return out;
}

json::object write_intel_rdt(const IntelRdt& in) {
  json::object out;
  put(out, "closID", in.clos_id);
  put(out, "l3CacheSchema", in.l3_cache_schema);
  put(out, "memBwSchema", in.mem_bw_schema);
  put(out, "schemata", in.schemata);
  put(out, "enableCMT", in.enable_cmt);
  put(out, "enableMBM", in.enable_mbm);
  put(out, "enableMonitoring", in.enable_monitoring);
  return out;
}

void write_behaviour(const Linux& in, json::object& out) {
  if (in.personality) {
    json::object item{{"domain", in.personality->domain}};
    put(item, "flags", in.personality->flags);
    out["personality"] = std::move(item);
  }
  if (in.intel_rdt) out["intelRdt"] = write_intel_rdt(*in.intel_rdt);
  if (in.memory_policy) {
    json::object item{{"mode", in.memory_policy->mode}};
    put(item, "nodes", in.memory_policy->nodes);
    put(item, "flags", in.memory_policy->flags);
    out["memoryPolicy"] = std::move(item);
  }
}

json::object write_linux(const Linux& in) {
  json::object out;
  put(out, "namespaces", in.namespaces, write_namespace);
  put(out, "uidMappings", in.uid_mappings, write_mapping);
  put(out, "gidMappings", in.gid_mappings, write_mapping);
  put(out, "devices", in.devices, write_device);
  put(out, "cgroupsPath", in.cgroups_path);
  put(out, "resources", write_resources(in.resources));
  put(out, "rootfsPropagation", in.rootfs_propagation);
  if (in.seccomp) out["seccomp"] = *in.seccomp;
  put(out, "sysctl", in.sysctl);
  put(out, "maskedPaths", in.masked_paths);
  put(out, "readonlyPaths", in.readonly_paths);
  put(out, "mountLabel", in.mount_label);
  put(out, "netDevices", write_net_devices(in.net_devices));
  put(out, "timeOffsets", write_time_offsets(in.time_offsets));
  write_behaviour(in, out);
  return out;
}

// ---- the rest ----

json::object write_mount(const Mount& in) {
  json::object out{{"destination", in.destination}};
  put(out, "type", in.type);
  put(out, "source", in.source);
  put(out, "options", in.options);
  put(out, "uidMappings", in.uid_mappings, write_mapping);
  put(out, "gidMappings", in.gid_mappings, write_mapping);
  return out;
}

json::object write_hook(const Hook& in) {
  json::object out{{"path", in.path}};
  put(out, "args", in.args);
  if (in.env) out["env"] = json::array(in.env->begin(), in.env->end());
  put(out, "timeout", in.timeout_seconds);
  return out;
}

json::object write_hooks(const Hooks& in) {
  json::object out;
  for (const HookKind& kind : kHookKinds) put(out, kind.name, in.*kind.list, write_hook);
  return out;
}

}  // namespace

json::value to_json(const Process& in) {
  json::object out;
  put(out, "terminal", in.terminal);
  if (in.console_width || in.console_height)
    out["consoleSize"] = json::object{{"height", in.console_height}, {"width", in.console_width}};
  out["user"] = write_user(in.user);
  out["args"] = json::array(in.args.begin(), in.args.end());
  put(out, "env", in.env);
  out["cwd"] = in.cwd;
  if (in.capabilities) out["capabilities"] = write_capabilities(*in.capabilities);
  put(out, "rlimits", in.rlimits, write_rlimit);
  put(out, "noNewPrivileges", in.no_new_privileges);
  put(out, "apparmorProfile", in.apparmor_profile);
  put(out, "selinuxLabel", in.selinux_label);
  put(out, "oomScoreAdj", in.oom_score_adj);
  if (in.scheduler) out["scheduler"] = write_scheduler(*in.scheduler);
  if (in.io_priority)
    out["ioPriority"] = json::object{{"class", in.io_priority->io_class}, {"priority", in.io_priority->priority}};
  if (in.exec_cpu_affinity) out["execCPUAffinity"] = write_affinity(*in.exec_cpu_affinity);
  return out;
}

json::value to_json(const Resources& in) { return write_resources(in); }

json::value to_json(const Spec& in) {
  json::object out{{"ociVersion", in.version}};
  if (in.has_process) out["process"] = to_json(in.process);
  json::object root{{"path", in.root.path}};
  put(root, "readonly", in.root.readonly);
  out["root"] = std::move(root);
  put(out, "hostname", in.hostname);
  put(out, "domainname", in.domainname);
  put(out, "mounts", in.mounts, write_mount);
  put(out, "hooks", write_hooks(in.hooks));
  out["linux"] = write_linux(in.linux_);
  put(out, "annotations", in.annotations);
  return out;
}

}  // namespace coracle::oci
