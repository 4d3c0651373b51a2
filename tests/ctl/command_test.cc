// SPDX-License-Identifier: Apache-2.0
// The tree of commands is made as far as a line may need it.
#include "ctl/command.h"

#include <gtest/gtest.h>

#include "runtime/base/text.h"

namespace coracle::ctl {
namespace {

struct TestTree {
  CommandLine line{"coraclectl", "a test's"};
  GlobalFlags flags;
  Commands commands{line.root(), flags};

  explicit TestTree(std::vector<std::string> expected) {
    commands.expect(std::move(expected));
    add_commands(commands);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (Command command : line.root().commands()) all.push_back(command.name());
    return all;
  }
};

// Names, flags, and all that is below.
std::string description(Command command) {
  std::string text = command.name() + " " + join(command.aliases(), " ") + "\n";
  for (Flag flag : command.flags()) text += "  " + flag.name() + " " + flag.about() + "\n";
  for (Command below : command.commands()) text += description(below);
  return text;
}

Command named(const TestTree& tree, const std::string& word) {
  for (Command command : tree.line.root().commands())
    if (command.answers_to(word)) return command;
  return {};
}

TEST(CommandTree, has_every_command_that_a_line_names) {
  const TestTree whole({});
  ASSERT_GT(whole.names().size(), 50u);
  for (Command command : whole.line.root().commands()) {
    std::vector<std::string> words = command.aliases();
    words.push_back(command.name());
    for (const std::string& word : words) {
      const TestTree tree({"--namespace", "shop", word, "pods"});
      ASSERT_TRUE(named(tree, word)) << word;
      EXPECT_EQ(description(named(tree, word)), description(command));
    }
  }
}

TEST(CommandTree, has_only_the_family_of_a_command) {
  EXPECT_EQ(TestTree({"version", "--client"}).names(), std::vector<std::string>{"version"});
  EXPECT_EQ(TestTree({"logs", "run"}).names(), (std::vector<std::string>{"run", "logs"}));
  EXPECT_EQ(TestTree({"no-command"}).names(), std::vector<std::string>());
}

TEST(CommandTree, is_whole_for_commands_that_read_it) {
  const TestTree whole({});
  EXPECT_EQ(TestTree({"help"}).names(), whole.names());
  EXPECT_EQ(TestTree({"plugin", "list"}).names(), whole.names());
}

}  // namespace
}  // namespace coracle::ctl
