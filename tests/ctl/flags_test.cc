// SPDX-License-Identifier: Apache-2.0
// A command line is read, or refused with words: no value ends the process.
#include "ctl/flags.h"

#include <gtest/gtest.h>

namespace coracle::ctl {
namespace {

struct TestLine {
  CommandLine line{"test", "a command line"};
  bool wait = true;
  int replicas = 0;
  std::string output;
  std::vector<std::string> files;
  Command command = line.root().add_command("delete", "deletes");

  TestLine() {
    command.add_flag("--wait,!--no-wait", wait, "until it is gone");
    command.add_option("--replicas", replicas, "how many");
    command.add_option("-o,--output", output, "name").one_of({"name"});
    command.add_option("-f,--filename", files, "files");
  }
  Result<std::string> read(std::vector<const char*> words) {
    words.insert(words.begin(), {"test", "delete"});
    return line.parse(int(words.size()), words.data());
  }
};

TEST(CommandLineTest, values_go_where_they_belong) {
  TestLine line;
  ASSERT_TRUE(line.read({"--no-wait", "--replicas=3", "-o", "name", "-f", "a", "-f", "b"}));
  EXPECT_FALSE(line.wait);
  EXPECT_EQ(line.replicas, 3);
  EXPECT_EQ(line.output, "name");
  EXPECT_EQ(line.files, (std::vector<std::string>{"a", "b"}));
}

TEST(CommandLineTest, what_cannot_be_read_is_an_error) {
  for (std::vector<const char*> words : std::vector<std::vector<const char*>>{
           {"--replicas=x"}, {"--replicas=99999999999999999999"}, {"--no-wait=99999999999999999999"}, {"--wait=perhaps"},
           {"-o", "yaml"}, {"--nothing"}, {"--output"}}) {
    auto read = TestLine().read(words);
    ASSERT_FALSE(read) << words.front();
    EXPECT_EQ(read.error().code(), Code::bad_request) << words.front();
    EXPECT_NE(read.error().text(), "") << words.front();
  }
}

TEST(CommandLineTest, help_is_given_not_printed) {
  auto read = TestLine().read({"--help"});
  ASSERT_TRUE(read);
  EXPECT_NE(read->find("--replicas"), read->npos);
}

}  // namespace
}  // namespace coracle::ctl
