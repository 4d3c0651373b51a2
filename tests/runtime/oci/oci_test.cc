// SPDX-License-Identifier: Apache-2.0
// config.json in and out, its checks, and the defaults.
#include <gtest/gtest.h>

#include "runtime/oci/capabilities.h"
#include "runtime/oci/defaults.h"
#include "runtime/oci/parse.h"
#include "runtime/oci/validate.h"

namespace coracle::oci {
namespace {

Result<Spec> parse(const std::string& text) {
  json::value value = TRY(parse_json(text));
  return parse_spec(value);
}

TEST(OciParse, reads_what_it_writes) {
  Spec spec = default_spec();
  spec.process.args = {"/bin/app", "--flag"};
  spec.process.user = {1000, 2000, 022, {3000}};
  spec.process.rlimits = {{"RLIMIT_NOFILE", 1024, ~uint64_t(0)}};
  spec.process.oom_score_adj = -5;
  spec.root = {"rootfs", true};
  spec.hostname = "web";
  spec.linux_.resources.memory_limit_bytes = 1 << 20;
  spec.linux_.resources.cpu_shares = 512;
  spec.linux_.resources.pids_limit = 10;
  spec.linux_.resources.unified = {{"memory.high", "5"}};
  spec.linux_.namespaces = {{"network", "/proc/1/ns/net"}, {"pid", ""}};
  spec.linux_.sysctl = {{"net.ipv4.ip_forward", "1"}};
  spec.linux_.seccomp = default_seccomp();
  spec.annotations = {{"a.b/c", "d"}};
  json::value text = to_json(spec);
  auto again = parse_spec(text);
  ASSERT_TRUE(again.ok()) << again.error().text();
  EXPECT_EQ(to_text(to_json(*again)), to_text(text));
  EXPECT_EQ(again->process.rlimits[0].hard, ~uint64_t(0));
  EXPECT_EQ(*again->process.user.umask, 022u);
}

TEST(OciParse, names_the_field_that_is_wrong) {
  struct Row {
    const char* text;
    const char* want;
  };
  for (const Row& row : {
           Row{R"({})", "process: missing"},
           Row{R"({"process":{}})", "root: missing"},
           Row{R"([])", "config: not an object"},
           Row{R"({"process":{"args":"sh"},"root":{}})", "process.args: not a list"},
           Row{R"({"process":{"args":[1]},"root":{}})", "process.args[0]: not a string"},
           Row{R"({"process":{"user":{"uid":-1}},"root":{}})", "process.user.uid: out of range"},
           Row{R"({"process":{"user":{"uid":4294967296}},"root":{}})", "process.user.uid: out of range"},
           Row{R"({"process":{"user":{"uid":"0"}},"root":{}})", "process.user.uid: not a whole number"},
           Row{R"({"process":{"terminal":1},"root":{}})", "process.terminal: not true or false"},
           Row{R"({"process":{},"root":{},"mounts":[{"destination":5}]})", "mounts[0].destination: not a string"},
           Row{R"({"process":{},"root":{},"linux":{"resources":{"memory":{"limit":"1g"}}}})",
               "linux.resources.memory.limit: not a whole number"},
           Row{R"({"process":{},"root":{},"linux":{"sysctl":[]}})", "linux.sysctl: not an object"},
           Row{R"({"process":{"args":["a\u0000b"]},"root":{}})", "process.args[0]: holds a NUL byte"},
       }) {
    auto spec = parse(row.text);
    ASSERT_FALSE(spec.ok()) << row.text;
    EXPECT_EQ(spec.error().text(), row.want);
    EXPECT_EQ(spec.error().code(), Code::invalid);
  }
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
      {"relative mount",
       [](Spec& s) {
         s.mounts.push_back({"data", "tmpfs", "", {}, nullptr});
       },
       "is not absolute"},
      {"root mount",
       [](Spec& s) {
         s.mounts.push_back({"/", "tmpfs", "", {}, nullptr});
       },
       "the root's place"},
      {"climbing mount",
       [](Spec& s) {
         s.mounts.push_back({"/a/../b", "tmpfs", "", {}, nullptr});
       },
       "holds \"..\""},
      {"false proc",
       [](Spec& s) {
         s.mounts.push_back({"/proc", "tmpfs", "", {}, nullptr});
       },
       "only a procfs"},
      {"in proc",
       [](Spec& s) {
         s.mounts.push_back({"/proc/self/attr", "bind", "/x", {}, nullptr});
       },
       "nothing may be mounted"},
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

TEST(OciCapabilities, know_the_kernel_s_names) {
  EXPECT_EQ(capability_number("CAP_CHOWN"), 0);
  EXPECT_EQ(capability_number("CAP_NET_RAW"), 13);
  for (const char* bad : {"NET_RAW", "CAP_", "CAP_0", "13", "cap_chown", ""})
    EXPECT_FALSE(capability_number(bad)) << bad;
  auto all = all_capabilities();
  EXPECT_GE(all.size(), 41u);
  EXPECT_EQ(all[0], "CAP_CHOWN");
  EXPECT_EQ(*capability_set({"CAP_CHOWN", "CAP_NET_RAW"}), 1u | 1u << 13);
}

}  // namespace
}  // namespace coracle::oci
