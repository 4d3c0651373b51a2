// SPDX-License-Identifier: Apache-2.0
// The daemon's log without a journal: the content of a line, and the limit of the file's size.
#include "daemon/text_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "runtime/base/fd.h"

namespace coracle {
namespace {

namespace fs = std::filesystem;

class TextLogTest : public testing::Test {
 protected:
  TextLogTest() {
    char name[] = "/tmp/coracle-log-XXXXXX";
    directory_ = ::mkdtemp(name);
  }
  ~TextLogTest() override { fs::remove_all(directory_); }
  Fd open(const std::string& name) { return Fd(::open((directory_ + "/" + name).c_str(), O_WRONLY | O_CREAT | O_APPEND, 0640)); }
  std::string read(const std::string& name) {
    std::ifstream file(directory_ + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string directory_;
};

TEST_F(TextLogTest, a_line_says_when_how_bad_who_and_what) {
  Fd file = open("log");
  TextLog log(file.get(), 1 << 20);
  log.write(LogLevel::warning, "node", "two\nlines", {{"pod", "a/b"}, {"why", "it\nis so"}});
  EXPECT_TRUE(std::regex_match(
      read("log"), std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z warning node: two\\nlines pod=a/b why=it\\nis so\n)")))
      << read("log");
}

TEST_F(TextLogTest, a_file_gives_way_to_a_new_one) {
  Fd file = open("log"), output(::dup(file.get())), other = open("other");
  TextLog log(file.get(), 1000, {output.get(), other.get()});
  std::string all;
  for (int i = 0; i < 100; i++) log.write(LogLevel::info, "main", "line " + std::to_string(i), {});
  EXPECT_LT(fs::file_size(directory_ + "/log"), 1100u);
  EXPECT_LT(fs::file_size(directory_ + "/log.1"), 1100u);
  EXPECT_GT(fs::file_size(directory_ + "/log.1"), 900u);
  all = read("log.1") + read("log");
  EXPECT_NE(all.find("line 99\n"), all.npos) << "the newest are there, without a gap";
  for (int i = 99; i > 85; i--) EXPECT_NE(all.find("line " + std::to_string(i) + "\n"), all.npos) << i;
  EXPECT_EQ(fs::status(directory_ + "/log").permissions(), fs::status(directory_ + "/log.1").permissions());
  (void)!::write(output.get(), "told\n", 5);
  EXPECT_NE(read("log").find("told\n"), std::string::npos) << "standard output goes along";
  EXPECT_TRUE(fs::exists(directory_ + "/other"));
  EXPECT_FALSE(fs::exists(directory_ + "/other.1"));
  EXPECT_EQ(read("other"), "");
}

TEST_F(TextLogTest, what_others_have_moved_or_removed_and_what_is_no_file_stays) {
  Fd file = open("log");
  TextLog log(file.get(), 1000);
  fs::rename(directory_ + "/log", directory_ + "/moved");
  for (int i = 0; i < 100; i++) log.write(LogLevel::info, "main", "line", {});
  EXPECT_GT(fs::file_size(directory_ + "/moved"), 3000u) << "as logrotate finds it";
  EXPECT_FALSE(fs::exists(directory_ + "/log"));
  fs::remove(directory_ + "/moved");
  log.write(LogLevel::info, "main", "line", {});
  EXPECT_TRUE(fs::is_empty(directory_));
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Fd from(ends[0]), to(ends[1]);
  TextLog piped(to.get(), 10);
  piped.write(LogLevel::info, "main", "line", {});
  char line[200];
  EXPECT_GT(::read(from.get(), line, sizeof line), 10);
}

}  // namespace
}  // namespace coracle
