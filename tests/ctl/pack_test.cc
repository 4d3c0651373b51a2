// SPDX-License-Identifier: Apache-2.0
// A directory as an image: the archive's layout, its digests, and that the result is reproducible.
#include "ctl/pack.h"

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "runtime/base/json.h"
#include "runtime/sys/file.h"

namespace coracle::ctl {
namespace {

namespace fs = std::filesystem;

std::map<std::string, std::string> entries_of(const std::string& tar) {
  std::map<std::string, std::string> found;
  archive* from = archive_read_new();
  archive_read_support_format_tar(from);
  EXPECT_EQ(archive_read_open_memory(from, tar.data(), tar.size()), ARCHIVE_OK);
  for (archive_entry* entry = nullptr; archive_read_next_header(from, &entry) == ARCHIVE_OK;) {
    std::string text(size_t(archive_entry_size(entry)), '\0');
    EXPECT_EQ(archive_read_data(from, text.data(), text.size()), la_ssize_t(text.size()));
    if (archive_entry_filetype(entry) == AE_IFLNK) text = std::string("-> ") + archive_entry_symlink(entry);
    if (archive_entry_hardlink(entry)) text = std::string("= ") + archive_entry_hardlink(entry);
    found[archive_entry_pathname(entry)] = text;
  }
  archive_read_free(from);
  return found;
}

class PackTest : public testing::Test {
 protected:
  PackTest() {
    place_ = testing::TempDir() + "/ctl-pack-XXXXXX";
    EXPECT_TRUE(::mkdtemp(place_.data()));
    fs::create_directories(place_ + "/root/bin");
    std::ofstream(place_ + "/root/bin/sh") << "#!program";
    fs::create_symlink("sh", place_ + "/root/bin/ash");
    fs::create_hard_link(place_ + "/root/bin/sh", place_ + "/root/bin/zz");
  }
  ~PackTest() override { fs::remove_all(place_); }
  std::string pack(const ImageConfig& config) {
    auto file = sys::open(place_ + "/out.tar", O_RDWR | O_CREAT | O_TRUNC, 0600);
    auto packed = pack_directory(place_ + "/root", "localhost/test:1", config, *file);
    EXPECT_TRUE(packed) << packed.error().text();
    return sys::read_file(place_ + "/out.tar").value_or("");
  }
  std::string place_;
};

TEST_F(PackTest, makes_an_oci_archive) {
  auto files =
      entries_of(pack({.entrypoint = {"/bin/sh"}, .cmd = {"-c", "x"}, .env = {"A=1"}, .user = "65534", .working_dir = "/bin"}));
  EXPECT_EQ(files["oci-layout"], R"({"imageLayoutVersion":"1.0.0"})");
  json::value index = *parse_json(files["index.json"]);
  const json::value& entry = get_array(index, "manifests")[0];
  EXPECT_EQ(find_keys(entry, {"annotations", "org.opencontainers.image.ref.name"})->as_string(), "localhost/test:1");
  auto blob = [&](std::string_view digest) { return files["blobs/sha256/" + std::string(digest.substr(7))]; };
  json::value manifest = *parse_json(blob(get_string(entry, "digest")));
  json::value config = *parse_json(blob(get_string(manifest, "config.digest")));
  EXPECT_EQ(to_text(*find(config, "config.Entrypoint")), R"(["/bin/sh"])");
  EXPECT_EQ(to_text(*find(config, "config.Cmd")), R"(["-c","x"])");
  EXPECT_EQ(get_string(config, "config.User"), "65534");
  EXPECT_EQ(get_string(config, "config.WorkingDir"), "/bin");
  EXPECT_EQ(get_array(config, "config.Env").size(), 2u) << "PATH is added";
  std::string_view layer = get_string(get_array(manifest, "layers")[0], "digest");
  EXPECT_EQ(get_array(config, "rootfs.diff_ids")[0].as_string(), layer);
  auto inside = entries_of(blob(layer));
  EXPECT_EQ(inside["bin/sh"], "#!program");
  EXPECT_EQ(inside["bin/ash"], "-> sh");
  EXPECT_EQ(inside["bin/zz"], "= bin/sh");
}

TEST_F(PackTest, gives_the_same_bytes_whenever_it_is_made) {
  std::string first = pack({});
  fs::last_write_time(place_ + "/root/bin/sh", fs::file_time_type::clock::now() + std::chrono::hours(5));
  EXPECT_EQ(pack({}), first);
  std::ofstream(place_ + "/root/bin/sh") << "#!changed";
  EXPECT_NE(pack({}), first);
}

TEST_F(PackTest, says_what_it_cannot_pack) {
  auto null = sys::open("/dev/null", O_WRONLY);
  EXPECT_EQ(pack_directory(place_ + "/none", "x", {}, *null).error().code(), Code::not_found);
  EXPECT_NE(pack_directory(place_ + "/root/bin/sh", "x", {}, *null).error().text().find("is not a directory"), std::string::npos);
  EXPECT_NE(pack_directory(place_ + "/root", "", {}, *null).error().text().find("needs a name"), std::string::npos);
}

}  // namespace
}  // namespace coracle::ctl
