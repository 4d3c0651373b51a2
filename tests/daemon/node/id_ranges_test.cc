// SPDX-License-Identifier: Apache-2.0
// Id ranges for pods with user namespaces: free ranges are found, no two pods share one, and a pod keeps its range across
// restarts of the daemon.
#include "daemon/node/id_ranges.h"

#include <sys/stat.h>
#include <unistd.h>

#include "runtime/sys/file.h"
#include "tests/daemon/node/machine.h"

namespace coracle::node {
namespace {

constexpr uint32_t kFirst = kFirstPodId, kStep = kPodIds;

TEST(IdRanges, reads_subordinate_ids) {
  EXPECT_EQ(parse_subordinate_ids("pi:100000:65536\n# no\n1001:165536:1\nbad\na:b:c\nx:1:0\ny:4294967295:4294967295\n"),
            (std::vector<IdSpan>{{100000, 165536}, {165536, 165537}, {4294967295u, 8589934590u}}));
}

TEST(IdRanges, finds_the_lowest_that_nobody_has) {
  struct Row {
    const char* name;
    std::map<std::string, uint32_t> taken;
    std::vector<IdSpan> others;
    std::optional<uint32_t> want;
  };
  for (const Row& row : {
           Row{"the first", {}, {}, kFirst},
           Row{"the next", {{"a", kFirst}}, {}, kFirst + kStep},
           Row{"a gap", {{"a", kFirst}, {"c", kFirst + 2 * kStep}}, {}, kFirst + kStep},
           Row{"users below", {}, {{100000, 165536}}, kFirst},
           Row{"users in the way", {}, {{kFirst + 5, kFirst + 6}}, kFirst + kStep},
           Row{"users who begin below", {}, {{100000, kFirst + 1}}, kFirst + kStep},
           Row{"users up to the edge", {}, {{100000, kFirst}}, kFirst},
           Row{"users behind a pod", {{"a", kFirst}}, {{kFirst + kStep + 9, kFirst + 3 * kStep + 1}}, kFirst + 4 * kStep},
           Row{"users with all of them", {}, {{0, 4294967296}}, std::nullopt},
           Row{"users with all but the last", {}, {{0, kLastPodId + 1 - kStep}}, kLastPodId + 1 - kStep},
           Row{"users with the last", {}, {{0, kLastPodId + 2 - kStep}}, std::nullopt},
       })
    EXPECT_EQ(find_free_range(row.taken, row.others), row.want) << row.name;
}

constexpr const char* kOwn = R"("hostUsers":false,"containers":[{"name":"a","image":"web:1"}])";

class IdRangesTest : public Machine {
 protected:
  uint32_t range_of(const std::string& name) const {
    auto spec = runtime_.sandbox_spec(uid(name));
    if (!spec || spec->uid_mappings.size() != 1) return 0;
    EXPECT_EQ(spec->uid_mappings, spec->gid_mappings);
    EXPECT_EQ(spec->uid_mappings[0].container_id, 0u);
    EXPECT_EQ(spec->uid_mappings[0].size, kStep);
    return spec->uid_mappings[0].host_id;
  }
  void remove_pod(const std::string& name) {
    ASSERT_TRUE(client_.remove(kPod, {"default", name}, {.grace_period_seconds = 0}));
    settle();
    advance(std::chrono::seconds(40));
  }
};

TEST_F(IdRangesTest, every_pod_has_its_own_until_it_is_gone) {
  boot();
  put_pod(kOwn, "one");
  put_pod(kOwn, "two");
  put_pod(R"("containers":[{"name":"a","image":"web:1"}])", "plain");
  put_pod(R"("hostUsers":true,"containers":[{"name":"a","image":"web:1"}])", "host");
  EXPECT_EQ(range_of("one"), kFirst);
  EXPECT_EQ(range_of("two"), kFirst + kStep);
  EXPECT_EQ(range_of("plain"), 0u);
  EXPECT_EQ(range_of("host"), 0u);
  remove_pod("one");
  put_pod(kOwn, "three");
  EXPECT_EQ(range_of("three"), kFirst) << "is free again";
}

TEST_F(IdRangesTest, a_daemon_that_comes_later_knows_them) {
  boot();
  put_pod(kOwn, "one");
  const std::string one = uid("one");
  boot();
  put_pod(kOwn, "two");
  EXPECT_EQ(range_of("two"), kFirst + kStep);
  // If the file is lost or damaged, the sandbox's own record counts.
  const std::string file = config_.state_dir + "/" + one + "/user-ids";
  for (const char* spoilt : {"", "{\"first\":1}", "{\"first\":786432}"}) {
    std::ofstream(file) << spoilt;
    boot();
    IdRanges ranges(config_);
    ranges.load(*runtime_.sandboxes());
    EXPECT_EQ(*ranges.take(one), kFirst) << spoilt;
  }
}

TEST_F(IdRangesTest, a_new_sandbox_of_the_pod_has_the_same) {
  boot();
  put_pod(kOwn, "zero");
  put_pod(kOwn, "one");
  remove_pod("zero");
  runtime_.kill_pause(uid("one"));
  settle();
  advance(std::chrono::seconds(40));
  EXPECT_EQ(range_of("one"), kFirst + kStep);
}

// A pod that was started without a user namespace by an older daemon keeps the host's users.
TEST_F(IdRangesTest, a_sandbox_without_users_of_its_own_stays_so) {
  boot();
  put_pod(R"("containers":[{"name":"a","image":"web:1"}])", "old");
  agent_.reset();
  put_pod(kOwn, "old");
  boot();
  runtime_.exit(uid("old"), "a-0", 1);
  advance(std::chrono::seconds(40));
  auto started = spec_of("a-1", "old");
  ASSERT_TRUE(started);
  for (const auto& mount : started->spec.mounts)
    EXPECT_EQ(std::count(mount.options.begin(), mount.options.end(), "idmap"), 0) << mount.destination;
  runtime_.kill_pause(uid("old"));
  settle();
  advance(std::chrono::seconds(40));
  EXPECT_EQ(range_of("old"), kFirst) << "and gets them with the next one";
}

TEST_F(IdRangesTest, a_pod_that_has_ended_gives_its_own_back) {
  boot();
  runtime_.script("a", {.exits_at_once = 0});
  put_pod(R"("restartPolicy":"Never",)" + std::string(kOwn), "done");
  advance(std::chrono::seconds(5));
  EXPECT_EQ(phase("done"), "Succeeded");
  EXPECT_FALSE(sys::exists(config_.state_dir + "/" + uid("done") + "/user-ids"));
  put_pod(kOwn, "next");
  EXPECT_EQ(range_of("next"), kFirst);
}

TEST_F(IdRangesTest, users_of_the_machine_keep_theirs) {
  std::ofstream(config_.host_root + "/etc/subuid") << "pi:100000:65536\npat:524288:65536\n";
  std::ofstream(config_.host_root + "/etc/subgid") << "pat:589824:65536\n";
  boot();
  put_pod(kOwn, "one");
  EXPECT_EQ(range_of("one"), kFirst + 2 * kStep);
}

TEST_F(IdRangesTest, none_left_is_told) {
  std::ofstream(config_.host_root + "/etc/subuid") << "all:0:4294967295\n";
  boot();
  put_pod(kOwn, "one");
  EXPECT_FALSE(runtime_.sandbox_spec(uid("one")));
  EXPECT_TRUE(events_.has("W FailedCreatePodSandBox Failed to create pod sandbox: no range of 65536 user ids is free"));
}

TEST_F(IdRangesTest, what_lies_in_memory_belongs_to_the_pod_s_users) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  config_.mounts.tmpfs = [](const std::string& directory, Bytes, unsigned) { return sys::make_directories(directory); };
  config_.mounts.unmount = [](const std::string&) { return Result<void>(); };
  boot();
  client_.put(kConfigMap,
              R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"c"},"data":{"k":"v"}})");
  settle();
  put_pod(R"("hostUsers":false,"securityContext":{"fsGroup":7},"containers":[{"name":"a","image":"web:1","volumeMounts":[
          {"name":"c","mountPath":"/c"},{"name":"m","mountPath":"/m"},{"name":"d","mountPath":"/d"}]}],"volumes":[
          {"name":"c","configMap":{"name":"c","items":[{"key":"k","path":"deep/k"}]}},{"name":"m","emptyDir":{"medium":"Memory"}},{"name":"d","emptyDir":{}}])");
  auto owner = [](const std::string& path) {
    struct stat info {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
    return std::pair(info.st_uid, info.st_gid);
  };
  const std::string memory = config_.memory_dir + "/" + uid() + "/c", state = config_.state_dir + "/" + uid() + "/volumes/";
  EXPECT_EQ(owner(memory), std::pair(kFirst, kFirst));
  EXPECT_EQ(owner(memory + "/deep"), std::pair(kFirst, kFirst));
  EXPECT_EQ(owner(memory + "/deep/k"), std::pair(kFirst, kFirst + 7));
  EXPECT_EQ(owner(state + "m"), std::pair(kFirst, kFirst + 7));
  EXPECT_EQ(owner(state + "d"), std::pair(0u, 7u)) << "what is on the disk is id-mapped";
  auto started = spec_of("a-0");
  ASSERT_TRUE(started);
  for (const auto& mount : started->spec.mounts) {
    bool is_mapped = std::find(mount.options.begin(), mount.options.end(), "idmap") != mount.options.end();
    EXPECT_EQ(is_mapped,
              mount.destination == "/d" || mount.destination.starts_with("/etc/") || mount.destination == "/dev/termination-log")
        << mount.destination;
  }
}

}  // namespace
}  // namespace coracle::node
