// SPDX-License-Identifier: Apache-2.0
// Views read JSON by the schema's names, and tolerate any input.
#include <gtest/gtest.h>

#include "store/schema/views.h"

namespace coracle {
namespace {

json::value parsed(const char* text) { return *parse_json(text); }

TEST(View, reads_by_name) {
  json::value value = parsed(R"({"metadata":{"name":"web","labels":{"a":"b"},"generation":3,
    "ownerReferences":[{"kind":"ReplicaSet","controller":true}]},
    "spec":{"nodeName":"n1","hostIPC":true,"terminationGracePeriodSeconds":0,"containers":[
      {"name":"a","args":["x","y"],"ports":[{"containerPort":80}],"resources":{"limits":{"cpu":"100m"}}},{"name":"b"}]},
    "status":{"podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}]}})");
  view::Pod pod(value);
  EXPECT_TRUE(pod);
  EXPECT_EQ(pod.metadata().name(), "web");
  EXPECT_EQ(pod.metadata().generation(), 3);
  EXPECT_EQ(pod.metadata().labels().at("a").as_string(), "b");
  EXPECT_TRUE(pod.metadata().owner_references()[0].controller());
  EXPECT_EQ(pod.spec().node_name(), "n1");
  EXPECT_TRUE(pod.spec().host_ipc());
  EXPECT_FALSE(pod.spec().host_pid());
  EXPECT_TRUE(pod.spec().has_termination_grace_period_seconds());
  EXPECT_EQ(pod.spec().termination_grace_period_seconds(), 0);
  ASSERT_EQ(pod.spec().containers().size(), 2u);
  std::string names;
  for (view::Container container : pod.spec().containers()) names += container.name();
  EXPECT_EQ(names, "ab");
  view::Container first = pod.spec().containers()[0];
  EXPECT_EQ(first.args()[1], "y");
  EXPECT_EQ(first.ports()[0].container_port(), 80);
  EXPECT_EQ(first.resources().limits().at("cpu").as_string(), "100m");
  EXPECT_EQ(pod.status().pod_ip(), "10.0.0.1");
  EXPECT_EQ(pod.status().pod_ips()[0].ip(), "10.0.0.1");
}

TEST(View, what_is_absent_or_of_another_type_is_empty) {
  json::value value = parsed(R"({"spec":{"containers":7,"nodeName":false,"priority":null}})");
  view::Pod pod(value);
  EXPECT_FALSE(pod.metadata());
  EXPECT_EQ(pod.metadata().name(), "");
  EXPECT_TRUE(pod.metadata().labels().empty());
  EXPECT_TRUE(pod.spec().containers().empty());
  EXPECT_EQ(pod.spec().node_name(), "");
  EXPECT_FALSE(pod.spec().has_priority());
  EXPECT_FALSE(pod.spec().security_context());
  EXPECT_FALSE(pod.spec().affinity().node_affinity());
  EXPECT_TRUE(pod.status().raw().is_null());
  EXPECT_TRUE(view::Deployment().spec().template_().spec().volumes().empty());
}

TEST(View, int_or_string_and_quantity_come_as_json) {
  json::value value = parsed(R"({"spec":{"ports":[{"port":80,"targetPort":"http"}]}})");
  view::Service service(value);
  const json::value* target = service.spec().ports()[0].target_port();
  ASSERT_NE(target, nullptr);
  EXPECT_EQ(target->as_string(), "http");
  EXPECT_EQ(view::ServicePort().target_port(), nullptr);
}

}  // namespace
}  // namespace coracle
