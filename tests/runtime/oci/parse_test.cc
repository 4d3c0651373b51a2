// SPDX-License-Identifier: Apache-2.0
// Parsing and writing config.json.
#include "runtime/oci/parse.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "runtime/oci/defaults.h"
#include "tests/runtime/expect.h"

namespace coracle::oci {
namespace {

Result<Spec> parse(const std::string& text) {
  json::value value = TRY(parse_json(text));
  return parse_spec(value);
}

// A config.json in which each field of the specification has a value other than its default.
json::value every_field() {
  std::ifstream file(std::string(CORACLE_SOURCE) + "/tests/fuzz/corpus/oci_config/every_field.json");
  std::stringstream text;
  text << file.rdbuf();
  return MUST(parse_json(text.str()));
}

TEST(OciParse, reads_what_it_writes) {
  Spec spec = default_spec();
  spec.process.args = {"/bin/app", "--flag"};
  spec.root = {"rootfs", true};
  spec.linux_.seccomp = default_seccomp();
  json::value text = to_json(spec);
  auto again = parse_spec(text);
  ASSERT_OK(again);
  EXPECT_EQ(to_text(to_json(*again)), to_text(text));
}

TEST(OciParse, writes_every_field_that_it_reads) {
  json::value given = every_field();
  auto spec = parse_spec(given);
  ASSERT_OK(spec);
  json::value written = to_json(*spec);
  for (const auto& [name, value] : given.get_object()) {
    const json::value* found = written.get_object().if_contains(name);
    ASSERT_TRUE(found) << name;
    if (!value.is_object()) {
      EXPECT_TRUE(*found == value) << name;
      continue;
    }
    for (const auto& [inner, want] : value.get_object()) {
      const json::value* got = found->get_object().if_contains(inner);
      ASSERT_TRUE(got) << name << "." << inner;
      EXPECT_TRUE(*got == want) << name << "." << inner << ": " << to_text(*got);
    }
  }
  EXPECT_TRUE(written == given) << to_pretty(written);
}

TEST(OciParse, keeps_numbers_and_names_apart) {
  auto spec = parse_spec(every_field());
  ASSERT_OK(spec);
  EXPECT_EQ(spec->process.rlimits[1].hard, ~uint64_t(0));
  EXPECT_EQ(*spec->process.user.umask, 077u);
  EXPECT_EQ(*spec->process.scheduler->runtime_ns, 10000000u);
  EXPECT_EQ(*spec->process.scheduler->period_ns, 30000000u);
  EXPECT_EQ(spec->process.io_priority->priority, 4);
  EXPECT_EQ(spec->process.exec_cpu_affinity->final_cpus, "0-3,7");
  EXPECT_EQ(spec->mounts[2].gid_mappings[0].host_id, 2000u);
  EXPECT_EQ(spec->hooks.start_container[0].args, std::vector<std::string>{"x"});
  const Resources& resources = spec->linux_.resources;
  EXPECT_EQ(*resources.memory_kernel_tcp_bytes, -1);
  EXPECT_EQ(*resources.memory_disable_oom_killer, false);
  EXPECT_EQ(*resources.cpu_realtime_period_us, 1000000u);
  EXPECT_EQ(*resources.block_io.weight_devices[0].leaf_weight, 300);
  EXPECT_EQ(resources.block_io.write_iops[0].rate, 300u);
  EXPECT_EQ(resources.hugepage_limits[1].page_size, "64KB");
  EXPECT_FALSE(resources.rdma.at("rxe3").hca_handles.has_value());
  EXPECT_EQ(resources.network_priorities.at("eth1"), 1000u);
  EXPECT_EQ(spec->linux_.net_devices.at("ens4"), "");
  EXPECT_EQ(spec->linux_.time_offsets.at("boottime").secs, -2);
  EXPECT_TRUE(spec->linux_.intel_rdt->enable_monitoring);
  EXPECT_EQ(spec->linux_.memory_policy->nodes, "2-3");
}

TEST(OciParse, reads_the_parts_alone) {
  json::value given = every_field();
  auto process = parse_process(given.at("process"));
  ASSERT_OK(process);
  EXPECT_TRUE(to_json(*process) == given.at("process"));
  auto resources = parse_resources(given.at("linux").at("resources"));
  ASSERT_OK(resources);
  EXPECT_TRUE(to_json(*resources) == given.at("linux").at("resources"));
}

TEST(OciParse, takes_a_relative_destination_from_the_root) {
  auto spec = parse(R"({"ociVersion":"1.0.0","process":{"cwd":"/"},"root":{"path":"r"},
    "mounts":[{"destination":"proc"},{"destination":"./dev//shm/"},{"destination":"/a/../b"},{"destination":""}]})");
  ASSERT_OK(spec);
  EXPECT_EQ(spec->mounts[0].destination, "/proc");
  EXPECT_EQ(spec->mounts[1].destination, "/dev/shm");
  EXPECT_EQ(spec->mounts[2].destination, "/a/../b");
  EXPECT_EQ(spec->mounts[3].destination, "");
}

TEST(OciParse, takes_null_for_absent_and_leaves_unknown_fields_alone) {
  auto spec = parse(R"({"ociVersion":"1.2.0","process":{"cwd":"/","args":["sh"],"capabilities":null,"user":null,
    "later":{"a":1}},"root":{"path":"r"},"mounts":null,"hooks":{"prestart":null},"solaris":5,
    "linux":{"resources":{"pids":{},"memory":null,"devices":[{"allow":true,"major":-1,"minor":-1,"type":"","access":""}]},
    "seccomp":null,"uidMappings":null,"devices":[{"path":"/p","type":"p"}]}})");
  ASSERT_OK(spec);
  EXPECT_FALSE(spec->process.capabilities.has_value());
  EXPECT_FALSE(spec->linux_.seccomp.has_value());
  EXPECT_FALSE(spec->linux_.resources.pids_limit.has_value());
  EXPECT_EQ(spec->linux_.resources.devices[0].type, "a");
  EXPECT_EQ(spec->linux_.resources.devices[0].access, "rwm");
  EXPECT_FALSE(spec->linux_.resources.devices[0].major.has_value());
}

TEST(OciParse, takes_a_container_without_process) {
  auto spec = parse(R"({"ociVersion":"1.2.0","process":null,"root":{"path":"r"}})");
  ASSERT_OK(spec);
  EXPECT_FALSE(spec->has_process);
  EXPECT_FALSE(to_json(*spec).get_object().contains("process"));
}

TEST(OciParse, names_the_field_that_is_wrong) {
  struct Row {
    const char* text;
    const char* want;
  };
  for (const Row& row : {
           Row{R"({})", "ociVersion: missing"},
           Row{R"({"ociVersion":1})", "ociVersion: not a string"},
           Row{R"({"ociVersion":"1.0.0"})", "root: missing"},
           Row{R"({"ociVersion":"1.0.0","process":{}})", "process.cwd: missing"},
           Row{R"({"ociVersion":"1.0.0","process":{"cwd":"/"}})", "root: missing"},
           Row{R"({"ociVersion":"1.0.0","process":{"cwd":"/"},"root":{}})", "root.path: missing"},
           Row{R"([])", "config: not an object"},
           Row{R"(null)", "config: not an object"},
       }) {
    auto spec = parse(row.text);
    ASSERT_FALSE(spec.ok()) << row.text;
    EXPECT_EQ(spec.error().text(), row.want);
    EXPECT_EQ(spec.error().code(), Code::invalid);
  }
  // Fields of the process.
  for (const Row& row : {
           Row{R"("args":"sh")", "process.args: not a list"},
           Row{R"("args":[1])", "process.args[0]: not a string"},
           Row{R"("args":["a\u0000b"])", "process.args[0]: holds a NUL byte"},
           Row{R"("terminal":1)", "process.terminal: not true or false"},
           Row{R"("consoleSize":[])", "process.consoleSize: not an object"},
           Row{R"("consoleSize":{"height":65536})", "process.consoleSize.height: out of range"},
           Row{R"("user":{"uid":-1})", "process.user.uid: out of range"},
           Row{R"("user":{"uid":4294967296})", "process.user.uid: out of range"},
           Row{R"("user":{"uid":"0"})", "process.user.uid: not a whole number"},
           Row{R"("user":{"gid":1.5})", "process.user.gid: not a whole number"},
           Row{R"("user":"root")", "process.user: not an object"},
           Row{R"("user":{"additionalGids":[1,-2]})", "process.user.additionalGids[1]: out of range"},
           Row{R"("capabilities":[])", "process.capabilities: not an object"},
           Row{R"("capabilities":{"ambient":"CAP_KILL"})", "process.capabilities.ambient: not a list"},
           Row{R"("rlimits":["x"])", "process.rlimits[0]: not an object"},
           Row{R"("rlimits":[{"type":"RLIMIT_CPU","soft":1}])", "process.rlimits[0].hard: missing"},
           Row{R"("rlimits":[{"type":"RLIMIT_CPU","soft":-1,"hard":1}])", "process.rlimits[0].soft: out of range"},
           Row{R"("oomScoreAdj":"low")", "process.oomScoreAdj: not a whole number"},
           Row{R"("scheduler":{})", "process.scheduler.policy: missing"},
           Row{R"("scheduler":{"policy":"SCHED_FIFO","nice":3000000000})", "process.scheduler.nice: out of range"},
           Row{R"("ioPriority":{"class":"IOPRIO_CLASS_BE"})", "process.ioPriority.priority: missing"},
           Row{R"("execCPUAffinity":{"initial":3})", "process.execCPUAffinity.initial: not a string"},
       }) {
    auto spec = parse(R"({"ociVersion":"1.0.0","process":{"cwd":"/",)" + std::string(row.text) + "}}");
    ASSERT_FALSE(spec.ok()) << row.text;
    EXPECT_EQ(spec.error().text(), row.want);
  }
  auto idle = parse(R"({"ociVersion":"1.0.0","root":{"path":"r"},"process":{"cwd":"/","ioPriority":{"class":"IOPRIO_CLASS_IDLE"}}})");
  ASSERT_OK(idle);
  EXPECT_EQ(idle->process.io_priority->priority, 0);
  // All other fields.
  for (const Row& row : {
           Row{R"("mounts":[{"type":"tmpfs"}])", "mounts[0].destination: missing"},
           Row{R"("mounts":[{"destination":5}])", "mounts[0].destination: not a string"},
           Row{R"("mounts":[5])", "mounts[0]: not an object"},
           Row{R"("mounts":[{"destination":"/a","uidMappings":[{"containerID":0,"hostID":1}]}])",
               "mounts[0].uidMappings[0].size: missing"},
           Row{R"("hooks":[])", "hooks: not an object"},
           Row{R"("hooks":{"poststop":{}})", "hooks.poststop: not a list"},
           Row{R"("hooks":{"poststop":[{"args":[]}]})", "hooks.poststop[0].path: missing"},
           Row{R"("annotations":{"a b":1})", "annotations[\"a b\"]: not a string"},
           Row{R"("annotations":{"a\nb":1})", "annotations[\"a\\nb\"]: not a string"},
           Row{R"("annotations":{"a\u0000":"x"})", "annotations[\"a\\x00\"]: holds a NUL byte"},
           Row{R"("linux":5)", "linux: not an object"},
       }) {
    auto spec = parse(R"({"ociVersion":"1.0.0","process":{"cwd":"/"},"root":{"path":"r"},)" + std::string(row.text) + "}");
    ASSERT_FALSE(spec.ok()) << row.text;
    EXPECT_EQ(spec.error().text(), row.want);
  }
}

TEST(OciParse, names_the_field_of_linux_that_is_wrong) {
  struct Row {
    const char* text;
    const char* want;
  };
  for (const Row& row : {
           Row{R"("namespaces":[{"path":"/x"}])", "linux.namespaces[0].type: missing"},
           Row{R"("uidMappings":[{"containerID":4294967296,"hostID":0,"size":1}])",
               "linux.uidMappings[0].containerID: out of range"},
           Row{R"("devices":[{"path":"/dev/x","type":"c","major":1}])", "linux.devices[0].minor: missing"},
           Row{R"("devices":[{"path":"/dev/x","type":"b","major":1,"minor":2,"fileMode":"0600"}])",
               "linux.devices[0].fileMode: not a whole number"},
           Row{R"("resources":{"devices":[{"access":"r"}]})", "linux.resources.devices[0].allow: missing"},
           Row{R"("resources":{"memory":{"limit":"1g"}})", "linux.resources.memory.limit: not a whole number"},
           Row{R"("resources":{"memory":{"swappiness":-1}})", "linux.resources.memory.swappiness: out of range"},
           Row{R"("resources":{"memory":{"limit":9223372036854775808}})", "linux.resources.memory.limit: out of range"},
           Row{R"("resources":{"cpu":{"idle":true}})", "linux.resources.cpu.idle: not a whole number"},
           Row{R"("resources":{"pids":5})", "linux.resources.pids: not an object"},
           Row{R"("resources":{"blockIO":{"weight":65536}})", "linux.resources.blockIO.weight: out of range"},
           Row{R"("resources":{"blockIO":{"throttleReadIOPSDevice":[{"major":8,"minor":0}]}})",
               "linux.resources.blockIO.throttleReadIOPSDevice[0].rate: missing"},
           Row{R"("resources":{"hugepageLimits":[{"limit":1}]})", "linux.resources.hugepageLimits[0].pageSize: missing"},
           Row{R"("resources":{"rdma":{"mlx5_1":{"hcaHandles":"not a uint32"}}})",
               "linux.resources.rdma.mlx5_1.hcaHandles: not a whole number"},
           Row{R"("resources":{"network":{"priorities":[{"name":"eth0","priority":1},{"name":"eth0","priority":1}]}})",
               "linux.resources.network.priorities[1]: \"eth0\" stands twice"},
           Row{R"("resources":{"unified":{"memory.high":5}})", "linux.resources.unified.memory.high: not a string"},
           Row{R"("sysctl":[])", "linux.sysctl: not an object"},
           Row{R"("seccomp":"default")", "linux.seccomp: not an object"},
           Row{R"("netDevices":{"eth0":{"name":23}})", "linux.netDevices.eth0.name: not a string"},
           Row{R"("netDevices":{"eth0":"eth1"})", "linux.netDevices.eth0: not an object"},
           Row{R"("timeOffsets":{"boottime":{"nanosecs":-1}})", "linux.timeOffsets.boottime.nanosecs: out of range"},
           Row{R"("personality":{"flags":[]})", "linux.personality.domain: missing"},
           Row{R"("intelRdt":{"enableMonitoring":"yes"})", "linux.intelRdt.enableMonitoring: not true or false"},
           Row{R"("memoryPolicy":{"nodes":"0"})", "linux.memoryPolicy.mode: missing"},
       }) {
    auto spec =
        parse(R"({"ociVersion":"1.0.0","process":{"cwd":"/"},"root":{"path":"r"},"linux":{)" + std::string(row.text) + "}}");
    ASSERT_FALSE(spec.ok()) << row.text;
    EXPECT_EQ(spec.error().text(), row.want);
  }
}

}  // namespace
}  // namespace coracle::oci
