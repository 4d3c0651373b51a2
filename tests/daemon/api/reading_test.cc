// SPDX-License-Identifier: Apache-2.0
// Get, list and watch with all their options: every resourceVersion rule, selectors, and refusals with Kubernetes' messages.
#include <gtest/gtest.h>

#include <thread>

#include "runtime/base/text.h"
#include "store/schema/protobuf.h"
#include "tests/daemon/api/raw_client.h"
#include "tests/daemon/api/server_fixture.h"

namespace coracle::api {
namespace {

class Reading : public testing::Test {
 protected:
  RawAnswer create(const std::string& name) { return client.ask("POST", kMaps, R"({"metadata":{"name":")" + name + "\"}}"); }
  std::string revision() { return std::string(get_string(client.get(kMaps).json(), "metadata.resourceVersion")); }
  RawAnswer list(const std::string& query) { return client.get(std::string(kMaps) + "?" + query); }
  static size_t items(const RawAnswer& answer) { return get_array(answer.json(), "items").size(); }

  ServerFixture fixture;
  KeyPair identity = fixture.server->admin();
  RawClient client{fixture.port(), &identity};
};

TEST_F(Reading, options_that_make_no_sense_are_refused_in_kubernetes_words) {
  create("m");
  std::string now = revision();
  struct Row {
    std::string target;
    int status;
    const char* message;
  };
  const std::string one = "/m?", all = "?", watch = "?watch=1&";
  for (const Row& row : {
           Row{all + "resourceVersionMatch=Exact", 422,
               "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden "
               "unless resourceVersion is provided"},
           Row{all + "resourceVersionMatch=Exact&resourceVersion=0", 422,
               "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is "
               "forbidden for resourceVersion \"0\""},
           Row{all + "resourceVersionMatch=Nearly&resourceVersion=1", 422,
               "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Unsupported value: \"Nearly\": supported values: "
               "\"Exact\", \"NotOlderThan\", \"\""},
           Row{all + "resourceVersionMatch=Exact&continue=x", 422,
               "ListOptions.meta.k8s.io \"\" is invalid: [resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden "
               "unless resourceVersion is provided, "
               "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided]"},
           Row{all + "sendInitialEvents=false", 422,
               "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"},
           Row{all + "continue=x&resourceVersion=1", 400,
               "invalid continue token: continue key is not valid: illegal base64 data"},
           Row{all + "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJkZWZhdWx0L2FcdTAwMDAifQ&resourceVersion=1", 400,
               "specifying resource version is not allowed when using continue"},
           Row{all + "resourceVersion=-1", 400,
               "invalid resource version: resourceVersion: Invalid value: \"-1\": strconv.ParseUint: parsing \"-1\": invalid "
               "syntax"},
           Row{all + "resourceVersion=99999999999999999999", 400,
               "invalid resource version: resourceVersion: Invalid value: \"99999999999999999999\": strconv.ParseUint: parsing "
               "\"99999999999999999999\": value out of range"},
           Row{all + "limit=many", 400, "strconv.ParseInt: parsing \"many\": invalid syntax"},
           Row{one + "resourceVersion=x", 500,
               "resourceVersion: Invalid value: \"x\": strconv.ParseUint: parsing \"x\": invalid syntax"},
           Row{watch + "resourceVersion=x", 422,
               "configmaps \"\" is invalid: resourceVersion: Invalid value: \"x\": strconv.ParseUint: parsing \"x\": invalid "
               "syntax"},
           Row{watch + "resourceVersion=1&resourceVersionMatch=NotOlderThan", 422,
               "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for "
               "watch unless sendInitialEvents is provided"},
           Row{"/m?watch=1&fieldSelector=metadata.name%3Dother", 400, "fieldSelector metadata.name doesn't match requested name"},
           Row{all + "fieldSelector=spec.x%3Dy", 400,
               "\"spec.x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""},
       }) {
    RawAnswer answer = client.get(kMaps + row.target);
    EXPECT_EQ(answer.status, row.status) << row.target;
    EXPECT_EQ(get_string(answer.json(), "message"), row.message) << row.target;
  }
  EXPECT_EQ(find(client.get(std::string(kMaps) + "/m?resourceVersion=x").json(), "reason"), nullptr)
      << "the storage's own errors have none";
  EXPECT_EQ(items(list("limit=-1")), 1u) << "no limit";
}

TEST_F(Reading, a_table_that_cannot_be_is_refused_and_other_forms_do_not_care) {
  create("m");
  std::string table = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n",
              target = std::string(kMaps) + "?includeObject=All";
  EXPECT_EQ(get_string(client.get(target, table).json(), "message"),
            "Unable to convert to Table as requested: includeObject: Invalid value: \"All\": must be 'Metadata', 'Object', "
            "'None', or empty");
  EXPECT_EQ(client.get(target).status, 200);
  EXPECT_EQ(
      get_string(client.get(kMaps, "Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io\r\n").json(), "message"),
      "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)");
}

TEST_F(Reading, an_unreadable_answer_is_refused_before_anything_is_written) {
  RawAnswer refused = client.ask("POST", kMaps, R"({"metadata":{"name":"m"}})", "Accept: text/html\r\n");
  EXPECT_EQ(refused.status, 406);
  EXPECT_EQ(
      get_string(refused.json(), "message"),
      "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf");
  EXPECT_EQ(client.get(std::string(kMaps) + "/m").status, 404);
  create("m");
  EXPECT_EQ(client.ask("DELETE", std::string(kMaps) + "/m", "", "Accept: text/html\r\n").status, 406);
  EXPECT_EQ(client.get(std::string(kMaps) + "/m").status, 200);
}

TEST_F(Reading, revisions_are_exact_or_not_older_than) {
  create("a");
  std::string first = revision();
  create("b");
  EXPECT_EQ(items(list("resourceVersion=" + first)), 2u) << "not older than";
  EXPECT_EQ(items(list("resourceVersion=" + first + "&resourceVersionMatch=NotOlderThan")), 2u);
  RawAnswer exact = list("resourceVersion=" + first + "&resourceVersionMatch=Exact");
  EXPECT_EQ(items(exact), 1u);
  EXPECT_EQ(get_string(exact.json(), "metadata.resourceVersion"), first);
  EXPECT_EQ(items(list("resourceVersion=" + first + "&limit=5")), 1u) << "with a limit it is exact, for old clients' sake";
  EXPECT_EQ(items(list("resourceVersion=0&limit=5")), 2u);
  for (const char* match : {"", "&resourceVersionMatch=NotOlderThan"}) {
    RawAnswer whole = list("resourceVersion=0&limit=1" + std::string(match));
    EXPECT_EQ(items(whole), 2u) << "at revision 0 the limit does not count" << match;
    EXPECT_EQ(find(whole.json(), "metadata.continue"), nullptr);
    EXPECT_EQ(find(whole.json(), "metadata.remainingItemCount"), nullptr);
  }
  RawAnswer page = list("resourceVersion=" + first + "&resourceVersionMatch=NotOlderThan&limit=1");
  EXPECT_EQ(items(page), 1u);
  std::string token(get_string(page.json(), "metadata.continue"));
  EXPECT_EQ(get_string(get_array(list("resourceVersion=0&limit=1&continue=" + token).json(), "items")[0], "metadata.name"), "b");
  fixture.engine->compact(fixture.engine->revision());
  RawAnswer gone = list("resourceVersion=" + first + "&resourceVersionMatch=Exact");
  EXPECT_EQ(gone.status, 410);
  EXPECT_EQ(get_string(gone.json(), "reason"), "Expired");
  EXPECT_EQ(get_string(gone.json(), "message"), "The resourceVersion for the provided list is too old.");
}

TEST_F(Reading, events_are_listed_in_pages_at_any_revision) {
  const std::string events = "/api/v1/namespaces/default/events";
  for (const char* name : {"a", "b"})
    ASSERT_EQ(
        client
            .ask("POST", events,
                 R"({"metadata":{"name":")" + std::string(name) + R"("},"involvedObject":{"namespace":"default"},"message":"m"})")
            .status,
        201);
  for (const std::string& path : {events, std::string("/apis/events.k8s.io/v1/namespaces/default/events")}) {
    RawAnswer page = client.get(path + "?resourceVersion=0&limit=1");
    EXPECT_EQ(items(page), 1u) << path;
    EXPECT_NE(get_string(page.json(), "metadata.continue"), "") << path;
  }
}

TEST_F(Reading, what_is_yet_to_come_is_waited_for) {
  create("a");
  std::string next = std::to_string(std::stoull(revision()) + 1);
  std::thread writer([&] {
    RawClient other(fixture.port(), &identity);
    while (fixture.engine->revision() < std::stoull(next)) other.ask("POST", kMaps, R"({"metadata":{"generateName":"b-"}})");
  });
  EXPECT_EQ(client.get(std::string(kMaps) + "/a?resourceVersion=" + next).status, 200);
  writer.join();
  RawAnswer never = list("resourceVersion=99999999");
  EXPECT_EQ(never.status, 504);
  EXPECT_EQ(never.header("Retry-After"), "1");
  EXPECT_EQ(get_string(get_array(never.json(), "details.causes")[0], "reason"), "ResourceVersionTooLarge");
  EXPECT_EQ(get_string(never.json(), "message"), "Timeout: Too large resource version: 99999999, current: " + revision());
}

TEST_F(Reading, unknown_resources_of_a_served_version_are_told_as_a_status) {
  for (const char* target : {"/api/v1/nothings", "/apis/apps/v1/namespaces/default/nothings/x", "/api/v1/namespaces/x/nodes",
                             "/api/v1/namespaces/default/pods/p/nothing"}) {
    RawAnswer answer = client.get(target);
    EXPECT_EQ(answer.status, 404) << target;
    EXPECT_EQ(get_string(answer.json(), "message"), "the server could not find the requested resource") << target;
    EXPECT_NE(find(answer.json(), "details"), nullptr);
  }
}

TEST_F(Reading, a_watch_waits_for_the_revision_that_it_names) {
  create("a");
  std::string later = std::to_string(std::stoull(revision()) + 1);
  RawClient watch(fixture.port(), &identity);
  watch.send("GET " + std::string(kMaps) + "?watch=1&resourceVersion=" + later + " HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(watch.receive_head().status, 200);
  create("b");
  create("c");
  EXPECT_EQ(get_string(MUST(parse_json(watch.receive_chunk())), "object.metadata.name"), "c") << "b has that revision itself";

  RawClient streamed(fixture.port(), &identity);
  streamed.send(
      "GET " + std::string(kMaps) +
      "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=99999999 HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(streamed.receive_head().status, 200);
  json::value error = MUST(parse_json(streamed.receive_chunk()));
  EXPECT_EQ(get_string(error, "type"), "ERROR");
  EXPECT_EQ(get_int(error, "object.code"), 504);
}

TEST_F(Reading, a_watch_from_the_beginning_marks_the_end_of_it_for_those_who_take_bookmarks) {
  create("a");
  RawClient with(fixture.port(), &identity), without(fixture.port(), &identity);
  with.send("GET " + std::string(kMaps) + "?watch=1&allowWatchBookmarks=true HTTP/1.1\r\nHost: x\r\n\r\n");
  without.send("GET " + std::string(kMaps) +
               "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan HTTP/1.1\r\nHost: x\r\n\r\n");
  with.receive_head(), without.receive_head();
  std::string events;
  while (events.find("BOOKMARK") == std::string::npos) {
    std::string some = with.receive_chunk();
    ASSERT_FALSE(some.empty());
    events += some;
  }
  EXPECT_LT(events.find("ADDED"), events.find("BOOKMARK"));
  EXPECT_NE(events.find("\"k8s.io/initial-events-end\":\"true\""), std::string::npos);
  EXPECT_EQ(events.find("creationTimestamp", events.find("BOOKMARK")), std::string::npos);
  EXPECT_EQ(get_string(MUST(parse_json(without.receive_chunk())), "type"), "ADDED");
  create("b");
  EXPECT_EQ(get_string(MUST(parse_json(without.receive_chunk())), "object.metadata.name"), "b") << "no bookmark between";
}

TEST_F(Reading, a_watch_has_no_yaml) {
  RawAnswer refused = client.get(std::string(kMaps) + "?watch=1", "Accept: application/yaml\r\n");
  EXPECT_EQ(refused.status, 406);
}

}  // namespace
}  // namespace coracle::api
