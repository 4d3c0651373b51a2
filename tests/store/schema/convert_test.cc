// SPDX-License-Identifier: Apache-2.0
// One stored kind in several versions: conversion in both directions, the annotations that preserve fields, and managed fields in
// each version.
#include "store/schema/convert.h"

#include <gtest/gtest.h>

#include "store/schema/apply.h"
#include "tests/store/schema/prepared.h"

namespace coracle::schema {
namespace {

const KindInfo& kind(std::string_view api_version, std::string_view name) { return *catalog().by_kind(api_version, name); }

const KindInfo& old_event() { return kind("v1", "Event"); }
const KindInfo& new_event() { return kind("events.k8s.io/v1", "Event"); }
const KindInfo& v1() { return kind("autoscaling/v1", "HorizontalPodAutoscaler"); }
const KindInfo& v2() { return kind("autoscaling/v2", "HorizontalPodAutoscaler"); }

TEST(Convert, knows_what_is_stored) {
  EXPECT_EQ(&new_event().stored(), &old_event());
  EXPECT_EQ(&v1().stored(), &v2());
  EXPECT_EQ(&v2().stored(), &v2());
  EXPECT_EQ(v1().version("autoscaling/v2"), &v2());
  EXPECT_EQ(v1().version("autoscaling/v3"), nullptr);
  for (const KindInfo& info : catalog().kinds()) EXPECT_EQ(&info.stored().stored(), &info.stored()) << info.kind.kind;
}

TEST(Convert, events_call_the_same_things_otherwise) {
  json::value older =
      canonical(old_event(), R"({"metadata":{"name":"e"},"involvedObject":{"kind":"Pod","name":"p"},"message":"m","count":3,
    "firstTimestamp":"2026-01-02T03:04:05Z","lastTimestamp":"2026-01-02T03:04:06Z","source":{"component":"c","host":"h"},"reportingComponent":"r"})");
  json::value newer = convert(old_event(), new_event(), older);
  EXPECT_EQ(get_string(newer, "apiVersion"), "events.k8s.io/v1");
  EXPECT_EQ(get_string(newer, "regarding.name"), "p");
  EXPECT_EQ(get_string(newer, "note"), "m");
  EXPECT_EQ(get_int(newer, "deprecatedCount"), 3);
  EXPECT_EQ(get_string(newer, "deprecatedSource.host"), "h");
  EXPECT_EQ(get_string(newer, "reportingController"), "r");
  EXPECT_FALSE(find(newer, "message"));
  EXPECT_EQ(to_text(convert(new_event(), old_event(), newer)), to_text(older)) << "nothing is lost";
  EXPECT_EQ(to_text(json::value(cells_of(new_event(), newer, kNow))), to_text(json::value(cells_of(old_event(), older, kNow))));
}

TEST(Convert, an_autoscaler_of_the_first_version_says_cpu_alone) {
  json::value first = canonical(v1(), R"({"metadata":{"name":"a"},"spec":{"maxReplicas":3,"minReplicas":1,
    "scaleTargetRef":{"kind":"Deployment","name":"d","apiVersion":"apps/v1"},"targetCPUUtilizationPercentage":55},"status":{"currentReplicas":1,"desiredReplicas":2}})");
  json::value second = convert(v1(), v2(), first);
  EXPECT_EQ(to_text(*find(second, "spec.metrics")),
            R"([{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":55}}}])");
  EXPECT_EQ(to_text(convert(v2(), v1(), second)), to_text(first));
  make(first, "spec").get_object().erase("targetCPUUtilizationPercentage");
  EXPECT_EQ(get_int(get_array(convert(v1(), v2(), first), "spec.metrics")[0], "resource.target.averageUtilization"), 80)
      << "what it means without a word";
}

TEST(Convert, what_the_first_version_lacks_travels_in_annotations) {
  json::value second =
      canonical(v2(), R"({"metadata":{"name":"a","annotations":{"mine":"x"}},"spec":{"maxReplicas":3,"minReplicas":1,
    "scaleTargetRef":{"kind":"Deployment","name":"d"},"metrics":[
      {"type":"Resource","resource":{"name":"memory","target":{"type":"AverageValue","averageValue":"100Mi"}}},
      {"type":"Pods","pods":{"metric":{"name":"queue","selector":{"matchLabels":{"a":"b"}}},"target":{"type":"AverageValue","averageValue":"5"}}},
      {"type":"Object","object":{"describedObject":{"kind":"Ingress","name":"i"},"metric":{"name":"hits"},"target":{"type":"Value","value":"10"}}},
      {"type":"External","external":{"metric":{"name":"depth"},"target":{"type":"AverageValue","averageValue":"7"}}},
      {"type":"ContainerResource","containerResource":{"name":"cpu","container":"c","target":{"type":"Utilization","averageUtilization":40}}},
      {"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":60}}}],
    "behavior":{"scaleUp":{"stabilizationWindowSeconds":0,"selectPolicy":"Max","policies":[{"type":"Pods","value":4,"periodSeconds":15}]}}},
    "status":{"currentReplicas":1,"desiredReplicas":2,"currentMetrics":[{"type":"Resource","resource":{"name":"cpu","current":{"averageUtilization":48,"averageValue":"159m"}}}],
    "conditions":[{"type":"AbleToScale","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z","reason":"ReadyForNewScale","message":"m"}]}})");
  json::value first = convert(v2(), v1(), second);
  EXPECT_EQ(get_int(first, "spec.targetCPUUtilizationPercentage"), 60);
  EXPECT_EQ(get_int(first, "status.currentCPUUtilizationPercentage"), 48);
  const json::object& notes = get_object(first, "metadata.annotations");
  EXPECT_EQ(std::string(notes.at("autoscaling.alpha.kubernetes.io/metrics").as_string()),
            R"([{"type":"Resource","resource":{"name":"memory","targetAverageValue":"100Mi"}},)"
            R"({"type":"Pods","pods":{"metricName":"queue","targetAverageValue":"5","selector":{"matchLabels":{"a":"b"}}}},)"
            R"({"type":"Object","object":{"target":{"kind":"Ingress","name":"i"},"metricName":"hits","targetValue":"10"}},)"
            R"({"type":"External","external":{"metricName":"depth","targetAverageValue":"7"}},)"
            R"({"type":"ContainerResource","containerResource":{"name":"cpu","targetAverageUtilization":40,"container":"c"}}])");
  EXPECT_EQ(std::string(notes.at("autoscaling.alpha.kubernetes.io/current-metrics").as_string()),
            R"([{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":48,"currentAverageValue":"159m"}}])");
  EXPECT_TRUE(notes.contains("autoscaling.alpha.kubernetes.io/conditions"));
  EXPECT_EQ(
      std::string(notes.at("autoscaling.alpha.kubernetes.io/behavior").as_string()),
      R"({"ScaleUp":{"StabilizationWindowSeconds":0,"SelectPolicy":"Max","Policies":[{"Type":"Pods","Value":4,"PeriodSeconds":15}]}})");
  EXPECT_EQ(to_text(convert(v1(), v2(), first)), to_text(second)) << "nothing is lost, and the user's own annotation stays";
}

TEST(Convert, leaves_out_annotations_that_cannot_be_read) {
  for (const char* note : {"{", "5", R"([{"type":"Pods","pods":{"metricName":5}}])"}) {
    json::value first = canonical(
        v1(),
        R"({"metadata":{"name":"a"},"spec":{"maxReplicas":3,"scaleTargetRef":{"kind":"D","name":"d"},"targetCPUUtilizationPercentage":5}})");
    for (const char* name : {"metrics", "current-metrics", "conditions", "behavior"}) {
      json::value& annotations = make(first, "metadata.annotations");
      if (!annotations.is_object()) annotations.emplace_object();
      annotations.get_object()["autoscaling.alpha.kubernetes.io/" + std::string(name)] = note;
    }
    json::value second = convert(v1(), v2(), first);
    EXPECT_EQ(get_array(second, "spec.metrics").size(), 1u) << note;
    EXPECT_FALSE(find(second, "metadata.annotations")) << note;
  }
}

TEST(Convert, fields_are_held_in_the_version_they_were_written_in) {
  json::value first = canonical(
      v1(),
      R"({"metadata":{"name":"a"},"spec":{"maxReplicas":3,"minReplicas":1,"scaleTargetRef":{"kind":"D","name":"d"},"targetCPUUtilizationPercentage":50}})");
  json::value live = *server_side_apply(v1(), nullptr, first, {"alice"}, kNow);
  EXPECT_EQ(get_string(get_array(live, "metadata.managedFields")[0], "apiVersion"), "autoscaling/v1");
  json::value seen = convert(v1(), v2(), live);
  json::value mine = MUST(parse_json(
      R"({"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"a"},"spec":{"maxReplicas":7}})"));
  auto refused = server_side_apply(v2(), seen, mine, {"bob"}, kNow);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text(), "Apply failed with 1 conflict: conflict with \"alice\": .spec.maxReplicas");
  json::value taken = *server_side_apply(v2(), seen, mine, {"bob", "", true}, kNow);
  const json::array& entries = get_array(taken, "metadata.managedFields");
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(get_string(entries[0], "apiVersion"), "autoscaling/v1");
  EXPECT_FALSE(find_keys(entries[0], {"fieldsV1", "f:spec", "f:maxReplicas"})) << "it is bob's now";
  EXPECT_TRUE(find_keys(entries[0], {"fieldsV1", "f:spec", "f:minReplicas"}));

  json::value again = *server_side_apply(
      v2(), seen,
      MUST(parse_json(
          R"({"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"a"},"spec":{"maxReplicas":3,"scaleTargetRef":{"kind":"D","name":"d"}}})")),
      {"alice"}, kNow);
  EXPECT_FALSE(find(again, "spec.minReplicas")) << "who applies is one in whichever version: what is left out goes";
  EXPECT_EQ(get_array(again, "metadata.managedFields").size(), 1u);
}

// A kind in two versions that differ in nothing else.
struct TwoVersions {
  Kind second_kind = kPod;
  KindInfo first, second;

  static KindInfo of(const Kind& kind, const KindInfo& like, const KindInfo& stored, const KindInfo& next) {
    return {kind,        like.list_kind, like.singular, like.short_names, like.categories, like.verbs,         like.names,
            like.traits, like.type_,     nullptr,       &stored,          &next,           like.subresources_, like.columns_};
  }
  TwoVersions() : first(of(kPod, catalog().of(kPod), first, second)), second(of(second_kind, catalog().of(kPod), first, first)) {
    second_kind.version = "v2";
  }
};

// Of a list's item that is left out, what others have changed in it goes too, in whichever version they have done so. Source:
// structured-merge-diff, merge/update.go, addBackOwnedItemsForVersion.
TEST(Convert, an_item_that_is_left_out_goes_with_its_parts_in_another_version) {
  const TwoVersions kinds;
  const KindInfo &first = kinds.first, &second = kinds.second;
  auto applied = [](const char* version, const char* containers) {
    return MUST(parse_json(R"({"apiVersion":")" + std::string(version) +
                           R"(","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":)" + containers + "}}"));
  };
  auto held = [](const json::value& object, std::string_view manager) {
    for (const json::value& entry : get_array(object, "metadata.managedFields"))
      if (get_string(entry, "manager") == manager) return to_text(*find(entry, "fieldsV1"));
    return std::string();
  };
  const char* both = R"([{"name":"a","image":"1"},{"name":"b","image":"1"}])";
  const json::value live = *server_side_apply(first, nullptr, applied("v1", both), {"me"}, kNow);
  json::value seen = convert(first, second, live), edited = seen;
  for (json::value& container : edited.at("spec").at("containers").as_array()) container.as_object()["tty"] = true;
  edited.at("spec").as_object()["hostname"] = "h";
  track_update(second, seen, edited, {"editor"}, kNow);
  EXPECT_EQ(
      held(edited, "editor"),
      R"({"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{"f:tty":{}},"k:{\"name\":\"b\"}":{"f:tty":{}}},"f:hostname":{}}})");
  const json::value one = applied("v1", R"([{"name":"a","image":"1"}])");
  json::value less = *server_side_apply(first, convert(second, first, edited), one, {"me"}, kNow);
  ASSERT_EQ(get_array(less, "spec.containers").size(), 1u);
  EXPECT_EQ(get_string(get_array(less, "spec.containers")[0], "name"), "a");
  EXPECT_TRUE(get_bool(get_array(less, "spec.containers")[0], "tty"));
  EXPECT_EQ(held(less, "editor"), R"({"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{"f:tty":{}}},"f:hostname":{}}})");

  json::value shared = *server_side_apply(second, seen, applied("v2", R"([{"name":"b"}])"), {"other"}, kNow);
  json::value kept = *server_side_apply(first, convert(second, first, shared), one, {"me"}, kNow);
  EXPECT_EQ(get_array(kept, "spec.containers").size(), 2u) << "who applies an item holds it";
  EXPECT_EQ(held(kept, "other"), held(shared, "other"));
}

}  // namespace
}  // namespace coracle::schema
