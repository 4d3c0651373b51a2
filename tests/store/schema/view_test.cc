// SPDX-License-Identifier: Apache-2.0
// Views read JSON by the schema's names, and tolerate any input. Conditions, which most kinds have, by their type.
#include <gtest/gtest.h>

#include <type_traits>

#include "store/kinds/meta/conditions.h"
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

TEST(View, reads_an_optional_number_or_what_it_is_instead) {
  json::value value = parsed(R"({"spec":{"replicas":0,"progressDeadlineSeconds":null}})");
  view::Deployment deployment(value);
  EXPECT_EQ(deployment.spec().replicas_or(1), 0);
  EXPECT_EQ(deployment.spec().progress_deadline_seconds_or(600), 600);
  EXPECT_EQ(view::Deployment().spec().replicas_or(1), 1);
  EXPECT_TRUE(view::PodSpec().enable_service_links_or(true));
}

TEST(View, gives_parts_as_json_without_a_copy) {
  json::value value = parsed(R"({"metadata":{"finalizers":["a"]},"spec":{"selector":{"matchLabels":{"a":"b"}}}})");
  view::Deployment deployment(value);
  EXPECT_EQ(deployment.spec().selector().pointer(), find(value, "spec.selector"));
  EXPECT_EQ(deployment.spec().template_().pointer(), nullptr);
  EXPECT_EQ(&deployment.metadata().finalizers().raw(), &get_array(value, "metadata.finalizers"));
  EXPECT_TRUE(deployment.status().conditions().raw().empty());
  EXPECT_EQ(&deployment.spec().selector().members(), &get_object(value, "spec.selector"));
  EXPECT_TRUE(deployment.status().members().empty());
  EXPECT_FALSE(view::PodSpec(static_cast<const json::value*>(nullptr)));
}

TEST(View, reads_a_part_that_is_being_written) {
  json::object status = parsed(R"({"succeeded":3,"uncountedTerminatedPods":{"failed":["x"]}})").get_object();
  EXPECT_EQ(view::JobStatus(status).succeeded(), 3);
  EXPECT_EQ(view::JobStatus(status).uncounted_terminated_pods().failed()[0], "x");
  status["succeeded"] = 4;
  EXPECT_EQ(view::JobStatus(status).succeeded(), 4);
}

TEST(View, of_an_object_is_no_value) {
  const json::object status = parsed(R"({"uncountedTerminatedPods":{"failed":["x"]}})").get_object();
  EXPECT_EQ(view::JobStatus(status).uncounted_terminated_pods().raw().get_object().size(), 1u) << "its parts are";
  EXPECT_DEATH((void)view::JobStatus(status).raw(), "bug: .*View::raw");
  EXPECT_DEATH((void)view::JobStatus(status).pointer(), "bug: .*View::raw");
}

// What does not compile: a name that the schema does not have, and a view of a value that is gone before it is read.
template <typename T>
concept HasNodeName = requires(T spec) {
  spec.node_name();
};
template <typename T>
concept HasNodeNmae = requires(T spec) {
  spec.node_nmae();
};
template <typename T>
concept HasReplicasOr = requires(T spec) {
  spec.replicas_or(1);
};
static_assert(HasNodeName<view::PodSpec> && !HasNodeNmae<view::PodSpec>);
static_assert(!HasNodeName<view::Pod> && !HasNodeName<view::DeploymentSpec>);
static_assert(HasReplicasOr<view::DeploymentSpec> && !HasReplicasOr<view::DeploymentStatus>);  // there 0 is the same as absent

static_assert(std::is_constructible_v<view::Pod, json::value&> && std::is_constructible_v<view::Pod, const json::value&>);
static_assert(std::is_constructible_v<view::PodSpec, json::object&> &&
              std::is_constructible_v<view::PodSpec, const json::object&>);
static_assert(!std::is_constructible_v<view::Pod, json::value> && !std::is_constructible_v<view::Pod, const json::value>);
static_assert(!std::is_constructible_v<view::PodSpec, json::object>);
static_assert(!std::is_convertible_v<const json::value&, view::Pod>);

TEST(Conditions, are_found_or_made_by_their_type) {
  json::value object = parsed(R"({"status":{"conditions":[{"type":"A","status":"True"},{"type":"B","status":"False"}]}})");
  json::array& list = make_array(object, "status.conditions");
  make_condition(list, "B")["status"] = "True";
  make_condition(list, "C")["status"] = "Unknown";
  EXPECT_EQ(to_text(object), R"({"status":{"conditions":[{"type":"A","status":"True"},{"type":"B","status":"True"},)"
                             R"({"type":"C","status":"Unknown"}]}})");
  EXPECT_TRUE(has_true_condition(object, "B"));
  EXPECT_FALSE(has_true_condition(object, "C"));
  EXPECT_EQ(find_condition(object, "D"), nullptr);
}

}  // namespace
}  // namespace coracle
