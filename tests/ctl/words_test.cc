// SPDX-License-Identifier: Apache-2.0
// Words that a command has no use for: ignored or refused as by kubectl, which scripts and their mistakes rely on. And wrong
// values of events --for.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/ctl/fake_api.h"

namespace coracle::ctl {
namespace {

TEST(Words, are_ignored_where_kubectl_ignores_them) {
  FakeApi api;
  for (std::vector<std::string> words : std::vector<std::vector<std::string>>{{"config", "get-clusters"},
                                                                              {"config", "get-users"},
                                                                              {"config", "current-context"},
                                                                              {"cluster-info"},
                                                                              {"cluster-info", "dump"},
                                                                              {"alpha"},
                                                                              {"events"},
                                                                              {"options"}}) {
    FakeApi::Outcome without = api.run(words);
    EXPECT_EQ(without.code, 0) << words.back() << without.err;
    words.insert(words.end(), {"one", "more"});
    FakeApi::Outcome with = api.run(words);
    EXPECT_EQ(with.code, 0) << words.back() << with.err;
    EXPECT_EQ(with.out, without.out);
    EXPECT_EQ(with.err, without.err);
  }
}

TEST(Words, alpha_has_no_commands) {
  FakeApi::Outcome outcome = FakeApi().run({"alpha"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "No alpha commands are available in this version of coraclectl\n");
}

// As kubectl, whatever else failed.
TEST(Words, say_that_one_has_to_log_in) {
  FakeApi api;
  for (const char* name : {"one", "two"})
    api.put(std::string("/api/v1/namespaces/default/configmaps/") + name,
            std::string(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":")") + name + "\"}}");
  api.refuse_writes(Error(Code::unauthorized, "Unauthorized").with({}));
  const std::string told = "error: You must be logged in to the server (Unauthorized)\n";
  FakeApi::Outcome outcome = api.run({"label", "configmap", "one", "a=b"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, told);
  EXPECT_EQ(api.run({"label", "configmap", "one", "two", "a=b"}).err, told + told);
}

TEST(Words, are_refused_where_kubectl_refuses_them) {
  FakeApi api;
  api.put("/api/v1/namespaces/default/configmaps/one",
          R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one","namespace":"default"}})");
  struct Row {
    std::vector<std::string> words;
    std::string want;
  };
  const std::string help = "\nSee 'coraclectl completion -h' for help and examples";
  for (const Row& row :
       std::vector<Row>{{{"version", "--client", "one", "more"}, "extra arguments: [one more]"},
                        {{"create", "token", ""}, "service account name is required"},
                        {{"create", "job", "made", "--from=configmap/one"}, "unknown object type *v1.ConfigMap"},
                        {{"completion"}, "Shell not specified." + help},
                        {{"completion", "bash", "zsh"}, "Too many arguments. Expected only the shell type." + help},
                        {{"completion", "csh"}, "Unsupported shell type \"csh\"." + help}}) {
    FakeApi::Outcome outcome = api.run(row.words);
    EXPECT_EQ(outcome.code, 1) << outcome.out;
    EXPECT_EQ(outcome.err, "error: " + row.want + "\n");
  }
  EXPECT_NE(api.run({"completion", "bash"}).out, "");
}

TEST(Words, replace_takes_files_only) {
  FakeApi api;
  std::string path = testing::TempDir() + "/words-XXXXXX";
  ASSERT_TRUE(::mkdtemp(path.data()));
  std::ofstream(path + "/map.yaml") << "{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}";
  api.put("/api/v1/namespaces/default/configmaps/one",
          R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one","namespace":"default"}})");
  EXPECT_EQ(api.run({"replace", "-f", path + "/map.yaml", "more"}).out, "configmap/one replaced\n") << "kubectl ignores the word";
  api.take_writes();
  EXPECT_EQ(api.run({"replace", "--force", "-f", path + "/map.yaml", "more"}).err,
            "error: when paths, URLs, or stdin is provided as input, you may not specify resource arguments as well\n");
  EXPECT_TRUE(api.take_writes().empty());
  FakeApi::Outcome outcome = api.run({"diff", "-f", path + "/map.yaml", "more"});
  EXPECT_EQ(outcome.code, 2) << "1 is a difference";
  EXPECT_EQ(outcome.err, "error: Unexpected args: [more]\nSee 'coraclectl diff -h' for help and examples\n");
  std::filesystem::remove_all(path);
}

TEST(Words, events_are_for_one_object_of_a_known_kind) {
  FakeApi api;
  EXPECT_EQ(api.run({"events", "--for", "web"}).err, "error: --for must be in resource/name form\n");
  EXPECT_EQ(api.run({"events", "--for", "pod/a/b"}).err,
            "error: arguments in resource/name form may not have more than one slash\n");
  FakeApi::Outcome outcome = api.run({"events", "--for", "nothing/x"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "the server doesn't have a resource type \"nothing\"\n")
      << "kubectl begins this one with no \"error: \"";
}

TEST(Words, events_are_those_of_the_object) {
  FakeApi api;
  auto put = [&](const std::string& name, const std::string& about) {
    api.put("/api/v1/namespaces/default/events/" + name, R"({"apiVersion":"v1","kind":"Event","type":"Normal","reason":")" +
                                                             name + R"(","metadata":{"namespace":"default","name":")" + name +
                                                             R"("},"involvedObject":)" + about + "}");
  };
  put("mine", R"({"apiVersion":"apps/v1","kind":"Deployment","name":"web"})");
  put("other", R"({"apiVersion":"apps/v1","kind":"Deployment","name":"db"})");
  put("alike", R"({"apiVersion":"example.com/v1","kind":"Deployment","name":"web"})");
  FakeApi::Outcome outcome = api.run({"events", "--for", "deploy/web", "-o", "name"});
  EXPECT_EQ(outcome.out, "event/mine\n") << outcome.err;
}

TEST(Words, versions_are_those_of_kubectl) {
  FakeApi api;
  FakeApi::Outcome outcome = api.run({"version", "--client"});
  EXPECT_TRUE(outcome.out.starts_with("Client Version: v1.36.")) << outcome.out;
  EXPECT_NE(outcome.out.find("\nKustomize Version: v5.8.1\n"), std::string::npos) << outcome.out;
  const json::value all = parse_json(api.run({"version", "--client", "-o", "json"}).out).value_or(json::value());
  EXPECT_EQ(get_string(all, "kustomizeVersion"), "v5.8.1");
  EXPECT_EQ(get_string(all, "clientVersion.major"), "1");
  api.put("/version", R"({"major":"1","minor":"30","gitVersion":"v1.30.0"})");
  outcome = api.run({"version"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err,
            "Warning: version difference between client (1.36) and server (1.30) exceeds the supported minor version skew of "
            "+/-1\n");
  outcome = api.run({"version", "--warnings-as-errors"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(outcome.err.starts_with("error: version difference between client (1.36) and server (1.30)")) << outcome.err;
}

}  // namespace
}  // namespace coracle::ctl
