// SPDX-License-Identifier: Apache-2.0
// Places of the host that do not answer: their pods wait and say so, and no other pod does.
#include "daemon/node/volume/slow_places.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <set>

#include "tests/daemon/node/machine.h"

namespace coracle::node {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Places that hang, as the kernel lets a thread hang.
class Hanging {
 public:
  void look_at(const std::string& path) {
    state_.with([&](State& state) { ++state.asked[path], ++state.inside; });
    state_.notify();
    state_.wait(
        {}, [&](const State& state) { return !state.hanging.contains(path); }, [](State& state) { --state.inside; });
    state_.notify();
  }
  void hang(const std::string& path) {
    state_.with([&](State& state) { state.hanging.insert(path); });
  }
  void release() {
    state_.with([](State& state) { state.hanging.clear(); });
    state_.notify();
    state_.wait(
        {}, [](const State& state) { return state.inside == 0; }, [](State&) {});
  }
  // The threads that hang get there at some time.
  void wait_for(int inside) {
    state_.wait(
        {}, [&](const State& state) { return state.inside >= inside; }, [](State&) {});
  }
  int inside() {
    return state_.with([](const State& state) { return state.inside; });
  }
  int asked(const std::string& path) {
    return state_.with([&](State& state) { return state.asked[path]; });
  }

 private:
  struct State {
    std::set<std::string> hanging;
    std::map<std::string, int> asked;
    int inside = 0;
  };
  Guarded<State> state_;
};

// Whether a pod was woken. Shared with the threads of SlowPlaces, which nobody waits for.
class Woken {
 public:
  std::function<void(const std::string&)> by(const std::string& uid) const {
    return [count = count_, uid](const std::string& woken) {
      count->with([&](int& all) { all += woken == uid; });
      count->notify();
    };
  }
  void wait() {
    count_->wait(
        {}, [](int all) { return all > 0; }, [](int) {});
  }

 private:
  std::shared_ptr<Guarded<int>> count_ = std::make_shared<Guarded<int>>(0);
};

class SlowPlacesTest : public Machine {
 protected:
  SlowPlacesTest() {
    config_.mounts.look_at = [hanging = hanging_](const std::string& path) { hanging->look_at(path); };
    config_.place_patience = milliseconds(20);
  }
  ~SlowPlacesTest() override { hanging_->release(); }
  std::string host(const std::string& path) const { return config_.host_root + path; }
  void put(const std::string& name, const std::string& path) {
    put_pod(
        R"("containers":[{"name":"a","image":"web:1","volumeMounts":[{"name":"v","mountPath":"/v"}]}],"volumes":[{"name":"v",
        "hostPath":{"path":")" +
            path + "\"}}]",
        name);
  }
  // Syncs until it holds: calls end on other threads, perhaps later than a worker waits for them.
  bool comes_true(const std::function<bool()>& holds) {
    for (auto deadline = std::chrono::steady_clock::now() + seconds(60); std::chrono::steady_clock::now() < deadline;) {
      if (holds()) return true;
      settle();
      std::this_thread::yield();
    }
    return false;
  }
  bool comes_to_run(const std::string& name = "web") {
    return comes_true([&] { return state("a", name) == "Running"; });
  }

  std::shared_ptr<Hanging> hanging_ = std::make_shared<Hanging>();
};

TEST_F(SlowPlacesTest, a_pod_waits_for_a_place_that_hangs_and_others_do_not) {
  hanging_->hang(host("/mnt/nas"));
  boot();
  put("slow", "/mnt/nas");
  EXPECT_EQ(state("a", "slow"), "Waiting ContainerCreating");
  EXPECT_FALSE(events_.has("FailedMount"));
  put("quick", "/srv");
  EXPECT_TRUE(comes_to_run("quick"));
  advance(seconds(2));
  EXPECT_TRUE(events_.has("FailedMount MountVolume.SetUp failed for volume \"v\" : " + host("/mnt/nas") + " does not answer"));
  advance(seconds(20));
  hanging_->wait_for(1);
  EXPECT_EQ(hanging_->asked(host("/mnt/nas")), 1) << "one thread hangs, however often the pod is synced";
  EXPECT_EQ(state("a", "slow"), "Waiting ContainerCreating");
  hanging_->release();
  EXPECT_TRUE(comes_to_run("slow"));
}

TEST_F(SlowPlacesTest, the_threads_that_hang_are_limited_and_an_event_says_so) {
  boot();
  constexpr int kPods = int(kSlowCallsOfOneMax) + 2;
  for (int i = 0; i < kPods; ++i) {
    std::string path = "/mnt/nas/" + std::to_string(i);
    hanging_->hang(host(path));
    put("p" + std::to_string(i), path);
  }
  advance(seconds(2));
  hanging_->wait_for(int(kSlowCallsOfOneMax));
  int asked = 0;
  for (int i = 0; i < kPods; ++i) asked += hanging_->asked(host("/mnt/nas/" + std::to_string(i)));
  EXPECT_EQ(asked, int(kSlowCallsOfOneMax));
  EXPECT_TRUE(events_.has("was not asked: 4 calls to "));
  put_pod(R"("containers":[{"name":"a","image":"web:1"}])", "none");
  EXPECT_EQ(state("a", "none"), "Running") << "who needs no place waits for none";
  hanging_->release();
  for (int i = 0; i < kPods; ++i) {
    advance(seconds(10));
    EXPECT_TRUE(comes_to_run("p" + std::to_string(i)));
  }
}

TEST_F(SlowPlacesTest, a_pod_whose_place_hangs_can_be_deleted) {
  hanging_->hang(host("/mnt/nas"));
  boot();
  put("slow", "/mnt/nas");
  MUST(client_.remove(kPod, {"default", "slow"}));
  settle();
  advance(seconds(60));
  EXPECT_FALSE(client_.find(kPod, {"default", "slow"}));
}

TEST_F(SlowPlacesTest, a_container_that_starts_again_waits_for_a_place_that_hangs_meanwhile) {
  boot();
  put("web", "/srv");
  ASSERT_TRUE(comes_to_run());
  advance(kSlowAgain);
  hanging_->hang(host("/srv"));
  runtime_.exit(uid(), "a-0", 1);
  settle();
  advance(seconds(30));
  EXPECT_NE(state(), "Running");
  EXPECT_TRUE(events_.has(host("/srv") + " does not answer"));
  hanging_->release();
  EXPECT_TRUE(comes_to_run());
}

TEST_F(SlowPlacesTest, a_volume_that_hangs_is_left_out_of_the_usage) {
  const std::string place = directory_ + "/disk";
  std::filesystem::create_directories(place);
  boot();
  put_directory_volume(place, false);
  put_claim_user();
  ASSERT_TRUE(comes_to_run());
  ASSERT_TRUE(comes_true([&] { return agent_->volumes().size() == 1; }));
  const int asked = hanging_->asked(place);
  hanging_->hang(place);
  EXPECT_TRUE(agent_->volumes().empty());
  EXPECT_TRUE(agent_->volumes().empty());
  hanging_->wait_for(1);
  EXPECT_EQ(hanging_->asked(place), asked + 1) << "one thread hangs, however often it is measured";
  hanging_->release();
  while (agent_->volumes().empty()) std::this_thread::yield();
}

TEST_F(SlowPlacesTest, a_volume_on_the_disk_of_the_pods_costs_no_thread) {
  const std::string place = directory_ + "/volumes/default_data_uid-data";
  std::filesystem::create_directories(place);
  std::filesystem::create_directories(config_.state_dir);
  boot();
  put_directory_volume(place);
  put_claim_user();
  EXPECT_EQ(state(), "Running");
  EXPECT_EQ(agent_->volumes().size(), 1u);
  EXPECT_EQ(hanging_->asked(place), 0);
}

TEST_F(SlowPlacesTest, a_volume_is_given_to_its_group_elsewhere) {
  const std::string place = directory_ + "/disk";
  std::filesystem::create_directories(place + "/inner");
  auto first = std::make_shared<std::atomic<bool>>(true);  // the place answers once, and the walk hangs
  config_.mounts.look_at = [hanging = hanging_, first](const std::string& path) {
    if (!first->exchange(false)) hanging->look_at(path);
  };
  hanging_->hang(place);
  boot();
  put_directory_volume(place, false);
  put_pod(R"("securityContext":{"fsGroup":4321},"containers":[{"name":"a","image":"web:1","volumeMounts":[{"name":"v","mountPath":
    "/v"}]}],"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"data"}}])");
  EXPECT_EQ(state(), "Waiting ContainerCreating");
  put_pod(R"("containers":[{"name":"a","image":"web:1"}])", "other");
  EXPECT_EQ(state("a", "other"), "Running");
  EXPECT_FALSE(events_.has("VolumePermissionChangeInProgress"));
  ASSERT_TRUE(comes_true([&] { return hanging_->inside() == 1; })) << "the walk";
  first->store(true);  // the place itself answers
  advance(seconds(30));
  EXPECT_TRUE(comes_true([&] {
    return events_.has("W VolumePermissionChangeInProgress Setting volume ownership for " + uid() +
                       "/volumes/kubernetes.io~local-volume/disk is taking longer than expected, consider using OnRootMismatch");
  }));
  hanging_->release();
  EXPECT_TRUE(comes_to_run());
  struct stat about {};
  ASSERT_EQ(::stat((place + "/inner").c_str(), &about), 0);
  EXPECT_TRUE(about.st_gid == 4321u || ::geteuid() != 0);
}

TEST_F(SlowPlacesTest, an_error_is_returned_once_and_the_call_is_tried_again) {
  SlowPlaces places({clock_, [](const std::string&) {}, seconds(30)});
  int calls = 0;
  auto fails = [&](const std::stop_token&) -> Result<void> { return ++calls, Error(Code::unavailable, "no"); };
  auto works = [&](const std::stop_token&) -> Result<void> { return ++calls, Result<void>(); };
  const SlowPlaces::Call call{"u", "walk", [] { return std::string("/"); }};
  EXPECT_EQ(places.call(call, true, fails).error().text(), "no");
  EXPECT_EQ(places.call(call, true, fails).error().text(), "no");
  EXPECT_EQ(calls, 2);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(MUST(places.call(call, true, works)).done);
  clock_.advance(seconds(60));
  EXPECT_TRUE(MUST(places.call(call, true, works)).done);
  EXPECT_EQ(calls, 3) << "what is kept is done once";
  places.forget_kept("u");
  EXPECT_TRUE(MUST(places.call(call, false, works)).done);
  EXPECT_TRUE(MUST(places.call(call, false, works)).done);
  EXPECT_EQ(calls, 4);
  clock_.advance(kSlowAgain);
  EXPECT_TRUE(MUST(places.call(call, false, works)).done);
  EXPECT_EQ(calls, 5) << "an old answer is asked for again";
}

TEST_F(SlowPlacesTest, an_error_that_nobody_waited_for_is_returned_by_the_next_call) {
  Woken woken;
  SlowPlaces places({clock_, woken.by("u"), milliseconds(1)});
  Guarded<bool> free(false);
  auto work = [&](const std::stop_token&) -> Result<void> {
    free.wait(
        {}, [](bool is_free) { return is_free; }, [](bool) {});
    return Error(Code::unavailable, "late");
  };
  const SlowPlaces::Call call{"u", "walk", [] { return std::string("/"); }};
  EXPECT_FALSE(MUST(places.call(call, true, work)).done);
  free.with([](bool& is_free) { is_free = true; }), free.notify();
  woken.wait();
  EXPECT_EQ(places.call(call, true, [](const std::stop_token&) { return Result<void>(); }).error().text(), "late");
  EXPECT_TRUE(places.call(call, true, [](const std::stop_token&) { return Result<void>(); })) << "once";
}

TEST_F(SlowPlacesTest, a_walk_of_a_pod_that_ends_is_stopped) {
  Woken woken;
  SlowPlaces places({clock_, woken.by("u"), milliseconds(1)});
  auto walk = [](std::stop_token stop) -> Result<void> {
    Guarded<bool> never(false);
    never.wait(
        stop, [](bool) { return false; }, [](bool) {});
    return Error(Code::cancelled, "stopped");
  };
  EXPECT_FALSE(MUST(places.call({"u", "walk", [] { return std::string("/"); }}, true, walk)).done);
  EXPECT_FALSE(places.is_stopping("other"));
  EXPECT_TRUE(places.is_stopping("u"));
  woken.wait();
  EXPECT_FALSE(places.is_stopping("u"));
}

TEST_F(SlowPlacesTest, many_places_of_one_pod_that_hang_take_one_patience_of_its_worker) {
  constexpr int kPlaces = 40;
  constexpr milliseconds kPatience{500};
  config_.place_patience = kPatience;
  boot();
  std::string mounts, volumes;
  for (int i = 0; i < kPlaces; ++i) {
    const std::string name = "v" + std::to_string(i), path = "/mnt/nas/" + name, comma = i ? "," : "";
    hanging_->hang(host(path));
    mounts += comma + R"({"name":")" + name + R"(","mountPath":"/)" + name + "\"}";
    volumes += comma + R"({"name":")" + name + R"(","hostPath":{"path":")" + path + "\"}}";
  }
  const auto begin = std::chrono::steady_clock::now();
  put_pod(R"("containers":[{"name":"a","image":"web:1","volumeMounts":[)" + mounts + R"(]}],"volumes":[)" + volumes + "]");
  for (int i = 0; i < 5; ++i) advance(seconds(2));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kPlaces / 2 * kPatience);
  EXPECT_TRUE(events_.has("was not asked: 4 calls to "));
  hanging_->release();
  EXPECT_TRUE(comes_to_run());
}

TEST_F(SlowPlacesTest, what_hangs_behind_a_link_is_no_fault_of_the_disk_with_the_link) {
  std::filesystem::create_symlink("/proc", host("/data"));  // another mount, everywhere
  boot();
  for (size_t i = 0; i < kSlowCallsOfOneMax + 1; ++i) {
    const std::string path = "/data/" + std::to_string(i);
    hanging_->hang(host(path));
    put("p" + std::to_string(i), path);
  }
  advance(seconds(2));
  EXPECT_TRUE(events_.has("was not asked: 4 calls to /proc, or "));
  put("other", "/srv");
  EXPECT_TRUE(comes_to_run("other"));
}

// Lets works wait until it is opened.
struct Gate {
  Guarded<bool> is_open{false};
  Guarded<int> passed{0};
  void open_and_wait_for(int count) {
    is_open.with([](bool& open) { open = true; });
    is_open.notify();
    passed.wait(
        {}, [&](int all) { return all == count; }, [](int) {});
  }
};
SlowPlaces::Work work_behind(const std::shared_ptr<Gate>& gate) {
  return [gate](const std::stop_token&) -> Result<void> {
    gate->is_open.wait(
        {}, [](bool open) { return open; }, [](bool) {});
    gate->passed.with([](int& count) { ++count; });
    gate->passed.notify();
    return {};
  };
}

TEST_F(SlowPlacesTest, an_answer_that_came_too_late_is_not_the_one_of_the_next_call) {
  SlowPlaces places({clock_, [](const std::string&) {}, seconds(30)});
  const auto owner = [] { return std::string("/mnt/nas"); };
  auto late = std::make_shared<Gate>(), others = std::make_shared<Gate>();
  auto at_once = [&](const std::string& what, const std::shared_ptr<Gate>& gate) {
    return MUST(places.call({"", what, owner, SlowPlaces::Until()}, false, work_behind(gate))).done;
  };
  EXPECT_FALSE(at_once("/mnt/nas/late", late));
  for (size_t i = 1; i < kSlowCallsOfOneMax; ++i) EXPECT_FALSE(at_once(std::to_string(i), others));
  late->open_and_wait_for(1);
  auto quick = [](const std::stop_token&) { return Result<void>(); };
  EXPECT_TRUE(MUST(places.call({"", "quick", owner}, false, quick)).done) << "it has the thread of the one that came too late";
  clock_.advance(std::chrono::hours(1));
  EXPECT_FALSE(at_once("/mnt/nas/late", others)) << "it is asked again";
  others->open_and_wait_for(int(kSlowCallsOfOneMax));
}

TEST_F(SlowPlacesTest, who_has_waited_for_a_thread_already_does_not_wait_again) {
  SlowPlaces places({clock_, [](const std::string&) {}, std::chrono::hours(1)});  // who waits does so for ever
  const auto owner = [] { return std::string("/mnt/nas"); };
  auto gate = std::make_shared<Gate>();
  for (size_t i = 0; i < kSlowCallsOfOneMax + 1; ++i)
    EXPECT_FALSE(MUST(places.call({"u", std::to_string(i), owner, SlowPlaces::Until()}, false, work_behind(gate))).done);
  auto again = MUST(places.call({"u", std::to_string(kSlowCallsOfOneMax), owner}, false, work_behind(gate)));
  EXPECT_FALSE(again.done || again.runs);
  gate->open_and_wait_for(int(kSlowCallsOfOneMax));
}

}  // namespace
}  // namespace coracle::node
