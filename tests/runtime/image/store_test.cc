// SPDX-License-Identifier: Apache-2.0
// The image store from outside: importing archives, listing, mounting and removing images; and the state after a crash or with a
// second process. Needs root.
#include "runtime/image/store.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <clocale>
#include <filesystem>
#include <thread>

#include "runtime/base/json.h"
#include "runtime/image/manifest.h"
#include "runtime/sys/file.h"
#include "runtime/sys/inode.h"
#include "runtime/sys/namespaces.h"
#include "runtime/sys/overlay.h"
#include "tests/runtime/image/builder.h"

namespace coracle::image {
namespace {

using namespace test;
namespace fs = std::filesystem;

class StoreTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root: owners, devices and overlay mounts";
    open();
  }
  void open() {
    store_.reset();
    Options options;
    options.state_dir = dir_.path() + "/state";
    options.worker_program = CORACLE_IMAGE;
    auto made = make_store(options);
    ASSERT_TRUE(made.ok()) << made.error().text();
    store_ = std::move(*made);
  }
  Result<std::vector<runtime::Image>> import(const std::string& archive, const std::string& name = "") {
    write_text(dir_.path() + "/archive", archive);
    Fd fd = *sys::open(dir_.path() + "/archive", O_RDONLY);
    return store_->import(fd, name);
  }
  // The image's files as a container would see them.
  std::string look(const Result<Fd>& mount) {
    if (!mount) return mount.error().text();
    return tree_of("/proc/self/fd/" + std::to_string(mount->get()));
  }
  std::string exported(const std::vector<std::string>& references) {
    const std::string path = dir_.path() + "/exported";
    Fd to = MUST(sys::open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600));
    auto written = store_->write_archive(references, to);
    EXPECT_TRUE(written.ok()) << written.error().text();
    return read_text(path);
  }
  std::string first_layer() {  // the layer with etc/same
    for (const auto& entry : fs::directory_iterator(dir_.path() + "/state/layers"))
      if (fs::exists(entry.path() / "diff/etc/same")) return entry.path() / "diff";
    return "";
  }
  size_t count(const std::string& directory) {
    size_t n = 0;
    for (const auto& entry : fs::directory_iterator(dir_.path() + "/state/" + directory)) (void)entry, ++n;
    return n;
  }
  TempDir dir_;
  std::unique_ptr<Store> store_;
};

TestImage two_layers() {
  return {{{make_tar({{"etc", 'd', "", 0755},
                      {"etc/one", 'f', "1"},
                      {"etc/two", 'f', "2"},
                      {"full", 'd', "", 0711, 9, 9},
                      {"full/a", 'f', "a"},
                      {"etc/passwd", 'f', "root:x:0:0::/:\nweb:x:33:34::/:\n"},
                      {"etc/group", 'f', "adm:x:4:web\n"}})},
           {make_tar({{"etc/.wh.one", 'f'}, {"etc/three", 'f', "3"}, {"full/.wh..wh..opq", 'f'}, {"full/b", 'f', "b"}}),
            Packing::zstd}}};
}

const char* kTwoLayersTree =
    "etc d 755 0:0\netc/group f 644 0:0 adm:x:4:web\n\netc/passwd f 644 0:0 root:x:0:0::/:\nweb:x:33:34::/:\n\n"
    "etc/three f 644 0:0 3\netc/two f 644 0:0 2\nfull d 711 9:9\nfull/b f 644 0:0 b\n";

TEST_F(StoreTest, imports_both_kinds_however_packed) {
  for (Packing packing : {Packing::plain, Packing::gzip, Packing::zstd, Packing::xz, Packing::bzip2, Packing::lz4}) {
    for (bool docker : {false, true}) {
      std::string tag = "localhost/x:" + std::to_string(int(packing)) + (docker ? "d" : "o");
      auto layout = docker ? docker_layout(two_layers(), tag) : oci_layout(two_layers(), tag);
      auto got = import(archive_of(layout, packing));
      ASSERT_TRUE(got.ok()) << tag << ": " << got.error().text();
      ASSERT_EQ(got->size(), 1u);
      EXPECT_EQ(got->front().references.back(), tag);
      EXPECT_EQ(got->front().config.cmd, (std::vector<std::string>{"/bin/sh"}));
      EXPECT_EQ(look(store_->snapshots().mount_image(got->front().id)), kTwoLayersTree);
    }
  }
  EXPECT_EQ(store_->list().size(), 1u) << "one image, twelve names";
  EXPECT_EQ(count("layers"), 2u);
  EXPECT_EQ(count("staging"), 0u);
}

TEST_F(StoreTest, names_files_in_utf_8) {
  ASSERT_NE(std::setlocale(LC_CTYPE, "C.UTF-8"), nullptr);  // so that the archive declares its character set
  const std::string tar = make_tar({{"Főtanúsítvány.crt", 'f', "x"}, {"fifo", 'p', "", 0622}});
  std::setlocale(LC_CTYPE, "C");
  auto got = import(archive_of(oci_layout({{{tar}}}, "localhost/u:1")));
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_EQ(look(store_->snapshots().mount_image(got->front().id)), "Főtanúsítvány.crt f 644 0:0 x\nfifo p 622 0:0\n");
}

TEST_F(StoreTest, is_private) {
  struct stat info {};
  ASSERT_EQ(::stat((dir_.path() + "/state").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  ASSERT_TRUE(import(archive_of(oci_layout({{{make_tar({{"su", 'f', "x", 04755}})}}}, "localhost/su:1"))).ok());
  ::chmod(dir_.path().c_str(), 0755);
  pid_t child = ::fork();
  if (child == 0) {
    bool denied = ::setgid(65534) == 0 && ::setuid(65534) == 0 && ::access((dir_.path() + "/state/layers").c_str(), F_OK) != 0;
    ::_exit(denied ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "a setuid file of an image is out of reach for users of the machine";
}

TEST_F(StoreTest, remembers) {
  ASSERT_TRUE(import(archive_of(oci_layout(two_layers(), "localhost/x:1"))).ok());
  auto before = store_->list();
  open();
  auto after = store_->list();
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].id, before[0].id);
  EXPECT_EQ(after[0].references, before[0].references);
  EXPECT_EQ(after[0].size.count, before[0].size.count);
  EXPECT_GT(after[0].size.count, 0);
  EXPECT_EQ(after[0].config.env, (std::vector<std::string>{"A=b"}));
  EXPECT_EQ(look(store_->snapshots().mount_image(after[0].id)), kTwoLayersTree);
  EXPECT_TRUE(store_->find("localhost/x:1").ok());
  EXPECT_TRUE(store_->find(after[0].id).ok());
  EXPECT_TRUE(store_->find(after[0].id.substr(7)).ok()) << "a bare id";
  EXPECT_EQ(store_->find("localhost/x:2").error().code(), Code::not_found);
  EXPECT_EQ(store_->find("localhost/X").error().code(), Code::invalid);
}

TEST_F(StoreTest, belongs_to_one_process) {
  Options options;
  options.state_dir = dir_.path() + "/state";
  auto second = make_store(options);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), Code::conflict);
}

TEST_F(StoreTest, a_tag_moves) {
  auto one = import(archive_of(oci_layout({{{make_tar({{"a"}})}}}, "localhost/x:1")));
  auto two = import(archive_of(oci_layout({{{make_tar({{"b"}})}}}, "localhost/x:1")));
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(store_->find("localhost/x:1")->id, two->front().id);
  EXPECT_EQ(store_->find(one->front().id).error().code(), Code::not_found) << "nobody can ask for it any more";
}

TEST_F(StoreTest, names_what_the_archive_does_not) {
  auto unnamed = import(archive_of(oci_layout(two_layers(), "")));
  ASSERT_FALSE(unnamed.ok());
  EXPECT_NE(unnamed.error().text().find("give it a name"), std::string::npos) << unnamed.error().text();
  auto bare = import(archive_of(oci_layout(two_layers(), "latest")));
  EXPECT_FALSE(bare.ok()) << "a bare tag is no name";
  auto named = import(archive_of(oci_layout(two_layers(), "")), "localhost/busybox");
  ASSERT_TRUE(named.ok()) << named.error().text();
  EXPECT_EQ(named->front().references, (std::vector<std::string>{"localhost/busybox:latest"}));
  auto other = import(archive_of(docker_layout(two_layers(), "its/own:name")), "mine:1");
  ASSERT_TRUE(other.ok()) << other.error().text();
  EXPECT_EQ(store_->find("its/own:name").error().code(), Code::not_found);
}

// A copy of the archive in which the text `from` is replaced by `to` in one file (of those whose names begin so). References to
// that file by digest are updated.
std::map<std::string, std::string> altered(std::map<std::string, std::string> files, const std::string& from,
                                           const std::string& to) {
  for (auto& [name, content] : files) {
    size_t at = content.find(from);
    if (!content.starts_with('{') || at == content.npos) continue;
    std::string changed = content;
    changed.replace(at, from.size(), to);
    if (!name.starts_with("blobs/")) {
      content = changed;
      return files;
    }
    const std::string before = digest_text(content), after = digest_text(changed), size = std::to_string(content.size());
    files.erase(name);
    files["blobs/sha256/" + after.substr(7)] = changed;
    for (auto& [other, text] : files) {
      size_t named = text.find(before);
      if (!text.starts_with('{') || named == text.npos) continue;
      text.replace(named, before.size(), after);
      size_t size_at = text.find("\"size\":" + size, named);
      text.replace(size_at, 7 + size.size(), "\"size\":" + std::to_string(changed.size()));
    }
    return files;
  }
  ADD_FAILURE() << "nothing reads " << from;
  return files;
}

TEST_F(StoreTest, an_archive_holds_what_its_manifest_names) {
  const TestImage image = two_layers();
  const auto good = oci_layout(image, "localhost/x:1");
  const std::string nobody = "sha256:" + std::string(64, '7');
  const std::string layer = pack(image.layers[1].tar, Packing::zstd), config = oci_config(image);
  auto blob = [](const std::string& bytes) { return "blobs/sha256/" + digest_text(bytes).substr(7); };
  auto without = [&](std::string name) {
    auto files = good;
    EXPECT_EQ(files.erase(name), 1u) << name;
    return files;
  };
  auto spoilt = [&](const std::string& name) {
    auto files = good;
    files.at(name).back() ^= 1;
    return files;
  };
  std::string manifest;  // its digest
  for (const auto& [name, content] : good)
    if (content.find("\"layers\"") != content.npos && name.starts_with("blobs/")) manifest = digest_text(content);
  ASSERT_EQ(manifest.size(), 71u);
  const std::string manifest_file = "blobs/sha256/" + manifest.substr(7);
  struct Row {
    std::string name;
    std::map<std::string, std::string> files;
    std::string want;
  };
  const std::vector<Row> rows = {
      {"a layer that is not there", altered(good, digest_text(layer), nobody), "holds no blob " + nobody},
      {"a layer left out", without(blob(layer)), "holds no blob " + digest_text(layer)},
      {"a configuration that is not there", altered(good, digest_text(config), nobody), "holds no blob " + nobody},
      {"a manifest that is not there", without(manifest_file), "holds no blob " + manifest},
      {"a layer of another size", altered(good, "\"size\":" + std::to_string(layer.size()), "\"size\":1"),
       "the blob " + digest_text(layer) + " has " + std::to_string(layer.size()) + " bytes; the manifest says 1"},
      {"a configuration of another size", altered(good, "\"size\":" + std::to_string(config.size()), "\"size\":1"),
       "the blob " + digest_text(config) + " has"},
      {"a manifest of another size", altered(good, "\"size\":" + std::to_string(good.at(manifest_file).size()), "\"size\":1"),
       "the blob " + manifest + " has"},
      {"a spoilt layer", spoilt(blob(layer)), digest_text(layer).substr(7)},
      {"a spoilt configuration", spoilt(blob(config)), digest_text(config).substr(7)},
      {"a spoilt manifest", spoilt(manifest_file), manifest.substr(7)},
  };
  for (bool present : {false, true}) {  // its layers, from an earlier import
    if (present) {
      ASSERT_TRUE(import(archive_of(good)).ok());
    }
    for (const Row& row : rows) {
      auto got = import(archive_of(row.files), "localhost/bad:1");
      ASSERT_FALSE(got.ok()) << row.name << (present ? ", its layers being here" : "");
      EXPECT_EQ(got.error().code(), Code::invalid) << row.name;
      EXPECT_NE(got.error().text().find(row.want), std::string::npos) << row.name << ": " << got.error().text();
    }
  }
  EXPECT_EQ(store_->find("localhost/bad:1").error().code(), Code::not_found);
  EXPECT_EQ(count("staging"), 0u);

  // The format of recent docker versions: file names are digests.
  auto docker = docker_layout(image, "localhost/d:1");
  docker["manifest.json"] = to_text(
      json::array{json::object{{"Config", blob(config)}, {"RepoTags", {"localhost/d:1"}}, {"Layers", {blob("x"), blob("y")}}}});
  docker[blob(config)] = config;
  auto missing = import(archive_of(docker));
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().text().find("holds no blob " + digest_text("x")), std::string::npos) << missing.error().text();
  docker[blob("x")] = image.layers[0].tar;
  docker[blob("y")] = image.layers[1].tar;
  auto lies = import(archive_of(docker));
  ASSERT_FALSE(lies.ok());
  EXPECT_NE(lies.error().text().find(digest_text("x")), std::string::npos) << lies.error().text();

  // Images for other platforms may be missing.
  auto several = oci_layout(image, "localhost/several:1");
  json::value index = *parse_json(several["index.json"]);
  json::array& entries = index.as_object()["manifests"].as_array();
  json::object other = entries[0].as_object();
  entries[0].as_object()["platform"] = {{"os", "linux"}, {"architecture", this_machine().architecture}};
  other["platform"] = {{"os", "linux"}, {"architecture", "vax"}};
  other["digest"] = nobody;
  entries.push_back(other);
  several["index.json"] = to_text(index);
  auto one_of_two = import(archive_of(several));
  EXPECT_TRUE(one_of_two.ok()) << one_of_two.error().text();
}

TEST_F(StoreTest, shares_layers_and_deletes_the_last_user) {
  auto base = make_tar({{"base", 'f', "b"}});
  ASSERT_TRUE(import(archive_of(oci_layout({{{base}, {make_tar({{"one"}})}}}, "localhost/one:1"))).ok());
  ASSERT_TRUE(import(archive_of(oci_layout({{{base}, {make_tar({{"two"}})}}}, "localhost/two:1"))).ok());
  EXPECT_EQ(count("layers"), 3u);
  ASSERT_TRUE(store_->remove("localhost/one:1").ok());
  EXPECT_EQ(count("layers"), 2u);
  EXPECT_EQ(count("configs"), 1u);
  EXPECT_EQ(look(store_->snapshots().mount_image(store_->find("localhost/two:1")->id)), "base f 644 0:0 b\ntwo f 644 0:0 \n");
  EXPECT_EQ(store_->remove("localhost/one:1").error().code(), Code::not_found);
  ASSERT_TRUE(store_->remove("localhost/two:1").ok());
  EXPECT_EQ(count("layers"), 0u);
  open();
  EXPECT_TRUE(store_->list().empty());
}

TEST_F(StoreTest, an_image_that_lost_its_names_goes_when_nobody_uses_it) {
  auto version = [](const char* file) { return archive_of(oci_layout({{{make_tar({{file}})}}}, "localhost/app:latest")); };
  std::string first = import(version("one"))->front().id;
  ASSERT_TRUE(store_->snapshots().create("pod-1", first).ok());
  std::string second = import(version("two"))->front().id;
  EXPECT_EQ(store_->list().size(), 2u) << "a container uses the first";
  std::string third = import(version("three"))->front().id;
  EXPECT_EQ(store_->list().size(), 2u) << "nobody used the second";
  EXPECT_EQ(store_->find("localhost/app:latest")->id, third);
  open();
  ASSERT_TRUE(store_->snapshots().remove("pod-1").ok());
  EXPECT_EQ(store_->list().size(), 1u);
  EXPECT_EQ(count("layers"), 1u);
}

TEST_F(StoreTest, gives_names_and_takes_them) {
  std::string id = import(archive_of(oci_layout(two_layers(), "localhost/x:1")))->front().id;
  std::string other = import(archive_of(oci_layout({{{make_tar({{"o"}})}}}, "localhost/o:1")))->front().id;
  EXPECT_EQ(store_->tag("localhost/x:1", "y").value_or({}).references,
            (std::vector<std::string>{"localhost/x:1", "docker.io/library/y:latest"}));
  EXPECT_EQ(store_->find("y")->id, id);
  ASSERT_TRUE(store_->tag(id.substr(7, 12), "localhost/o:1").ok())
      << "by the id that lists show; the other loses the name and goes";
  EXPECT_EQ(store_->find("localhost/o:1")->id, id);
  EXPECT_EQ(store_->find(other).error().code(), Code::not_found);
  EXPECT_EQ(store_->tag("nowhere:1", "z").error().code(), Code::not_found);
  EXPECT_EQ(store_->tag(id, "z@sha256:" + std::string(64, '0')).error().code(), Code::invalid);
  EXPECT_EQ(store_->tag(id, "Upper").error().code(), Code::invalid);
  open();
  ASSERT_TRUE(store_->snapshots().create("pod-1", id).ok());
  auto removal = store_->remove("y");
  ASSERT_TRUE(removal.ok());
  EXPECT_FALSE(removal->deleted);
  EXPECT_EQ(removal->users, std::vector<std::string>{"pod-1"});
  EXPECT_EQ(removal->image.references, (std::vector<std::string>{"localhost/x:1", "localhost/o:1"}));
  EXPECT_TRUE(store_->prune(true)->empty()) << "a container uses it";
  ASSERT_TRUE(store_->snapshots().remove("pod-1").ok());
  EXPECT_TRUE(store_->prune(false)->empty()) << "it has a tag";
  EXPECT_EQ(store_->remove(id.substr(7, 5)).error().code(), Code::not_found) << "too little of an id";
  removal = store_->remove(id.substr(7, 12));
  ASSERT_TRUE(removal.ok());
  EXPECT_TRUE(removal->deleted);
  EXPECT_TRUE(store_->list().empty());
  ASSERT_TRUE(import(archive_of(oci_layout(two_layers(), "localhost/x:1"))));
  EXPECT_EQ(store_->prune(true)->size(), 1u);
  EXPECT_EQ(count("layers"), 0u);
}

TEST_F(StoreTest, a_new_name_leaves_the_others_of_an_image_from_before_records_to_everybody) {
  const std::string id = import(archive_of(oci_layout(two_layers(), "localhost/x:1")))->front().id;
  ASSERT_TRUE(fs::remove(dir_.path() + "/state/pulled/" + id.substr(7)));
  open();
  ASSERT_TRUE(store_->tag("localhost/x:1", "localhost/y:1").ok());
  open();
  for (const char* name : {"localhost/x:1", "localhost/y:1"})
    EXPECT_EQ(store_->access(*store_->find(name), name, {}), runtime::ImageAccess::preloaded) << name;
  EXPECT_EQ(store_->access(*store_->find(id), "localhost/z:1", {}), runtime::ImageAccess::unproven);
}

TEST_F(StoreTest, keeps_what_is_in_use) {
  auto got = import(archive_of(oci_layout(two_layers(), "localhost/x:1")));
  std::string id = got->front().id;
  ASSERT_TRUE(store_->snapshots().create("pod-1", id).ok());
  EXPECT_EQ(store_->remove("localhost/x:1").error().code(), Code::conflict);
  open();
  EXPECT_EQ(*store_->snapshots().list(), (std::vector<std::string>{"pod-1"}));
  EXPECT_EQ(store_->remove(id).error().code(), Code::conflict) << "after a restart too";
  ASSERT_TRUE(store_->snapshots().remove("pod-1").ok());
  ASSERT_TRUE(store_->snapshots().remove("pod-1").ok()) << "again is no error";
  EXPECT_TRUE(store_->remove(id).ok());
}

class MountedImage : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    if (IsSkipped()) return;
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      GTEST_SKIP() << "may not mount here";
    fs::create_directory(place_);
  }
  void TearDown() override { ::umount2(place_.c_str(), MNT_DETACH); }
  const std::string place_ = dir_.path() + "/place";
};

TEST_F(MountedImage, can_be_read_and_nothing_else) {
  const TestImage with_program = {{{make_tar({{"run", 'f', "#!/bin/sh\n", 0755}})}, {make_tar({{"more", 'f', "m"}})}}};
  for (const TestImage& image : {two_layers(), with_program, TestImage{{{make_tar({{"one", 'f', "1", 0755}})}}}}) {
    std::string id = import(archive_of(oci_layout(image, "localhost/x:1")))->front().id;
    auto mounted = store_->mount(id, "pod.volume.x", place_, {});
    ASSERT_TRUE(mounted.ok()) << mounted.error().text();
    EXPECT_EQ(tree_of(place_), look(store_->snapshots().mount_image(id)));
    EXPECT_TRUE(MUST(sys::is_mount_point(MUST(sys::open_directory(place_)))));
    for (const auto& entry : fs::directory_iterator(place_)) {
      if (!entry.is_regular_file()) continue;
      EXPECT_NE(::access(entry.path().c_str(), X_OK), 0) << entry.path();
      EXPECT_NE(::access(entry.path().c_str(), W_OK), 0) << entry.path();
    }
    ASSERT_EQ(::umount2(place_.c_str(), 0), 0);
    EXPECT_FALSE(MUST(sys::is_mount_point(MUST(sys::open_directory(place_)))));
  }
}

TEST_F(MountedImage, is_held_until_it_is_released) {
  std::string id = import(archive_of(oci_layout(two_layers(), "localhost/x:1")))->front().id;
  ASSERT_TRUE(store_->mount(id, "pod.volume.x", place_, {}).ok());
  EXPECT_EQ(store_->remove(id).error().code(), Code::conflict);
  EXPECT_TRUE(MUST(store_->prune(true)).empty());
  EXPECT_EQ(*store_->snapshots().list(), std::vector<std::string>()) << "no container's";
  open();
  EXPECT_EQ(store_->remove(id).error().code(), Code::conflict) << "after a restart too";
  ASSERT_EQ(::umount2(place_.c_str(), 0), 0);
  ASSERT_TRUE(store_->release("pod.volume.x").ok());
  EXPECT_TRUE(store_->release("pod.volume.x").ok()) << "again is no error";
  EXPECT_TRUE(store_->remove(id).ok());
  EXPECT_EQ(store_->mount(id, "pod.volume.x", place_, {}).error().code(), Code::not_found);
  EXPECT_EQ(store_->mount(id, "../x", place_, {}).error().code(), Code::invalid);
}

TEST_F(MountedImage, goes_when_it_is_released_and_has_lost_its_name) {
  std::string before = import(archive_of(oci_layout(two_layers(), "localhost/x:1")))->front().id;
  ASSERT_TRUE(store_->mount(before, "pod.volume.x", place_, {}).ok());
  ASSERT_TRUE(import(archive_of(oci_layout({{{make_tar({{"new", 'f', "n"}})}}}, "localhost/x:1"))).ok());
  EXPECT_EQ(store_->list().size(), 2u);
  EXPECT_EQ(tree_of(place_), kTwoLayersTree);
  ASSERT_EQ(::umount2(place_.c_str(), 0), 0);
  ASSERT_TRUE(store_->release("pod.volume.x").ok());
  EXPECT_EQ(store_->list().size(), 1u);
}

TEST_F(MountedImage, is_not_held_when_it_was_not_mounted) {
  std::string id = import(archive_of(oci_layout(two_layers(), "localhost/x:1")))->front().id;
  fs::rename(dir_.path() + "/state/layers", dir_.path() + "/aside");
  EXPECT_FALSE(store_->mount(id, "pod.volume.x", place_, {}).ok());
  EXPECT_TRUE(fs::is_empty(dir_.path() + "/state/snapshots"));
  EXPECT_TRUE(store_->remove(id).ok());
}

TEST_F(MountedImage, is_held_instead_of_another_one_or_not_at_all) {
  auto version = [](const char* file) { return archive_of(oci_layout({{{make_tar({{file}})}}}, "localhost/app:latest")); };
  const std::string first = import(version("one"))->front().id;
  ASSERT_TRUE(store_->mount(first, "pod.volume.x", place_, {}).ok());
  ASSERT_EQ(::umount2(place_.c_str(), 0), 0);
  const std::string second = import(version("two"))->front().id, link = dir_.path() + "/state/snapshots/pod.volume.x";
  fs::remove(link);
  fs::create_directory(link);  // a link cannot replace a directory
  EXPECT_FALSE(store_->mount(second, "pod.volume.x", place_, {}).ok());
  EXPECT_EQ(store_->remove(first).error().code(), Code::conflict) << "it holds what it held";
  fs::remove(link);
  ASSERT_TRUE(store_->mount(second, "pod.volume.x", place_, {}).ok());
  EXPECT_EQ(store_->list().size(), 1u) << "the first one had lost its name";
  EXPECT_EQ(count("staging"), 0u);
}

TEST_F(MountedImage, shows_owners_as_other_ids) {
  if (!sys::make_user_namespace({{0, 100000, 65536}}, {{0, 100000, 65536}}, 0)) GTEST_SKIP() << "no user namespaces here";
  for (const TestImage& image : {two_layers(), TestImage{{{make_tar({{"one", 'f', "1"}})}}}}) {
    std::string id = import(archive_of(oci_layout(image, "localhost/x:1")))->front().id;
    auto mounted = store_->mount(id, "pod.volume.x", place_, {{0, 100000, 65536}});
    if (!mounted && mounted.error().code() == Code::unsupported) GTEST_SKIP() << mounted.error().text();
    ASSERT_TRUE(mounted.ok()) << mounted.error().text();
    for (const auto& entry : fs::directory_iterator(place_)) {
      struct stat info {};
      ASSERT_EQ(::lstat(entry.path().c_str(), &info), 0);
      EXPECT_GE(info.st_uid, 100000u) << entry.path();
      EXPECT_GE(info.st_gid, 100000u) << entry.path();
    }
    ASSERT_EQ(::umount2(place_.c_str(), 0), 0);
  }
}

TEST_F(StoreTest, snapshots_are_written_apart) {
  std::string id = import(archive_of(oci_layout(two_layers(), "localhost/x:1")))->front().id;
  auto& snapshots = store_->snapshots();
  ASSERT_TRUE(snapshots.create("a", id).ok());
  ASSERT_TRUE(snapshots.create("b", id).ok());
  EXPECT_EQ(snapshots.create("a", id).error().code(), Code::already_exists);
  EXPECT_EQ(snapshots.create("c", "sha256:" + std::string(64, '0')).error().code(), Code::not_found);
  for (const char* bad : {"", ".", "..", "a/b", "-a", "../x", "a b"})
    EXPECT_EQ(snapshots.create(bad, id).error().code(), Code::invalid) << bad;
  {
    auto a = snapshots.mount("a"), b = snapshots.mount("b");
    ASSERT_TRUE(a.ok()) << a.error().text();
    ASSERT_TRUE(b.ok()) << b.error().text();
    std::string in_a = "/proc/self/fd/" + std::to_string(a->get());
    write_text(in_a + "/etc/mine", "m");
    fs::remove(in_a + "/etc/two");
    EXPECT_EQ(look(b), kTwoLayersTree);
    EXPECT_EQ(look(snapshots.mount_image(id)), kTwoLayersTree);
    EXPECT_NE(look(a).find("etc/mine"), std::string::npos);
    EXPECT_EQ(look(a).find("etc/two"), std::string::npos);
  }
  ASSERT_TRUE(snapshots.remove("a").ok());
  EXPECT_EQ(count("staging"), 0u);
}

TEST_F(StoreTest, a_snapshot_of_any_depth_is_deleted) {
  std::string id = import(archive_of(oci_layout(two_layers(), "localhost/x:1")))->front().id;
  ASSERT_TRUE(store_->snapshots().create("deep", id).ok());
  int at = ::open((dir_.path() + "/state/snapshots/deep/upper").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (int i = 0; i < 3000; ++i) {  // a process in the container can do this by descending step by step
    ASSERT_EQ(::mkdirat(at, "d", 0755), 0);
    int next = ::openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ::close(at);
    at = next;
  }
  ::close(at);
  auto removed = store_->snapshots().remove("deep");
  EXPECT_TRUE(removed.ok()) << removed.error().text();
  EXPECT_EQ(count("staging"), 0u);
}

TEST_F(StoreTest, what_was_half_made_is_gone_after_opening) {
  std::string id = import(archive_of(oci_layout(two_layers(), "localhost/x:1")))->front().id;
  ASSERT_TRUE(store_->snapshots().create("whole", id).ok());
  store_.reset();
  fs::create_directories(dir_.path() + "/state/staging/7/diff/etc");
  fs::create_directories(dir_.path() + "/state/snapshots/half/upper");
  write_text(dir_.path() + "/state/images.json.new", "{");
  open();
  EXPECT_EQ(count("staging"), 0u);
  EXPECT_EQ(*store_->snapshots().list(), (std::vector<std::string>{"whole"}));
  EXPECT_EQ(store_->list().size(), 1u);
}

TEST_F(StoreTest, a_damaged_image_is_left_out_and_the_others_live) {
  ASSERT_TRUE(import(archive_of(oci_layout({{{make_tar({{"a"}})}}}, "localhost/a:1"))).ok());
  std::string bad = import(archive_of(oci_layout({{{make_tar({{"b"}})}}}, "localhost/b:1")))->front().id;
  write_text(dir_.path() + "/state/configs/" + bad.substr(7), "{}");
  open();
  ASSERT_EQ(store_->list().size(), 1u);
  EXPECT_TRUE(store_->find("localhost/a:1").ok());
  EXPECT_TRUE(import(archive_of(oci_layout({{{make_tar({{"b"}})}}}, "localhost/b:1"))).ok()) << "and can come back";
}

TEST_F(StoreTest, refuses_archives_that_lie) {
  struct Row {
    const char* name;
    std::map<std::string, std::string> files;
  };
  auto lie = [](auto change) {
    auto files = oci_layout(two_layers(), "localhost/bad:1");
    change(files);
    return files;
  };
  auto layer_name = "blobs/sha256/" + digest_text(pack(two_layers().layers[0].tar, Packing::gzip)).substr(7);
  auto config_name = "blobs/sha256/" + digest_text(oci_config(two_layers())).substr(7);
  TestImage wrong_diff = two_layers();
  auto mixed = docker_layout(wrong_diff, "localhost/bad:1");
  for (auto& [name, content] : mixed)
    if (name.ends_with("layer.tar")) content = make_tar({{"other"}});
  for (const Row& row : {
           Row{"another layer under the digest",
               lie([&](auto& f) { f[layer_name] = pack(make_tar({{"evil"}}), Packing::gzip); })},
           Row{"a layer with something behind it", lie([&](auto& f) { f[layer_name] += "x"; })},
           Row{"a layer cut short", lie([&](auto& f) { f[layer_name].resize(f[layer_name].size() - 9); })},
           Row{"no layer", lie([&](auto& f) { f.erase(layer_name); })},
           Row{"another configuration", lie([&](auto& f) { f[config_name] = "{}"; })},
           Row{"no index", lie([&](auto& f) { f.erase("index.json"); })},
           Row{"an index that is none", lie([&](auto& f) { f["index.json"] = "[1"; })},
           Row{"an empty archive", {}},
           Row{"layers that are not what the configuration says", mixed},
           Row{"docker: a name outside",
               {{"manifest.json", R"([{"Config":"../../../../etc/passwd","RepoTags":["a:1"],"Layers":[]}])"}}},
           Row{"docker: no list", {{"manifest.json", "{}"}}},
           Row{"docker: names that are none", {{"manifest.json", R"([{"Config":"c","RepoTags":[1],"Layers":[]}])"}, {"c", "{}"}}},
       }) {
    auto got = import(archive_of(row.files));
    ASSERT_FALSE(got.ok()) << row.name;
    EXPECT_TRUE(got.error().code() == Code::invalid || got.error().code() == Code::too_large)
        << row.name << ": " << got.error().text();
    EXPECT_TRUE(store_->list().empty()) << row.name;
    EXPECT_EQ(count("staging"), 0u) << row.name;
  }
  EXPECT_EQ(import("this is no archive").error().code(), Code::invalid);
  EXPECT_TRUE(import(archive_of(oci_layout(two_layers(), "localhost/good:1"))).ok()) << "no lie is remembered";
}

TEST_F(StoreTest, follows_links_between_archive_files) {
  auto files = docker_layout({{{make_tar({{"a"}})}}}, "localhost/l:1");
  std::vector<Entry> entries;
  for (const auto& [name, content] : files) {
    if (!name.ends_with("/layer.tar")) {
      entries.push_back({name, 'f', content});
      continue;
    }
    entries.push_back({name, 'l', "../shared/real.tar"});
    entries.push_back({"shared/real.tar", 'f', content});
  }
  auto got = import(make_tar(entries));
  EXPECT_TRUE(got.ok()) << got.error().text();
  auto loop = import(make_tar({{"manifest.json", 'l', "x"}, {"x", 'l', "manifest.json"}}));
  EXPECT_EQ(loop.error().code(), Code::invalid);
}

TEST_F(StoreTest, of_entries_with_one_name_the_last_counts) {
  auto files = oci_layout(two_layers(), "localhost/twice:1");
  std::vector<Entry> entries{{"index.json", 'f', "[1"}};
  for (const auto& [name, content] : files) {
    entries.push_back({name, 'f', content});
    if (name != "index.json") entries.push_back({name, 'f', content});
  }
  auto got = import(make_tar(entries));
  ASSERT_TRUE(got.ok()) << got.error().text();
  EXPECT_TRUE(store_->find("localhost/twice:1").ok());
}

TEST_F(StoreTest, resolves_users_by_files_it_does_not_trust) {
  write_text(dir_.path() + "/secret", "web:x:1:1::/:\n");
  auto user = [&](const std::vector<Entry>& entries, const char* who) {
    auto got = import(archive_of(oci_layout({{{make_tar(entries)}}}, "localhost/user:1")));
    EXPECT_TRUE(got.ok());
    return store_->resolve_user(got->front(), who);
  };
  auto good = user({{"etc/passwd", 'f', "web:x:33:34::/:\n"}, {"etc/group", 'f', "adm:x:4:web\n"}}, "web");
  ASSERT_TRUE(good.ok()) << good.error().text();
  EXPECT_EQ(good->uid, 33u);
  EXPECT_EQ(good->additional_gids, (std::vector<uint32_t>{4}));
  EXPECT_EQ(user({{"etc/passwd", 'l', dir_.path() + "/secret"}}, "web").error().code(), Code::invalid);
  EXPECT_EQ(user({{"etc", 'l', dir_.path()}, {"passwd", 'f', "x"}}, "web").error().code(), Code::invalid);
  auto linked = user({{"etc/passwd", 'l', "/../usr/share/passwd"}, {"usr/share/passwd", 'f', "web:x:35:36::/:\n"}}, "web");
  EXPECT_EQ(linked->uid, 35u) << "a link leads to what is in the image";
  EXPECT_EQ(user({{"etc/passwd", 'l', "gone"}}, "7")->uid, 7u) << "which may be nothing";
  EXPECT_EQ(user({{"etc/passwd", 'l', "passwd"}}, "7").error().code(), Code::invalid);
  EXPECT_EQ(user({{"etc/passwd", 'p'}}, "web").error().code(), Code::invalid) << "and does not wait for a writer";
  EXPECT_EQ(user({{"etc/passwd", 'c', "", 0644, 0, 0, 0, {}, 1, 5}}, "web").error().code(), Code::invalid) << "/dev/zero";
  EXPECT_EQ(user({{"etc/passwd", 'd'}}, "web").error().code(), Code::invalid);
  EXPECT_EQ(user({{"etc/passwd", 'f', std::string(2 << 20, 'x')}}, "1").error().code(), Code::too_large);
  EXPECT_EQ(user({{"a", 'f'}}, "12")->uid, 12u) << "no files at all";
}

TEST_F(StoreTest, an_image_of_nothing_and_an_opaque_root_work) {
  auto nothing = import(archive_of(oci_layout({}, "localhost/scratch:1")));
  ASSERT_TRUE(nothing.ok()) << nothing.error().text();
  EXPECT_EQ(look(store_->snapshots().mount_image(nothing->front().id)), "");
  auto opaque =
      import(archive_of(oci_layout({{{make_tar({{"old"}})}, {make_tar({{".wh..wh..opq"}, {"new"}})}}}, "localhost/o:1")));
  ASSERT_TRUE(opaque.ok()) << opaque.error().text();
  EXPECT_EQ(look(store_->snapshots().mount_image(opaque->front().id)), "new f 644 0:0 \n");
}

TEST_F(StoreTest, what_is_exported_and_imported_is_the_same_image) {
  ASSERT_NE(std::setlocale(LC_CTYPE, "C.UTF-8"), nullptr);
  const std::string base = make_tar({{"etc", 'd', "", 0755},
                                     {"etc/one", 'f', "1", 0600, 3, 4, 1'100'000'000},
                                     {"etc/same", 'h', "etc/one"},
                                     {"Főtanúsítvány", 'd', "", 01777},
                                     {std::string(120, 'n'), 'f', std::string(100'000, 'x')},
                                     {"su", 'f', "s", 04755, 0, 0, 1'000'000'000, {{"user.note", "kept"}}},
                                     {"to", 'l', "etc/one"},
                                     {"tty", 'c', "", 0620, 0, 5, 1'000'000'000, {}, 4, 7},
                                     {"pipe", 'p', "", 0622},
                                     {"full", 'd', "", 0711, 9, 9},
                                     {"full/a", 'f', "a"}});
  const std::string above = make_tar({{"etc/.wh.one"}, {"full/.wh..wh..opq"}, {"full/b", 'f', "b"}, {"late", 'f', ""}});
  std::setlocale(LC_CTYPE, "C");
  TestImage image{{{base}, {above, Packing::zstd}}, R"({"Cmd":["/su"],"Labels":{"a":"b"},"User":"web"})"};
  auto came = import(archive_of(oci_layout(image, "localhost/app:1")));
  ASSERT_TRUE(came.ok()) << came.error().text();
  const std::string tree = look(store_->snapshots().mount_image(came->front().id));
  const std::string archive = exported({"localhost/app:1"});

  ASSERT_TRUE(store_->remove("localhost/app:1").ok());
  ASSERT_EQ(count("layers"), 0u);
  auto there = import(archive);
  ASSERT_TRUE(there.ok()) << there.error().text();
  ASSERT_EQ(there->size(), 1u);
  EXPECT_EQ(there->front().references, (std::vector<std::string>{"localhost/app:1"}));
  EXPECT_EQ(look(store_->snapshots().mount_image(there->front().id)), tree);
  EXPECT_EQ(there->front().config.cmd, (std::vector<std::string>{"/su"}));
  EXPECT_EQ(there->front().config.user, "web");
  EXPECT_EQ(exported({"localhost/app:1"}), archive) << "the same bytes wherever it is exported";
  Fd root = MUST(store_->snapshots().mount_image(there->front().id));
  EXPECT_EQ(MUST(sys::get_attribute(MUST(sys::open_at(root, "su", O_RDONLY)), "user.note")), "kept");
  const struct stat one = MUST(sys::stat_at(MUST(sys::open_directory(first_layer())), "etc/same"));
  EXPECT_EQ(one.st_nlink, 2u) << "a file of two names";
  EXPECT_EQ(one.st_mtime, 1'100'000'000);
}

TEST_F(StoreTest, exports_several_images_and_their_layers_once) {
  const std::string shared = make_tar({{"big", 'f', std::string(300'000, 'b')}});
  ASSERT_TRUE(import(archive_of(oci_layout({{{shared}, {make_tar({{"one"}})}}}, "localhost/a:1"))).ok());
  auto b = import(archive_of(oci_layout({{{shared}, {make_tar({{"two"}})}}}, "localhost/b:1")));
  ASSERT_TRUE(b.ok());
  ASSERT_TRUE(store_->tag("localhost/b:1", "localhost/b:2").ok());
  const std::string all = exported({"localhost/a:1", b->front().id, "localhost/b:1"});
  EXPECT_LT(all.size(), 400'000u);
  for (const char* name : {"localhost/a:1", "localhost/b:1", "localhost/b:2"}) ASSERT_TRUE(store_->remove(name).ok());
  ASSERT_EQ(count("layers"), 0u);
  ASSERT_TRUE(import(all).ok());
  for (const char* name : {"localhost/a:1", "localhost/b:1", "localhost/b:2"}) EXPECT_TRUE(store_->find(name).ok()) << name;
  EXPECT_FALSE(store_->find("localhost/b:3").ok());
  EXPECT_EQ(exported({"localhost/b:2"}).find("localhost/b:1"), std::string::npos) << "by a tag: under that tag alone";
}

TEST_F(StoreTest, exports_nothing_of_what_is_not_here) {
  ASSERT_TRUE(import(archive_of(oci_layout(two_layers(), "localhost/x:1"))).ok());
  Fd to = MUST(sys::open(dir_.path() + "/out", O_WRONLY | O_CREAT, 0600));
  auto written = store_->write_archive({"localhost/x:1", "localhost/y:1"}, to);
  EXPECT_EQ(written.error().code(), Code::not_found) << written.error().text();
  EXPECT_EQ(store_->write_archive({"localhost/X"}, to).error().code(), Code::invalid);
  EXPECT_EQ(MUST(sys::stat(to)).st_size, 0);
  sys::Pipe pipe = MUST(sys::make_pipe());
  pipe.read.reset();
  EXPECT_FALSE(store_->write_archive({"localhost/x:1"}, pipe.write).ok()) << "nobody reads";
  EXPECT_TRUE(store_->remove("localhost/x:1").ok()) << "nothing holds it";
  EXPECT_EQ(count("layers"), 0u);
}

// A failing disk that became read-only is a reason to export an image.
TEST_F(StoreTest, exports_from_a_disk_that_is_read_only) {
  bool is_mounted = false;
  const std::string state = dir_.path() + "/state";
  auto test = [&] {  // on a thread of its own: the other threads keep their mounts
    is_mounted = ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                 ::mount("none", state.c_str(), "tmpfs", 0, nullptr) == 0;
    if (!is_mounted) return;
    open();
    ASSERT_TRUE(import(archive_of(oci_layout(two_layers(), "localhost/x:1"))).ok());
    const std::string before = exported({"localhost/x:1"});
    store_.reset();  // the store has files open for writing
    ASSERT_EQ(::mount("none", state.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr), 0) << ::strerror(errno);
    open();
    EXPECT_EQ(exported({"localhost/x:1"}), before);
    store_.reset();
  };
  std::thread(test).join();
  if (!is_mounted) GTEST_SKIP() << "may not mount here";
}

TEST_F(StoreTest, exports_an_image_of_nothing_and_an_opaque_root) {
  ASSERT_TRUE(import(archive_of(oci_layout({}, "localhost/scratch:1"))).ok());
  ASSERT_TRUE(
      import(archive_of(oci_layout({{{make_tar({{"old"}})}, {make_tar({{".wh..wh..opq"}, {"new"}})}}}, "localhost/o:1"))).ok());
  const std::string both = exported({"localhost/scratch:1", "localhost/o:1"});
  for (const char* name : {"localhost/scratch:1", "localhost/o:1"}) ASSERT_TRUE(store_->remove(name).ok());
  ASSERT_TRUE(import(both).ok());
  EXPECT_EQ(look(store_->snapshots().mount_image(store_->find("localhost/scratch:1")->id)), "");
  EXPECT_EQ(look(store_->snapshots().mount_image(store_->find("localhost/o:1")->id)), "new f 644 0:0 \n");
}

TEST_F(StoreTest, many_layers_mount_in_every_way) {
  TestImage image;
  for (int i = 0; i < 60; ++i) image.layers.push_back({make_tar({{"f" + std::to_string(i), 'f', std::to_string(i)}})});
  auto got = import(archive_of(oci_layout(image, "localhost/many:1")));
  ASSERT_TRUE(got.ok()) << got.error().text();
  std::string whole = look(store_->snapshots().mount_image(got->front().id));
  EXPECT_EQ(std::count(whole.begin(), whole.end(), '\n'), 60);

  sys::Overlay overlay;
  for (const auto& entry : fs::directory_iterator(dir_.path() + "/state/layers"))
    overlay.lower.push_back(entry.path().string() + "/diff");
  overlay.staging = dir_.path();
  auto classic = sys::mount_overlay(overlay, sys::OverlayWay::classic);
  EXPECT_EQ(look(classic), whole);
  EXPECT_FALSE(fs::exists(dir_.path() + "/mount-1")) << "attached for a moment only";
  EXPECT_EQ(sys::mount_overlay(overlay, sys::OverlayWay::by_descriptor).error().code(), Code::too_large);
  overlay.lower.resize(8);
  EXPECT_EQ(look(sys::mount_overlay(overlay, sys::OverlayWay::by_descriptor)),
            look(sys::mount_overlay(overlay, sys::OverlayWay::classic)));
  fs::create_directory(dir_.path() + "/upper");
  fs::create_directory(dir_.path() + "/work");
  overlay.upper = dir_.path() + "/upper", overlay.work = dir_.path() + "/work";
  auto writable = sys::mount_overlay(overlay, sys::OverlayWay::by_descriptor);
  ASSERT_TRUE(writable.ok()) << writable.error().text();
  write_text("/proc/self/fd/" + std::to_string(writable->get()) + "/new", "x");
  EXPECT_EQ(read_text(dir_.path() + "/upper/new"), "x");
}

}  // namespace
}  // namespace coracle::image
