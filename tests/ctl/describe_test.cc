// SPDX-License-Identifier: Apache-2.0
// The output of describe, in kubectl's layout.
#include "ctl/describe.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "ctl/print.h"
#include "tests/ctl/fake_api.h"
#include "tests/daemon/parsed.h"
#include "tests/store/schema/sample.h"

namespace coracle::ctl {
namespace {

std::string told(std::string_view text, const Related& related = {}) { return align_tabs(workload_text(parsed(text), related)); }

TEST(AlignTabs, columns_last_as_long_as_their_lines_have_them) {
  EXPECT_EQ(align_tabs("a:\tx\nlonger:\ty\n"), "a:       x\nlonger:  y\n");
  EXPECT_EQ(align_tabs("a\tb\tc\nplain\nlonger\tb\n"), "a  b  c\nplain\nlonger  b\n");
  EXPECT_EQ(align_tabs("a\tbbb\tc\nlonger\tb\tc\nx\ty\n"), "a       bbb  c\nlonger  b    c\nx       y\n");
  EXPECT_EQ(align_tabs("ä\tb\naa\tb\n"), "ä   b\naa  b\n");
  EXPECT_EQ(align_tabs("\tb"), "  b");
}

TEST(Describe, a_budget) {
  EXPECT_EQ(
      told(
          R"({"kind":"PodDisruptionBudget","metadata":{"name":"web","namespace":"default"},"spec":{"minAvailable":2,"selector":{"matchLabels":{"app":"web"}}},
    "status":{"desiredHealthy":2,"expectedPods":3,"currentHealthy":3,"disruptionsAllowed":1}})"),
      "Name:           web\nNamespace:      default\nMin available:  2\nSelector:       app=web\nStatus:\n"
      "    Allowed disruptions:  1\n    Current:              3\n    Desired:              2\n    Total:                3\n");
}

TEST(Describe, a_quota) {
  EXPECT_EQ(
      align_tabs(machine_text(
          parsed(
              R"({"kind":"ResourceQuota","metadata":{"name":"q","namespace":"d"},"spec":{"scopes":["BestEffort"]},"status":{"hard":{"pods":"5","cpu":"1"},"used":{"pods":"2"}}})"),
          {}, {})),
      "Name:       q\nNamespace:  d\nScopes:     BestEffort\n * Matches all pods that do not have resource requirements set. "
      "These pods have a best effort quality of service.\n"
      "Resource  Used  Hard\n--------  ----  ----\ncpu       0     1\npods      2     5\n");
}

TEST(Describe, an_autoscaler) {
  std::string text = told(
      R"({"kind":"HorizontalPodAutoscaler","metadata":{"name":"h"},"spec":{"scaleTargetRef":{"kind":"Deployment","name":"web"},"minReplicas":1,"maxReplicas":3,
    "metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}},
    {"type":"Resource","resource":{"name":"memory","target":{"type":"AverageValue","averageValue":"200Mi"}}}]},
    "status":{"currentReplicas":2,"desiredReplicas":3,"currentMetrics":[{"type":"Resource","resource":{"name":"cpu","current":{"averageUtilization":70,"averageValue":"7m"}}}]}})");
  for (const char* line : {"Reference:                                             Deployment/web\n",
                           "  resource cpu on pods  (as a percentage of request):  70% (7m) / 50%\n",
                           "  resource memory on pods:                             <unknown> / 200Mi\n",
                           "Deployment pods:                                       2 current / 3 desired\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

// What is said of most sources stands in a table by the paths of their fields, which no compiler checks: each must be a field of
// the source's type. A sample has a value in every field, so a row that says that there is none has a wrong path.
TEST(Describe, every_source_of_a_volume_by_fields_that_it_has) {
  const std::set<std::string_view> by_code{"csi", "projected", "downwardAPI", "ephemeral"};
  const std::set<std::string_view> absent{"", "<none>", "<unset>", "false", "0", "nil", "[]", "map[]"};
  for (auto [name, persistent, sources] : {std::tuple{"Volume", false, 30}, std::tuple{"PersistentVolumeSpec", true, 22}}) {
    const schema::Type* type = schema::type_named("io.k8s.api.core.v1." + std::string(name));
    ASSERT_NE(type, nullptr) << name;
    json::value sample = schema::Sampler().object(*type);
    int count = 0;
    for (const schema::Field& field : type->fields()) {
      if (field.inlined == 0) continue;  // not a source
      json::object holder;
      holder[field.name()] = sample.as_object().at(field.name());
      std::string text;
      put_volume_source(text, holder, persistent);
      EXPECT_TRUE(text.starts_with("    Type:\t")) << name << ": " << text;
      ++count;
      if (by_code.contains(field.name())) continue;
      for (std::string_view line : split(text, '\n'))
        EXPECT_TRUE(line.empty() || !absent.contains(line.substr(line.find('\t') + 1))) << name << ": " << text;
    }
    EXPECT_EQ(count, sources) << name;
  }
}

TEST(Describe, a_stateful_set_counts_its_own_pods) {
  Related related;
  for (auto [uid, phase] : {std::pair{"u", "Running"}, std::pair{"u", "Pending"}, std::pair{"other", "Running"}})
    related.pods.items.push_back(parsed(R"({"metadata":{"ownerReferences":[{"uid":")" + std::string(uid) +
                                        R"(","controller":true}]},"status":{"phase":")" + phase + R"("}})"));
  std::string text = told(
      R"({"kind":"StatefulSet","metadata":{"name":"s","uid":"u"},"spec":{"replicas":2,"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":1}},
    "template":{"spec":{"containers":[{"name":"c","image":"x"}]}},"volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{"accessModes":["ReadWriteOnce"],
    "resources":{"requests":{"storage":"1Gi"}}}}]},"status":{"replicas":2}})",
      related);
  for (const char* line : {"Pods Status:        1 Running / 1 Waiting / 0 Succeeded / 0 Failed\n", "  Partition:        1\n",
                           "  Access Modes:  [ReadWriteOnce]\n", "   c:\n    Image:         x\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

TEST(Describe, any_other_kind_field_by_field) {
  EXPECT_EQ(
      align_tabs(plain_text(parsed(
          R"({"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"r","namespace":"d","uid":"u","managedFields":[{}]},"revision":3,
    "data":{"spec":{"template":{"$patch":"replace","dnsPolicy":"x"}},"list":["a",{"b":1}]}})"))),
      "Name:         r\nNamespace:    d\nLabels:       <none>\nAnnotations:  <none>\nAPI Version:  apps/v1\nData:\n  List:\n    "
      "a\n    B:  1\n  Spec:\n    Template:\n"
      "      $patch:      replace\n      Dns Policy:  x\nKind:              ControllerRevision\nMetadata:\n  UID:     "
      "u\nRevision:  3\n");
}

TEST(Describe, a_service_with_its_endpoints) {
  Related related;
  related.slices.items.push_back(parsed(
      R"({"ports":[{"name":"http","port":8080},{"name":"other","port":1}],"endpoints":[{"addresses":["10.0.0.1"],"conditions":{"ready":true}},
    {"addresses":["10.0.0.2"],"conditions":{"ready":false}},{"addresses":["fd00::1"]},{"addresses":["10.0.0.4"]},{"addresses":["10.0.0.5"]}]})"));
  EXPECT_EQ(
      align_tabs(network_text(
          parsed(
              R"({"kind":"Service","metadata":{"name":"web","namespace":"d"},"spec":{"type":"LoadBalancer","selector":{"b":"2","a":"1"},"ipFamilies":["IPv4"],
    "ipFamilyPolicy":"SingleStack","clusterIP":"10.96.0.9","clusterIPs":["10.96.0.9"],"externalIPs":["192.0.2.1"],"sessionAffinity":"None",
    "externalTrafficPolicy":"Cluster","internalTrafficPolicy":"Cluster","ports":[{"name":"http","port":80,"protocol":"TCP","targetPort":"web","nodePort":30080}]},
    "status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.7","ipMode":"VIP"},{"hostname":"lb"}]}}})"),
          related)),
      "Name:                     web\nNamespace:                d\nLabels:                   <none>\n"
      "Annotations:              <none>\nSelector:                 a=1,b=2\nType:                     LoadBalancer\n"
      "IP Family Policy:         SingleStack\nIP Families:              IPv4\nIP:                       10.96.0.9\n"
      "IPs:                      10.96.0.9\nExternal IPs:             192.0.2.1\n"
      "LoadBalancer Ingress:     192.0.2.7 (VIP), lb\nPort:                     http  80/TCP\nTargetPort:               web/TCP\n"
      "NodePort:                 http  30080/TCP\n"
      "Endpoints:                10.0.0.1:8080,[fd00::1]:8080,10.0.0.4:8080 + 1 more...\n"
      "Session Affinity:         None\nExternal Traffic Policy:  Cluster\nInternal Traffic Policy:  Cluster\n");
}

TEST(Describe, an_ingress_with_the_services_behind_it) {
  Related related;
  related.backends["web"].service = parsed(R"({"spec":{"ports":[{"name":"http","port":80}]}})");
  related.backends["web"].slices.push_back(
      parsed(R"({"ports":[{"name":"http","port":8080}],"endpoints":[{"addresses":["10.0.0.1"]}]})"));
  related.backends["gone"].error = "services \"gone\" not found";
  std::string text = align_tabs(network_text(
      parsed(
          R"({"kind":"Ingress","metadata":{"name":"i","namespace":"d"},"spec":{"defaultBackend":{"service":{"name":"gone","port":{"name":"x"}}},
    "tls":[{"hosts":["a","b"],"secretName":"s"},{"hosts":["c"]}],"rules":[{"host":"a","http":{"paths":[{"path":"/","backend":{"service":{"name":"web","port":{"number":80}}}}]}},
    {"http":{"paths":[{"path":"/f","backend":{"resource":{"kind":"Bucket","name":"f"}}}]}}]}})"),
      related));
  for (const char* line :
       {"Default backend:  gone:x (<error: services \"gone\" not found>)\n", "TLS:\n  s terminates a,b\n  SNI routes c\n",
        "  a           \n              /   web:80 (10.0.0.1:8080)\n",
        "  *           \n              /f   APIGroup: <none>, Kind: Bucket, Name: f\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

TEST(Describe, a_network_policy_in_sentences) {
  std::string text = network_text(
      parsed(
          R"({"kind":"NetworkPolicy","metadata":{"name":"p","namespace":"d"},"spec":{"podSelector":{},"policyTypes":["Ingress","Egress"],
    "ingress":[{"ports":[{"port":80},{"port":1,"endPort":9,"protocol":"UDP"}],"from":[{"podSelector":{"matchExpressions":[{"key":"z","operator":"In","values":["b","a"]},
    {"key":"a","operator":"Exists"}]},"namespaceSelector":{}},{"ipBlock":{"cidr":"192.0.2.0/24","except":["192.0.2.1/32"]}}]},{}]}})"),
      {});
  EXPECT_NE(text.find("Spec:\n  PodSelector:     <none> (Allowing the specific traffic to all pods in this namespace)\n"
                      "  Allowing ingress traffic:\n    To Port: 80/TCP\n    To Port Range: 1-9/UDP\n"
                      "    From:\n      NamespaceSelector: <none>\n      PodSelector: a,z in (a,b)\n"
                      "    From:\n      IPBlock:\n        CIDR: 192.0.2.0/24\n        Except: 192.0.2.1/32\n"
                      "    ----------\n    To Port: <any> (traffic allowed to all ports)\n"
                      "    From: <any> (traffic not restricted by source)\n  Allowing egress traffic:\n"
                      "    <none> (Selected pods are isolated for egress connectivity)\n  Policy Types: Ingress, Egress\n"),
            std::string::npos)
      << text;
}

TEST(Describe, a_claim_and_who_uses_it) {
  Related related;
  related.pods.items.push_back(
      parsed(R"({"metadata":{"name":"b"},"spec":{"volumes":[{"persistentVolumeClaim":{"claimName":"data"}}]}})"));
  related.pods.items.push_back(
      parsed(R"({"metadata":{"name":"a"},"spec":{"volumes":[{"persistentVolumeClaim":{"claimName":"data"}}]}})"));
  related.pods.items.push_back(parsed(R"({"metadata":{"name":"c"},"spec":{"volumes":[{"emptyDir":{}}]}})"));
  EXPECT_EQ(
      align_tabs(storage_text(
          parsed(
              R"({"kind":"PersistentVolumeClaim","metadata":{"name":"data","namespace":"d","finalizers":["kubernetes.io/pvc-protection"]},"spec":{"storageClassName":"s",
    "volumeName":"v","volumeMode":"Filesystem"},"status":{"phase":"Bound","accessModes":["ReadWriteMany","ReadWriteOnce"],"capacity":{"storage":"1024Mi"}}})"),
          related, {})),
      "Name:          data\nNamespace:     d\nStorageClass:  s\nStatus:        Bound\nVolume:        v\nLabels:        <none>\n"
      "Annotations:   <none>\nFinalizers:    [kubernetes.io/pvc-protection]\nCapacity:      1Gi\nAccess Modes:  RWO,RWX\n"
      "VolumeMode:    Filesystem\nUsed By:       a\n               b\n");
}

TEST(Describe, a_role_by_resource) {
  EXPECT_EQ(
      align_tabs(access_text(parsed(
          R"({"kind":"Role","metadata":{"name":"r"},"rules":[{"apiGroups":["","apps"],"resources":["pods/log"],"verbs":["get"]},
    {"nonResourceURLs":["/a"],"verbs":["get"]},{"apiGroups":[""],"resources":["pods/log"],"verbs":["list"]}]})"))),
      "Name:         r\nLabels:       <none>\nAnnotations:  <none>\nPolicyRule:\n"
      "  Resources      Non-Resource URLs  Resource Names  Verbs\n"
      "  ---------      -----------------  --------------  -----\n"
      "  pods/log       []                 []              [get list]\n"
      "                 [/a]               []              [get]\n"
      "  pods.apps/log  []                 []              [get]\n");
}

TEST(Describe, a_service_account_and_its_pull_secrets) {
  std::string text = align_tabs(access_text(parsed(
      R"({"kind":"ServiceAccount","metadata":{"name":"a"},"secrets":[{"name":"s"}],"imagePullSecrets":[{"name":"x"},{"name":"y"}]})")));
  EXPECT_EQ(text,
            "Name:                a\nLabels:              <none>\nAnnotations:         <none>\nImage pull secrets:  x\n"
            "                     y\n");
}

TEST(Describe, an_ephemeral_volume_with_its_claim) {
  std::string text;
  put_volume_source(
      text,
      parsed(
          R"({"name":"v","ephemeral":{"volumeClaimTemplate":{"metadata":{"labels":{"a":"b","c":"d"}},"spec":{"storageClassName":"s"}}}})"),
      false);
  EXPECT_NE(text.find("    StorageClass:\ts\n    Volume:\t\n    Labels:\t    a=b\n    \t    c=d\n    Annotations:\t    <none>\n"
                      "    Capacity:\t\n"),
            std::string::npos)
      << text;
}

TEST(Describe, a_node_and_what_its_pods_take) {
  Related related;
  related.pods.items.push_back(parsed(
      R"({"metadata":{"name":"p","namespace":"d","creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"250m","memory":"64Mi"}}},
    {"name":"b","resources":{"requests":{"cpu":"250m"},"limits":{"cpu":"1"}}}]}})"));
  related.lease_error = "not there";
  std::string text = align_tabs(machine_text(
      parsed(
          R"({"kind":"Node","metadata":{"name":"n","labels":{"node-role.kubernetes.io/worker":""}},"spec":{"taints":[{"key":"b","effect":"NoSchedule"},{"key":"a","value":"v","effect":"NoExecute"}]},
    "status":{"allocatable":{"cpu":"2","memory":"1024Mi","pods":"110","hugepages-2Mi":"0","example.com/x":"1"}}})"),
      related, *parse_time("2026-01-01T00:01:00Z")));
  for (const char* line :
       {"Roles:              worker\n", "Taints:             a=v:NoExecute\n                    b:NoSchedule\n",
        "Lease:              Failed to get lease: not there\n", "Non-terminated Pods:          (1 in total)\n",
        "  d                           p       500m (25%)    1 (50%)     64Mi (6%)        0 (0%)         60s\n",
        "  cpu                500m (25%)  1 (50%)\n", "  memory             64Mi (6%)   0 (0%)\n",
        "  ephemeral-storage  0 (0%)      0 (0%)\n", "  hugepages-2Mi      0 (0%)      0 (0%)\n",
        "  example.com/x      0           0\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

TEST(Describe, what_a_pod_holds_while_it_is_resized) {
  auto text = [](const std::string& conditions, const std::string& cpu) {
    Related related;
    related.pods.items.push_back(parsed(
        R"({"metadata":{"name":"p","namespace":"d"},"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"500m"}}}]},
      "status":{"conditions":[)" +
        conditions + R"(],"containerStatuses":[{"name":"a","resources":{"requests":{"cpu":")" + cpu +
        R"("}},"allocatedResources":{"cpu":")" + cpu + R"("}}]}})"));
    return machine_text(
        parsed(R"({"kind":"Node","metadata":{"name":"n"},"status":{"allocatable":{"cpu":"2","memory":"1024Mi"}}})"), related,
        WallTime());
  };
  const std::string infeasible = R"({"type":"PodResizePending","reason":"Infeasible"})";
  for (const auto& [conditions, cpu, held] : {std::tuple{"", "1", "1 (50%)"}, std::tuple{"", "250m", "500m (25%)"},
                                              std::tuple{infeasible.c_str(), "250m", "250m (12%)"}}) {
    std::string shown = text(conditions, cpu);
    EXPECT_NE(shown.find(std::string("  d\tp\t\t") + held + "\t0 (0%)"), std::string::npos) << held << shown;
    EXPECT_NE(shown.find("  cpu\t500m (25%)\t0 (0%)\n"), std::string::npos) << "the total is of what was asked for\n" << shown;
  }
}

TEST(Describe, the_state_of_containers) {
  std::string text = align_tabs(pod_text(
      parsed(
          R"({"kind":"Pod","metadata":{"name":"p","namespace":"d","deletionTimestamp":"2026-01-01T00:00:00Z","deletionGracePeriodSeconds":30},
    "spec":{"containers":[{"name":"a","image":"i"},{"name":"b","image":"i"}]},"status":{"phase":"Running","containerStatuses":[
    {"name":"a","state":{"waiting":{"reason":"CrashLoopBackOff","message":"m"}},"lastState":{"terminated":{"exitCode":2,"reason":"Error"}}},
    {"name":"b","state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}},"ready":true}]}})"),
      *parse_time("2026-01-01T00:00:10Z")));
  for (const char* line : {"Status:                    Terminating (lasts 10s)\nTermination Grace Period:  30s\n",
                           "    State:          Waiting\n      Reason:       CrashLoopBackOff\n    Last State:     Terminated\n",
                           "      Exit Code:    2\n      Started:      Mon, 01 Jan 0001 00:00:00 +0000\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

TEST(Describe, a_pod_and_what_it_waits_for) {
  auto text = [](const std::string& message) {
    return pod_text(
        parsed(R"({"kind":"Pod","metadata":{"name":"web"},"status":{"phase":"Pending","conditions":[{"type":"PodScheduled",
        "status":"False","reason":"SchedulingGated","message":")" +
               message + R"("}]}})"),
        WallTime());
  };
  const std::string waits = "Start Order:\tcoracle.io/after: waiting for deployment/db: not found\n";
  EXPECT_NE(text("coracle.io/after: waiting for deployment/db: not found").find(waits), std::string::npos);
  EXPECT_EQ(text("Scheduling is blocked due to non-empty scheduling gates").find("Start Order"), std::string::npos);
}

// Fields that most objects do not have, and what stands for them.
TEST(Describe, what_workloads_seldom_have) {
  auto expect = [](const std::string& text, std::initializer_list<const char*> lines) {
    for (const char* line : lines) EXPECT_NE(text.find(line), std::string::npos) << line << text;
  };
  std::string cron = told(R"({"kind":"CronJob","metadata":{"name":"c"},"spec":{"schedule":"* * * * *"}})");
  expect(cron, {"Time Zone:                     <unset>\n"});
  auto indexed = [](const std::string& indexes) {
    return told(
        R"({"kind":"Job","metadata":{"name":"j"},"spec":{"completionMode":"Indexed"},"status":{"startTime":"2026-01-01T00:00:00Z",
                    "failedIndexes":"7","completedIndexes":")" +
        indexes + R"("}})");
  };
  expect(indexed(""), {"Completed Indexes:  <none>\n"});
  const std::string fifty(50, '1');  // characters
  for (auto [given, shown] : {std::pair{fifty, fifty}, std::pair{fifty + "8", fifty + "8"},
                              std::pair{fifty + ",2", fifty + ",..."}, std::pair{fifty + "8,370,372", fifty + "8,..."}})
    EXPECT_NE(indexed(given).find("Completed Indexes:  " + shown + "\n"), std::string::npos) << given;
  EXPECT_EQ(indexed("").find("Duration:"), std::string::npos) << "it still runs";
  std::string set = told(R"({"kind":"StatefulSet","metadata":{"name":"s"},"spec":{"volumeClaimTemplates":[{"metadata":{"name":"d",
      "annotations":{"a":"b","c":"d"}},"spec":{"resources":{"requests":{"storage":"1024Mi"}}}}]}})");
  expect(set, {"  Annotations:   a=b\n                 c=d\n", "  Capacity:      1Gi\n"});
  EXPECT_EQ(told(R"({"kind":"Deployment","metadata":{"name":"d"}})").find("ReplicaSet"), std::string::npos)
      << "there is none yet";
  expect(
      told(
          R"({"kind":"HorizontalPodAutoscaler","metadata":{"name":"h"},"spec":{"metrics":[{"type":"Resource","resource":{"name":"cpu",
      "target":{"type":"Utilization"}}},{"type":"Moon"}]}})"),
      {"  resource cpu on pods  (as a percentage of request):  <unknown> / <auto>\n", "  <unknown metric type \"Moon\">\n"});
  std::string service = network_text(
      parsed(
          R"({"kind":"Service","metadata":{"name":"w"},"spec":{"ports":[{"port":80,"protocol":"TCP","targetPort":8080,"appProtocol":"h2c"}]}})"),
      {});
  expect(service, {"TargetPort:\t8080/TCP\nAppProtocol:\th2c\nEndpoints:\t<none>\n"});
}

TEST(Describe, what_pods_seldom_have) {
  std::string text = pod_text(
      parsed(
          R"({"kind":"Pod","metadata":{"name":"p","namespace":"d"},"spec":{"schedulingGroup":{"podGroupName":"g"},"containers":[{"name":"a",
      "env":[{"name":"FROM_FILE","valueFrom":{"fileKeyRef":{"key":"k","path":"f","volumeName":"v"}}},{"name":"PLAIN","value":"x"}],
      "livenessProbe":{"httpGet":{"host":"fd00::1","port":80,"path":"/x"}}}]}})"),
      WallTime());
  EXPECT_NE(text.find("    Environment:\n      PLAIN:\tx\n"), std::string::npos) << text;
  EXPECT_NE(text.find("http-get http://[fd00::1]:80/x delay=0s"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("Tolerations:\t<none>\nSchedulingGroup:\n  PodGroupName:\tg\n")) << text;
}

TEST(Describe, what_only_volumes_of_a_cluster_have) {
  auto text = [](const char* holder, bool persistent) {
    std::string shown;
    put_volume_source(shown, parsed(holder), persistent);
    return shown;
  };
  const char* gluster = R"({"glusterfs":{"endpoints":"e","path":"p"}})";
  EXPECT_EQ(text(gluster, true),
            "    Type:\tGlusterfs (a Glusterfs mount on the host that shares a pod's lifetime)\n    EndpointsName:\te\n"
            "    EndpointsNamespace:\t<unset>\n    Path:\tp\n    ReadOnly:\tfalse\n");
  EXPECT_EQ(text(gluster, false).find("EndpointsNamespace"), std::string::npos);
  EXPECT_NE(text(R"({"scaleIO":{"volumeName":"v","secretRef":{"name":"s","namespace":"n"}}})", true)
                .find("    VolumeName:\tv\n    SecretName:\ts\n    SecretNamespace:\tn\n    FSType:\t\n"),
            std::string::npos);
  const char* rbd = R"({"rbd":{"image":"i","secretRef":{"name":"s"}}})";
  EXPECT_NE(text(rbd, true).find("    SecretRef:\t&SecretReference{Name:s,Namespace:,}\n"), std::string::npos);
  EXPECT_NE(text(rbd, false).find("    SecretRef:\t&LocalObjectReference{Name:s,}\n"), std::string::npos);
  EXPECT_NE(text(R"({"emptyDir":{"sizeLimit":"0"}})", false).find("    SizeLimit:\t<unset>\n"), std::string::npos);
  EXPECT_NE(text(R"({"emptyDir":{"sizeLimit":"1024Mi"}})", false).find("    SizeLimit:\t1Gi\n"), std::string::npos);
}

TEST(Describe, what_is_used_of_a_quota_as_its_limit_is_written) {
  const std::string status =
      R"("status":{"hard":{"requests.memory":"1Gi","requests.cpu":"2"},"used":{"requests.memory":"500M","requests.cpu":"500m"}}})";
  const json::value quota = parsed(R"({"kind":"ResourceQuota","metadata":{"name":"q","namespace":"d"},)" + status);
  EXPECT_NE(machine_text(quota, {}, {}).find("requests.cpu\t500m\t2\nrequests.memory\t500000000\t1Gi\n"), std::string::npos);
  Related related;
  related.quotas.items.push_back(quota);
  EXPECT_NE(
      machine_text(parsed(R"({"kind":"Namespace","metadata":{"name":"d"}})"), related, {}).find("requests.memory\t500M\t1Gi\n"),
      std::string::npos)
      << "of a namespace as it is";
}

TEST(Describe, the_devices_of_a_node_by_pools) {
  Related related;
  auto add = [&](const std::string& pool, size_t devices) {
    json::array all(devices, json::object{{"name", "d"}});
    related.device_slices.push_back(json::object{{"spec", {{"driver", "gpu"}, {"pool", {{"name", pool}}}, {"devices", all}}}});
  };
  const json::value node = parsed(R"({"kind":"Node","metadata":{"name":"n"}})");
  EXPECT_EQ(machine_text(node, related, {}).find("ResourceSlices"), std::string::npos);
  add("b", 1), add("a", 2), add("b", 3);
  const std::string head = "Node-Local ResourceSlices:\n  Driver\tPool\tSlices\tDevices\n  ------\t----\t------\t-------\n";
  EXPECT_NE(machine_text(node, related, {}).find(head + "  gpu\ta\t1\t2\n  gpu\tb\t2\t4\nSystem Info:\n"), std::string::npos);
  for (char pool = 'c'; pool <= 'l'; ++pool) add(std::string(1, pool), 0);
  EXPECT_NE(machine_text(node, related, {}).find("  gpu\tj\t1\t0\n  ...and 2 more pools\nSystem Info:\n"), std::string::npos);
}

TEST(Describe, fields_by_their_words) {
  std::string text = plain_text(parsed(
      R"({"podCIDRs":"a","hostIPs":"b","nonResourceURLs":"c","node-name":"d","selfLink":"e","ABc":"f","guid":"g","osbKey":"h"})"));
  for (const char* line : {"Pod CIDRs:\ta\n", "Host I Ps:\tb\n", "Non Resource URLs:\tc\n", "Node - Name:\td\n",
                           "Self Link:\te\n", "A Bc:\tf\n", "GUID:\tg\n", "Osb Key:\th\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

TEST(Describe, says_what_may_not_be_read_in_its_place) {
  FakeApi api;
  const std::string core = "/api/v1/namespaces/default/", apps = "/apis/apps/v1/namespaces/default/";
  auto put = [&](const std::string& path, const std::string& version, const std::string& kind) {
    api.put(path,
            R"({"apiVersion":")" + version + R"(","kind":")" + kind +
                R"(","metadata":{"name":"x","namespace":"default","uid":"u"},"spec":{"selector":{"matchLabels":{"a":"b"}},)" +
                R"("template":{},"ports":[{"port":80,"protocol":"TCP"}]}})");
  };
  for (auto [resource, kind] : {std::pair{"deployments", "Deployment"}, std::pair{"replicasets", "ReplicaSet"},
                                std::pair{"statefulsets", "StatefulSet"}, std::pair{"daemonsets", "DaemonSet"}})
    put(apps + resource + "/x", "apps/v1", kind);
  for (auto [resource, kind] : {std::pair{"services", "Service"}, std::pair{"persistentvolumeclaims", "PersistentVolumeClaim"},
                                std::pair{"pods", "Pod"}, std::pair{"configmaps", "ConfigMap"}})
    put(core + resource + "/x", "v1", kind);
  api.put("/api/v1/namespaces/x", R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"x"}})");
  auto expect_told = [&](const std::string& kind, const std::vector<std::string>& texts) {
    FakeApi::Outcome outcome = api.run({"describe", kind, "x"});
    EXPECT_EQ(outcome.code, 0) << kind << outcome.err;
    EXPECT_TRUE(outcome.out.starts_with("Name: ")) << kind << outcome.out;
    for (const auto& text : texts) EXPECT_NE(outcome.out.find(text), std::string::npos) << kind << ": " << text << outcome.out;
  };
  const std::string refused = " is forbidden: User \"eve\" cannot read it";
  api.forbid("events");
  const std::string events = "<error: events" + refused + ">\n";
  for (const char* kind : {"pod", "configmap", "deployment"}) expect_told(kind, {"Events:", events});
  for (const char* resource : {"replicasets", "endpointslices", "resourcequotas", "limitranges"}) api.forbid(resource);
  const std::string sets = "<error: replicasets" + refused + ">\n";
  expect_told("deployment", {"OldReplicaSets:", "NewReplicaSet:", sets, events});
  expect_told("service", {"Endpoints:", "<error: endpointslices" + refused + ">\n", events});
  expect_told("namespace", {"Resource Quotas <error: resourcequotas" + refused + ">\n",
                            "Resource Limits <error: limitranges" + refused + ">\n"});
  api.forbid("pods");
  const std::string pods = "error in fetching pods: pods" + refused + "\n";
  for (const char* kind : {"statefulset", "daemonset"}) expect_told(kind, {"Pods Status:", pods, events});
  expect_told("persistentvolumeclaim", {"Used By:", "<error: pods" + refused + ">\n", events});
  EXPECT_EQ(api.run({"describe", "pod", "x"}).code, 1) << "the object itself is not there without the right to read it";
}

TEST(Events, say_how_often_over_how_long) {
  WallTime now = *parse_time("2026-01-01T00:10:00Z");
  EXPECT_EQ(
      event_age(parsed(R"({"firstTimestamp":"2026-01-01T00:09:00Z","lastTimestamp":"2026-01-01T00:09:50Z","count":3})"), now),
      "10s (x3 over 60s)");
  EXPECT_EQ(
      event_age(parsed(R"({"firstTimestamp":"2026-01-01T00:09:50Z","lastTimestamp":"2026-01-01T00:09:50Z","count":1})"), now),
      "10s");
  EXPECT_EQ(
      event_age(
          parsed(
              R"({"eventTime":"2026-01-01T00:08:00.000000Z","series":{"count":2,"lastObservedTime":"2026-01-01T00:09:30.000000Z"}})"),
          now),
      "30s (x2 over 2m)");
  EXPECT_EQ(
      event_age(
          parsed(
              R"({"eventTime":"2026-01-01T00:08:00.000000Z","count":7,"series":{"count":1,"lastObservedTime":"2026-01-01T00:09:30.000000Z"}})"),
          now),
      "30s (x1 over 2m)");
  EXPECT_EQ(uid_in_events(parsed(R"({"kind":"Pod","metadata":{"name":"p","uid":"1"}})")), "1");
  EXPECT_EQ(uid_in_events(parsed(R"({"kind":"Node","metadata":{"name":"n","uid":"1"}})")), "n");
  EXPECT_EQ(uid_in_events(parsed(
                R"({"kind":"Pod","metadata":{"name":"p","uid":"1","annotations":{"kubernetes.io/config.mirror":"hash"}}})")),
            "hash");
  EXPECT_EQ(event_time(parsed(R"({"lastTimestamp":"2026-01-01T00:01:00Z","eventTime":"2026-01-01T00:00:00Z"})")),
            *parse_time("2026-01-01T00:01:00Z"));
}

}  // namespace
}  // namespace coracle::ctl
