// SPDX-License-Identifier: Apache-2.0
// The candidates at each position of a command line, with the real command tree and a server with a few names.
#include "ctl/completion.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ctl/command.h"

namespace coracle::ctl {
namespace {

class FewNames : public Names {
 public:
  std::vector<std::string> objects(const schema::KindInfo& kind) override {
    if (kind.kind == kPod) return {"db-0", "web-a", "web-b"};
    if (kind.kind == kNamespace) return {"default", "kube-system"};
    if (kind.kind == kNode) return {"edge"};
    if (kind.kind == kDeployment) return {"web"};
    return {};
  }
  std::vector<std::string> containers(const schema::KindInfo&, const std::string& name) override {
    return name.starts_with("web") ? std::vector<std::string>{"main", "sidecar"} : std::vector<std::string>();
  }
  std::vector<std::string> images() override { return {"localhost/busybox:latest"}; }
  std::vector<std::string> of_kubeconfig(const std::string& list) override { return {list + "-1"}; }
};

class CompletionTest : public testing::Test {
 protected:
  CompletionTest() { add_commands(commands_); }
  Completion at(const std::vector<std::string>& words) { return complete(parse_line(command_line_.root(), words), names_); }
  std::vector<std::string> words_at(const std::vector<std::string>& words) {
    std::vector<std::string> texts;
    for (const auto& word : at(words).words) texts.push_back(word.text);
    return texts;
  }

  CommandLine command_line_{"coraclectl", "x"};
  GlobalFlags flags_;
  Commands commands_{command_line_.root(), flags_};
  FewNames names_;
};

using Words = std::vector<std::string>;

TEST_F(CompletionTest, offers_what_may_stand_there) {
  struct Row {
    Words line, want;
  };
  for (const Row& row : {
           Row{{"rep"}, {"replace"}},
           Row{{"rollout", "re"}, {"restart", "resume"}},
           Row{{"get", "replicas"}, {"replicasets"}},
           Row{{"get", "pods,conf"}, {"pods,configmaps"}},
           Row{{"get", "pods", ""}, {"db-0", "web-a", "web-b"}},
           Row{{"get", "pods", "web-a", ""}, {"db-0", "web-b"}},
           Row{{"get", "po", "w"}, {"web-a", "web-b"}},
           Row{{"get", "deployment/"}, {"deployment/web"}},
           Row{{"get", "deployment/web", "po/w"}, {"po/web-a", "po/web-b"}},
           Row{{"-n", "kube"}, {"kube-system"}},
           Row{{"get", "pods", "-n", ""}, {"default", "kube-system"}},
           Row{{"get", "pods", "--namespace=d"}, {"--namespace=default"}},
           Row{{"-n", "default", "get", "pods", "db"}, {"db-0"}},
           Row{{"-ndefault", "get", "pods", "db"}, {"db-0"}},
           Row{{"get", "pods", "-oy"}, {"-oyaml"}},
           Row{{"get", "pods", "-o=y"}, {"-o=yaml"}},
           Row{{"get", "--watch-"}, {"--watch-only"}},
           Row{{"get", "--kubec"}, {"--kubeconfig"}},
           Row{{"logs", "web"}, {"web-a", "web-b"}},
           Row{{"logs", "web-a", ""}, {"main", "sidecar"}},
           Row{{"logs", "web-a", "-c", "s"}, {"sidecar"}},
           Row{{
                   "logs",
                   "deploy/",
               },
               {"deploy/web"}},
           Row{{"exec", "-it", "web-a", "-c", ""}, {"main", "sidecar"}},
           Row{{"exec", "web-a", "--", "s"}, {}},
           Row{{"scale", "dep"}, {"deployments"}},
           Row{{"autoscale", "dep"}, {"deployments"}},
           Row{{"rollout", "undo", "daem"}, {"daemonsets"}},
           Row{{"rollout", "undo", "repl"}, {}},
           Row{{"events", "--for", "pod/d"}, {"pod/db-0"}},
           Row{{"set", "res"}, {"resources"}},
           Row{{"set", "image", "cronj"}, {"cronjobs"}},
           Row{{"set", "image", "serv"}, {}},
           Row{{"set", "selector", "serv"}, {"services"}},
           Row{{"rollout", "status", "deployments/"}, {"deployments/web"}},
           Row{{"set", "image", "deployment/web", "s"}, {"sidecar="}},
           Row{{"explain", "deployment.spec.re"}, {"deployment.spec.replicas", "deployment.spec.revisionHistoryLimit"}},
           Row{{"explain", "pod.status.nothing.x"}, {}},
           Row{{"completion", "z"}, {"zsh"}},
           Row{{"top", "no"}, {"node"}},
           Row{{"top", "pods", "w"}, {"web-a", "web-b"}},
           Row{{"top", "nodes", ""}, {"edge"}},
           Row{{"top", "pods", "--sort-by", "m"}, {"memory"}},
           Row{{"image", "remove", "local"}, {"localhost/busybox:latest"}},
           Row{{"auth", "can-i", "patc"}, {"patch"}},
           Row{{"--context", ""}, {"contexts-1"}},
           Row{{"run", "--restart", "O"}, {"OnFailure"}},
           Row{{"get", "nosuch", ""}, {}},
       }) {
    Words got = words_at(row.line), want = row.want;
    std::sort(got.begin(), got.end());
    std::sort(want.begin(), want.end());
    std::string line;
    for (const auto& word : row.line) line += " " + word;
    EXPECT_EQ(got, want) << line;
  }
}

TEST_F(CompletionTest, asks_the_shell_for_files) {
  EXPECT_TRUE(at({"apply", "-f", ""}).files);
  EXPECT_TRUE(at({"--kubeconfig", "/etc"}).files);
  EXPECT_TRUE(at({"image", "import", "x"}).files);
  EXPECT_FALSE(at({"get", ""}).files);
  EXPECT_FALSE(at({"get", "pods", "-l", ""}).files);
}

TEST_F(CompletionTest, says_when_more_of_the_word_follows) {
  EXPECT_TRUE(at({"explain", "pod"}).no_space);
  EXPECT_TRUE(at({"get", "pods", "-o", "jsonpath-f"}).no_space);
  EXPECT_TRUE(at({"set", "image", "deployment/web", ""}).no_space);
  EXPECT_FALSE(at({"get", "po"}).no_space);
}

TEST_F(CompletionTest, offers_every_command_with_what_it_does) {
  Completion all = at({""});
  EXPECT_GT(all.words.size(), 25u);
  for (const auto& word : all.words) {
    EXPECT_FALSE(word.about.empty()) << word.text;
    EXPECT_EQ(word.about.find('\n'), std::string::npos) << word.text;
    EXPECT_FALSE(word.text.starts_with("_"));
  }
}

TEST_F(CompletionTest, reads_the_line_as_the_parser_does) {
  Line line = parse_line(command_line_.root(), {"get", "-A", "-l", "a=b", "--kubeconfig=/x", "pods", "na"});
  EXPECT_EQ(line.command.name(), "get");
  EXPECT_EQ(line.positionals, Words{"pods"});
  EXPECT_EQ(line.given["selector"], "a=b");
  EXPECT_EQ(line.given["kubeconfig"], "/x");
  EXPECT_EQ(line.word, "na");
  EXPECT_FALSE(line.flag);
  line = parse_line(command_line_.root(), {"create", "secret", "tls", "--cert", ""});
  EXPECT_EQ(line.command.name(), "tls");
  ASSERT_TRUE(line.flag);
  EXPECT_EQ(line.flag.long_names().front(), "cert");
}

}  // namespace
}  // namespace coracle::ctl
