// SPDX-License-Identifier: Apache-2.0
// Commands against a server as Kubernetes 1.20 is: it has some kinds in older versions only, and finds no unknown fields.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ctl/field_check.h"
#include "tests/ctl/fake_api.h"

namespace coracle::ctl {
namespace {

const std::string kOldJobs = "/apis/batch/v1beta1/namespaces/default/cronjobs/";

class OlderServerTest : public testing::Test {
 protected:
  OlderServerTest() {
    for (const char* path : {"/apis/batch/v1/", "/apis/autoscaling/v2/"}) api_.lack(path);
    api_.put("/apis/batch", R"({"kind":"APIGroup","name":"batch","versions":[{"version":"v1"},{"version":"v1beta1"}]})");
    api_.put("/apis/batch/v1beta1", R"({"kind":"APIResourceList","resources":[{"name":"cronjobs","kind":"CronJob"}]})");
    api_.put(kOldJobs + "c",
             R"({"apiVersion":"batch/v1beta1","kind":"CronJob","metadata":{"name":"c","namespace":"default","uid":"u"},
                 "spec":{"schedule":"* * * * *"}})");
    api_.put("/version", R"({"major":"1","minor":"20+"})");
    api_.put("/apis/apps/v1/namespaces/default/deployments/web",
             R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"default"},"spec":{}})");
    place_ = testing::TempDir() + "/older-XXXXXX";
    EXPECT_TRUE(::mkdtemp(place_.data()));
  }
  ~OlderServerTest() override { std::filesystem::remove_all(place_); }

  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(place_ + "/" + name) << text;
    return place_ + "/" + name;
  }

  FakeApi api_;
  std::string place_;
};

TEST_F(OlderServerTest, a_kind_is_read_in_the_version_that_is_there) {
  EXPECT_EQ(api_.run({"get", "cronjobs"}).out, "NAME\nc\n");
  EXPECT_EQ(api_.run({"get", "cj", "c", "-o", "jsonpath={.apiVersion}"}).out, "batch/v1beta1");
  EXPECT_EQ(api_.run({"get", "cj", "none"}).err, "Error from server (NotFound): cronjobs \"none\" not found\n");
  FakeApi::Outcome outcome = api_.run({"label", "cj", "c", "a=b"});
  EXPECT_EQ(outcome.out, "cronjob.batch/c labeled\n") << outcome.err;
  EXPECT_EQ(get_string(api_.objects()[kOldJobs + "c"], "metadata.labels.a"), "b");
  outcome = api_.run({"delete", "cj", "c"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_FALSE(api_.objects().contains(kOldJobs + "c"));
}

// A field that the older version lacks would be lost without a word.
TEST_F(OlderServerTest, what_is_changed_goes_to_no_other_version) {
  const std::string lacks = "the server could not find the requested resource ";
  EXPECT_EQ(api_.run({"patch", "cj", "c", "-p", R"({"spec":{"suspend":true}})"}).err,
            "Error from server (NotFound): " + lacks + "(patch cronjobs.batch c)\n");
  EXPECT_EQ(api_.run({"create", "cronjob", "x", "--image=a", "--schedule=@daily"}).err,
            "error: failed to create cronjob: " + lacks + "(post cronjobs.batch)\n");
  EXPECT_FALSE(find(api_.objects()[kOldJobs + "c"], "spec.suspend"));
}

TEST_F(OlderServerTest, what_it_has_in_no_version_is_told_once) {
  EXPECT_EQ(api_.run({"get", "hpa", "a", "b"}).err,
            "Error from server (NotFound): the server could not find the requested resource (get "
            "horizontalpodautoscalers.autoscaling a)\nError from server (NotFound): the server could not find the requested "
            "resource (get horizontalpodautoscalers.autoscaling b)\n");
}

TEST_F(OlderServerTest, an_autoscaler_is_made_in_v1) {
  FakeApi::Outcome outcome = api_.run({"autoscale", "deployment", "web", "--max=3", "--cpu=70%"});
  EXPECT_EQ(outcome.out, "horizontalpodautoscaler.autoscaling/web autoscaled\n") << outcome.err;
  const FakeApi::Sent sent = api_.take_writes().back();
  EXPECT_EQ(sent.path, "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers");
  EXPECT_EQ(get_string(sent.body, "apiVersion"), "autoscaling/v1");
  EXPECT_EQ(get_int(sent.body, "spec.targetCPUUtilizationPercentage"), 70);
  EXPECT_FALSE(find(sent.body, "spec.metrics"));
  outcome = api_.run({"autoscale", "deployment", "web", "--name=m", "--max=3", "--memory=1Gi"});
  EXPECT_EQ(outcome.err,
            "error: failed to create autoscaling/v2 HPA and the configuration is incompatible with autoscaling/v1\n");
}

TEST_F(OlderServerTest, unknown_fields_are_found_here) {
  const std::string good = "{apiVersion: v1, kind: ConfigMap, metadata: {name: good}}\n---\n";
  const std::string path = file("map.yaml", good + "{apiVersion: v1, kind: ConfigMap, metadata: {name: bad}, date: {}}\n");
  const std::string fault = "error: error validating \"" + path +
                            "\": error validating data: ValidationError(ConfigMap): unknown field \"date\" in "
                            "io.k8s.api.core.v1.ConfigMap; if you choose to ignore these errors, turn validation off with "
                            "--validate=false\n";
  for (const char* command : {"create", "apply", "replace"}) {
    FakeApi::Outcome outcome = api_.run({command, "-f", path});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_TRUE(outcome.err.ends_with(fault)) << command << ": " << outcome.err;
    EXPECT_TRUE(outcome.out.starts_with("configmap/good ")) << outcome.out;
    EXPECT_FALSE(api_.objects().contains("/api/v1/namespaces/default/configmaps/bad"));
  }
  EXPECT_EQ(api_.run({"replace", "--force", "-f", path}).err, fault);
  for (const char* validate : {"--validate=warn", "--validate=false"})
    EXPECT_EQ(api_.run({"apply", "-f", path, validate}).code, 0);
  api_.put("/version", R"({"major":"1","minor":"36"})");
  EXPECT_EQ(api_.run({"apply", "-f", path}).code, 0) << "such a server looks itself";
}

TEST_F(OlderServerTest, edit_finds_unknown_fields_too) {
  api_.put(
      "/api/v1/namespaces/default/configmaps/one",
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one","namespace":"default","uid":"u"},"data":{"k":"v"}})");
  ::setenv("KUBE_EDITOR", "sed -i s/^data:$/date:/", 1);
  const char* set = std::getenv("TMPDIR");
  const std::string usual = set ? set : "";
  ::setenv("TMPDIR", place_.c_str(), 1);
  FakeApi::Outcome outcome = api_.run({"edit", "configmap/one"});
  ::unsetenv("KUBE_EDITOR");
  if (set) ::setenv("TMPDIR", usual.c_str(), 1);
  else ::unsetenv("TMPDIR");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(outcome.err.starts_with("error: configmaps \"one\" is invalid\n")) << outcome.err;
  EXPECT_TRUE(api_.take_writes().empty());
}

TEST(FieldCheck, says_where_a_field_is_and_in_what) {
  const schema::Type& pod = *schema::root_type("v1", "Pod");
  auto found = [&](const char* text) { return unknown_fields_of(pod, *parse_json(text)); };
  EXPECT_EQ(
      found(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{"x.io/a.b":"c"}},"spec":{"containers":[]}})"),
      "");
  EXPECT_EQ(found(R"({"spec":{"containers":[{"name":"a"},{"nam":"b"}]}})"),
            "ValidationError(Pod.spec.containers[1]): unknown field \"nam\" in io.k8s.api.core.v1.Container");
  EXPECT_EQ(found(R"({"x":1,"spec":{"y":1}})"),
            "[ValidationError(Pod): unknown field \"x\" in io.k8s.api.core.v1.Pod, ValidationError(Pod.spec): unknown field "
            "\"y\" in io.k8s.api.core.v1.PodSpec]");
}

}  // namespace
}  // namespace coracle::ctl
