// SPDX-License-Identifier: Apache-2.0
// config.json → structs. See parse.h; write.cc does the reverse.
#include "runtime/oci/parse.h"

#include "runtime/oci/field.h"
#include "runtime/oci/validate.h"

namespace coracle::oci {
namespace {

std::vector<IdMapping> read_mappings(const Field& in) {
  std::vector<IdMapping> out;
  in.each_object([&](const Field& item) {
    IdMapping& mapping = out.emplace_back();
    item.need("containerID").read(mapping.container_id);
    item.need("hostID").read(mapping.host_id);
    item.need("size").read(mapping.size);
  });
  return out;
}

// ---- the process ----

User read_user(const Field& in) {
  User out;
  in.at("uid").read(out.uid);
  in.at("gid").read(out.gid);
  in.at("umask").read(out.umask);
  in.at("additionalGids").read(out.additional_gids);
  return out;
}

Capabilities read_capabilities(const Field& in) {
  Capabilities out;
  in.at("bounding").read(out.bounding);
  in.at("effective").read(out.effective);
  in.at("inheritable").read(out.inheritable);
  in.at("permitted").read(out.permitted);
  in.at("ambient").read(out.ambient);
  return out;
}

Scheduler read_scheduler(const Field& in) {
  Scheduler out;
  in.need("policy").read(out.policy);
  in.at("nice").read(out.nice);
  in.at("priority").read(out.priority);
  in.at("flags").read(out.flags);
  in.at("runtime").read(out.runtime_ns);
  in.at("deadline").read(out.deadline_ns);
  in.at("period").read(out.period_ns);
  return out;
}

Process read_process(const Field& in) {
  Process out;
  in.must_be_object();
  in.at("terminal").read(out.terminal);
  in.object("consoleSize").at("width").read(out.console_width);
  in.object("consoleSize").at("height").read(out.console_height);
  out.user = read_user(in.object("user"));
  in.at("args").read(out.args);
  in.at("env").read(out.env);
  in.need("cwd").read(out.cwd);
  if (Field caps = in.object("capabilities"); caps.is_there()) out.capabilities = read_capabilities(caps);
  in.at("rlimits").each_object([&](const Field& item) {
    Rlimit& limit = out.rlimits.emplace_back();
    item.need("type").read(limit.type);
    item.need("soft").read(limit.soft);
    item.need("hard").read(limit.hard);
  });
  in.at("noNewPrivileges").read(out.no_new_privileges);
  in.at("apparmorProfile").read(out.apparmor_profile);
  in.at("selinuxLabel").read(out.selinux_label);
  in.at("oomScoreAdj").read(out.oom_score_adj);
  if (Field scheduler = in.object("scheduler"); scheduler.is_there()) out.scheduler = read_scheduler(scheduler);
  if (Field priority = in.object("ioPriority"); priority.is_there()) {
    out.io_priority.emplace();
    priority.need("class").read(out.io_priority->io_class);
    // The class without levels goes without one, as with other runtimes; the specification's schema asks for none.
    const bool has_levels = out.io_priority->io_class != "IOPRIO_CLASS_IDLE";
    Field level = has_levels ? priority.need("priority") : priority.at("priority");
    level.read(out.io_priority->priority);
  }
  if (Field affinity = in.object("execCPUAffinity"); affinity.is_there()) {
    out.exec_cpu_affinity.emplace();
    affinity.at("initial").read(out.exec_cpu_affinity->initial);
    affinity.at("final").read(out.exec_cpu_affinity->final_cpus);
  }
  return out;
}

// ---- resources ----

DeviceRule read_device_rule(const Field& in) {
  DeviceRule out;
  in.need("allow").read(out.allow);
  in.at("type").read(out.type);
  if (out.type.empty()) out.type = "a";
  in.at("major").read(out.major);
  in.at("minor").read(out.minor);
  in.at("access").read(out.access);
  if (out.access.empty()) out.access = "rwm";
  if (out.major && *out.major < 0) out.major.reset();  // others write -1 for "all"
  if (out.minor && *out.minor < 0) out.minor.reset();
  return out;
}

void read_memory(const Field& in, Resources& out) {
  in.at("limit").read(out.memory_limit_bytes);
  in.at("reservation").read(out.memory_reservation_bytes);
  in.at("swap").read(out.memory_swap_bytes);
  in.at("kernel").read(out.memory_kernel_bytes);
  in.at("kernelTCP").read(out.memory_kernel_tcp_bytes);
  in.at("swappiness").read(out.memory_swappiness);
  in.at("disableOOMKiller").read(out.memory_disable_oom_killer);
  in.at("useHierarchy").read(out.memory_use_hierarchy);
  in.at("checkBeforeUpdate").read(out.memory_check_before_update);
}

void read_cpu(const Field& in, Resources& out) {
  in.at("shares").read(out.cpu_shares);
  in.at("quota").read(out.cpu_quota_us);
  in.at("burst").read(out.cpu_burst_us);
  in.at("period").read(out.cpu_period_us);
  in.at("realtimeRuntime").read(out.cpu_realtime_runtime_us);
  in.at("realtimePeriod").read(out.cpu_realtime_period_us);
  in.at("idle").read(out.cpu_idle);
  in.at("cpus").read(out.cpuset_cpus);
  in.at("mems").read(out.cpuset_mems);
}

std::vector<BlockThrottle> read_throttles(const Field& in) {
  std::vector<BlockThrottle> out;
  in.each_object([&](const Field& item) {
    BlockThrottle& throttle = out.emplace_back();
    item.need("major").read(throttle.major);
    item.need("minor").read(throttle.minor);
    item.need("rate").read(throttle.rate);
  });
  return out;
}

BlockIo read_block_io(const Field& in) {
  BlockIo out;
  in.at("weight").read(out.weight);
  in.at("leafWeight").read(out.leaf_weight);
  in.at("weightDevice").each_object([&](const Field& item) {
    BlockWeight& device = out.weight_devices.emplace_back();
    item.need("major").read(device.major);
    item.need("minor").read(device.minor);
    item.at("weight").read(device.weight);
    item.at("leafWeight").read(device.leaf_weight);
  });
  out.read_bps = read_throttles(in.at("throttleReadBpsDevice"));
  out.write_bps = read_throttles(in.at("throttleWriteBpsDevice"));
  out.read_iops = read_throttles(in.at("throttleReadIOPSDevice"));
  out.write_iops = read_throttles(in.at("throttleWriteIOPSDevice"));
  return out;
}

void read_network(const Field& in, Resources& out) {
  in.at("classID").read(out.network_class_id);
  in.at("priorities").each_object([&](const Field& item) {
    std::string name;
    uint32_t priority = 0;
    item.need("name").read(name);
    item.need("priority").read(priority);
    if (!out.network_priorities.emplace(name, priority).second) item.complain(quoted(name) + " stands twice");
  });
}

Resources read_resources(const Field& in) {
  Resources out;
  in.must_be_object();
  in.at("devices").each_object([&](const Field& item) { out.devices.push_back(read_device_rule(item)); });
  read_memory(in.object("memory"), out);
  read_cpu(in.object("cpu"), out);
  in.object("pids").at("limit").read(out.pids_limit);
  out.block_io = read_block_io(in.object("blockIO"));
  in.at("hugepageLimits").each_object([&](const Field& item) {
    HugepageLimit& limit = out.hugepage_limits.emplace_back();
    item.need("pageSize").read(limit.page_size);
    item.need("limit").read(limit.limit_bytes);
  });
  in.at("rdma").each_entry([&](const std::string& device, const Field& item) {
    item.must_be_object();
    item.at("hcaHandles").read(out.rdma[device].hca_handles);
    item.at("hcaObjects").read(out.rdma[device].hca_objects);
  });
  read_network(in.object("network"), out);
  in.at("unified").read(out.unified);
  return out;
}

// ---- linux ----

Device read_device(const Field& in) {
  Device out;
  in.need("path").read(out.path);
  in.need("type").read(out.type);
  bool has_numbers = out.type != "p";
  (has_numbers ? in.need("major") : in.at("major")).read(out.major);
  (has_numbers ? in.need("minor") : in.at("minor")).read(out.minor);
  in.at("fileMode").read(out.file_mode);
  in.at("uid").read(out.uid);
  in.at("gid").read(out.gid);
  return out;
}

IntelRdt read_intel_rdt(const Field& in) {
  IntelRdt out;
  in.at("closID").read(out.clos_id);
  in.at("l3CacheSchema").read(out.l3_cache_schema);
  in.at("memBwSchema").read(out.mem_bw_schema);
  in.at("schemata").read(out.schemata);
  in.at("enableCMT").read(out.enable_cmt);
  in.at("enableMBM").read(out.enable_mbm);
  in.at("enableMonitoring").read(out.enable_monitoring);
  return out;
}

void read_clocks_and_devices(const Field& in, Linux& out) {
  in.at("netDevices").each_entry([&](const std::string& name, const Field& item) {
    item.must_be_object();
    item.at("name").read(out.net_devices[name]);
  });
  in.at("timeOffsets").each_entry([&](const std::string& clock, const Field& item) {
    item.must_be_object();
    item.at("secs").read(out.time_offsets[clock].secs);
    item.at("nanosecs").read(out.time_offsets[clock].nanosecs);
  });
}

void read_behaviour(const Field& in, Linux& out) {
  if (Field personality = in.object("personality"); personality.is_there()) {
    out.personality.emplace();
    personality.need("domain").read(out.personality->domain);
    personality.at("flags").read(out.personality->flags);
  }
  if (Field rdt = in.object("intelRdt"); rdt.is_there()) out.intel_rdt = read_intel_rdt(rdt);
  if (Field policy = in.object("memoryPolicy"); policy.is_there()) {
    out.memory_policy.emplace();
    policy.need("mode").read(out.memory_policy->mode);
    policy.at("nodes").read(out.memory_policy->nodes);
    policy.at("flags").read(out.memory_policy->flags);
  }
}

Linux read_linux(const Field& in) {
  Linux out;
  in.at("namespaces").each_object([&](const Field& item) {
    Namespace& ns = out.namespaces.emplace_back();
    item.need("type").read(ns.type);
    item.at("path").read(ns.path);
  });
  out.uid_mappings = read_mappings(in.at("uidMappings"));
  out.gid_mappings = read_mappings(in.at("gidMappings"));
  in.at("devices").each_object([&](const Field& item) { out.devices.push_back(read_device(item)); });
  in.at("cgroupsPath").read(out.cgroups_path);
  out.resources = read_resources(in.at("resources"));
  in.at("rootfsPropagation").read(out.rootfs_propagation);
  if (Field seccomp = in.object("seccomp"); seccomp.is_there()) out.seccomp = *seccomp.raw();
  in.at("sysctl").read(out.sysctl);
  in.at("maskedPaths").read(out.masked_paths);
  in.at("readonlyPaths").read(out.readonly_paths);
  in.at("mountLabel").read(out.mount_label);
  read_clocks_and_devices(in, out);
  read_behaviour(in, out);
  return out;
}

// ---- the rest ----

Mount read_mount(const Field& in) {
  Mount out;
  in.need("destination").read(out.destination);
  // A relative destination is relative to "/". Normalised, it can be compared.
  if (!out.destination.empty()) out.destination = plain_path(out.destination);
  in.at("type").read(out.type);
  in.at("source").read(out.source);
  in.at("options").read(out.options);
  out.uid_mappings = read_mappings(in.at("uidMappings"));
  out.gid_mappings = read_mappings(in.at("gidMappings"));
  return out;
}

std::vector<Hook> read_hooks(const Field& in) {
  std::vector<Hook> out;
  in.each_object([&](const Field& item) {
    Hook& hook = out.emplace_back();
    item.need("path").read(hook.path);
    item.at("args").read(hook.args);
    item.at("env").read(hook.env);
    item.at("timeout").read(hook.timeout_seconds);
  });
  return out;
}

Spec read_spec(const Field& in) {
  Spec out;
  in.must_be_object();
  in.need("ociVersion").read(out.version);
  out.has_process = in.has("process");
  if (out.has_process) out.process = read_process(in.at("process"));
  Field root = in.need("root");
  root.must_be_object();
  root.need("path").read(out.root.path);
  root.at("readonly").read(out.root.readonly);
  in.at("hostname").read(out.hostname);
  in.at("domainname").read(out.domainname);
  in.at("mounts").each_object([&](const Field& item) { out.mounts.push_back(read_mount(item)); });
  Field hooks = in.object("hooks");
  for (const HookKind& kind : kHookKinds) out.hooks.*kind.list = read_hooks(hooks.at(kind.name));
  out.linux_ = read_linux(in.object("linux"));
  in.at("annotations").read(out.annotations);
  return out;
}

// Reads a whole document. Errors: the first invalid field.
template <typename T>
Result<T> read_document(const json::value& document, const char* path, T (*read)(const Field&)) {
  std::optional<Error> error;
  T out = read(Field(&document, path, &error));
  if (error) return std::move(*error);
  return out;
}

}  // namespace

Result<Spec> parse_spec(const json::value& config) { return read_document(config, "", read_spec); }
Result<Process> parse_process(const json::value& process) { return read_document(process, "process", read_process); }
Result<Resources> parse_resources(const json::value& resources) { return read_document(resources, "resources", read_resources); }

}  // namespace coracle::oci
