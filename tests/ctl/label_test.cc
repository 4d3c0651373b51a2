// SPDX-License-Identifier: Apache-2.0
// label, annotate, patch and set against a server that stores objects, and without one: their flags and messages.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/ctl/fake_api.h"

namespace coracle::ctl {
namespace {

const std::string kDefaultNamespace = "/api/v1/namespaces/default/", kOtherNamespace = "/api/v1/namespaces/other/";

class LabelTest : public testing::Test {
 protected:
  LabelTest() {
    directory_ = testing::TempDir() + "/label-XXXXXX";
    EXPECT_TRUE(::mkdtemp(directory_.data()));
    put(kDefaultNamespace + "configmaps/one", R"("name":"one","namespace":"default","resourceVersion":"7","labels":{"app":"x"})");
    put(kDefaultNamespace + "configmaps/two", R"("name":"two","namespace":"default","resourceVersion":"8")");
    put(kOtherNamespace + "configmaps/three", R"("name":"three","namespace":"other","resourceVersion":"9")");
    deployment_ = directory_ + "/web.yaml";
    std::ofstream(deployment_)
        << "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, labels: {app: x}}\nspec:\n  replicas: 1\n"
           "  template: {spec: {containers: [{name: main, image: one}]}}\n";
  }
  ~LabelTest() override { std::filesystem::remove_all(directory_); }

  void put(const std::string& path, const std::string& metadata) {
    api_.put(path, R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{)" + metadata + "}}");
  }
  std::string out(const std::vector<std::string>& words) {
    FakeApi::Outcome outcome = api_.run(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  }
  std::string failure(const std::vector<std::string>& words) {
    FakeApi::Outcome outcome = api_.run(words);
    EXPECT_NE(outcome.code, 0) << outcome.out;
    EXPECT_TRUE(api_.take_writes().empty());
    return outcome.err;
  }

  FakeApi api_;
  std::string directory_, deployment_;
};

TEST_F(LabelTest, says_what_was_done) {
  EXPECT_EQ(out({"label", "configmap", "one", "a=b"}), "configmap/one labeled\n");
  EXPECT_EQ(out({"label", "configmap", "one", "a=b"}), "configmap/one not labeled\n");
  EXPECT_EQ(out({"label", "configmap", "one", "a-", "c=d"}), "configmap/one modified\n");
  EXPECT_EQ(out({"label", "configmap", "one", "c-"}), "configmap/one unlabeled\n");
  EXPECT_EQ(out({"label", "configmap", "one", "z-"}), "label \"z\" not found.\nconfigmap/one not labeled\n");
  EXPECT_EQ(out({"annotate", "configmap", "one", "z-"}), "configmap/one annotated\n");
  EXPECT_EQ(out({"label", "configmap", "--all", "-A", "q=r"}),
            "configmap/one labeled\nconfigmap/two labeled\nconfigmap/three labeled\n");
  EXPECT_EQ(out({"label", "configmap", "-l", "q=r", "q-"}), "configmap/one unlabeled\nconfigmap/two unlabeled\n");
  EXPECT_EQ(out({"patch", "configmap", "two", "-p", R"({"data":{"a":"b"}})", "--type="}), "configmap/two patched\n");
  EXPECT_EQ(out({"label", "configmap", "--field-selector", "metadata.name=two", "q-", "s=t"}),
            "label \"q\" not found.\nconfigmap/two labeled\n");
}

// Scripts write down the reason of each rollout.
TEST_F(LabelTest, the_cause_of_a_change_may_always_be_overwritten) {
  const std::string cause = "kubernetes.io/change-cause";
  EXPECT_EQ(out({"annotate", "configmap", "one", cause + "=first"}), "configmap/one annotated\n");
  EXPECT_EQ(out({"annotate", "configmap", "one", cause + "=second"}), "configmap/one annotated\n");
  EXPECT_EQ(out({"annotate", "configmap", "one", "--list"}), cause + "=second\n");
  EXPECT_EQ(out({"label", "configmap", "one", cause + "=first"}), "configmap/one labeled\n");
  api_.take_writes();
  EXPECT_EQ(failure({"label", "configmap", "one", cause + "=second"}),
            "error: '" + cause + "' already has a value (first), and --overwrite is false\n");
}

TEST_F(LabelTest, lists_and_changes_nothing) {
  EXPECT_EQ(out({"label", "configmap", "one", "--list"}), "app=x\n");
  EXPECT_EQ(out({"label", "configmap", "one", "--list", "a=b"}), "app=x\na=b\n");
  EXPECT_EQ(out({"label", "configmap", "--all", "--list"}),
            "Listing labels for ConfigMap./one:\n app=x\nListing labels for ConfigMap./two:\n");
  EXPECT_EQ(out({"annotate", "configmap", "one", "--list"}), "");
  EXPECT_TRUE(api_.take_writes().empty());
}

TEST_F(LabelTest, a_version_goes_with_the_patch) {
  out({"label", "configmap", "one", "a=b", "--resource-version=7"});
  auto writes = api_.take_writes();
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_EQ(get_string(writes[0].body, "metadata.resourceVersion"), "7");
  EXPECT_EQ(out({"label", "configmap", "one", "a=b", "--resource-version=7"}), "configmap/one not labeled\n");
  EXPECT_TRUE(api_.take_writes().empty()) << "the server is not asked about a label that is there";
  EXPECT_EQ(failure({"label", "configmap", "--all", "a=b", "--resource-version=7"}),
            "error: --resource-version may only be used with a single resource\n");
}

TEST_F(LabelTest, refuses) {
  struct Row {
    std::vector<std::string> words;
    std::string want;
  };
  for (const Row& row : std::vector<Row>{
           {{"label", "configmap", "one"}, "at least one label update is required"},
           {{"label", "a=b"}, "one or more resources must be specified as <resource> <name> or <resource>/<name>"},
           {{"label", "configmap", "a=b", "one"}, "all resources must be specified before label changes: one"},
           {{"label", "configmap", "one", "a=b=c"}, "invalid label spec: a=b=c"},
           {{"label", "configmap", "one", "a=b", "a-"}, "can not both modify and remove a label in the same command"},
           {{"label", "configmap", "one", "app=y"}, "'app' already has a value (x), and --overwrite is false"},
           {{"label", "configmap", "--all", "-l", "a=b", "c=d"}, "cannot set --all and --selector at the same time"},
           {{"label", "configmap", "--all", "--field-selector", "a=b", "c=d"},
            "cannot set --all and --field-selector at the same time"},
           {{"label", "configmap", "one", "--list", "-o", "yaml"}, "--list and --output may not be specified together"},
           {{"label", "--local", "configmap", "one", "a=b"},
            "can only use local files by -f pod.yaml or --filename=pod.json when --local=true is set"},
           {{"label", "--local", "a=b"}, "one or more files must be specified as -f pod.yaml or --filename=pod.json"},
           {{"annotate", "configmap", "one", "a=b", "a-"},
            "can not both modify and remove the following annotation(s) in the same command: a"},
           {{"patch", "configmap", "one"}, "must specify --patch or --patch-file containing the contents of the patch"},
           {{"patch", "configmap", "one", "-p", "{}", "--patch-file", "x"}, "cannot specify --patch and --patch-file together"},
           {{"patch", "configmap", "one", "-p", "{}", "--type=x"}, "--type must be one of [json merge strategic], not \"x\""},
           {{"patch", "--local", "configmap", "one", "-p", "{}"}, "cannot specify --local and server resources"},
           {{"set", "image", "configmap/one", "a-"}, "invalid image format: a-"},
           {{"set", "image", "configmap/one", "*=a", "b=c"},
            "all containers are already specified by *, but saw more than one container_name=container_image pairs"},
           {{"set", "env", "configmap/one", "a=b", "a-"},
            "can not both modify and remove the same environment variable in the same command"},
           {{"set", "env", "configmap/one", "--keys=a"},
            "when specifying --keys, a configmap or secret must be provided with --from"},
           {{"set", "env", "configmap/one", "A=b"},
            "configmaps/one the object is not a pod or does not have a pod template: *v1.ConfigMap"},
           {{"set", "sa", "configmap", "one", "robot"},
            "configmaps/one the object is not a pod or does not have a pod template: *v1.ConfigMap"},
           {{"set", "selector", "configmap/one", "a=b"}, "setting a selector is only supported for Services"},
           {{"set", "selector"}, "one selector is required"},
           {{"set", "subject", "configmap/one"}, "you must specify at least one value of user, group or serviceaccount"},
           {{"set", "subject", "configmap/one", "--user=a"},
            "configmaps/one setting subjects is only supported for RoleBinding/ClusterRoleBinding"}})
    EXPECT_EQ(failure(row.words), "error: " + row.want + "\n");
  EXPECT_TRUE(failure({"label", "configmap", "one", "a=b c"})
                  .starts_with("error: invalid label value: \"a=b c\": a valid label must be"));
}

TEST_F(LabelTest, of_local_files_needs_no_server) {
  std::string none = directory_ + "/none";
  auto local = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--local", "-f", deployment_});
    return out(words);
  };
  EXPECT_EQ(local({"label", "a=b"}), "deployment.apps/web labeled\n");
  EXPECT_EQ(local({"annotate", "a=b"}), "deployment.apps/web annotated\n");
  EXPECT_EQ(local({"patch", "-p", R"({"spec":{"replicas":3}})"}), "deployment.apps/web patched\n");
  EXPECT_EQ(local({"patch", "-p", R"({"spec":{"replicas":1}})"}), "deployment.apps/web patched (no change)\n");
  EXPECT_EQ(local({"set", "image", "main=two"}), "deployment.apps/web image updated\n");
  EXPECT_EQ(local({"set", "image", "main=one"}), "") << "nothing changes";
  EXPECT_EQ(local({"set", "env", "A=b", "-c", "m*", "--list"}), "# Deployment web, container main\nA=b\n");
  EXPECT_EQ(local({"set", "sa", "robot"}), "deployment.apps/web serviceaccount updated\n");
  EXPECT_EQ(local({"label", "a=b", "-o", "yaml"}).find("namespace"), std::string::npos)
      << "nor has it a namespace that the file lacks";
  EXPECT_TRUE(api_.take_writes().empty());
}

TEST_F(LabelTest, references_of_the_environment_are_resolved) {
  api_.put(kDefaultNamespace + "configmaps/cfg",
           R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cfg","namespace":"default"},"data":{"some.key":"v"}})");
  api_.put(kDefaultNamespace + "secrets/keys",
           R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"keys","namespace":"default"},"data":{"k":"dg=="}})");
  api_.put(
      kDefaultNamespace + "pods/web",
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"default"},"spec":{"containers":[{"name":"c","env":[
    {"name":"K","valueFrom":{"secretKeyRef":{"name":"keys","key":"k"}}},{"name":"N","valueFrom":{"configMapKeyRef":{"name":"cfg","key":"none"}}}]}]}})");
  FakeApi::Outcome outcome = api_.run({"set", "env", "pod/web", "--from=configmap/cfg", "--prefix=P_", "--list", "--resolve"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "# Pod web, container c\nK=v\n# N from configmap cfg, key none\nP_SOME_KEY=v\n");
  EXPECT_EQ(
      outcome.err,
      "Warning: key some.key transferred to SOME_KEY\nerror retrieving reference for N: key none not found in config map cfg\n");
}

}  // namespace
}  // namespace coracle::ctl
