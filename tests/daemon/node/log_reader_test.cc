// SPDX-License-Identifier: Apache-2.0
// Reading container logs: lines, parts, tails, rotation, following.
#include "daemon/node/stream/log_reader.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "runtime/base/guarded.h"

namespace coracle::node {
namespace {

class LogReaderTest : public ::testing::Test {
 protected:
  LogReaderTest() {
    char name[] = "/tmp/coracle-log-XXXXXX";
    directory_ = ::mkdtemp(name);
    path_ = directory_ + "/0.log";
  }
  ~LogReaderTest() override { std::filesystem::remove_all(directory_); }
  void write(const std::string& text, const std::string& suffix = "") const {
    std::ofstream(path_ + suffix, std::ios::app) << text;
  }
  static std::string line(int n, const std::string& content, const char* tag = "F") {
    return "2026-01-02T03:04:0" + std::to_string(n) + ".000000000Z stdout " + tag + " " + content + "\n";
  }
  std::string read(LogOptions options = {}) const {
    std::string text;
    auto done = read_log(path_, options, [&](std::string_view bytes) {
      text += bytes;
      return true;
    });
    return done ? text : "error: " + done.error().text();
  }
  std::string directory_, path_;
};

TEST_F(LogReaderTest, joins_parts_and_keeps_odd_contents) {
  write(line(1, "one") + line(2, "half", "P") + line(2, " whole") + line(3, "") + "torn line\n" + line(4, "  spaces "));
  EXPECT_EQ(read(), "one\nhalf whole\n\n  spaces \n");
  LogOptions stamped;
  stamped.timestamps = true;
  EXPECT_EQ(read(stamped).substr(0, 76), "2026-01-02T03:04:01.000000000Z one\n2026-01-02T03:04:02.000000000Z half whole");
}

TEST_F(LogReaderTest, an_unfinished_line_waits) {
  write(line(1, "one") + "2026-01-02T03:04:05.000000000Z stdout F tw");
  EXPECT_EQ(read(), "one\n");
}

TEST_F(LogReaderTest, a_raw_line_of_any_length_is_one_line) {
  const std::string half((1 << 20) + 100, 'x'), looks_like_a_line = "2026-01-02T03:04:05.000000000Z stderr F no line of its own";
  const std::string content = half + looks_like_a_line + half + " end";
  write(line(1, content, "P") + line(1, " of it") + line(2, content) + half + half + looks_like_a_line + "\n" + line(3, "next"));
  EXPECT_TRUE(read() == content + " of it\n" + content + "\nnext\n");
  EXPECT_EQ(read({.stream = "stderr"}), "");
  LogOptions stamped;
  stamped.timestamps = true;
  EXPECT_TRUE(read(stamped).ends_with("2026-01-02T03:04:02.000000000Z " + content + "\n2026-01-02T03:04:03.000000000Z next\n"));
}

TEST_F(LogReaderTest, tails_over_rotated_files) {
  write(line(1, "a") + line(2, "b"), ".2");
  write(line(3, "c") + line(4, "d"), ".1");
  write(line(5, "e"));
  EXPECT_EQ(read(), "a\nb\nc\nd\ne\n");
  struct Row {
    int64_t lines;
    const char* want;
  };
  for (const Row& row : {Row{0, ""}, Row{1, "e\n"}, Row{2, "d\ne\n"}, Row{3, "c\nd\ne\n"}, Row{4, "b\nc\nd\ne\n"},
                         Row{5, "a\nb\nc\nd\ne\n"}, Row{99, "a\nb\nc\nd\ne\n"}}) {
    LogOptions options;
    options.tail_lines = row.lines;
    EXPECT_EQ(read(options), row.want) << row.lines;
  }
}

TEST_F(LogReaderTest, tails_of_long_files_cross_blocks) {
  std::string all;
  for (int i = 0; i < 5000; ++i) all += line(1, "line " + std::to_string(i));
  write(all);
  LogOptions options;
  options.tail_lines = 1500;
  std::string text = read(options);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1500);
  EXPECT_TRUE(text.starts_with("line 3500\n"));
}

TEST_F(LogReaderTest, since_and_limit) {
  write(line(1, "a") + line(2, "b") + line(3, "c"));
  LogOptions since;
  since.since = *parse_time("2026-01-02T03:04:02Z");
  EXPECT_EQ(read(since), "b\nc\n");
  LogOptions limit;
  limit.limit_bytes = 3;
  EXPECT_EQ(read(limit), "a\nb");
}

TEST_F(LogReaderTest, one_stream_of_the_two) {
  auto err = [](const std::string& content, const char* tag = "F") {
    return "2026-01-02T03:04:05.000000000Z stderr " + std::string(tag) + " " + content + "\n";
  };
  write(line(1, "out ", "P") + err("bad ", "P") + line(2, "one") + err("one") + line(3, "out two"));
  LogOptions options;
  options.stream = "stdout";
  EXPECT_EQ(read(options), "out one\nout two\n");
  options.stream = "stderr";
  EXPECT_EQ(read(options), "bad one\n") << "though its parts lie between the other's";
}

TEST_F(LogReaderTest, no_log) { EXPECT_TRUE(read().starts_with("error:")); }

TEST_F(LogReaderTest, last_lines_are_cut) {
  write(line(1, "first") + line(2, "second"));
  EXPECT_EQ(last_lines(path_, 1, 100), "second\n");
  EXPECT_EQ(last_lines(path_, 80, 4), "ond\n");
}

TEST_F(LogReaderTest, hands_out_whole_lines) {
  write(line(1, "one") + line(2, "half", "P") + line(2, " whole") + line(3, "") + line(4, "unended", "P"));
  auto lines = [&](const LogOptions& options) {
    std::vector<std::string> all;
    EXPECT_TRUE(read_log(path_, options, [&](std::string_view bytes) {
      all.emplace_back(bytes);
      return true;
    }));
    return all;
  };
  using Lines = std::vector<std::string>;
  EXPECT_EQ(lines({}), (Lines{"one\n", "half", " whole\n", "\n", "unended"}));
  const std::string at = "2026-01-02T03:04:0";
  EXPECT_EQ(lines({.timestamps = true}), (Lines{at + "1.000000000Z one\n", at + "2.000000000Z half", " whole\n",
                                                at + "3.000000000Z \n", at + "4.000000000Z unended"}));
  EXPECT_EQ(lines({.limit_bytes = 5}), (Lines{"one\n", "h"}));
}

// A burst rotates the log several times while the reader is still busy with earlier data.
TEST_F(LogReaderTest, follows_a_burst_over_many_rotations) {
  constexpr int kFiles = 40, kLines = 50, kRotatedFiles = 60;
  std::string want;
  write(line(1, "0"));
  auto watch = files::DirectoryWatch::open(directory_);
  ASSERT_TRUE(watch);
  std::atomic<bool> running{true};
  Guarded<bool> busy{false};
  std::string text;
  std::jthread reader([&] {
    EXPECT_TRUE(follow_log(
        path_, {},
        [&](std::string_view bytes) {
          if (text.empty()) {  // until half of the burst is written
            busy.with([](bool& b) { b = true; });
            busy.notify();
            busy.wait(
                {}, [](bool b) { return !b; }, [](bool&) {});
          }
          text += bytes;
          return true;
        },
        *watch, [&] { return running.load(); }, {}));
  });
  busy.wait(
      {}, [](bool b) { return b; }, [](bool&) {});
  want = "0\n";
  for (int file = 0; file < kFiles; ++file) {
    for (int i = kRotatedFiles; i > 1; --i)
      (void)::rename((path_ + "." + std::to_string(i - 1)).c_str(), (path_ + "." + std::to_string(i)).c_str());
    ASSERT_EQ(::rename(path_.c_str(), (path_ + ".1").c_str()), 0);
    for (int i = 0; i < kLines; ++i) {
      std::string content = std::to_string(file) + "-" + std::to_string(i);
      write(line(2, content));
      want += content + "\n";
    }
    if (file == kFiles / 2) {
      busy.with([](bool& b) { b = false; });
      busy.notify();
    }
  }
  running = false;
  watch->wake();
  reader.join();
  EXPECT_EQ(text, want);
}

TEST_F(LogReaderTest, follows_over_a_rotation_to_the_end) {
  write(line(1, "a"));
  auto watch = files::DirectoryWatch::open(directory_);
  ASSERT_TRUE(watch);
  Guarded<std::string> text;
  std::atomic<bool> running{true};
  std::jthread reader([&] {
    EXPECT_TRUE(follow_log(
        path_, {},
        [&](std::string_view bytes) {
          text.with([&](auto& t) { t += bytes; });
          text.notify();
          return true;
        },
        *watch, [&] { return running.load(); }, {}));
  });
  auto expect = [&](const std::string& want) {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    EXPECT_EQ(text.wait_until(
                  {}, deadline, [&](const auto& t) { return t == want; }, [](auto& t) { return t; }),
              want);
  };
  expect("a\n");
  write(line(2, "b"));
  expect("a\nb\n");
  std::filesystem::rename(path_, path_ + ".1");
  write(line(3, "c"));
  expect("a\nb\nc\n");
  write(line(4, "d"));
  running = false;
  watch->wake();
  reader.join();
  expect("a\nb\nc\nd\n");
}

}  // namespace
}  // namespace coracle::node
