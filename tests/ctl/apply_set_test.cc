// SPDX-License-Identifier: Apache-2.0
// apply --prune with --applyset, against a server that stores objects. The texts and the keys are those of kubectl.
#include "ctl/apply_set.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/ctl/fake_api.h"

namespace coracle::ctl {
namespace {

const std::string kSetMaps = "/api/v1/namespaces/default/configmaps/", kSetParent = "/api/v1/namespaces/default/secrets/my-set";
const std::string kSetId = "applyset-kdySOVBWs584aaOTmku9Ul1xDuN7LXBjs-R96jQcisk-v1";  // of "my-set.default.Secret."

class ApplySetTest : public testing::Test {
 protected:
  ApplySetTest() {
    directory_ = testing::TempDir() + "/apply-set-XXXXXX";
    EXPECT_TRUE(::mkdtemp(directory_.data()));
    ::setenv("KUBECTL_APPLYSET", "True", 1);
  }
  ~ApplySetTest() override {
    ::unsetenv("KUBECTL_APPLYSET");
    std::filesystem::remove_all(directory_);
  }

  std::string map(const std::string& name, const std::string& labels = "app: web") {
    const std::string path = directory_ + "/" + name + ".yaml";
    std::ofstream(path) << "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " << name << ", labels: {" << labels << "}}\n";
    return path;
  }
  FakeApi::Outcome apply(const std::vector<std::string>& more) {
    std::vector<std::string> words = {"apply", "-n", "default", "--prune", "--applyset=my-set"};
    words.insert(words.end(), more.begin(), more.end());
    return api_.run(words);
  }
  // The set's parent, as somebody made it.
  void put_parent(const std::string& labels, const std::string& annotations) {
    api_.put(kSetParent, R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"my-set","namespace":"default","labels":{)" +
                             labels + R"(},"annotations":{)" + annotations + "}}}");
  }
  std::string parent_text(const char* map, const char* key) {
    const FakeApi::Objects objects = api_.objects();
    const json::value* text = get_object(objects.at(kSetParent), std::string("metadata.") + map).if_contains(key);
    return text ? std::string(text->as_string()) : "none";
  }

  FakeApi api_;
  std::string directory_;
};

TEST_F(ApplySetTest, the_parent_knows_what_the_set_has) {
  FakeApi::Outcome outcome = apply({"-f", map("one"), "-f", map("two")});
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out, "configmap/one created\nconfigmap/two created\n");
  EXPECT_EQ(parent_text("labels", "applyset.kubernetes.io/id"), kSetId);
  EXPECT_EQ(parent_text("annotations", "applyset.kubernetes.io/tooling"), "kubectl/v1.36.1+coracle");
  EXPECT_EQ(parent_text("annotations", "applyset.kubernetes.io/contains-group-kinds"), "ConfigMap");
  EXPECT_EQ(parent_text("annotations", "applyset.kubernetes.io/additional-namespaces"), "");
  EXPECT_EQ(get_object(api_.objects()[kSetMaps + "one"], "metadata.labels").at("applyset.kubernetes.io/part-of").as_string(),
            kSetId);
  auto writes = api_.take_writes();
  ASSERT_EQ(writes.size(), 4u);
  for (size_t at : {0, 3}) {  // before anything is applied, and when all is
    EXPECT_EQ(writes[at].method + " " + writes[at].path, "PATCH " + kSetParent);
    EXPECT_EQ(writes[at].content_type, "application/apply-patch+yaml");
    EXPECT_EQ(writes[at].query["fieldManager"], "kubectl-applyset");
    EXPECT_EQ(writes[at].query["force"], "false");
  }
}

TEST_F(ApplySetTest, prunes_members_that_the_files_do_not_have) {
  EXPECT_EQ(apply({"-f", map("one"), "-f", map("two"), "-f", map("three")}).code, 0);
  api_.put(kSetMaps + "foreign", R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"foreign","namespace":"default"}})");
  api_.take_writes();
  EXPECT_EQ(apply({"-f", map("one"), "-f", map("two"), "--dry-run=client"}).out,
            "configmap/one unchanged (dry run)\nconfigmap/two unchanged (dry run)\nconfigmap/three pruned (dry run)\n");
  EXPECT_TRUE(api_.take_writes().empty());
  EXPECT_EQ(apply({"-f", map("one"), "-f", map("two"), "--dry-run=server"}).out,
            "configmap/one unchanged (server dry run)\nconfigmap/two unchanged (server dry run)\n"
            "configmap/three pruned (server dry run)\n");
  EXPECT_TRUE(api_.objects().contains(kSetMaps + "three"));
  EXPECT_EQ(apply({"-f", map("one"), "-f", map("two")}).out,
            "configmap/one unchanged\nconfigmap/two unchanged\nconfigmap/three pruned\n");
  EXPECT_EQ(apply({"--server-side", "-f", map("one")}).out, "configmap/one serverside-applied\nconfigmap/two pruned\n");
  EXPECT_FALSE(api_.objects().contains(kSetMaps + "two"));
  EXPECT_FALSE(api_.objects().contains(kSetMaps + "three"));
  EXPECT_TRUE(api_.objects().contains(kSetMaps + "foreign"));
}

TEST_F(ApplySetTest, goes_on_with_a_set_of_another_client) {
  const std::string id = R"("applyset.kubernetes.io/id":")" + kSetId + "\"";
  const std::string member = R"("labels":{"applyset.kubernetes.io/part-of":")" + kSetId + "\"}";
  put_parent(id, R"("applyset.kubernetes.io/tooling":"kubectl/v1.27.0","applyset.kubernetes.io/additional-namespaces":"other",
                    "applyset.kubernetes.io/contains-group-resources":"namespaces,services")");
  api_.put("/api/v1/namespaces/other/services/old",
           R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"old","namespace":"other","uid":"s",)" + member + "}}");
  api_.put("/api/v1/namespaces/gone",
           R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"gone","uid":"n",)" + member + "}}");
  api_.put("/api/v1/namespaces/third/services/far",
           R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"far","namespace":"third","uid":"f",)" + member + "}}");
  EXPECT_EQ(apply({"-f", map("one")}).out, "configmap/one created\nnamespace/gone pruned\nservice/old pruned\n");
  EXPECT_TRUE(api_.objects().contains("/api/v1/namespaces/third/services/far")) << "the set is not there";
  EXPECT_EQ(parent_text("annotations", "applyset.kubernetes.io/contains-group-kinds"), "ConfigMap");
  auto writes = api_.take_writes();
  ASSERT_FALSE(writes.empty());
  const json::object& first = get_object(writes.front().body, "metadata.annotations");
  EXPECT_EQ(first.at("applyset.kubernetes.io/contains-group-kinds").as_string(), "ConfigMap,Namespace,Service");
  EXPECT_EQ(first.at("applyset.kubernetes.io/additional-namespaces").as_string(), "other");
}

TEST_F(ApplySetTest, refuses_a_parent_that_is_not_one) {
  const std::string id = R"("applyset.kubernetes.io/id":")" + kSetId + "\"";
  const std::string ours = R"("applyset.kubernetes.io/tooling":"kubectl/v1.36.1")";
  struct Row {
    std::string labels, annotations, want;
  };
  for (const Row& row : std::vector<Row>{
           {"", "", "already exists and is missing required annotation \"applyset.kubernetes.io/tooling\""},
           {id, R"("applyset.kubernetes.io/tooling":"helm/v3")",
            "already exists and is managed by tooling \"helm\" instead of \"kubectl\""},
           {"", ours, "exists and does not have required label applyset.kubernetes.io/id"},
           {R"("applyset.kubernetes.io/id":"x")", ours,
            "exists and has incorrect value for label \"applyset.kubernetes.io/id\" (got: x, want: " + kSetId + ")"}}) {
    put_parent(row.labels, row.annotations);
    EXPECT_EQ(apply({"-f", map("one")}).err, "error: ApplySet parent object \"secrets./my-set\" " + row.want + "\n");
    EXPECT_TRUE(api_.take_writes().empty());
  }
  const std::string parsing = "error: parsing ApplySet annotation on \"secrets./my-set\": ";
  put_parent(id, ours);
  EXPECT_EQ(apply({"-f", map("one")}).err,
            parsing +
                "kubectl requires the \"applyset.kubernetes.io/contains-group-kinds\" annotation to be set on all ApplySet "
                "parent objects\n");
  put_parent(id, ours + R"(,"applyset.kubernetes.io/contains-group-kinds":"ConfigMap,Widget.example.com")");
  EXPECT_EQ(apply({"-f", map("one")}).err,
            parsing +
                "could not find mapping for kind in \"applyset.kubernetes.io/contains-group-kinds\" annotation: no matches "
                "for kind \"Widget\" in group \"example.com\"\n");
  put_parent(id, ours + R"(,"applyset.kubernetes.io/contains-group-kinds":"ConfigMap",
                           "applyset.kubernetes.io/additional-namespaces":"a,,b")");
  EXPECT_EQ(apply({"-f", map("one")}).err,
            "error: unexpectedly encountered empty namespace during prune of namespace-scoped resource ConfigMap\n")
      << "a list without a namespace would be of all";
}

TEST_F(ApplySetTest, refuses_what_does_not_go_together) {
  const std::string one = map("one");
  struct Row {
    std::vector<std::string> words;
    std::string want;
  };
  const std::string not_permitted = "resource \"apps/v1, Resource=deployments\" is not permitted as an ApplySet parent\n";
  for (const Row& row : std::vector<Row>{
           {{"-n", "default", "--applyset=x"}, "error: --applyset requires --prune\n"},
           {{"-n", "default", "--applyset=x", "--prune", "--all"}, "error: --all is incompatible with --applyset\n"},
           {{"-n", "default", "--applyset=x", "--prune", "-l", "a=b"}, "error: --selector is incompatible with --applyset\n"},
           {{"-n", "default", "--applyset=x", "--prune", "--prune-allowlist=core/v1/Pod"},
            "error: --prune-allowlist is incompatible with --applyset\n"},
           {{"-n", "default", "--applyset=x", "--prune", "--force"}, "error: --force cannot be used with --prune\n"},
           {{"-n", "default", "--applyset=secrets/", "--prune"},
            "error: invalid parent reference \"secrets/\": name cannot be blank\n"},
           {{"-n", "default", "--applyset=widgets.example.com/x", "--prune"},
            "error: invalid parent reference \"widgets.example.com/x\": no matches for example.com/, Resource=widgets\n"},
           {{"-n", "default", "--applyset=deploy/x", "--prune"}, "error: " + not_permitted},
           {{"--applyset=cm/x", "--prune"}, "error: namespace is required to use namespace-scoped ApplySet\n"},
           {{"--applyset=deploy/x", "--prune"}, "namespace is required to use namespace-scoped ApplySet\n" + not_permitted}}) {
    std::vector<std::string> words = {"apply", "-f", one};
    words.insert(words.end(), row.words.begin(), row.words.end());
    FakeApi::Outcome outcome = api_.run(words);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.err, row.want);
  }
  EXPECT_EQ(apply({"-f", map("marked", "applyset.kubernetes.io/part-of: x")}).err,
            "error: ApplySet label \"applyset.kubernetes.io/part-of\" already set in input data\n");
  EXPECT_TRUE(api_.take_writes().empty());
}

TEST_F(ApplySetTest, has_to_be_asked_for) {
  ::setenv("KUBECTL_APPLYSET", "yes", 1);  // only "true" means it
  FakeApi::Outcome outcome = apply({"-f", map("one")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("--applyset"), std::string::npos) << outcome.err;
  EXPECT_TRUE(api_.take_writes().empty());
}

}  // namespace
}  // namespace coracle::ctl
