// SPDX-License-Identifier: Apache-2.0
// Directory trees: archived, unpacked and copied by coracle-image, as the daemon uses it. Needs root.
#include "runtime/image/trees.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "runtime/sys/file.h"
#include "runtime/sys/inode.h"
#include "tests/runtime/image/builder.h"

namespace coracle::image {
namespace {

using namespace test;
namespace fs = std::filesystem;

class TreesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root: owners and devices";
    for (const char* each : {"from", "to", "store"}) fs::create_directory(dir_.path() + "/" + each);
    trees_ = make_trees(CORACLE_IMAGE, dir_.path() + "/store");
  }
  std::string from(const std::string& name = "") const { return dir_.path() + "/from" + (name.empty() ? "" : "/" + name); }
  std::string to(const std::string& name = "") const { return dir_.path() + "/to" + (name.empty() ? "" : "/" + name); }
  std::string archive() const { return dir_.path() + "/archive"; }
  Result<runtime::TreeCount> write() {
    Fd tree = TRY(sys::open_directory(from()));
    Fd file = TRY(sys::open(archive(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
    return trees_->write(tree, file, nullptr, {});
  }
  Result<runtime::TreeCount> read() {
    Fd tree = TRY(sys::open_directory(to()));
    Fd file = TRY(sys::open(archive(), O_RDONLY));
    return trees_->read(file, tree, nullptr, {});
  }
  Result<runtime::TreeCount> copy() {
    Fd tree = TRY(sys::open_directory(from()));
    Fd target = TRY(sys::open_directory(to()));
    return trees_->copy(tree, target, nullptr, {});
  }
  Result<runtime::TreeCount> through_archive() {
    TRY(write());
    return read();
  }
  // What tree_of does not include: times, links to the same inode, holes.
  static std::string details(const std::string& root) {
    std::map<std::string, std::string> lines;
    std::map<ino_t, std::string> first;
    auto about = [&](const fs::path& path, const std::string& name) {
      struct stat info {};
      if (::lstat(path.c_str(), &info) != 0) return;
      auto [at, is_first] = first.emplace(info.st_ino, name);
      lines[name] = std::to_string(info.st_mtim.tv_sec) + "." + std::to_string(info.st_mtim.tv_nsec) + " " +
                    std::to_string(S_ISREG(info.st_mode) ? info.st_size : 0) + (is_first ? "" : " is " + at->second);
    };
    std::vector<fs::path> all;
    for (const auto& entry : fs::recursive_directory_iterator(root)) all.push_back(entry.path());
    std::sort(all.begin(), all.end());
    about(root, ".");
    for (const auto& path : all) about(path, path.lexically_relative(root).string());
    std::string text;
    for (const auto& [name, line] : lines) text += name + ": " + line + "\n";
    return text;
  }
  void expect_same() {
    EXPECT_EQ(tree_of(to()), tree_of(from()));
    EXPECT_EQ(details(to()), details(from()));
  }
  void fill() {
    fs::create_directories(from("etc/deep/er"));
    write_text(from("etc/one"), "1");
    write_text(from(".wh.not-a-whiteout"), "w");
    write_text(from("etc/.wh..wh..opq"), "o");
    write_text(from("line\nbreak"), "n");
    write_text(from("\xff\xfe no text"), "b");
    write_text(from(std::string(255, 'x')), "l");
    write_text(from("empty"), "");
    fs::create_hard_link(from("etc/one"), from("etc/deep/er/same"));
    fs::create_symlink("/nowhere/else", from("etc/dangling"));
    fs::create_symlink("..", from("etc/deep/up"));
    ASSERT_EQ(::mkfifo(from("fifo").c_str(), 0620), 0);
    ASSERT_EQ(::mknod(from("null").c_str(), S_IFCHR | 0666, makedev(1, 3)), 0);
    ASSERT_EQ(::mknod(from("hidden").c_str(), S_IFCHR | 0600, makedev(0, 0)), 0);
    ASSERT_EQ(::lchown(from("etc/one").c_str(), 70, 4'000'000), 0);
    ASSERT_EQ(::lchown(from("etc/dangling").c_str(), 5, 6), 0);
    ASSERT_EQ(::chmod(from("etc/one").c_str(), 04751), 0);
    ASSERT_EQ(::chmod(from("etc/deep").c_str(), 01500), 0);
    ASSERT_EQ(::chmod(from().c_str(), 02770), 0);
    ASSERT_EQ(::lsetxattr(from("etc/one").c_str(), "user.note", "two\0parts", 9, 0), 0);
    ASSERT_EQ(::lsetxattr(from("etc/deep").c_str(), "user.of.directory", "d", 1, 0), 0);
    int fd = ::open(from("holes").c_str(), O_WRONLY | O_CREAT, 0600);
    ASSERT_EQ(::pwrite(fd, "begin", 5, 0), 5);
    ASSERT_EQ(::pwrite(fd, "middle", 6, 4 << 20), 6);
    ASSERT_EQ(::ftruncate(fd, 16 << 20), 0);
    ::close(fd);
    fd = ::open(from("hole").c_str(), O_WRONLY | O_CREAT, 0600);
    ASSERT_EQ(::ftruncate(fd, 32 << 20), 0);
    ::close(fd);
    timespec times[2] = {{1'000'000'000, 0}, {1'234'567'890, 123'456'789}};
    for (const char* name : {"etc/one", "etc/dangling", "fifo", "holes", "etc/deep/er", "etc/deep", "etc", "."})
      ASSERT_EQ(::utimensat(AT_FDCWD, from(name).c_str(), times, AT_SYMLINK_NOFOLLOW), 0);
  }
  static int64_t blocks(const std::string& path) {
    struct stat info {};
    return ::lstat(path.c_str(), &info) == 0 ? info.st_blocks : -1;
  }
  TempDir dir_;
  std::unique_ptr<runtime::Trees> trees_;
};

TEST_F(TreesTest, nothing_is_lost_on_any_way) {
  ASSERT_NO_FATAL_FAILURE(fill());
  for (bool as_archive : {true, false}) {
    fs::remove_all(to());
    fs::create_directory(to());
    auto done = as_archive ? through_archive() : copy();
    ASSERT_TRUE(done.ok()) << done.error().text();
    EXPECT_EQ(done->entries, 18) << as_archive;
    expect_same();
    for (const char* name : {"holes", "hole"}) EXPECT_LT(blocks(to(name)), 64) << name << ": holes stay holes";
    char value[16];
    EXPECT_EQ(::lgetxattr(to("etc/one").c_str(), "user.note", value, sizeof value), 9);
    EXPECT_EQ(::lgetxattr(to("etc/deep").c_str(), "user.of.directory", value, sizeof value), 1);
  }
}

TEST_F(TreesTest, archives_of_holes_are_small_and_others_read_them) {
  ASSERT_NO_FATAL_FAILURE(fill());
  ASSERT_TRUE(write().ok());
  EXPECT_LT(fs::file_size(archive()), 64u << 10);
  std::string tar = "tar --zstd --numeric-owner -xpf '" + archive() + "' -C '" + to() + "'";
  if (std::system("tar --version >/dev/null && zstd --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "needs tar and zstd";
  ASSERT_EQ(std::system(tar.c_str()), 0) << tar;
  EXPECT_EQ(tree_of(to()), tree_of(from()));
}

TEST_F(TreesTest, reads_what_others_wrote) {
  ASSERT_NO_FATAL_FAILURE(fill());
  if (std::system("tar --version >/dev/null") != 0) GTEST_SKIP() << "needs tar";
  for (const char* how : {"--format=pax", "--format=gnu --sparse", "-z", "--zstd"}) {
    fs::remove_all(to());
    fs::create_directory(to());
    std::string tar = std::string("tar ") + how + " --numeric-owner -cf '" + archive() + "' -C '" + from() + "' .";
    ASSERT_EQ(std::system(tar.c_str()), 0) << tar;
    auto done = read();
    ASSERT_TRUE(done.ok()) << how << ": " << done.error().text();
    EXPECT_EQ(tree_of(to()), tree_of(from())) << how;
  }
}

TEST_F(TreesTest, sockets_are_left_out) {
  int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(from("socket").size(), sizeof address.sun_path);
  from("socket").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(fd);
  write_text(from("file"), "f");
  for (bool as_archive : {true, false}) {
    auto done = as_archive ? through_archive() : copy();
    ASSERT_TRUE(done.ok()) << done.error().text();
    EXPECT_EQ(tree_of(to()), "file f 644 0:0 f\n");
    fs::remove(to("file"));
  }
}

TEST_F(TreesTest, a_tree_of_any_depth_is_walked_as_far_as_paths_go) {
  std::string path = from();
  for (int i = 0; i < 900; ++i) fs::create_directory(path += "/d" + std::to_string(i % 10));
  write_text(path + "/bottom", "b");
  for (bool as_archive : {true, false}) {
    fs::remove_all(to());
    fs::create_directory(to());
    auto done = as_archive ? through_archive() : copy();
    ASSERT_TRUE(done.ok()) << done.error().text();
    EXPECT_EQ(done->entries, 901);
    EXPECT_EQ(read_text(to() + path.substr(from().size()) + "/bottom"), "b");
  }
}

TEST_F(TreesTest, nothing_is_made_outside_the_tree) {
  const std::string outside = dir_.path() + "/outside";
  fs::create_directory(outside);
  const std::vector<std::vector<Entry>> hostile = {
      {{"../escaped", 'f', "x"}},
      {{"a/../../escaped", 'f', "x"}},
      {{"link", 'l', outside}, {"link/file", 'f', "x"}},
      {{"link", 'l', "../outside"}, {"link/file", 'f', "x"}},
      {{"hard", 'h', "../outside/secret"}},
      {{"link", 'l', outside + "/secret"}, {"link", 'f', "x"}},
      {{outside + "/absolute", 'f', "x"}},
  };
  write_text(outside + "/secret", "s");
  for (const auto& entries : hostile) {
    fs::remove_all(to());
    fs::create_directory(to());
    write_text(archive(), make_tar(entries));
    (void)read();  // either an error or a file inside the directory
    EXPECT_EQ(tree_of(outside), "secret f 644 0:0 s\n") << entries.back().name;
    EXPECT_FALSE(fs::exists(dir_.path() + "/escaped"));
  }
}

TEST_F(TreesTest, what_is_cut_off_is_an_error) {
  ASSERT_NO_FATAL_FAILURE(fill());
  ASSERT_TRUE(write().ok());
  const std::string whole = read_text(archive());
  for (size_t cut : {size_t(0), size_t(3), whole.size() / 2, whole.size() - 1}) {
    fs::remove_all(to());
    fs::create_directory(to());
    write_text(archive(), whole.substr(0, cut));
    auto done = read();
    EXPECT_FALSE(done.ok()) << cut << " of " << whole.size();
  }
  write_text(archive(), "this is no archive, but a text that is longer than a name");
  EXPECT_EQ(read().error().code(), Code::invalid);
}

TEST_F(TreesTest, one_that_is_cut_off_behind_a_file_of_zeros_is_an_error) {
  const std::string whole = make_tar({{"disk", 'f', std::string(4096, '\0')}, {"later", 'f', "l"}});
  for (size_t cut : {size_t(512 + 4096), size_t(512 + 4096 + 512)}) {
    write_text(archive(), whole.substr(0, cut));
    auto done = read();
    EXPECT_FALSE(done.ok()) << cut;
    fs::remove_all(to());
    fs::create_directory(to());
  }
  write_text(archive(), whole);
  EXPECT_TRUE(read().ok());
}

TEST_F(TreesTest, what_is_damaged_is_an_error) {
  std::string noise(64 << 10, '\0');  // stored uncompressed, so a changed byte in it still unpacks
  for (char& c : noise) c = char(std::rand());
  write_text(from("noise"), noise);
  ASSERT_TRUE(write().ok());
  const std::string whole = read_text(archive());
  for (size_t at = 1; at < 10; ++at) {
    fs::remove_all(to());
    fs::create_directory(to());
    std::string damaged = whole;
    damaged[whole.size() * at / 10] ^= 1;
    write_text(archive(), damaged);
    EXPECT_FALSE(read().ok()) << at;
  }
}

TEST_F(TreesTest, links_and_pipes_keep_their_names) {
  fs::create_directory(from("d"));
  fs::create_symlink("/nowhere", from("link"));
  fs::create_hard_link(from("link"), from("d/link"));
  ASSERT_EQ(::mkfifo(from("pipe").c_str(), 0600), 0);
  fs::create_hard_link(from("pipe"), from("d/pipe"));
  for (bool as_archive : {true, false}) {
    fs::remove_all(to());
    fs::create_directory(to());
    auto done = as_archive ? through_archive() : copy();
    ASSERT_TRUE(done.ok()) << done.error().text();
    expect_same();
  }
}

TEST_F(TreesTest, can_be_stopped) {
  sys::Pipe pipe = MUST(sys::make_pipe());  // nobody reads from it
  std::string text(4 << 20, '\0');
  for (char& c : text) c = char(std::rand());
  write_text(from("large"), text);
  std::stop_source stop;
  Fd tree = MUST(sys::open_directory(from()));
  std::jthread soon([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    stop.request_stop();
  });
  EXPECT_EQ(trees_->write(tree, pipe.write, nullptr, stop.get_token()).error().code(), Code::cancelled);
}

}  // namespace
}  // namespace coracle::image
