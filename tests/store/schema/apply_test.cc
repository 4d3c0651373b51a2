// SPDX-License-Identifier: Apache-2.0
// Server-side apply and managed fields: ownership, conflicts, and the removal of fields that are left out.
#include "store/schema/apply.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "store/schema/convert.h"
#include "store/schema/field_set.h"
#include "tests/counted_memory.h"
#include "tests/store/schema/prepared.h"

namespace coracle::schema {
namespace {

const json::value kNone;

json::value parsed(std::string_view text) { return MUST(parse_json(text)); }

std::string spec_of(const json::value& object) { return to_text(*find(object, "spec")); }

std::string fields_of_manager(const json::value& object, std::string_view manager) {
  for (const json::value& entry : get_array(object, "metadata.managedFields")) {
    if (get_string(entry, "manager") == manager)
      return std::string(get_string(entry, "operation")) + to_text(*find(entry, "fieldsV1"));
  }
  return "";
}

TEST(Apply, creates_and_records_what_was_applied) {
  const KindInfo& info = catalog().of(kDeployment);
  json::value applied =
      parsed(R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","labels":{"a":"b"}},"spec":{"replicas":1,
    "selector":{"matchLabels":{"a":"b"}},"template":{"spec":{"containers":[{"name":"c","image":"i","ports":[{"containerPort":80}]}]}}}})");
  auto created = server_side_apply(info, kNone, applied, {"me"}, kNow);
  ASSERT_TRUE(created) << created.error().text();
  EXPECT_EQ(
      fields_of_manager(*created, "me"),
      R"(Apply{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:replicas":{},"f:selector":{},"f:template":{"f:spec":{"f:containers":)"
      R"({"k:{\"name\":\"c\"}":{".":{},"f:image":{},"f:name":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":)"
      R"({".":{},"f:containerPort":{}}}}}}}}})");
  auto again = server_side_apply(info, *created, applied, {"me"}, kNow + std::chrono::hours(1));
  ASSERT_TRUE(again);
  EXPECT_EQ(to_text(*again), to_text(*created)) << "applying the same again changes nothing";
}

// The old object is only read, and of the new one's memory an update takes little more than the entries need. Boost's == would
// copy both objects, once for each level of what it compares.
TEST(Apply, an_update_is_recorded_without_copies_of_the_object) {
  const KindInfo& info = catalog().of(kPod);
  json::value made = parsed(R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]},
    "status":{"message":"a","conditions":[{"type":"Ready","status":"False"},{"type":"PodScheduled","status":"True"}]}})");
  for (int i = 0; i < 100; i++) make(made, "metadata.labels.l" + std::to_string(i)) = "v";
  track_update(info, kNone, made, {"maker"}, kNow);
  CountedMemory of_old, of_new, of_entries;
  const json::value old(made, &of_old), entries(*find(made, "metadata.managedFields"), &of_entries);
  json::value object(made, &of_new);
  make(object, "status.message") = "b";
  make(object, "status.conditions").get_array()[0].get_object()["status"] = "True";
  const size_t taken_of_old = of_old.taken(), taken_of_new = of_new.taken();
  track_update(info, old, object, {"other", "status"}, kNow + std::chrono::hours(1));
  EXPECT_EQ(fields_of_manager(object, "other"),
            R"(Update{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{"f:status":{}}},"f:message":{}}})");
  EXPECT_EQ(of_old.taken(), taken_of_old);
  EXPECT_LT(of_new.taken() - taken_of_new, 2 * of_entries.taken());
  keep_times_of_unchanged(old, object);
  EXPECT_EQ(of_old.taken(), taken_of_old);
  EXPECT_LT(of_new.taken() - taken_of_new, 2 * of_entries.taken());
}

TEST(Apply, merges_lists_by_their_keys_and_removes_what_is_left_out) {
  const KindInfo& info = catalog().of(kPod);
  json::value live = *server_side_apply(info, kNone, parsed(R"({"metadata":{"labels":{"a":"1","b":"2"}},"spec":{"containers":[
    {"name":"a","image":"1","livenessProbe":{"exec":{"command":["x"]}}},{"name":"b","image":"2"}]}})"),
                                        {"me"}, kNow);
  live.at("spec").at("containers").at(0).at("livenessProbe").as_object()["periodSeconds"] = 10;  // a default value
  live.at("metadata").at("labels").as_object()["other"] = "3";
  auto next = server_side_apply(
      info, live, parsed(R"({"metadata":{"labels":{"a":"1"}},"spec":{"containers":[{"name":"a","image":"3"}]}})"), {"me"}, kNow);
  ASSERT_TRUE(next) << next.error().text();
  EXPECT_EQ(spec_of(*next), R"({"containers":[{"name":"a","image":"3"}]})");
  EXPECT_EQ(to_text(*find(*next, "metadata.labels")), R"({"a":"1","other":"3"})");
}

TEST(Apply, a_claim_that_a_volume_is_kept_for_keeps_what_binding_added) {  // +structType=granular
  const KindInfo& info = catalog().of(kPersistentVolume);
  json::value applied = parsed(R"({"metadata":{"name":"v"},"spec":{"claimRef":{"namespace":"d","name":"c"}}})");
  json::value live = *server_side_apply(info, kNone, applied, {"me"}, kNow);
  EXPECT_EQ(fields_of_manager(live, "me"), R"(Apply{"f:spec":{"f:claimRef":{"f:name":{},"f:namespace":{}}}})");
  live.at("spec").at("claimRef").as_object()["uid"] = "u";
  auto again = server_side_apply(info, live, applied, {"me"}, kNow);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(spec_of(*again), R"({"claimRef":{"namespace":"d","name":"c","uid":"u"}})");
}

// Variables may name those before them, and init containers run one after the other. Source: structured-merge-diff,
// typed/merge_test.go.
TEST(Apply, lists_get_the_order_in_which_they_are_applied) {
  struct Row {
    const char *live, *applied, *want;
  };
  const Field& finalizers = *catalog().of(kPod).type().field("metadata")->type().field("finalizers");
  for (const Row& row :
       {Row{R"(["a","c"])", R"(["a","b","c"])", R"(["a","b","c"])"}, Row{R"(["a","b"])", R"(["b","a"])", R"(["b","a"])"},
        Row{R"(["a","x","b"])", R"(["b","a"])", R"(["x","b","a"])"},
        Row{R"(["x","a","y","b","z"])", R"(["a","b"])", R"(["x","a","y","b","z"])"},
        Row{R"(["x","y"])", R"(["a","b"])", R"(["x","y","a","b"])"},
        Row{R"(["a","b","c"])", R"(["c","n","a"])", R"(["b","c","n","a"])"}, Row{R"([])", R"(["b","a"])", R"(["b","a"])"},
        Row{R"(["a","b"])", R"([])", R"(["a","b"])"}, Row{R"(["a","a","b"])", R"(["b","a"])", R"(["b","a"])"},
        Row{R"(["x","a","x"])", R"(["a"])", R"(["x","a","x"])"}, Row{R"(["a","a","x"])", R"(["a","n"])", R"(["a","n","x"])"}}) {
    EXPECT_EQ(to_text(laid_over(Place::of_field(finalizers), parsed(row.live), parsed(row.applied))), row.want)
        << row.live << " " << row.applied;
  }
  const KindInfo& info = catalog().of(kPod);
  json::value live = *server_side_apply(
      info, kNone, parsed(R"({"spec":{"initContainers":[{"name":"a","image":"1"},{"name":"c","image":"1"}]}})"), {"me"}, kNow);
  auto next = server_side_apply(
      info, live,
      parsed(R"({"spec":{"initContainers":[{"name":"a","image":"1"},{"name":"b","image":"1"},{"name":"c","image":"2"}]}})"),
      {"me"}, kNow);
  ASSERT_TRUE(next) << next.error().text();
  EXPECT_EQ(spec_of(*next), R"({"initContainers":[{"name":"a","image":"1"},{"name":"b","image":"1"},{"name":"c","image":"2"}]})");
}

// imagePullSecrets merge by name, but a LocalObjectReference is atomic; so are owners.
TEST(Apply, atomic_items_of_a_list_are_leaves) {
  const KindInfo& info = catalog().of(kPod);
  json::value applied = parsed(R"({"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"u"}]},
    "spec":{"imagePullSecrets":[{"name":"a"},{"name":"b"}]}})");
  json::value live = *server_side_apply(info, kNone, applied, {"me"}, kNow);
  EXPECT_EQ(fields_of_manager(live, "me"),
            R"(Apply{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"u\"}":{}}},)"
            R"("f:spec":{"f:imagePullSecrets":{"k:{\"name\":\"a\"}":{},"k:{\"name\":\"b\"}":{}}}})");
  auto other =
      server_side_apply(info, live, parsed(R"({"spec":{"imagePullSecrets":[{"name":"b"},{"name":"c"}]}})"), {"other"}, kNow);
  ASSERT_TRUE(other) << other.error().text();
  auto less = server_side_apply(info, *other, parsed(R"({"spec":{"imagePullSecrets":[{"name":"a"}]}})"), {"me"}, kNow);
  ASSERT_TRUE(less) << less.error().text();
  EXPECT_EQ(spec_of(*less), R"({"imagePullSecrets":[{"name":"a"},{"name":"b"},{"name":"c"}]})");
}

// As kubectl's client-side apply leaves it: Kubernetes stores a variable that is there twice.
TEST(Apply, items_that_are_the_same_one_are_held_as_a_whole) {
  const KindInfo& info = catalog().of(kPod);
  json::value live = parsed(R"({"spec":{"containers":[{"name":"c","image":"i","livenessProbe":{"exec":{"command":["x"]}},
    "env":[{"name":"A","value":"1"},{"name":"B","value":"2"},{"name":"A","value":"3"}]}]}})");
  track_update(info, kNone, live, {"me"}, kNow);
  EXPECT_EQ(fields_of_manager(live, "me"),
            R"(Update{"f:spec":{"f:containers":{".":{},"k:{\"name\":\"c\"}":{".":{},"f:env":{".":{},"k:{\"name\":\"A\"}":{},)"
            R"("k:{\"name\":\"B\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:livenessProbe":{".":{},"f:exec":{".":{},)"
            R"("f:command":{}}},"f:name":{}}}}})");
}

// As in {"securityContext": {}}, which charts write.
TEST(Apply, what_is_empty_conflicts_with_nobody) {
  const KindInfo& info = catalog().of(kPod);
  json::value live =
      parsed(R"({"metadata":{"labels":{"a":"1"}},"spec":{"securityContext":{"runAsUser":1},"tolerations":[{"key":"k"}],
    "volumes":[{"name":"v","emptyDir":{}}]}})");
  track_update(info, kNone, live, {"other"}, kNow);
  EXPECT_EQ(fields_of_manager(live, "other"),
            R"(Update{"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{"f:securityContext":{".":{},"f:runAsUser":{}},)"
            R"("f:tolerations":{},"f:volumes":{".":{},"k:{\"name\":\"v\"}":{".":{},"f:emptyDir":{},"f:name":{}}}}})");
  auto applied = server_side_apply(info, live, parsed(R"({"metadata":{"labels":{}},"spec":{"securityContext":{},"volumes":[]}})"),
                                   {"me"}, kNow);
  ASSERT_TRUE(applied) << applied.error().text();
  EXPECT_EQ(spec_of(*applied), spec_of(live));
  EXPECT_EQ(fields_of_manager(*applied, "me"), R"(Apply{"f:metadata":{"f:labels":{}},"f:spec":{"f:securityContext":{}}})");
  EXPECT_FALSE(server_side_apply(info, live, parsed(R"({"spec":{"tolerations":[]}})"), {"me"}, kNow)) << "it is atomic";
}

TEST(Apply, refuses_to_overwrite_others_unless_forced) {
  const KindInfo& info = catalog().of(kDeployment);
  json::value live = *server_side_apply(info, kNone, parsed(R"({"spec":{"replicas":1}})"), {"first"}, kNow);
  json::value wanted = parsed(R"({"spec":{"replicas":2}})");
  auto refused = server_side_apply(info, live, wanted, {"second"}, kNow);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::conflict);
  EXPECT_EQ(refused.error().text(), "Apply failed with 1 conflict: conflict with \"first\": .spec.replicas");
  EXPECT_EQ(refused.error().details()->causes[0].field, ".spec.replicas");
  auto shared = server_side_apply(info, live, parsed(R"({"spec":{"replicas":1}})"), {"second"}, kNow);
  ASSERT_TRUE(shared) << "the same value is no conflict";
  EXPECT_EQ(fields_of_manager(*shared, "first"), fields_of_manager(*shared, "second"));
  auto forced = server_side_apply(info, live, wanted, {"second", "", true}, kNow);
  ASSERT_TRUE(forced);
  EXPECT_EQ(get_int(*forced, "spec.replicas"), 2);
  EXPECT_EQ(fields_of_manager(*forced, "first"), "");
}

std::string time_of_manager(const json::value& object, std::string_view manager) {
  for (const json::value& entry : get_array(object, "metadata.managedFields"))
    if (get_string(entry, "manager") == manager) return std::string(get_string(entry, "time"));
  return "";
}

// Of a component, or of a client that has reset the entries: what it has set may be meant.
TEST(Apply, what_nobody_holds_is_held_by_what_came_before) {
  const KindInfo& info = catalog().of(kDeployment);
  json::value live =
      parsed(R"({"metadata":{"name":"d","labels":{"a":"1"}},"spec":{"replicas":1,"paused":true},"status":{"replicas":1}})");
  auto refused = server_side_apply(info, live, parsed(R"({"spec":{"replicas":2}})"), {"me"}, kNow);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text(),
            "Apply failed with 1 conflict: conflict with \"before-first-apply\" using apps/v1: .spec.replicas");
  auto same = server_side_apply(info, live, parsed(R"({"metadata":{"labels":{"b":"2"}},"spec":{"replicas":1}})"), {"me"}, kNow);
  ASSERT_TRUE(same) << same.error().text();
  EXPECT_EQ(fields_of_manager(*same, "before-first-apply"),
            R"(Update{"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{"f:paused":{},"f:replicas":{}}})");
  EXPECT_EQ(time_of_manager(*same, "before-first-apply"), format_time(kNow));
  auto left_out = server_side_apply(info, *same, parsed(R"({"spec":{}})"), {"me"}, kNow);
  ASSERT_TRUE(left_out) << left_out.error().text();
  EXPECT_EQ(get_int(*left_out, "spec.replicas"), 1) << "the one before holds it too";
  auto forced = server_side_apply(info, live, parsed(R"({"spec":{"replicas":2}})"), {"me", "", true, {}}, kNow);
  ASSERT_TRUE(forced) << forced.error().text();
  EXPECT_EQ(fields_of_manager(*forced, "before-first-apply"),
            R"(Update{"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{"f:paused":{}}})");
  auto scaled = server_side_apply(info, live, parsed(R"({"spec":{"replicas":2}})"), {"me", "scale", true, {}}, kNow);
  ASSERT_TRUE(scaled) << scaled.error().text();
  EXPECT_EQ(fields_of_manager(*scaled, "before-first-apply"), "") << "a scale has no other field";
  auto judged = server_side_apply(info, live, parsed(R"({"status":{"replicas":2}})"), {"me", "status", false, {}}, kNow);
  EXPECT_EQ(judged.error().text(),
            "Apply failed with 1 conflict: conflict with \"before-first-apply\" with subresource \"status\" using apps/v1: "
            ".status.replicas");
}

TEST(Apply, an_entry_has_the_time_of_the_last_change) {
  const KindInfo& info = catalog().of(kDeployment);
  json::value live = *server_side_apply(info, kNone, parsed(R"({"spec":{"replicas":1}})"), {"me"}, kNow);
  const WallTime later = kNow + std::chrono::hours(1);
  EXPECT_EQ(time_of_manager(*server_side_apply(info, live, parsed(R"({"spec":{"replicas":1}})"), {"me"}, later), "me"),
            format_time(kNow));
  EXPECT_EQ(time_of_manager(*server_side_apply(info, live, parsed(R"({"spec":{"replicas":2}})"), {"me"}, later), "me"),
            format_time(later))
      << "another value of the same field";
  json::value shared =
      *server_side_apply(info, live, parsed(R"({"metadata":{"labels":{"a":"b"}},"spec":{"replicas":1}})"), {"other"}, later);
  EXPECT_EQ(time_of_manager(shared, "other"), format_time(later));
  json::value both =
      *server_side_apply(info, shared, parsed(R"({"metadata":{"labels":{"a":"b"}},"spec":{"replicas":1}})"), {"me"}, later);
  EXPECT_EQ(fields_of_manager(both, "me"), R"(Apply{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:replicas":{}}})");
  EXPECT_EQ(time_of_manager(both, "me"), format_time(kNow)) << "it holds more, but has changed nothing";
  json::value third = *server_side_apply(info, both, parsed(R"({"spec":{"replicas":1}})"), {"third"}, later);
  EXPECT_EQ(fields_of_manager(third, "third"), R"(Apply{"f:spec":{"f:replicas":{}}})");
  EXPECT_EQ(time_of_manager(third, "third"), "") << "nor has who joins";
}

TEST(Apply, says_every_conflict_with_its_holder) {
  const KindInfo& info = catalog().of(kDeployment);
  std::string_view one =
      R"({"metadata":{"finalizers":["a/b"]},"spec":{"replicas":1,"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}}})";
  json::value live = *server_side_apply(info, kNone, parsed(one), {"first"}, kNow);
  json::value edited = live;
  edited.at("spec").as_object()["paused"] = true;
  track_update(info, live, edited, {"editor"}, kNow);
  auto refused = server_side_apply(
      info, edited,
      parsed(R"({"spec":{"paused":false,"replicas":2,"template":{"spec":{"containers":[{"name":"c","image":"j"}]}}}})"),
      {"second"}, kNow);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text(),
            "Apply failed with 3 conflicts: conflicts with \"editor\" using apps/v1 at 2026-01-02T00:00:00Z:\n- .spec.paused\n"
            "conflicts with \"first\":\n- .spec.replicas\n- .spec.template.spec.containers[name=\"c\"].image");
  EXPECT_EQ(refused.error().details()->causes[1].message, "conflict with \"first\"");
}

TEST(Apply, a_status_is_applied_alone_and_an_object_without_it) {
  const KindInfo& info = catalog().of(kDeployment);
  json::value both = parsed(R"({"metadata":{"labels":{"a":"b"}},"spec":{"replicas":9},"status":{"replicas":3}})");
  json::value live = *server_side_apply(info, kNone, parsed(R"({"spec":{"replicas":1}})"), {"first"}, kNow);
  auto judged = server_side_apply(info, live, both, {"judge", "status"}, kNow);
  ASSERT_TRUE(judged) << judged.error().text();
  EXPECT_EQ(get_int(*judged, "spec.replicas"), 1);
  EXPECT_EQ(fields_of_manager(*judged, "judge"), R"(Apply{"f:status":{"f:replicas":{}}})");
  auto second = server_side_apply(info, kNone, both, {"second"}, kNow);
  EXPECT_EQ(fields_of_manager(*second, "second"), R"(Apply{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:replicas":{}}})");
}

TEST(Apply, an_object_keeps_its_name_when_its_labels_go) {
  const KindInfo& info = catalog().of(kConfigMap);
  json::value live =
      *server_side_apply(info, kNone, parsed(R"({"metadata":{"name":"x","labels":{"a":"b"}},"data":{"k":"v"}})"), {"me"}, kNow);
  auto less = server_side_apply(info, live, parsed(R"({"metadata":{"name":"x"}})"), {"me"}, kNow);
  ASSERT_TRUE(less) << less.error().text();
  EXPECT_EQ(get_string(*less, "metadata.name"), "x");
  EXPECT_EQ(find(*less, "metadata.labels"), nullptr);
  EXPECT_EQ(find(*less, "data"), nullptr);
}

TEST(Apply, what_another_holds_stays) {
  const KindInfo& info = catalog().of(kDeployment);
  json::value live = *server_side_apply(info, kNone, parsed(R"({"spec":{"replicas":1,"paused":true}})"), {"first"}, kNow);
  live = *server_side_apply(info, live, parsed(R"({"spec":{"replicas":1}})"), {"second"}, kNow);
  auto less = server_side_apply(info, live, parsed(R"({"spec":{}})"), {"first"}, kNow);
  ASSERT_TRUE(less);
  EXPECT_EQ(spec_of(*less), R"({"replicas":1})");
}

TEST(Apply, refuses_managed_fields) {
  auto refused =
      server_side_apply(catalog().of(kPod), kNone, parsed(R"({"metadata":{"managedFields":[{"manager":"x"}]}})"), {"me"}, kNow);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text(), "metadata.managedFields must be nil");
  EXPECT_FALSE(server_side_apply(catalog().of(kPod), kNone, parsed(R"({"metadata":{"managedFields":[]}})"), {"me"}, kNow));
  EXPECT_TRUE(server_side_apply(catalog().of(kPod), kNone, parsed(R"({"metadata":{"managedFields":null}})"), {"me"}, kNow));
}

TEST(Apply, refuses_another_version) {
  auto refused = server_side_apply(catalog().of(kDeployment), kNone, parsed(R"({"apiVersion":"apps/v1beta1"})"), {"me"}, kNow);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::bad_request);
  EXPECT_EQ(refused.error().text(),
            "Incorrect version specified in apply patch. Specified patch version: apps/v1beta1, expected: apps/v1");
}

TEST(Apply, updates_take_over_what_they_change) {
  const KindInfo& info = catalog().of(kDeployment);
  json::value live = *server_side_apply(info, kNone, parsed(R"({"spec":{"replicas":1,"paused":true}})"), {"applier"}, kNow);
  json::value scaled = live;
  scaled.at("spec").at("replicas") = 5;
  track_update(info, live, scaled, {"scaler"}, kNow);
  EXPECT_EQ(fields_of_manager(scaled, "applier"), R"(Apply{"f:spec":{"f:paused":{}}})");
  EXPECT_EQ(fields_of_manager(scaled, "scaler"), R"(Update{"f:spec":{"f:replicas":{}}})");
  EXPECT_EQ(server_side_apply(info, scaled, parsed(R"({"spec":{"replicas":1}})"), {"applier"}, kNow).error().code(),
            Code::conflict);
  json::value removed = scaled;
  removed.at("spec").as_object().erase("paused");
  track_update(info, scaled, removed, {"scaler"}, kNow);
  EXPECT_EQ(fields_of_manager(removed, "applier"), "");
  json::value same = removed;
  track_update(info, removed, same, {"scaler"}, kNow + std::chrono::hours(1));
  EXPECT_EQ(to_text(same), to_text(removed)) << "a write that changes nothing leaves no trace";
}

TEST(Apply, a_create_is_recorded_with_all_its_fields) {
  json::value map =
      parsed(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","labels":{"a":"b"}},"data":{"k":"v"}})");
  track_update(catalog().of(kConfigMap), kNone, map, {"kubectl-create"}, kNow);
  EXPECT_EQ(fields_of_manager(map, "kubectl-create"),
            R"(Update{"f:data":{".":{},"f:k":{}},"f:metadata":{"f:labels":{".":{},"f:a":{}}}})");
}

TEST(Apply, a_body_can_reset_the_record) {
  json::value old = *server_side_apply(catalog().of(kDeployment), kNone, parsed(R"({"spec":{"replicas":1}})"), {"me"}, kNow);
  json::value next = parsed(R"({"metadata":{"managedFields":[{}]},"spec":{"replicas":1}})");
  track_update(catalog().of(kDeployment), old, next, {"me"}, kNow);
  EXPECT_EQ(find(next, "metadata.managedFields"), nullptr);
  json::value judged = parsed(R"({"metadata":{"managedFields":[]},"spec":{"replicas":1},"status":{"replicas":1}})");
  track_update(catalog().of(kDeployment), old, judged, {"judge", "status"}, kNow);
  EXPECT_EQ(fields_of_manager(judged, "me"), fields_of_manager(old, "me")) << "but not by its status";
  json::value more = parsed(R"({"metadata":{"managedFields":[{},{}]},"spec":{"replicas":1}})");
  track_update(catalog().of(kDeployment), old, more, {"me"}, kNow);
  EXPECT_EQ(fields_of_manager(more, "me"), fields_of_manager(old, "me")) << "one empty entry resets, two are nonsense";
  json::value holder_of_nothing = parsed(
      R"({"metadata":{"managedFields":[{"manager":"x","operation":"Update","apiVersion":"apps/v1","fieldsType":"FieldsV1"}]},"spec":{"replicas":1}})");
  track_update(catalog().of(kDeployment), old, holder_of_nothing, {"me"}, kNow);
  EXPECT_EQ(find(holder_of_nothing, "metadata.managedFields"), nullptr) << "who holds nothing is not kept";
}

// Source: apimachinery managedfields, skipnonapplied.go.
TEST(Apply, a_record_begins_with_the_object_or_the_first_apply) {
  const KindInfo& info = catalog().of(kDeployment);
  const json::value old = parsed(R"({"metadata":{"name":"x","uid":"u"},"spec":{"replicas":1}})");
  json::value next = parsed(R"({"metadata":{"name":"x","uid":"u"},"spec":{"replicas":2}})"), judged = next;
  track_update(info, old, next, {"editor"}, kNow);
  EXPECT_EQ(find(next, "metadata.managedFields"), nullptr);
  track_update(info, old, judged, {"judge", "status"}, kNow);
  EXPECT_EQ(find(judged, "metadata.managedFields"), nullptr);
  auto refused = server_side_apply(info, next, parsed(R"({"spec":{"replicas":3}})"), {"me"}, kNow);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text().find("Apply failed with 1 conflict: conflict with \"before-first-apply\""), 0u);
  json::value applied = *server_side_apply(info, next, parsed(R"({"spec":{"replicas":2}})"), {"me"}, kNow);
  json::value edited = applied;
  edited.at("spec").at("replicas") = 4;
  track_update(info, applied, edited, {"editor"}, kNow);
  EXPECT_EQ(fields_of_manager(edited, "editor"), R"(Update{"f:spec":{"f:replicas":{}}})");
  json::value told = next;
  make(told, "metadata.managedFields") = *find(applied, "metadata.managedFields");
  track_update(info, old, told, {"editor"}, kNow);
  EXPECT_EQ(fields_of_manager(told, "editor"), R"(Update{"f:spec":{"f:replicas":{}}})") << "its body brings a record";
  for (const char* none : {"[]", "[{}]"}) {
    json::value made = old;
    make(made, "metadata.managedFields") = parsed(none);
    track_update(info, kNone, made, {"maker"}, kNow);
    EXPECT_EQ(fields_of_manager(made, "maker"), R"(Update{"f:spec":{"f:replicas":{}}})") << "a create has nothing to reset";
  }
}

TEST(Apply, a_body_can_hand_fields_to_another_holder) {
  const KindInfo& info = catalog().of(kConfigMap);
  json::value old = parsed(R"({"metadata":{"name":"x"},"data":{"keep":"1","drop":"1"}})");
  track_update(info, kNone, old, {"kubectl-client-side-apply"}, kNow);
  json::value next = old;
  next.at("metadata").at("managedFields").at(0).as_object()["manager"] = "kubectl";
  next.at("metadata").at("managedFields").at(0).as_object()["operation"] = "Apply";
  track_update(info, old, next, {"upgrader"}, kNow);
  EXPECT_EQ(fields_of_manager(next, "kubectl"), R"(Apply{"f:data":{".":{},"f:drop":{},"f:keep":{}}})");
  auto applied = server_side_apply(info, next, parsed(R"({"data":{"keep":"1"}})"), {"kubectl"}, kNow);
  ASSERT_TRUE(applied) << applied.error().text();
  EXPECT_EQ(to_text(*find(*applied, "data")), R"({"keep":"1"})");
  json::value nonsense = old;
  nonsense.at("metadata").at("managedFields").at(0).as_object()["operation"] = "Guess";
  track_update(info, old, nonsense, {"upgrader"}, kNow);
  EXPECT_EQ(to_text(nonsense), to_text(old));
}

TEST(Apply, of_two_entries_with_one_holder_the_later_counts) {
  const KindInfo& info = catalog().of(kConfigMap);
  json::value old = *server_side_apply(info, kNone, parsed(R"({"metadata":{"name":"x"},"data":{"a":"1"}})"), {"one"}, kNow);
  old = *server_side_apply(info, old, parsed(R"({"data":{"b":"1"}})"), {"two"}, kNow);
  json::value next = old;
  for (json::value& entry : next.at("metadata").at("managedFields").as_array()) entry.as_object()["manager"] = "both";
  track_update(info, old, next, {"renamer"}, kNow);
  EXPECT_EQ(get_array(next, "metadata.managedFields").size(), 1u);
  EXPECT_EQ(fields_of_manager(next, "both"), R"(Apply{"f:data":{"f:b":{}}})");
}

TEST(Apply, many_writers_become_one_old_one) {
  const KindInfo& info = catalog().of(kConfigMap);
  json::value map = parsed(R"({"metadata":{"name":"x"},"data":{}})");
  track_update(info, kNone, map, {"maker"}, kNow - std::chrono::seconds(1));
  for (int i = 0; i < 30; ++i) {
    json::value next = map;
    next.at("data").as_object()["k" + std::to_string(i)] = "v";
    track_update(info, map, next, {"w" + std::to_string(i)}, kNow + std::chrono::seconds(i));
    map = std::move(next);
  }
  EXPECT_EQ(get_array(map, "metadata.managedFields").size(), 10u);
  EXPECT_NE(fields_of_manager(map, "ancient-changes").find("f:k0"), std::string::npos);
}

// A device without a clock of its own starts in the past.
TEST(Apply, old_writers_stay_one_where_the_clock_goes_back) {
  const KindInfo& info = catalog().of(kConfigMap);
  json::value map = parsed(R"({"metadata":{"name":"x"},"data":{}})");
  track_update(info, kNone, map, {"maker"}, kNow - std::chrono::seconds(1));
  for (int i = 0; i < 40; ++i) {
    json::value next = map;
    next.at("data").as_object()["k" + std::to_string(i)] = "v";
    for (int taken = 13; i == 19 && taken < 18; ++taken) next.at("data").as_object()["k" + std::to_string(taken)] = "w";
    track_update(info, map, next, {"w" + std::to_string(i)}, kNow + std::chrono::seconds(i < 20 ? i : i - 1000));
    map = std::move(next);
    std::set<std::string> managers;
    size_t fields = 0;
    for (const json::value& entry : get_array(map, "metadata.managedFields")) {
      managers.emplace(get_string(entry, "manager"));
      for (const auto& field : get_object(entry, "fieldsV1.f:data")) fields += field.key() != ".";
    }
    EXPECT_EQ(managers.size(), get_array(map, "metadata.managedFields").size()) << i;
    EXPECT_LE(managers.size(), 10u) << i;
    EXPECT_EQ(fields, size_t(i) + 1) << "each field has an owner";
  }
}

// Each entry names the fields of its version.
TEST(Apply, old_writers_in_two_versions_become_one_in_each) {
  const KindInfo* before = catalog().by_kind("autoscaling/v1", "HorizontalPodAutoscaler");
  const KindInfo& other = *catalog().by_kind("autoscaling/v2", "HorizontalPodAutoscaler");
  const KindInfo& first = *before;
  json::value scaler = MUST(decode(first.type(), parsed(R"({"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler",
      "metadata":{"name":"h","annotations":{"z":"z"}},
      "spec":{"maxReplicas":3,"scaleTargetRef":{"kind":"Deployment","name":"d"}}})")))
                           .value;
  track_update(first, kNone, scaler, {"maker"}, kNow - std::chrono::seconds(1));
  for (int i = 0; i < 30; ++i) {
    const KindInfo& info = i % 2 ? other : first;
    scaler = convert(*before, info, std::move(scaler));
    before = &info;
    json::value next = scaler;
    next.at("metadata").at("annotations").as_object()["a" + std::to_string(i)] = "v";
    track_update(info, scaler, next, {"w" + std::to_string(i)}, kNow + std::chrono::seconds(i));
    scaler = std::move(next);
  }
  EXPECT_EQ(get_array(scaler, "metadata.managedFields").size(), 10u);
  std::map<std::string, std::string> ancient;
  for (const json::value& entry : get_array(scaler, "metadata.managedFields"))
    if (get_string(entry, "manager") == "ancient-changes")
      ancient[std::string(get_string(entry, "apiVersion"))] += to_text(*find(entry, "fieldsV1.f:metadata.f:annotations"));
  ASSERT_EQ(ancient.size(), 2u);
  for (int i = 0; i < 22; ++i) {
    std::string name = "\"f:a" + std::to_string(i) + "\":{}";
    EXPECT_EQ(ancient["autoscaling/v1"].find(name) != std::string::npos, i % 2 == 0) << name;
    EXPECT_EQ(ancient["autoscaling/v2"].find(name) != std::string::npos, i % 2 == 1) << name;
  }
}

TEST(Apply, every_list_of_the_schema_merges_by_all_its_keys) {
  size_t lists = 0;
  for (const Type& type : all_types()) {
    for (const Field& field : type.fields()) {
      if (field.shape != Shape::list || field.list == ListKind::atomic) continue;
      if (field.list == ListKind::set && field.form != Form::string) continue;
      ++lists;
      std::string name = std::string(type.name()) + "." + std::string(field.name());
      for (std::string_view key : field.list_keys()) ASSERT_NE(field.type().field(key), nullptr) << name;
      Place place = Place::of_field(field);
      json::array items = two_items_of(field, {});
      EXPECT_EQ(laid_over(place, items, items), json::value(items)) << name << " is applied twice";
      EXPECT_EQ(laid_over(place, json::array{items[0]}, items), json::value(items)) << name << " gets one more";
      EXPECT_EQ(fields_of(place, items, Dots::no).size(), 2u) << name;
      EXPECT_TRUE(changed_fields(place, items, json::array{items[1], items[0]}).empty()) << name << " is only reordered";
      json::value less = items;
      prune(place, less, fields_of(place, items, Dots::no), fields_of(place, json::array{items[1]}, Dots::no), {});
      EXPECT_EQ(less, json::value(json::array{items[1]})) << name << " loses one";
    }
  }
  EXPECT_GT(lists, 60u);
}

TEST(Apply, what_stays_has_lost_nothing_even_if_items_are_repeated) {
  json::value pod = parsed(R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","env":[{"name":"A","value":"1"},
    {"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]}]}})");
  const Place root = Place::of(catalog().of(kPod).type());
  EXPECT_EQ(to_text(removed_fields(root, pod, pod)), "{}");
  EXPECT_EQ(to_text(changed_fields(root, pod, pod)), "{}");
  json::value other = pod;
  other.at("metadata").as_object()["labels"] = json::object{{"a", "b"}};
  EXPECT_EQ(to_text(removed_fields(root, pod, other)), "{}");
  EXPECT_EQ(to_text(changed_fields(root, pod, other)), R"({"f:metadata":{"f:labels":{".":{},"f:a":{}}}})");
  EXPECT_EQ(to_text(removed_fields(root, other, pod)), R"({"f:metadata":{"f:labels":{".":{},"f:a":{}}}})");
}

// Source: structured-merge-diff, merge/multiple_appliers_test.go, remove_one_with_dangling_subitem_keep_one.
TEST(Apply, an_item_that_is_left_out_goes_with_what_others_have_changed_in_it) {
  const KindInfo& info = catalog().of(kPod);
  json::value both = parsed(R"({"spec":{"containers":[{"name":"a","image":"1"},{"name":"b","image":"1"}]}})");
  json::value live = *server_side_apply(info, kNone, both, {"me"}, kNow);
  json::value edited = live;
  edited.at("spec").at("containers").at(1).as_object()["image"] = "2";
  edited.at("spec").at("containers").at(1).as_object()["tty"] = true;
  edited.at("spec").as_object()["hostname"] = "h";
  track_update(info, live, edited, {"editor"}, kNow);
  EXPECT_EQ(fields_of_manager(edited, "editor"),
            R"(Update{"f:spec":{"f:containers":{"k:{\"name\":\"b\"}":{"f:image":{},"f:tty":{}}},"f:hostname":{}}})");
  const json::value one = parsed(R"({"spec":{"containers":[{"name":"a","image":"1"}]}})");
  auto less = server_side_apply(info, edited, one, {"me"}, kNow);
  ASSERT_TRUE(less) << less.error().text();
  EXPECT_EQ(spec_of(*less), R"({"containers":[{"name":"a","image":"1"}],"hostname":"h"})");
  EXPECT_EQ(fields_of_manager(*less, "editor"), R"(Update{"f:spec":{"f:hostname":{}}})");

  json::value shared = *server_side_apply(info, live, parsed(R"({"spec":{"containers":[{"name":"b"}]}})"), {"other"}, kNow);
  auto kept = server_side_apply(info, shared, one, {"me"}, kNow);
  ASSERT_TRUE(kept) << kept.error().text();
  EXPECT_EQ(spec_of(*kept), R"({"containers":[{"name":"a","image":"1"},{"name":"b"}]})") << "who applies the item holds it";
  json::value probed = *server_side_apply(info, kNone, parsed(R"({"spec":{"securityContext":{"runAsUser":1}}})"), {"me"}, kNow);
  json::value grouped = probed;
  grouped.at("spec").at("securityContext").as_object()["runAsGroup"] = 2;
  track_update(info, probed, grouped, {"editor"}, kNow);
  auto field = server_side_apply(info, grouped, parsed("{}"), {"me"}, kNow);
  ASSERT_TRUE(field) << field.error().text();
  EXPECT_EQ(spec_of(*field), R"({"securityContext":{"runAsGroup":2}})") << "a field stays for what is in it";
}

// Source: structured-merge-diff, fieldpath/set_test.go and serialize.go.
TEST(Apply, a_set_loses_members_and_not_their_children) {
  struct Row {
    const char *left, *right, *want;
  };
  for (const Row& row : {
           Row{R"({"f:a":{},"f:b":{}})", R"({"f:b":{}})", R"({"f:a":{}})"},
           Row{R"({"f:m":{".":{},"f:a":{},"f:b":{}}})", R"({"f:m":{"f:a":{}}})", R"({"f:m":{".":{},"f:b":{}}})"},
           Row{R"({"f:m":{".":{},"f:a":{}}})", R"({"f:m":{"f:a":{}}})", R"({"f:m":{}})"},
           Row{R"({"f:m":{".":{},"f:a":{}}})", R"({"f:m":{".":{},"f:a":{}}})", "{}"},
           Row{R"({"f:m":{".":{},"f:a":{}}})", R"({"f:m":{}})", R"({"f:m":{"f:a":{}}})"},
           Row{R"({"f:m":{"f:a":{}}})", R"({"f:m":{}})", R"({"f:m":{"f:a":{}}})"},
           Row{R"({"f:m":{"f:a":{}}})", R"({"f:m":{"f:a":{}}})", "{}"},
           Row{R"({"f:m":{}})", R"({"f:m":{"f:a":{}}})", R"({"f:m":{}})"},
           Row{R"({"f:m":{}})", R"({"f:m":{".":{},"f:a":{}}})", "{}"},
           Row{R"({"f:s":{"f:m":{".":{},"f:a":{".":{},"f:b":{}}}}})", R"({"f:s":{"f:m":{".":{},"f:a":{"f:b":{}}}}})",
               R"({"f:s":{"f:m":{"f:a":{}}}})"},
       })
    EXPECT_EQ(to_text(difference_of(parsed(row.left).get_object(), parsed(row.right).get_object())), row.want)
        << row.left << " without " << row.right;
}

TEST(Apply, who_made_a_map_holds_it_when_its_entries_go) {
  const KindInfo& info = catalog().of(kConfigMap);
  json::value map = parsed(R"({"metadata":{"name":"x"},"data":{"a":"1"}})");
  track_update(info, kNone, map, {"maker"}, kNow);
  json::value more = map;
  more.at("data").as_object()["b"] = "2";
  track_update(info, map, more, {"other"}, kNow);
  json::value less = more;
  less.at("data").as_object().erase("a");
  track_update(info, more, less, {"third"}, kNow + std::chrono::hours(1));
  EXPECT_EQ(fields_of_manager(less, "maker"), R"(Update{"f:data":{}})");
  EXPECT_EQ(fields_of_manager(less, "other"), R"(Update{"f:data":{"f:b":{}}})");
  EXPECT_EQ(fields_of_manager(less, "third"), "") << "who only removes holds nothing";
  json::value none = less;
  none.as_object().erase("data");
  track_update(info, less, none, {"third"}, kNow + std::chrono::hours(2));
  EXPECT_EQ(find(none, "metadata.managedFields"), nullptr) << "entries without fields are dropped";
}

// Who only removes fields of his own keeps the time of the last change of what is left.
TEST(Apply, a_removal_of_ones_own_does_not_change_the_time) {
  const KindInfo& info = catalog().of(kConfigMap);
  json::value map = parsed(R"({"metadata":{"name":"x"},"data":{"a":"1","b":"2"}})");
  track_update(info, kNone, map, {"me"}, kNow);
  json::value less = map;
  less.at("data").as_object().erase("a");
  track_update(info, map, less, {"me"}, kNow + std::chrono::hours(1));
  EXPECT_EQ(fields_of_manager(less, "me"), R"(Update{"f:data":{".":{},"f:b":{}}})");
  EXPECT_EQ(time_of_manager(less, "me"), format_time(kNow));
}

// Source: structured-merge-diff, typed/compare.go, visitListItems.
TEST(Apply, a_repeated_item_is_one_field) {
  const Place root = Place::of(catalog().of(kPod).type());
  auto pod = [](const std::string& env) {
    return parsed(R"({"spec":{"containers":[{"name":"c","image":"i","env":[)" + env + "]}]}}");
  };
  auto in_env = [](const std::string& fields) {
    return R"({"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{"f:env":{)" + fields + "}}}}}";
  };
  const std::string one = R"({"name":"A","value":"1"})", two = R"({"name":"A","value":"2"})",
                    other = R"({"name":"B","value":"1"})";
  const std::string a = R"("k:{\"name\":\"A\"}":)", b = R"("k:{\"name\":\"B\"}":)",
                    whole = R"({".":{},"f:name":{},"f:value":{}})";
  struct Row {
    std::string before, now, changed, removed;
  };
  for (const Row& row : {
           Row{one + "," + two, one + "," + two + "," + other, in_env(b + whole), "{}"},
           Row{other + "," + one + "," + two, one + "," + two, "{}", in_env(b + whole)},
           Row{one + "," + two, two + "," + one, in_env(a + "{}"), "{}"},
           Row{one + "," + two, one, in_env(a + whole), in_env(a + "{}")},
           Row{one, one + "," + two, in_env(a + "{}"), in_env(a + whole)},
           Row{one + "," + two, other, in_env(b + whole), in_env(a + "{}")},
           Row{other, one + "," + two, in_env(a + "{}"), in_env(b + whole)},
       }) {
    EXPECT_EQ(to_text(changed_fields(root, pod(row.before), pod(row.now))), row.changed) << row.before << " to " << row.now;
    EXPECT_EQ(to_text(removed_fields(root, pod(row.before), pod(row.now))), row.removed) << row.before << " to " << row.now;
  }
}

TEST(Apply, refuses_two_items_that_are_the_same_one) {
  const KindInfo& info = catalog().of(kService);
  auto apply = [&](const char* ports) {
    json::value configuration = parsed(R"({"metadata":{"name":"s","namespace":"n","finalizers":["a/b"]}})");
    make(configuration, "spec.ports") = parsed(ports);
    auto applied = server_side_apply(info, kNone, configuration, {"me"}, kNow);
    return applied ? std::string() : applied.error().text();
  };
  EXPECT_EQ(apply(R"([{"port":53},{"port":53,"protocol":"UDP"}])"), "");
  EXPECT_EQ(
      apply(R"([{"port":53,"protocol":"TCP"},{"port":53}])"),
      R"(failed to create typed patch object (n/s; /v1, Kind=Service): .spec.ports: duplicate entries for key [port=53,protocol="TCP"])");
  auto twice = server_side_apply(info, kNone, parsed(R"({"metadata":{"finalizers":["a/b","a/b"]}})"), {"me"}, kNow);
  ASSERT_FALSE(twice);
  EXPECT_NE(twice.error().text().find(R"(.metadata.finalizers: duplicate entries for key [="a/b"])"), std::string::npos);
}

TEST(Apply, kubectl_updates_what_client_side_apply_left) {
  const KindInfo& info = catalog().of(kConfigMap);
  json::value live =
      parsed(R"({"metadata":{"name":"m","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"}}})");
  auto applied = server_side_apply(info, live, parsed(R"({"kind":"ConfigMap","data":{"b":"&","a":"1"}})"), {"kubectl"}, kNow);
  ASSERT_TRUE(applied) << applied.error().text();
  EXPECT_EQ(get_object(*applied, "metadata.annotations").at("kubectl.kubernetes.io/last-applied-configuration"),
            json::value(R"({"data":{"a":"1","b":"\u0026"},"kind":"ConfigMap"})"
                        "\n"));
  live = parsed(R"({"metadata":{"name":"m","annotations":{"kubectl.kubernetes.io/last-applied-configuration":
      "{\"apiVersion\":\"v1\",\"data\":{\"a\":\"1\",\"b\":\"1\"}}"}},"data":{"a":"1","b":"2","c":"1"}})");
  track_update(info, kNone, live, {"kubectl-client-side-apply"}, kNow);
  auto refused = server_side_apply(info, live, parsed(R"({"data":{"a":"9","b":"9"}})"), {"kubectl"}, kNow);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text().find("Apply failed with 1 conflict: "), 0u) << refused.error().text();
  ASSERT_EQ(refused.error().details()->causes.size(), 1u);
  EXPECT_EQ(refused.error().details()->causes[0].field, ".data.b") << "somebody has changed it since";
  EXPECT_TRUE(server_side_apply(info, live, parsed(R"({"data":{"a":"9"}})"), {"kubectl"}, kNow));
  live = parsed(R"({"metadata":{"name":"m","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"}}})");
  json::value large = json::object{{"data", json::object{{"a", std::string(300'000, 'x')}}}};
  applied = server_side_apply(info, live, large, {"kubectl"}, kNow);
  ASSERT_TRUE(applied) << applied.error().text();
  EXPECT_TRUE(get_object(*applied, "metadata.annotations").empty()) << "larger than annotations may be";
}

TEST(Apply, conflicts_are_named_in_bounded_words) {
  const KindInfo& info = catalog().of(kConfigMap);
  json::object data, other;
  for (int i = 0; i < 20'000; ++i) data["k" + std::to_string(i)] = "v", other["k" + std::to_string(i)] = "w";
  json::value live = *server_side_apply(info, kNone, json::object{{"data", data}}, {"first"}, kNow);
  auto refused = server_side_apply(info, live, json::object{{"data", other}}, {"second"}, kNow);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().details()->causes.size(), 1000u);
  EXPECT_NE(refused.error().text().find("20000 conflicts"), std::string::npos);
  EXPECT_NE(refused.error().text().find("and 19000 more"), std::string::npos);
}

TEST(Apply, nonsense_as_field_set_is_as_good_as_nothing) {
  const KindInfo& info = catalog().of(kConfigMap);
  json::value old = parsed(R"({"metadata":{"name":"m"},"data":{"k":"v"}})");
  track_update(info, kNone, old, {"first"}, kNow);
  for (const char* set : {R"({"":{}})", R"({"f":{}})", R"({"x:a":{}})", R"({"f:data":{"f:k":1}})", R"({"f:data":{"":{}}})"}) {
    json::value next = old;
    next.at("metadata").at("managedFields").at(0).as_object()["fieldsV1"] = parsed(set);
    track_update(info, old, next, {"second"}, kNow);
    EXPECT_EQ(to_text(next), to_text(old)) << set;
  }
}

// With comparisons of each item with each other one, or of each manager with the whole object, these took minutes or hours.
TEST(Apply, the_work_grows_with_the_size_not_with_its_square) {
  constexpr int kMany = 30'000;
  const KindInfo& info = catalog().of(kPod);
  json::array finalizers, containers, ports, owners;
  for (int i = 0; i < kMany; ++i) {
    finalizers.push_back(json::value("example.com/f" + std::to_string(i)));
    containers.push_back(json::object{{"name", "c" + std::to_string(i)}, {"image", "i"}});
    ports.push_back(json::object{{"containerPort", i}, {"protocol", i % 2 ? "UDP" : "TCP"}});
    owners.push_back(json::object{{"uid", "u" + std::to_string(i)}, {"name", "o"}});
  }
  containers[0].get_object()["ports"] = ports;
  json::value all =
      json::object{{"metadata", json::object{{"name", "p"}, {"finalizers", finalizers}, {"ownerReferences", owners}}},
                   {"spec", json::object{{"containers", containers}}}};
  auto created = server_side_apply(info, kNone, all, {"me"}, kNow);
  ASSERT_TRUE(created) << created.error().text();
  auto again = server_side_apply(info, *created, all, {"me"}, kNow);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(*again, *created);
  json::value changed = all;
  for (json::value& container : changed.at("spec").at("containers").as_array()) container.as_object()["image"] = "j";
  auto refused = server_side_apply(info, *created, changed, {"other"}, kNow);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::conflict);
  auto less = server_side_apply(info, *created, json::object{{"metadata", json::object{{"name", "p"}}}}, {"me"}, kNow);
  ASSERT_TRUE(less) << less.error().text();
  EXPECT_TRUE(get_array(*less, "metadata.finalizers").empty());
  json::value updated = *created;
  updated.at("metadata").at("finalizers").as_array().pop_back();
  track_update(info, *created, updated, {"third"}, kNow);
  EXPECT_EQ(get_array(updated, "metadata.finalizers").size(), size_t(kMany - 1));
}

// An applied configuration is the client's raw input. To compare it in another version it is converted, which requires canonical
// objects.
TEST(Apply, nonsense_is_refused_before_it_is_compared_in_another_version) {
  const KindInfo& info = *catalog().by_kind("autoscaling/v1", "HorizontalPodAutoscaler");
  json::value live =
      MUST(decode(info.type(), parsed(R"({"metadata":{"name":"h","managedFields":[{"manager":"o","operation":"Update",
      "apiVersion":"autoscaling/v2","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:maxReplicas":{}}}}]},
      "spec":{"maxReplicas":3,"scaleTargetRef":{"kind":"Deployment","name":"d"}}})")))
          .value;
  for (const char* spec :
       {R"({"maxReplicas":"x"})", R"({"targetCPUUtilizationPercentage":6e0})", R"({"scaleTargetRef":[]})", "7"}) {
    json::value applied = json::object{{"metadata", json::object{{"name", "h"}}}, {"spec", parsed(spec)}};
    for (bool force : {false, true}) {
      auto refused = server_side_apply(info, live, applied, {"me", "", force, {}}, kNow);
      ASSERT_FALSE(refused) << spec;
      EXPECT_EQ(refused.error().code(), Code::bad_request) << refused.error().text();
    }
  }
}

// A client that may write an object may also write its managedFields.
TEST(Apply, many_holders_cost_what_they_hold) {
  constexpr int kHolders = 10'000;
  for (const char* version : {"autoscaling/v1", "autoscaling/v2"}) {
    const KindInfo& info = *catalog().by_kind("autoscaling/v1", "HorizontalPodAutoscaler");
    json::array entries;
    json::object annotations;
    for (int i = 0; i < kHolders; ++i) {
      std::string name = "a" + std::to_string(i);
      annotations[name] = "v";
      entries.push_back(json::object{
          {"manager", "m" + std::to_string(i)},
          {"operation", i % 2 ? "Apply" : "Update"},
          {"apiVersion", version},
          {"fieldsType", "FieldsV1"},
          {"fieldsV1",
           json::object{{"f:metadata", json::object{{"f:annotations", json::object{{"f:" + name, json::object()}}}}}}}});
    }
    json::value live = parsed(R"({"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler","metadata":{"name":"h"},
        "spec":{"maxReplicas":3,"scaleTargetRef":{"kind":"Deployment","name":"d"}}})");
    live.at("metadata").as_object()["annotations"] = annotations;
    live.at("metadata").as_object()["managedFields"] = entries;
    for (auto& pair : annotations) pair.value() = "w";
    json::value applied = json::object{{"metadata", json::object{{"name", "h"}, {"annotations", annotations}}}};
    auto refused = server_side_apply(info, live, applied, {"me"}, kNow);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().text().find("10000 conflicts"), std::string::npos) << refused.error().text().substr(0, 200);
    json::value next = live;
    next.at("metadata").as_object()["annotations"] = annotations;
    track_update(info, live, next, {"me"}, kNow);
    EXPECT_NE(fields_of_manager(next, "me").find("f:a9999"), std::string::npos);
  }
}

}  // namespace
}  // namespace coracle::schema
