// SPDX-License-Identifier: Apache-2.0
// The lines of Kubernetes' conformance suite that test the API machinery and need no controllers. Each test is named after its
// line and does the same over HTTP. The lines that need controllers are in tests/daemon/controller and tests/e2e/machinery.sh.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <thread>

#include "tests/daemon/api/raw_client.h"
#include "tests/daemon/api/server_fixture.h"

namespace coracle::api {
namespace {

constexpr const char* kDeployments = "/apis/apps/v1/namespaces/default/deployments";

class Conformance : public testing::Test {
 protected:
  std::string make_map(const std::string& name, const std::string& label, const std::string& data = "0") {
    RawAnswer made = client.ask(
        "POST", kMaps,
        R"({"metadata":{"name":")" + name + R"(","labels":{"watch":")" + label + R"("}},"data":{"mutation":")" + data + "\"}}");
    EXPECT_EQ(made.status, 201) << made.body;
    return revision_of(made.json());
  }
  std::string change(const std::string& name, const std::string& patch) {
    RawAnswer changed =
        client.ask("PATCH", std::string(kMaps) + "/" + name, patch, "Content-Type: application/merge-patch+json\r\n");
    EXPECT_EQ(changed.status, 200) << changed.body;
    return revision_of(changed.json());
  }
  std::string mutate(const std::string& name, const std::string& data) {
    return change(name, R"({"data":{"mutation":")" + data + "\"}}");
  }
  void remove(const std::string& name) { EXPECT_EQ(client.ask("DELETE", std::string(kMaps) + "/" + name).status, 200); }
  static std::string revision_of(const json::value& object) {
    return std::string(get_string(object, "metadata.resourceVersion"));
  }

  std::unique_ptr<RawClient> watch(const std::string& query) {
    auto opened = std::make_unique<RawClient>(fixture.port(), &identity);
    opened->send("GET " + std::string(kMaps) + "?watch=1&" + query + " HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(opened->receive_head().status, 200);
    return opened;
  }
  static std::string next(RawClient& watch) {  // "ADDED name data"
    std::string chunk = watch.receive_chunk();
    if (chunk.empty()) return "end";
    json::value event = MUST(parse_json(chunk));
    return std::string(get_string(event, "type")) + " " + std::string(get_string(event, "object.metadata.name")) + " " +
           std::string(get_string(event, "object.data.mutation"));
  }

  ServerFixture fixture;
  KeyPair identity = fixture.server->admin();
  RawClient client{fixture.port(), &identity};
};

// [sig-api-machinery] Servers with support for API chunking should return chunks of results for list calls [Conformance]
TEST_F(Conformance, chunks_of_results_for_list_calls) {
  constexpr size_t kAll = 40;
  for (size_t i = 0; i < kAll; i++) make_map("map-" + std::string(i < 10 ? "0" : "") + std::to_string(i), "x");
  for (size_t first : {1u, 3u, 7u, 39u, 40u, 41u}) {
    std::vector<std::string> names;
    std::string token, revision;
    size_t limit = first;
    do {
      json::value page =
          client.get(std::string(kMaps) + "?limit=" + std::to_string(limit) + (token.empty() ? "" : "&continue=" + token)).json();
      if (revision.empty()) revision = revision_of(page);
      EXPECT_EQ(revision_of(page), revision) << "every page is of the first one's revision";
      for (const json::value& item : get_array(page, "items")) names.emplace_back(get_string(item, "metadata.name"));
      EXPECT_LE(get_array(page, "items").size(), limit);
      token = get_string(page, "metadata.continue");
      EXPECT_EQ(find(page, "metadata.remainingItemCount") == nullptr, token.empty());
      EXPECT_EQ(get_int(page, "metadata.remainingItemCount"), int64_t(kAll - names.size()));
      limit = limit % 5 + 1;  // pages may have any size
    } while (!token.empty());
    EXPECT_EQ(names.size(), kAll);
    EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  }
  EXPECT_EQ(get_array(client.get(kMaps).json(), "items").size(), kAll);
}

// [sig-api-machinery] Servers with support for API chunking should support continue listing from the last key if the original
// version has been compacted away, though the list is inconsistent [Slow] [Conformance]
TEST_F(Conformance, listing_goes_on_from_the_last_key_after_a_compaction) {
  for (int i = 0; i < 9; i++) make_map("map-" + std::to_string(i), "x");
  json::value first = client.get(std::string(kMaps) + "?limit=3").json();
  std::string token(get_string(first, "metadata.continue"));
  EXPECT_EQ(get_int(first, "metadata.remainingItemCount"), 6);
  make_map("map-5a", "x");
  fixture.engine->compact(fixture.engine->revision());
  RawAnswer expired = client.get(std::string(kMaps) + "?limit=3&continue=" + token);
  EXPECT_EQ(expired.status, 410);
  EXPECT_EQ(get_string(expired.json(), "reason"), "Expired");
  EXPECT_EQ(get_string(expired.json(), "message")
                .find("The provided continue parameter is too old to display a consistent list result."),
            0u);
  std::string inconsistent(get_string(expired.json(), "metadata.continue"));
  ASSERT_FALSE(inconsistent.empty());
  json::value second = client.get(std::string(kMaps) + "?limit=3&continue=" + inconsistent).json();
  EXPECT_NE(revision_of(second), revision_of(first));
  std::vector<std::string> names;
  for (const json::value& item : get_array(second, "items")) names.emplace_back(get_string(item, "metadata.name"));
  EXPECT_EQ(names, (std::vector<std::string>{"map-3", "map-4", "map-5"}));
  EXPECT_EQ(get_int(second, "metadata.remainingItemCount"), 4);
  std::string rest(get_string(second, "metadata.continue"));
  json::value third = client.get(std::string(kMaps) + "?continue=" + rest).json();
  EXPECT_EQ(revision_of(third), revision_of(second)) << "from there on it is consistent again";
  EXPECT_EQ(get_array(third, "items").size(), 4u) << "what was added meanwhile shows up";
  EXPECT_EQ(find(third, "metadata.remainingItemCount"), nullptr);
  EXPECT_EQ(get_string(third, "metadata.continue"), "");
}

// [sig-api-machinery] Servers with support for Table transformation should return a 406 for a backend which does not implement
// metadata [Conformance]
TEST_F(Conformance, no_table_of_what_has_no_metadata) {
  RawAnswer answer = client.ask(
      "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
      R"({"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"resourceAttributes":{"namespace":"default","verb":"list","resource":"services"}}})",
      "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n");
  EXPECT_EQ(answer.status, 406);
  EXPECT_EQ(get_string(answer.json(), "reason"), "NotAcceptable");
}

// [sig-api-machinery] Watchers should observe add, update, and delete watch notifications on configmaps [Conformance]
TEST_F(Conformance, watchers_observe_what_concerns_them) {
  auto a = watch("labelSelector=watch%3DA"), b = watch("labelSelector=watch%3DB"), both = watch("labelSelector=watch+in+(A,B)");
  make_map("a", "A");
  mutate("a", "1");
  mutate("a", "2");
  remove("a");
  make_map("b", "B");
  remove("b");
  for (auto* one : {a.get(), both.get()})
    for (const char* want : {"ADDED a 0", "MODIFIED a 1", "MODIFIED a 2", "DELETED a 2"}) EXPECT_EQ(next(*one), want);
  for (auto* one : {b.get(), both.get()})
    for (const char* want : {"ADDED b 0", "DELETED b 0"}) EXPECT_EQ(next(*one), want) << "and nothing of a";
  make_map("end-of-a", "A");
  make_map("end-of-b", "B");
  EXPECT_EQ(next(*a), "ADDED end-of-a 0") << "and nothing of b before it";
  EXPECT_EQ(next(*b), "ADDED end-of-b 0");
}

// [sig-api-machinery] Watchers should be able to start watching from a specific resource version [Conformance]
TEST_F(Conformance, watching_begins_at_a_specific_version) {
  make_map("m", "x");
  std::string first = mutate("m", "1");
  mutate("m", "2");
  remove("m");
  auto late = watch("resourceVersion=" + first);
  EXPECT_EQ(next(*late), "MODIFIED m 2");
  EXPECT_EQ(next(*late), "DELETED m 2");
}

// [sig-api-machinery] Watchers should be able to restart watching from the last resource version observed by the previous watch
// [Conformance]
TEST_F(Conformance, watching_is_restarted_from_the_last_version_observed) {
  auto first = watch("resourceVersion=" + revision_of(client.get(kMaps).json()));
  make_map("m", "x");
  std::string seen = mutate("m", "1");
  EXPECT_EQ(next(*first), "ADDED m 0");
  EXPECT_EQ(next(*first), "MODIFIED m 1");
  first->close();
  mutate("m", "2");
  remove("m");
  auto second = watch("resourceVersion=" + seen);
  EXPECT_EQ(next(*second), "MODIFIED m 2");
  EXPECT_EQ(next(*second), "DELETED m 2");
}

// [sig-api-machinery] Watchers should observe an object deletion if it stops meeting the requirements of the selector
// [Conformance]
TEST_F(Conformance, who_stops_matching_is_deleted_to_the_watcher) {
  auto selected = watch("labelSelector=watch%3Dthis");
  make_map("m", "this");
  mutate("m", "1");
  change("m", R"({"metadata":{"labels":{"watch":"other"}}})");
  mutate("m", "2");
  change("m", R"({"metadata":{"labels":{"watch":"this"}}})");
  mutate("m", "3");
  remove("m");
  for (const char* want : {"ADDED m 0", "MODIFIED m 1", "DELETED m 1", "ADDED m 2", "MODIFIED m 3", "DELETED m 3"})
    EXPECT_EQ(next(*selected), want);
}

// [sig-api-machinery] Watchers should receive events on concurrent watches in same order [Conformance]
TEST_F(Conformance, concurrent_watches_see_one_order) {
  std::vector<std::unique_ptr<RawClient>> watches;
  std::string start = revision_of(client.get(kMaps).json());
  std::thread writer([&] {
    RawClient other(fixture.port(), &identity);
    for (int i = 0; i < 60; i++) {
      std::string name = "m" + std::to_string(i % 7), target = std::string(kMaps) + "/" + name;
      if (other.ask("POST", kMaps, R"({"metadata":{"name":")" + name + "\"}}").status == 201) continue;
      if (i % 3)
        other.ask("PATCH", target, R"({"data":{"i":")" + std::to_string(i) + "\"}}",
                  "Content-Type: application/merge-patch+json\r\n");
      else other.ask("DELETE", target);
    }
    other.ask("POST", kMaps, R"({"metadata":{"name":"last"}})");
  });
  std::vector<std::string> orders;
  for (int i = 0; i < 8; i++) watches.push_back(watch("resourceVersion=" + start));
  for (auto& one : watches) {
    std::string order;
    for (std::string chunk; (chunk = one->receive_chunk()).find("\"name\":\"last\"") == std::string::npos && !chunk.empty();)
      order += revision_of(*find(MUST(parse_json(chunk)), "object")) + " ";
    orders.push_back(std::move(order));
  }
  writer.join();
  for (const std::string& order : orders) EXPECT_EQ(order, orders[0]);
  // For each event, all watches see the same events after it.
  for (size_t at = 0; (at = orders[0].find(' ', at)) != std::string::npos;) {
    std::string from = orders[0].substr(0, at);
    from = from.substr(from.find_last_of(' ') + 1);
    auto later = watch("resourceVersion=" + from);
    std::string order;
    for (std::string chunk; (chunk = later->receive_chunk()).find("\"name\":\"last\"") == std::string::npos && !chunk.empty();)
      order += revision_of(*find(MUST(parse_json(chunk)), "object")) + " ";
    EXPECT_EQ(order, orders[0].substr(++at)) << "from " << from;
  }
}

// [sig-api-machinery] Namespaces [Serial] should apply a finalizer to a Namespace [Conformance]
// [sig-api-machinery] Namespaces [Serial] should apply an update to a Namespace [Conformance]
// [sig-api-machinery] Namespaces [Serial] should apply changes to a namespace status [Conformance]
// [sig-api-machinery] Namespaces [Serial] should patch a Namespace [Conformance]
TEST_F(Conformance, a_namespace_is_changed_in_each_way) {
  const std::string spaces = "/api/v1/namespaces", one = spaces + "/team",
                    merge = "Content-Type: application/merge-patch+json\r\n";
  EXPECT_EQ(client.ask("POST", spaces, R"({"metadata":{"name":"team"}})").status, 201);
  json::value space = client.get(one).json();
  EXPECT_EQ(get_array(space, "spec.finalizers"), json::array{"kubernetes"});
  make(space, "spec.finalizers") = json::array{"kubernetes", "example.com/fake"};
  EXPECT_EQ(get_array(client.ask("PUT", one + "/finalize", to_text(space)).json(), "spec.finalizers").size(), 2u);
  space = client.get(one).json();
  EXPECT_EQ(get_array(space, "spec.finalizers").size(), 2u);
  make(space, "spec.finalizers") = json::array{"kubernetes"};
  EXPECT_EQ(get_array(client.ask("PUT", one + "/finalize", to_text(space)).json(), "spec.finalizers").size(), 1u);

  space = client.get(one).json();
  EXPECT_EQ(get_array(space, "spec.finalizers"), json::array{"kubernetes"}) << "the other one is gone";
  make(space, "metadata.labels.updated") = "yes";
  EXPECT_EQ(get_string(client.ask("PUT", one, to_text(space)).json(), "metadata.labels.updated"), "yes");
  std::string before = revision_of(client.get(one).json());
  json::value labelled = client
                             .ask("PATCH", one, R"({"metadata":{"labels":{"patched":"yes"}}})",
                                  "Content-Type: application/strategic-merge-patch+json\r\n")
                             .json();
  EXPECT_GT(std::stoll(revision_of(labelled)), std::stoll(before));
  EXPECT_EQ(get_string(client.get(one).json(), "metadata.labels.patched"), "yes");
  EXPECT_EQ(get_string(client.get(one).json(), "metadata.labels.updated"), "yes");

  EXPECT_EQ(get_string(client.get(one + "/status").json(), "status.phase"), "Active");
  json::value patched = client
                            .ask("PATCH", one + "/status", R"({"metadata":{"annotations":{"e2e-patched-ns-status":"team"}},
      "status":{"conditions":[{"type":"StatusPatch","status":"True","reason":"E2E","message":"Patched"}]}})",
                                 merge)
                            .json();
  EXPECT_EQ(get_string(patched, "metadata.annotations.e2e-patched-ns-status"), "team");
  EXPECT_EQ(get_string(get_array(patched, "status.conditions")[0], "message"), "Patched");
  EXPECT_EQ(get_string(patched, "status.phase"), "Active") << "the rest of the status stays";
  patched = client.get(one + "/status").json();
  make(patched, "status.conditions")
      .get_array()
      .push_back(json::object{{"type", "StatusUpdate"}, {"status", "True"}, {"reason", "E2E"}, {"message", "Updated"}});
  json::value updated = client.ask("PUT", one + "/status", to_text(patched)).json();
  ASSERT_EQ(get_array(updated, "status.conditions").size(), 2u);
  EXPECT_EQ(get_string(get_array(updated, "status.conditions")[1], "type"), "StatusUpdate");
  EXPECT_EQ(get_string(get_array(updated, "status.conditions")[1], "message"), "Updated");
}

// [sig-api-machinery] server version should find the server version [Conformance]
TEST_F(Conformance, the_servers_version_is_found) {
  json::value version = client.get("/version").json();
  EXPECT_TRUE(std::regex_match(std::string(get_string(version, "major")), std::regex("[1-9]")));
  EXPECT_TRUE(std::regex_match(std::string(get_string(version, "minor")), std::regex("[0-9]+\\+?")));
}

// One resource of each group that every cluster serves.
constexpr std::pair<const char*, const char*> kServed[] = {
    {"v1", "namespaces"},
    {"admissionregistration.k8s.io/v1", "validatingwebhookconfigurations"},
    {"apiextensions.k8s.io/v1", "customresourcedefinitions"},
    {"apiregistration.k8s.io/v1", "apiservices"},
    {"apps/v1", "deployments"},
    {"authentication.k8s.io/v1", "tokenreviews"},
    {"authorization.k8s.io/v1", "selfsubjectaccessreviews"},
    {"autoscaling/v1", "horizontalpodautoscalers"},
    {"autoscaling/v2", "horizontalpodautoscalers"},
    {"batch/v1", "jobs"},
    {"certificates.k8s.io/v1", "certificatesigningrequests"},
    {"coordination.k8s.io/v1", "leases"},
    {"discovery.k8s.io/v1", "endpointslices"},
    {"events.k8s.io/v1", "events"},
    {"networking.k8s.io/v1", "ingresses"},
    {"node.k8s.io/v1", "runtimeclasses"},
    {"policy/v1", "poddisruptionbudgets"},
    {"scheduling.k8s.io/v1", "priorityclasses"},
    {"storage.k8s.io/v1", "csinodes"},
};

// [sig-api-machinery] Discovery should locate the groupVersion and a resource within each APIGroup [Conformance]
// [sig-api-machinery] Discovery should validate PreferredVersion for each APIGroup [Conformance]
TEST_F(Conformance, each_group_has_its_versions_and_resources) {
  for (const auto& [group_version, resource] : kServed) {
    json::value list =
        client.get(std::string_view(group_version) == "v1" ? "/api/v1" : "/apis/" + std::string(group_version)).json();
    EXPECT_EQ(get_string(list, "groupVersion"), group_version);
    const json::array& all = get_array(list, "resources");
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&, name = resource](const json::value& one) {
      return get_string(one, "name") == name;
    })) << resource;
  }
  json::value list = client.get("/apis/").json();
  EXPECT_GT(get_array(list, "groups").size(), 3u);
  for (const json::value& entry : get_array(list, "groups")) {
    std::string name(get_string(entry, "name")), preferred(get_string(entry, "preferredVersion.groupVersion"));
    json::value group = client.get("/apis/" + name + "/").json();
    EXPECT_EQ(get_string(group, "kind"), "APIGroup");
    EXPECT_EQ(get_string(group, "preferredVersion.groupVersion"), preferred);
    EXPECT_FALSE(get_array(group, "versions").empty()) << name;
    bool listed = false;
    for (const json::value& version : get_array(group, "versions")) {
      std::string group_version(get_string(version, "groupVersion"));
      listed |= group_version == preferred;
      json::value resources = client.get("/apis/" + group_version).json();
      EXPECT_EQ(get_string(resources, "groupVersion"), group_version);
      EXPECT_FALSE(get_array(resources, "resources").empty()) << group_version;
    }
    EXPECT_TRUE(listed) << preferred;
  }
}

// [sig-api-machinery] AggregatedDiscovery should support aggregated discovery interface [Conformance]
TEST_F(Conformance, one_document_says_what_the_many_say) {
  const std::string accept = "Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList\r\n";
  std::set<std::string> at_once, one_by_one;
  for (const char* root : {"/api", "/apis"}) {
    json::value document = client.get(root, accept).json();
    for (const json::value& group : get_array(document, "items"))
      for (const json::value& version : get_array(group, "versions")) {
        EXPECT_EQ(get_string(version, "freshness"), "Current");
        for (const json::value& resource : get_array(version, "resources"))
          at_once.insert(std::string(get_string(group, "metadata.name")) + "/" + std::string(get_string(version, "version")) +
                         "/" + std::string(get_string(resource, "resource")));
      }
  }
  std::vector<std::string> roots{"/api/v1"};
  json::value list = client.get("/apis").json();
  for (const json::value& group : get_array(list, "groups"))
    for (const json::value& version : get_array(group, "versions"))
      roots.push_back("/apis/" + std::string(get_string(version, "groupVersion")));
  for (const std::string& root : roots) {
    json::value document = client.get(root).json();
    for (const json::value& resource : get_array(document, "resources")) {
      std::string name(get_string(resource, "name")), place = root == "/api/v1" ? "/v1" : root.substr(6);
      if (name.find('/') == std::string::npos) one_by_one.insert(place + "/" + name);
    }
  }
  EXPECT_EQ(at_once, one_by_one);
  for (const auto& [group_version, resource] : kServed) {
    std::string place(group_version);
    EXPECT_TRUE(at_once.count((place == "v1" ? "/v1" : place) + "/" + resource)) << place << " " << resource;
  }
}

// [sig-api-machinery] AggregatedDiscovery should support raw aggregated discovery endpoint Accept headers [Conformance]
TEST_F(Conformance, accept_headers_choose_the_form_of_discovery) {
  struct Row {
    const char *accept, *type;
  };
  const char* aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
  for (const Row& row :
       {Row{aggregated, aggregated},
        Row{"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/"
            "json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json",
            aggregated},
        Row{"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer,application/json", aggregated},
        Row{"application/json", "application/json"}, Row{"*/*", "application/json"}})
    for (const char* root : {"/api", "/apis"}) {
      RawAnswer answer = client.get(root, std::string("Accept: ") + row.accept + "\r\n");
      EXPECT_EQ(answer.status, 200);
      EXPECT_EQ(answer.header("Content-Type"), row.type) << row.accept;
    }
}

constexpr const char* kDeploymentFormat =
    R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"%s},"spec":{"replicas":1,%s"selector":{"matchLabels":{"a":"b"}},
  "template":{"metadata":{"labels":{"a":"b"}%s},"spec":{"containers":[{"name":"c","image":"i"}]}}}})";

std::string deployment(const char* in_metadata, const char* in_spec, const char* in_template) {
  char text[1024];
  std::snprintf(text, sizeof text, kDeploymentFormat, in_metadata, in_spec, in_template);
  return text;
}

// [sig-api-machinery] FieldValidation should detect unknown and duplicate fields of a typed object [Conformance]
TEST_F(Conformance, unknown_and_duplicate_fields_are_detected) {
  std::string body = deployment("", R"("unknownNested":"foo","replicas":2,"paused":true,"paused":false,)", "");
  RawAnswer strict = client.ask("POST", std::string(kDeployments) + "?fieldValidation=Strict", body);
  EXPECT_EQ(strict.status, 400);
  std::string message(get_string(strict.json(), "message"));
  EXPECT_EQ(message.find("Deployment in version \"v1\" cannot be handled as a Deployment: strict decoding error: unknown field "
                         "\"spec.unknownNested\", duplicate field \""),
            0u)
      << message;
  for (const char* part : {"duplicate field \"spec.replicas\"", "duplicate field \"spec.paused\""})
    EXPECT_NE(message.find(part), std::string::npos) << message;
  EXPECT_EQ(client.get(std::string(kDeployments) + "/d").status, 404);
  RawAnswer warned = client.ask("POST", std::string(kDeployments) + "?fieldValidation=Warn", body);
  EXPECT_EQ(warned.status, 201);
  EXPECT_NE(warned.head.find("Warning: 299 - \"unknown field \\\"spec.unknownNested\\\"\""), std::string::npos);
  EXPECT_NE(warned.head.find("Warning: 299 - \"duplicate field \\\"spec.paused\\\"\""), std::string::npos);
  RawAnswer ignored = client.ask("PUT", std::string(kDeployments) + "/d?fieldValidation=Ignore", body);
  EXPECT_EQ(ignored.status, 200);
  EXPECT_EQ(ignored.head.find("Warning"), std::string::npos);
}

// [sig-api-machinery] FieldValidation should detect unknown metadata fields of a typed object [Conformance]
TEST_F(Conformance, unknown_metadata_fields_are_detected) {
  RawAnswer strict = client.ask("POST", std::string(kDeployments) + "?fieldValidation=Strict",
                                deployment(R"(,"unknownMeta":"foo")", "", R"(,"unknownSubMeta":"foo")"));
  EXPECT_EQ(strict.status, 400);
  std::string message(get_string(strict.json(), "message"));
  EXPECT_NE(message.find("strict decoding error: unknown field \"metadata.unknownMeta\""), std::string::npos) << message;
  EXPECT_NE(message.find("unknown field \"spec.template.metadata.unknownSubMeta\""), std::string::npos) << message;
}

}  // namespace
}  // namespace coracle::api
