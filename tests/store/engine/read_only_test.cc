// SPDX-License-Identifier: Apache-2.0
// An engine on a disk that is read-only when it opens, like a disk with errors after the next start. Needs root: mounts a file
// system that only the test's own thread sees.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "tests/store/engine/engine_fixture.h"

namespace coracle::engine {
namespace {

class ReadOnlyDisk : public EngineFixture {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root: mounts a file system";
    EngineFixture::SetUp();
    close();
    options_.copies = copies_.path();
  }
  // Mounts a file system at the directory, on a thread of its own: the other threads keep their mounts.
  void mounted(const std::function<void()>& test) {
    bool is_mounted = false;
    std::thread apart([&] {
      is_mounted = ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                   ::mount("none", directory_.path().c_str(), "tmpfs", 0, nullptr) == 0;
      if (is_mounted) test();
      close();
    });
    apart.join();
    if (!is_mounted) GTEST_SKIP() << "may not mount here";
  }
  void make_read_only(bool read_only) {
    ASSERT_EQ(::mount("none", directory_.path().c_str(), nullptr, MS_REMOUNT | (read_only ? MS_RDONLY : 0), nullptr), 0)
        << ::strerror(errno);
  }
  // The state after a kill of the daemon: much of it is in the log.
  void leave_as_killed() {
    for (const char* suffix : {"", "-wal"})
      std::filesystem::copy_file(path() + suffix, directory_ / ("kept" + std::string(suffix)));
    close();
    for (const char* suffix : {"", "-wal"}) {
      std::filesystem::remove(path() + suffix);
      std::filesystem::rename(directory_ / ("kept" + std::string(suffix)), path() + suffix);
    }
  }
  size_t copies_left() const {
    return size_t(std::distance(std::filesystem::directory_iterator(copies_.path()), std::filesystem::directory_iterator()));
  }
  Result<ObjectPtr> put(const std::string& name, Durability durability) { return try_put(name, "x", std::nullopt, durability); }
  size_t count() { return MUST(engine().list(kConfigMap, {})).items.size(); }
  TemporaryDirectory copies_;
};

TEST_F(ReadOnlyDisk, is_read_and_written_to_when_it_can_be) {
  mounted([&] {
    reopen();
    ASSERT_TRUE(put("kept", Durability::durable));
    const Revision before = engine().revision();
    for (bool was_killed : {true, false}) {
      was_killed ? leave_as_killed() : close();
      make_read_only(true);
      auto opened = Engine::open(path(), options_);
      ASSERT_TRUE(opened) << opened.error().text();
      engine_ = std::move(*opened);
      EXPECT_EQ(copies_left(), 0u);
      EXPECT_TRUE(engine().get(kConfigMap, key("kept")));
      auto refused = put("durable", Durability::durable);
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().code(), Code::unavailable);
      EXPECT_NE(refused.error().text().find("Read-only file system"), std::string::npos) << refused.error().text();
      EXPECT_TRUE(put("soft", Durability::soft));
      EXPECT_GT(engine().revision(), before);
      EXPECT_FALSE(engine().check().empty()) << "nothing can be said of it";
      if (was_killed) make_read_only(false), reopen();
    }
    const Revision seen = engine().revision();
    make_read_only(false);
    ASSERT_TRUE(put("durable", Durability::durable)) << "it heals by itself";
    EXPECT_GT(engine().revision(), seen);
    reopen();
    EXPECT_EQ(count(), 3u) << "with the durable write went the soft one before it";
    EXPECT_GT(engine().revision(), seen);
  });
}

TEST_F(ReadOnlyDisk, is_not_written_over_when_somebody_else_has_written_to_it) {
  mounted([&] {
    reopen();
    ASSERT_TRUE(put("kept", Durability::durable));
    close();
    make_read_only(true);
    reopen();
    make_read_only(false);
    auto other = MUST(Engine::open(path(), options_));
    ASSERT_TRUE(other->write({&kConfigMap, key("other"), body("other", "x"), std::nullopt}, Durability::durable));
    other.reset();
    auto refused = put("late", Durability::durable);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().text().find("somebody else"), std::string::npos) << refused.error().text();
  });
}

TEST_F(ReadOnlyDisk, without_a_store_is_an_error) {
  mounted([&] {
    make_read_only(true);
    auto opened = Engine::open(path(), options_);
    ASSERT_FALSE(opened);
    EXPECT_NE(opened.error().text().find("Read-only file system"), std::string::npos) << opened.error().text();
  });
}

}  // namespace
}  // namespace coracle::engine
