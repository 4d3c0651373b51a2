// SPDX-License-Identifier: Apache-2.0
// Pods that exceed their storage limits.
#include "daemon/node/volume/storage_limits.h"

#include <future>
#include <optional>

#include "daemon/node/task_pool.h"
#include "daemon/node/volume/volume_watch.h"
#include "tests/daemon/node/machine.h"

namespace coracle::node {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

json::value pod_of(const std::string& spec) { return *parse_json(R"({"spec":{)" + spec + "}}"); }

std::string limited(const std::string& name, const std::string& limit) {
  return R"({"name":")" + name + R"(","resources":{"limits":{"ephemeral-storage":")" + limit + R"("}}})";
}

TEST(StorageExcess, is_worded_as_kubelets) {
  const std::string volumes = R"("volumes":[{"name":"v","emptyDir":{"sizeLimit":"1Mi"}},{"name":"w","emptyDir":{}}])";
  struct Row {
    const char* name;
    std::string spec;
    StorageUse use;
    std::string want;
  };
  const Row rows[] = {
      {"within", volumes, {{{"v", 1_MiB}, {"w", 9_MiB}}, {}, 10_MiB}, ""},
      {"a volume",
       volumes,
       {{{"v", Bytes((1 << 20) + 1)}}, {}, 2_MiB},
       "Usage of EmptyDir volume \"v\" exceeds the limit \"1Mi\". "},
      {"limit 0 is none", R"("volumes":[{"name":"v","emptyDir":{"sizeLimit":"0"}}])", {{{"v", 9_MiB}}, {}, 9_MiB}, ""},
      {"the pod",
       R"("containers":[)" + limited("a", "1Mi") + "," + limited("b", "1Mi") + "]",
       {{}, {{"a", 1_MiB}, {"b", 1_MiB}}, 3_MiB},
       "Pod ephemeral local storage usage exceeds the total limit of containers 2Mi. "},
      {"a container",
       R"("containers":[)" + limited("a", "1Mi") + "," + limited("b", "8Mi") + "]",
       {{}, {{"a", 2_MiB}, {"b", 1_MiB}}, 3_MiB},
       "Container a exceeded its local ephemeral storage limit \"1Mi\". "},
      {"an init container has the place of those after it",
       R"("initContainers":[)" + limited("i", "4Mi") + R"(],"containers":[)" + limited("a", "1Mi") + "]",
       {{}, {{"i", 3_MiB}}, 3_MiB},
       ""},
  };
  for (const Row& row : rows) EXPECT_EQ(storage_excess(pod_of(row.spec), row.use), row.want) << row.name;
}

TEST(StorageLimited, only_what_is_on_the_disk_and_has_a_limit) {
  EXPECT_TRUE(has_storage_limits(pod_of(R"("volumes":[{"name":"v","emptyDir":{"sizeLimit":"1Mi"}}])")));
  EXPECT_TRUE(has_storage_limits(pod_of(R"("containers":[)" + limited("a", "1Mi") + "]")));
  EXPECT_FALSE(has_storage_limits(pod_of(R"("volumes":[{"name":"v","emptyDir":{}}],"containers":[{"name":"a"}])")));
  EXPECT_FALSE(has_storage_limits(pod_of(R"("volumes":[{"name":"v","emptyDir":{"medium":"Memory","sizeLimit":"1Mi"}}])")));
}

TEST(Pace, gives_a_walk_a_fiftieth_of_the_time) {
  Pace<int> pace;
  auto is_due = [&](seconds now) {
    std::map<int, bool> all{{1, true}};
    pace.keep_due(all, SteadyTime(now));
    return !all.empty();
  };
  EXPECT_TRUE(is_due(seconds(0)));
  EXPECT_FALSE(is_due(seconds(1000))) << "it is under way";
  pace.note_end(1, SteadyTime(seconds(1000)), SteadyTime(seconds(1002)), kStoragePeriod);
  EXPECT_FALSE(is_due(seconds(1101)));
  EXPECT_TRUE(is_due(seconds(1102)));
}

class StorageTest : public Machine {
 protected:
  static void fill(const std::string& file, size_t bytes) {
    std::ofstream out(file);
    out << std::string(bytes, 'x');
    out.close();
    ASSERT_EQ(fs::file_size(file), bytes);
  }
  void look() {
    agent_->look_at_storage();
    while (walks_.run_one()) {
    }
    settle();
  }
  std::string volume(const std::string& name = "v") const { return config_.state_dir + "/" + uid() + "/volumes/" + name; }
  std::string message() const { return std::string(get_string(pod(), "status.message")); }
};

TEST_F(StorageTest, a_volume_that_grows_over_its_limit_ends_its_pod) {
  runtime_.script("a", {.ignores_signals = true});
  boot();
  put_pod(
      R"("terminationGracePeriodSeconds":600,"containers":[{"name":"a","image":"web:1","volumeMounts":[{"name":"v","mountPath":"/v"}]}],
         "volumes":[{"name":"v","emptyDir":{"sizeLimit":"1Mi"}}])");
  look();
  EXPECT_EQ(phase(), "Running");
  fill(volume() + "/file", 3 << 20);
  look();
  EXPECT_EQ(phase(), "Running") << "it was measured a moment ago";
  clock_.advance(kStorageLook);
  look();
  EXPECT_EQ(phase(), "Running") << "not at every look";
  clock_.advance(kStorageLook);
  look();
  EXPECT_TRUE(events_.has("W Evicted Usage of EmptyDir volume \"v\" exceeds the limit \"1Mi\". "));
  advance(seconds(1));  // less than the pod's own ten minutes
  EXPECT_EQ(phase(), "Failed");
  EXPECT_EQ(get_string(pod(), "status.reason"), "Evicted");
  EXPECT_EQ(message(), "Usage of EmptyDir volume \"v\" exceeds the limit \"1Mi\". ");
  EXPECT_FALSE(fs::exists(volume())) << "and gives the disk back";
}

TEST_F(StorageTest, counts_logs_writable_layers_and_termination_logs) {
  const std::string layer = directory_ + "/layer";
  fs::create_directories(layer);
  fs::create_directories(config_.state_dir);  // the node's capacity is that of its disk
  boot();
  for (const std::string& what : {std::string("logs"), std::string("layer"), std::string("message"), std::string("hosts")}) {
    put_pod(R"("containers":[{"name":"a","image":"web:1","resources":{"limits":{"ephemeral-storage":"1Mi"}}}])");
    ASSERT_EQ(phase(), "Running") << what;
    runtime_.set_writable_layer(uid(), "a-0", layer);
    look();
    ASSERT_EQ(phase(), "Running") << what;
    const std::string state = config_.state_dir + "/" + uid();
    if (what == "logs") fill(config_.log_dir + "/default_web_" + uid() + "/a/0.log", 2 << 20);
    if (what == "layer") fill(layer + "/file", 2 << 20);
    if (what == "message") fill(state + "/containers/a/0-message", 2 << 20);
    if (what == "hosts") fill(state + "/etc-hosts", 2 << 20);
    clock_.advance(seconds(10));
    look();
    EXPECT_EQ(get_string(pod(), "status.reason"), "Evicted") << what;
    fs::remove(layer + "/file");
    ASSERT_TRUE(client_.remove(kPod, {"default", "web"}, {}));
    settle();
  }
}

TEST_F(StorageTest, pods_without_limits_are_not_measured) {
  boot();
  put_pod(R"("containers":[{"name":"a","image":"web:1"}],"volumes":[{"name":"v","emptyDir":{}}])");
  agent_->look_at_storage();
  EXPECT_TRUE(walks_.queued->empty());
}

TEST_F(StorageTest, a_critical_pod_is_never_evicted) {
  boot();
  put_pod(
      R"("priority":2000001000,"containers":[{"name":"a","image":"web:1"}],"volumes":[{"name":"v","emptyDir":{"sizeLimit":"1Mi"}}])");
  agent_->look_at_storage();
  EXPECT_TRUE(walks_.queued->empty());
}

class WatchTest : public StorageTest {
 protected:
  WatchTest() { fs::create_directories(place_); }
  void look() {
    agent_->look_at_storage();
    while (walks_.run_one()) {
    }
    settle();
  }
  size_t warnings() const {
    auto all = events_.all();
    return size_t(std::count_if(all.begin(), all.end(), [](const auto& each) { return each.starts_with("W SizeExceeded"); }));
  }
  const std::string place_ = directory_ + "/volumes/default_data_uid-data";
};

TEST_F(WatchTest, a_volume_that_nothing_holds_to_its_size_is_watched) {
  boot();
  put_directory_volume(place_, true, "1Mi");
  fill(place_ + "/file", 1 << 18);
  look();
  EXPECT_TRUE(walks_.queued->empty()) << "no pod has it";
  put_claim_user();
  look();
  EXPECT_EQ(warnings(), 0u);
  auto use = agent_->volumes();
  ASSERT_EQ(use.size(), 1u);
  EXPECT_EQ(use[0].capacity, 1_MiB);
  EXPECT_GE(use[0].used.count, 1 << 18);
  fill(place_ + "/file", 2 << 20);
  advance(kVolumePeriod / 2 - kStoragePeriod);
  look();
  EXPECT_EQ(warnings(), 0u) << "once a minute";
  advance(kVolumePeriod);
  look();
  EXPECT_EQ(warnings(), 1u);
  EXPECT_TRUE(events_.has("more than its 1Mi, and nothing holds it to that"));
  EXPECT_EQ(agent_->volumes()[0].available, Bytes(0));
  advance(kVolumePeriod);
  look();
  EXPECT_EQ(warnings(), 1u) << "told once";
}

TEST_F(WatchTest, what_people_made_is_not_watched) {
  boot();
  put_directory_volume(place_, false, "1Mi");
  fill(place_ + "/file", 2 << 20);
  put_claim_user();
  look();
  EXPECT_EQ(warnings(), 0u);
}

// Volumes of claims whose names are those of their disks; the one named "sick" hangs.
struct SickDirectories : volume::DiskDirectories {
  using DiskDirectories::DiskDirectories;
  Result<std::optional<Held>> hold(const std::string& path, Bytes) override {
    if (!path.starts_with("/sick/")) looked_at.set_value();
    else hung.get_future().wait();
    return std::optional<Held>(Held{});
  }
  std::promise<void> looked_at, hung;
};

TEST_F(WatchTest, a_disk_that_hangs_holds_only_its_own_volumes) {
  auto object = [](const Kind& kind, const std::string& text) { return MUST(Object::make(kind, MUST(parse_json(text)))); };
  PodTable table;
  for (const std::string name : {"sick", "well"})
    table.change(name, [&](RestingPod& pod) {
      pod.object =
          object(kPod, R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name + R"(","namespace":"default","uid":")" +
                           name + R"("},"spec":{"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":")" + name +
                           R"("}}]}})")
              ->at_rest();
    });
  auto claim = [&](const Key& key) {
    return object(kPersistentVolumeClaim,
                  R"({"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":")" + key.name +
                      R"(","namespace":"default","uid":"uid","annotations":{"pv.kubernetes.io/bind-completed":"yes"}},"spec":{
      "volumeName":")" +
                      key.name + R"("},"status":{"phase":"Bound"}})");
  };
  auto volume = [&](std::string_view name) {
    return object(kPersistentVolume,
                  R"({"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":")" + std::string(name) +
                      R"(","uid":"uid"},"spec":{"capacity":{"storage":"1Gi"},"claimRef":{"uid":"uid"},"local":{"path":"/)" +
                      std::string(name) + R"(/one"}}})");
  };
  SickDirectories directories({}, [](const auto&) { return false; });
  std::optional<TaskPool> pool;
  VolumeWatch watch({.table = table,
                     .storage = {claim, volume},
                     .events = EventRecorder(events_, "kubelet"),
                     .clock = clock_,
                     .directories = directories,
                     .answers = [](const auto&) { return true; },
                     .elsewhere = [&](Task task, const std::string& owner) { pool->post(std::move(task), owner); },
                     .is_ours = [](const auto&) { return true; }});
  pool.emplace(ThreadName("pool"), 2, 1);
  watch.look();
  EXPECT_EQ(directories.looked_at.get_future().wait_for(seconds(60)), std::future_status::ready);
  directories.hung.set_value();
  pool.reset();  // its tasks use the others
}

}  // namespace
}  // namespace coracle::node
