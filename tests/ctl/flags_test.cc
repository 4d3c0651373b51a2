// SPDX-License-Identifier: Apache-2.0
// A command line is parsed, or refused with a message: no value terminates the process.
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
  Result<bool> read(std::vector<const char*> words) {
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
  for (std::vector<const char*> words : std::vector<std::vector<const char*>>{{"--replicas=x"},
                                                                              {"--replicas=99999999999999999999"},
                                                                              {"--no-wait=99999999999999999999"},
                                                                              {"--wait=perhaps"},
                                                                              {"-o", "yaml"},
                                                                              {"--nothing"},
                                                                              {"--output"}}) {
    auto read = TestLine().read(words);
    ASSERT_FALSE(read) << words.front();
    EXPECT_EQ(read.error().code(), Code::bad_request) << words.front();
    EXPECT_NE(read.error().text(), "") << words.front();
  }
}

// In pflag's words, which kubectl prints.
TEST(CommandLineTest, says_what_is_wrong_with_a_value) {
  auto fault = [](const char* word) {
    CommandLine line("test", "a command line");
    bool watch = false;
    int64_t tail = 0;
    std::string since;
    std::vector<std::string> env;
    line.root().add_option("--env", env, "variables").as_pairs();
    line.root().add_flag("-w,--watch", watch, "watch");
    line.root().add_option("--tail", tail, "lines");
    line.root().add_option("--since", since, "how old").as_duration();
    const char* words[] = {"test", word};
    auto read = line.parse(2, words);
    return read ? std::string() : read.error().text();
  };
  for (const char* fine : {"--since=1m30s", "--since=-5s", "--since=1.5h", "--since=30", "--since=0", "--since=3\u00b5s",
                           "--tail=-1", "--tail=10", "-w=F", "--env=a=b,c", "--env=a=b,c=d", "--env=a="})
    EXPECT_EQ(fault(fine), "") << fine;
  EXPECT_EQ(fault("-w=maybe"),
            "invalid argument \"maybe\" for \"-w, --watch\" flag: strconv.ParseBool: parsing \"maybe\": invalid syntax");
  EXPECT_EQ(fault("--tail=x"), "invalid argument \"x\" for \"--tail\" flag: strconv.ParseInt: parsing \"x\": invalid syntax");
  EXPECT_EQ(fault("--tail=99999999999999999999"),
            "invalid argument \"99999999999999999999\" for \"--tail\" flag: strconv.ParseInt: parsing "
            "\"99999999999999999999\": value out of range");
  EXPECT_EQ(fault("--env=a,b"), "invalid argument \"a,b\" for \"--env\" flag: a,b must be formatted as key=value");
  EXPECT_EQ(fault("--env=a=b,c=d,e"), "invalid argument \"a=b,c=d,e\" for \"--env\" flag: e must be formatted as key=value");
  for (auto [text, why] : {std::pair{"soon", "time: invalid duration \"soon\""}, std::pair{"", "time: invalid duration \"\""},
                           std::pair{"10x", "time: unknown unit \"x\" in duration \"10x\""},
                           std::pair{"1m1.5", "time: missing unit in duration \"1m1.5\""}})
    EXPECT_EQ(fault(("--since=" + std::string(text)).c_str()),
              "invalid argument \"" + std::string(text) + "\" for \"--since\" flag: " + why);
}

// As kubectl's --record keeps a line: flags behind the rest, with their whole names, and no secrets.
TEST(CommandLineTest, a_line_is_recorded) {
  CommandLine line("test", "a command line");
  std::string ns, token, dry_run;
  std::vector<std::string> args;
  bool watch = false, tty = false;
  line.root().add_option("-n,--namespace", ns, "the namespace");
  line.root().add_option("--token", token, "a token");
  Command command = line.root().add_command("set", "sets").add_command("image", "an image");
  command.add_option("args", args, "what");
  command.add_flag("-w,--watch", watch, "watch");
  command.add_flag("-t,--tty", tty, "terminal");
  command.add_option("--dry-run", dry_run, "how").optional_value("unchanged");
  const char* words[] = {"/usr/bin/kubectl", "-nshop",  "set",    "image", "-wt=false",
                         "deploy/web",       "--token", "s3cret", "a=b",   "--dry-run"};
  ASSERT_TRUE(line.parse(int(std::size(words)), words));
  EXPECT_EQ(
      line.recorded({"echo", "x"}),
      "kubectl set image deploy/web a=b echo x --namespace=shop --watch=true --tty=false --token=CLASSIFIED --dry-run=unchanged");
}

// As pflag, kubectl's library, parses them.
struct WholeLine {
  CommandLine line{"test", "a command line"};
  std::string ns, output, name, dry_run = "none", chosen;
  std::vector<std::string> args, files, literals;
  bool watch = false, tty = false, input = false;
  int64_t replicas = 7;

  WholeLine() {
    line.root().add_option("-n,--namespace", ns, "the namespace");
    for (const char* word : {"get", "create"}) {
      Command command = line.root().add_command(word, "does it");
      if (word == std::string("create")) {
        Command below = command.add_command("secret", "makes one").add_command("generic", "of that type");
        below.add_option("name", name, "its name").required();
        below.on_chosen([this] { chosen = "secret"; });
        command.add_command("configmap", "makes one").on_chosen([this] { chosen = "configmap"; });
        continue;
      }
      command.add_option("args", args, "what");
      command.add_option("-o,--output", output, "how");
      command.add_option("-f,--filename", files, "files").delimiter(',');
      command.add_option("--from-literal", literals, "pairs");
      command.add_option("--replicas", replicas, "how many");
      command.add_option("--dry-run", dry_run, "none, client or server").optional_value("unchanged");
      command.add_flag("-w,--watch", watch, "watch");
      command.add_flag("-t,--tty", tty, "terminal");
      command.add_flag("-i,--stdin", input, "input");
    }
  }
  // The flags after parsing `words`, or the beginning of the error.
  std::string read(std::vector<const char*> words) {
    words.insert(words.begin(), "test");
    auto read = line.parse(int(words.size()), words.data());
    if (!read) return "error";
    auto all = [](const std::vector<std::string>& list) {
      std::string text;
      for (const auto& one : list) text += (text.empty() ? "" : "|") + one;
      return text;
    };
    std::string text = "n=" + ns + " o=" + output + " a=" + all(args) + " f=" + all(files) + " l=" + all(literals) +
                       " r=" + std::to_string(replicas) + " d=" + dry_run + " ";
    return text + (watch ? "w" : "") + (tty ? "t" : "") + (input ? "i" : "");
  }
};

TEST(CommandLineTest, reads_flags_as_kubectl_does) {
  struct Row {
    std::vector<const char*> words;
    std::string want;
  };
  for (const Row& row : std::vector<Row>{
           {{"get", "-n=default", "-o=json"}, "n=default o=json a= f= l= r=7 d=none "},
           {{"get", "-n", "default", "-ojson", "--output", "yaml"}, "n=default o=yaml a= f= l= r=7 d=none "},
           {{"-n=x", "get", "pods", "-n=y"}, "n=y o= a=pods f= l= r=7 d=none "},
           {{"get", "-n==a", "-o=a=b"}, "n==a o=a=b a= f= l= r=7 d=none "},
           {{"get", "-n="}, "n== o= a= f= l= r=7 d=none "},  // like pflag
           {{"get", "--output=", "pods"}, "n= o= a=pods f= l= r=7 d=none "},
           {{"get", "--output", "", "pods"}, "n= o= a=pods f= l= r=7 d=none "},
           {{"get", "--output=x", "--output=", "pods"}, "n= o= a=pods f= l= r=7 d=none "},
           {{"get", "-o", "-w"}, "n= o=-w a= f= l= r=7 d=none "},
           {{"get", "-wti"}, "n= o= a= f= l= r=7 d=none wti"},
           {{"get", "-itn=default", "pods"}, "n=default o= a=pods f= l= r=7 d=none ti"},
           {{"get", "-itndefault", "pods"}, "n=default o= a=pods f= l= r=7 d=none ti"},
           {{"get", "-w=false", "-t=true", "--stdin=1"}, "n= o= a= f= l= r=7 d=none ti"},
           {{"get", "-w", "--watch=false", "-t", "-t=F"}, "n= o= a= f= l= r=7 d=none "},
           {{"get", "--replicas", "-1", "--replicas=3"}, "n= o= a= f= l= r=3 d=none "},
           {{"get", "-f", "a,b", "-f=c", "--filename=", "--filename", "d"}, "n= o= a= f=a|b|c|d l= r=7 d=none "},
           {{"get", "--from-literal=a=b,c", "--from-literal=[x,y]"}, "n= o= a= f= l=a=b,c|[x,y] r=7 d=none "},
           {{"get", "--dry-run", "pods"}, "n= o= a=pods f= l= r=7 d=unchanged "},
           {{"get", "--dry-run=server", "pods"}, "n= o= a=pods f= l= r=7 d=server "},
           {{"get", "--dry-run=", "pods"}, "n= o= a=pods f= l= r=7 d= "},
           {{"get", "--dry-run=get", "get"}, "n= o= a=get f= l= r=7 d=get "},
           {{"get", "-", "create"}, "n= o= a=-|create f= l= r=7 d=none "},
           {{"get", "-f", "-"}, "n= o= a= f=- l= r=7 d=none "},
           {{"get", "pods", "--", "-", "create"}, "n= o= a=pods|-|create f= l= r=7 d=none "},
           {{"get", "-w", "--", "x"}, "n= o= a=x f= l= r=7 d=none w"},
           {{"get", "--"}, "n= o= a= f= l= r=7 d=none "},
           {{"get", "--", "-w"}, "error"},
           {{"get", "--", "--"}, "error"},
           {{"get", "--watch="}, "error"},
           {{"get", "--watch=yes"}, "error"},
           {{"get", "-w=maybe"}, "error"},
           {{"get", "-o"}, "error"},
           {{"get", "--output"}, "error"},
           {{"get", "--replicas="}, "error"},
           {{"get", "-x=1"}, "error"},
           {{"get", "-wx"}, "error"},
           {{"get", "--nothing=1", "pods"}, "error"},
       }) {
    std::string line;
    for (const char* word : row.words) line += std::string(word) + " ";
    EXPECT_EQ(WholeLine().read(row.words), row.want) << line;
  }
}

TEST(CommandLineTest, an_object_may_be_called_as_a_command_is) {
  for (const char* name : {"configmap", "secret", "generic", "create", "get"}) {
    WholeLine line;
    ASSERT_NE(line.read({"create", "secret", "generic", name}), "error") << name;
    EXPECT_EQ(line.name, name);
    EXPECT_EQ(line.chosen, "secret");
  }
}

TEST(CommandLineTest, help_is_asked_for) {
  EXPECT_TRUE(MUST(TestLine().read({"--help"})));
  EXPECT_TRUE(MUST(TestLine().read({"--replicas=3", "-h"})));
  EXPECT_FALSE(MUST(TestLine().read({"--replicas=3"})));
}

}  // namespace
}  // namespace coracle::ctl
