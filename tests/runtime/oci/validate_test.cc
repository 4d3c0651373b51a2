// SPDX-License-Identifier: Apache-2.0
// Validation of config.json, check by check.
#include "runtime/oci/validate.h"

#include <gtest/gtest.h>

#include "runtime/oci/defaults.h"

namespace coracle::oci {
namespace {

void add_mount(Spec& spec, const char* destination, const char* type, const char* source = "") {
  Mount& mount = spec.mounts.emplace_back();
  mount.destination = destination;
  mount.type = type;
  mount.source = source;
}

TEST(OciValidate, accepts_the_defaults) {
  Spec spec = default_spec();
  spec.process.args = {"sh"};
  auto valid = validate(spec);
  EXPECT_TRUE(valid.ok()) << valid.error().text();
}

struct Row {
  const char* name;
  void (*spoil)(Spec&);
  const char* want;
};

void expect_refused(const Row& row, Result<void> (*check)(const Spec&) = validate) {
  Spec spec = default_spec();
  spec.process.args = {"sh"};
  spec.root.path = "rootfs";
  spec.linux_.namespaces = {{"mount", ""}};
  ASSERT_TRUE(check(spec).ok()) << check(spec).error().text();
  row.spoil(spec);
  auto valid = check(spec);
  ASSERT_FALSE(valid.ok()) << row.name;
  EXPECT_NE(valid.error().text().find(row.want), std::string::npos) << row.name << ": " << valid.error().text();
  EXPECT_EQ(valid.error().text().find('\n'), std::string::npos) << row.name << ": " << valid.error().text();
}

void expect_accepted(const char* name, void (*change)(Spec&), Result<void> (*check)(const Spec&) = validate) {
  Spec spec = default_spec();
  spec.process.args = {"sh"};
  spec.root.path = "rootfs";
  spec.linux_.namespaces = {{"mount", ""}};
  change(spec);
  auto valid = check(spec);
  EXPECT_TRUE(valid.ok()) << name << ": " << valid.error().text();
}

TEST(OciValidate, refuses_a_process_that_cannot_be) {
  const Row rows[] = {
      {"no arguments", [](Spec& s) { s.process.args.clear(); }, "process.args is empty"},
      {"env", [](Spec& s) { s.process.env = {"NOVALUE"}; }, "\"NOVALUE\" is not NAME=value"},
      {"env name", [](Spec& s) { s.process.env = {"=x"}; }, "is not NAME=value"},
      {"env line", [](Spec& s) { s.process.env = {"a\nb"}; }, "is not NAME=value"},
      {"cwd", [](Spec& s) { s.process.cwd = "tmp"; }, "process.cwd \"tmp\" is not absolute"},
      {"uid", [](Spec& s) { s.process.user.uid = 0x80000000; }, "process.user.uid"},
      {"gid", [](Spec& s) { s.process.user.gid = 0xffffffff; }, "process.user.gid"},
      {"group", [](Spec& s) { s.process.user.additional_gids = {0xffffffff}; }, "additionalGids"},
      {"umask", [](Spec& s) { s.process.user.umask = 01000; }, "process.user.umask"},
      {"capability", [](Spec& s) { s.process.capabilities->ambient = {"CAP_NONE"}; },
       "process.capabilities.ambient: unknown capability \"CAP_NONE\""},
      {"apparmor", [](Spec& s) { s.process.apparmor_profile = "a\nb"; }, "process.apparmorProfile \"a\\nb\""},
      {"selinux", [](Spec& s) { s.process.selinux_label = "a\x01"; }, "process.selinuxLabel"},
      {"mount label", [](Spec& s) { s.linux_.mount_label = "a\",dev"; }, "linux.mountLabel"},
      {"rlimit name",
       [](Spec& s) {
         s.process.rlimits = {{"RLIMIT_TEST", 1, 1}};
       },
       "process.rlimits[0].type: unknown \"RLIMIT_TEST\""},
      {"rlimit twice",
       [](Spec& s) {
         s.process.rlimits = {{"RLIMIT_CPU", 1, 1}, {"RLIMIT_CPU", 1, 1}};
       },
       "stands twice"},
      {"rlimit",
       [](Spec& s) {
         s.process.rlimits = {{"RLIMIT_CPU", 2, 1}};
       },
       "above the hard one"},
      {"oom", [](Spec& s) { s.process.oom_score_adj = 1001; }, "process.oomScoreAdj"},
      {"policy", [](Spec& s) { s.process.scheduler = Scheduler{.policy = "SCHED_FAST"}; },
       "process.scheduler.policy: unknown \"SCHED_FAST\""},
      {"no policy", [](Spec& s) { s.process.scheduler.emplace(); }, "process.scheduler.policy: unknown \"\""},
      {"iso", [](Spec& s) { s.process.scheduler = Scheduler{.policy = "SCHED_ISO"}; }, "never had SCHED_ISO"},
      {"nice", [](Spec& s) { s.process.scheduler = Scheduler{.policy = "SCHED_OTHER", .nice = 20}; },
       "process.scheduler.nice: 20"},
      {"no priority", [](Spec& s) { s.process.scheduler = Scheduler{.policy = "SCHED_FIFO"}; },
       "process.scheduler.priority: SCHED_FIFO needs one from 1 to 99, not 0"},
      {"priority", [](Spec& s) { s.process.scheduler = Scheduler{.policy = "SCHED_RR", .priority = 100}; }, "not 100"},
      {"no real time", [](Spec& s) { s.process.scheduler = Scheduler{.policy = "SCHED_BATCH", .priority = 1}; },
       "process.scheduler.priority: SCHED_BATCH has none"},
      {"flag", [](Spec& s) { s.process.scheduler = Scheduler{.policy = "SCHED_IDLE", .flags = {"FLAG"}}; },
       "process.scheduler.flags: unknown \"FLAG\""},
      {"no deadline", [](Spec& s) { s.process.scheduler = Scheduler{.policy = "SCHED_OTHER", .period_ns = 1}; },
       "SCHED_DEADLINE's, not SCHED_OTHER's"},
      {"runtime", [](Spec& s) { s.process.scheduler = Scheduler{.policy = "SCHED_DEADLINE", .runtime_ns = 1}; },
       "process.scheduler.runtime is below 1024 ns"},
      {"deadline",
       [](Spec& s) { s.process.scheduler = Scheduler{.policy = "SCHED_DEADLINE", .runtime_ns = 5000, .deadline_ns = 4000}; },
       "process.scheduler.deadline is below"},
      {"period",
       [](Spec& s) {
         s.process.scheduler = Scheduler{.policy = "SCHED_DEADLINE", .runtime_ns = 5000, .deadline_ns = 6000, .period_ns = 5500};
       },
       "process.scheduler.period is below"},
      {"io class",
       [](Spec& s) {
         s.process.io_priority = IoPriority{"IOPRIO_CLASS_NONE", 0};
       },
       "process.ioPriority.class: unknown \"IOPRIO_CLASS_NONE\""},
      {"io priority",
       [](Spec& s) {
         s.process.io_priority = IoPriority{"IOPRIO_CLASS_RT", 8};
       },
       "process.ioPriority.priority: 8"},
      {"io priority",
       [](Spec& s) {
         s.process.io_priority = IoPriority{"IOPRIO_CLASS_RT", -1};
       },
       "process.ioPriority.priority: -1"},
      {"affinity",
       [](Spec& s) {
         s.process.exec_cpu_affinity = CpuAffinity{"0-", ""};
       },
       "process.execCPUAffinity.initial: \"0-\""},
      {"affinity",
       [](Spec& s) {
         s.process.exec_cpu_affinity = CpuAffinity{"", "3-2"};
       },
       "process.execCPUAffinity.final: \"3-2\""},
  };
  for (const Row& row : rows) expect_refused(row);
}

TEST(OciValidate, refuses_mounts_that_lead_astray) {
  const Row rows[] = {
      {"relative", [](Spec& s) { add_mount(s, "data", "tmpfs"); }, "is not absolute"},
      {"root", [](Spec& s) { add_mount(s, "/", "tmpfs"); }, "the root's place"},
      {"root in other words", [](Spec& s) { add_mount(s, "/./", "tmpfs"); }, "the root's place"},
      {"climbing", [](Spec& s) { add_mount(s, "/a/../b", "tmpfs"); }, "holds \"..\""},
      {"false proc", [](Spec& s) { add_mount(s, "/proc", "tmpfs"); }, "only a procfs"},
      {"false proc that names the true one", [](Spec& s) { add_mount(s, "/proc", "tmpfs", "/proc"); }, "only a procfs"},
      {"bind that is called proc",
       [](Spec& s) {
         add_mount(s, "/proc", "proc", "/evil");
         s.mounts.back().options = {"rbind"};
       },
       "only a procfs"},
      {"bind of another directory", [](Spec& s) { add_mount(s, "/proc", "bind", "/proc/1/root/proc"); }, "only a procfs"},
      {"false proc in other words", [](Spec& s) { add_mount(s, "//proc", "tmpfs"); }, "write \"/proc\""},
      {"false proc in other words", [](Spec& s) { add_mount(s, "/./proc", "tmpfs"); }, "write \"/proc\""},
      {"false proc with a slash", [](Spec& s) { add_mount(s, "/proc/", "tmpfs"); }, "only a procfs"},
      {"sys in other words", [](Spec& s) { add_mount(s, "/sys//fs/cgroup", "tmpfs"); }, "write \"/sys/fs/cgroup\""},
      {"dev in other words", [](Spec& s) { add_mount(s, "/dev/./shm", "tmpfs"); }, "write \"/dev/shm\""},
      {"in proc", [](Spec& s) { add_mount(s, "/proc/self/attr", "bind", "/x"); }, "nothing may be mounted"},
      {"in proc", [](Spec& s) { add_mount(s, "/proc/sys/kernel/core_pattern", "bind", "/x"); }, "nothing may"},
      {"through a link of proc", [](Spec& s) { add_mount(s, "/proc/net/dev", "bind", "/x"); }, "nothing may"},
      {"half a mapping",
       [](Spec& s) {
         add_mount(s, "/a", "bind", "/x");
         s.mounts.back().uid_mappings = {{0, 1000, 1}};
       },
       "has only one of uidMappings and gidMappings"},
      {"empty mapping",
       [](Spec& s) {
         add_mount(s, "/a", "bind", "/x");
         s.mounts.back().uid_mappings = s.mounts.back().gid_mappings = {{0, 1000, 0}};
       },
       "mounts: uidMappings of /a: size is 0"},
      {"too many",
       [](Spec& s) {
         for (int i = 0; i < 1100; ++i) add_mount(s, "/a", "tmpfs");
       },
       "mounts: more than 1000"},
      {"masked", [](Spec& s) { s.linux_.masked_paths = {"proc/keys"}; }, "linux.maskedPaths: \"proc/keys\""},
      {"readonly", [](Spec& s) { s.linux_.readonly_paths = {"sys"}; }, "linux.readonlyPaths: \"sys\""},
      {"propagation", [](Spec& s) { s.linux_.rootfs_propagation = "wild"; }, "linux.rootfsPropagation"},
  };
  for (const Row& row : rows) expect_refused(row);
  expect_accepted("the host's proc", [](Spec& s) { add_mount(s, "/proc", "bind", "/proc"); });
  expect_accepted("the host's proc by its options", [](Spec& s) {
    add_mount(s, "/proc/", "none", "/proc/");
    s.mounts.back().options = {"rbind"};
  });
  expect_accepted("lxcfs", [](Spec& s) { add_mount(s, "/proc/meminfo", "bind", "/var/lib/lxcfs/proc/meminfo"); });
  expect_accepted("fips", [](Spec& s) { add_mount(s, "/proc/sys/crypto/fips_enabled", "bind", "/x"); });
  expect_accepted("volume", [](Spec& s) { add_mount(s, "/data//x/", "bind", "/x"); });
  expect_accepted("unbindable", [](Spec& s) { s.linux_.rootfs_propagation = "unbindable"; });
}

TEST(OciValidate, refuses_what_linux_has_not) {
  const Row rows[] = {
      {"version", [](Spec& s) { s.version = "2.0.0"; }, "ociVersion \"2.0.0\" is not 1.x"},
      {"version", [](Spec& s) { s.version = "1.0"; }, "ociVersion \"1.0\" is not a version"},
      {"version", [](Spec& s) { s.version = "invalid"; }, "ociVersion \"invalid\" is not a version"},
      {"hostname", [](Spec& s) { s.hostname = std::string(65, 'a'); }, "is too long"},
      {"domainname", [](Spec& s) { s.domainname = "a\nb"; }, "domainname \"a\\nb\""},
      {"hook path",
       [](Spec& s) {
         s.hooks.poststop = {{"true", {}, {}, {}}};
       },
       "hooks.poststop[0].path \"true\" is not absolute"},
      {"hook timeout",
       [](Spec& s) {
         s.hooks.create_runtime = {{"/bin/true", {}, {}, 0}};
       },
       "hooks.createRuntime[0].timeout: 0 is not above 0"},
      {"hook env",
       [](Spec& s) {
         s.hooks.prestart = {{"/bin/true", {}, std::vector<std::string>{"x"}, {}}};
       },
       "hooks.prestart[0].env"},
      {"annotation",
       [](Spec& s) {
         s.annotations = {{"", "x"}};
       },
       "annotations: a key is empty"},
      {"unknown namespace",
       [](Spec& s) {
         s.linux_.namespaces = {{"moon", ""}};
       },
       "unknown type \"moon\""},
      {"namespace twice",
       [](Spec& s) {
         s.linux_.namespaces = {{"pid", ""}, {"pid", "/x"}};
       },
       "pid stands twice"},
      {"namespace path",
       [](Spec& s) {
         s.linux_.namespaces = {{"pid", "x"}};
       },
       "path \"x\" of pid"},
      {"mapping",
       [](Spec& s) {
         s.linux_.uid_mappings = {{0, 0xffffffff, 1}};
       },
       "linux.uidMappings: hostID 4294967295"},
      {"mapping",
       [](Spec& s) {
         s.linux_.gid_mappings = {{4294967000, 0, 1000}};
       },
       "linux.gidMappings: containerID 4294967000 and size overflow"},
      {"mapping",
       [](Spec& s) {
         s.linux_.gid_mappings = {{0, 1000, 10}, {9, 2000, 1}};
       },
       "two entries map containerID 9"},
      {"mapping",
       [](Spec& s) {
         s.linux_.gid_mappings = {{0, 1000, 10}, {10, 1005, 1}};
       },
       "two entries map hostID 1005"},
      {"mapping",
       [](Spec& s) {
         s.linux_.uid_mappings = {{0, 0, 0}};
       },
       "linux.uidMappings: size is 0"},
      {"mappings", [](Spec& s) { s.linux_.uid_mappings.resize(341); }, "linux.uidMappings: more than 340"},
      {"clock", [](Spec& s) { s.linux_.time_offsets["realtime"]; }, "linux.timeOffsets: unknown clock \"realtime\""},
      {"second",
       [](Spec& s) {
         s.linux_.time_offsets["boottime"] = {0, 1000000000};
       },
       "linux.timeOffsets.boottime.nanosecs"},
      {"device",
       [](Spec& s) {
         s.linux_.devices = {{"null", "c", 1, 3, {}, {}, {}}};
       },
       "linux.devices[0].path \"null\" is not absolute"},
      {"climbing device",
       [](Spec& s) {
         s.linux_.devices = {{"/dev/../x", "c", 1, 3, {}, {}, {}}};
       },
       "holds \"..\""},
      {"device type",
       [](Spec& s) {
         s.linux_.devices = {{"/dev/x", "z", 1, 3, {}, {}, {}}};
       },
       "type \"z\""},
      {"device numbers",
       [](Spec& s) {
         s.linux_.devices = {{"/dev/x", "c", 4096, 3, {}, {}, {}}};
       },
       "out of range"},
      {"device mode",
       [](Spec& s) {
         s.linux_.devices = {{"/dev/x", "p", 0, 0, 0200000, {}, {}}};
       },
       "fileMode"},
      {"device owner",
       [](Spec& s) {
         s.linux_.devices = {{"/dev/x", "p", 0, 0, {}, 0x80000000, {}}};
       },
       "uid of \"/dev/x\""},
      {"two devices",
       [](Spec& s) {
         s.linux_.devices = {{"/dev/x", "c", 1, 3, {}, {}, {}}, {"/dev//x", "c", 1, 5, {}, {}, {}}};
       },
       "linux.devices[1]: \"/dev//x\" is another device already"},
      {"interface", [](Spec& s) { s.linux_.net_devices["a/b"]; }, "linux.netDevices: \"a/b\""},
      {"interface", [](Spec& s) { s.linux_.net_devices["eth0"] = "sixteen_letters_"; }, "linux.netDevices.eth0.name"},
      {"interface",
       [](Spec& s) {
         s.linux_.net_devices = {{"eth0", "a"}, {"eth1", "a"}};
       },
       "two become \"a\""},
      {"template", [](Spec& s) { s.linux_.net_devices["eth0"] = "net%d%d"; }, "\"net%d%d\" has a % that is not the only %d"},
      {"template", [](Spec& s) { s.linux_.net_devices["eth0"] = "net%s"; }, "\"net%s\" has a % that is not the only %d"},
      {"template", [](Spec& s) { s.linux_.net_devices["eth%"]; }, "\"eth%\" has a % that is not the only %d"},
      {"personality",
       [](Spec& s) {
         s.linux_.personality = Personality{"BSD", {}};
       },
       "linux.personality.domain"},
      {"personality",
       [](Spec& s) {
         s.linux_.personality = Personality{"LINUX", {"X"}};
       },
       "linux.personality.flags"},
      {"memory policy",
       [](Spec& s) {
         s.linux_.memory_policy = MemoryPolicy{"BIND", "0", {}};
       },
       "linux.memoryPolicy.mode"},
      {"memory policy",
       [](Spec& s) {
         s.linux_.memory_policy = MemoryPolicy{"MPOL_BIND", "", {}};
       },
       "needs one at least"},
      {"memory policy",
       [](Spec& s) {
         s.linux_.memory_policy = MemoryPolicy{"MPOL_LOCAL", "0", {}};
       },
       "takes none"},
      {"memory policy",
       [](Spec& s) {
         s.linux_.memory_policy = MemoryPolicy{"MPOL_BIND", "x", {}};
       },
       "linux.memoryPolicy.nodes"},
      {"memory policy",
       [](Spec& s) {
         s.linux_.memory_policy = MemoryPolicy{"MPOL_BIND", "0", {"X"}};
       },
       "flags: unknown"},
      {"memory policy",
       [](Spec& s) {
         s.linux_.memory_policy = MemoryPolicy{"MPOL_BIND", "0", {"MPOL_F_STATIC_NODES", "MPOL_F_RELATIVE_NODES"}};
       },
       "both relative and static"},
      {"rdt", [](Spec& s) { s.linux_.intel_rdt.emplace(); }, "linux.intelRdt"},
  };
  for (const Row& row : rows) expect_refused(row);
}

TEST(OciValidate, refuses_resources_that_contradict_themselves) {
  const Row rows[] = {
      {"cgroup", [](Spec& s) { s.linux_.cgroups_path = "/a/../../b"; }, "linux.cgroupsPath \"/a/../../b\" holds \"..\""},
      {"cgroup", [](Spec& s) { s.linux_.cgroups_path = "a\nb"; }, "linux.cgroupsPath"},
      {"rule",
       [](Spec& s) {
         s.linux_.resources.devices = {{true, "c", 1, 3, "rx"}};
       },
       "access \"rx\""},
      {"rule",
       [](Spec& s) {
         s.linux_.resources.devices = {{true, "p", 1, 3, "r"}};
       },
       "devices[0]: type \"p\""},
      // Truncated to 32 bits, it would be another device.
      {"rule",
       [](Spec& s) {
         s.linux_.resources.devices = {{true, "c", (1ll << 32) + 1, 3, "r"}};
       },
       "out of range"},
      {"memory", [](Spec& s) { s.linux_.resources.memory_limit_bytes = -2; }, "linux.resources.memory.limit: -2"},
      {"swap",
       [](Spec& s) {
         s.linux_.resources.memory_limit_bytes = 2000;
         s.linux_.resources.memory_swap_bytes = 1000;
       },
       "it is below linux.resources.memory.limit"},
      {"swap", [](Spec& s) { s.linux_.resources.memory_swap_bytes = 1000; }, "it needs linux.resources.memory.limit"},
      {"swappiness", [](Spec& s) { s.linux_.resources.memory_swappiness = 101; }, "memory.swappiness: 101"},
      {"quota", [](Spec& s) { s.linux_.resources.cpu_quota_us = 999; }, "linux.resources.cpu.quota: 999"},
      {"period", [](Spec& s) { s.linux_.resources.cpu_period_us = 1000001; }, "linux.resources.cpu.period: 1000001"},
      {"burst",
       [](Spec& s) {
         s.linux_.resources.cpu_quota_us = 1000;
         s.linux_.resources.cpu_burst_us = 1001;
       },
       "linux.resources.cpu.burst is above"},
      {"idle", [](Spec& s) { s.linux_.resources.cpu_idle = 2; }, "linux.resources.cpu.idle: 2"},
      {"cpus", [](Spec& s) { s.linux_.resources.cpuset_cpus = "0\n1"; }, "linux.resources.cpu.cpus"},
      {"mems", [](Spec& s) { s.linux_.resources.cpuset_mems = "0,,1"; }, "linux.resources.cpu.mems"},
      {"pids", [](Spec& s) { s.linux_.resources.pids_limit = -2; }, "linux.resources.pids.limit: -2"},
      {"weight", [](Spec& s) { s.linux_.resources.block_io.weight = 9; }, "linux.resources.blockIO.weight: 9"},
      {"weights",
       [](Spec& s) {
         s.linux_.resources.block_io.weight_devices = {{8, 0, {}, {}}};
       },
       "blockIO.weightDevice[0]: neither"},
      {"weights",
       [](Spec& s) {
         s.linux_.resources.block_io.weight_devices = {{8, 0, 1001, {}}};
       },
       "blockIO.weightDevice[0].weight: 1001"},
      {"throttle",
       [](Spec& s) {
         s.linux_.resources.block_io.read_iops = {{-1, 0, 1}};
       },
       "blockIO.throttleReadIOPSDevice: device -1:0"},
      {"hugepages",
       [](Spec& s) {
         s.linux_.resources.hugepage_limits = {{"64kB", 1}};
       },
       "page size \"64kB\""},
      {"hugepages",
       [](Spec& s) {
         s.linux_.resources.hugepage_limits = {{"2MB", 1}, {"2MB", 2}};
       },
       "2MB stands twice"},
      {"hugepages",
       [](Spec& s) {
         s.linux_.resources.hugepage_limits = {{"../2MB", 1}};
       },
       "page size"},
      {"rdma", [](Spec& s) { s.linux_.resources.rdma["mlx5_1"]; }, "neither hcaHandles nor hcaObjects"},
      {"rdma",
       [](Spec& s) {
         s.linux_.resources.rdma["a b"] = {1, 1};
       },
       "\"a b\" is no device's name"},
      {"network", [](Spec& s) { s.linux_.resources.network_priorities["a\nb"] = 1; }, "\"a\\nb\" is no interface's name"},
      {"unified",
       [](Spec& s) {
         s.linux_.resources.unified = {{"../memory.max", "1"}};
       },
       "is no controller's file"},
      {"unified core",
       [](Spec& s) {
         s.linux_.resources.unified = {{"cgroup.procs", "1"}};
       },
       "is no controller's file"},
      {"unified name",
       [](Spec& s) {
         s.linux_.resources.unified = {{"", "1"}};
       },
       "is no controller's file"},
  };
  for (const Row& row : rows) expect_refused(row);
  expect_accepted("the specification's example", [](Spec& s) {
    s.linux_.resources.unified = {{"hugetlb.1GB.max", "1073741824"}, {"io.max", "259:0 rbps=1\n253:0 rbps=2"}};
  });
  expect_accepted("bounds", [](Spec& s) { s.linux_.resources.unified = {{"cgroup.max.descendants", "10"}}; });
  expect_accepted("unlimited", [](Spec& s) {
    s.linux_.resources.memory_limit_bytes = s.linux_.resources.memory_swap_bytes = -1;
    s.linux_.resources.cpu_quota_us = s.linux_.resources.pids_limit = -1;
  });
  expect_accepted("swap alone", [](Spec& s) {
    s.linux_.resources.memory_limit_bytes = -1;
    s.linux_.resources.memory_swap_bytes = 1000;
  });
  expect_accepted("no swappiness", [](Spec& s) { s.linux_.resources.memory_swappiness = ~uint64_t(0); });
  expect_accepted("a list", [](Spec& s) { s.linux_.resources.cpuset_cpus = "0-3, 7"; });
}

TEST(OciValidate, refuses_what_would_change_the_host) {
  const Row rows[] = {
      {"root", [](Spec& s) { s.root.path.clear(); }, "root.path is empty"},
      {"hostname", [](Spec& s) { s.hostname = "a"; }, "hostname needs a uts namespace"},
      {"domainname", [](Spec& s) { s.domainname = "a"; }, "domainname needs a uts namespace"},
      {"interfaces", [](Spec& s) { s.linux_.net_devices["eth0"]; }, "linux.netDevices needs a network namespace"},
      {"clocks", [](Spec& s) { s.linux_.time_offsets["boottime"]; }, "linux.timeOffsets needs a time namespace"},
      {"their clocks",
       [](Spec& s) {
         s.linux_.time_offsets["boottime"];
         s.linux_.namespaces.push_back({"time", "/proc/1/ns/time"});
       },
       "linux.timeOffsets: \"/proc/1/ns/time\" has its offsets already"},
      {"masked paths", [](Spec& s) { s.linux_.namespaces.clear(); }, "linux.maskedPaths needs a mount namespace"},
      {"mapping",
       [](Spec& s) {
         s.linux_.uid_mappings = {{0, 1, 1}};
       },
       "linux.uidMappings without a user namespace"},
      {"mapping",
       [](Spec& s) {
         s.linux_.gid_mappings = {{0, 1, 1}};
       },
       "linux.gidMappings without a user namespace"},
      {"no mapping",
       [](Spec& s) {
         s.linux_.namespaces.push_back({"user", ""});
       },
       "linux.uidMappings: a new user namespace"},
      {"half a mapping",
       [](Spec& s) {
         s.linux_.namespaces.push_back({"user", ""});
         s.linux_.uid_mappings = {{0, 1, 1}};
       },
       "linux.gidMappings: a new user namespace"},
      {"idmap",
       [](Spec& s) {
         add_mount(s, "/a", "bind", "/x");
         s.mounts.back().options = {"idmap"};
       },
       "mounts: \"/a\": idmap needs uidMappings"},
      {"sysctl", [](Spec& s) { s.linux_.sysctl["net.core.somaxconn"] = "1"; }, "\"net.core.somaxconn\" would change the host"},
      {"two names",
       [](Spec& s) {
         s.linux_.namespaces.push_back({"uts", ""});
         s.hostname = "a";
         s.linux_.sysctl["kernel/hostname"] = "b";
       },
       "linux.sysctl: \"kernel/hostname\": the configuration has a hostname already"},
  };
  for (const Row& row : rows) {
    expect_refused(row, validate_alone);
    Spec spec = default_spec();  // in a sandbox, another container may set it
    spec.process.args = {"sh"};
    row.spoil(spec);
    auto valid = validate(spec);
    EXPECT_TRUE(valid.ok()) << row.name << ": " << valid.error().text();
  }
  expect_accepted(
      "one name twice",
      [](Spec& s) {
        s.linux_.namespaces = {{"mount", ""}, {"uts", ""}};
        s.hostname = s.linux_.sysctl["kernel.hostname"] = "a";
        s.domainname = s.linux_.sysctl["kernel.domainname"] = "b";
      },
      validate_alone);
  expect_accepted(
      "all its own",
      [](Spec& s) {
        s.linux_.namespaces = {{"mount", ""}, {"uts", ""}, {"network", ""}, {"time", ""}, {"user", ""}, {"ipc", ""}};
        s.linux_.uid_mappings = s.linux_.gid_mappings = {{0, 100000, 65536}};
        s.linux_.time_offsets["boottime"] = {-5, 0};
        s.linux_.net_devices = {{"eth0", "a%d"}, {"eth1", "a%d"}};
        s.linux_.sysctl = {{"net.core.somaxconn", "1"}, {"user.max_user_namespaces", "0"}, {"kernel.shmmax", "1"}};
        s.hostname = s.domainname = "a";
      },
      validate_alone);
  expect_accepted(
      "a namespace that is joined",
      [](Spec& s) {
        s.linux_.namespaces = {{"mount", ""}, {"user", "/proc/1/ns/user"}};
        s.linux_.uid_mappings = s.linux_.gid_mappings = {{0, 100000, 65536}};
      },
      validate_alone);
}

TEST(OciValidate, complains_in_one_line_whatever_a_path_holds) {
  using Change = void (*)(Spec&);
  for (Change change : std::initializer_list<Change>{
           [](Spec& s) { add_mount(s, "/proc/a\nb", "tmpfs"); }, [](Spec& s) { add_mount(s, "/dev//a\nb", "tmpfs"); },
           [](Spec& s) {
             add_mount(s, "/a\nb", "bind", "/x"), s.mounts.back().uid_mappings = {{0, 1000, 1}};
           },
           [](Spec& s) {
             s.linux_.devices = {{"/dev/a\nb", "x", 0, 0, {}, {}, {}}};
           },
           [](Spec& s) {
             s.linux_.devices = {{"/dev/a\nb", "p", 0, 0, 0200000, {}, {}}};
           },
           [](Spec& s) {
             s.linux_.devices = {{"/dev/a\nb", "p", 0, 0, {}, 0x80000000, {}}};
           },
           [](Spec& s) {
             s.linux_.devices = {{"/dev/a\nb", "c", 1, 3, {}, {}, {}}, {"/dev//a\nb", "c", 1, 5, {}, {}, {}}};
           }}) {
    Spec spec = default_spec();
    spec.process.args = {"a"};
    change(spec);
    auto refused = validate(spec);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().text().find('\n'), std::string::npos) << refused.error().text();
    EXPECT_NE(refused.error().text().find("a\\nb"), std::string::npos) << refused.error().text();
  }
}

TEST(OciValidate, accepts_what_the_kernel_can_do) {
  expect_accepted("real time", [](Spec& s) {
    s.process.scheduler = Scheduler{.policy = "SCHED_FIFO", .priority = 99, .flags = {"SCHED_FLAG_RESET_ON_FORK"}};
    s.process.io_priority = IoPriority{"IOPRIO_CLASS_IDLE", 7};
    s.process.exec_cpu_affinity = CpuAffinity{"0", "0-1,3"};
  });
  expect_accepted("deadline", [](Spec& s) {
    s.process.scheduler = Scheduler{.policy = "SCHED_DEADLINE", .runtime_ns = 1024, .deadline_ns = 2048};
  });
  expect_accepted("devices", [](Spec& s) {
    s.linux_.devices = {
        {"/dev/a", "u", 1, 3, 0100666 | 020000, 1, 2}, {"/dev/a", "c", 1, 3, {}, {}, {}}, {"/dev/p", "p", 0, 0, 0600, {}, {}}};
  });
  expect_accepted("the rest", [](Spec& s) {
    s.version = "1.0.2-dev";
    s.linux_.personality = Personality{"LINUX32", {}};
    s.linux_.memory_policy = MemoryPolicy{"MPOL_PREFERRED", "", {"MPOL_F_STATIC_NODES"}};
    s.hooks.start_container = {{"/bin/true", {"true"}, std::vector<std::string>{"A=b"}, 1}};
    s.linux_.namespaces = {{"mount", ""}, {"user", ""}, {"time", ""}};
    s.linux_.uid_mappings = {{0, 0, 0xffffffff}};
  });
}

TEST(OciValidate, writes_a_path_in_one_way) {
  for (auto [given, want] : {std::pair("/a/b", "/a/b"), std::pair("a//b/./c/", "/a/b/c"), std::pair("", "/"), std::pair("/", "/"),
                             std::pair("./", "/"), std::pair("/a/../b", "/a/../b")})
    EXPECT_EQ(plain_path(given), want);
}

TEST(OciValidate, allows_sysctls_of_own_namespaces_only) {
  struct Row {
    const char* name;
    bool net, ipc, uts, want;
  };
  for (const Row& row : {Row{"net.core.somaxconn", true, true, true, true}, Row{"net.core.somaxconn", false, true, true, false},
                         Row{"kernel.shmmax", true, true, true, true}, Row{"kernel.shmmax", true, false, true, false},
                         Row{"fs.mqueue.msg_max", true, true, true, true}, Row{"kernel.domainname", true, true, false, false},
                         Row{"kernel.core_pattern", true, true, true, false},
                         Row{"vm.overcommit_memory", true, true, true, false}, Row{"net..ipv4", true, true, true, false},
                         Row{"net.ipv4.x y", true, true, true, false}, Row{"net/ipv4/ip_forward", true, true, true, true}}) {
    EXPECT_EQ(check_sysctls({{row.name, "1"}}, row.net, row.ipc, row.uts).ok(), row.want) << row.name;
  }
  EXPECT_FALSE(check_sysctls({{"net.core.somaxconn", "1\n2"}}, true, true, true).ok());
  EXPECT_EQ(sysctl_path("net.ipv4.ip_forward"), "net/ipv4/ip_forward");
  EXPECT_EQ(sysctl_path("net/ipv4/conf/eth0.1/x"), "net/ipv4/conf/eth0.1/x");
  EXPECT_EQ(sysctl_path("net.ipv4.conf.eth0/1.x"), "net/ipv4/conf/eth0.1/x");
  for (const char* bad : {"", ".", "/", "/net/core", "net/../kernel/core_pattern", "net...kernel.x", "net./../kernel/x", "net/",
                          "net.core.", "../net", "kernel/core_pattern", "user.max_user_namespaces"})
    EXPECT_FALSE(check_sysctls({{bad, "1"}}, true, true, true).ok()) << bad;
  EXPECT_TRUE(
      check_sysctls({{"net/ipv4/conf/eth0.1/forwarding", "1"}, {"net.ipv4.conf.eth0/1.forwarding", "1"}}, true, false, false)
          .ok());
}

}  // namespace
}  // namespace coracle::oci
