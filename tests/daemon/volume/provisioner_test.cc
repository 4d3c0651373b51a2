// SPDX-License-Identifier: Apache-2.0
// The provisioner: who gets a directory, and that data in use is never deleted, wherever the process is interrupted.
#include "daemon/volume/local/provisioner.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "daemon/volume/match.h"
#include "runtime/sys/file.h"
#include "store/object/object.h"
#include "tests/store/client/fake_client.h"

namespace coracle::volume {
namespace {

namespace fs = std::filesystem;

struct HeardEvents : EventSink {
  void post(EventRecord record) override { all.push_back(record.reason + ": " + record.message); }
  std::vector<std::string> all;
};

struct ProvisionerTest : testing::Test {
  ProvisionerTest() {
    claims.on_change([this](const Informer::Change& change) { provisioner.on_claim(change); });
    volumes.on_change([this](const Informer::Change& change) { provisioner.on_volume(change); });
    classes.on_change([this](const Informer::Change& change) { provisioner.on_class(change); });
    for (Informer* informer : {&claims, &volumes, &classes}) {
      MUST(informer->start());
      informer->wait_synced({});
    }
    client.put(kStorageClass, R"({"metadata":{"name":"directory"},"provisioner":"coracle.io/directory","reclaimPolicy":"Delete",
      "volumeBindingMode":"WaitForFirstConsumer","allowVolumeExpansion":true})");
    client.put(kStorageClass,
               R"({"metadata":{"name":"local-path"},"provisioner":"rancher.io/local-path","reclaimPolicy":"Retain",
      "mountOptions":["noatime"]})");
    client.put(kStorageClass, R"({"metadata":{"name":"cloud"},"provisioner":"example.com/disks","reclaimPolicy":"Delete"})");
  }
  ~ProvisionerTest() override {
    for (Informer* informer : {&claims, &volumes, &classes}) informer->stop();
    fs::remove_all(directory);
  }
  void settle() {
    for (int passes = 0; passes < 1000; ++passes) {
      client.settle();
      auto lease = queue.try_take();
      if (!lease) return;
      work_once(queue, lease->key(), "test", [this](const Key& key) { return provisioner.reconcile(key); });
    }
    FAIL() << "it does not come to rest";
  }
  void pass(int seconds) {
    for (; seconds > 0; --seconds) clock.advance(std::chrono::seconds(1)), settle();
  }
  void put_claim(const std::string& more = "", const std::string& storage_class = "directory", const std::string& node = "pi",
                 const std::string& name = "data", const std::string& uid = "") {
    client.put(kPersistentVolumeClaim,
               R"({"metadata":{"name":")" + name + R"(","namespace":"shop","uid":")" + (uid.empty() ? "uid-" + name : uid) +
                   R"(","annotations":{"volume.kubernetes.io/selected-node":")" + node +
                   R"("}},"spec":{"accessModes":["ReadWriteOnce"],"storageClassName":")" + storage_class +
                   R"(","resources":{"requests":{"storage":"1Gi"}})" + more + R"(},"status":{"phase":"Pending"}})");
    settle();
  }
  ObjectPtr volume(const std::string& claim = "data") { return client.find(kPersistentVolume, {"", "pvc-uid-" + claim}); }
  std::string path(const std::string& claim = "data") {
    ObjectPtr found = volume(claim);
    return found ? std::string(get_string(found->json(), "spec.local.path")) : "none";
  }
  void release(const std::string& claim = "data") {  // as the binder does once the claim is gone
    client.erase(kPersistentVolumeClaim, {"shop", claim});
    client.set_status(kPersistentVolume, {"", "pvc-uid-" + claim}, R"({"phase":"Released"})");
    settle();
  }

  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& entry : fs::directory_iterator(directory + "/volumes")) all.insert(entry.path().filename());
    return all;
  }

  static std::string make_directory() {
    char name[] = "/tmp/coracle-provisioner-XXXXXX";
    return ::mkdtemp(name);
  }

  const std::string directory = make_directory();
  bool holds = false;  // a volume of a claim is on the disk
  FakeClock clock;
  FakeClient client{clock};
  HeardEvents events;
  DiskDirectories directories{{directory + "/volumes"}, [this](const auto&) { return holds; }, {"", {}}};
  Informer claims{client, kPersistentVolumeClaim}, volumes{client, kPersistentVolume}, classes{client, kStorageClass};
  WorkQueue queue{BackoffPolicy{}, clock};
  bool used = false, used_yet = false;
  std::set<std::string> users;   // claims in use by pods
  std::set<std::string> silent;  // places that do not answer
  Provisioner provisioner{
      "pi",
      {.client = client,
       .claims = claims,
       .volumes = volumes,
       .classes = classes,
       .events = EventRecorder(events, "kubelet"),
       .directories = directories,
       .enqueue = [this](Key key) { queue.add(std::move(key)); },
       .delete_in_background = [](auto task, const auto&) { task({}); },
       .copy_in_background =
           [this](auto task, const auto& owner) {
             copy_owners.push_back(owner);
             begun_copies.push_back(std::move(task));
             if (!copies_last) begun_copies.back()({}), begun_copies.pop_back();
           },
       .answers = [this](const std::string& place) { return !silent.contains(place); },
       .in_use = [this](const Key& claim) { return used || users.contains(claim.name); },
       .in_use_yet = [this](const Key&) { return used_yet; },
       .copy = [this](const Key& claim, const Fd& to, const ProvisionerSeams::SoFar& so_far, std::stop_token) -> Result<Copied> {
         ++copies;
         if (copy_error) return *copy_error;
         for (int64_t entries = 1; entries <= 4; ++entries) {
           clock.advance(std::chrono::seconds(10));
           so_far({entries, Bytes(entries << 20)});
         }
         TRY(sys::replace_file_at(to, "of", claim.name));
         return Copied{1, Bytes(int64_t(claim.name.size()))};
       },
       .clock = clock}};
  int copies = 0;
  std::vector<std::string> copy_owners;
  std::optional<Error> copy_error;
  bool copies_last = false;  // they end when run_copies() is called
  std::vector<std::function<void(std::stop_token)>> begun_copies;
  void run_copies() {
    for (const auto& task : std::exchange(begun_copies, {})) task({});
    settle();
  }

  // A bound claim whose volume was provisioned here.
  void put_source() {
    put_claim("", "directory", "pi", "old");
    client.put(kPersistentVolumeClaim, R"({"metadata":{"name":"old","namespace":"shop","uid":"uid-old","annotations":{
      "pv.kubernetes.io/bind-completed":"yes"}},"spec":{"accessModes":["ReadWriteOnce"],"storageClassName":"directory","resources":{
      "requests":{"storage":"1Gi"}},"volumeName":"pvc-uid-old"},"status":{"phase":"Bound"}})");
    settle();
  }
  static std::string from(const std::string& name, const std::string& kind = "PersistentVolumeClaim") {
    return R"(,"dataSourceRef":{"kind":")" + kind + R"(","name":")" + name + "\"}";
  }
  bool said(const std::string& text) const {
    return std::ranges::any_of(events.all, [&](const std::string& each) { return each.find(text) != each.npos; });
  }
};

TEST_F(ProvisionerTest, a_claim_is_filled_from_another) {
  put_source();
  put_claim(from("old"));
  ASSERT_TRUE(volume());
  EXPECT_EQ(copies, 1);
  std::ifstream of(path() + "/of");
  std::string text;
  of >> text;
  EXPECT_EQ(text, "old");
  EXPECT_TRUE(said("CopiedData: copied 1 files and directories, 3 bytes"));
  EXPECT_TRUE(said("CopyingData: copied so far: 3 files and directories, 3145728 bytes"));
  EXPECT_FALSE(said("so far: 4")) << "every half minute";
}

TEST_F(ProvisionerTest, the_copy_waits_for_pods_that_use_its_source) {
  put_source();
  used = true;
  put_claim(from("old"));
  pass(10);
  EXPECT_FALSE(volume());
  EXPECT_EQ(copies, 0);
  EXPECT_EQ(std::ranges::count_if(events.all, [](const auto& each) { return each.starts_with("WaitForDataSource"); }), 1);
  used = false;
  pass(2);
  EXPECT_TRUE(volume());
}

TEST_F(ProvisionerTest, a_copy_that_fails_is_told_and_made_anew) {
  put_source();
  copy_error = Error(Code::unavailable, "no space left on device");
  put_claim(from("old"));
  EXPECT_FALSE(volume());
  EXPECT_TRUE(said("ProvisioningFailed: failed to provision volume with StorageClass \"directory\": no space left on device"));
  EXPECT_FALSE(fs::exists(directory + "/volumes/.new_shop_data_uid-data")) << "a part of it is no volume";
  copy_error.reset();
  pass(60);
  EXPECT_TRUE(volume());
}

TEST_F(ProvisionerTest, what_cannot_be_a_source_is_said) {
  put_claim(from("nobody"));
  EXPECT_TRUE(said("error getting PVC nobody (namespace \"shop\"): not found"));
  put_claim(from("one", "VolumeSnapshot"), "directory", "pi", "snapped");
  EXPECT_TRUE(said("a directory is filled from a PersistentVolumeClaim, not from a VolumeSnapshot"));
  put_claim("", "directory", "elsewhere", "unbound");
  put_claim(from("unbound"), "directory", "pi", "early");
  EXPECT_TRUE(said("the PVC unbound that it is filled from is not bound"));
  put_source();
  client.put(kPersistentVolumeClaim, R"({"metadata":{"name":"small","namespace":"shop","uid":"uid-small","annotations":{
      "volume.kubernetes.io/selected-node":"pi"}},"spec":{"accessModes":["ReadWriteOnce"],"storageClassName":"directory","resources":{
      "requests":{"storage":"1Mi"}})" + from("old") +
                                         R"(},"status":{"phase":"Pending"}})");
  settle();
  EXPECT_TRUE(said("requested 1Mi but source is 1Gi"));
  EXPECT_EQ(copies, 0);
}

TEST_F(ProvisionerTest, a_claim_whose_pod_runs_here_gets_a_directory) {
  put_claim();
  ASSERT_TRUE(volume());
  EXPECT_EQ(path(), directory + "/volumes/shop_data_uid-data");
  EXPECT_TRUE(fs::is_directory(path()));
  const json::value made = volume()->json();
  EXPECT_EQ(volume()->annotation(kProvisionedBy), "coracle.io/directory");
  EXPECT_EQ(get_string(made, "spec.claimRef.uid"), "uid-data");
  EXPECT_EQ(get_string(made, "spec.persistentVolumeReclaimPolicy"), "Delete");
  EXPECT_EQ(get_string(made, "spec.storageClassName"), "directory");
  EXPECT_EQ(to_text(*find(made, "spec.capacity")), R"({"storage":"1Gi"})");
  EXPECT_EQ(
      to_text(*find(made, "spec.nodeAffinity")),
      R"({"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"In","values":["pi"]}]}]}})");
  ASSERT_FALSE(events.all.empty());
  EXPECT_EQ(events.all[0], "ProvisioningSucceeded: Successfully provisioned volume pvc-uid-data");
}

TEST_F(ProvisionerTest, a_volume_has_the_mount_options_of_its_class) {
  put_claim("", "local-path");
  ASSERT_TRUE(volume());
  EXPECT_EQ(to_text(*find(volume()->json(), "spec.mountOptions")), R"(["noatime"])");
}

TEST_F(ProvisionerTest, a_class_names_the_directory_for_its_volumes) {
  auto put_class = [&](const std::string& name, const std::string& parameters) {
    client.put(kStorageClass, R"({"metadata":{"name":")" + name +
                                  R"("},"provisioner":"rancher.io/local-path","reclaimPolicy":"Delete","parameters":{)" +
                                  parameters + "}}");
  };
  put_class("here", R"("nodePath":")" + directory + R"(/volumes/","pathPattern":"{{ .PVC.Name }}","permPattern":"0700")");
  put_class("elsewhere", R"("nodePath":")" + directory + R"(/ssd")");
  put_claim("", "here");
  ASSERT_TRUE(volume());
  EXPECT_EQ(path(), directory + "/volumes/shop_data_uid-data");
  EXPECT_TRUE(
      said("ParametersIgnored: the class here has parameters that mean nothing for " + path() + ": pathPattern, permPattern"));
  put_claim("", "elsewhere", "pi", "fast");
  EXPECT_FALSE(volume("fast"));
  EXPECT_TRUE(said("ProvisioningFailed: failed to provision volume with StorageClass \"elsewhere\": " + directory +
                   "/ssd is none of the directories for volumes that the settings name"));
  EXPECT_FALSE(fs::exists(directory + "/ssd"));
}

TEST_F(ProvisionerTest, a_claim_that_gets_nothing_here_may_be_wanted_elsewhere) {
  auto node_of = [&](const std::string& claim) {
    return std::string(client.find(kPersistentVolumeClaim, {"shop", claim})->annotation(kSelectedNode));
  };
  std::ofstream(directory + "/volumes") << "in the way";
  put_claim();
  EXPECT_FALSE(volume());
  EXPECT_TRUE(said("ProvisioningFailed: failed to provision volume with StorageClass \"directory\": "));
  EXPECT_EQ(node_of("data"), "") << "the scheduler hears of it";
  put_claim("", "local-path", "pi", "at-once");
  EXPECT_EQ(node_of("at-once"), "pi") << "no scheduler would select another node";
  put_claim(R"(,"volumeMode":"Block")", "directory", "pi", "block");
  EXPECT_EQ(node_of("block"), "pi") << "it is the same on all nodes";
  fs::remove(directory + "/volumes");
  pass(120);
  EXPECT_TRUE(volume("at-once"));
  EXPECT_FALSE(volume());
  MUST(client.patch(kPersistentVolumeClaim, {"shop", "data"}, PatchType::merge,
                    {{"metadata", {{"annotations", {{kSelectedNode, "pi"}}}}}}));
  settle();
  EXPECT_TRUE(volume());
}

TEST_F(ProvisionerTest, others_get_none) {
  put_claim("", "directory", "elsewhere", "a");
  put_claim("", "cloud", "pi", "b");
  put_claim("", "nowhere", "pi", "c");
  put_claim(R"(,"volumeName":"mine")", "directory", "pi", "d");
  for (const char* claim : {"a", "b", "c", "d"}) EXPECT_FALSE(volume(claim)) << claim;
  EXPECT_FALSE(fs::exists(directory + "/volumes"));
  put_claim("", "local-path", "pi", "k3s");
  ASSERT_TRUE(volume("k3s"));
  EXPECT_EQ(volume("k3s")->annotation(kProvisionedBy), "rancher.io/local-path");
}

TEST_F(ProvisionerTest, what_a_directory_cannot_be_is_said) {
  put_claim(R"(,"volumeMode":"Block")");
  EXPECT_FALSE(volume());
  ASSERT_FALSE(events.all.empty());
  EXPECT_EQ(events.all[0],
            "ProvisioningFailed: failed to provision volume with StorageClass \"directory\": a directory is no block device");
  put_claim(R"(,"volumeAttributesClassName":"gold")", "directory", "pi", "golden");
  EXPECT_FALSE(volume("golden"));
  EXPECT_EQ(events.all.back(),
            "ProvisioningFailed: failed to provision volume with StorageClass \"directory\": a directory has none of the "
            "attributes that the VolumeAttributesClass \"gold\" could set");
}

TEST_F(ProvisionerTest, goes_on_where_it_was_cut_off) {
  client.fail(1, Error(Code::unavailable, "the plug was pulled"), "create persistentvolumes");
  put_claim();
  pass(3);
  ASSERT_TRUE(volume());
  EXPECT_TRUE(fs::is_directory(path()));
  for (int nth = 1; nth <= 6; ++nth) {
    SCOPED_TRACE(nth);
    put_claim();
    pass(3);
    std::string place = path();
    ASSERT_TRUE(fs::is_directory(place));
    client.fail(nth, Error(Code::unavailable, "the plug was pulled"));
    release();
    pass(10);
    EXPECT_FALSE(volume());
    EXPECT_FALSE(fs::exists(place));
    EXPECT_EQ(std::distance(fs::directory_iterator(directory + "/volumes"), {}), 1) << "the mark alone";
  }
}

TEST_F(ProvisionerTest, keeps_what_somebody_may_still_use) {
  put_claim();
  std::ofstream(path() + "/file") << "text";
  std::string place = path();
  client.set_status(kPersistentVolume, {"", "pvc-uid-data"}, R"({"phase":"Released"})");
  settle();
  EXPECT_TRUE(fs::exists(place + "/file")) << "the claim is there";
  used = true;
  release();
  pass(20);
  EXPECT_TRUE(fs::exists(place + "/file")) << "a pod has it";
  MUST(client.patch(kPersistentVolume, {"", "pvc-uid-data"}, PatchType::merge,
                    {{"spec", {{"persistentVolumeReclaimPolicy", "Retain"}}}}));
  used = false;
  pass(20);
  EXPECT_TRUE(fs::exists(place + "/file")) << "its policy says so";
  MUST(client.remove(kPersistentVolume, {"", "pvc-uid-data"}));
  pass(20);
  EXPECT_FALSE(volume());
  EXPECT_TRUE(fs::exists(place + "/file")) << "the object goes, the data stays";
}

TEST_F(ProvisionerTest, keeps_what_pods_have_though_another_claim_is_written_into_the_volume) {
  put_claim();
  std::string place = path();
  MUST(client.patch(kPersistentVolumeClaim, {"shop", "data"}, PatchType::merge, {{"spec", {{"volumeName", "pvc-uid-data"}}}}));
  users = {"data"};
  MUST(client.patch(kPersistentVolume, {"", "pvc-uid-data"}, PatchType::merge,
                    {{"spec", {{"claimRef", {{"name", "other"}, {"uid", "uid-other"}}}}}}));
  client.set_status(kPersistentVolume, {"", "pvc-uid-data"}, R"({"phase":"Released"})");
  pass(20);
  EXPECT_TRUE(fs::exists(place));
  users.clear();
  pass(20);
  EXPECT_FALSE(fs::exists(place));
}

TEST_F(ProvisionerTest, keeps_what_another_volume_names_too) {
  put_claim();
  std::string place = path();
  client.put(kPersistentVolume,
             R"({"metadata":{"name":"by-hand"},"spec":{"hostPath":{"path":")" + place + R"("}},"status":{"phase":"Bound"}})");
  release();
  pass(20);
  EXPECT_TRUE(fs::exists(place));
  EXPECT_TRUE(said("VolumeFailedDelete: what it holds is also that of the PersistentVolume by-hand"));
  client.erase(kPersistentVolume, {"", "by-hand"});
  pass(70);
  EXPECT_FALSE(fs::exists(place));
}

TEST_F(ProvisionerTest, keeps_what_another_volume_names_by_another_path) {
  put_claim();
  std::string place = path();
  fs::create_directory_symlink(directory + "/volumes", directory + "/link");
  fs::create_directory(place + "/inner");
  const std::string others[] = {directory + "/link/shop_data_uid-data", place + "/", directory + "/volumes/./shop_data_uid-data",
                                directory + "/volumes/../link/shop_data_uid-data/inner"};
  auto put = [&](const std::string& other, const std::string& kind) {
    client.put(kPersistentVolume, R"({"metadata":{"name":"by-hand","annotations":{"pv.kubernetes.io/provisioned-by":
      "coracle.io/directory"}},"spec":{")" +
                                      kind + R"(":{"path":")" + other + R"("}},"status":{"phase":"Bound"}})");
  };
  put(others[0], "local");
  release();
  for (const std::string& other : others) {
    put(other, &other == &others[0] ? "hostPath" : "local");
    pass(130);
    EXPECT_TRUE(fs::exists(place + "/inner")) << other;
  }
  EXPECT_TRUE(said("VolumeFailedDelete: what it holds is also that of the PersistentVolume by-hand"));
  put(directory + "/volumes/shop_other", "local");
  pass(130);
  EXPECT_FALSE(fs::exists(place));
}

TEST_F(ProvisionerTest, waits_for_a_place_of_another_volume_that_does_not_answer) {
  put_claim();
  const std::string place = path();
  silent = {directory + "/dead"};
  client.put(kPersistentVolume, R"({"metadata":{"name":"by-hand"},"spec":{"hostPath":{"path":")" + directory +
                                    R"(/dead"}},"status":{"phase":"Bound"}})");
  release();
  pass(130);
  EXPECT_TRUE(fs::exists(place));
  EXPECT_TRUE(said("VolumeFailedDelete: it cannot be told whether the PersistentVolume by-hand is the same directory: " +
                   directory + "/dead does not answer"));
  silent.clear();
  pass(70);
  EXPECT_FALSE(fs::exists(place));
}

TEST_F(ProvisionerTest, volumes_of_other_nodes_do_not_keep_one_of_this) {
  auto put = [&](const std::string& key, const std::string& op, const std::string& node) {
    std::string terms = R"([{"matchExpressions":[{"key":"disk","operator":"Exists"},{"key":")" + key + R"(","operator":")" + op +
                        R"(","values":[")" + node + R"("]}]}])";
    client.put(kPersistentVolume, R"({"metadata":{"name":"by-hand"},"spec":{"local":{"path":")" + directory +
                                      R"(/dead"},"nodeAffinity":{"required":{"nodeSelectorTerms":)" + terms +
                                      R"(}}},"status":{"phase":"Bound"}})");
  };
  silent = {directory + "/dead"};
  const char* here[][3] = {
      {"kubernetes.io/hostname", "In", "pi"}, {"zone", "In", "elsewhere"}, {"kubernetes.io/hostname", "NotIn", "elsewhere"}};
  for (auto [key, op, node] : here) {
    put(key, op, node);
    put_claim();
    const std::string place = path();
    release();
    pass(130);
    EXPECT_TRUE(fs::exists(place)) << key << op << node;
    put("kubernetes.io/hostname", "In", "elsewhere");
    pass(70);
    EXPECT_FALSE(fs::exists(place)) << "it is elsewhere";
  }
}

TEST_F(ProvisionerTest, what_k3s_made_grows_and_is_not_deleted) {
  const std::string place = directory + "/k3s/pvc-k3s_shop_old";
  fs::create_directories(place);
  client.put(kPersistentVolume,
             R"({"metadata":{"name":"pvc-k3s","annotations":{"pv.kubernetes.io/provisioned-by":
    "rancher.io/local-path"}},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"persistentVolumeReclaimPolicy":
    "Delete","storageClassName":"local-path","claimRef":{"namespace":"shop","name":"old","uid":"uid-old"},"hostPath":{"path":")" +
                 place +
                 R"(","type":"DirectoryOrCreate"},"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[
    {"key":"kubernetes.io/hostname","operator":"In","values":["pi"]}]}]}}},"status":{"phase":"Bound"}})");
  client.put(kPersistentVolumeClaim, R"({"metadata":{"name":"old","namespace":"shop","uid":"uid-old","annotations":{
    "pv.kubernetes.io/bind-completed":"yes"}},"spec":{"accessModes":["ReadWriteOnce"],"storageClassName":"local-path","resources":{
    "requests":{"storage":"2Gi"}},"volumeName":"pvc-k3s"},"status":{"phase":"Bound","capacity":{"storage":"1Gi"}}})");
  pass(10);
  auto found = [&] { return client.find(kPersistentVolume, {"", "pvc-k3s"}); };
  EXPECT_EQ(capacity_of(*found()).text(), "2Gi");
  EXPECT_EQ(get_string(client.find(kPersistentVolumeClaim, {"shop", "old"})->json(), "status.capacity.storage"), "2Gi");
  client.erase(kPersistentVolumeClaim, {"shop", "old"});
  client.set_status(kPersistentVolume, {"", "pvc-k3s"}, R"({"phase":"Released"})");
  pass(600);
  ASSERT_TRUE(found()) << "it is the only one that says where the data is";
  EXPECT_TRUE(fs::exists(place));
  const std::string why = "VolumeFailedDelete: " + place + " is in none of the directories for volumes";
  EXPECT_EQ(std::ranges::count_if(events.all, [&](const std::string& each) { return each.starts_with(why); }), 1);
  MUST(client.patch(kPersistentVolume, {"", "pvc-k3s"}, PatchType::merge,
                    {{"spec", {{"persistentVolumeReclaimPolicy", "Retain"}}},
                     {"metadata", {{"finalizers", json::array{"external-provisioner.volume.kubernetes.io/finalizer"}}}}}));
  MUST(client.remove(kPersistentVolume, {"", "pvc-k3s"}));
  pass(10);
  EXPECT_FALSE(found());
  EXPECT_TRUE(fs::exists(place));
}

TEST_F(ProvisionerTest, a_volume_whose_disk_is_away_is_deleted_when_it_returns) {
  put_claim();
  const std::string place = path(), root = directory + "/volumes", away = directory + "/away";
  std::ofstream(place + "/file") << "text";
  fs::rename(root, away);
  release();
  pass(60);
  ASSERT_TRUE(volume()) << "the root is not there";
  EXPECT_TRUE(said("VolumeFailedDelete: the mark " + root + "/.coracle is not there: is the disk of " + root + " mounted?"));
  fs::create_directories(root);
  pass(60);
  ASSERT_TRUE(volume()) << "its mount point is empty";
  EXPECT_TRUE(fs::is_empty(root)) << "and stays so";
  fs::remove(root);
  fs::rename(away, root);
  pass(15);
  EXPECT_FALSE(volume());
  EXPECT_EQ(std::distance(fs::directory_iterator(root), {}), 1) << "the mark alone";
}

TEST_F(ProvisionerTest, what_is_left_on_a_disk_that_is_away_is_cleared_when_it_returns) {
  client.fail(1, Error(Code::unavailable, "the plug was pulled"), "create persistentvolumes");
  put_claim();
  ASSERT_TRUE(fs::exists(directory + "/volumes/.new_shop_data_uid-data"));
  fs::rename(directory + "/volumes", directory + "/away");
  holds = true;
  client.erase(kPersistentVolumeClaim, {"shop", "data"});
  pass(130);
  EXPECT_FALSE(fs::exists(directory + "/volumes")) << "nothing is created in its place";
  fs::rename(directory + "/away", directory + "/volumes");
  pass(70);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory + "/volumes"), {}), 1) << "the mark alone";
}

// The scheduler's choice of the node reaches the disk later than the directory.
TEST_F(ProvisionerTest, what_a_claim_leaves_goes_with_it_though_its_node_was_lost) {
  for (const std::string node : {"", "elsewhere"}) {
    SCOPED_TRACE(node);
    client.fail(1, Error(Code::unavailable, "the plug was pulled"), "create persistentvolumes");
    put_claim();
    put_claim("", "directory", node);
    ASSERT_EQ(names(), (std::set<std::string>{".coracle", ".new_shop_data_uid-data"}));
    client.erase(kPersistentVolumeClaim, {"shop", "data"});
    settle();
    EXPECT_EQ(names(), std::set<std::string>{".coracle"});
  }
}

TEST_F(ProvisionerTest, what_a_claim_leaves_goes_though_there_is_another_of_its_name) {
  client.fail(1, Error(Code::unavailable, "the plug was pulled"), "create persistentvolumes");
  put_claim();
  ASSERT_EQ(names(), (std::set<std::string>{".coracle", ".new_shop_data_uid-data"}));
  client.erase(kPersistentVolumeClaim, {"shop", "data"});
  put_claim("", "directory", "pi", "data", "uid-second");
  pass(3);
  EXPECT_EQ(names(), (std::set<std::string>{".coracle", "shop_data_uid-second"}));
}

TEST_F(ProvisionerTest, a_copy_goes_though_there_is_another_claim_of_that_name) {
  put_source();
  copies_last = true;
  put_claim(from("old"));
  client.erase(kPersistentVolumeClaim, {"shop", "data"});
  put_claim("", "directory", "", "data", "uid-second");
  EXPECT_EQ(names(), (std::set<std::string>{".coracle", ".staged_shop_data_uid-data", "shop_old_uid-old"})) << "it runs";
  run_copies();
  EXPECT_EQ(copies, 1);
  EXPECT_EQ(names(), (std::set<std::string>{".coracle", "shop_old_uid-old"}));
}

TEST_F(ProvisionerTest, a_disk_that_hangs_keeps_no_other_from_being_cleared) {
  const std::string sick = directory + "/sick", well = directory + "/well";
  for (const std::string& root : {sick, well}) fs::create_directories(root + "/.removed_shop_data_1");
  DiskDirectories two({sick, well, directory + "/unused"}, [](const auto&) { return false; }, {"", {}});
  Informer no_claims{client, kPersistentVolumeClaim}, no_volumes{client, kPersistentVolume}, no_classes{client, kStorageClass};
  std::map<std::string, std::vector<std::function<void(std::stop_token)>>> tasks;  // by owner
  std::set<std::string> silent_roots = {sick + "/"};
  Provisioner other{"pi",
                    {.client = client,
                     .claims = no_claims,
                     .volumes = no_volumes,
                     .classes = no_classes,
                     .events = EventRecorder(events, "kubelet"),
                     .directories = two,
                     .enqueue = [](const Key&) {},
                     .delete_in_background = [&](auto task, const auto& owner) { tasks[owner].push_back(std::move(task)); },
                     .copy_in_background = [](const auto&, const auto&) {},
                     .answers = [&](const std::string& place) { return !silent_roots.contains(place); },
                     .in_use = [](const Key&) { return false; },
                     .in_use_yet = [](const Key&) { return false; },
                     .clock = clock}};
  other.start();
  ASSERT_EQ(tasks.size(), 2u) << "each disk has an owner of its own, and the one that is not used has none";
  auto of_sick = tasks.extract(two.disk_of(sick)), of_well = tasks.extract(two.disk_of(well));
  ASSERT_TRUE(of_sick && of_well);
  for (const auto& task : of_well.mapped()) task({});
  EXPECT_TRUE(fs::is_empty(well)) << "while the other hangs";
  EXPECT_FALSE(fs::is_empty(sick));
  for (const auto& task : of_sick.mapped()) task({});
  EXPECT_TRUE(fs::is_empty(sick));
  silent_roots.clear();
  for (const std::string& root : {sick, well}) std::ofstream(root + "/.coracle");
  other.start();
  EXPECT_TRUE(tasks.empty()) << "nothing is left, so no thread is needed";
  EXPECT_FALSE(fs::exists(directory + "/unused"));
}

TEST_F(ProvisionerTest, copies_wait_for_those_of_the_same_disks_alone) {
  put_source();
  put_claim(from("old"));
  const std::string disk = directories.disk_of(directory + "/volumes");
  EXPECT_EQ(copy_owners, std::vector{disk + " to " + disk});
}

TEST_F(ProvisionerTest, a_claim_whose_disk_is_away_is_not_expanded_and_says_so) {
  put_claim();
  fs::rename(directory + "/volumes", directory + "/away");
  client.put(kPersistentVolumeClaim, R"({"metadata":{"name":"data","namespace":"shop","uid":"uid-data"},"spec":{"accessModes":
    ["ReadWriteOnce"],"storageClassName":"directory","volumeName":"pvc-uid-data","resources":{"requests":{"storage":"3Gi"}}},
    "status":{"phase":"Bound","capacity":{"storage":"1Gi"}}})");
  pass(5);
  EXPECT_EQ(to_text(*find(volume()->json(), "spec.capacity")), R"({"storage":"1Gi"})");
  EXPECT_TRUE(said("VolumeResizeFailed: resize volume \"pvc-uid-data\" by resizer \"coracle.io/directory\" failed: the mark "));
  fs::rename(directory + "/away", directory + "/volumes");
  pass(120);
  EXPECT_EQ(to_text(*find(volume()->json(), "spec.capacity")), R"({"storage":"3Gi"})");
}

TEST_F(ProvisionerTest, a_volume_that_is_deleted_before_its_claim_has_it_is_made_anew) {
  put_claim();
  std::string first = path();
  ASSERT_TRUE(fs::exists(first));
  client.set_status(kPersistentVolume, {"", "pvc-uid-data"}, R"({"phase":"Bound"})");  // incomplete, as the binder writes it
                                                                                       // first
  settle();
  MUST(client.remove(kPersistentVolume, {"", "pvc-uid-data"}));
  settle();
  EXPECT_TRUE(volume() && fs::exists(first)) << "it is being bound";
  client.set_status(kPersistentVolume, {"", "pvc-uid-data"}, R"({"phase":"Available"})");
  settle();
  EXPECT_FALSE(volume());
  EXPECT_FALSE(fs::exists(first));
  ObjectPtr claim = client.find(kPersistentVolumeClaim, {"shop", "data"});
  EXPECT_EQ(claim->annotation(kSelectedNode), "");
  MUST(client.patch(kPersistentVolumeClaim, claim->key(), PatchType::merge,
                    {{"metadata", {{"annotations", {{kSelectedNode, "pi"}}}}}}));
  settle();
  ASSERT_TRUE(volume());
  EXPECT_TRUE(fs::exists(path()));
}

TEST_F(ProvisionerTest, a_claim_that_got_a_volume_meanwhile_keeps_it) {
  put_claim();
  ASSERT_TRUE(volume());
  client.put(kPersistentVolumeClaim, R"({"metadata":{"name":"data","namespace":"shop","uid":"uid-data"},
    "spec":{"volumeName":"pvc-uid-data","storageClassName":"directory"},"status":{"phase":"Pending"}})");
  MUST(client.remove(kPersistentVolume, {"", "pvc-uid-data"}));
  settle();
  EXPECT_TRUE(volume() && fs::exists(path()));
}

TEST_F(ProvisionerTest, what_a_volume_names_is_kept_though_a_loss_of_power_took_its_name) {
  put_claim("", "local-path");
  std::string place = path();
  std::ofstream(place + "/file") << "text";
  release();
  fs::rename(place, directory + "/volumes/.new_shop_data_uid-data");
  provisioner.start();
  EXPECT_FALSE(fs::exists(place));
  provisioner.on_volume({volume(), volume()});
  settle();
  EXPECT_TRUE(fs::exists(place + "/file"));
}

TEST_F(ProvisionerTest, pods_of_a_new_claim_do_not_keep_the_volume_of_the_one_before) {
  put_claim();
  std::string place = path();
  used = used_yet = true;  // by a pod that is no longer in the API
  release();
  client.put(kPersistentVolumeClaim, R"({"metadata":{"name":"data","namespace":"shop","uid":"uid-again"},"spec":{"accessModes":
    ["ReadWriteOnce"],"storageClassName":"directory","resources":{"requests":{"storage":"1Gi"}}},"status":{"phase":"Pending"}})");
  pass(20);
  EXPECT_TRUE(fs::exists(place)) << "it has not ended";
  used_yet = false;  // now by a pod of the new claim
  pass(20);
  EXPECT_FALSE(volume());
  EXPECT_FALSE(fs::exists(place));
}

TEST_F(ProvisionerTest, leaves_the_status_of_a_new_claim_to_the_binder) {
  put_claim();
  client.put(kPersistentVolumeClaim, R"({"metadata":{"name":"data","namespace":"shop","uid":"uid-data","annotations":{
    "pv.kubernetes.io/bind-completed":"yes"}},"spec":{"accessModes":["ReadWriteOnce"],"storageClassName":"directory",
    "volumeName":"pvc-uid-data","resources":{"requests":{"storage":"1Gi"}}},"status":{"phase":"Pending"}})");
  settle();
  EXPECT_FALSE(find(client.find(kPersistentVolumeClaim, {"shop", "data"})->json(), "status.capacity"));
}

struct ExpansionTest : ProvisionerTest {
  // A bound claim that has 1Gi and asks for more.
  void ask_for(const std::string& size, const std::string& status = "", const std::string& has = "1Gi") {
    client.put(kPersistentVolumeClaim, R"({"metadata":{"name":"data","namespace":"shop","uid":"uid-data"},"spec":{"accessModes":
      ["ReadWriteOnce"],"storageClassName":"directory","volumeName":"pvc-uid-data","resources":{"requests":{"storage":")" +
                                           size + R"("}}},"status":{"phase":"Bound","capacity":{"storage":")" + has + R"("})" +
                                           status + "}}");
    settle();
  }
  json::value status() { return *find(client.find(kPersistentVolumeClaim, {"shop", "data"})->json(), "status"); }
  std::string at(const char* path) { return std::string(get_string(status(), path)); }
  void want_attributes(const json::value& class_name) {
    MUST(client.patch(kPersistentVolumeClaim, {"shop", "data"}, PatchType::merge,
                      {{"spec", {{"volumeAttributesClassName", class_name}}}}));
    settle();
  }
  std::string conditions() {  // "Resizing ControllerResizeError "
    std::string types;
    const json::value now = status();
    for (const json::value& each : get_array(now, "conditions"))
      types.append(get_string(each, "type")).append(get_string(each, "status") == "True" ? " " : "? ");
    return types;
  }
  auto count_told(const std::string& event) {
    return std::ranges::count_if(events.all, [&](const std::string& each) { return each.starts_with(event); });
  }
};

TEST_F(ExpansionTest, grows_with_its_claim) {
  put_claim();
  ask_for("3Gi", R"(,"conditions":[{"type":"example.com/Checked","status":"True"}])");
  EXPECT_EQ(to_text(*find(volume()->json(), "spec.capacity")), R"({"storage":"3Gi"})");
  EXPECT_EQ(at("capacity.storage"), "3Gi");
  EXPECT_EQ(at("allocatedResources.storage"), "3Gi");
  EXPECT_FALSE(find(status(), "allocatedResourceStatuses"));
  EXPECT_EQ(conditions(), "example.com/Checked ");
  EXPECT_EQ(count_told("Resizing: External resizer is resizing volume pvc-uid-data"), 1);
  EXPECT_EQ(count_told("VolumeResizeSuccessful: Resize volume succeeded"), 1);
}

TEST_F(ExpansionTest, a_claim_shows_that_its_volume_grows_and_what_fails) {
  put_claim();
  fs::rename(directory + "/volumes", directory + "/away");
  ask_for("3Gi");
  EXPECT_EQ(at("capacity.storage"), "1Gi");
  EXPECT_EQ(at("allocatedResources.storage"), "3Gi") << "quota counts it";
  EXPECT_EQ(at("allocatedResourceStatuses.storage"), "ControllerResizeInProgress");
  EXPECT_EQ(conditions(), "Resizing ControllerResizeError ");
  pass(30);
  EXPECT_EQ(conditions(), "Resizing ControllerResizeError ");
  EXPECT_EQ(count_told("Resizing: "), 1) << "it is the same attempt";
  MUST(client.patch(kPersistentVolumeClaim, {"shop", "data"}, PatchType::merge,
                    {{"spec", {{"resources", {{"requests", {{"storage", "2Gi"}}}}}}}}));
  settle();
  EXPECT_EQ(at("allocatedResources.storage"), "2Gi") << "the request was lowered";
  EXPECT_EQ(count_told("Resizing: "), 2);
  fs::rename(directory + "/away", directory + "/volumes");
  pass(120);
  EXPECT_EQ(at("capacity.storage"), "2Gi");
  EXPECT_EQ(conditions(), "");
  EXPECT_FALSE(find(status(), "conditions"));
  EXPECT_FALSE(find(status(), "allocatedResourceStatuses"));
}

TEST_F(ExpansionTest, a_claim_shows_why_it_fails_now) {
  put_claim();
  auto told = [&] {  // the time and the text
    const json::value now = status();
    for (const json::value& each : get_array(now, "conditions"))
      if (get_string(each, "type") == "ControllerResizeError")
        return std::string(get_string(each, "lastTransitionTime")) + " " + std::string(get_string(each, "message"));
    return std::string();
  };
  fs::rename(directory + "/volumes", directory + "/away");
  ask_for("3Gi");
  const std::string first = told();
  EXPECT_NE(first.find("failed to expand pvc with "), first.npos) << first;
  pass(300);
  EXPECT_EQ(told(), first) << "it says the same";
  std::ofstream(directory + "/volumes") << "no directory";
  pass(300);
  const std::string second = told();
  EXPECT_NE(second, first);
  EXPECT_NE(second.find(": Not a directory"), second.npos) << second;
  EXPECT_EQ(conditions(), "Resizing ControllerResizeError ");
  fs::remove(directory + "/volumes");
  pass(1);
  EXPECT_EQ(told(), second);
  pass(300);
  EXPECT_EQ(told().substr(told().find(' ')), first.substr(first.find(' ')));
}

// The daemon ended after the volume had grown, and then the request was lowered.
TEST_F(ExpansionTest, what_has_grown_is_shown_as_it_is) {
  struct Row {
    const char *begun, *want;
  };
  for (const Row& row : {Row{"3Gi", "3Gi"}, Row{"2Gi", "2Gi"}, Row{"5Gi", "2Gi"}}) {
    put_claim();
    MUST(client.patch(kPersistentVolume, {"", "pvc-uid-data"}, PatchType::merge,
                      {{"spec", {{"capacity", {{"storage", "3Gi"}}}}}}));
    ask_for("2Gi", R"(,"allocatedResources":{"storage":")" + std::string(row.begun) +
                       R"("},"allocatedResourceStatuses":{"storage":"ControllerResizeInProgress"})");
    EXPECT_EQ(at("capacity.storage"), row.want) << row.begun;
    EXPECT_FALSE(find(status(), "allocatedResourceStatuses")) << row.begun;
    EXPECT_EQ(to_text(*find(volume()->json(), "spec.capacity")), R"({"storage":"3Gi"})") << row.begun;
    release();
    pass(10);
  }
}

TEST_F(ExpansionTest, no_claim_has_the_volume_of_another_one_grow) {
  put_claim();
  ask_for("1Gi");
  client.put(kPersistentVolumeClaim, R"({"metadata":{"name":"data","namespace":"other","uid":"uid-other","annotations":{
    "pv.kubernetes.io/bind-completed":"yes"}},"spec":{"accessModes":["ReadWriteOnce"],"storageClassName":"directory",
    "volumeName":"pvc-uid-data","volumeAttributesClassName":"gold","resources":{"requests":{"storage":"3Gi"}}},
    "status":{"phase":"Bound","capacity":{"storage":"1Gi"}}})");
  pass(10);
  EXPECT_EQ(to_text(*find(volume()->json(), "spec.capacity")), R"({"storage":"1Gi"})");
  EXPECT_EQ(to_text(*find(client.find(kPersistentVolumeClaim, {"other", "data"})->json(), "status")),
            R"({"phase":"Bound","capacity":{"storage":"1Gi"}})");
}

TEST_F(ExpansionTest, a_volume_that_somebody_made_smaller_in_the_api_gets_its_size_back) {
  put_claim();
  ask_for("3Gi", "", "4Gi");
  EXPECT_EQ(to_text(*find(volume()->json(), "spec.capacity")), R"({"storage":"3Gi"})");
  EXPECT_EQ(at("capacity.storage"), "4Gi");
  EXPECT_EQ(conditions(), "");
  EXPECT_FALSE(find(status(), "allocatedResourceStatuses"));
}

// Each request of an expansion fails once.
TEST_F(ExpansionTest, goes_on_where_it_was_cut_off) {
  for (int nth = 1; nth <= 3; ++nth) {
    SCOPED_TRACE(nth);
    put_claim();
    client.fail(nth, Error(Code::unavailable, "the plug was pulled"));
    ask_for("3Gi");
    pass(10);
    EXPECT_EQ(at("capacity.storage"), "3Gi");
    EXPECT_EQ(conditions(), "");
    EXPECT_EQ(to_text(*find(volume()->json(), "spec.capacity")), R"({"storage":"3Gi"})");
    release();
    pass(10);
  }
}

TEST_F(ExpansionTest, attributes_that_a_bound_claim_asks_for_later_are_refused) {
  put_claim();
  ask_for("1Gi");
  want_attributes("gold");
  EXPECT_EQ(at("modifyVolumeStatus.status"), "Pending");
  EXPECT_EQ(at("modifyVolumeStatus.targetVolumeAttributesClassName"), "gold");
  EXPECT_EQ(conditions(), "");
  pass(120);
  EXPECT_EQ(count_told("VolumeModifyFailed: VAC \"gold\" does not exist."), 1);
  client.put(kVolumeAttributesClass, R"({"metadata":{"name":"gold"},"driverName":"example.com"})");
  pass(61);
  EXPECT_EQ(at("modifyVolumeStatus.status"), "Infeasible");
  EXPECT_EQ(conditions(), "ModifyingVolume ModifyVolumeError ");
  EXPECT_EQ(count_told("VolumeModifyFailed: failed to modify volume \"pvc-uid-data\": a directory has none of the attributes "
                       "that the VolumeAttributesClass \"gold\" could set"),
            1);
  EXPECT_FALSE(find(status(), "currentVolumeAttributesClassName"));

  want_attributes("silver");
  EXPECT_EQ(at("modifyVolumeStatus.status"), "Pending");
  EXPECT_EQ(at("modifyVolumeStatus.targetVolumeAttributesClassName"), "silver");
  EXPECT_EQ(conditions(), "ModifyingVolume ModifyVolumeError ");
  want_attributes(nullptr);
  EXPECT_EQ(conditions(), "ModifyVolumeError ") << "it is what came of the last one";
  EXPECT_EQ(count_told("VolumeModifyCanceled: Cancelled modify."), 1);
}

TEST_F(ExpansionTest, may_be_asked_for_with_attributes_at_once) {
  put_claim();
  ask_for("1Gi");
  client.put(kVolumeAttributesClass, R"({"metadata":{"name":"gold"},"driverName":"example.com"})");
  MUST(client.patch(kPersistentVolumeClaim, {"shop", "data"}, PatchType::merge,
                    {{"spec", {{"volumeAttributesClassName", "gold"}, {"resources", {{"requests", {{"storage", "2Gi"}}}}}}}}));
  pass(10);
  EXPECT_EQ(at("capacity.storage"), "2Gi");
  EXPECT_EQ(at("modifyVolumeStatus.status"), "Infeasible");
  EXPECT_EQ(conditions(), "ModifyingVolume ModifyVolumeError ");
}

}  // namespace
}  // namespace coracle::volume
