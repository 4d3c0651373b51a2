// SPDX-License-Identifier: Apache-2.0
// NFS volumes: mounted in the background, retried, reported on failure, and unmounted with their pod.
#include <filesystem>
#include <set>

#include "tests/daemon/node/machine.h"

namespace coracle::node {
namespace {

using std::chrono::seconds;

class NfsTest : public Machine {
 protected:
  NfsTest() {
    config_.mounts.nfs = [this](const NfsShare& share, const std::string& directory, std::stop_token stop) -> Result<void> {
      if (stop.stop_requested()) return Error(Code::cancelled, "stopped");
      if (mount_error_) return *mount_error_;
      std::string text = share.server + ":" + share.path;
      for (const std::string& option : share.options) text += " " + option;
      if (mounted_.insert(directory).second) shares_.push_back(text);
      return {};
    };
    config_.mounts.server_answers = [this](const std::string& directory, std::stop_token) -> Result<void> {
      EXPECT_TRUE(mounted_.contains(directory));
      ++asked_;
      if (answer_error_) return *answer_error_;
      return {};
    };
    config_.mounts.unmount = [this](const std::string& directory) -> Result<void> {
      mounted_.erase(directory);
      return {};
    };
    config_.mounts.unmount_below = [this](const std::string& directory) -> Result<void> {
      std::erase_if(mounted_, [&](const std::string& place) { return place.starts_with(directory + "/"); });
      return {};
    };
  }
  void put(const std::string& volume = R"("nfs":{"server":"nas.lan","path":"/export"})") {
    put_pod(
        R"("containers":[{"name":"a","image":"web:1","volumeMounts":[{"name":"v","mountPath":"/v"}]}],"volumes":[{"name":"v",)" +
        volume + "}]");
  }
  bool see_to_one() {
    bool any = walks_.run_one();
    settle();
    return any;
  }
  std::string place() const { return config_.state_dir + "/" + uid() + "/volumes/v"; }

  std::set<std::string> mounted_;    // directories
  std::vector<std::string> shares_;  // "server:path options", as mounted
  int asked_ = 0;
  std::optional<Error> mount_error_, answer_error_;
};

TEST_F(NfsTest, a_share_is_mounted_elsewhere_while_its_pod_waits) {
  boot();
  put();
  EXPECT_EQ(state(), "Waiting ContainerCreating");
  EXPECT_FALSE(events_.has("FailedMount")) << "it is being mounted";
  EXPECT_TRUE(mounted_.empty());
  ASSERT_TRUE(see_to_one());
  EXPECT_EQ(state(), "Running");
  EXPECT_EQ(shares_, std::vector<std::string>{"nas.lan:/export"});
  EXPECT_EQ(mounted_, std::set<std::string>{place()});
  auto spec = spec_of("a-0");
  ASSERT_TRUE(spec);
  EXPECT_FALSE(see_to_one()) << "one that has just answered is not asked again";
}

TEST_F(NfsTest, a_share_that_is_to_be_read_only_is) {
  boot();
  put(R"("nfs":{"server":"nas.lan","path":"/export","readOnly":true})");
  ASSERT_TRUE(see_to_one());
  EXPECT_EQ(shares_, std::vector<std::string>{"nas.lan:/export ro"});
}

TEST_F(NfsTest, a_volume_of_a_claim_has_its_own_options) {
  boot();
  client_.put(kPersistentVolume, R"({"metadata":{"name":"share"},"spec":{"capacity":{"storage":"1Gi"},"accessModes":
    ["ReadWriteMany"],"mountOptions":["nfsvers=4.1","soft"],"claimRef":{"namespace":"default","name":"data","uid":"uid-data"},
    "nfs":{"server":"10.0.0.5","path":"/srv"}},"status":{"phase":"Bound"}})");
  client_.put(kPersistentVolumeClaim, R"({"metadata":{"name":"data","namespace":"default","uid":"uid-data"},"spec":{"accessModes":
    ["ReadWriteMany"],"resources":{"requests":{"storage":"1Gi"}},"volumeName":"share"},"status":{"phase":"Bound"}})");
  settle();
  put(R"("persistentVolumeClaim":{"claimName":"data","readOnly":true})");
  ASSERT_TRUE(see_to_one());
  EXPECT_EQ(shares_, std::vector<std::string>{"10.0.0.5:/srv ro nfsvers=4.1 soft"});
  EXPECT_EQ(state(), "Running");
}

TEST_F(NfsTest, the_annotation_of_an_old_volume_has_its_options) {
  boot();
  client_.put(kPersistentVolume, R"({"metadata":{"name":"disk","annotations":{"volume.beta.kubernetes.io/mount-options":
    "nfsvers=3,,hard"}},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteMany"],"mountOptions":["soft"],"claimRef":{
    "namespace":"default","name":"data","uid":"uid-data"},"nfs":{"server":"10.0.0.5","path":"/srv"}},"status":{"phase":"Bound"}})");
  client_.put(kPersistentVolumeClaim, R"({"metadata":{"name":"data","namespace":"default","uid":"uid-data","annotations":{
    "pv.kubernetes.io/bind-completed":"yes"}},"spec":{"accessModes":["ReadWriteMany"],"resources":{"requests":{"storage":"1Gi"}},
    "volumeName":"disk"},"status":{"phase":"Bound"}})");
  settle();
  put(R"("persistentVolumeClaim":{"claimName":"data"})");
  ASSERT_TRUE(see_to_one());
  EXPECT_EQ(shares_, std::vector<std::string>{"10.0.0.5:/srv nfsvers=3 hard"});
}

TEST_F(NfsTest, what_fails_is_told_once_and_tried_again) {
  mount_error_ = Error(Code::unavailable, "mount failed: exit status 32: mount.nfs: access denied by server");
  boot();
  put();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(see_to_one()) << i;
    EXPECT_FALSE(see_to_one()) << "not at once";
    advance(seconds(10));
  }
  auto told = events_.all();
  EXPECT_EQ(std::ranges::count(told,
                               "W FailedMount MountVolume.SetUp failed for volume \"v\" : mount failed: exit status 32: "
                               "mount.nfs: access denied by server"),
            1);
  EXPECT_EQ(state(), "Waiting ContainerCreating");
  mount_error_.reset();
  ASSERT_TRUE(see_to_one());
  EXPECT_EQ(state(), "Running");
}

TEST_F(NfsTest, a_container_comes_back_once_the_server_answers) {
  boot();
  put();
  ASSERT_TRUE(see_to_one());
  ASSERT_EQ(state(), "Running");
  advance(kAnswerHolds);
  EXPECT_EQ(asked_, 1) << "a pod that runs asks for nothing";
  answer_error_ = Error(Code::timeout, "its server does not answer");
  runtime_.exit(uid(), "a-0", 1);
  settle();
  ASSERT_TRUE(see_to_one());
  EXPECT_TRUE(events_.has("FailedMount MountVolume.SetUp failed for volume \"v\" : its server does not answer"));
  EXPECT_EQ(runtime_calls("start").size(), 1u);
  EXPECT_EQ(mounted_.size(), 1u) << "what does not answer now may do so later";
  answer_error_.reset();
  advance(seconds(10));
  ASSERT_TRUE(see_to_one());
  EXPECT_EQ(state(), "Running");
  EXPECT_EQ(restarts(), 1);
  EXPECT_EQ(shares_.size(), 1u);
}

TEST_F(NfsTest, a_share_that_is_not_what_it_was_is_mounted_anew) {
  boot();
  put();
  ASSERT_TRUE(see_to_one());
  advance(kAnswerHolds);
  answer_error_ = Error(Code::unavailable, "stat: Stale file handle");
  runtime_.exit(uid(), "a-0", 1);
  settle();
  ASSERT_TRUE(see_to_one());
  EXPECT_TRUE(mounted_.empty());
  answer_error_.reset();
  advance(seconds(10));
  ASSERT_TRUE(see_to_one());
  EXPECT_EQ(state(), "Running");
  EXPECT_EQ(shares_.size(), 2u);
}

TEST_F(NfsTest, a_daemon_after_this_one_asks_the_server_and_mounts_nothing_twice) {
  boot();
  put();
  ASSERT_TRUE(see_to_one());
  boot();
  EXPECT_EQ(state(), "Running");
  runtime_.exit(uid(), "a-0", 1);
  settle();
  ASSERT_TRUE(see_to_one());
  EXPECT_EQ(state(), "Running");
  EXPECT_EQ(shares_.size(), 1u);
}

TEST_F(NfsTest, a_pod_that_goes_meanwhile_waits_for_the_end_of_mounting) {
  boot();
  put();
  const std::string directory = place();
  ASSERT_TRUE(client_.remove(kPod, {"default", "web"}, {}));
  settle();
  EXPECT_TRUE(std::filesystem::exists(directory)) << "something may be mounted there any moment";
  ASSERT_TRUE(see_to_one());
  EXPECT_TRUE(mounted_.empty());
  EXPECT_FALSE(std::filesystem::exists(directory));
  EXPECT_EQ(phase(), "");
}

TEST_F(NfsTest, it_is_unmounted_with_its_pod) {
  boot();
  put();
  ASSERT_TRUE(see_to_one());
  ASSERT_TRUE(client_.remove(kPod, {"default", "web"}, {}));
  settle();
  advance(seconds(60));
  EXPECT_TRUE(mounted_.empty());
}

}  // namespace
}  // namespace coracle::node
