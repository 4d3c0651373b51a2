// SPDX-License-Identifier: Apache-2.0
// The location of a container's cgroup: cgroupsPath in all its forms, and the properties of a systemd scope.
#include "runtime/cgroup/place.h"

#include <gtest/gtest.h>

#include "runtime/cgroup/hierarchy.h"
#include "runtime/cgroup/unit.h"

namespace coracle::cgroup {
namespace {

std::string place_text(const Result<Place>& result) {
  if (!result) return "error: " + result.error().text();
  return result->path + (result->is_relative ? " relative" : "") + (result->is_given ? " given" : "") + result->slice +
         (result->unit.empty() ? "" : ":") + result->unit;
}

TEST(Place, is_what_the_path_says) {
  struct Row {
    Manager manager;
    const char *path, *want;
    bool is_user = false;
  };
  const Manager fs = Manager::cgroupfs, systemd = Manager::systemd;
  const Row rows[] = {
      {fs, "", "/web relative"},
      {fs, "/a/b", "/a/b given"},
      {fs, "//a/./b/", "/a/b given"},
      {fs, "a/b", "/a/b relative given"},
      {fs, "a:b:c", "/a:b:c relative given"},
      {fs, "/a/../b", "error: linux.cgroupsPath: \"/a/../b\" leads out by \"..\""},
      {fs, "..", "error: linux.cgroupsPath: \"..\" leads out by \"..\""},
      {fs, "/", "error: linux.cgroupsPath: \"/\" is the top of the hierarchy, not a cgroup of the container's own"},
      {systemd, "", "system.slice:coracle-web.scope"},
      {systemd, "", "user.slice:coracle-web.scope", true},
      {systemd, "machine.slice:libpod:1a", " givenmachine.slice:libpod-1a.scope"},
      {systemd, ":libpod:1a", " givensystem.slice:libpod-1a.scope"},
      {systemd, "-.slice:a:b", " given-.slice:a-b.scope"},
      {systemd, "/a/b", "error: linux.cgroupsPath: \"/a/b\" is not of the form slice:prefix:name that the manager systemd takes"},
      {systemd, "a.slice:b",
       "error: linux.cgroupsPath: \"a.slice:b\" is not of the form slice:prefix:name that the manager systemd takes"},
      {systemd, "a.slice:b:", "error: linux.cgroupsPath: \"a.slice:b:\" has no name"},
      {systemd, "a.slice:b:c.slice",
       "error: linux.cgroupsPath: \"a.slice:b:c.slice\" names a slice; a container stands in a scope"},
      {systemd, "a:b:c", "error: linux.cgroupsPath: \"a\" is no name of a slice"},
      {systemd, "a.slice:b:c/d", "error: linux.cgroupsPath: \"a.slice:b:c/d\" makes no name of a unit: \"b-c/d.scope\""},
      {Manager::disabled, "/a/b", ""},
  };
  for (const Row& row : rows) EXPECT_EQ(place_text(plan_place(row.manager, row.path, "web", row.is_user)), row.want) << row.path;
  EXPECT_FALSE(plan_place(fs, "/" + std::string(256, 'a'), "web", false));
  EXPECT_FALSE(plan_place(systemd, ":" + std::string(256, 'a') + ":b", "web", false));
}

TEST(Place, of_a_slice_is_in_those_its_name_tells) {
  EXPECT_EQ(*slice_path("a.slice"), "/a.slice");
  EXPECT_EQ(*slice_path("a-b-c.slice"), "/a.slice/a-b.slice/a-b-c.slice");
  EXPECT_EQ(*slice_path("-.slice"), "");
  for (const char* wrong : {"", ".slice", "a", "a/b.slice", "-a.slice", "a--b.slice", "a-.slice"})
    EXPECT_FALSE(slice_path(wrong)) << wrong;
}

TEST(Place, knows_its_managers) {
  for (const char* name : {"cgroupfs", "systemd", "disabled"}) EXPECT_STREQ(name_of(*manager_of(name)), name);
  EXPECT_EQ(manager_of("docker").error().text(), "cgroup manager \"docker\": there are cgroupfs, systemd and disabled");
}

TEST(Hierarchy, reads_what_proc_says) {
  const char* hybrid = "9:name=systemd:/\n8:pids:/\n7:blkio:/\n3:cpu,cpuacct:/\n0::/a/b\n";
  EXPECT_EQ(*path_in(hybrid), "/a/b");
  EXPECT_EQ(held_by_v1(hybrid), (std::vector<std::string>{"pids", "io", "cpu", "cpuacct"}));
  EXPECT_TRUE(held_by_v1("0::/user.slice\n").empty());
  EXPECT_EQ(path_in("1:name=systemd:/\n").error().code(), Code::unsupported);
}

TEST(Hierarchy, is_found_in_the_table_of_mounts) {
  const std::string whole = "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
  const std::string part = "50 31 0:38 /a/b /srv/root/sys/fs/cgroup ro shared:1 - cgroup2 cgroup2 rw\n";
  const std::string other = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup2 rw,cpu\n";
  EXPECT_EQ(*mount_point_in(other + part + whole), "/sys/fs/cgroup/unified");
  EXPECT_EQ(*mount_point_in(part), "/srv/root/sys/fs/cgroup");
  EXPECT_EQ(mount_point_in(other + "\n - cgroup2 \n").error().code(), Code::unsupported);
}

// ---- properties for systemd ----

TEST(Unit, is_told_the_limits_it_has_words_for) {
  oci::Resources in;
  in.memory_limit_bytes = 100;
  in.memory_swap_bytes = 150;
  in.memory_reservation_bytes = -1;
  in.cpu_shares = 1024;
  in.cpu_quota_us = 12345;
  in.pids_limit = 0;
  in.cpuset_cpus = "0-2,9";
  in.cpuset_mems = "0";
  in.block_io.weight = 1000;
  in.block_io.read_bps = {{8, 0, 1}};
  in.unified = {{"memory.oom.group", "1"}, {"memory.high", "max"}, {"hugetlb.2MB.max", "0"}};
  const uint64_t infinity = ~uint64_t(0);
  EXPECT_EQ(limit_properties(*settings(in)), (std::vector<Property>{
                                                 {"MemorySwapMax", uint64_t(50), true},
                                                 {"MemoryMax", uint64_t(100), true},
                                                 {"MemoryLow", infinity, true},
                                                 {"CPUWeight", uint64_t(100), true},
                                                 {"CPUQuotaPeriodUSec", uint64_t(100000), true},
                                                 {"CPUQuotaPerSecUSec", uint64_t(130000), true},  // rounded to whole percents
                                                 {"AllowedCPUs", std::vector<uint8_t>{7, 2}, true},
                                                 {"AllowedMemoryNodes", std::vector<uint8_t>{1}, true},
                                                 {"TasksMax", uint64_t(1), true},
                                                 {"IOWeight", uint64_t(10000), true},
                                                 {"MemoryHigh", infinity, true},
                                                 {"OOMPolicy", std::string("kill"), true},
                                             }));
  in = {};
  in.cpu_quota_us = -1;
  in.cpu_idle = 1;
  EXPECT_EQ(limit_properties(*settings(in)), (std::vector<Property>{{"CPUWeight", uint64_t(0), true},
                                                                    {"CPUQuotaPeriodUSec", uint64_t(100000), true},
                                                                    {"CPUQuotaPerSecUSec", infinity, true}}));
  in = {};
  in.unified["pids.max"] = "0";
  EXPECT_EQ(limit_properties(*settings(in)), (std::vector<Property>{{"TasksMax", uint64_t(1), true}}));
  in = {};
  in.unified = {{"cpu.max", "x"}, {"cpuset.cpus", "3-1"}, {"cpuset.mems", "99999999"}, {"memory.max", "-1"}};
  EXPECT_TRUE(limit_properties(*settings(in)).empty());  // the kernel reports the errors in them
}

TEST(Unit, takes_properties_from_annotations) {
  auto parse = [](const char* name, const char* text) { return parse_property(name, text); };
  EXPECT_EQ(*parse("TimeoutStopUSec", "uint64 123"), (Property{"TimeoutStopUSec", uint64_t(123)}));
  EXPECT_EQ(*parse("TimeoutStopSec", "uint64 5"), (Property{"TimeoutStopUSec", uint64_t(5000000)}));
  EXPECT_EQ(*parse("TimeoutStopSec", "5"), (Property{"TimeoutStopUSec", uint64_t(5000000)}));
  EXPECT_EQ(*parse("CollectMode", "'inactive-or-failed'"), (Property{"CollectMode", std::string("inactive-or-failed")}));
  EXPECT_EQ(*parse("Description", "\"it's\\\"\""), (Property{"Description", std::string("it's\"")}));
  EXPECT_EQ(*parse("A", " true "), (Property{"A", true}));
  EXPECT_EQ(*parse("A", "7"), (Property{"A", int32_t(7)}));
  EXPECT_EQ(*parse("A", "int32 -7"), (Property{"A", int32_t(-7)}));
  EXPECT_EQ(*parse("A", "int64 -7"), (Property{"A", int64_t(-7)}));
  EXPECT_EQ(*parse("A", "uint32 7"), (Property{"A", uint32_t(7)}));
  EXPECT_EQ(*parse("A", "['a.service', \"b\"]"), (Property{"A", std::vector<std::string>{"a.service", "b"}}));
  EXPECT_EQ(*parse("A", "[]"), (Property{"A", std::vector<std::string>{}}));
  for (const char* wrong :
       {"", "yes", "'a", "['a' 'b']", "['a',]", "[a]", "uint64 x", "uint32 -1", "int32 99999999999", "'a' b", "byte 1"})
    EXPECT_FALSE(parse("A", wrong)) << wrong;
  EXPECT_FALSE(parse("TimeoutStopSec", "int64 -1"));
  EXPECT_FALSE(parse("TimeoutStopSec", "uint64 99999999999999999"));
  EXPECT_FALSE(parse("A B", "1"));
  EXPECT_FALSE(parse("", "1"));
}

TEST(Unit, is_a_scope_of_its_slice_around_the_process) {
  Place place = *plan_place(Manager::systemd, "machine.slice:libpod:1a", "1a", false);
  std::map<std::string, std::string> annotations = {{"org.systemd.property.CollectMode", "'inactive'"}, {"io.other", "1"}};
  auto got = *scope_properties(place, 42, "container 1a", {}, annotations);
  auto value_of = [&](const char* name) {
    std::vector<Property::Value> out;
    for (const Property& each : got)
      if (each.name == name) out.push_back(each.value);
    return out;
  };
  using Values = std::vector<Property::Value>;
  EXPECT_EQ(value_of("Slice"), Values{std::string("machine.slice")});
  EXPECT_EQ(value_of("PIDs"), Values{std::vector<uint32_t>{42}});
  EXPECT_EQ(value_of("Delegate"), Values{true});
  EXPECT_EQ(value_of("CollectMode"), Values{std::string("inactive")});  // set only once
  EXPECT_TRUE(value_of("io.other").empty());
  annotations["org.systemd.property.A"] = "?";
  EXPECT_EQ(scope_properties(place, 42, "", {}, annotations).error().text(),
            "annotations.org.systemd.property.A: \"?\" is no value: true, 'text', ['a', 'b'], 5, uint64 5");
  // CVE-2024-3154: an annotation can change neither the cgroup nor the limits.
  const std::vector<Setting> limit = {{"memory.max", "1000", "linux.resources.memory.limit"}};
  for (const char* name : {"Slice", "PIDs", "Delegate", "MemoryMax"}) {
    annotations = {{std::string("org.systemd.property.") + name, "uint64 5"}};
    auto refused = scope_properties(place, 42, "", limit, annotations);
    ASSERT_FALSE(refused.ok()) << name;
    EXPECT_EQ(refused.error().text(),
              std::string("annotations.org.systemd.property.") + name + ": it is settled by the rest of the configuration");
  }
}

}  // namespace
}  // namespace coracle::cgroup
