// SPDX-License-Identifier: Apache-2.0
// Pods changed by the flags of set, and autoscalers created from flags.
#include "ctl/set.h"

#include <gtest/gtest.h>

#include "ctl/scale.h"
#include "store/object/patch.h"
#include "tests/ctl/changes.h"
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
    for (const char* list : {"spec.containers", "spec.initContainers"})
      for (const auto& container : get_array(pod, list)) text += std::string(get_string(container, "image")) + " ";
    return text;
  };
  EXPECT_EQ(images({"a=x:2"}), "x:2 y:1 x:1 ");
  EXPECT_EQ(images({"*=z"}), "z z z ");
  EXPECT_EQ(images({"i=z", "b=w"}), "x:1 w z ");
  EXPECT_EQ(images({"c=x"}), "unable to find container named \"c\"; there are: a, b, i");
  EXPECT_EQ(images({"a-"}), "expected CONTAINER=IMAGE, got \"a-\"");
}

TEST(Set, environment_is_added_replaced_and_removed) {
  json::value pod = parsed(kPodText);
  ASSERT_TRUE(set_env(pod, "", changes_of({"B=2", "A-"}), {}, true));
  EXPECT_EQ(env_text(pod), "# Pod p, container a\nB=2\n# Pod p, container b\nB=2\n");
  ASSERT_TRUE(set_env(pod, "b", changes_of({"B=3"}), env_of({"configmap", "cfg", "P_", {"some.key"}}), true));
  EXPECT_EQ(env_text(pod),
            "# Pod p, container a\nB=2\n# Pod p, container b\nB=3\n# P_SOME_KEY from configmap cfg, key some.key\n");
  EXPECT_EQ(set_env(pod, "b", changes_of({"B=4"}), {}, false).error().text(),
            "'B' already has a value, and --overwrite is false");
  EXPECT_FALSE(set_env(pod, "nope", changes_of({"B=4"}), {}, true));
  EXPECT_EQ(to_text(env_of({"secret", "s", "", {"k"}})), R"([{"name":"K","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}])");
}

TEST(Set, resources_are_merged) {
  json::value pod = parsed(R"({"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"1","memory":"1Gi"}}}]}})");
  ASSERT_TRUE(set_resources(pod, "", "cpu=500m", "memory=64Mi"));
  EXPECT_TRUE(json_equal(
      pod,
      parsed(
          R"({"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"500m","memory":"1Gi"},"requests":{"memory":"64Mi"}}}]}})")))
      << to_text(pod);
  EXPECT_FALSE(set_resources(pod, "", "cpu", ""));
  EXPECT_FALSE(set_resources(pod, "", "cpu=much", ""));
  EXPECT_FALSE(set_resources(pod, "z", "cpu=1", ""));
}

TEST(Autoscale, targets_are_percentages_or_amounts) {
  auto made = [](AutoscaleFlags flags) -> std::string {
    auto object = autoscaler_of(flags, "apps/v1", "Deployment", "web");
    return object ? to_text(*find(*object, "spec")) : object.error().text();
  };
  std::string head = R"({"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"},"maxReplicas":3)";
  EXPECT_EQ(made({.max = 3}), head + "}");
  EXPECT_EQ(
      made({.min = 2, .max = 3, .cpu_percent = 50}),
      head +
          R"(,"minReplicas":2,"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}}]})");
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
