// SPDX-License-Identifier: Apache-2.0
// Defaults that depend on other fields, kind by kind: the object as written, and the value read back at a path.
#include <gtest/gtest.h>

#include "store/schema/decode.h"
#include "store/schema/default.h"

namespace coracle::schema {
namespace {

struct DefaultRow {
  const char* api_version;
  const char* kind;
  const char* text;
  const char* path;
  const char* want;  // JSON; "" = absent
};

constexpr const char* kBehavior = R"({"spec":{"metrics":[{"type":"Pods"}],"behavior":{"scaleUp":{"selectPolicy":"Min"}}}})";

const DefaultRow kDefaultRows[] = {
    {"apps/v1", "StatefulSet", "{}", "spec.updateStrategy", R"({"type":"RollingUpdate","rollingUpdate":{"partition":0}})"},
    {"apps/v1", "StatefulSet", R"({"spec":{"updateStrategy":{"type":"RollingUpdate"}}})", "spec.updateStrategy",
     R"({"type":"RollingUpdate"})"},
    {"apps/v1", "StatefulSet", R"({"spec":{"updateStrategy":{"type":"OnDelete"}}})", "spec.updateStrategy",
     R"({"type":"OnDelete"})"},
    {"apps/v1", "StatefulSet", "{}", "spec.persistentVolumeClaimRetentionPolicy",
     R"({"whenDeleted":"Retain","whenScaled":"Retain"})"},
    {"apps/v1", "StatefulSet", "{}", "spec.podManagementPolicy", R"("OrderedReady")"},
    {"apps/v1", "StatefulSet", R"({"spec":{"volumeClaimTemplates":[{"metadata":{"name":"d"}}]}})", "spec.volumeClaimTemplates",
     R"([{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"d"},"spec":{"resources":{},"volumeMode":"Filesystem"},"status":{"phase":"Pending"}}])"},
    {"apps/v1", "DaemonSet", "{}", "spec.updateStrategy",
     R"({"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":1,"maxSurge":0}})"},
    {"apps/v1", "DaemonSet", R"({"spec":{"updateStrategy":{"type":"OnDelete"}}})", "spec.updateStrategy",
     R"({"type":"OnDelete"})"},
    {"apps/v1", "DaemonSet", "{}", "spec.revisionHistoryLimit", "10"},
    {"batch/v1", "Job", "{}", "spec.completions", "1"},
    {"batch/v1", "Job", "{}", "spec.parallelism", "1"},
    {"batch/v1", "Job", R"({"spec":{"parallelism":3}})", "spec.completions", ""},
    {"batch/v1", "Job", R"({"spec":{"completions":3}})", "spec.parallelism", "1"},
    {"batch/v1", "Job", "{}", "spec.backoffLimit", "6"},
    {"batch/v1", "Job", R"({"spec":{"backoffLimitPerIndex":1}})", "spec.backoffLimit", "2147483647"},
    {"batch/v1", "Job", "{}", "spec.podReplacementPolicy", R"("TerminatingOrFailed")"},
    {"batch/v1", "Job", R"({"spec":{"podFailurePolicy":{"rules":[]}}})", "spec.podReplacementPolicy", R"("Failed")"},
    {"batch/v1", "Job", R"({"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}})", "metadata.labels", R"({"a":"b"})"},
    {"batch/v1", "Job", R"({"metadata":{"labels":{"c":"d"}},"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}})",
     "metadata.labels", R"({"c":"d"})"},
    {"batch/v1", "CronJob", "{}", "spec.concurrencyPolicy", R"("Allow")"},
    {"batch/v1", "CronJob", "{}", "spec.successfulJobsHistoryLimit", "3"},
    {"batch/v1", "CronJob", R"({"spec":{"jobTemplate":{"spec":{"parallelism":2}}}})", "spec.jobTemplate.spec.backoffLimit", ""},
    {"autoscaling/v2", "HorizontalPodAutoscaler", "{}", "spec.minReplicas", "1"},
    {"autoscaling/v2", "HorizontalPodAutoscaler", "{}", "spec.metrics",
     R"([{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":80}}}])"},
    {"autoscaling/v2", "HorizontalPodAutoscaler", "{}", "spec.behavior", ""},
    {"autoscaling/v2", "HorizontalPodAutoscaler", kBehavior, "spec.behavior.scaleUp",
     R"({"selectPolicy":"Min","policies":[{"type":"Pods","value":4,"periodSeconds":15},{"type":"Percent","value":100,"periodSeconds":15}],"stabilizationWindowSeconds":0})"},
    {"autoscaling/v2", "HorizontalPodAutoscaler", kBehavior, "spec.behavior.scaleDown",
     R"({"selectPolicy":"Max","policies":[{"type":"Percent","value":100,"periodSeconds":15}]})"},
    {"networking.k8s.io/v1", "NetworkPolicy", "{}", "spec.policyTypes", R"(["Ingress"])"},
    {"networking.k8s.io/v1", "NetworkPolicy", R"({"spec":{"egress":[{}]}})", "spec.policyTypes", R"(["Ingress","Egress"])"},
    {"networking.k8s.io/v1", "NetworkPolicy", R"({"spec":{"policyTypes":["Egress"]}})", "spec.policyTypes", R"(["Egress"])"},
    {"networking.k8s.io/v1", "NetworkPolicy", R"({"spec":{"ingress":[{"ports":[{"port":80}]}]}})", "spec.ingress",
     R"([{"ports":[{"protocol":"TCP","port":80}]}])"},
    {"networking.k8s.io/v1", "IngressClass", R"({"spec":{"parameters":{"kind":"K","name":"n"}}})", "spec.parameters.scope",
     R"("Cluster")"},
    {"scheduling.k8s.io/v1", "PriorityClass", "{}", "preemptionPolicy", R"("PreemptLowerPriority")"},
    {"v1", "LimitRange", R"({"spec":{"limits":[{"type":"Container","max":{"cpu":"2"},"min":{"memory":"1Mi"}}]}})", "spec.limits",
     R"([{"type":"Container","max":{"cpu":"2"},"min":{"memory":"1Mi"},"default":{"cpu":"2"},"defaultRequest":{"cpu":"2","memory":"1Mi"}}])"},
    {"v1", "LimitRange", R"({"spec":{"limits":[{"type":"Pod","max":{"cpu":"2"}}]}})", "spec.limits",
     R"([{"type":"Pod","max":{"cpu":"2"}}])"},
    {"v1", "PersistentVolume", "{}", "spec.persistentVolumeReclaimPolicy", R"("Retain")"},
    {"v1", "PersistentVolume", "{}", "status.phase", R"("Pending")"},
    {"v1", "PersistentVolumeClaim", "{}", "spec.volumeMode", R"("Filesystem")"},
    {"v1", "PersistentVolumeClaim", "{}", "status.phase", R"("Pending")"},
    {"v1", "ReplicationController", R"({"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}})", "spec.selector",
     R"({"a":"b"})"},
    {"v1", "ReplicationController", R"({"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}})", "metadata.labels",
     R"({"a":"b"})"},
    {"v1", "ReplicationController", "{}", "spec.replicas", "1"},
};

TEST(KindDefaults, follow_from_what_was_written) {
  for (const DefaultRow& row : kDefaultRows) {
    const KindInfo* info = catalog().by_kind(row.api_version, row.kind);
    ASSERT_NE(info, nullptr) << row.kind;
    json::value object = MUST(decode(info->type(), MUST(parse_json(row.text)))).value;
    apply_defaults(*info, object);
    json::value once = MUST(decode(info->type(), object)).value;
    const json::value* found = find(once, row.path);
    EXPECT_EQ(found ? to_text(*found) : "", *row.want ? to_text(MUST(parse_json(row.want))) : "")
        << row.kind << " " << row.text << " " << row.path;
    apply_defaults(*info, object);
    EXPECT_EQ(to_text(MUST(decode(info->type(), object)).value), to_text(once)) << row.kind << " " << row.text;
  }
}

}  // namespace
}  // namespace coracle::schema
