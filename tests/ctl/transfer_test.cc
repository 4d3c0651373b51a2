// SPDX-License-Identifier: Apache-2.0
// cp's paths and tar streams, including those of a hostile container.
#include "ctl/transfer.h"

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "runtime/base/fd.h"
#include "runtime/sys/file.h"

namespace coracle::ctl {
namespace {

namespace fs = std::filesystem;

class TransferTest : public testing::Test {
 protected:
  TransferTest() {
    place_ = testing::TempDir() + "/ctl-transfer-XXXXXX";
    EXPECT_TRUE(::mkdtemp(place_.data()));
    place_ = fs::canonical(place_);
  }
  ~TransferTest() override { fs::remove_all(place_); }
  void write(const std::string& name, std::string_view text) {
    fs::create_directories(fs::path(place_ + "/" + name).parent_path());
    std::ofstream(place_ + "/" + name, std::ios::binary) << text;
  }
  std::string read(const std::string& name) {
    std::ifstream file(place_ + "/" + name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  // Copies through a pipe, as between two machines.
  Result<void> pass(const std::string& from, const std::string& name, const std::string& to) {
    auto pipe = sys::make_pipe();
    std::jthread sender([&] {
      EXPECT_TRUE(send_tree(place_ + "/" + from, name, pipe->write.get()));
      pipe->write.reset();
    });
    return receive_tree(pipe->read.get(), place_ + "/" + to, true);
  }
  // Receives a tar with one entry, as a container may forge it.
  Result<void> receive_forged(const char* name, mode_t type, const char* link, const std::string& to) {
    auto pipe = sys::make_pipe();
    archive* tar = archive_write_new();
    archive_write_set_format_gnutar(tar);
    archive_write_open_fd(tar, pipe->write.get());
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, type);
    archive_entry_set_perm(entry, 04755);
    archive_entry_set_size(entry, 0);
    if (type == AE_IFLNK) archive_entry_set_symlink(entry, link);
    else if (link) archive_entry_set_hardlink(entry, link);
    archive_write_header(tar, entry);
    archive_entry_free(entry);
    archive_write_free(tar);
    pipe->write.reset();
    return receive_tree(pipe->read.get(), place_ + "/" + to, true);
  }
  std::string place_;
};

TEST_F(TransferTest, carries_trees_with_links_modes_and_long_names) {
  std::string deep = std::string(120, 'd') + "/" + std::string(120, 'e') + "/leaf", big(300'000, 'x');
  write("tree/a", "hello"), write("tree/empty", ""), write("tree/" + deep, "deep"), write("tree/big", big);
  fs::create_symlink("a", place_ + "/tree/link");
  fs::permissions(place_ + "/tree/a", fs::perms(0640));
  auto passed = pass("tree", "other", "copy");
  ASSERT_TRUE(passed) << passed.error().text();
  EXPECT_EQ(read("copy/a"), "hello");
  EXPECT_EQ(read("copy/" + deep), "deep");
  EXPECT_EQ(read("copy/big"), big);
  EXPECT_TRUE(fs::exists(place_ + "/copy/empty"));
  EXPECT_EQ(fs::read_symlink(place_ + "/copy/link"), "a");
  EXPECT_EQ(fs::status(place_ + "/copy/a").permissions(), fs::perms(0640));
}

TEST_F(TransferTest, carries_a_single_file_under_another_name) {
  write("one", "1");
  ASSERT_TRUE(pass("one", "renamed", "two"));
  EXPECT_EQ(read("two"), "1");
  write("one", "2");
  ASSERT_TRUE(pass("one", "renamed", "two")) << "over what is there";
  EXPECT_EQ(read("two"), "2");
}

TEST_F(TransferTest, lets_nothing_out_of_the_target) {
  write("victim", "safe");
  for (const char* name : {"x/../../victim", "../victim", "x/.."}) {
    auto got = receive_forged(name, AE_IFREG, nullptr, "target");
    ASSERT_FALSE(got) << name;
    EXPECT_EQ(got.error().code(), Code::forbidden) << name;
  }
  EXPECT_FALSE(receive_forged("x/hard", AE_IFREG, "x/../../victim", "target"));
  (void)receive_forged("x/abs", AE_IFREG, "/etc/passwd", "target");  // becomes a path below the target
  EXPECT_EQ(read("victim"), "safe");
}

TEST_F(TransferTest, writes_through_no_link_that_came_along) {
  fs::create_directories(place_ + "/outside");
  ASSERT_TRUE(receive_forged("x/door", AE_IFLNK, (place_ + "/outside").c_str(), "target") || true);
  (void)receive_forged("x/door/file", AE_IFREG, nullptr, "target");
  EXPECT_FALSE(fs::exists(place_ + "/outside/file"));
}

TEST_F(TransferTest, takes_no_devices_and_no_setuid) {
  EXPECT_FALSE(receive_forged("x", AE_IFIFO, nullptr, "fifo"));
  EXPECT_FALSE(fs::exists(place_ + "/fifo"));
  ASSERT_TRUE(receive_forged("x", AE_IFREG, nullptr, "file"));
  struct stat about;
  ASSERT_EQ(::stat((place_ + "/file").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 0755u);
}

TEST_F(TransferTest, says_what_is_wrong_with_a_stream) {
  for (std::string_view bytes : {"", "this is not a tar at all, just words"}) {
    auto pipe = sys::make_pipe();
    ASSERT_TRUE(sys::write_all(pipe->write, bytes));
    pipe->write.reset();
    EXPECT_FALSE(receive_tree(pipe->read.get(), place_ + "/t", true));
  }
}

TEST(Place, is_read_as_people_write_it) {
  struct Row {
    const char *text, *ns, *pod, *path;
  };
  for (const Row& row : {Row{"web:/etc/x", "", "web", "/etc/x"}, Row{"kube-system/web:x", "kube-system", "web", "x"},
                         Row{"/tmp/a:b", "", "", "/tmp/a:b"}, Row{"./a:b", "", "", "./a:b"}, Row{"file", "", "", "file"},
                         Row{"web:/a:b", "", "web", "/a:b"}}) {
    auto got = parse_place(row.text);
    ASSERT_TRUE(got) << row.text;
    EXPECT_EQ(got->ns, row.ns) << row.text;
    EXPECT_EQ(got->pod, row.pod) << row.text;
    EXPECT_EQ(got->path, row.path) << row.text;
  }
  for (const char* text : {"", ":x", "web:", "a/b/c:x", "/:x" + 1}) EXPECT_FALSE(parse_place(text)) << text;
}

TEST(Place, splits_paths) {
  using Pair = std::pair<std::string, std::string>;
  EXPECT_EQ(split_path("/a/b"), (Pair{"/a", "b"}));
  EXPECT_EQ(split_path("/a/b/"), (Pair{"/a", "b"}));
  EXPECT_EQ(split_path("/a"), (Pair{"/", "a"}));
  EXPECT_EQ(split_path("a"), (Pair{".", "a"}));
  EXPECT_EQ(split_path("/"), (Pair{"/", "."}));
}

}  // namespace
}  // namespace coracle::ctl
