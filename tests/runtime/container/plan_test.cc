// SPDX-License-Identifier: Apache-2.0
// Planning, by value: mounts, devices, programs, limits, filters.
#include "runtime/container/plan.h"

#include <gtest/gtest.h>
#include <linux/mount.h>
#include <sched.h>

#include <algorithm>

#include "runtime/container/explain.h"
#include "runtime/oci/defaults.h"

namespace coracle::runtime {
namespace {

oci::Mount mount(const char* type, std::vector<std::string> options, const char* source = "/src",
                 const char* destination = "/d") {
  oci::Mount out;
  out.type = type;
  out.source = source;
  out.destination = destination;
  out.options = std::move(options);
  return out;
}

TEST(Plan, sorts_mount_options) {
  MountOptions bind = *parse_mount_options(mount("bind", {"rbind", "ro", "nosuid", "rslave", "noatime"}));
  EXPECT_TRUE(bind.is_bind && bind.is_recursive);
  EXPECT_EQ(bind.set, uint64_t(MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOATIME));
  EXPECT_EQ(bind.clear, uint64_t(MOUNT_ATTR__ATIME));
  EXPECT_EQ(bind.propagation, uint64_t((1 << 19) | 16384));
  MountOptions deep = *parse_mount_options(mount("bind", {"rbind", "rro"}));
  EXPECT_EQ(deep.set, 0u);
  EXPECT_EQ(deep.set_recursive, uint64_t(MOUNT_ATTR_RDONLY));
  MountOptions last = *parse_mount_options(mount("bind", {"ro", "rw"}));
  EXPECT_EQ(last.set, 0u);
  EXPECT_EQ(last.clear, uint64_t(MOUNT_ATTR_RDONLY));
  MountOptions tmpfs = *parse_mount_options(mount("tmpfs", {"size=1m", "mode=755", "nodev", "huge=never", "sync"}));
  EXPECT_FALSE(tmpfs.is_bind);
  ASSERT_EQ(tmpfs.data.size(), 4u);
  EXPECT_EQ(tmpfs.data[0].key + "=" + tmpfs.data[0].value, "size=1m");
  EXPECT_FALSE(tmpfs.data[3].has_value);
  EXPECT_FALSE(parse_mount_options(mount("bind", {"bind", "wobble"})).ok());
  MountOptions back = *parse_mount_options(mount("bind", {"rbind", "rro", "rrw", "noatime", "relatime"}));
  EXPECT_EQ(back.set_recursive, 0u);
  EXPECT_EQ(back.clear_recursive, uint64_t(MOUNT_ATTR_RDONLY));
  EXPECT_EQ(back.set, 0u);
  EXPECT_EQ(back.clear, uint64_t(MOUNT_ATTR__ATIME));
  EXPECT_EQ(parse_mount_options(mount("tmpfs", {"sync", "async", "loud", "noiversion", "defaults"}))->data.size(), 2u);
  EXPECT_TRUE(parse_mount_options(mount("none", {"sync", "bind", "async"}))->data.empty());
  EXPECT_TRUE(parse_mount_options(mount("tmpfs", {"tmpcopyup"}))->copies_up);
  EXPECT_FALSE(parse_mount_options(mount("bind", {"tmpcopyup"})).ok());
  EXPECT_TRUE(parse_mount_options(mount("bind", {"ridmap"}))->is_recursively_idmapped);
  EXPECT_TRUE(parse_mount_options(mount("bind", {"copy-symlink"}))->copies_link);
  EXPECT_TRUE(parse_mount_options(mount("none", {"src-nofollow", "bind"}))->takes_link);
  EXPECT_FALSE(parse_mount_options(mount("bind", {"copy-symlink", "dest-nofollow"})).ok());
  EXPECT_FALSE(parse_mount_options(mount("tmpfs", {"dest-nofollow"})).ok());
}

TEST(Plan, mappings_of_a_mount_s_own_are_for_binds_and_need_no_option) {
  oci::Spec spec;
  oci::Mount own{.destination = "/a", .type = "bind", .source = "/b", .options = {"rbind"}};
  own.uid_mappings = {{0, 100, 1}};
  own.gid_mappings = {{0, 200, 1}};
  spec.mounts.push_back(own);
  auto mounts = *plan_mounts(spec, {}, {});
  ASSERT_EQ(mounts.size(), 1u);
  EXPECT_TRUE(mounts[0].options.is_idmapped);
  EXPECT_FALSE(mounts[0].options.is_recursively_idmapped);
  EXPECT_EQ(mounts[0].uid_mappings, spec.mounts[0].uid_mappings);
  spec.mounts[0].type = "tmpfs";
  spec.mounts[0].options = {};
  EXPECT_EQ(plan_mounts(spec, {}, {}).error().text(), "mounts: uidMappings and gidMappings of /a are for binds");
}

TEST(Plan, shares_shm_in_the_pod_and_guards_the_kernel_s_places) {
  oci::Spec spec = oci::default_spec();
  auto mounts = *plan_mounts(spec, {}, {});
  ASSERT_EQ(mounts.size(), 7u);
  EXPECT_TRUE(mounts[0].flags & launch::kMountProc);
  for (const MountDraft& each : mounts) EXPECT_TRUE(each.flags & launch::kMountNoLinks) << each.destination;
  EXPECT_EQ(mounts[3].kind, launch::MountKind::pod_shm);
  EXPECT_EQ(mounts[6].type, "cgroup2");
  SandboxInfo host;
  host.has_ipc = false;
  mounts = *plan_mounts(spec, host, {});
  EXPECT_EQ(mounts[3].kind, launch::MountKind::attach);
  EXPECT_EQ(mounts[3].source, "/dev/shm");
  spec.mounts = {mount("bind", {"rbind"}, "")};
  EXPECT_FALSE(plan_mounts(spec, {}, {}).ok());
}

TEST(Plan, searches_programs_as_execvp_but_not_in_the_current_directory) {
  using Paths = std::vector<std::string>;
  EXPECT_EQ(plan_programs("/bin/sh", {"PATH=/x"}), Paths{"/bin/sh"});
  EXPECT_EQ(plan_programs("./run", {}), Paths{"./run"});
  EXPECT_EQ(plan_programs("sh", {"PATH=/a::/b"}), (Paths{"/a/sh", "/b/sh"}));
  EXPECT_EQ(plan_programs("sh", {"PATH=/a", "PATH=/b"}), Paths{"/b/sh"});
  EXPECT_TRUE(plan_programs("sh", {"XPATH=/a"}).empty());
}

TEST(Plan, gives_no_capability_that_it_has_not) {
  oci::Capabilities wanted;
  wanted.bounding = wanted.permitted = {"CAP_CHOWN", "CAP_SYS_RESOURCE"};
  wanted.effective = {"CAP_CHOWN", "CAP_KILL"};
  wanted.ambient = {"CAP_CHOWN"};
  LauncherInfo own;
  own.capabilities = ~(uint64_t(1) << kCapSysResource);
  CapabilitySets sets = *plan_capabilities(wanted, own);
  EXPECT_EQ(sets.bounding, 1u);
  EXPECT_EQ(sets.permitted, 1u);
  EXPECT_EQ(sets.effective, 1u);  // limited to the permitted set
  EXPECT_EQ(sets.ambient, 0u);    // limited to the inheritable set
  EXPECT_EQ(capabilities_not_granted(wanted, sets), "bounding CAP_SYS_RESOURCE, effective CAP_KILL, permitted CAP_SYS_RESOURCE");
  EXPECT_EQ(ambient_not_granted(wanted, sets), std::vector<std::string>{"CAP_CHOWN"});
  wanted.effective = {"CAP_CHOWN"};
  wanted.bounding = wanted.permitted = wanted.inheritable = {"CAP_CHOWN", "CAP_SYS_RESOURCE"};
  own.capabilities = ~uint64_t(0);
  EXPECT_EQ(capabilities_not_granted(wanted, *plan_capabilities(wanted, own)), "");
  EXPECT_TRUE(ambient_not_granted(wanted, *plan_capabilities(wanted, own)).empty());
  own.capabilities = ~(uint64_t(1) << kCapSysResource);
  own.oom_score_adj = -500;
  EXPECT_EQ(plan_oom_score(-997, own), -500);
  EXPECT_EQ(plan_oom_score(100, own), 100);
  own.capabilities = ~uint64_t(0);
  EXPECT_EQ(plan_oom_score(-997, own), -997);
}

TEST(Plan, translates_ids_by_the_container_s_maps) {
  IdMaps none, maps;
  EXPECT_EQ(none.uid(7), 7u);
  maps.uids = {{0, 100000, 10}, {10, 5, 1}};
  maps.gids = {{0, 200000, 10}};
  EXPECT_EQ(maps.uid(0), 100000u);
  EXPECT_EQ(maps.uid(10), 5u);
  EXPECT_EQ(maps.gid(9), 200009u);
  EXPECT_FALSE(IdMaps::host_id(maps.gids, 10));
  oci::Spec spec;
  oci::Mount tmp = mount("tmpfs", {"uid=3", "gid=4", "mode=755"});
  tmp.destination = "data";
  tmp.source.clear();
  spec.mounts = {tmp};
  auto mounts = *plan_mounts(spec, {}, maps);
  EXPECT_EQ(mounts[0].destination, "/data");
  EXPECT_EQ(mounts[0].options.data[0].value, "100003");
  EXPECT_EQ(mounts[0].options.data[1].value, "200004");
  EXPECT_EQ(mounts[0].options.data[2].value, "755");
  for (const oci::Device& device : plan_devices(spec, maps)) EXPECT_EQ(device.uid, 100000u) << device.path;
}

// Otherwise a container's root in a user namespace would own the host's disks if an engine passes on all devices.
TEST(Plan, devices_of_the_host_stay_the_host_s_in_a_user_namespace) {
  IdMaps maps;
  maps.uids = maps.gids = {{0, 100000, 65536}};
  oci::Spec spec;
  oci::Device disk, null;
  disk.path = "/dev/sda", disk.type = "b", disk.major = 8, disk.uid = 0, disk.gid = 6;
  null.path = "/dev/empty", null.type = "c", null.major = 1, null.minor = 3, null.uid = 5;
  spec.linux_.devices = {disk, null};
  auto planned = plan_devices(spec, maps);
  EXPECT_EQ(planned[0].uid.value_or(0), 0u);
  EXPECT_EQ(planned[0].gid.value_or(0), 6u);
  EXPECT_EQ(planned[1].uid, 100005u) << "what every container has is its own";
  EXPECT_EQ(plan_devices(spec, {})[0].gid, 6u);
}

// All listed device nodes are created; the cgroup rules decide which ones may be used.
TEST(Plan, devices_are_made_and_rules_say_who_may_use_them) {
  oci::Spec spec;
  oci::Device fuse;
  fuse.path = "/dev//fuse/", fuse.type = "c", fuse.major = 10, fuse.minor = 229;
  spec.linux_.devices = {fuse};
  EXPECT_EQ(plan_devices(spec, {})[0].path, "/dev/fuse");
  auto uses_fuse = [&] {
    auto rules = plan_device_rules(spec);
    return std::any_of(rules.begin(), rules.end(), [](const sys::DeviceMatch& rule) { return rule.minor == 229 && rule.allow; });
  };
  EXPECT_FALSE(uses_fuse());
  spec.linux_.resources.devices.push_back({.allow = true, .type = "c", .major = 10, .minor = 229});
  EXPECT_TRUE(uses_fuse());
}

TEST(Plan, device_rules_keep_their_order_and_the_defaults_come_last) {
  struct Row {
    const char* name;
    std::vector<oci::DeviceRule> rules;
    uint32_t minor;  // of a character device with the major number 10, to be read
    bool want;
  };
  const oci::DeviceRule all{.allow = true}, none{.allow = false};
  const oci::DeviceRule one{.allow = true, .type = "c", .major = 10, .minor = 229};
  oci::DeviceRule not_one = one, not_null = one;
  not_one.allow = not_null.allow = false;
  not_null.major = 1, not_null.minor = 3;
  // The last match decides. Source: runtime-spec config-linux.md, "Allowed Device list".
  auto allows = [](const std::vector<oci::DeviceRule>& rules, uint32_t major, uint32_t minor) {
    oci::Spec spec;
    spec.linux_.resources.devices = rules;
    bool is_allowed = false;
    for (const sys::DeviceMatch& rule : plan_device_rules(spec))
      if (rule.read && rule.type != 'b' && rule.major.value_or(major) == major && rule.minor.value_or(minor) == minor)
        is_allowed = rule.allow;
    return is_allowed;
  };
  for (const Row& row : {Row{"none, then one", {none, one}, 229, true}, Row{"one, then none", {one, none}, 229, false},
                         Row{"all, then none", {all, none}, 229, false}, Row{"none, then all", {none, all}, 229, true},
                         Row{"one, none, all, and not one", {one, none, all, not_one}, 229, false},
                         Row{"... another one", {one, none, all, not_one}, 230, true}, Row{"no rule", {}, 229, false}}) {
    EXPECT_EQ(allows(row.rules, 10, row.minor), row.want) << row.name;
    EXPECT_TRUE(allows(row.rules, 1, 3)) << row.name << ": /dev/null";
  }
  EXPECT_TRUE(allows({all, not_null}, 1, 3)) << "as with runc and crun, every container can use its default devices";
  EXPECT_TRUE(allows({none}, 10, 200)) << "and /dev/net/tun, if it makes it";
  EXPECT_FALSE(allows({none}, 10, 201));
}

TEST(Plan, a_mount_of_cgroups_shows_the_hierarchies_of_v1_that_the_container_is_in) {
  oci::Spec spec;
  spec.mounts = {mount("cgroup", {"nosuid", "ro"}, "cgroup", "/sys/fs/cgroup"), mount("cgroup2", {}, "cgroup", "/other")};
  SandboxInfo sandbox;
  sandbox.is_pod = false;
  auto plain = *plan_mounts(spec, sandbox, {});
  ASSERT_EQ(plain.size(), 2u);
  EXPECT_EQ(plain[0].type, "cgroup2");
  EXPECT_TRUE(plan_links(spec, sandbox).empty());
  sandbox.v1 = {{"/sys/fs/cgroup/cpu,cpuacct", {"cpu", "cpuacct"}}, {"/sys/fs/cgroup/memory", {"memory"}}};
  sandbox.cgroup = "/a/b";
  sandbox.v2_cgroup = "/sys/fs/cgroup/unified/a/b";
  auto mounts = *plan_mounts(spec, sandbox, {});
  ASSERT_EQ(mounts.size(), 5u);
  struct Want {
    const char* destination;
    launch::MountKind kind;
    const char* what;  // its type, or its source
  };
  const Want want[] = {
      {"/sys/fs/cgroup", launch::MountKind::file_system, "tmpfs"},
      {"/sys/fs/cgroup/cpu,cpuacct", launch::MountKind::outer, "/sys/fs/cgroup/cpu,cpuacct/a/b"},
      {"/sys/fs/cgroup/memory", launch::MountKind::outer, "/sys/fs/cgroup/memory/a/b"},
      {"/sys/fs/cgroup/unified", launch::MountKind::outer, "/sys/fs/cgroup/unified/a/b"},
      {"/other", launch::MountKind::file_system, "cgroup2"},
  };
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(mounts[i].destination, want[i].destination);
    EXPECT_EQ(mounts[i].kind, want[i].kind) << i;
    EXPECT_EQ(mounts[i].kind == launch::MountKind::outer ? mounts[i].source : mounts[i].type, want[i].what);
    EXPECT_EQ(mounts[i].options.set, uint64_t(i < 4 ? MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID : 0)) << i;
    const uint32_t holds = i == 0 ? uint32_t(launch::kMountHolds) : i < 4 ? uint32_t(launch::kMountInHeld) : 0;
    EXPECT_EQ(mounts[i].flags & (launch::kMountHolds | launch::kMountInHeld), holds) << i;
  }
  using Links = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(plan_links(spec, sandbox), (Links{{"cpu,cpuacct", "/sys/fs/cgroup/cpu"}, {"cpu,cpuacct", "/sys/fs/cgroup/cpuacct"}}));
}

TEST(Plan, a_writable_cgroup_belongs_to_the_user_of_the_process) {
  struct Case {
    const char* name;
    std::vector<std::string> options;
    bool has_namespace;
    uint32_t uid;
    IdMaps ids;
    std::optional<uint32_t> want;
  };
  const IdMaps maps{{{0, 1000, 10}}, {{0, 1000, 10}}};
  const Case cases[] = {{"root of a user namespace", {"nosuid"}, true, 0, maps, 1000u},
                        {"another user of it", {}, true, 7, maps, 1007u},
                        {"a user whom it has not", {}, true, 70, maps, std::nullopt},
                        {"a user of the host", {}, true, 7, {}, 7u},
                        {"host root", {}, true, 0, {}, std::nullopt},
                        {"read-only", {"nosuid", "ro"}, true, 0, maps, std::nullopt},
                        {"the host's cgroup namespace", {}, false, 0, maps, std::nullopt}};
  for (const Case& each : cases) {
    oci::Spec spec;
    spec.process.user.uid = each.uid;
    spec.mounts = {mount("cgroup", each.options, "cgroup", "/sys/fs/cgroup")};
    NamespacePlan namespaces;
    namespaces.new_cgroup = each.has_namespace;
    EXPECT_EQ(plan_cgroup_owner(spec, namespaces, each.ids), each.want) << each.name;
    spec.mounts[0].destination = "/elsewhere";
    EXPECT_EQ(plan_cgroup_owner(spec, namespaces, each.ids), std::nullopt) << each.name;
  }
}

TEST(Plan, new_file_systems_get_the_mount_label) {
  oci::Spec spec;
  spec.linux_.mount_label = "u:r:t:s0:c1,c2";
  spec.mounts = {mount("tmpfs", {"mode=755"}), mount("devpts", {}), mount("proc", {}),       mount("sysfs", {}),
                 mount("mqueue", {}),          mount("cgroup", {}), mount("bind", {"rbind"})};
  SandboxInfo sandbox;
  sandbox.is_pod = false;
  for (bool has_selinux : {true, false}) {
    sandbox.has_selinux = has_selinux;
    auto mounts = *plan_mounts(spec, sandbox, {});
    for (size_t i = 0; i < mounts.size(); ++i) {
      std::string label;
      for (const auto& option : mounts[i].options.data)
        if (option.key == "context") label = option.value;
      EXPECT_EQ(label, has_selinux && i < 2 ? "u:r:t:s0:c1,c2" : "") << i;
    }
  }
}

TEST(Plan, a_tmpfs_without_a_mode_keeps_that_of_what_it_covers) {
  auto keeps = [](std::vector<std::string> options) {
    oci::Spec spec;
    spec.mounts = {mount("tmpfs", std::move(options))};
    return (*plan_mounts(spec, {}, {}))[0].flags & launch::kMountKeepMode;
  };
  EXPECT_TRUE(keeps({"nosuid"}));
  EXPECT_FALSE(keeps({"mode=1777"}));
  EXPECT_FALSE(keeps({"tmpcopyup"})) << "which takes owner and mode along";
}

TEST(Plan, a_source_that_an_earlier_mount_covers_is_what_the_container_sees) {
  oci::Spec spec;
  spec.root.path = "/b/rootfs";
  spec.mounts = {mount("tmpfs", {}, "tmpfs", "/data"), mount("bind", {"rbind", "ro"}, "/b/rootfs/data/d", "/x"),
                 mount("bind", {"bind"}, "/b/rootfs/other", "/y"), mount("bind", {"bind"}, "/data/d", "/z")};
  auto mounts = *plan_mounts(spec, {}, {});
  EXPECT_EQ(mounts[1].kind, launch::MountKind::inner);
  EXPECT_EQ(mounts[1].source, "/data/d");
  EXPECT_TRUE(mounts[1].flags & launch::kMountBeneath);
  EXPECT_EQ(mounts[2].kind, launch::MountKind::attach);
  EXPECT_EQ(mounts[3].kind, launch::MountKind::attach);
}

TEST(Plan, of_variables_of_one_name_the_last_counts) {
  EXPECT_EQ(plan_env({"A=1", "B=2", "A=", "AB=3", "A=4"}), (std::vector<std::string>{"B=2", "AB=3", "A=4"}));
  EXPECT_TRUE(plan_env({}).empty());
}

TEST(Plan, says_which_namespaces_are_new_and_which_are_joined) {
  oci::Spec spec;
  spec.linux_.namespaces = {{"mount", ""}, {"pid", ""}, {"network", "/run/netns/x"}, {"user", ""}, {"cgroup", ""}};
  SandboxInfo alone;
  alone.is_pod = false;
  NamespacePlan plan = *plan_namespaces(spec, alone);
  EXPECT_EQ(plan.fresh, uint64_t(CLONE_NEWNS | CLONE_NEWPID));
  EXPECT_EQ(plan.joined, (std::map<std::string, std::string>{{"network", "/run/netns/x"}}));
  EXPECT_TRUE(plan.new_user && plan.new_cgroup);
  EXPECT_FALSE(plan.in_host_tree || plan.new_time);
  spec.linux_.namespaces = {{"user", "/proc/1/ns/user"}};
  plan = *plan_namespaces(spec, alone);
  EXPECT_EQ(plan.user_path, "/proc/1/ns/user");
  EXPECT_TRUE(plan.in_host_tree);
  SandboxInfo pod;
  plan = *plan_namespaces({}, pod);
  EXPECT_EQ(plan.fresh, uint64_t(CLONE_NEWPID));  // coracle-pause creates its mount namespace
  EXPECT_TRUE(plan.new_cgroup);
  EXPECT_FALSE(plan.in_host_tree);
  spec.linux_.namespaces = {{"mount", "/proc/1/ns/mnt"}};
  EXPECT_FALSE(plan_namespaces(spec, pod).ok());
}

TEST(Plan, turns_words_into_the_kernel_s_numbers) {
  EXPECT_EQ(*plan_io_priority({"IOPRIO_CLASS_BE", 6}), 2 << 13 | 6);
  EXPECT_EQ(plan_io_priority({"IOPRIO_CLASS_BEST", 6}).error().text(), "process.ioPriority.class: \"IOPRIO_CLASS_BEST\"");
  EXPECT_EQ(*plan_bits("0-2,65", "x"), (std::vector<uint64_t>{7, 2}));
  for (const char* wrong : {"", "3-1", "a", "1-2-3", "1,,2", "99999"}) EXPECT_FALSE(plan_bits(wrong, "x").ok()) << wrong;
  EXPECT_EQ(plan_scheduler({.policy = "SCHED_BATCH", .nice = 3})->size(), 56u);
  EXPECT_FALSE(plan_scheduler({.policy = "SCHED_GOOD"}).ok());
  EXPECT_EQ(*plan_personality({"LINUX32", {}}), 8);
  EXPECT_FALSE(plan_personality({"LINUX", {"X"}}).ok());
  EXPECT_EQ(*plan_memory_mode({"MPOL_BIND", "0", {"MPOL_F_STATIC_NODES"}}), 2 | 1 << 15);
}

TEST(Plan, explains_failures_as_users_know_them) {
  oci::Spec spec;
  spec.process.args = {"nginx"};
  auto text = [&](launch::Stage stage, int err, int index = -1) {
    return explain_failure({pause::Kind::reply, err, uint32_t(stage), index, 0}, spec, {"/a", "/b", "/proc"}).text();
  };
  EXPECT_EQ(text(launch::Stage::exec, ENOENT), "exec: \"nginx\": executable file not found in $PATH");
  EXPECT_EQ(text(launch::Stage::mount, ENODEV, 1), "mounts: /b: mount: No such device");
  EXPECT_EQ(text(launch::Stage::mount, ELOOP, 1), "mounts: /b: mount: Too many levels of symbolic links");
  EXPECT_EQ(text(launch::Stage::mount, ELOOP, 2),
            "mounts: /proc: must be mounted on ordinary directory: Too many levels of symbolic links");
  EXPECT_EQ(text(launch::Stage::mount, launch::kDirectoryOverFile, 0),
            "mounts: /a: not a directory: a directory is mounted over a file");
  EXPECT_EQ(text(launch::Stage::mount, launch::kFileOverDirectory, 1),
            "mounts: /b: is a directory: a file is mounted over a directory");
  EXPECT_EQ(text(launch::Stage::slot, EEXIST), "the id is in use");
  spec.process.scheduler = oci::Scheduler{};
  spec.process.scheduler->policy = "SCHED_DEADLINE";
  EXPECT_EQ(text(launch::Stage::scheduler, EPERM), "process.scheduler: sched_setattr: Operation not permitted");
  spec.linux_.resources.cpuset_cpus = "0";
  EXPECT_EQ(text(launch::Stage::scheduler, EPERM),
            "process.scheduler: process scheduler can't be used together with AllowedCPUs (linux.resources.cpu.cpus)");
  spec.hooks.create_container = {{"/bin/first", {}, {}, {}}, {"/bin/second", {}, {}, {}}};
  EXPECT_EQ(text(launch::Stage::create_hook, -3, 1), "error running createContainer hook #1: /bin/second ended with exit code 3");
  EXPECT_EQ(text(launch::Stage::create_hook, -137, 0),
            "error running createContainer hook #0: /bin/first was killed by signal 9 (killed)");
  EXPECT_EQ(text(launch::Stage::create_hook, ETIMEDOUT, 0),
            "error running createContainer hook #0: /bin/first took longer than its timeout");
  EXPECT_EQ(text(launch::Stage::plan, EPROTO),
            "the pod was begun by another version of coracled; delete it, and it is begun anew");
  EXPECT_EQ(text(launch::Stage(9999), EIO), "launch: Input/output error");
}

}  // namespace
}  // namespace coracle::runtime
