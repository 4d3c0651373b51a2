// SPDX-License-Identifier: Apache-2.0
// The table of `kubectl get` for each kind: one object, one row.
#include <gtest/gtest.h>

#include "store/schema/table.h"
#include "tests/store/schema/prepared.h"

namespace coracle::schema {
namespace {

constexpr std::string_view kDatedMetadata =
    R"("metadata":{"name":"x","namespace":"d","creationTimestamp":"2026-01-01T00:00:00Z"})";

struct TableRow {
  const char* api_version;
  const char* kind;
  const char* object;  // without the metadata
  const char* want;    // the cells
};

constexpr const char* kPods =
    R"("template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"},{"name":"d","image":"j"}]}})";

std::string text_of(const TableRow& row) {
  std::string text = "{" + std::string(kDatedMetadata) + row.object + "}";
  for (size_t at; (at = text.find("$PODS")) != text.npos;) text.replace(at, 5, kPods);
  return text;
}

const TableRow kTableRows[] = {
    {"batch/v1", "Job",
     R"(,"spec":{"completions":3,"selector":{"matchLabels":{"a":"b"}},$PODS},"status":{"succeeded":1,"startTime":"2026-01-01T23:59:00Z"})",
     R"(["x","Running","1/3","60s","24h","c,d","i,j","a=b"])"},
    {"batch/v1", "Job",
     R"(,"spec":{"parallelism":2},"status":{"succeeded":1,"startTime":"2026-01-01T00:00:00Z","completionTime":"2026-01-01T00:00:05Z","conditions":[{"type":"Complete","status":"True"}]})",
     R"(["x","Complete","1/1 of 2","5s","24h","","","<none>"])"},
    {"batch/v1", "Job", R"(,"status":{"conditions":[{"type":"Suspended","status":"True"}]})",
     R"(["x","Suspended","0/1","","24h","","","<none>"])"},
    {"batch/v1", "CronJob",
     R"(,"spec":{"schedule":"@daily","suspend":false,"jobTemplate":{"spec":{$PODS}}},"status":{"active":[{"name":"y"}]})",
     R"(["x","@daily","<none>","False",1,"<none>","24h","c,d","i,j","<none>"])"},
    {"apps/v1", "StatefulSet", R"(,"spec":{"replicas":3,$PODS},"status":{"readyReplicas":2})",
     R"(["x","2/3","24h","c,d","i,j"])"},
    {"apps/v1", "DaemonSet",
     R"(,"spec":{$PODS},"status":{"desiredNumberScheduled":3,"currentNumberScheduled":2,"numberReady":1})",
     R"(["x",3,2,1,0,0,"<none>","24h","c,d","i,j","<none>"])"},
    {"apps/v1", "ControllerRevision", R"(,"revision":4)", R"(["x","<none>",4,"24h"])"},
    {"autoscaling/v2", "HorizontalPodAutoscaler",
     R"(,"spec":{"scaleTargetRef":{"kind":"Deployment","name":"w"},"minReplicas":1,"maxReplicas":5,"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":80}}},{"type":"Pods","pods":{"target":{"type":"AverageValue","averageValue":"5"}}},{"type":"Object"}]},"status":{"currentReplicas":2,"currentMetrics":[{"type":"Resource","resource":{"current":{"averageUtilization":10}}}]})",
     R"(["x","Deployment/w","cpu: 10%/80%, <unknown>/5 + 1 more...","1",5,2,"24h"])"},
    {"policy/v1", "PodDisruptionBudget", R"(,"spec":{"maxUnavailable":"30%"},"status":{"disruptionsAllowed":2})",
     R"(["x","N/A","30%",2,"24h"])"},
    {"networking.k8s.io/v1", "NetworkPolicy", R"(,"spec":{"podSelector":{"matchLabels":{"a":"b"}}})", R"(["x","a=b","24h"])"},
    {"networking.k8s.io/v1", "Ingress",
     R"(,"spec":{"tls":[{}],"rules":[{"host":"a"},{"host":"b"},{"host":"c"},{"host":"d"}]},"status":{"loadBalancer":{"ingress":[{"ip":"192.168.100.100"},{"hostname":"lb.example.com"}]}})",
     R"(["x","<none>","a,b,c + 1 more...","192.168.100.1...","80, 443","24h"])"},
    {"networking.k8s.io/v1", "Ingress", R"(,"spec":{"ingressClassName":"n","rules":[{}]})", R"(["x","n","*","","80","24h"])"},
    {"networking.k8s.io/v1", "IngressClass",
     R"(,"spec":{"controller":"a.b/c","parameters":{"apiGroup":"g","kind":"K","name":"n"}})", R"(["x","a.b/c","K.g/n","24h"])"},
    {"networking.k8s.io/v1", "IPAddress", R"(,"spec":{"parentRef":{"resource":"services","namespace":"d","name":"s"}})",
     R"(["x","services/d/s"])"},
    {"networking.k8s.io/v1", "ServiceCIDR", R"(,"spec":{"cidrs":["10.0.0.0/16","::/64"]})", R"(["x","10.0.0.0/16,::/64","24h"])"},
    {"scheduling.k8s.io/v1", "PriorityClass", R"(,"value":5,"globalDefault":true,"preemptionPolicy":"Never")",
     R"(["x",5,true,"24h","Never"])"},
    {"node.k8s.io/v1", "RuntimeClass", R"(,"handler":"h")", R"(["x","h","24h"])"},
    {"v1", "PersistentVolume",
     R"(,"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteMany","ReadWriteOnce"],"persistentVolumeReclaimPolicy":"Retain","claimRef":{"namespace":"d","name":"c"},"storageClassName":"s","volumeMode":"Block"},"status":{"phase":"Bound"})",
     R"(["x","1Gi","RWO,RWX","Retain","Bound","d/c","s","<unset>","","24h","Block"])"},
    {"v1", "PersistentVolumeClaim",
     R"(,"spec":{"volumeName":"v","storageClassName":"s"},"status":{"phase":"Bound","capacity":{"storage":"2Gi"},"accessModes":["ReadWriteOnce"]})",
     R"(["x","Bound","v","2Gi","RWO","s","<unset>","24h","<unset>"])"},
    {"v1", "PersistentVolumeClaim", R"(,"status":{"phase":"Pending"})",
     R"(["x","Pending","","","","","<unset>","24h","<unset>"])"},
    {"v1", "LimitRange", "", R"(["x","2026-01-01T00:00:00Z"])"},
    {"v1", "ResourceQuota", R"(,"status":{"hard":{"pods":"10","limits.cpu":"4","cpu":"2"},"used":{"pods":"3"}})",
     R"(["x","cpu: 0/2, pods: 3/10","limits.cpu: 0/4","24h"])"},
    {"v1", "ReplicationController",
     R"(,"spec":{"replicas":3,"selector":{"a":"b"},$PODS},"status":{"replicas":2,"readyReplicas":1})",
     R"(["x",3,2,1,"24h","c,d","i,j","a=b"])"},
    {"v1", "PodTemplate", R"(,$PODS)", R"(["x","c,d","i,j","a=b"])"},
    {"v1", "ComponentStatus", R"(,"conditions":[{"type":"Healthy","status":"False","message":"m","error":"e"}])",
     R"(["x","Unhealthy","m","e"])"},
    {"v1", "ComponentStatus", "", R"(["x","Unknown","",""])"},
};

TEST(KindTables, show_what_kubectl_prints) {
  for (const TableRow& row : kTableRows) {
    const KindInfo* info = catalog().by_kind(row.api_version, row.kind);
    ASSERT_NE(info, nullptr) << row.kind;
    EXPECT_EQ(to_text(json::value(cells_of(*info, MUST(parse_json(text_of(row))), kNow))), row.want)
        << row.kind << " " << row.object;
  }
}

}  // namespace
}  // namespace coracle::schema
