// SPDX-License-Identifier: Apache-2.0
// Files: atomic replacement, and directory operations that a hostile tree cannot redirect.
#include "runtime/sys/file.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <span>
#include <thread>

#include "runtime/base/scope.h"

namespace coracle::sys {
namespace {

class FileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/coracle-file-XXXXXX";
    path_ = ::mkdtemp(name);
    dir_ = MUST(open_directory(path_));
  }
  void TearDown() override { MUST(remove_tree(path_)); }
  std::string path_;
  Fd dir_;
};

TEST_F(FileTest, replaces_a_file_as_a_whole) {
  MUST(replace_file(path_ + "/a", "one", 0640));
  MUST(replace_file_at(dir_, "a", "two", 0640, Durability::volatile_));
  EXPECT_EQ(MUST(read_file(path_ + "/a")), "two");
  EXPECT_EQ(MUST(stat_at(dir_, "a")).st_mode & 07777, 0640u);
  EXPECT_EQ(MUST(list(dir_)).size(), 1u);  // no temporary file is left
  EXPECT_EQ(read_file(path_ + "/a", 2).error().code(), Code::too_large);
  EXPECT_EQ(read_file(path_ + "/none").error().code(), Code::not_found);
}

TEST_F(FileTest, a_tree_cannot_lead_out_of_its_root) {
  MUST(make_directories(path_ + "/root/etc"));
  MUST(replace_file(path_ + "/secret", "host"));
  MUST(replace_file(path_ + "/root/etc/secret", "inside"));
  Fd root = MUST(open_directory(path_ + "/root"));
  MUST(symlink_at("/etc/secret", root, "absolute"));
  MUST(symlink_at("../../../../" + path_ + "/secret", root, "climbs"));
  EXPECT_EQ(MUST(read_file_in(root, "absolute", 100)), "inside");
  EXPECT_EQ(MUST(read_file_in(root, "../../etc/secret", 100)), "inside");
  EXPECT_EQ(read_file_in(root, "climbs", 100).error().code(), Code::not_found);
  EXPECT_FALSE(open_no_links(root, "absolute", O_RDONLY).ok());
  EXPECT_FALSE(read_file_in(root, "etc", 100).ok());
  ASSERT_EQ(::mkfifo((path_ + "/root/fifo").c_str(), 0600), 0);
  Fd opened = MUST(make_inotify());
  MUST(watch_path(opened, path_ + "/root/fifo", IN_OPEN));
  EXPECT_EQ(read_file_in(root, "fifo", 100).error().code(), Code::invalid);  // and does not block
  Fd whole = MUST(open("/", O_PATH | O_DIRECTORY));
  EXPECT_EQ(read_file_in(whole, "proc/version", 1000).error().code(), Code::invalid) << "as /proc/kmsg, which would block";
  EXPECT_FALSE(MUST(wait_readable(opened, std::chrono::milliseconds(0)))) << "opening a device can be an order";
}

TEST_F(FileTest, makes_directories_beneath_a_hostile_root) {
  MUST(make_directories(path_ + "/root"));
  Fd root = MUST(open_directory(path_ + "/root"));
  MUST(symlink_at(path_, root, "out"));
  MUST(symlink_at("/real", root, "link"));
  MUST(make_directories_in(root, "/real/one", 0755));
  MUST(make_directories_in(root, "link/two/../three", 0755));
  EXPECT_TRUE(exists(path_ + "/root/real/two"));
  EXPECT_TRUE(exists(path_ + "/root/real/three"));
  (void)make_directories_in(root, "out/evil", 0755);  // it may fail or stay inside,
  EXPECT_FALSE(exists(path_ + "/evil"));              // but it must not lead outside
}

TEST_F(FileTest, makes_what_is_missing_of_a_path_of_directories) {
  for (const char* path : {"/a/b/c", "/a/b/c", "/a/b/d", "/a/b/d/e/"}) {
    MUST(make_directories(path_ + path, 0700));
    EXPECT_TRUE(exists(path_ + path)) << path;
  }
  MUST(replace_file(path_ + "/a/file", "x"));
  auto on_file = make_directories(path_ + "/a/file");
  auto beneath_file = make_directories(path_ + "/a/file/b/c");
  ASSERT_FALSE(on_file.ok() || beneath_file.ok());
  EXPECT_EQ(on_file.error().err(), ENOTDIR);
  EXPECT_EQ(beneath_file.error().text(), "make directory " + path_ + "/a/file/b: Not a directory");
}

TEST_F(FileTest, removes_a_tree_without_following_links) {
  MUST(make_directories(path_ + "/keep"));
  MUST(replace_file(path_ + "/keep/file", "x"));
  MUST(make_directories(path_ + "/tree/deep/deeper"));
  MUST(replace_file(path_ + "/tree/deep/file", "x"));
  Fd tree = MUST(open_directory(path_ + "/tree"));
  MUST(symlink_at("../keep", tree, "link"));
  MUST(remove_tree(dir_, "tree"));
  MUST(remove_tree(dir_, "tree"));  // removing an absent tree succeeds
  EXPECT_FALSE(exists(path_ + "/tree"));
  EXPECT_TRUE(exists(path_ + "/keep/file"));
}

TEST_F(FileTest, passes_descriptors_over_a_named_socket) {
  Fd server = MUST(bind_unix(dir_, "socket", 0600));
  EXPECT_EQ(MUST(stat_at(dir_, "socket")).st_mode & 07777, 0600u);
  EXPECT_EQ(connect_unix(dir_, "socket").error().code(), code_of_errno(ECONNREFUSED));
  ASSERT_EQ(::listen(server.get(), 1), 0);
  Fd client = MUST(connect_unix(dir_, "socket"));
  Fd accepted(::accept4(server.get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_EQ(MUST(peer_credentials(client)).pid, ::getpid());
  Fd memfd = MUST(make_memfd("test", "hello", true));
  const int fds[] = {memfd.get()};
  MUST(send_message(client, std::as_bytes(std::span("abc", 3)), fds));
  std::byte buffer[16];
  Message message = MUST(receive_message(accepted, buffer));
  EXPECT_EQ(message.size, 3u);
  ASSERT_EQ(message.fds.size(), 1u);
  EXPECT_EQ(MUST(read_all(message.fds[0])), "hello");
  EXPECT_FALSE(write_all(message.fds[0], "x").ok());  // sealed
  EXPECT_EQ(receive_message(accepted, buffer, true).error().err(), EAGAIN);
  client.reset();
  EXPECT_EQ(MUST(receive_message(accepted, buffer)).size, 0u);
}

TEST_F(FileTest, locks_once) {
  Fd first = MUST(lock_file(path_ + "/lock"));
  EXPECT_EQ(lock_file(path_ + "/lock").error().code(), Code::conflict);
  first.reset();
  EXPECT_TRUE(lock_file(path_ + "/lock").ok());
}

TEST_F(FileTest, waits_for_the_end_of_a_connection_and_not_for_its_messages) {
  std::pair<Fd, Fd> ends = MUST(make_socketpair(SOCK_SEQPACKET));
  const std::string text = "said";
  std::atomic<bool> is_open = true;
  std::jthread peer([&] {
    MUST(send_message(ends.second, std::as_bytes(std::span(text)), {}));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    is_open = false;
    ends.second.reset();
  });
  MUST(wait_hung_up(ends.first));
  EXPECT_FALSE(is_open);
  std::array<std::byte, 8> buffer;
  EXPECT_EQ(MUST(receive_message(ends.first, buffer)).size, text.size());
  EXPECT_EQ(MUST(receive_message(ends.first, buffer)).size, 0u);
}

}  // namespace
}  // namespace coracle::sys
