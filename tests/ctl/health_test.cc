// SPDX-License-Identifier: Apache-2.0
// The verdicts of health.
#include "ctl/health.h"

#include <gtest/gtest.h>

#include "runtime/base/text.h"
#include "tests/ctl/fake_api.h"

namespace coracle::ctl {
namespace {

json::value list_of(std::string_view items) { return MUST(parse_json("{\"items\":[" + std::string(items) + "]}")); }

constexpr const char* kGoodNode =
    R"({"metadata":{"name":"edge"},"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"DiskPressure","status":"False"}]}})";

std::string problems(std::string_view nodes, std::string_view pods = "", std::optional<Error> not_ready = {}) {
  return join(health_problems({std::move(not_ready), {}, list_of(nodes), list_of(pods)}), "|");
}

TEST(Health, is_what_the_node_says) {
  EXPECT_EQ(problems(kGoodNode), "");
  EXPECT_EQ(problems(""), "there is no node yet");
  EXPECT_EQ(problems(R"({"metadata":{"name":"edge"}})"), "node edge is not ready: it has not said that it is");
  EXPECT_EQ(problems(R"({"metadata":{"name":"edge"},"status":{"conditions":[
              {"type":"Ready","status":"Unknown","reason":"NodeStatusUnknown","message":"Kubelet stopped posting"},
              {"type":"DiskPressure","status":"True","reason":"Full","message":"5 MB are free"},
              {"type":"LimitsUnenforced","status":"True"}]}})"),
            "node edge is not ready: NodeStatusUnknown: Kubelet stopped posting|node edge: DiskPressure: Full: 5 MB are free");
}

TEST(Health, is_what_the_api_says) {
  EXPECT_EQ(problems(kGoodNode, "", Error(Code::unavailable, "cannot reach https://127.0.0.1:6443: Connection refused")),
            "the API: cannot reach https://127.0.0.1:6443: Connection refused");
  EXPECT_EQ(problems(kGoodNode, "",
                     Error(Code::internal,
                           "the server answered 500: [+]ping ok\n[-]store failed: reason withheld\n"
                           "[-]scheduler failed: reason withheld\nreadyz check failed")),
            "the API is not ready: store, scheduler");
  HealthState forbidden;
  forbidden.unreadable = Error(Code::forbidden, "nodes is forbidden");
  EXPECT_EQ(join(health_problems(forbidden), "|"), "the API: nodes is forbidden");
}

TEST(Health, is_what_pods_say) {
  struct Row {
    const char *pod, *want;
  };
  for (
      const Row& row : {
          Row{R"("status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]})", ""},
          Row{R"("status":{"phase":"Succeeded"})", ""},
          Row{R"("deletionTimestamp":"2026-01-01T00:00:00Z","status":{"phase":"Pending"})", ""},
          Row{R"("status":{"phase":"Failed","reason":"Evicted","message":"disk"})", "pod shop/web failed: Evicted: disk"},
          Row{R"("ownerReferences":[{"kind":"Job"}],"status":{"phase":"Failed"})", ""},
          Row{R"("status":{"phase":"Pending","containerStatuses":[{"name":"c","state":{"waiting":{"reason":"ErrImagePull","message":"no\nnetwork"}}}]})",
              "pod shop/web: c waits: ErrImagePull: no\\nnetwork"},
          Row{R"("status":{"phase":"Running","containerStatuses":[{"name":"c","state":{"terminated":{"exitCode":3,"reason":"Error"}}}]})",
              "pod shop/web: c ended: Error"},
          Row{R"("status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"SchedulingGated","message":"waits for db"}]})",
              "pod shop/web: PodScheduled: SchedulingGated: waits for db"},
          Row{R"("status":{"phase":"Running","conditions":[{"type":"Ready","status":"False"}]})", "pod shop/web: not ready"},
      }) {
    // What stands before "status" belongs to the metadata.
    std::string text(row.pod);
    const size_t status = text.find("\"status\":{");
    const std::string pod =
        R"({"metadata":{)" + text.substr(0, status) + R"("name":"web","namespace":"shop"},)" + text.substr(status) + "}";
    EXPECT_EQ(problems(kGoodNode, pod), row.want) << pod;
  }
}

TEST(Health, keeps_to_the_servers_version_each_time_that_it_looks) {
  FakeApi api;
  api.put("/readyz", R"("ok")");
  api.put("/version", R"({"gitVersion":"v0.1.0"})");
  api.put("/api/v1/nodes/edge", kGoodNode);
  FakeApi::Outcome any = api.run({"health"});
  EXPECT_EQ(any.code, 0) << any.err;
  EXPECT_EQ(any.out, "healthy\n");
  FakeApi::Outcome same = api.run({"health", "--match-server-version", "--wait", "--timeout=600ms"});
  EXPECT_EQ(same.code, 1) << same.out;
  EXPECT_TRUE(same.out.starts_with("the API: server version (v0.1.0) differs from client version (")) << same.out;
}

TEST(Health, is_not_asked_for_by_a_line_that_is_wrong) {
  FakeApi api;
  for (auto [timeout, why] :
       {std::pair{"soon", "invalid argument \"soon\" for \"--timeout\" flag: time: invalid duration \"soon\""},
        std::pair{"-1s", "--timeout: not a duration: \"-1s\""}}) {
    FakeApi::Outcome outcome = api.run({"health", std::string("--timeout=") + timeout});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(why), std::string::npos) << outcome.err;
  }
}

}  // namespace
}  // namespace coracle::ctl
