// SPDX-License-Identifier: Apache-2.0
// Tables: the columns that kubectl prints, and their cells.
#include "store/schema/table.h"

#include <gtest/gtest.h>

#include "runtime/base/text.h"
#include "store/schema/table/cells.h"
#include "tests/store/schema/prepared.h"

namespace coracle::schema {
namespace {

std::string cells(const Kind& kind, const char* text) { return row_text(kind, *parse_json(text)); }

TEST(Table, every_column_has_a_rule) {
  for (const KindInfo& info : catalog().kinds()) {
    for (const Column& column : info.columns()) {
      EXPECT_NE(cell_rule(split(column.cell, ' ')[0]), nullptr) << info.kind.kind << " " << column.name;
    }
  }
}

TEST(Table, every_kind_can_be_shown_when_nothing_is_set) {
  for (const KindInfo& info : catalog().kinds()) {
    EXPECT_EQ(cells_of(info, json::object(), kNow).size(), info.columns().size());
  }
}

TEST(Table, shows_workloads_and_small_kinds) {
  EXPECT_EQ(cells(kDeployment, R"({"metadata":{"name":"d","creationTimestamp":"2026-01-01T23:59:00Z"},"spec":{"replicas":3,
      "selector":{"matchLabels":{"app":"w"}},"template":{"spec":{"containers":[{"name":"a","image":"x"},{"name":"b","image":"y"}]}}},
      "status":{"readyReplicas":2,"updatedReplicas":3,"availableReplicas":1}})"),
            R"(["d","2/3",3,1,"60s","a,b","x,y","app=w"])");
  EXPECT_EQ(cells(kReplicaSet, R"({"metadata":{"name":"r"},"spec":{"replicas":1}})"),
            R"(["r",1,0,0,"<unknown>","","","<none>"])");
  EXPECT_EQ(cells(kConfigMap, R"({"metadata":{"name":"c"},"data":{"a":"","b":""},"binaryData":{"c":""}})"),
            R"(["c",3,"<unknown>"])");
  EXPECT_EQ(cells(kSecret, R"({"metadata":{"name":"s"},"type":"Opaque"})"), R"(["s","Opaque",0,"<unknown>"])");
  EXPECT_EQ(cells(kNamespace, R"({"metadata":{"name":"n"},"status":{"phase":"Active"}})"), R"(["n","Active","<unknown>"])");
}

TEST(Table, shows_nodes) {
  EXPECT_EQ(
      cells(kNode,
            R"({"metadata":{"name":"n","labels":{"node-role.kubernetes.io/worker":"","node-role.kubernetes.io/control-plane":""}},
      "spec":{"unschedulable":true},"status":{"conditions":[{"type":"Ready","status":"True"}],
      "addresses":[{"type":"InternalIP","address":"10.0.0.1"}],"nodeInfo":{"kubeletVersion":"v1.36.1"}}})"),
      R"(["n","Ready,SchedulingDisabled","control-plane,worker","<unknown>","v1.36.1","10.0.0.1","<none>","<unknown>",)"
      R"("<unknown>","<unknown>"])");
  EXPECT_NE(cells(kNode, R"({"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}})").find("NotReady"),
            std::string::npos);
}

TEST(Table, shows_what_was_measured) {
  EXPECT_EQ(cells(kNodeMetrics, R"({"metadata":{"name":"n"},"window":"15s","usage":{"cpu":"120m","memory":"512Mi"}})"),
            R"(["n","120m","512Mi","15s"])");
  EXPECT_EQ(cells(kPodMetrics, R"({"metadata":{"name":"p"},"window":"1.5s","containers":[{"usage":{"cpu":"1500u","memory":"1Mi"}},
      {"usage":{"cpu":"500u","memory":"512Ki"}}]})"),
            R"(["p","2m","1536Ki","1.5s"])");
}

TEST(Table, shows_services_and_endpoints) {
  EXPECT_EQ(
      cells(kService, R"({"metadata":{"name":"s"},"spec":{"type":"NodePort","clusterIP":"10.1.1.1","clusterIPs":["10.1.1.1"],
      "ports":[{"port":80,"nodePort":30080,"protocol":"TCP"},{"port":53,"protocol":"UDP"}],"selector":{"app":"w"}}})"),
      R"(["s","NodePort","10.1.1.1","<none>","80:30080/TCP,53/UDP","<unknown>","app=w"])");
  EXPECT_NE(cells(kService, R"({"spec":{"type":"LoadBalancer"}})").find("<pending>"), std::string::npos);
  EXPECT_EQ(cells(kEndpoints, R"({"metadata":{"name":"e"},"subsets":[{"addresses":[{"ip":"10.0.0.1"},{"ip":"10.0.0.2"}],
      "ports":[{"port":80},{"port":81}]}]})"),
            R"(["e","10.0.0.1:80,10.0.0.2:80,10.0.0.1:81 + 1 more...","<unknown>"])");
  EXPECT_EQ(cells(kEndpointSlice, R"({"metadata":{"name":"e"},"addressType":"IPv4","ports":[{"port":80}],
      "endpoints":[{"addresses":["10.0.0.1"]}]})"),
            R"(["e","IPv4","80","10.0.0.1","<unknown>"])");
}

TEST(Table, shows_events) {
  EXPECT_EQ(cells(kEvent, R"({"metadata":{"name":"e"},"type":"Normal","reason":"Started","message":" hi \n",
      "involvedObject":{"kind":"Pod","name":"p"},"source":{"component":"kubelet","host":"n"},"count":4,
      "firstTimestamp":"2026-01-01T23:00:00Z","lastTimestamp":"2026-01-01T23:59:30Z"})"),
            R"(["30s","Normal","Started","pod/p","","kubelet, n","hi","60m","4","e"])");
}

TEST(Table, says_what_a_pod_does) {
  struct Row {
    const char* pod;
    const char* ready;
    const char* status;
    const char* restarts;
  };
  for (
      const Row& row : {
          Row{R"({"spec":{"containers":[{"name":"a"}]},"status":{"phase":"Pending"}})", "0/1", "Pending", "0"},
          Row{R"({"spec":{"containers":[{"name":"a"}]},"status":{"phase":"Pending","containerStatuses":[
                 {"name":"a","state":{"waiting":{"reason":"ContainerCreating"}}}]}})",
              "0/1", "ContainerCreating", "0"},
          Row{R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]},"status":{"phase":"Running","containerStatuses":[
                 {"name":"a","ready":true,"restartCount":2,"state":{"running":{}},"lastState":{"terminated":{"finishedAt":"2026-01-01T23:59:00Z"}}},
                 {"name":"b","restartCount":1,"state":{"running":{}}}]}})",
              "1/2", "Running", "3 (60s ago)"},
          Row{R"({"spec":{"containers":[{"name":"a"}]},"status":{"phase":"Running","containerStatuses":[
                 {"name":"a","restartCount":5,"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}})",
              "0/1", "CrashLoopBackOff", "5"},
          Row{R"({"spec":{"containers":[{"name":"a"}]},"status":{"phase":"Succeeded","containerStatuses":[
                 {"name":"a","state":{"terminated":{"reason":"Completed","exitCode":0}}}]}})",
              "0/1", "Completed", "0"},
          Row{R"({"spec":{"containers":[{"name":"a"}]},"status":{"phase":"Failed","containerStatuses":[
                 {"name":"a","state":{"terminated":{"exitCode":3}}}]}})",
              "0/1", "ExitCode:3", "0"},
          Row{R"({"spec":{"containers":[{"name":"a"}]},"status":{"phase":"Failed","containerStatuses":[
                 {"name":"a","state":{"terminated":{"exitCode":137,"signal":9}}}]}})",
              "0/1", "Signal:9", "0"},
          Row{R"({"spec":{"initContainers":[{"name":"i"},{"name":"j"}],"containers":[{"name":"a"}]},"status":{"phase":"Pending",
                 "initContainerStatuses":[{"name":"i","state":{"terminated":{"exitCode":0}}},
                 {"name":"j","state":{"waiting":{"reason":"PodInitializing"}}}]}})",
              "0/1", "Init:1/2", "0"},
          Row{R"({"spec":{"initContainers":[{"name":"i"}],"containers":[{"name":"a"}]},"status":{"phase":"Pending",
                 "initContainerStatuses":[{"name":"i","restartCount":2,"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}})",
              "0/1", "Init:CrashLoopBackOff", "2"},
          Row{R"({"spec":{"initContainers":[{"name":"i","restartPolicy":"Always"}],"containers":[{"name":"a"}]},"status":{"phase":"Running",
                 "initContainerStatuses":[{"name":"i","started":true,"ready":true,"state":{"running":{}}}],
                 "containerStatuses":[{"name":"a","ready":true,"state":{"running":{}}}]}})",
              "2/2", "Running", "0"},
          Row{R"({"metadata":{"deletionTimestamp":"2026-01-02T00:00:30Z"},"spec":{"containers":[{"name":"a"}]},
                 "status":{"phase":"Running","containerStatuses":[{"name":"a","ready":true,"state":{"running":{}}}]}})",
              "1/1", "Terminating", "0"},
          Row{R"({"spec":{"containers":[{"name":"a"}]},"status":{"phase":"Failed","reason":"Evicted"}})", "0/1", "Evicted", "0"},
      }) {
    json::array got = cells_of(catalog().of(kPod), *parse_json(row.pod), kNow);
    EXPECT_EQ(got[1].as_string(), row.ready) << row.pod;
    EXPECT_EQ(got[2].as_string(), row.status) << row.pod;
    EXPECT_EQ(got[3].as_string(), row.restarts) << row.pod;
  }
}

// With a search for the container of each status, this took minutes.
TEST(Table, a_pod_of_many_containers_is_shown_at_once) {
  json::array containers, statuses, gates, conditions;
  for (int i = 0; i < 30'000; ++i) {
    std::string name = "c" + std::to_string(i);
    containers.push_back(json::object{{"name", name}, {"restartPolicy", "Always"}});
    statuses.push_back(json::object{{"name", name}, {"started", true}, {"ready", true}, {"restartCount", 1}});
    gates.push_back(json::object{{"conditionType", name}});
    conditions.push_back(json::object{{"type", name}, {"status", i % 2 ? "True" : "False"}});
  }
  json::value pod = json::object{
      {"metadata", json::object{{"name", "p"}}},
      {"spec", json::object{{"initContainers", containers}, {"readinessGates", gates}}},
      {"status", json::object{{"phase", "Running"}, {"initContainerStatuses", statuses}, {"conditions", conditions}}}};
  std::string row = row_text(kPod, pod);
  EXPECT_NE(row.find("30000/30000"), std::string::npos) << row;
  EXPECT_NE(row.find("15000/30000"), std::string::npos) << row;
}

TEST(Table, is_a_table_with_what_was_asked_for) {
  json::value pod = *parse_json(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"status":{"phase":"Succeeded"}})");
  const json::value* objects[] = {&pod};
  const KindInfo& info = catalog().of(kPod);
  TableOptions options;
  options.resource_version = "7";
  json::value table = to_table(info, objects, options, kNow);
  EXPECT_EQ(get_string(table, "apiVersion"), "meta.k8s.io/v1");
  EXPECT_EQ(get_string(table, "metadata.resourceVersion"), "7");
  EXPECT_EQ(get_array(table, "columnDefinitions").size(), info.columns().size());
  EXPECT_EQ(get_string(get_array(table, "columnDefinitions")[0], "format"), "name");
  const json::value& row = get_array(table, "rows")[0];
  EXPECT_EQ(get_string(row, "object.kind"), "PartialObjectMetadata");
  EXPECT_EQ(find(row, "object.status"), nullptr);
  EXPECT_EQ(get_string(get_array(row, "conditions")[0], "type"), "Completed");
  options.include = IncludeObject::object;
  options.columns = false;
  table = to_table(info, objects, options, kNow);
  EXPECT_EQ(get_string(get_array(table, "rows")[0], "object.status.phase"), "Succeeded");
  EXPECT_TRUE(get_array(table, "columnDefinitions").empty());
}

TEST(Table, tells_spans_as_people_do) {
  struct Row {
    int64_t seconds;
    const char* want;
  };
  for (const Row& row : {Row{-5, "<invalid>"}, Row{0, "0s"}, Row{119, "119s"}, Row{120, "2m"}, Row{125, "2m5s"}, Row{600, "10m"},
                         Row{10799, "179m"}, Row{10800, "3h"}, Row{11100, "3h5m"}, Row{8 * 3600, "8h"}, Row{47 * 3600, "47h"},
                         Row{48 * 3600, "2d"}, Row{49 * 3600, "2d1h"}, Row{8 * 86400, "8d"}, Row{729 * 86400, "729d"},
                         Row{730 * 86400, "2y"}, Row{int64_t(731) * 86400, "2y1d"}, Row{int64_t(8) * 365 * 86400, "8y"}}) {
    EXPECT_EQ(human_duration(std::chrono::seconds(row.seconds)), row.want) << row.seconds;
  }
}

}  // namespace
}  // namespace coracle::schema
