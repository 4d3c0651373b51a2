// SPDX-License-Identifier: Apache-2.0
// Pods changed by the flags of set, and autoscalers created from flags.
#include "ctl/set.h"

#include <gtest/gtest.h>

#include "ctl/scale.h"
#include "store/object/patch.h"
#include "tests/ctl/changes.h"
#include "tests/ctl/fake_api.h"
#include "tests/daemon/parsed.h"

namespace coracle::ctl {
namespace {

const char* kPodText =
    R"({"kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"a","image":"x:1","env":[{"name":"A","value":"1"}]},{"name":"b","image":"y:1"}],
  "initContainers":[{"name":"i","image":"x:1"}]}})";

TEST(Set, finds_the_pods_of_every_kind) {
  for (const char* text : {R"({"spec":{"containers":[]}})", R"({"spec":{"template":{"spec":{"containers":[]}}}})",
                           R"({"spec":{"jobTemplate":{"spec":{"template":{"spec":{"containers":[]}}}}}})"}) {
    json::value object = parsed(text);
    json::value* spec = pod_spec_of(object);
    ASSERT_NE(spec, nullptr) << text;
    EXPECT_TRUE(spec->as_object().contains("containers")) << text;
  }
  json::value service = parsed(R"({"spec":{"ports":[]}})");
  EXPECT_EQ(pod_spec_of(service), nullptr);
}

TEST(Set, images_by_container_or_all) {
  auto images = [](const std::vector<std::string>& args) -> std::string {
    json::value pod = parsed(kPodText);
    auto done = set_images(pod, changes_of(args));
    if (!done) return done.error().text();
    std::string text;
    for (const Error& missing : *done) text += missing.text() + ": ";
    for (const char* list : {"spec.containers", "spec.initContainers"})
      for (const auto& container : get_array(pod, list)) text += std::string(get_string(container, "image")) + " ";
    return text;
  };
  EXPECT_EQ(images({"a=x:2"}), "x:2 y:1 x:1 ");
  EXPECT_EQ(images({"*=z"}), "z z z ");
  EXPECT_EQ(images({"i=z", "b=w"}), "x:1 w z ");
  EXPECT_EQ(images({"c=x"}), "unable to find container named \"c\"; there are: a, b, i: x:1 y:1 x:1 ");
  EXPECT_EQ(images({"c=x", "b=x"}), "unable to find container named \"c\"; there are: a, b, i: x:1 x x:1 ");
  EXPECT_EQ(images({"a-"}), "invalid image format: a-");
}

json::array variables(const std::vector<std::string>& pairs) {
  json::array env;
  for (const Change& change : changes_of(pairs)) env.push_back(json::object{{"name", change.key}, {"value", *change.value}});
  return env;
}

TEST(Set, patterns_have_stars) {
  using Pairs = std::vector<std::pair<const char*, const char*>>;
  for (auto [name, pattern] :
       Pairs{{"web", "web"}, {"web", "*"}, {"web", "w*"}, {"web", "*b"}, {"web", "w*b"}, {"", "*"}, {"aab", "*ab"}})
    EXPECT_TRUE(matches_pattern(name, pattern)) << name << " " << pattern;
  for (auto [name, pattern] : Pairs{{"web", "we"}, {"web", "x*"}, {"web", "w*x"}, {"web", ""}, {"a", "a*a"}})
    EXPECT_FALSE(matches_pattern(name, pattern)) << name << " " << pattern;
}

TEST(Set, environment_is_added_replaced_and_removed) {
  json::value pod = parsed(kPodText);
  auto set = [&](const char* containers, const json::array& env, const std::vector<std::string>& removed,
                 bool overwrite) -> std::string {
    auto done = set_env(pod, containers, env, removed, overwrite);
    return done ? std::to_string(*done) : done.error().text();
  };
  EXPECT_EQ(set("*", variables({"B=2"}), {"A"}, true), "3");
  EXPECT_EQ(env_text(pod, "*").text, "# Pod p, container a\nB=2\n# Pod p, container b\nB=2\n# Pod p, container i\nB=2\n");
  json::array more = variables({"B=3"});
  for (const auto& one : env_of({"configmap", "cfg", {"some.key"}})) more.push_back(one);
  EXPECT_EQ(set("b*", more, {}, true), "1");
  EXPECT_EQ(env_text(pod, "b").text, "# Pod p, container b\nB=3\n# SOME_KEY from configmap cfg, key some.key\n");
  EXPECT_EQ(set("b", variables({"B=4"}), {}, false), "'B' already has a value (3), and --overwrite is false");
  EXPECT_EQ(set("b", variables({"B=3", "C=1"}), {}, false), "1");
  EXPECT_EQ(set("nope", variables({"B=4"}), {}, true), "0");
  EXPECT_EQ(to_text(env_of({"secret", "s", {"k"}})), R"([{"name":"K","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}])");
  json::value service = parsed(R"({"kind":"Service"})");
  EXPECT_EQ(set_env(service, "*", {}, {}, true).error().text(),
            "the object is not a pod or does not have a pod template: *.Service");
}

TEST(Set, references_have_values) {
  json::value pod =
      parsed(R"({"kind":"Pod","metadata":{"name":"p","uid":"u","labels":{"b":"2","a":"1"}},"spec":{"containers":[{"name":"c",
    "resources":{"limits":{"cpu":"1500m","memory":"1Gi"}},"env":[
    {"name":"NAME","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}},
    {"name":"LABELS","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels"}}},
    {"name":"LABEL","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['b']"}}},
    {"name":"CPU","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu"}}},
    {"name":"MEMORY","valueFrom":{"resourceFieldRef":{"resource":"limits.memory","divisor":"1Mi"}}},
    {"name":"NONE","valueFrom":{"resourceFieldRef":{"resource":"requests.cpu"}}},
    {"name":"NODE","valueFrom":{"fieldRef":{"fieldPath":"spec.nodeName"}}},
    {"name":"HOST","valueFrom":{"fieldRef":{"fieldPath":"spec.nodeName"}}}]}]}})");
  EnvText shown = env_text(
      pod, "*", [&](const json::value& from, const json::value& container) { return value_of_field(pod, container, from); });
  EXPECT_EQ(shown.text,
            "# Pod p, container c\nNAME=p\nLABELS=a=\"1\"\nb=\"2\"\nLABEL=2\nCPU=2\nMEMORY=1024\nNONE=0\n"
            "# NODE from field path spec.nodeName\n# HOST from field path spec.nodeName\n");
  EXPECT_EQ(shown.faults,
            std::vector<std::string>{"error retrieving reference for NODE, HOST: unsupported fieldPath: spec.nodeName"});
  EXPECT_NE(env_text(pod, "c").text.find("# CPU from resource field limits.cpu\n"), std::string::npos);
}

TEST(Set, resources_are_merged) {
  json::value pod = parsed(R"({"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"1","memory":"1Gi"}}}]}})");
  ASSERT_TRUE(set_resources(pod, "*", "cpu=500m", "memory=64Mi"));
  EXPECT_TRUE(json_equal(
      pod,
      parsed(
          R"({"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"500m","memory":"1Gi"},"requests":{"memory":"64Mi"}}}]}})")))
      << to_text(pod);
  EXPECT_EQ(set_resources(pod, "*", "cpu", "").error().text(), "Invalid argument syntax cpu, expected <resource>=<value>");
  EXPECT_FALSE(set_resources(pod, "*", "cpu=much", ""));
  EXPECT_EQ(set_resources(pod, "z", "cpu=1", "").error().text(), "unable to find container named z; there are: a");
}

TEST(SetCommand, changes_the_containers_that_are_there) {
  FakeApi api;
  api.put("/api/v1/namespaces/default/pods/p",
          R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default"},"spec":{"containers":[
             {"name":"a","image":"x"},{"name":"b","image":"y"}]}})");
  FakeApi::Outcome outcome = api.run({"set", "image", "pod/p", "none=z", "b=z", "other=z"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "pod/p image updated\n");
  EXPECT_EQ(
      outcome.err,
      "error: unable to find container named \"none\"; there are: a, b\nerror: unable to find container named \"other\"; there "
      "are: a, b\n");
  outcome = api.run({"set", "image", "pod/p", "none=z"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
}

TEST(SetCommand, says_what_the_server_refuses) {
  FakeApi api;
  api.put("/api/v1/namespaces/default/pods/p",
          R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default"},"spec":{"containers":[
             {"name":"a","image":"x"}]}})");
  api.refuse_writes(Error(Code::forbidden, "not today").with({}));
  EXPECT_EQ(api.run({"set", "image", "pod/p", "a=y"}).err, "error: failed to patch image update to pod template: not today\n");
  EXPECT_EQ(api.run({"set", "env", "pod/p", "A=b"}).err, "error: failed to patch env update to pod template: not today\n");
  EXPECT_EQ(api.run({"set", "sa", "pod/p", "robot"}).err, "error: failed to patch ServiceAccountName not today\n");
  EXPECT_EQ(api.run({"set", "resources", "pod/p", "--limits=cpu=1"}).err,
            "error: failed to patch resources update to pod template not today\n");
}

TEST(Autoscale, targets_are_percentages_or_amounts) {
  auto made = [](AutoscaleFlags flags) -> std::string {
    auto object = autoscaler_of(flags, "apps/v1", "Deployment", "web");
    return object ? to_text(*find(*object, "spec")) : object.error().text();
  };
  std::string start = R"({"scaleTargetRef":{"kind":"Deployment","name":"web","apiVersion":"apps/v1"},)",
              head = start + R"("maxReplicas":3)";
  EXPECT_EQ(made({.max = 3}), head + "}");
  EXPECT_EQ(
      made({.min = 2, .max = 3, .cpu_percent = 50}),
      start +
          R"("minReplicas":2,"maxReplicas":3,"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}}]})");
  EXPECT_EQ(
      made({.cpu = "500", .memory = "200", .max = 3}),
      head +
          R"(,"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"AverageValue","averageValue":"500m"}}},)"
          R"({"type":"Resource","resource":{"name":"memory","target":{"type":"AverageValue","averageValue":"200Mi"}}}]})");
  EXPECT_EQ(made({.min = 3, .max = 2}), "--max=MAXPODS must be larger or equal to --min=MINPODS, max: 2, min: 3");
  EXPECT_EQ(made({.max = 0}), "--max=MAXPODS is required and must be at least 1, max: 0");
  for (const char* wrong : {"x", "%", "-5%", "0", "-1"})
    EXPECT_EQ(made({.cpu = wrong, .max = 3}), "invalid resource cpu value: " + std::string(wrong));
  EXPECT_EQ(made({.cpu = "5%", .max = 3, .cpu_percent = 5}), "--cpu-percent and --cpu are mutually exclusive");
}

}  // namespace
}  // namespace coracle::ctl
