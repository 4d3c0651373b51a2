// SPDX-License-Identifier: Apache-2.0
// What a container may ask, check by check.
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

TEST(OciValidate, refuses_what_no_container_may_ask) {
  struct Row {
    const char* name;
    void (*spoil)(Spec&);
    const char* want;
  };
  const Row rows[] = {
      {"no arguments", [](Spec& s) { s.process.args.clear(); }, "process.args is empty"},
      {"env", [](Spec& s) { s.process.env = {"NOVALUE"}; }, "is not NAME=value"},
      {"env name", [](Spec& s) { s.process.env = {"=x"}; }, "is not NAME=value"},
      {"cwd", [](Spec& s) { s.process.cwd = "tmp"; }, "process.cwd \"tmp\" is not absolute"},
      {"uid", [](Spec& s) { s.process.user.uid = 0x80000000; }, "process.user.uid"},
      {"group", [](Spec& s) { s.process.user.additional_gids = {0xffffffff}; }, "additionalGids"},
      {"capability", [](Spec& s) { s.process.capabilities->ambient = {"CAP_NONE"}; },
       "unknown capability \"CAP_NONE\""},
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
      {"oom", [](Spec& s) { s.process.oom_score_adj = 1001; }, "oomScoreAdj"},
      {"relative mount", [](Spec& s) { add_mount(s, "data", "tmpfs"); }, "is not absolute"},
      {"root mount", [](Spec& s) { add_mount(s, "/", "tmpfs"); }, "the root's place"},
      {"climbing mount", [](Spec& s) { add_mount(s, "/a/../b", "tmpfs"); }, "holds \"..\""},
      {"false proc", [](Spec& s) { add_mount(s, "/proc", "tmpfs"); }, "only a procfs"},
      {"in proc", [](Spec& s) { add_mount(s, "/proc/self/attr", "bind", "/x"); }, "nothing may be mounted"},
      {"namespace",
       [](Spec& s) {
         s.linux_.namespaces = {{"time", ""}};
       },
       "linux.namespaces: time"},
      {"user namespace",
       [](Spec& s) {
         s.linux_.namespaces = {{"user", ""}};
       },
       "linux.namespaces: user"},
      {"unknown namespace",
       [](Spec& s) {
         s.linux_.namespaces = {{"moon", ""}};
       },
       "unknown type"},
      {"device",
       [](Spec& s) {
         s.linux_.devices = {{"null", "c", 1, 3, {}, {}, {}}};
       },
       "is not absolute"},
      {"device type",
       [](Spec& s) {
         s.linux_.devices = {{"/dev/x", "z", 1, 3, {}, {}, {}}};
       },
       "type \"z\""},
      {"rule",
       [](Spec& s) {
         s.linux_.resources.devices = {{true, "c", 1, 3, "rx"}};
       },
       "access \"rx\""},
      {"masked", [](Spec& s) { s.linux_.masked_paths = {"proc/keys"}; }, "is not absolute"},
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
      {"propagation", [](Spec& s) { s.linux_.rootfs_propagation = "wild"; }, "rootfsPropagation"},
      {"version", [](Spec& s) { s.version = "2.0"; }, "ociVersion"},
  };
  for (const Row& row : rows) {
    Spec spec = default_spec();
    spec.process.args = {"sh"};
    row.spoil(spec);
    auto valid = validate(spec);
    ASSERT_FALSE(valid.ok()) << row.name;
    EXPECT_NE(valid.error().text().find(row.want), std::string::npos) << row.name << ": " << valid.error().text();
  }
}

TEST(OciValidate, allows_sysctls_of_own_namespaces_only) {
  struct Row {
    const char* name;
    bool net, ipc, uts, want;
  };
  for (const Row& row :
       {Row{"net.core.somaxconn", true, true, true, true}, Row{"net.core.somaxconn", false, true, true, false},
        Row{"kernel.shmmax", true, true, true, true}, Row{"kernel.shmmax", true, false, true, false},
        Row{"fs.mqueue.msg_max", true, true, true, true}, Row{"kernel.domainname", true, true, false, false},
        Row{"kernel.core_pattern", true, true, true, false}, Row{"vm.overcommit_memory", true, true, true, false},
        Row{"net..ipv4", true, true, true, false}, Row{"net.ipv4.x y", true, true, true, false},
        Row{"net/ipv4/ip_forward", true, true, true, true}}) {
    EXPECT_EQ(check_sysctls({{row.name, "1"}}, row.net, row.ipc, row.uts).ok(), row.want) << row.name;
  }
  EXPECT_FALSE(check_sysctls({{"net.core.somaxconn", "1\n2"}}, true, true, true).ok());
  EXPECT_EQ(sysctl_path("net.ipv4.ip_forward"), "net/ipv4/ip_forward");
  EXPECT_EQ(sysctl_path("net/ipv4/conf/eth0.1/x"), "net/ipv4/conf/eth0.1/x");
}

}  // namespace
}  // namespace coracle::oci
