// SPDX-License-Identifier: Apache-2.0
// Server-side apply and managed fields: who holds what, conflicts, what goes when it is left out.
#include "store/schema/apply.h"

#include <gtest/gtest.h>

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

TEST(Apply, merges_lists_by_their_keys_and_removes_what_is_left_out) {
  const KindInfo& info = catalog().of(kPod);
  json::value live = *server_side_apply(info, kNone, parsed(R"({"metadata":{"labels":{"a":"1","b":"2"}},"spec":{"containers":[
    {"name":"a","image":"1","livenessProbe":{"exec":{"command":["x"]}}},{"name":"b","image":"2"}]}})"),
                                        {"me"}, kNow);
  live.at("spec").at("containers").at(0).at("livenessProbe").as_object()["periodSeconds"] = 10;  // a default
  live.at("metadata").at("labels").as_object()["other"] = "3";
  auto next = server_side_apply(
      info, live, parsed(R"({"metadata":{"labels":{"a":"1"}},"spec":{"containers":[{"name":"a","image":"3"}]}})"), {"me"}, kNow);
  ASSERT_TRUE(next) << next.error().text();
  EXPECT_EQ(spec_of(*next), R"({"containers":[{"name":"a","image":"3"}]})");
  EXPECT_EQ(to_text(*find(*next, "metadata.labels")), R"({"a":"1","other":"3"})");
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

TEST(Apply, many_writers_become_one_old_one) {
  const KindInfo& info = catalog().of(kConfigMap);
  json::value map = parsed(R"({"metadata":{"name":"x"},"data":{}})");
  for (int i = 0; i < 30; ++i) {
    json::value next = map;
    next.at("data").as_object()["k" + std::to_string(i)] = "v";
    track_update(info, map, next, {"w" + std::to_string(i)}, kNow + std::chrono::seconds(i));
    map = std::move(next);
  }
  EXPECT_EQ(get_array(map, "metadata.managedFields").size(), 10u);
  EXPECT_NE(fields_of_manager(map, "ancient-changes").find("f:k0"), std::string::npos);
}

}  // namespace
}  // namespace coracle::schema
