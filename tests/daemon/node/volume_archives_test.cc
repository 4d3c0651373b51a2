// SPDX-License-Identifier: Apache-2.0
// Export and import of volumes: all or nothing, and without concurrent writers. The archive format is simulated (FakeTrees).
#include <fcntl.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "tests/daemon/node/machine.h"

namespace coracle::node {
namespace {

namespace fs = std::filesystem;

class VolumeArchivesTest : public Machine {
 protected:
  VolumeArchivesTest() { fs::create_directories(place_); }
  void put(bool is_ours = true) {
    boot();
    put_directory_volume(place_, is_ours);
  }
  void put_user(const std::string& name) { put_claim_user(name); }
  void write(const std::string& name) const { std::ofstream(place_ + "/" + name) << name; }
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(place_)) names.insert(entry.path().filename());
    return names;
  }
  Result<json::value> import(const std::string& archive, bool replace = false) {
    std::ofstream(directory_ + "/archive") << archive;
    Fd file = TRY(sys::open(directory_ + "/archive", O_RDONLY));
    return agent_->import_volume({"default", "data"}, replace, file);
  }
  Result<void> export_to(const std::string& path, bool in_use = false) {
    Fd file = TRY(sys::open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600));
    return agent_->export_volume({"default", "data"}, in_use, file);
  }
  const std::string place_ = directory_ + "/volumes/default_data_uid-data";
};

TEST_F(VolumeArchivesTest, what_a_volume_holds_is_exported) {
  put();
  write("one"), write("two");
  ASSERT_TRUE(export_to(directory_ + "/out"));
  EXPECT_EQ(read(directory_ + "/out"), "one\ntwo\n");
}

TEST_F(VolumeArchivesTest, not_while_a_pod_uses_it_unless_that_is_asked_for) {
  put();
  write("one");
  put_user("db");
  auto refused = export_to(directory_ + "/out");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::conflict);
  EXPECT_EQ(refused.error().text(), "persistentvolumeclaim \"data\" is in use by pod db");
  EXPECT_TRUE(export_to(directory_ + "/out", true));
  EXPECT_EQ(read(directory_ + "/out"), "one\n");
  EXPECT_EQ(import("new\n", true).error().code(), Code::conflict) << "nobody's files are taken away under it";
}

TEST_F(VolumeArchivesTest, a_pod_that_has_ended_uses_nothing) {
  put();
  write("one");
  put_user("db");
  EXPECT_FALSE(export_to(directory_ + "/out"));
  for (const char* phase : {"Succeeded", "Failed"}) {
    client_.set_status(kPod, {"default", "db"}, R"({"phase":")" + std::string(phase) + "\"}");
    settle();
    EXPECT_TRUE(export_to(directory_ + "/out")) << phase;
  }
  EXPECT_TRUE(import("new\n", true));
}

TEST_F(VolumeArchivesTest, an_archive_fills_an_empty_volume) {
  put();
  json::value counted = MUST(import("three\nfour\n"));
  EXPECT_EQ(get_int(counted, "entries"), 2);
  EXPECT_EQ(files(), (std::set<std::string>{"four", "three"}));
}

TEST_F(VolumeArchivesTest, a_full_one_only_where_that_is_asked_for) {
  put();
  write("old");
  EXPECT_EQ(import("new\n").error().code(), Code::already_exists);
  EXPECT_EQ(files(), std::set<std::string>{"old"});
  ASSERT_TRUE(import("new\n", true).ok());
  EXPECT_EQ(files(), std::set<std::string>{"new"});
  while (walks_.run_one()) {
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_ + "/volumes"), {}), 1) << "what it held is deleted";
}

TEST_F(VolumeArchivesTest, a_damaged_archive_changes_nothing) {
  put();
  write("old");
  EXPECT_EQ(import("new\ndamaged\n", true).error().code(), Code::invalid);
  EXPECT_EQ(files(), std::set<std::string>{"old"});
  while (walks_.run_one()) {
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_ + "/volumes"), {}), 1) << "nothing of it is left";
}

TEST_F(VolumeArchivesTest, volumes_that_people_made_are_exported_and_not_imported) {
  put(false);
  write("one");
  EXPECT_TRUE(export_to(directory_ + "/out"));
  auto refused = import("new\n", true);
  EXPECT_EQ(refused.error().code(), Code::unsupported);
  EXPECT_NE(refused.error().text().find(place_), std::string::npos) << "where to unpack it";
}

TEST_F(VolumeArchivesTest, what_is_not_there_is_named) {
  boot();
  EXPECT_EQ(import("x\n").error().text(), "persistentvolumeclaim \"data\" not found in namespace \"default\"");
  client_.put(kPersistentVolumeClaim,
              R"({"metadata":{"name":"data","namespace":"default","uid":"uid-data"},"spec":{"accessModes":[
      "ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}},"storageClassName":"foreign"}})");
  settle();
  EXPECT_EQ(export_to(directory_ + "/out").error().text(), "persistentvolumeclaim \"data\" has no volume yet: it is not bound");
  EXPECT_EQ(import("x\n").error().code(), Code::unavailable);
}

TEST_F(VolumeArchivesTest, a_volume_that_cannot_be_made_here_is_not_waited_for) {
  PodTable table;
  volume::DiskDirectories directories({directory_ + "/none"}, [](const auto&) { return false; });
  client_.put(kPersistentVolumeClaim, R"({"metadata":{"name":"data","namespace":"default","uid":"uid-data"},"spec":{}})");
  auto select = [&](const json::value& node) {
    MUST(client_.patch(kPersistentVolumeClaim, {"default", "data"}, PatchType::merge,
                       {{"metadata", {{"annotations", {{"volume.kubernetes.io/selected-node", node}}}}}}));
  };
  int waits = 0;
  VolumeArchives archives({.client = client_,
                           .table = table,
                           .storage = {[&](const Key& key) { return client_.find(kPersistentVolumeClaim, key); },
                                       [](std::string_view) { return ObjectPtr(); }},
                           .directories = directories,
                           .trees = runtime_.trees(),
                           .node_name = "pi",
                           .host_root = "",
                           .has_pods = [] { return true; },
                           .is_ours = [](const Object&) { return true; },
                           .may_provision = [](const Object&) { return true; },
                           .look_again = [](const Key&) {},
                           .clear = [] {},
                           .wait =
                               [&](std::chrono::milliseconds) {
                                 if (++waits == 3) select(nullptr);  // as the provisioner does
                               }});
  sys::Pipe pipe = MUST(sys::make_pipe());
  auto refused = archives.read({"default", "data"}, false, pipe.read, {});
  EXPECT_EQ(refused.error().text(), "persistentvolumeclaim \"data\" has no volume yet: it is not bound");
  EXPECT_EQ(waits, 3);
}

TEST_F(VolumeArchivesTest, pods_wait_meanwhile_and_the_data_are_not_deleted) {
  put();
  sys::Pipe pipe = MUST(sys::make_pipe());
  Result<json::value> imported = Error(Code::internal, "not yet");
  std::jthread importing([&] { imported = agent_->import_volume({"default", "data"}, false, pipe.read); });
  for (int i = 0; i < 6000 && !fs::exists(directory_ + "/volumes/.staged_default_data_uid-data"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  put_user("db");
  EXPECT_EQ(state("a", "db"), "Waiting ContainerCreating");
  EXPECT_TRUE(events_.has("PVC default/data is being exported or imported"));
  EXPECT_EQ(export_to(directory_ + "/out", true).error().code(), Code::conflict) << "one at a time";
  while (walks_.run_one()) {
  }
  EXPECT_TRUE(fs::exists(directory_ + "/volumes/.staged_default_data_uid-data")) << "clearing leaves what is being filled";
  ASSERT_TRUE(sys::write_all(pipe.write, "new\n"));
  pipe.write.reset();
  importing.join();
  ASSERT_TRUE(imported.ok()) << imported.error().text();
  advance(std::chrono::seconds(2));
  EXPECT_EQ(state("a", "db"), "Running");
  EXPECT_EQ(files(), std::set<std::string>{"new"});
}

}  // namespace
}  // namespace coracle::node
