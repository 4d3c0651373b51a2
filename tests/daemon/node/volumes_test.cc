// SPDX-License-Identifier: Apache-2.0
// Volumes: their content, its atomic replacement, and that no path leads out of them.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "daemon/node/files.h"
#include "daemon/node/volume/atomic_writer.h"
#include "tests/daemon/node/machine.h"

namespace coracle::node {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

class AtomicWriterTest : public Machine {
 protected:
  std::string volume_ = directory_ + "/volume";
  std::set<std::string> visible() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(volume_)) names.insert(entry.path().filename());
    return names;
  }
};

TEST_F(AtomicWriterTest, shows_all_of_the_old_or_all_of_the_new) {
  ASSERT_TRUE(*write_payload(volume_, {{"a", {"1"}}, {"deep/b", {"2", 0600, {}}}}, {}, clock_.now()));
  EXPECT_EQ(read(volume_ + "/a"), "1");
  EXPECT_EQ(read(volume_ + "/deep/b"), "2");
  EXPECT_EQ(fs::read_symlink(volume_ + "/a"), "..data/a");
  std::string first = fs::read_symlink(volume_ + "/..data");
  EXPECT_FALSE(*write_payload(volume_, {{"a", {"1"}}, {"deep/b", {"2", 0600, {}}}}, {}, clock_.now()));
  EXPECT_EQ(fs::read_symlink(volume_ + "/..data"), first);
  ASSERT_TRUE(*write_payload(volume_, {{"c", {"3"}}}, {}, clock_.now()));  // the clock does not advance; the names differ
                                                                           // nevertheless
  EXPECT_EQ(read(volume_ + "/c"), "3");
  EXPECT_EQ(visible(), (std::set<std::string>{"c", "..data", fs::read_symlink(volume_ + "/..data").string()}));
}

TEST_F(AtomicWriterTest, sees_every_difference) {
  ASSERT_TRUE(*write_payload(volume_, {{"a", {"1"}}}, {}, clock_.now()));
  EXPECT_TRUE(*write_payload(volume_, {{"a", {"1", 0600, {}}}}, {}, clock_.now()));
  EXPECT_TRUE(*write_payload(volume_, {{"a", {"1", 0600, {}}}, {"b", {""}}}, {}, clock_.now()));
  EXPECT_TRUE(*write_payload(volume_, {}, {}, clock_.now()));
  EXPECT_FALSE(fs::exists(volume_ + "/a"));
}

TEST_F(AtomicWriterTest, refuses_paths_that_lead_out) {
  for (const char* path : {"../x", "/x", "a/../../x", "..data", "..x", "a//b", "", "a/."})
    EXPECT_FALSE(write_payload(volume_, {{path, {"1"}}}, {}, clock_.now())) << path;
}

// CVE-2025-9566: links that a container with write access left in its volume point to the host.
TEST_F(AtomicWriterTest, links_that_a_container_left_lead_nowhere) {
  const std::string outside = directory_ + "/outside";
  fs::create_directories(outside + "/deep");
  std::ofstream(outside + "/a") << "the host's";
  std::ofstream(outside + "/deep/b") << "the host's";
  ASSERT_TRUE(*write_payload(volume_, {{"a", {"1"}}, {"deep/b", {"2"}}}, {}, clock_.now()));
  int round = 0;
  for (const char* place : {"a", "deep", "..data", "..data_tmp", "..new", "NOW/a", "NOW/deep", "b"}) {
    std::string name = place;
    if (name.starts_with("NOW")) name = fs::read_symlink(volume_ + "/..data").string() + name.substr(3);
    fs::remove_all(volume_ + "/" + name);
    bool is_directory = name.ends_with("deep") || name.starts_with("..data");
    fs::create_symlink(is_directory ? outside + (name.ends_with("deep") ? "/deep" : "") : outside + "/a", volume_ + "/" + name);
    ++round;
    (void)write_payload(volume_, {{"a", {std::to_string(round)}}, {"b", {"3"}}, {"deep/b", {"4"}}}, 1234, clock_.now());
    EXPECT_EQ(read(outside + "/a"), "the host's") << name;
    EXPECT_EQ(read(outside + "/deep/b"), "the host's") << name;
    struct stat info {};
    ASSERT_EQ(::stat((outside + "/a").c_str(), &info), 0);
    EXPECT_NE(info.st_gid, 1234u) << name;
    EXPECT_EQ(std::distance(fs::directory_iterator(outside), {}), 2) << name;
    EXPECT_EQ(std::distance(fs::directory_iterator(outside + "/deep"), {}), 1) << name;
  }
}

TEST_F(AtomicWriterTest, a_directory_gives_way_when_nothing_is_in_it_or_mounted_on_it) {
  fs::create_directories(volume_ + "/empty");
  fs::create_directories(volume_ + "/full/of");
  fs::create_directories(volume_ + "/mounted");
  ASSERT_TRUE(*write_payload(volume_, {{"empty", {"1"}}, {"full", {"2"}}, {"mounted", {"3"}}}, {}, clock_.now(), 0, {"mounted"}));
  EXPECT_EQ(read(volume_ + "/empty"), "1");
  EXPECT_TRUE(fs::is_directory(volume_ + "/full/of"));
  EXPECT_TRUE(fs::is_directory(fs::symlink_status(volume_ + "/mounted")));
  EXPECT_EQ(*shown_file(volume_, "full"), "2");
}

TEST_F(AtomicWriterTest, clears_what_a_cut_off_write_left) {
  ASSERT_TRUE(*write_payload(volume_, {{"a", {"1"}}}, {}, clock_.now()));
  fs::create_directories(volume_ + "/..2001_half/x");
  fs::create_symlink("nowhere", volume_ + "/..data_tmp");
  ASSERT_TRUE(*write_payload(volume_, {{"a", {"2"}}}, {}, clock_.now()));
  EXPECT_EQ(read(volume_ + "/a"), "2");
  EXPECT_EQ(visible().size(), 3u);
}

class VolumesTest : public Machine {
 protected:
  std::string shown(const std::string& id, const std::string& destination, const std::string& path) const {
    auto spec = spec_of(id);
    if (!spec) return "no container";
    for (const auto& mount : spec->spec.mounts)
      if (mount.destination == destination) return read("/proc/self/fd/" + std::to_string(mount.source_fd->get()) + path);
    return "no mount";
  }
  void put_map(const std::string& value) {
    client_.put(kConfigMap,
                R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"settings"},"data":{"x":")" +
                    value + R"(","y":"2"}})");
    settle();
  }
  static std::string pod_with(const std::string& volume, const std::string& mount = "", const std::string& more = "") {
    return more + R"("containers":[{"name":"a","image":"web:1","volumeMounts":[{"name":"v","mountPath":"/v")" + mount +
           R"(}]}],"volumes":[{"name":"v",)" + volume + "}]";
  }

  void debug_with_the_volume() {  // adds the ephemeral container "dbg", which uses the volume "v"
    json::value now = pod();
    make(now, "spec.ephemeralContainers") =
        MUST(parse_json(R"([{"name":"dbg","image":"web:1","volumeMounts":[{"name":"v","mountPath":"/v"}]}])"));
    client_.put(kPod, to_text(now));
    settle();
  }

  NfsMounts nfs_{{config_.mounts, clock_, {}, {}}};
  SlowPlaces places_{{clock_, {}, config_.place_patience}};
};

TEST_F(VolumesTest, a_kind_of_volume_that_the_node_lacks_is_named) {
  boot();
  put_pod(pod_with(R"("cephfs":{"monitors":["s"]})"));
  EXPECT_TRUE(
      events_.has("FailedMount MountVolume.SetUp failed for volume \"v\" : this node has no volumes of the kind \"cephfs\""));
  put_pod(pod_with(R"("nfs":{"server":"s","path":"/p"})"), "shares");
  EXPECT_TRUE(events_.has("FailedMount MountVolume.SetUp failed for volume \"v\" : this node has no NFS volumes"));
}

TEST_F(VolumesTest, a_volume_is_made_when_a_container_uses_it) {
  boot();
  put_pod(R"("containers":[{"name":"a","image":"web:1"}],"volumes":[{"name":"v","emptyDir":{}}])");
  EXPECT_EQ(state(), "Running");
  const std::string place = config_.state_dir + "/" + uid() + "/volumes/v";
  EXPECT_FALSE(fs::exists(place));
  debug_with_the_volume();
  EXPECT_EQ(state("dbg"), "Running");
  EXPECT_TRUE(fs::exists(place));
}

TEST_F(VolumesTest, an_ephemeral_container_starts_whatever_became_of_a_source) {
  boot();
  put_map("1");
  put_pod(pod_with(R"("configMap":{"name":"settings"})"));
  ASSERT_EQ(state(), "Running");
  ASSERT_TRUE(client_.remove(kConfigMap, {"default", "settings"}));
  settle();
  debug_with_the_volume();
  EXPECT_EQ(state("dbg"), "Running");
}

TEST_F(VolumesTest, of_too_many_none_is_made) {
  std::string mounts, volumes;
  for (int i = 0; i <= 500; ++i) {
    std::string name = "v" + std::to_string(i);
    mounts += R"({"name":")" + name + R"(","mountPath":"/)" + name + "\"},";
    volumes += R"({"name":")" + name + R"(","emptyDir":{}},)";
  }
  mounts.pop_back(), volumes.pop_back();
  boot();
  put_pod(R"("containers":[{"name":"a","image":"web:1","volumeMounts":[)" + mounts + R"(]}],"volumes":[)" + volumes + "]");
  EXPECT_EQ(state(), "Waiting ContainerCreating");
  EXPECT_TRUE(events_.has("W FailedMount The containers use 501 volumes; this node gives a pod at most 500"));
  EXPECT_FALSE(fs::exists(config_.state_dir + "/" + uid() + "/volumes"));
}

TEST_F(VolumesTest, of_too_many_mounts_none_is_made) {
  std::string mounts;
  for (int i = 0; i <= 1000; ++i)
    mounts += R"({"name":"v","subPath":"s","mountPath":"/)" + std::to_string(i) + (i < 1000 ? "\"}," : "\"}");
  boot();
  put_pod(R"("containers":[{"name":"a","image":"web:1","volumeMounts":[)" + mounts +
          R"(]}],"volumes":[{"name":"v","emptyDir":{}}])");
  EXPECT_EQ(state(), "Waiting CreateContainerConfigError");
  EXPECT_TRUE(events_.has("W Failed Error: the container has 1001 volume mounts; this node makes at most 1000"));
  EXPECT_FALSE(fs::exists(config_.state_dir + "/" + uid() + "/volumes/v/s"));
}

class ImageVolumesTest : public VolumesTest {
 protected:
  static std::string image(const std::string& reference, const std::string& more = "") {
    return R"("image":{"reference":")" + reference + "\"" + more + "}";
  }
};

TEST_F(ImageVolumesTest, an_image_is_pulled_and_mounted_to_be_read) {
  std::string id = runtime_.images_fake().add("registry.example/models:3", {}, false);
  boot();
  put_pod(pod_with(image("registry.example/models:3"), R"(,"mountPropagation":"None")"));
  EXPECT_EQ(state(), "Waiting ContainerCreating");
  EXPECT_TRUE(events_.has("Pulling image \"registry.example/models:3\""));
  ASSERT_TRUE(pulls_.run_one());
  settle();
  EXPECT_EQ(state(), "Running");
  EXPECT_TRUE(events_.has("Successfully pulled image \"registry.example/models:3\""));
  EXPECT_EQ(shown("a-0", "/v", "/of"), id);
  const auto spec = spec_of("a-0");
  for (const auto& mount : spec->spec.mounts) EXPECT_TRUE(mount.destination != "/v" || mount.options.back() == "ro");
  EXPECT_EQ(runtime_.images_fake().held().at(uid() + ".volume.v"), id);
}

TEST_F(ImageVolumesTest, the_image_is_let_go_with_the_pod) {
  runtime_.images_fake().add("registry.example/models:3");
  boot();
  put_pod(pod_with(image("registry.example/models:3")));
  EXPECT_EQ(state(), "Running");
  EXPECT_EQ(runtime_.images_fake().held().size(), 1u);
  ASSERT_TRUE(client_.remove(kPod, {"default", "web"}));
  settle();
  advance(seconds(60));
  EXPECT_EQ(runtime_.images_fake().held().size(), 0u);
}

TEST_F(ImageVolumesTest, only_who_mounts_it_waits_for_it) {
  boot();
  put_pod(R"("containers":[{"name":"a","image":"web:1","volumeMounts":[{"name":"v","mountPath":"/v"}]},
      {"name":"b","image":"web:1"}],"volumes":[{"name":"v",)" +
          image("registry.example/nothing:1") + "}]");
  ASSERT_TRUE(pulls_.run_one());
  settle();
  EXPECT_EQ(state("a"), "Waiting ErrImagePull");
  EXPECT_EQ(state("b"), "Running");
  advance(seconds(2));
  EXPECT_EQ(state("a"), "Waiting ImagePullBackOff");
  EXPECT_FALSE(pulls_.run_one());
  std::string id = runtime_.images_fake().add("registry.example/nothing:1", {}, false);
  advance(seconds(8));
  ASSERT_TRUE(pulls_.run_one());
  settle();
  EXPECT_EQ(state("a"), "Running");
  EXPECT_EQ(shown("a-0", "/v", "/of"), id);
}

TEST_F(ImageVolumesTest, the_pull_policy_decides) {
  boot();
  put_pod(pod_with(image("registry.example/models:3", R"(,"pullPolicy":"Never")")), "never");
  EXPECT_EQ(state("a", "never"), "Waiting ErrImageNeverPull");
  runtime_.images_fake().add("registry.example/models:3");
  put_pod(pod_with(image("registry.example/models:3", R"(,"pullPolicy":"Always")")), "always");
  EXPECT_EQ(state("a", "always"), "Waiting ContainerCreating");
  ASSERT_TRUE(pulls_.run_one());
  settle();
  EXPECT_EQ(state("a", "always"), "Running");
  put_pod(pod_with(image("not an image", R"(,"pullPolicy":"IfNotPresent")")), "invalid");
  EXPECT_EQ(state("a", "invalid"), "Waiting InvalidImageName");
}

TEST_F(ImageVolumesTest, what_is_in_the_image_can_be_mounted_alone) {
  std::string id = runtime_.images_fake().add("registry.example/models:3");
  boot();
  put_pod(pod_with(image("registry.example/models:3"), R"(,"subPath":"of")"));
  EXPECT_EQ(state(), "Running");
  EXPECT_EQ(shown("a-0", "/v", ""), id);
  put_pod(pod_with(image("registry.example/models:3"), R"(,"subPath":"missing")"), "other");
  EXPECT_EQ(state("a", "other"), "Waiting CreateContainerConfigError");
  EXPECT_TRUE(events_.has("failed to prepare subPath for volumeMount \"v\" of container \"a\""));
  EXPECT_FALSE(std::filesystem::exists(config_.state_dir + "/" + uid("other") + "/volumes/v/missing"));
}

TEST_F(ImageVolumesTest, a_private_image_is_pulled_by_the_pods_secrets) {
  runtime_.images_fake().protect(runtime_.images_fake().add("registry.example/models:3"));
  boot();
  put_pod(pod_with(image("registry.example/models:3")));
  EXPECT_EQ(state(), "Waiting ContainerCreating") << "its registry is asked";
  ASSERT_TRUE(pulls_.run_one());
  settle();
  EXPECT_EQ(state(), "Running");
}

class ClaimsTest : public VolumesTest {
 protected:
  void put_claim(const std::string& volume, const std::string& more = "") {
    client_.put(kPersistentVolumeClaim,
                R"({"metadata":{"name":"data","namespace":"default","uid":"uid-data"},"spec":{"accessModes":
      ["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}},"volumeName":")" +
                    volume + R"("})" + more + "}");
    settle();
  }
  void put_volume(const std::string& source, const std::string& claim = "uid-data") {
    client_.put(kPersistentVolume, R"({"metadata":{"name":"disk"},"spec":{"capacity":{"storage":"1Gi"},"accessModes":
      ["ReadWriteOnce"],"claimRef":{"namespace":"default","name":"data","uid":")" +
                                       claim + "\"}," + source + R"(},"status":{"phase":"Bound"}})");
    settle();
  }
  static constexpr const char* kClaimed = R"("persistentVolumeClaim":{"claimName":"data"})";
  static constexpr const char* kBound = R"(,"status":{"phase":"Bound"})";
};

TEST_F(ClaimsTest, a_pod_waits_for_its_volume_and_gets_it) {
  std::filesystem::create_directories(directory_ + "/disk");
  std::ofstream(directory_ + "/disk/file") << "kept";
  boot();
  put_pod(pod_with(kClaimed));
  EXPECT_TRUE(
      events_.has("W FailedMount Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to "
                  "process volumes=[v]: error processing PVC default/data: persistentvolumeclaim \"data\" not found"));
  put_claim("");
  EXPECT_TRUE(events_.has("PVC default/data has non-bound phase"));
  put_claim("disk", kBound);
  EXPECT_TRUE(events_.has("persistentvolume \"disk\" not found"));
  put_volume(R"("local":{"path":")" + directory_ + R"(/nowhere"})");
  EXPECT_TRUE(events_.has("W FailedMount MountVolume.NewMounter initialization failed for volume \"disk\" : path \"" +
                          directory_ + "/nowhere\" does not exist (PVC default/data)"));
  EXPECT_EQ(state(), "Waiting ContainerCreating");
  put_volume(R"("local":{"path":")" + directory_ + R"(/disk"})");
  EXPECT_EQ(state(), "Running");
  EXPECT_EQ(shown("a-0", "/v", "/file"), "kept");
}

TEST_F(ClaimsTest, one_that_is_another_claims_is_not_mounted) {
  std::filesystem::create_directories(directory_ + "/disk");
  boot();
  put_claim("disk", kBound);
  put_volume(R"("local":{"path":")" + directory_ + R"(/disk"})", "somebody");
  put_pod(pod_with(kClaimed));
  EXPECT_TRUE(events_.has("persistentvolume \"disk\" is bound to a different PVC"));
  EXPECT_EQ(state(), "Waiting ContainerCreating");
}

TEST_F(ClaimsTest, one_of_another_node_is_not_mounted) {
  std::filesystem::create_directories(directory_ + "/disk");
  boot();
  auto volume_on = [&](const std::string& node) {
    return MUST(
        Object::make(kPersistentVolume, *parse_json(R"({"metadata":{"name":"disk"},"spec":{"capacity":{"storage":"1Gi"},
      "accessModes":["ReadWriteOnce"],"claimRef":{"namespace":"default","name":"data","uid":"uid-data"},"local":{"path":")" +
                                                    directory_ + R"(/disk"},"nodeAffinity":{"required":{"nodeSelectorTerms":[
      {"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"In","values":[")" +
                                                    node + R"("]}]}]}}},"status":{"phase":"Bound"}})")));
  };
  put_claim("disk", kBound);
  ObjectPtr volume;
  Lookup lookup;
  lookup.storage = {[&](const Key& key) { return client_.find(kPersistentVolumeClaim, key); },
                    [&](std::string_view) { return volume; }};
  ObjectPtr node =
      MUST(Object::make(kNode, *parse_json(R"({"metadata":{"name":"node-1","labels":{"kubernetes.io/hostname":"node-1"}}})")));
  lookup.node = [&] { return node; };
  Volumes volumes(config_, clock_, runtime_.images(), nfs_, places_, {}, walks_.executor());
  const json::value pod = *parse_json("{\"metadata\":{\"namespace\":\"default\",\"name\":\"web\",\"uid\":\"u-1\"},\"spec\":{" +
                                      pod_with(kClaimed) + "}}");
  PodPaths paths = *paths_of(config_, {"default", "web"}, "u-1");
  auto failures_if = [&](bool begins) { return volumes.prepare(pod, paths, lookup, {}, begins).failures; };
  volume = volume_on("node-1");
  EXPECT_TRUE(failures_if(true).empty());
  volume = volume_on("node-2");
  const auto failures = failures_if(true);
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_STREQ(failures[0].reason, "FailedMount");
  EXPECT_EQ(failures[0].text,
            "MountVolume.NodeAffinity check failed for volume \"disk\" : no matching NodeSelectorTerms (PVC default/data)");
  EXPECT_TRUE(failures_if(false).empty()) << "what a running pod has, it keeps";
  node = nullptr;
  EXPECT_TRUE(failures_if(true).empty()) << "the node does not know itself yet";
}

TEST_F(ClaimsTest, what_a_kind_cannot_do_is_named) {
  boot();
  put_claim("disk", kBound);
  put_volume(R"("csi":{"driver":"disks.example.com","volumeHandle":"1"})");
  put_pod(pod_with(kClaimed));
  EXPECT_TRUE(events_.has("driver name disks.example.com not found in the list of registered CSI drivers"));
  put_volume(R"("iscsi":{"targetPortal":"10.0.0.1","iqn":"x","lun":0})");
  EXPECT_TRUE(events_.has("this node has no volumes of the kind \"iscsi\""));
}

TEST_F(ClaimsTest, a_directory_takes_the_options_of_a_mount) {
  std::filesystem::create_directories(directory_ + "/disk");
  const std::string disk = R"("local":{"path":")" + directory_ + R"(/disk"})";
  boot();
  put_claim("disk", kBound);
  put_volume(R"("mountOptions":["noatime","ro","defaults","noexec"],)" + disk);
  put_pod(pod_with(kClaimed));
  ASSERT_EQ(state(), "Running");
  const auto mounts = spec_of("a-0")->spec.mounts;
  auto mount = std::ranges::find(mounts, "/v", &oci::Mount::destination);
  ASSERT_NE(mount, mounts.end());
  EXPECT_EQ(mount->options, (std::vector<std::string>{"rbind", "rprivate", "noatime", "ro", "noexec", "ro"}));
  put_volume(R"("mountOptions":["discard"],)" + disk);
  put_pod(pod_with(kClaimed), "second");
  EXPECT_TRUE(events_.has("MountVolume.SetUp failed for volume \"disk\" : a directory has no mount option \"discard\""));
  put_volume(R"("mountOptions":["noatime"],"hostPath":{"path":"/disk"})");
  put_pod(pod_with(kClaimed), "third");
  EXPECT_TRUE(
      events_.has("MountVolume.MountOptionSupport check failed for volume \"disk\" : Mount options are not supported for "
                  "this volume type (PVC default/data)"));
}

TEST_F(ClaimsTest, each_volume_that_is_not_there_is_told) {
  std::filesystem::create_directories(directory_ + "/disk");
  boot();
  put_claim("disk", kBound);
  put_volume(R"("local":{"path":")" + directory_ + R"(/gone"})");
  put_pod(R"("containers":[{"name":"a","image":"web:1","volumeMounts":[{"name":"there","mountPath":"/t"},{"name":"v","mountPath":
      "/v"},{"name":"map","mountPath":"/m"},{"name":"one","mountPath":"/1"},{"name":"two","mountPath":"/2"}]}],"volumes":[
      {"name":"two","persistentVolumeClaim":{"claimName":"two"}},{"name":"map","configMap":{"name":"settings"}},
      {"name":"one","persistentVolumeClaim":{"claimName":"one"}},{"name":"v","persistentVolumeClaim":{"claimName":"data"}},
      {"name":"there","emptyDir":{}},{"name":"unused","configMap":{"name":"none"}},
      {"name":"idle","persistentVolumeClaim":{"claimName":"idle"}}])");
  auto told = [&] {
    std::vector<std::string> told;
    for (auto& event : events_.all())
      if (event.starts_with("W ")) told.push_back(event);
    return told;
  };
  const std::vector<std::string> all = {
      "W FailedMount MountVolume.SetUp failed for volume \"map\" : configmap \"settings\" not found",
      "W FailedMount MountVolume.NewMounter initialization failed for volume \"disk\" : path \"" + directory_ +
          "/gone\" does not exist (PVC default/data)",
      "W FailedMount Unable to attach or mount volumes: unmounted volumes=[map one two v], unattached volumes=[], failed to "
      "process volumes=[one two]: error processing PVC default/two: persistentvolumeclaim \"two\" not found; error processing "
      "PVC "
      "default/one: persistentvolumeclaim \"one\" not found"};
  EXPECT_EQ(told(), all);
  for (int i = 0; i < 10; ++i) advance(seconds(2));
  EXPECT_EQ(told(), all) << "once";
  EXPECT_TRUE(fs::is_directory(config_.state_dir + "/" + uid() + "/volumes/there"));
}

TEST_F(ClaimsTest, a_volume_that_no_container_has_holds_nobody_up) {
  boot();
  put_pod(R"("containers":[{"name":"a","image":"web:1","volumeMounts":[{"name":"e","mountPath":"/e"}]}],"volumes":[
      {"name":"e","emptyDir":{}},{"name":"map","configMap":{"name":"none"}},{"name":"claim","persistentVolumeClaim":
      {"claimName":"none"}}])");
  EXPECT_EQ(state(), "Running");
  EXPECT_FALSE(events_.has("FailedMount"));
}

class SolePodsTest : public ClaimsTest {
 protected:
  void SetUp() override { std::filesystem::create_directories(directory_ + "/disk"); }
  void put_volume_of(const std::string& modes) {
    put_claim("disk", kBound);
    client_.put(kPersistentVolume, R"({"metadata":{"name":"disk"},"spec":{"capacity":{"storage":"1Gi"},"accessModes":)" + modes +
                                       R"(,"claimRef":{"namespace":"default","name":"data","uid":"uid-data"},"local":{"path":")" +
                                       directory_ + R"(/disk"}},"status":{"phase":"Bound"}})");
    settle();
  }
  static constexpr const char* kRefused =
      "W FailedMount MountVolume.SetUp failed for volume \"disk\" : volume uses the ReadWriteOncePod access mode and is already "
      "in use by another pod (PVC default/data)";
};

TEST_F(SolePodsTest, the_second_pod_waits_for_the_end_of_the_first) {
  boot();
  put_volume_of(R"(["ReadWriteOncePod"])");
  put_claim_user("first");
  ASSERT_EQ(state("a", "first"), "Running");
  put_claim_user("second");
  EXPECT_EQ(state("a", "second"), "Waiting ContainerCreating");
  EXPECT_TRUE(events_.has(kRefused));
  boot();
  advance(seconds(2));
  EXPECT_EQ(state("a", "first"), "Running");
  EXPECT_EQ(state("a", "second"), "Waiting ContainerCreating") << "a new daemon knows who has it";
  ASSERT_TRUE(client_.remove(kPod, {"default", "first"}, {}));
  settle();
  EXPECT_EQ(state("a", "second"), "Waiting ContainerCreating") << "the first one ends, but has not ended";
  advance(seconds(60));
  EXPECT_EQ(state("a", "second"), "Running");
}

TEST_F(SolePodsTest, a_pod_that_waits_for_another_volume_has_it_already) {
  boot();
  put_volume_of(R"(["ReadWriteOncePod"])");
  put_pod(R"("containers":[{"name":"a","image":"web:1","volumeMounts":[{"name":"v","mountPath":"/v"},{"name":"m","mountPath":
      "/m"}]}],"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"data"}},{"name":"m","configMap":{"name":"settings"}}])",
          "first");
  ASSERT_EQ(state("a", "first"), "Waiting ContainerCreating");
  EXPECT_FALSE(events_.has(kRefused));
  put_claim_user("second");
  EXPECT_TRUE(events_.has(kRefused));
  put_map("1");
  advance(seconds(2));
  EXPECT_EQ(state("a", "first"), "Running");
  EXPECT_EQ(state("a", "second"), "Waiting ContainerCreating");
}

TEST_F(SolePodsTest, other_modes_are_shared_on_one_node) {
  for (const char* modes : {R"(["ReadWriteOnce"])", R"(["ReadWriteOnce","ReadWriteOncePod"])"}) {
    boot();
    put_volume_of(modes);
    for (const char* name : {"first", "second"}) {
      put_claim_user(name);
      EXPECT_EQ(state("a", name), "Running") << modes;
    }
  }
}

TEST_F(SolePodsTest, a_pod_that_does_not_mount_it_does_not_have_it) {
  boot();
  put_volume_of(R"(["ReadWriteOncePod"])");
  put_pod(R"("containers":[{"name":"a","image":"web:1"}],"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"data"}}])",
          "idle");
  EXPECT_EQ(state("a", "idle"), "Running");
  put_claim_user("second");
  EXPECT_EQ(state("a", "second"), "Running");
}

TEST_F(ClaimsTest, block_devices_are_devices) {
  std::string device;
  for (const auto& entry : std::filesystem::directory_iterator("/dev"))
    if (entry.is_block_file()) device = entry.path();
  if (device.empty()) GTEST_SKIP() << "this machine shows no block device";
  boot();
  put_claim("disk", kBound);
  put_volume(R"("volumeMode":"Block","local":{"path":")" + device + R"("})");
  put_pod(
      R"("containers":[{"name":"a","image":"web:1","volumeDevices":[{"name":"v","devicePath":"/dev/disk"}]}],"volumes":[{"name":"v",)" +
      std::string(kClaimed) + "}]");
  ASSERT_EQ(state(), "Running");
  auto spec = spec_of("a-0");
  ASSERT_EQ(spec->spec.linux_.devices.size(), 1u);
  EXPECT_EQ(spec->spec.linux_.devices[0].path, "/dev/disk");
  EXPECT_EQ(spec->spec.linux_.devices[0].type, "b");
  put_pod(pod_with(kClaimed), "mounts");
  EXPECT_TRUE(
      events_.has("FailedMount Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to "
                  "process volumes=[v]: volume v has volumeMode Block, but is specified in volumeMounts"));
  put_volume(R"("volumeMode":"Block","local":{"path":"/dev/none"})");
  put_pod(
      R"("containers":[{"name":"a","image":"web:1","volumeDevices":[{"name":"v","devicePath":"/d"}]}],"volumes":[{"name":"v",)" +
          std::string(kClaimed) + "}]",
      "nowhere");
  EXPECT_TRUE(
      events_.has("W FailedMapVolume MapVolume.SetUpDevice failed for volume \"disk\" : path \"/dev/none\" does not exist "
                  "(PVC default/data)"));
}

TEST_F(VolumesTest, a_config_map_is_shown_and_follows_its_object) {
  boot();
  put_map("1");
  put_pod(pod_with(R"("configMap":{"name":"settings","items":[{"key":"x","path":"in/x","mode":256}]})"));
  EXPECT_EQ(state(), "Running");
  EXPECT_EQ(shown("a-0", "/v", "/in/x"), "1");
  EXPECT_EQ(shown("a-0", "/v", "/y"), "");
  struct stat info {};
  ASSERT_EQ(::stat((config_.memory_dir + "/" + uid() + "/v/in/x").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0400u);
  put_map("changed");
  EXPECT_EQ(shown("a-0", "/v", "/in/x"), "changed");
  auto spec = spec_of("a-0");
  EXPECT_TRUE(std::any_of(spec->spec.mounts.begin(), spec->spec.mounts.end(), [](auto& m) {
    return m.destination == "/v" && std::find(m.options.begin(), m.options.end(), "ro") != m.options.end();
  }));
}

TEST_F(VolumesTest, one_large_key_many_times_is_refused) {
  boot();
  client_.put(kConfigMap,
              R"({"metadata":{"name":"settings","namespace":"default"},"data":{"x":")" + std::string(1 << 20, 'x') + "\"}}");
  std::string items;
  for (int i = 0; i < 1000; ++i) items += (i ? "," : "") + std::string(R"({"key":"x","path":"p)") + std::to_string(i) + "\"}";
  put_pod(pod_with(R"("configMap":{"name":"settings","items":[)" + items + "]}"));
  EXPECT_TRUE(events_.has("the volume would take more than 32 MiB"));
}

// A container cannot create mount points in a read-only volume.
TEST_F(VolumesTest, mounts_inside_data_volumes_find_their_places) {
  boot();
  put_map("1");
  std::ofstream(config_.host_root + "/file") << "one";
  put_pod(R"("containers":[{"name":"a","image":"web:1","terminationMessagePath":"/v/log/end","volumeMounts":[
      {"name":"v","mountPath":"v/"},{"name":"e","mountPath":"/v/data"},{"name":"e","mountPath":"/v/deep//er"},
      {"name":"f","mountPath":"/v/one.conf"},{"name":"f","mountPath":"/v/y"},{"name":"w","mountPath":"/v/deep/er/w"},
      {"name":"r","mountPath":"/r","readOnly":true},{"name":"e","mountPath":"/r/in"},{"name":"v","mountPath":"/etc"}]}],
    "volumes":[{"name":"v","configMap":{"name":"settings"}},{"name":"w","configMap":{"name":"settings"}},
      {"name":"e","emptyDir":{}},{"name":"r","emptyDir":{}},{"name":"f","hostPath":{"path":"/file"}}])");
  ASSERT_EQ(state(), "Running");
  const std::string volume = config_.memory_dir + "/" + uid() + "/v", plain = config_.state_dir + "/" + uid() + "/volumes";
  auto all_are_there = [&] {
    for (const char* directory : {"/data", "/deep/er"}) EXPECT_TRUE(fs::is_directory(volume + directory)) << directory;
    for (const char* file : {"/one.conf", "/log/end", "/hosts", "/resolv.conf", "/hostname"})
      EXPECT_TRUE(fs::is_regular_file(volume + file)) << file;
    EXPECT_EQ(fs::read_symlink(volume + "/y"), "..data/y") << "what the volume shows is a place already";
    EXPECT_TRUE(fs::is_directory(plain + "/r/in"));
    EXPECT_TRUE(fs::is_directory(plain + "/e/w")) << "inside the inner one";
  };
  all_are_there();
  auto inode = [&](const char* name) {
    struct stat info {};
    EXPECT_EQ(::stat((volume + name).c_str(), &info), 0) << name;
    return info.st_ino;
  };
  auto data = inode("/data"), hosts = inode("/hosts");
  put_map("changed");
  EXPECT_EQ(shown("a-0", "/v", "/x"), "changed");
  all_are_there();
  EXPECT_EQ(inode("/data"), data) << "it would lose what is mounted there";
  EXPECT_EQ(inode("/hosts"), hosts);
  EXPECT_FALSE(fs::exists(config_.memory_dir + "/" + uid() + "/w/data"));
}

TEST_F(VolumesTest, what_is_missing_is_told_until_it_is_there) {
  boot();
  put_pod(pod_with(R"("configMap":{"name":"settings"})"));
  EXPECT_EQ(state(), "Waiting ContainerCreating");
  EXPECT_TRUE(events_.has("FailedMount MountVolume.SetUp failed for volume \"v\" : configmap \"settings\" not found"));
  EXPECT_TRUE(runtime_calls("create_sandbox").empty());
  put_map("1");
  EXPECT_EQ(state(), "Running");
}

TEST_F(VolumesTest, optional_sources_may_be_missing) {
  boot();
  put_pod(pod_with(R"("secret":{"secretName":"none","optional":true})"));
  EXPECT_EQ(state(), "Running");
}

TEST_F(VolumesTest, a_sub_path_waits_for_what_is_not_optional) {
  boot();
  put_pod(pod_with(R"("configMap":{"name":"settings"})", R"(,"subPath":"x")"));
  EXPECT_EQ(state(), "Waiting ContainerCreating");
  EXPECT_TRUE(events_.has("W FailedMount MountVolume.SetUp failed for volume \"v\" : configmap \"settings\" not found"));
  put_map("1");
  ASSERT_EQ(state(), "Running");
  EXPECT_EQ(shown("a-0", "/v", ""), "1");
}

// As kubelet: it is an empty directory, for as long as the container runs.
TEST_F(VolumesTest, a_sub_path_of_what_is_optional_and_missing_is_a_directory) {
  boot();
  put_pod(R"("containers":[{"name":"a","image":"web:1","volumeMounts":[{"name":"v","mountPath":"/v","subPath":"x"},
      {"name":"v","mountPath":"/w","subPath":"deep/er"},{"name":"s","mountPath":"/s","subPath":"key"}]}],"volumes":[
      {"name":"v","configMap":{"name":"settings","optional":true}},{"name":"s","secret":{"secretName":"none","optional":true}}])");
  ASSERT_EQ(state(), "Running");
  const std::string volume = config_.memory_dir + "/" + uid() + "/v";
  for (const char* directory : {"/v/x", "/v/deep/er", "/s/key"})
    EXPECT_TRUE(fs::is_directory(fs::symlink_status(config_.memory_dir + "/" + uid() + directory))) << directory;
  const auto mounts = spec_of("a-0")->spec.mounts;
  for (const auto& mount : mounts)
    EXPECT_TRUE(mount.destination.size() != 2 || mount.options.back() == "ro") << mount.destination;
  put_map("1");
  EXPECT_EQ(read(volume + "/y"), "2") << "the volume follows its object";
  EXPECT_EQ(read(volume + "/x"), "1") << "the next container has the file";
  EXPECT_TRUE(fs::is_directory(volume + "/deep/er")) << "what is mounted stays";
  for (const auto& event : events_.all()) EXPECT_EQ(event.find("FailedMount"), event.npos) << event;
  runtime_.exit(uid(), "a-0", 1);
  settle();
  advance(seconds(10));
  ASSERT_EQ(state(), "Running");
  EXPECT_EQ(shown("a-1", "/v", ""), "1");
}

TEST_F(VolumesTest, a_sub_path_that_cannot_be_made_is_told) {
  boot();
  put_map("1");
  put_pod(pod_with(R"("configMap":{"name":"settings"})", R"(,"subPath":"x/in")"));
  EXPECT_EQ(state(), "Waiting CreateContainerConfigError");
  EXPECT_TRUE(events_.has("W Failed Error: failed to prepare subPath for volumeMount \"v\" of container \"a\""));
}

TEST_F(VolumesTest, projected_volumes_join_their_sources) {
  boot();
  put_map("1");
  client_.put(kSecret,
              R"({"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"default","name":"keys"},"data":{"k":"c2VjcmV0"}})");
  put_pod(pod_with(
      R"("projected":{"sources":[{"configMap":{"name":"settings"}},{"secret":{"name":"keys","items":[{"key":"k","path":"key"}]}},
    {"downwardAPI":{"items":[{"path":"name","fieldRef":{"fieldPath":"metadata.name"}}]}}]})"));
  EXPECT_EQ(shown("a-0", "/v", "/x"), "1");
  EXPECT_EQ(shown("a-0", "/v", "/key"), "secret");
  EXPECT_EQ(shown("a-0", "/v", "/name"), "web");
}

TEST_F(VolumesTest, empty_dirs_are_the_pods_and_go_with_it) {
  boot();
  put_pod(pod_with(R"("emptyDir":{})"));
  std::string path = config_.state_dir + "/" + uid() + "/volumes/v";
  ASSERT_TRUE(fs::is_directory(path));
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::all);
  // The container's leftovers are removed, but not the targets of its links.
  fs::create_directories(directory_ + "/precious/dir");
  fs::create_directory_symlink(directory_ + "/precious", path + "/link");
  fs::create_directories(path + "/deep/er");
  std::ofstream(path + "/deep/er/file") << "x";
  ASSERT_TRUE(client_.remove(kPod, {"default", "web"}, {}));
  settle();
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(fs::exists(directory_ + "/precious/dir"));
}

TEST_F(VolumesTest, an_empty_dir_that_was_cut_off_before_it_had_its_rights_gets_them) {
  config_.mounts.tmpfs = [](const std::string& path, Bytes, unsigned mode) -> Result<void> {
    if (fs::exists(path + "/content")) return {};
    return files::set_mode(path, mode);  // mounted again, as after a reboot
  };
  boot();
  put_pod(pod_with(R"("emptyDir":{})"), "disk");
  put_pod(pod_with(R"("emptyDir":{"medium":"Memory"})"), "memory");
  auto path = [&](const std::string& name) { return config_.state_dir + "/" + uid(name) + "/volumes/v"; };
  auto mode = [&](const std::string& name) { return unsigned(fs::status(path(name)).permissions()); };
  ASSERT_EQ(::chmod(path("disk").c_str(), 01500), 0);
  boot();
  EXPECT_EQ(mode("disk"), 0777u);
  EXPECT_EQ(mode("memory"), 01777u);
  ASSERT_EQ(::chmod(path("disk").c_str(), 0700), 0);
  ASSERT_EQ(::chmod(path("memory").c_str(), 0700), 0);
  std::ofstream(path("memory") + "/content") << "x";
  boot();
  EXPECT_EQ(mode("disk"), 0700u) << "its program's choice stays";
  EXPECT_EQ(mode("memory"), 0700u);
}

TEST_F(VolumesTest, a_volume_in_memory_has_a_size) {
  std::vector<int64_t> sizes;  // in MiB
  config_.mounts.tmpfs = [&](const std::string& path, Bytes size, unsigned) -> Result<void> {
    if (path.ends_with("/volumes/v")) sizes.push_back(size.count >> 20);
    return {};
  };
  boot();
  auto put = [&](const std::string& name, const std::string& bound, const std::string& limit) {
    put_pod(R"("containers":[{"name":"a","image":"web:1","resources":{"limits":{"memory":")" + limit +
                R"("}},"volumeMounts":[{"name":"v","mountPath":"/v"}]}],"volumes":[{"name":"v","emptyDir":{"medium":"Memory")" +
                bound + "}}]",
            name);
    EXPECT_EQ(state("a", name), "Running") << name;
  };
  put("bound", R"(,"sizeLimit":"3Mi")", "5Mi");
  put("limited", R"(,"sizeLimit":"30Mi")", "5Mi");
  put("unbound", "", "5Mi");
  EXPECT_EQ(sizes, (std::vector<int64_t>{3, 5, 5}));
  put_pod(pod_with(R"("emptyDir":{"medium":"Memory"})"), "free");
  ASSERT_EQ(sizes.size(), 4u);
  EXPECT_GT(sizes.back(), 5) << "what the node has for pods";
}

TEST_F(VolumesTest, what_is_shared_in_memory_is_its_owner_s_to_remove) {
  config_.mounts.tmpfs = [](const std::string&, Bytes, unsigned) -> Result<void> { return {}; };
  boot();
  auto mode = [&](const std::string& name) {
    struct stat info {};
    EXPECT_EQ(::stat((config_.state_dir + "/" + uid(name) + "/volumes/v").c_str(), &info), 0);
    return info.st_mode & 07777;
  };
  put_pod(pod_with(R"("emptyDir":{"medium":"Memory"})"), "shared");
  EXPECT_EQ(mode("shared"), 01777u);
  put_pod(pod_with(R"("emptyDir":{"medium":"Memory"})", "", R"("securityContext":{"fsGroup":123},)"), "grouped");
  EXPECT_EQ(mode("grouped"), 03777u);
  put_pod(pod_with(R"("emptyDir":{})"), "on-disk");
  EXPECT_EQ(mode("on-disk"), 0777u);
}

TEST_F(VolumesTest, a_sub_path_stays_inside_its_volume) {
  boot();
  fs::create_directories(config_.host_root + "/data");
  fs::create_directories(config_.host_root + "/outside");
  std::ofstream(config_.host_root + "/outside/secret") << "host";
  fs::create_directory_symlink("../outside", config_.host_root + "/data/escape");
  // ".." at the volume's root is the root itself: the link leads to data/outside.
  put_pod(pod_with(R"("hostPath":{"path":"/data"})", R"(,"subPath":"escape")"));
  EXPECT_EQ(state(), "Waiting CreateContainerConfigError");
  fs::create_directories(config_.host_root + "/data/outside");
  std::ofstream(config_.host_root + "/data/outside/secret") << "volume";
  advance(seconds(10));
  EXPECT_EQ(shown("a-0", "/v", "/secret"), "volume");
}

TEST_F(VolumesTest, a_sub_path_is_made_when_missing_and_expanded) {
  boot();
  put_pod(
      R"json("containers":[{"name":"a","image":"web:1","env":[{"name":"P","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}],
    "volumeMounts":[{"name":"v","mountPath":"/v","subPathExpr":"for/$(P)"}]}],"volumes":[{"name":"v","emptyDir":{}}])json");
  EXPECT_EQ(state(), "Running");
  EXPECT_TRUE(fs::is_directory(config_.state_dir + "/" + uid() + "/volumes/v/for/web"));
}

TEST_F(VolumesTest, a_sub_path_that_was_cut_off_before_it_had_its_rights_gets_them) {
  boot();
  const std::string volume = config_.host_root + "/data";
  fs::create_directories(volume + "/cut/off");
  fs::create_directories(volume + "/private");
  ASSERT_EQ(::chmod(volume.c_str(), 0777), 0);
  ASSERT_EQ(::chmod((volume + "/cut/off").c_str(), 03500), 0);  // a directory with an fsGroup
  ASSERT_EQ(::chmod((volume + "/private").c_str(), 0700), 0);
  int pods = 0;
  for (const std::string path : {"cut/off", "private", "new/one"})
    put_pod(pod_with(R"("hostPath":{"path":"/data"})", R"(,"subPath":")" + path + '"'), "web-" + std::to_string(++pods));
  auto mode = [&](const std::string& path) { return unsigned(fs::status(volume + path).permissions()); };
  EXPECT_EQ(mode("/cut/off"), 0777u);
  EXPECT_EQ(mode("/new/one"), 0777u);
  EXPECT_EQ(mode("/private"), 0700u);
}

TEST_F(VolumesTest, a_variable_may_stand_in_a_file_that_a_container_wrote) {
  boot();
  put_pod(R"("containers":[{"name":"a","image":"web:1","env":[{"name":"A","valueFrom":{"fileKeyRef":
      {"volumeName":"v","path":"deep/a.env","key":"A"}}}]}],"volumes":[{"name":"v","emptyDir":{}}])");
  EXPECT_EQ(state(), "Waiting CreateContainerConfigError");
  EXPECT_TRUE(events_.has("file \"deep/a.env\" of volume \"v\": "));
  const std::string volume = config_.state_dir + "/" + uid() + "/volumes/v";
  std::ofstream(directory_ + "/host.env") << "A='the host'\n";
  fs::create_directories(volume + "/deep");
  fs::create_symlink(directory_ + "/host.env", volume + "/deep/a.env");
  advance(seconds(10));
  EXPECT_EQ(state(), "Waiting CreateContainerConfigError") << "a link leads out of the volume";
  fs::remove(volume + "/deep/a.env");
  std::ofstream(volume + "/deep/a.env") << "A='one'\n";
  advance(seconds(10));
  ASSERT_EQ(state(), "Running");
  auto environment = spec_of("a-0")->spec.process.env;
  EXPECT_NE(std::find(environment.begin(), environment.end(), "A=one"), environment.end());
}

// A variable's value is not validated earlier: the kubelet refuses it instead of interpreting it differently.
TEST_F(VolumesTest, an_expanded_sub_path_that_leads_up_is_refused) {
  struct Row {
    const char *value, *why;
  };
  const Row rows[] = {
      {"..", "unable to provision SubPath `..`: must not contain '..'"},
      {"a/../../b", "unable to provision SubPath `a/../../b`: must not contain '..'"},
      {"/abs", "error SubPath `/abs` must not be an absolute path"},
      {"", "missing value for P"},
      {"..fine", ""},
      {"$(NOT)", ""},
  };
  boot();
  int number = 0;
  for (const Row& row : rows) {
    std::string name = "pod-" + std::to_string(number++);
    put_pod(
        R"json("containers":[{"name":"a","image":"web:1","env":[{"name":"P","valueFrom":{"fieldRef":{"fieldPath":"metadata.annotations['p']"}}}],
      "volumeMounts":[{"name":"v","mountPath":"/v","subPathExpr":"$(P)"}]}],"volumes":[{"name":"v","emptyDir":{}}])json",
        name, R"(,"annotations":{"p":")" + std::string(row.value) + "\"}");
    EXPECT_EQ(state("a", name), *row.why ? "Waiting CreateContainerConfigError" : "Running") << row.value;
    EXPECT_TRUE(!*row.why || events_.has(row.why)) << row.value;
  }
}

TEST_F(VolumesTest, huge_pages_are_mounted_or_waited_for) {
  std::vector<std::string> mounted;
  auto put = [&](const std::string& name, const std::string& medium, const std::string& limits, const std::string& more = "") {
    put_pod(
        R"("containers":[{"name":"a","image":"web:1","volumeMounts":[{"name":"v","mountPath":"/v"}],"resources":{"limits":{)" +
            limits + R"(}}}],
      "volumes":[{"name":"v","emptyDir":{"medium":")" +
            medium + "\"" + more + "}}]",
        name);
  };
  boot();
  put("nowhere", "HugePages", "");
  EXPECT_EQ(state("a", "nowhere"), "Waiting ContainerCreating");
  EXPECT_TRUE(events_.has("FailedMount MountVolume.SetUp failed for volume \"v\" : no volumes of huge pages on this node"));
  config_.mounts.huge_pages = [&](const std::string&, Bytes page, Bytes size, unsigned) -> Result<void> {
    mounted.push_back(std::to_string(page.count >> 20) + " " + std::to_string(size.count >> 20));
    return {};
  };
  boot();
  put("unasked", "HugePages", "");
  EXPECT_TRUE(events_.has("hugePages storage requested, but there is no resource request for huge pages"));
  put("other", "HugePages-1Gi", R"("hugepages-2Mi":"0")");
  EXPECT_TRUE(events_.has("medium \"HugePages-1Gi\" requested, but there is no resource request for hugepages-1Gi"));
  EXPECT_TRUE(mounted.empty());
  put("there", "HugePages", R"("hugepages-2Mi":"0")");
  put("sized", "HugePages-2Mi", R"("hugepages-2Mi":"0")");
  EXPECT_EQ(mounted, (std::vector<std::string>{"2 0", "2 0"}));
  EXPECT_EQ(state("a", "sized"), "Running");
}

TEST_F(VolumesTest, a_sub_path_is_as_open_as_its_volume) {
  boot();
  put_pod(
      R"json("securityContext":{"runAsUser":1000},"containers":[{"name":"a","image":"web:1","volumeMounts":[{"name":"v","mountPath":"/v","subPath":"for/web"}]}],
    "volumes":[{"name":"v","emptyDir":{}}])json");
  EXPECT_EQ(state(), "Running");
  EXPECT_EQ(fs::status(config_.state_dir + "/" + uid() + "/volumes/v/for/web").permissions(), fs::perms(0777));
}

TEST_F(VolumesTest, host_paths_are_checked_by_type) {
  boot();
  put_pod(pod_with(R"("hostPath":{"path":"/none","type":"Directory"})"));
  EXPECT_TRUE(events_.has("hostPath type check failed: /none is not a directory"));
  put_pod(pod_with(R"("hostPath":{"path":"/made","type":"DirectoryOrCreate"})"), "second");
  EXPECT_EQ(state("a", "second"), "Running");
  EXPECT_TRUE(fs::is_directory(config_.host_root + "/made"));
  fs::create_symlink(config_.host_root + "/elsewhere", config_.host_root + "/link");
  put_pod(pod_with(R"("hostPath":{"path":"/link","type":"FileOrCreate"})"), "third");
  EXPECT_EQ(state("a", "third"), "Waiting ContainerCreating");
  EXPECT_FALSE(fs::exists(config_.host_root + "/elsewhere")) << "whoever shares the directory may have put the link there";
}

TEST_F(VolumesTest, very_much_is_deleted_elsewhere) {
  Volumes volumes(config_, clock_, runtime_.images(), nfs_, places_, {}, walks_.executor());
  PodPaths paths = *paths_of(config_, {"default", "web"}, "u-1");
  auto fill = [&](int files) {
    fs::create_directories(paths.volume("v"));
    for (int i = 0; i < files; ++i) std::ofstream(paths.volume("v") + "/" + std::to_string(i)) << "x";
  };
  const std::string removed = config_.state_dir + "/.removed";
  fill(10);
  ASSERT_TRUE(volumes.remove(paths, "u-1"));
  EXPECT_FALSE(fs::exists(paths.state + "/volumes"));
  EXPECT_FALSE(walks_.run_one()) << "a little is deleted at once";
  for (int i = 0; i < 2; ++i) {
    fill(3000);
    ASSERT_TRUE(volumes.remove(paths, "u-1"));
    EXPECT_FALSE(fs::exists(paths.state + "/volumes"));
    EXPECT_TRUE(fs::exists(paths.state)) << "the rest of the pod's directory";
  }
  EXPECT_FALSE(fs::is_empty(removed));
  ASSERT_TRUE(walks_.run_one());
  ASSERT_TRUE(walks_.run_one());
  EXPECT_TRUE(fs::is_empty(removed));
  EXPECT_FALSE(walks_.run_one());
}

TEST_F(VolumesTest, what_a_daemon_did_not_delete_to_its_end_the_next_one_does) {
  fs::create_directories(config_.state_dir + "/.removed/u-1/v/deep");
  Volumes volumes(config_, clock_, runtime_.images(), nfs_, places_, {}, walks_.executor());
  volumes.clear();
  ASSERT_TRUE(walks_.run_one());
  EXPECT_TRUE(fs::is_empty(config_.state_dir + "/.removed"));
}

TEST_F(VolumesTest, what_comes_to_be_on_the_host_is_found_within_two_seconds_and_told_once) {
  boot();
  put_pod(pod_with(R"("hostPath":{"path":"/run/socket","type":"File"})"));
  EXPECT_EQ(state(), "Waiting ContainerCreating");
  for (int i = 0; i < 5; ++i) advance(seconds(2));
  auto told = [&] {
    auto all = events_.all();
    return std::count_if(all.begin(), all.end(), [](const auto& event) { return event.find("FailedMount") != event.npos; });
  };
  EXPECT_EQ(told(), 1);
  for (int i = 0; i < 60; ++i) advance(seconds(2));
  EXPECT_EQ(told(), 2) << "it is still so";
  fs::create_directories(config_.host_root + "/run");
  std::ofstream(config_.host_root + "/run/socket") << "";
  advance(seconds(2));
  EXPECT_EQ(state(), "Running");
}

TEST_F(VolumesTest, the_token_is_asked_for_and_renewed_in_time) {
  int asked = 0;
  int64_t start = std::chrono::duration_cast<seconds>(clock_.now().time_since_epoch()).count();
  Volumes volumes(
      config_, clock_, runtime_.images(), nfs_, places_,
      [&](const json::value&, std::string_view audience, int64_t span) -> Result<std::string> {
        EXPECT_EQ(audience, "vault");
        int64_t now = std::chrono::duration_cast<seconds>(clock_.now().time_since_epoch()).count();
        return "e30." +
               base64url_encode(R"({"n":)" + std::to_string(++asked) + R"(,"iat":)" + std::to_string(now) + R"(,"exp":)" +
                                std::to_string(now + span) + "}") +
               ".x";
      },
      walks_.executor());
  json::value pod =
      *parse_json(R"({"metadata":{"namespace":"default","name":"web"},"spec":{"securityContext":{"runAsUser":)" +
                  std::to_string(::getuid()) + R"(},"containers":[{"name":"a","volumeMounts":[{"name":"v","mountPath":"/v"}]}],
    "volumes":[{"name":"v","projected":{"sources":[{"serviceAccountToken":{"path":"token","audience":"vault","expirationSeconds":1000}}]}}]}})");
  PodPaths paths = *paths_of(config_, {"default", "web"}, "u-1");
  auto prepare = [&] { return volumes.prepare(pod, paths, {}, {}, false); };
  auto first = prepare();
  ASSERT_TRUE(first.failures.empty()) << first.failures.front().text;
  EXPECT_EQ(first.refresh_at, WallTime(seconds(start + 800)));
  std::string token = read(paths.memory_volume("v") + "/token");
  struct stat info {};
  ASSERT_EQ(::stat((paths.memory_volume("v") + "/token").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);  // only for its user
  clock_.advance(seconds(799));
  EXPECT_EQ(prepare().refresh_at, WallTime(seconds(start + 800)));
  EXPECT_EQ(asked, 1);
  clock_.advance(seconds(1));
  ASSERT_TRUE(prepare().failures.empty());
  EXPECT_EQ(asked, 2);
  EXPECT_NE(read(paths.memory_volume("v") + "/token"), token);
}

TEST(Token, is_replaced_after_four_fifths_of_its_life) {
  auto token = [](int64_t issued, int64_t expires) {
    return "e30." + base64url_encode(R"({"iat":)" + std::to_string(issued) + R"(,"exp":)" + std::to_string(expires) + "}") +
           ".sig";
  };
  EXPECT_EQ(token_refresh_time(token(1000, 2000)), WallTime(seconds(1800)));
  EXPECT_EQ(token_refresh_time(token(1000, 1000 + 86400 * 30)), WallTime(seconds(1000 + 86400)));
  EXPECT_FALSE(token_refresh_time("nonsense"));
  EXPECT_FALSE(token_refresh_time(token(5, 5)));
}

// A volume may refer to one large object tens of thousands of times.
TEST(VolumePayload, reads_each_object_once) {
  ObjectPtr large = MUST(Object::make(
      kConfigMap,
      MUST(parse_json(
          R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"large","namespace":"default"},"data":{"k":"v","l":")" +
          std::string(1 << 20, 'x') + R"("},"binaryData":{"b":"aGk="}})"))));
  int reads = 0;
  PayloadSources sources;
  sources.lookup.config_map = [&](std::string_view name) { return ++reads, name == "large" ? large : nullptr; };
  std::string list;
  for (int i = 0; i < 20'000; ++i)
    list += (i ? "," : "") + (R"({"configMap":{"name":"large","items":[{"key":")" + std::string(i % 2 ? "k" : "b")) +
            R"(","path":"p)" + std::to_string(i) + "\"}]}}";
  const json::value volume = MUST(parse_json(R"({"name":"v","projected":{"sources":[)" + list + "]}}"));
  Payload made = MUST(volume_payload(json::object(), volume, sources));
  EXPECT_EQ(made.size(), 20'000u);
  EXPECT_EQ(made.at("p0").content, "hi");
  EXPECT_EQ(made.at("p19999").content, "v");
  EXPECT_EQ(reads, 1);
}

// Each token needs a signature.
TEST(VolumePayload, tokens_have_an_end) {
  PayloadSources sources;
  int made = 0;
  sources.token = [&](std::string_view, int64_t, const std::string&) -> Result<std::string> { return ++made, "token"; };
  std::string list;
  for (int i = 0; i < 20'000; ++i) list += (i ? "," : "") + (R"({"serviceAccountToken":{"path":"p)" + std::to_string(i)) + "\"}}";
  const json::value volume = MUST(parse_json(R"({"name":"v","projected":{"sources":[)" + list + "]}}"));
  EXPECT_FALSE(volume_payload(json::object(), volume, sources));
  EXPECT_LT(made, 5000);
}

}  // namespace
}  // namespace coracle::node
