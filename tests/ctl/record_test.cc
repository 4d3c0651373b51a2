// SPDX-License-Identifier: Apache-2.0
// --record: the annotation that keeps a command's line, of each command that kubectl has the flag of.
#include "ctl/record.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/ctl/fake_api.h"

namespace coracle::ctl {
namespace {

const std::string kRecordApps = "/apis/apps/v1/namespaces/default/deployments/", kRecordCore = "/api/v1/namespaces/default/";

class RecordTest : public testing::Test {
 protected:
  RecordTest() {
    directory_ = testing::TempDir() + "/record-XXXXXX";
    EXPECT_TRUE(::mkdtemp(directory_.data()));
    ::setenv("KUBE_EDITOR", "sed -i s/blue/red/", 1);
    api_.put(kRecordApps + "web",
             R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"default","uid":"w"},
             "spec":{"replicas":1,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
             "spec":{"containers":[{"name":"main","image":"x"}]}}}})");
    api_.put(kRecordCore + "configmaps/cfg",
             R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cfg","namespace":"default","uid":"c"},
             "data":{"colour":"blue"}})");
    api_.put(kRecordCore + "services/web",
             R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"web","namespace":"default","uid":"s"},
             "spec":{"selector":{"a":"b"},"ports":[{"port":80}]}})");
    objects_ = api_.objects();
  }
  ~RecordTest() override {
    ::unsetenv("KUBE_EDITOR");
    std::filesystem::remove_all(directory_);
  }

  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(directory_ + "/" + name) << text;
    return directory_ + "/" + name;
  }
  // What the last of the writes says of the cause; "" where it says nothing.
  std::string cause_in(const std::vector<FakeApi::Sent>& writes) {
    if (writes.empty()) return "no write";
    const json::value* cause = find_keys(writes.back().body, {"metadata", "annotations", kChangeCause});
    return cause && cause->is_string() ? std::string(cause->get_string()) : "";
  }

  FakeApi api_;
  FakeApi::Objects objects_;
  std::string directory_;
};

TEST_F(RecordTest, the_line_is_kept_in_an_annotation) {
  std::string config = file("cfg.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cfg}\ndata: {colour: green}\n");
  std::string made = file("new.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new}\ndata: {colour: green}\n");
  struct Row {
    std::vector<std::string> words;
    std::string cause;
  };
  for (const Row& row : std::vector<Row>{
           {{"set", "image", "deployment/web", "main=y"}, "set image deployment/web main=y"},
           {{"set", "resources", "deployment/web", "--limits", "cpu=1"}, "set resources deployment/web --limits=cpu=1"},
           {{"set", "sa", "deployment/web", "robot"}, "set sa deployment/web robot"},
           {{"set", "selector", "service/web", "a=c"}, "set selector service/web a=c"},
           {{"scale", "deployment", "web", "--replicas=3"}, "scale deployment web --replicas=3"},
           {{"patch", "configmap", "cfg", "-p", "{}"}, "patch configmap cfg --patch={}"},
           {{"label", "configmap", "cfg", "a=b"}, "label configmap cfg a=b"},
           {{"annotate", "configmap", "cfg", "a=b"}, "annotate configmap cfg a=b"},
           {{"edit", "configmap", "cfg"}, "edit configmap cfg"},
           {{"autoscale", "deployment", "web", "--max=3"}, "autoscale deployment web --max=3"},
           {{"expose", "deployment", "web", "--port=80", "--name=two"}, "expose deployment web --port=80 --name=two"},
           {{"run", "made", "--image=x"}, "run made --image=x"},
           {{"create", "-f", made}, "create --filename=" + made},
           {{"apply", "-f", made}, "apply --filename=" + made},
           {{"apply", "-f", config, "--server-side"}, "apply --filename=" + config + " --server-side=true"},
           {{"replace", "-f", config}, "replace --filename=" + config}}) {
    for (bool wanted : {true, false}) {
      api_.reset(objects_);
      std::vector<std::string> words = row.words;
      words.push_back(wanted ? "--record" : "--record=false");
      FakeApi::Outcome outcome = api_.run(words);
      EXPECT_EQ(outcome.code, 0) << row.cause << outcome.err;
      EXPECT_EQ(cause_in(api_.take_writes()), wanted ? "coraclectl " + row.cause + " --record=true" : "") << row.cause;
      EXPECT_NE(outcome.err.find("Flag --record has been deprecated, --record will be removed in the future\n"),
                std::string::npos)
          << row.cause << outcome.err;
    }
    api_.reset(objects_);
    EXPECT_EQ(api_.run(row.words).err.find("deprecated"), std::string::npos) << row.cause;
  }
}

TEST_F(RecordTest, what_apply_remembers_has_it_too) {
  std::string made = file("new.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new}\n");
  EXPECT_EQ(api_.run({"apply", "-f", made, "--record"}).code, 0);
  EXPECT_EQ(api_.run({"apply", "-f", made, "--record"}).out, "configmap/new unchanged\n");
  EXPECT_EQ(api_.run({"apply", "-f", made}).out, "configmap/new configured\n");
  const json::value object = api_.objects().at(kRecordCore + "configmaps/new");
  EXPECT_EQ(find_keys(object, {"metadata", "annotations", kChangeCause}), nullptr);
}

TEST_F(RecordTest, what_the_line_says_itself_is_kept) {
  EXPECT_EQ(api_.run({"annotate", "configmap", "cfg", "kubernetes.io/change-cause=mine", "--record"}).code, 0);
  EXPECT_EQ(cause_in(api_.take_writes()), "mine");
  EXPECT_EQ(api_.run({"label", "configmap", "cfg", "a-", "--record"}).code, 0);
  EXPECT_TRUE(api_.take_writes().empty()) << "no label changes";
  EXPECT_EQ(api_.run({"set", "image", "deployment/web", "main=y", "--record", "--dry-run=client"}).code, 0);
  EXPECT_TRUE(api_.take_writes().empty());
}

}  // namespace
}  // namespace coracle::ctl
