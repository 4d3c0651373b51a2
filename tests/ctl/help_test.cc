// SPDX-License-Identifier: Apache-2.0
// The text of help, which says the defaults; plugins that a line names.
#include "ctl/help.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "ctl/plugin.h"

namespace coracle::ctl {
namespace {

struct HelpLine {
  CommandLine line{"test", "It tests."};
  std::string output, cascade = "background", dry_run = "none";
  std::vector<std::string> args, files;
  bool wait = true, all = false;
  int64_t grace = -1;
  Command remove = line.root().add_command("erase", "Removes things");

  HelpLine() {
    remove.alias("rm");
    remove.add_option("args", args, "what");
    remove.add_option("-o,--output", output, "name");
    remove.add_option("-f,--filename", files, "files");
    remove.add_option("--cascade", cascade, "how deep").optional_value("foreground");
    remove.add_option("--grace-period", grace, "seconds");
    remove.add_flag("--wait,!--no-wait", wait, "until it is gone");
    remove.add_flag("--all", all, "all of them");
    remove.footer("Examples:\n  test erase x");
    remove.add_command("secret", "not shown").hide();
  }
};

TEST(Help, shows_flags_with_their_defaults) {
  HelpLine line;
  EXPECT_EQ(help_of(line.remove, 0),
            "Removes things\n\n"
            "Arguments:\n  ARGS...  what\n\n"
            "Options:\n"
            "      --all=false           all of them\n"
            "      --cascade=background  how deep\n"
            "  -f, --filename=[]         files\n"
            "      --grace-period=-1     seconds\n"
            "  -o, --output=''           name\n"
            "      --wait=true           until it is gone\n\n"
            "Usage:\n  test erase [ARGS...] [options]\n\n"
            "Examples:\n  test erase x\n\n"
            "Use \"test options\" for the options that all commands take.\n");
  const char* words[] = {"test", "erase", "--cascade"};
  ASSERT_TRUE(line.line.parse(3, words));
  EXPECT_EQ(line.cascade, "foreground");  // what the help asked for has not changed what it means alone
}

TEST(Help, breaks_lines_for_a_terminal) {
  HelpLine line;
  Command other = line.line.root().add_command("other", "one two three four five six seven eight nine ten eleven twelve");
  EXPECT_NE(help_of(line.line.root(), 50)
                .find("  other  one two three four five six seven eight\n"
                      "         nine ten eleven twelve\n"),
            std::string::npos)
      << help_of(line.line.root(), 50);
  EXPECT_EQ(path_of(other), std::vector<std::string>{"other"});
  EXPECT_TRUE(command_at(line.line.root(), {"rm"}) == line.remove);
  EXPECT_FALSE(command_at(line.line.root(), {"rm", "none"}));
}

TEST(Plugins, are_found_by_the_longest_name) {
  namespace fs = std::filesystem;
  fs::path directory = fs::temp_directory_path() / ("coracle-plugins-" + std::to_string(::getpid()));
  fs::create_directories(directory / "one");
  fs::create_directories(directory / "two");
  auto add = [&](const std::string& name, bool program = true) {
    std::ofstream(directory / name) << "#!/bin/sh\n";
    ::chmod((directory / name).c_str(), program ? 0755 : 0644);
  };
  for (const char* name :
       {"one/kubectl-foo", "one/kubectl-foo-bar_baz", "two/coraclectl-foo", "two/kubectl-erase-x", "two/kubectl-foo"})
    add(name);
  add("one/kubectl-text", false);
  std::string path = (directory / "one").string() + ":" + (directory / "two").string() + ":" + (directory / "none").string();
  auto found = [&](std::vector<std::string> words, size_t least = 1) {
    FoundPlugin plugin = find_plugin(words, least, path);
    return plugin.path.empty() ? std::string()
                               : plugin.path.substr(directory.string().size() + 1) + " " + std::to_string(plugin.words);
  };
  EXPECT_EQ(found({"foo", "bar-baz", "x"}), "one/kubectl-foo-bar_baz 2");
  EXPECT_EQ(found({"foo", "bar"}), "two/coraclectl-foo 1");
  EXPECT_EQ(found({"foo", "--flag", "bar-baz"}), "two/coraclectl-foo 1");
  EXPECT_EQ(found({"foo", "bar"}, 2), "");
  EXPECT_EQ(found({"text"}), "");  // not executable
  EXPECT_EQ(found({"--foo"}), "");

  HelpLine line;
  PluginList list = list_plugins(path);
  EXPECT_EQ(list.paths.size(), 6u);
  ASSERT_EQ(list.complaints.size(), 1u);
  EXPECT_NE(list.complaints.front().find("no such file or directory. Skipping..."), std::string::npos);
  std::vector<std::string> seen, warnings;
  for (const auto& plugin : list.paths)
    for (const auto& warning : plugin_warnings(line.line.root(), plugin, seen)) warnings.push_back(warning);
  ASSERT_EQ(warnings.size(), 3u);
  EXPECT_NE(warnings[0].find("kubectl-text identified as a kubectl plugin, but it is not executable"), std::string::npos);
  EXPECT_NE(warnings[1].find("kubectl-erase-x overwrites existing command: \"coraclectl erase\""), std::string::npos);
  EXPECT_NE(warnings[2].find("two/kubectl-foo is overshadowed by a similarly named plugin: "), std::string::npos);
  fs::remove_all(directory);
}

}  // namespace
}  // namespace coracle::ctl
