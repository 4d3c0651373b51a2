// SPDX-License-Identifier: Apache-2.0
// Archives of images in a directory.
#include "daemon/node/image_archives.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "runtime/base/guarded.h"
#include "runtime/sys/file.h"
#include "tests/runtime/fake_runtime.h"

namespace coracle::node {
namespace {

using std::chrono::milliseconds;

// An archive is a text: the name of its image, or "bad".
class ImportedImages : public runtime::FakeImageStore {
 public:
  Result<std::vector<runtime::Image>> import(const Fd& archive, std::string_view, std::stop_token stop) override {
    char text[100];
    const ssize_t size = ::read(archive.get(), text, sizeof text);
    const std::string name(text, size_t(std::max<ssize_t>(size, 0)));
    imports_.with([&](std::string& all) { all += name + ";"; });
    imports_.notify();
    if (is_long) {
      imports_.wait(
          stop, [](const auto&) { return false; }, [](auto&) {});
      return Error(Code::cancelled, "stopped");
    }
    if (name == "bad") return Error(Code::invalid, "the archive holds no image");
    if (is_full) return Error(Code::unavailable, "the disk is nearly full");
    return std::vector{*find(add(name))};
  }
  std::string take() {
    return imports_.with([](std::string& all) { return std::exchange(all, {}); });
  }
  void await_begin() {
    imports_.wait(
        {}, [](const std::string& all) { return !all.empty(); }, [](auto&) {});
  }
  std::atomic<bool> is_long = false;  // an import lasts until it is stopped
  std::atomic<bool> is_full = false;

 private:
  Guarded<std::string> imports_;
};

class ImageArchivesTest : public testing::Test {
 protected:
  ImageArchivesTest() {
    char name[] = "/tmp/coracle-archives-XXXXXX";
    directory_ = ::mkdtemp(name);
    std::filesystem::create_directory(directory_ + "/in");
    start();
  }
  ~ImageArchivesTest() override { std::filesystem::remove_all(directory_); }
  void start() {
    archives_ =
        std::make_unique<ImageArchives>(directory_ + "/in", directory_ + "/record", images_, clock_, [this] { ++changes_; });
  }
  void write(const std::string& name, const std::string& text) { std::ofstream(directory_ + "/in/" + name) << text; }
  // What is imported after the files have been looked at, and then left alone.
  std::string settle() {
    archives_->look();
    clock_.advance(ImageArchives::kSettled);
    archives_->look();
    return images_.take();
  }

  std::string directory_;
  ImportedImages images_;
  FakeClock clock_;
  std::atomic<int> changes_{0};
  std::unique_ptr<ImageArchives> archives_;
};

TEST_F(ImageArchivesTest, are_imported_once_also_by_the_next_daemon) {
  write("a.tar", "one");
  write("b.tar.zst", "two");
  for (const char* other : {"notes.txt", ".hidden.tar", "c.tar.part"}) write(other, "other");
  std::filesystem::create_directory(directory_ + "/in/d.tar");
  std::filesystem::create_symlink("/etc/passwd", directory_ + "/in/e.tar");
  EXPECT_EQ(settle(), "one;two;");
  EXPECT_EQ(changes_, 2);
  EXPECT_EQ(settle(), "");
  start();
  EXPECT_EQ(settle(), "") << "a restart";
  write("a.tar", "three");
  EXPECT_EQ(settle(), "three;");
}

TEST_F(ImageArchivesTest, wait_until_they_are_whole) {
  write("a.tar", "o");
  auto again = archives_->look();
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, milliseconds(2000));
  clock_.advance(milliseconds(1500));
  write("a.tar", "on");
  EXPECT_EQ(archives_->look(), milliseconds(2000)) << "it still grows";
  clock_.advance(milliseconds(1500));
  EXPECT_EQ(archives_->look(), milliseconds(500));
  EXPECT_EQ(images_.take(), "");
  clock_.advance(milliseconds(500));
  EXPECT_EQ(archives_->look(), std::nullopt);
  EXPECT_EQ(images_.take(), "on;");
}

TEST_F(ImageArchivesTest, that_are_none_are_told_once_and_tried_again_when_they_change) {
  write("a.tar", "bad");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(settle(), "bad;");
  EXPECT_EQ(settle(), "");
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("/in/a.tar"), log.npos) << log;
  EXPECT_NE(log.find("the archive holds no image"), log.npos) << log;
  EXPECT_EQ(changes_, 0);
  write("a.tar", "good");
  EXPECT_EQ(settle(), "good;");
}

TEST_F(ImageArchivesTest, a_record_that_is_damaged_or_a_file_that_went_and_came_is_imported_anew) {
  write("a.tar", "one");
  EXPECT_EQ(settle(), "one;");
  std::ofstream(directory_ + "/record") << "{";
  start();
  EXPECT_EQ(settle(), "one;");
  std::filesystem::remove(directory_ + "/in/a.tar");
  write("b.tar", "two");
  EXPECT_EQ(settle(), "two;");
  EXPECT_EQ(sys::read_file(directory_ + "/record")->find("a.tar"), std::string::npos) << "the record does not grow";
}

TEST_F(ImageArchivesTest, are_imported_again_by_a_daemon_that_has_not_their_images) {
  write("a.tar", "one");
  write("b.tar", "two");
  EXPECT_EQ(settle(), "one;two;");
  ASSERT_TRUE(images_.remove("one").ok());
  EXPECT_EQ(settle(), "") << "somebody does not want it";
  start();
  EXPECT_EQ(settle(), "one;") << "the store may have lost it";
  EXPECT_EQ(settle(), "");
}

TEST_F(ImageArchivesTest, are_tried_again_after_a_while_where_the_disk_was_full) {
  write("a.tar", "one");
  images_.is_full = true;
  archives_->look();
  clock_.advance(ImageArchives::kSettled);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(archives_->look(), milliseconds(ImageArchives::kRetry));
  EXPECT_EQ(archives_->look(), milliseconds(ImageArchives::kRetry)) << "not at each look";
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("the disk is nearly full"), std::string::npos);
  EXPECT_EQ(images_.take(), "one;");
  images_.is_full = false;
  clock_.advance(ImageArchives::kRetry);
  EXPECT_EQ(archives_->look(), std::nullopt);
  EXPECT_EQ(images_.take(), "one;");
  EXPECT_EQ(changes_, 1);
}

TEST_F(ImageArchivesTest, of_many_layers_do_not_keep_the_daemon_from_its_end) {
  write("a.tar", "one");
  images_.is_long = true;
  archives_->look();
  clock_.advance(ImageArchives::kSettled);
  ::testing::internal::CaptureStderr();
  {
    std::jthread thread([&](std::stop_token stop) { archives_->look(stop); });
    images_.await_begin();
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(images_.take(), "one;");
  EXPECT_EQ(changes_, 0);
  images_.is_long = false;
  start();
  EXPECT_EQ(settle(), "one;") << "the next daemon imports it";
}

TEST(ImageArchives, are_imported_when_they_come) {
  char name[] = "/tmp/coracle-archives-XXXXXX";
  const std::string directory = ::mkdtemp(name);
  ImportedImages images;
  std::atomic<int> changes{0};
  ImageArchives archives(directory + "/in", directory + "/record", images, system_clock(), [&] { ++changes; });
  std::jthread thread([&](std::stop_token stop) { archives.run(stop); });
  for (int i = 0; i < 500 && !std::filesystem::exists(directory + "/in"); ++i) ::usleep(10'000);
  std::ofstream(directory + "/in/a.tar") << "one";
  for (int i = 0; i < 2000 && changes == 0; ++i) ::usleep(10'000);
  EXPECT_EQ(images.take(), "one;");
  std::filesystem::remove_all(directory + "/in");
  for (int i = 0; i < 2000 && !std::filesystem::exists(directory + "/in"); ++i) ::usleep(10'000);
  std::ofstream(directory + "/in/b.tar") << "two";
  for (int i = 0; i < 2000 && changes == 1; ++i) ::usleep(10'000);
  EXPECT_EQ(images.take(), "two;") << "another directory of that name";
  thread = {};
  std::filesystem::remove_all(directory);
}

// In a mount namespace of its own.
bool imports_from_a_disk_that_is_mounted_over(const std::string& directory) {
  if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  ImportedImages images;
  std::atomic<int> changes{0};
  ImageArchives archives(directory + "/in", directory + "/record", images, system_clock(), [&] { ++changes; });
  std::jthread thread([&](std::stop_token stop) { archives.run(stop); });
  auto await = [&](int count) {
    for (int i = 0; i < 2000 && changes < count; ++i) ::usleep(10'000);
    return changes == count;
  };
  std::filesystem::create_directories(directory + "/in");
  std::ofstream(directory + "/in/a.tar") << "one";
  if (!await(1)) return false;  // from now on it waits for changes in this directory
  std::filesystem::create_directory(directory + "/disk");
  if (::mount("tmpfs", (directory + "/disk").c_str(), "tmpfs", 0, nullptr) != 0) return false;
  std::ofstream(directory + "/disk/b.tar") << "two";
  if (::mount((directory + "/disk").c_str(), (directory + "/in").c_str(), nullptr, MS_MOVE, nullptr) != 0) return false;
  return await(2) && images.take() == "one;two;";
}

TEST(ImageArchives, are_imported_from_a_disk_that_is_mounted_over_the_directory) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  char name[] = "/tmp/coracle-archives-XXXXXX";
  const std::string directory = ::mkdtemp(name);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(imports_from_a_disk_that_is_mounted_over(directory) ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "what is mounted over a directory is no event in it";
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace coracle::node
