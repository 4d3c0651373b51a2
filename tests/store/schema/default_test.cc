// SPDX-License-Identifier: Apache-2.0
// Defaults, as a user sees them when reading an object back.
#include "store/schema/default.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "store/schema/decode.h"
#include "store/schema/views.h"
#include "tests/store/schema/prepared.h"
#include "tests/store/schema/sample_objects.h"

namespace coracle::schema {
namespace {

TEST(Default, fills_a_minimal_pod) {
  json::value pod = prepared(kPod, R"({"metadata":{"name":"x"},"spec":{"containers":[{"name":"a","image":"busybox"}]}})");
  EXPECT_EQ(to_text(*find(pod, "spec")),
            R"({"containers":[{"name":"a","image":"busybox","resources":{},"terminationMessagePath":"/dev/termination-log",)"
            R"("imagePullPolicy":"Always","terminationMessagePolicy":"File"}],"restartPolicy":"Always",)"
            R"("terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","securityContext":{},)"
            R"("schedulerName":"default-scheduler","enableServiceLinks":true})");
}

TEST(Default, is_idempotent_and_keeps_canonical_order) {
  for (auto [kind, text] :
       {std::pair{&kPod,
                  R"({"spec":{"volumes":[{"name":"v"}],"containers":[{"name":"a","image":"b:1","ports":[{"containerPort":1}],
              "livenessProbe":{"httpGet":{"port":"http"}},"resources":{"limits":{"memory":"1Gi","cpu":"1"}}}]}})"},
        std::pair{&kService, R"({"spec":{"type":"LoadBalancer","sessionAffinity":"ClientIP","ports":[{"port":80}]}})"},
        std::pair{&kDeployment, R"({"spec":{"template":{"spec":{"containers":[{"name":"a"}]}}}})"},
        std::pair{&kNamespace, R"({"metadata":{"name":"n","labels":{"a":"b","z":"y"}}})"},
        std::pair{&kSecret, R"({"data":{"b":"Yg=="},"stringData":{"a":"x"}})"}}) {
    json::value once = prepared(*kind, text);
    json::value twice = once;
    apply_defaults(catalog().of(*kind), twice);
    EXPECT_EQ(to_text(once), to_text(twice));
    auto again = decode(catalog().of(*kind).type(), once);
    ASSERT_TRUE(again);
    EXPECT_EQ(to_text(again->value), to_text(once));
  }
}

TEST(Default, the_pull_policy_follows_the_tag) {
  struct Row {
    const char* image;
    const char* want;
  };
  for (const Row& row :
       {Row{"a", "Always"}, Row{"a:latest", "Always"}, Row{"a:1", "IfNotPresent"}, Row{"host:5000/a", "Always"},
        Row{"host:5000/a:1", "IfNotPresent"}, Row{"a@sha256:00", "IfNotPresent"}, Row{"a:latest@sha256:00", "IfNotPresent"}}) {
    std::string text = std::string(R"({"spec":{"containers":[{"name":"a","image":")") + row.image + "\"}]}}";
    json::value pod = prepared(kPod, text);
    EXPECT_EQ(view::Pod(pod).spec().containers()[0].image_pull_policy(), row.want) << row.image;
  }
}

TEST(Default, fills_probes_ports_and_volumes) {
  json::value pod = prepared(kPod, R"({"spec":{"hostNetwork":true,"volumes":[{"name":"e"},{"name":"c","configMap":{"name":"x"}},
    {"name":"h","hostPath":{"path":"/x"}},{"name":"p","projected":{"sources":[{"serviceAccountToken":{"path":"t"}},
    {"downwardAPI":{"items":[{"path":"n","fieldRef":{"fieldPath":"metadata.name"}}]}}]}}],
    "containers":[{"name":"a","ports":[{"containerPort":80}],"readinessProbe":{"httpGet":{"port":80}},
    "env":[{"name":"N","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}],
    "resources":{"limits":{"cpu":"1"},"requests":{"memory":"1Mi"}}}]}})");
  std::string text = to_text(pod);
  for (const char* want :
       {R"({"name":"e","emptyDir":{}})", R"("configMap":{"name":"x","defaultMode":420})", R"("hostPath":{"path":"/x","type":""})",
        R"("serviceAccountToken":{"expirationSeconds":3600,"path":"t"})",
        R"("fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"})", R"({"hostPort":80,"containerPort":80,"protocol":"TCP"})",
        R"("readinessProbe":{"httpGet":{"path":"/","port":80,"scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":10,)"
        R"("successThreshold":1,"failureThreshold":3})",
        R"("requests":{"cpu":"1","memory":"1Mi"})", R"("resizePolicy":[{"resourceName":"cpu","restartPolicy":"NotRequired"},)"}) {
    EXPECT_NE(text.find(want), std::string::npos) << want << "\n" << text;
  }
}

TEST(Default, leaves_templates_as_they_were_written_where_kubernetes_does) {
  json::value set = prepared(kReplicaSet, R"({"spec":{"template":{"spec":{"hostNetwork":true,"containers":[{"name":"a",
    "ports":[{"containerPort":80}],"resources":{"limits":{"cpu":"1"}}}]}}}})");
  std::string text = to_text(set);
  EXPECT_EQ(text.find("enableServiceLinks"), std::string::npos);
  EXPECT_EQ(text.find("hostPort"), std::string::npos);
  EXPECT_EQ(text.find("requests"), std::string::npos);
  EXPECT_NE(text.find(R"("dnsPolicy":"ClusterFirst")"), std::string::npos);
  EXPECT_EQ(get_int(set, "spec.replicas"), 1);
}

// As in Kubernetes' ResourceList: otherwise a quota would show 200100u instead of 201m.
TEST(Default, rounds_amounts_up_to_thousandths) {
  json::value pod = prepared(kPod, R"({"spec":{"overhead":{"cpu":"1u"},"containers":[{"name":"a","image":"b","resources":{
      "requests":{"cpu":0.0001,"memory":"1500u"},"limits":{"cpu":"1.0005","memory":"-1n","example.com/x":"1e-6"}}}]}})");
  const json::value& resources = get_array(pod, "spec.containers")[0].at("resources");
  EXPECT_EQ(to_text(resources.at("limits")), R"({"cpu":"1001m","example.com/x":"1e-3","memory":"-1m"})");
  EXPECT_EQ(to_text(resources.at("requests")), R"({"cpu":"1m","example.com/x":"1e-3","memory":"2m"})");
  EXPECT_EQ(get_string(pod, "spec.overhead.cpu"), "1m");
  json::value quota = prepared(kResourceQuota, R"({"spec":{"hard":{"cpu":"1001u","memory":"1Gi"}}})");
  EXPECT_EQ(to_text(*find(quota, "spec.hard")), R"({"cpu":"2m","memory":"1Gi"})");
  json::value range = prepared(kLimitRange, R"({"spec":{"limits":[{"type":"Container","max":{"cpu":"1500u"}}]}})");
  EXPECT_EQ(to_text(get_array(range, "spec.limits")[0].at("default")), R"({"cpu":"2m"})");
}

TEST(Default, fills_deployments) {
  json::value rolling = prepared(kDeployment, R"({"spec":{}})");
  EXPECT_EQ(to_text(*find(rolling, "spec.strategy")),
            R"({"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"25%","maxSurge":"25%"}})");
  EXPECT_EQ(get_int(rolling, "spec.revisionHistoryLimit"), 10);
  EXPECT_EQ(get_int(rolling, "spec.progressDeadlineSeconds"), 600);
  json::value recreate = prepared(kDeployment, R"({"spec":{"strategy":{"type":"Recreate"},"replicas":0}})");
  EXPECT_EQ(to_text(*find(recreate, "spec.strategy")), R"({"type":"Recreate"})");
  EXPECT_EQ(get_int(recreate, "spec.replicas", 7), 0);
}

TEST(Default, fills_services_by_type) {
  json::value plain = prepared(kService, R"({"spec":{"ports":[{"port":80},{"port":81,"targetPort":"web"}]}})");
  EXPECT_EQ(to_text(*find(plain, "spec")),
            R"({"ports":[{"protocol":"TCP","port":80,"targetPort":80},{"protocol":"TCP","port":81,"targetPort":"web"}],)"
            R"("type":"ClusterIP","sessionAffinity":"None","internalTrafficPolicy":"Cluster"})");
  json::value balanced = prepared(kService, R"({"spec":{"type":"LoadBalancer","sessionAffinity":"ClientIP"}})");
  EXPECT_EQ(get_string(balanced, "spec.externalTrafficPolicy"), "Cluster");
  EXPECT_TRUE(get_bool(balanced, "spec.allocateLoadBalancerNodePorts"));
  EXPECT_EQ(get_int(balanced, "spec.sessionAffinityConfig.clientIP.timeoutSeconds"), 10800);
  json::value named = prepared(kService, R"({"spec":{"type":"ExternalName","externalName":"x.example"}})");
  EXPECT_EQ(find(named, "spec.internalTrafficPolicy"), nullptr);
}

TEST(Default, merges_string_data_and_labels_namespaces) {
  json::value secret = prepared(kSecret, R"({"data":{"a":"eA==","b":"Yg=="},"stringData":{"a":"new","c":"c"}})");
  EXPECT_EQ(to_text(*find(secret, "data")), R"({"a":"bmV3","b":"Yg==","c":"Yw=="})");
  EXPECT_EQ(find(secret, "stringData"), nullptr);
  EXPECT_EQ(get_string(secret, "type"), "Opaque");
  json::value space = prepared(kNamespace, R"({"metadata":{"name":"n"}})");
  EXPECT_EQ(find_keys(space, {"metadata", "labels", "kubernetes.io/metadata.name"})->as_string(), "n");
}

TEST(Default, a_new_object_begins_with_what_the_server_decides) {
  struct Row {
    const char* resources;
    const char* want;
  };
  for (const Row& row : {Row{"{}", "BestEffort"}, Row{R"({"requests":{"cpu":"1"}})", "Burstable"},
                         Row{R"({"limits":{"cpu":"1","memory":"1Gi"}})", "Guaranteed"},
                         Row{R"({"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"1000m","memory":"1Gi"}})", "Guaranteed"},
                         Row{R"({"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"500m"}})", "Burstable"}}) {
    std::string text =
        std::string(R"({"status":{"phase":"Running"},"spec":{"containers":[{"name":"a","resources":)") + row.resources + "}]}}";
    json::value pod = MUST(decode(catalog().of(kPod).type(), *parse_json(text))).value;
    begin_life(catalog().of(kPod), pod);
    EXPECT_EQ(get_string(pod, "status.phase"), "Pending");
    EXPECT_EQ(get_string(pod, "status.qosClass"), row.want) << row.resources;
  }
  json::value whole = *parse_json(
      R"({"spec":{"resources":{"limits":{"cpu":"1","memory":"1Gi"}},"containers":[{"name":"a","resources":{"requests":{"cpu":"500m"}}},{"name":"b"}]}})");
  EXPECT_EQ(qos_class(whole), "Guaranteed") << "the pod's own resources count, whatever its containers say";
  apply_defaults(catalog().of(kPod), whole);
  EXPECT_EQ(to_text(*find(whole, "spec.resources.requests")), R"({"cpu":"500m","memory":"1Gi"})")
      << "what its containers ask for, else what it is limited to";
  EXPECT_EQ(qos_class(whole), "Burstable");
  json::value silent = *parse_json(R"({"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"500m"}}}]}})");
  apply_defaults(catalog().of(kPod), silent);
  EXPECT_EQ(find(silent, "spec.resources"), nullptr);
  json::value deployment = *parse_json(R"({"status":{"replicas":3}})");
  begin_life(catalog().of(kDeployment), deployment);
  EXPECT_EQ(to_text(deployment), R"({"status":{}})");
  json::value node = *parse_json(R"({"status":{"phase":"Running"}})");
  begin_life(catalog().of(kNode), node);
  EXPECT_EQ(get_string(node, "status.phase"), "Running");
}

// ---- the schema text marks fields whose default comes from code ----

void note_ruled(const Type& type, const json::value& plain, const json::value& ruled, std::set<std::string>& fields) {
  const json::object *before = plain.if_object(), *after = ruled.if_object();
  if (!after || type.either) return;
  for (const Field& field : type.fields()) {
    const json::value *was = before ? before->if_contains(field.name()) : nullptr, *is = after->if_contains(field.name());
    if (!is) continue;
    if (!was) {
      fields.insert(type.openapi_name() + "." + std::string(field.name()));
      continue;
    }
    if (field.form != Form::object) {
      if (*was != *is) fields.insert(type.openapi_name() + "." + std::string(field.name()));
    } else if (field.shape == Shape::one) {
      note_ruled(field.type(), *was, *is, fields);
    } else if (const json::array* items = is->if_array()) {
      for (size_t i = 0; i < items->size(); ++i)
        note_ruled(field.type(), i < was->get_array().size() ? was->get_array()[i] : json::value(), (*items)[i], fields);
    }
  }
}

// Objects with the fields that the rules depend on, in addition to the samples of all kinds.
const std::vector<std::pair<std::string_view, const char*>> kRuled = {
    {"v1/Pod", R"({"spec":{"hostNetwork":true,"serviceAccountName":"a","resources":{"limits":{"cpu":"2"}},
      "containers":[{"name":"c","image":"i:1","ports":[{"containerPort":80}],"resources":{"limits":{"cpu":"1"}}}],
      "ephemeralContainers":[{"name":"d","image":"i:1"}],
      "volumes":[{"name":"v"},{"name":"i","image":{"reference":"i:1"}}]}})"},
    {"v1/Service", R"({"spec":{"type":"LoadBalancer","clusterIP":"10.43.0.9","sessionAffinity":"ClientIP","ports":[{"port":80}]},
      "status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}})"},
    {"v1/Node", R"({"status":{"capacity":{"cpu":"1"}}})"},
    {"v1/PodTemplate", R"({"template":{"spec":{"serviceAccount":"a","containers":[]}}})"},
    {"networking.k8s.io/v1/NetworkPolicy", R"({"spec":{"egress":[{}]}})"},
    {"rbac.authorization.k8s.io/v1/RoleBinding", R"({"subjects":[{"kind":"User","name":"u"}]})"},
    {"v1/LimitRange", R"({"spec":{"limits":[{"type":"Container","max":{"cpu":"1"}}]}})"},
    {"v1/ReplicationController", R"({"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}})"},
    {"apps/v1/StatefulSet", R"({"spec":{"updateStrategy":{},"volumeClaimTemplates":[{"metadata":{"name":"d"}}]}})"},
    {"autoscaling/v2/HorizontalPodAutoscaler", R"({"spec":{"behavior":{"scaleUp":{},"scaleDown":{}}}})"},
    {"flowcontrol.apiserver.k8s.io/v1/PriorityLevelConfiguration", R"({"spec":{"type":"Exempt"}})"},
    {"apiextensions.k8s.io/v1/CustomResourceDefinition",
     R"({"spec":{"names":{"kind":"Boat","plural":"boats"},"versions":[{"name":"v1","storage":true}]}})"},
    {"resource.k8s.io/v1/ResourceClaim",
     R"({"spec":{"devices":{"requests":[{"name":"a","exactly":{"allocationMode":"ExactCount"}},
      {"name":"b","firstAvailable":[{"name":"c","allocationMode":"ExactCount"}]}]}}})"},
};

// The text marks the fields whose default is computed by code.
TEST(Default, what_a_rule_gives_is_marked_in_the_schema_text) {
  std::set<std::string> given, marked;
  auto look = [&](const KindInfo& info, const char* text) {
    Decoded decoded = MUST(decode(info.type(), MUST(parse_json(text))));
    json::value plain = decoded.value, ruled = decoded.value;
    apply_constant_defaults(info.type(), plain);
    apply_defaults(info, ruled);
    note_ruled(info.type(), plain, ruled, given);
  };
  for (const KindInfo& info : catalog().kinds()) {
    auto sample = sample_objects().find(info.kind.api_version() + "/" + std::string(info.kind.kind));
    if (sample != sample_objects().end() && !sample->second.empty()) look(info, sample->second.c_str());
  }
  for (const auto& [name, text] : kRuled)
    look(*catalog().by_kind(name.substr(0, name.rfind('/')), name.substr(name.rfind('/') + 1)), text);
  std::erase_if(given, [](const std::string& field) {  // only the rules of some kinds set these
    return field.find(".ObjectMeta.") != field.npos || field.ends_with(".apiVersion") || field.ends_with(".kind");
  });
  for (const Type& type : all_types())
    for (const Field& field : type.fields())
      if (field.default_by_rule) marked.insert(type.openapi_name() + "." + std::string(field.name()));
  for (const std::string& field : given) EXPECT_TRUE(marked.contains(field)) << field << " is not marked with default=rule";
  for (const std::string& field : marked) EXPECT_TRUE(given.contains(field)) << "no rule gives " << field << " a default";
}

}  // namespace
}  // namespace coracle::schema
