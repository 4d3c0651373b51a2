// SPDX-License-Identifier: Apache-2.0
// Fields of client-side apply are handed over to the manager of server-side apply.
#include "ctl/managed_fields.h"

#include <gtest/gtest.h>

#include "tests/daemon/parsed.h"

namespace coracle::ctl {
namespace {

constexpr const char* kClient =
    R"({"manager":"kubectl-client-side-apply","operation":"Update","apiVersion":"v1","fieldsV1":{"f:data":{".":{},"f:old":{}},"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}}}}})";
constexpr const char* kClientOfBeta =
    R"({"manager":"kubectl-client-side-apply","operation":"Update","apiVersion":"v1beta1","fieldsV1":{"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}}},"f:data":{"f:older":{}}}})";
constexpr const char* kServer =
    R"({"manager":"kubectl","operation":"Apply","apiVersion":"v1","fieldsV1":{"f:data":{"f:new":{}}}})";
constexpr const char* kStatus =
    R"({"manager":"kubectl-client-side-apply","operation":"Update","apiVersion":"v1","subresource":"status","fieldsV1":{}})";
constexpr const char* kOther = R"({"manager":"controller","operation":"Update","apiVersion":"v1","fieldsV1":{"f:status":{}}})";

json::value object_with(const std::vector<std::string>& entries) {
  std::string all;
  for (const auto& entry : entries) all += (all.empty() ? "" : ",") + entry;
  return parsed(R"({"metadata":{"resourceVersion":"7","managedFields":[)" + all + "]}}");
}

std::string handed_over(const json::value& object) {
  auto patch = handover_patch(object, owners_of_last_applied(object, "Update"), "kubectl");
  return patch ? to_text(*find(patch->get_array()[0], "value")) : "nothing";
}

TEST(ManagedFields, owners_are_those_of_the_annotation_by_operation) {
  json::value object = object_with({kOther, kClient, kClientOfBeta, kServer});
  EXPECT_EQ(owners_of_last_applied(object, "Update"), std::vector<std::string>{"kubectl-client-side-apply"});
  EXPECT_TRUE(owners_of_last_applied(object, "Apply").empty());
  EXPECT_TRUE(owners_of_last_applied(parsed("{}"), "Update").empty());
}

TEST(ManagedFields, are_united_with_what_the_manager_applies) {
  EXPECT_EQ(
      handed_over(object_with({kOther, kClient, kServer})),
      std::string("[") + kOther +
          R"(,{"manager":"kubectl","operation":"Apply","apiVersion":"v1","fieldsV1":{"f:data":{"f:new":{},".":{},"f:old":{}},"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}}}}}])");
}

TEST(ManagedFields, become_the_managers_where_it_applied_nothing_yet) {
  std::string mine(kClient);
  mine.replace(mine.find("kubectl-client-side-apply"), 25, "kubectl");
  mine.replace(mine.find("Update"), 6, "Apply");
  EXPECT_EQ(handed_over(object_with({kClient, kOther})), "[" + mine + "," + kOther + "]");
}

TEST(ManagedFields, of_another_version_go_and_of_a_subresource_stay) {
  EXPECT_EQ(handed_over(object_with({kServer, kClientOfBeta, kStatus})), std::string("[") + kServer + "," + kStatus + "]");
}

TEST(ManagedFields, stay_as_they_are_where_there_is_nothing_to_hand_over) {
  EXPECT_EQ(handed_over(object_with({kServer, kOther})), "nothing");
  EXPECT_EQ(handed_over(parsed("{}")), "nothing");
  auto patch = handover_patch(object_with({kClient}), {"kubectl-client-side-apply"}, "kubectl");
  ASSERT_TRUE(patch);
  EXPECT_EQ(to_text(patch->get_array()[1]), R"({"op":"replace","path":"/metadata/resourceVersion","value":"7"})");
}

}  // namespace
}  // namespace coracle::ctl
