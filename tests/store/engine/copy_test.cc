// SPDX-License-Identifier: Apache-2.0
// Copies of a store: their content, the files that are refused as copies, and a store that is created from one. And maintenance
// of the file: integrity checks and compaction.
#include "store/engine/copy.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "tests/store/engine/engine_fixture.h"
#include "tests/store/engine/slow_disk.h"

namespace coracle::engine {
namespace {

class CopyTest : public EngineFixture {
 protected:
  Copy copy_of_now() {
    Snapshot snapshot = engine().snapshot();
    return {{"2026-01-02T03:04:05Z", "1.0", "edge", snapshot.revision},
            snapshot.objects,
            {{"ca.crt", "certificate\n"}},
            snapshot.revision,
            {}};
  }
  std::string copy_path() const { return directory_ / "copy"; }
  void write_copy_of_now() {
    std::filesystem::remove(copy_path());
    ASSERT_TRUE(write_copy(copy_path(), copy_of_now()));
  }
  Result<Copy> read() { return read_copy(copy_path(), options_.find_kind); }
  void sql(const std::string& path, const std::string& statement) {
    sqlite3* handle = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
    char* why = nullptr;
    EXPECT_EQ(sqlite3_exec(handle, statement.c_str(), nullptr, nullptr, &why), SQLITE_OK) << why;
    sqlite3_close(handle);
  }
  // Whether another process sees locks on the file.
  bool is_locked_for_others() const {
    const std::string file = path();
    pid_t child = ::fork();
    if (child == 0) {
      struct flock lock {};
      lock.l_type = F_WRLCK;
      int fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
      ::_exit(fd >= 0 && ::fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK);
    }
    int status = 0;
    return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 1;
  }
  std::string refusal() {
    auto got = read();
    if (got) return "nothing";
    EXPECT_EQ(got.error().code(), Code::invalid) << got.error().text();
    return got.error().text();
  }
};

void overwrite(const std::string& path, size_t at, const std::string& bytes) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(std::streamoff(at));
  file << bytes;
}

size_t find_in(const std::string& path, const std::string& what) {
  std::ifstream file(path, std::ios::binary);
  std::string all(std::istreambuf_iterator<char>(file), {});
  return all.find(what);
}

TEST_F(CopyTest, holds_everything_soft_writes_too) {
  put("a", "1");
  put("b", "2", Durability::soft);
  write_copy_of_now();
  Copy copy = MUST(read());
  ASSERT_EQ(copy.objects.size(), 2u);
  EXPECT_EQ(copy.objects[1]->awake()->text(), MUST(engine().get(kConfigMap, key("b")))->text());
  EXPECT_EQ(copy.label.taken, "2026-01-02T03:04:05Z");
  EXPECT_EQ(copy.label.node, "edge");
  EXPECT_EQ(copy.label.revision, engine().revision());
  ASSERT_EQ(copy.files.size(), 1u);
  EXPECT_EQ(copy.files[0].content, "certificate\n");
}

TEST_F(CopyTest, a_stores_own_file_is_read_too) {
  put("a", "1");
  close();
  Copy copy = MUST(read_copy(path(), options_.find_kind));
  EXPECT_EQ(copy.objects.size(), 1u);
  EXPECT_EQ(copy.label.taken, "");
}

TEST_F(CopyTest, a_copy_opens_as_a_store) {
  put("a", "1");
  write_copy_of_now();
  close();
  std::filesystem::rename(copy_path(), path());
  reopen();
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
}

TEST_F(CopyTest, refuses_what_is_no_whole_copy) {
  for (int i = 0; i < 50; i++) put("object-" + std::to_string(i), std::string(500, 'x'));
  write_copy_of_now();
  auto size = std::filesystem::file_size(copy_path());
  std::filesystem::resize_file(copy_path(), size / 2);
  EXPECT_TRUE(refusal().starts_with("is damaged or cut off: ")) << refusal();

  write_copy_of_now();
  std::filesystem::resize_file(copy_path(), 0);
  EXPECT_EQ(refusal(), "is empty");

  std::ofstream(copy_path()) << "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n" << std::string(5000, ' ');
  EXPECT_TRUE(refusal().starts_with("is damaged or cut off: ")) << refusal();
  std::filesystem::remove(copy_path());
  sql(copy_path(), "CREATE TABLE t(x)");
  EXPECT_EQ(refusal(), "is a database, but not Coracle's");
}

TEST_F(CopyTest, refuses_a_newer_layout_and_what_others_put_in) {
  put("a", "1");
  write_copy_of_now();
  sql(copy_path(), "PRAGMA user_version=2");
  EXPECT_EQ(refusal(), "has layout 2; this version of Coracle reads layout 1");
  write_copy_of_now();
  sql(copy_path(), "CREATE TRIGGER evil AFTER INSERT ON objects BEGIN DELETE FROM objects; END");
  EXPECT_EQ(refusal(), "holds the trigger \"evil\", which is not Coracle's");
  write_copy_of_now();
  sql(copy_path(), "INSERT INTO files VALUES('../../etc/shadow', 'x')");
  EXPECT_EQ(refusal(), "holds a file with the name \"../../etc/shadow\"");
  write_copy_of_now();
  sql(copy_path(), "DELETE FROM label");
  EXPECT_EQ(refusal(), "was never finished: it bears no label");
}

TEST_F(CopyTest, finds_a_byte_that_turned_over) {
  put("a", "treasure");
  write_copy_of_now();
  overwrite(copy_path(), find_in(copy_path(), "treasure"), "pleasure");
  EXPECT_EQ(refusal(), "is damaged: what it holds is not what was written to it");
  write_copy_of_now();
  sql(copy_path(), "UPDATE objects SET body='{' WHERE id=1");
  EXPECT_NE(refusal().find("stored text is damaged"), std::string::npos) << refusal();
  write_copy_of_now();
  sql(copy_path(), "UPDATE objects SET name='b' WHERE id=1");
  EXPECT_EQ(refusal(), "holds configmaps default/b, whose text is not that object");
}

TEST_F(CopyTest, a_store_made_of_it_goes_on_above_both) {
  put("b", "1"), put("a", "1"), put("b", "2");
  std::vector<RestingPtr> objects = engine().snapshot().objects;
  ASSERT_TRUE(write_store(directory_ / "new.db", objects, 5000));
  close();
  for (const char* suffix : {"", "-wal"}) std::filesystem::remove(path() + suffix);
  std::filesystem::rename(directory_ / "new.db", path());
  reopen();
  ObjectPtr a = MUST(engine().get(kConfigMap, key("a"))), b = MUST(engine().get(kConfigMap, key("b")));
  EXPECT_EQ(a->revision(), 5001u);
  EXPECT_EQ(b->revision(), 5002u) << "in the order of what they had";
  EXPECT_EQ(get_string(b->json(), "metadata.resourceVersion"), "5002");
  EXPECT_EQ(engine().watch(kConfigMap, "", 3).error().code(), Code::gone) << "who watched the old store lists anew";
  EXPECT_GT(put("c", "1")->revision(), 5002u);
}

TEST_F(CopyTest, a_sealed_store_is_read_and_not_written) {
  put("a", "1");
  Revision last = engine().seal(Error(Code::unavailable, "a restored copy is being put in place"));
  EXPECT_GE(last, engine().revision());
  auto refused = try_put("a", "2", std::nullopt);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text(), "a restored copy is being put in place");
  EXPECT_FALSE(try_put("a", "2", std::nullopt, Durability::soft));
  EXPECT_TRUE(engine().get(kConfigMap, key("a")));
  engine().unseal();
  EXPECT_TRUE(try_put("a", "2", std::nullopt));
}

TEST_F(CopyTest, a_check_of_a_whole_store_finds_nothing) {
  for (int i = 0; i < 20; i++) put("object-" + std::to_string(i), std::string(3000, 'x'));
  put("soft", "1", Durability::soft);
  engine().remove(kConfigMap, key("object-3"), std::nullopt, Durability::soft).value_or(nullptr);
  EXPECT_EQ(engine().check(), std::vector<std::string>());
}

TEST_F(CopyTest, a_check_finds_text_that_turned_over_and_pages_that_are_gone) {
  put("a", "treasure");
  for (int i = 0; i < 40; i++) put("object-" + std::to_string(i), std::string(3000, 'x'));
  reopen();  // the log is checkpointed into the file
  overwrite(path(), find_in(path(), "treasure"), "pleasure");
  EXPECT_EQ(engine().check(), std::vector<std::string>{"configmaps default/a is not what was written"});
  overwrite(path(), 8 * 4096, std::string(3 * 4096, '\xff'));
  std::vector<std::string> findings = engine().check();
  ASSERT_FALSE(findings.empty());
  EXPECT_TRUE(engine().get(kConfigMap, key("a"))) << "what is served comes from memory";
  ASSERT_TRUE(write_copy(copy_path(), copy_of_now()));
  EXPECT_EQ(MUST(read()).objects.size(), 41u) << "and can be saved";
}

class CheckTest : public CopyTest {
 protected:
  void SetUp() override {
    options_.vfs = disk.vfs();
    CopyTest::SetUp();
  }
  void TearDown() override { close(); }  // before the disk goes
  SlowDisk disk;
};

TEST_F(CheckTest, lets_writers_go_on) {
  for (int i = 0; i < 20; i++) put("object-" + std::to_string(i), std::string(3000, 'x'));
  disk.hold_readers(true);
  std::atomic<bool> done = false;
  std::vector<std::string> findings;
  std::jthread checker([&] { findings = engine().check(), done = true; });
  while (disk.held_readers() == 0 && !done) std::this_thread::yield();
  put("new", "1");
  MUST(engine().remove(kConfigMap, key("object-3"), std::nullopt, Durability::durable));
  for (int i = 0; i < 500; i++) put("more-" + std::to_string(i), std::string(10000, 'x'), Durability::soft);
  ASSERT_TRUE(engine().flush()) << "more pages than the log has otherwise";
  EXPECT_FALSE(done);
  disk.hold_readers(false);
  checker.join();
  EXPECT_EQ(findings, std::vector<std::string>());
  EXPECT_EQ(engine().check(), std::vector<std::string>());
  put("last", "1");
  EXPECT_LT(std::filesystem::file_size(path() + "-wal"), 5u << 20) << "the log goes into the file again";
  EXPECT_TRUE(is_locked_for_others()) << "a check gives no lock away";
  reopen();
  EXPECT_EQ(names().size(), 20u - 1 + 1 + 500 + 1);
}

TEST_F(CheckTest, a_long_log_goes_into_the_file_when_nobody_writes_any_more) {
  for (int i = 0; i < 120; i++) put("object-" + std::to_string(i), std::string(40'000, 'x'));  // more than 1000 pages
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  auto is_in_file = [&] { return std::filesystem::file_size(path()) > 3u << 20; };
  while (!is_in_file() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(is_in_file());
  put("last", "1");
  crash_and_reopen();
  EXPECT_EQ(names().size(), 121u);
}

TEST_F(CheckTest, a_log_that_cannot_go_into_the_file_stays_and_is_tried_again) {
  for (int i = 0; i < 110; i++) put("object-" + std::to_string(i), std::string(35'000, 'x'));  // less than 1000 pages
  for (int i = 110; i < 120; i++) {
    put("object-" + std::to_string(i), std::string(40'000, 'x'));
    disk.set_failing(true);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the log may go into the file now
    disk.set_failing(false);
  }
  put("last", "1");
  EXPECT_EQ(rows_of_copy(path()), 121u);
  EXPECT_EQ(engine().check(), std::vector<std::string>());
  reopen();
  EXPECT_EQ(names().size(), 121u);
}

TEST_F(CheckTest, begins_again_alone_before_the_log_grows_without_end) {
  close();
  options_.check_log_bytes_max = 1u << 20;
  reopen();
  for (int i = 0; i < 20; i++) put("object-" + std::to_string(i), std::string(3000, 'x'));
  disk.hold_readers(true);
  std::atomic<bool> done = false;
  std::vector<std::string> findings;
  std::jthread checker([&] { findings = engine().check(), done = true; });
  while (disk.held_readers() == 0 && !done) std::this_thread::yield();
  for (int round = 0; round < 20; round++) {  // half a megabyte each
    for (int i = 0; i < 50; i++) put("object-" + std::to_string(i), std::string(10000, char('a' + round)), Durability::soft);
    ASSERT_TRUE(engine().flush());
  }
  EXPECT_FALSE(done);
  EXPECT_LT(std::filesystem::file_size(path() + "-wal"), 6u << 20);
  disk.hold_readers(false);
  checker.join();
  EXPECT_EQ(findings, std::vector<std::string>()) << "what was read while the file changed is no finding";
  EXPECT_EQ(engine().check(), std::vector<std::string>());
  reopen();
  EXPECT_EQ(names().size(), 50u);
}

TEST_F(CopyTest, a_compaction_gives_back_what_is_unused) {
  for (int i = 0; i < 200; i++) put("object-" + std::to_string(i), std::string(3000, 'x'));
  for (int i = 0; i < 190; i++)
    ASSERT_TRUE(engine().remove(kConfigMap, key("object-" + std::to_string(i)), std::nullopt, Durability::durable));
  FileSize before = MUST(engine().file_size());
  EXPECT_GT(before.unused, before.bytes / 2);
  ASSERT_TRUE(engine().compact_file());
  FileSize after = MUST(engine().file_size());
  EXPECT_EQ(after.unused, 0u);
  EXPECT_LT(after.bytes, before.bytes / 4);
  EXPECT_EQ(engine().check(), std::vector<std::string>());
  reopen();
  EXPECT_EQ(names().size(), 10u);
}

}  // namespace
}  // namespace coracle::engine
