// SPDX-License-Identifier: Apache-2.0
// The output of `why`: the chain from the named object to the cause.
#include "ctl/why.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "store/object/object.h"

namespace coracle::ctl {
namespace {

struct Why : testing::Test {
  std::map<std::string, json::array, std::less<>> objects;
  json::value placement;
  std::set<std::string, std::less<>> refused;  // kinds that may not be read

  void put(const std::string& kind, const std::string& name, std::string_view rest, const std::string& owner = "") {
    json::value object = MUST(parse_json(rest));
    make(object, "metadata.name") = name;
    make(object, "metadata.uid") = kind + "/" + name;
    if (!owner.empty()) make(object, "metadata.ownerReferences") = json::array{{{"controller", true}, {"uid", owner}}};
    objects[kind].push_back(std::move(object));
  }
  void warn(const std::string& about, const std::string& reason, const std::string& message, const std::string& when) {
    json::value event = {{"type", "Warning"},
                         {"reason", reason},
                         {"message", message},
                         {"lastTimestamp", when},
                         {"involvedObject", {{"kind", about.substr(0, about.find('/'))}, {"uid", about}}}};
    put("Event", "e" + std::to_string(objects["Event"].size()), json::serialize(event));
  }
  std::string ask(const std::string& kind, const std::string& name) {
    WhySource source;
    source.get = [&](std::string_view kind, std::string_view name) -> Result<json::value> {
      if (refused.contains(kind)) return Error(Code::forbidden, "you may not get " + std::string(kind));
      for (const json::value& object : objects[std::string(kind)])
        if (get_string(object, "metadata.name") == name) return object;
      return json::value();
    };
    source.list = [&](std::string_view kind) -> Result<json::array> {
      if (refused.contains(kind)) return Error(Code::forbidden, "you may not list " + std::string(kind));
      return objects[std::string(kind)];
    };
    source.placement = [&](std::string_view) -> Result<json::value> {
      if (placement.is_null()) return Error(Code::forbidden, "you may not see nodes");
      return placement;
    };
    auto answer = why(source, kind, name);
    return answer ? *answer : "error: " + answer.error().text();
  }
};

TEST_F(Why, what_is_not_there_is_not_found) { EXPECT_EQ(ask("Pod", "x"), "error: pod \"x\" not found"); }

TEST_F(Why, a_pod_that_does_not_fit_shows_each_node_and_what_would_help) {
  put("Pod", "big",
      R"({"spec":{},"status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable",
    "message":"0/1 nodes are available: 1 Insufficient cpu."}]}})");
  placement = MUST(parse_json(R"({"nodes":[{"name":"pi","fits":false,"filters":[{"plugin":"NodeName","ok":true},
    {"plugin":"NodeResourcesFit","ok":false,"reasons":[{"text":"Insufficient cpu","figures":"requested 2, free 500m of 1"}]}]}],
    "missing":["node pi: 1500m cpu"],"cures":["let something go from node pi"]})"));
  warn("Pod/big", "FailedScheduling", "said above", "2026-01-01T00:00:00Z");
  EXPECT_EQ(ask("Pod", "big"),
            "pod/big: Pending, on no node, not ready\n"
            "  Unschedulable: 0/1 nodes are available: 1 Insufficient cpu.\n"
            "  node pi: does not fit\n"
            "    FILTER             SAYS\n"
            "    NodeName           ok\n"
            "    NodeResourcesFit   Insufficient cpu (requested 2, free 500m of 1)\n"
            "  missing: node pi: 1500m cpu\n"
            "  → let something go from node pi\n");
}

TEST_F(Why, a_scheduled_pod_shows_why_it_stands_there) {
  put("Pod", "web", R"({"spec":{"nodeName":"pi"},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}],
    "containerStatuses":[{"name":"c","ready":true,"restartCount":0,"state":{"running":{}}}]}})");
  placement = MUST(parse_json(R"({"nodes":[{"name":"pi","fits":true,"total":180,"filters":[{"plugin":"NodeName","ok":true}],
    "scores":[{"plugin":"ImageLocality","raw":80,"normalized":80,"weight":1,"total":80},
              {"plugin":"NodeAffinity","raw":1,"normalized":50,"weight":2,"total":100}]}]})"));
  EXPECT_EQ(ask("Pod", "web"),
            "pod/web: Running, on node pi, ready\n"
            "  node pi: fits, score 180\n"
            "    FILTER     SAYS\n"
            "    NodeName   ok\n"
            "    SCORE           RAW   NORMALIZED   WEIGHT   TOTAL\n"
            "    ImageLocality   80    80           1        80\n"
            "    NodeAffinity    1     50           2        100\n");
}

TEST_F(Why, who_may_not_see_nodes_is_told_the_rest) {
  put("Pod", "big", R"({"spec":{},"status":{"phase":"Pending"}})");
  EXPECT_NE(ask("Pod", "big").find("the scheduler's view: you may not see nodes"), std::string::npos);
}

TEST_F(Why, what_may_not_be_read_is_named_and_the_rest_told) {
  put("Deployment", "web", R"({"spec":{"replicas":2},"status":{}})");
  put("ReplicaSet", "web-1", R"({"spec":{"replicas":2},"status":{}})", "Deployment/web");
  for (const char* name : {"web-1-a", "web-1-b"})
    put("Pod", name,
        R"({"metadata":{"labels":{"a":"b"}},"spec":{"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"data"}}]},
            "status":{"phase":"Pending"}})",
        "ReplicaSet/web-1");
  put("PersistentVolumeClaim", "data", R"({"status":{"phase":"Pending"}})");
  put("Service", "web", R"({"spec":{"selector":{"a":"b"},"ports":[{"port":80}]}})");
  placement = MUST(parse_json(R"({"nodes":[]})"));
  refused = {"Event"};
  EXPECT_EQ(ask("Deployment", "web"),
            "deployment/web: 0 of 2 pods available, 0 of the newest template\n"
            "  replicaset/web-1: 0 of 2 pods made, 0 ready, 0 available\n"
            "    pod/web-1-a: Pending, on no node, not ready\n"
            "      not shown: you may not list Event\n"
            "      waits for a volume for the claim data\n"
            "    and 1 more like it\n");
  refused = {"PersistentVolumeClaim"};
  EXPECT_EQ(ask("Pod", "web-1-a"),
            "pod/web-1-a: Pending, on no node, not ready\n"
            "  not shown: you may not get PersistentVolumeClaim\n");
  refused = {"ReplicaSet"};
  EXPECT_EQ(ask("Deployment", "web"),
            "deployment/web: 0 of 2 pods available, 0 of the newest template\n"
            "  not shown: you may not list ReplicaSet\n");
  refused = {"Pod"};
  EXPECT_EQ(ask("ReplicaSet", "web-1"),
            "replicaset/web-1: 0 of 2 pods made, 0 ready, 0 available\n"
            "  not shown: you may not list Pod\n");
  EXPECT_EQ(ask("Service", "web"),
            "service/web: selects pods with a=b\n"
            "  not shown: you may not list Pod\n");
  EXPECT_EQ(ask("Pod", "web-1-a"), "error: you may not get Pod") << "what it is asked about";
  put("CronJob", "night", R"({"spec":{"schedule":"@daily"},"status":{}})");
  refused = {"Job", "Event"};
  EXPECT_EQ(ask("CronJob", "night"),
            "cronjob/night: @daily, has not run yet\n"
            "  not shown: you may not list Job\n"
            "  not shown: you may not list Event\n");
}

TEST_F(Why, a_gated_pod_says_what_it_waits_for) {
  put("Pod", "web",
      R"({"spec":{"schedulingGates":[{"name":"coracle.io/after"}]},"status":{"phase":"Pending","conditions":[{"type":"PodScheduled",
    "status":"False","reason":"SchedulingGated","message":"coracle.io/after: waiting for deployment/db: not found"}]}})");
  EXPECT_EQ(ask("Pod", "web"),
            "pod/web: Pending, on no node, not ready\n"
            "  held back by the scheduling gate coracle.io/after\n"
            "  coracle.io/after: waiting for deployment/db: not found\n");
}

TEST_F(Why, a_pod_that_waits_for_a_volume_says_for_which_and_why) {
  put("Pod", "db", R"({"spec":{"volumes":[{"name":"has","persistentVolumeClaim":{"claimName":"has"}},
    {"name":"data","persistentVolumeClaim":{"claimName":"data"}},{"name":"own","ephemeral":{}}]},"status":{"phase":"Pending"}})");
  put("PersistentVolumeClaim", "has", R"({"status":{"phase":"Bound"}})");
  put("PersistentVolumeClaim", "data", R"({"status":{"phase":"Pending"}})");
  put("PersistentVolumeClaim", "db-own", R"({"status":{"phase":"Pending"}})");
  warn("PersistentVolumeClaim/data", "ProvisioningFailed", "the disk is full", "2026-01-01T00:00:02Z");
  warn("PersistentVolumeClaim/data", "WaitForFirstConsumer", "waiting for first consumer", "2026-01-01T00:00:01Z");
  placement = MUST(parse_json(R"({"nodes":[]})"));
  EXPECT_EQ(ask("Pod", "db"),
            "pod/db: Pending, on no node, not ready\n"
            "  waits for a volume for the claim data: the disk is full\n"
            "  waits for a volume for the claim db-own\n");
}

TEST_F(Why, a_container_that_keeps_crashing_is_followed_to_its_last_words) {
  put("Pod", "web",
      R"({"spec":{"nodeName":"pi"},"status":{"phase":"Running","containerStatuses":[{"name":"c","ready":false,"restartCount":4,
    "state":{"waiting":{"reason":"CrashLoopBackOff","message":"back-off 40s"}},
    "lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled","message":"line one\nline two"}}}]}})");
  placement = json::object{};
  warn("Pod/web", "BackOff", "Back-off restarting", "2026-01-01T00:00:02Z");
  warn("Pod/web", "BackOff", "older", "2026-01-01T00:00:01Z");
  EXPECT_EQ(ask("Pod", "web"),
            "pod/web: Running, on node pi, not ready\n"
            "  container c: waits: CrashLoopBackOff: back-off 40s, restarted 4 times\n"
            "    it ended before with 137, OOMKilled: line one\\nline two\n"
            "    → raise resources.limits.memory, or find what uses it: coraclectl logs web -c c --previous\n"
            "  event BackOff: Back-off restarting\n");
}

TEST_F(Why, a_deployment_is_followed_to_a_quota) {
  put("Deployment", "web",
      R"({"spec":{"replicas":3},"status":{"availableReplicas":0,"conditions":[{"type":"Progressing","status":"False",
    "reason":"ProgressDeadlineExceeded","message":"ReplicaSet \"web-1\" has timed out progressing."}]}})");
  put("ReplicaSet", "web-1",
      R"({"spec":{"replicas":3},"status":{"replicas":0,"conditions":[{"type":"ReplicaFailure","status":"True","reason":"FailedCreate",
    "message":"pods \"web-1-\" is forbidden: exceeded quota: small"}]}})",
      "Deployment/web");
  put("ReplicaSet", "other", R"({"spec":{"replicas":1}})");
  EXPECT_EQ(ask("Deployment", "web"),
            "deployment/web: 0 of 3 pods available, 0 of the newest template\n"
            "  ProgressDeadlineExceeded: ReplicaSet \"web-1\" has timed out progressing.\n"
            "  replicaset/web-1: 0 of 3 pods made, 0 ready, 0 available\n"
            "    FailedCreate: pods \"web-1-\" is forbidden: exceeded quota: small\n"
            "    → raise the quota (coraclectl describe quota), or let something else go\n");
}

TEST_F(Why, pods_with_the_same_trouble_are_told_once) {
  put("ReplicaSet", "web-1", R"({"spec":{"replicas":3},"status":{"replicas":3}})");
  for (const char* name : {"a", "b", "c"})
    put("Pod", name, R"({"spec":{"nodeName":"pi"},"status":{"phase":"Pending","containerStatuses":[{"name":"c","restartCount":0,
      "state":{"waiting":{"reason":"ImagePullBackOff","message":"no such image"}}}]}})",
        "ReplicaSet/web-1");
  EXPECT_EQ(
      ask("ReplicaSet", "web-1"),
      "replicaset/web-1: 3 of 3 pods made, 0 ready, 0 available\n"
      "  pod/a: Pending, on node pi, not ready\n"
      "    container c: waits: ImagePullBackOff: no such image\n"
      "      → check the image's name and that its registry can be reached; without a network: coraclectl image import FILE\n"
      "  and 2 more like it\n");
}

TEST_F(Why, a_probe_that_does_not_pass) {
  put("Pod", "web", R"({"spec":{"nodeName":"pi"},"status":{"phase":"Running","containerStatuses":[
    {"name":"c","ready":false,"started":true,"restartCount":0,"state":{"running":{}}}]}})");
  placement = json::object{};
  warn("Pod/web", "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 500", "2026-01-01T00:00:00Z");
  EXPECT_EQ(ask("Pod", "web"),
            "pod/web: Running, on node pi, not ready\n"
            "  container c: runs, but its readiness probe does not pass\n"
            "  event Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 500\n");
}

TEST_F(Why, a_service_that_selects_nobody) {
  put("Service", "web", R"({"spec":{"selector":{"app":"web"}}})");
  EXPECT_NE(ask("Service", "web").find("0 of 0 pods with app=web are ready\n  → no pod has these labels"), std::string::npos);
}

TEST_F(Why, a_service_whose_port_leads_to_none_of_its_pods) {
  put("Service", "web",
      R"({"spec":{"selector":{"app":"web"},"ports":[{"port":80,"targetPort":"http"},{"port":81,"targetPort":9000},
    {"port":82,"targetPort":"web"},{"port":83,"targetPort":8080},{"port":8080},{"port":84,"protocol":"UDP","targetPort":"web"}]}})");
  put("Pod", "web", R"({"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","ports":[
    {"name":"web","containerPort":8080}]}]},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}})");
  EXPECT_EQ(ask("Service", "web"),
            "service/web: 1 of 1 pods with app=web are ready\n"
            "  port 80/TCP leads to the pods' port \"http\", and no container of theirs has a TCP port of that name\n"
            "    → name a port so in the containers, or give targetPort a number\n"
            "  port 81/TCP leads to 9000/TCP, which no container of these pods declares\n"
            "    → if nothing listens there, correct the service's targetPort\n"
            "  port 84/UDP leads to the pods' port \"web\", and no container of theirs has a UDP port of that name\n"
            "    → name a port so in the containers, or give targetPort a number\n");
}

TEST_F(Why, what_to_do_follows_from_what_the_message_says) {
  auto cure = [&](const std::string& state) {
    objects.clear();
    put("Pod", "web",
        R"({"spec":{"nodeName":"pi"},"status":{"phase":"Pending","containerStatuses":[
      {"name":"c","ready":false,"restartCount":0,"state":)" +
            state + "}]}}");
    std::string said = ask("Pod", "web");
    size_t at = said.find("→ ");
    return at == said.npos ? "" : said.substr(at + strlen("→ "), said.find('\n', at) - at - strlen("→ "));
  };
  placement = json::object{};
  EXPECT_EQ(cure(R"({"waiting":{"reason":"ErrImagePull","message":"pull r/x: https://r/v2/: 401: authentication required"}})"),
            "if the image is private, name a secret of type kubernetes.io/dockerconfigjson in imagePullSecrets");
  EXPECT_EQ(cure(R"({"waiting":{"reason":"ImagePullBackOff","message":"untrusted; or list the server in insecureRegistries"}})"),
            "");
  EXPECT_EQ(cure(R"({"waiting":{"reason":"ErrImagePull","message":"write layer: No space left on device"}})"),
            "free space: coraclectl image prune");
  EXPECT_EQ(cure(R"({"waiting":{"reason":"ImagePullBackOff","message":"pull a/b: the disk is nearly full"}})"),
            "free space: coraclectl image prune");
  EXPECT_EQ(cure(R"({"waiting":{"reason":"ErrImagePull","message":"open image store: mkdir: Read-only file system"}})"),
            "the disk can only be read, after errors most often: dmesg says which; check it with fsck, or replace it");
  EXPECT_EQ(cure(R"({"terminated":{"exitCode":128,"reason":"StartError","message":"exec: /app: Exec format error"}})"),
            "take an image for this machine's processor; a script must begin with #! and its interpreter");
  EXPECT_EQ(
      cure(R"({"terminated":{"exitCode":128,"reason":"StartError","message":"mount: a directory is mounted over a file"}})"),
      "mount one file of a volume with subPath, or a whole volume at a directory");
  EXPECT_EQ(cure(R"({"terminated":{"exitCode":1,"reason":"Error","message":"the server answered 401"}})"),
            "see what it said last: coraclectl logs web -c c --previous");
}

}  // namespace
}  // namespace coracle::ctl
