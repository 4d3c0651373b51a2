// SPDX-License-Identifier: Apache-2.0
// Every kind that can be created, in every encoding, over HTTP: create, get, list, watch, patch, apply, delete; and one stored
// kind in each of its versions.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "store/object/yaml.h"
#include "store/schema/decode.h"
#include "store/schema/protobuf.h"
#include "tests/daemon/api/raw_client.h"
#include "tests/daemon/api/server_fixture.h"
#include "tests/store/schema/sample_objects.h"

namespace coracle::api {
namespace {

struct TestedEncoding {
  const char* name;
  const char* media_type;
};
constexpr TestedEncoding kEncodings[] = {
    {"json", "application/json"}, {"yaml", "application/yaml"}, {"protobuf", "application/vnd.kubernetes.protobuf"}};

std::string written(const TestedEncoding& encoding, const schema::KindInfo& info, const json::value& object) {
  json::value canonical = MUST(schema::decode(info.type(), object)).value;
  if (encoding.name == std::string_view("json")) return to_text(canonical);
  if (encoding.name == std::string_view("yaml")) return to_yaml(canonical);
  return MUST(schema::to_protobuf(canonical));
}

json::value read(const TestedEncoding& encoding, const std::string& body) {
  if (encoding.name == std::string_view("json")) return parse_json(body).value_or(nullptr);
  if (encoding.name == std::string_view("protobuf")) return schema::from_protobuf(body).value_or(nullptr);
  auto documents = parse_yaml(body);
  return documents && documents->size() == 1 ? documents->front() : json::value();
}

// The value as text with sorted keys: each encoding has its own order.
std::string sorted(const json::value& value) {
  if (const json::array* items = value.if_array()) {
    std::string out;
    for (const json::value& item : *items) out += (out.empty() ? "" : ",") + sorted(item);
    return "[" + out + "]";
  }
  const json::object* object = value.if_object();
  if (!object) return to_text(value);
  std::map<std::string, std::string> pairs;
  for (const auto& pair : *object) pairs[pair.key()] = sorted(pair.value());
  std::string out;
  for (const auto& [key, text] : pairs) out += (out.empty() ? "" : ",") + quoted(key) + ":" + text;
  return "{" + out + "}";
}

std::string collection(const schema::KindInfo& info) {
  std::string path = info.kind.group.empty() ? "/api/" : "/apis/" + std::string(info.kind.group) + "/";
  path += std::string(info.kind.version) + "/";
  if (info.kind.namespaced) path += "namespaces/default/";
  return path + std::string(info.kind.resource);
}

std::string headers(std::string_view accept, std::string_view content = {}) {
  std::string text = "Accept: " + std::string(accept) + "\r\n";
  if (!content.empty()) text += "Content-Type: " + std::string(content) + "\r\n";
  return text;
}

class Kinds : public testing::Test {
 protected:
  static void SetUpTestSuite() { fixture = new ServerFixture; }
  static void TearDownTestSuite() { delete std::exchange(fixture, nullptr); }

  // The first event about the object that a watch from `revision` returns, as JSON or protobuf.
  json::value first_event(const schema::KindInfo& info, const std::string& name, Revision revision,
                          const TestedEncoding& encoding) {
    bool binary = encoding.name == std::string_view("protobuf");
    RawClient watcher(fixture->port(), &admin);
    watcher.send("GET " + collection(info) + "?watch=1&fieldSelector=metadata.name%3D" + name +
                 "&resourceVersion=" + std::to_string(revision) + " HTTP/1.1\r\nHost: x\r\n" +
                 headers(binary ? "application/vnd.kubernetes.protobuf;stream=watch" : "application/json") + "\r\n");
    RawAnswer head = watcher.receive_head();
    EXPECT_EQ(head.status, 200) << head.head;
    std::string frame = watcher.receive_chunk();
    if (!binary) return parse_json(frame).value_or(nullptr);
    size_t envelope = frame.find(std::string_view("k8s\0", 4));
    if (envelope == std::string::npos) return {};
    json::value object = schema::from_protobuf(std::string_view(frame).substr(envelope)).value_or(nullptr);
    std::string type = frame.size() > 6 ? frame.substr(6, uint8_t(frame[5])) : std::string();
    return json::object{{"type", type}, {"object", std::move(object)}};
  }

  void round(const schema::KindInfo& info, json::value sample, const TestedEncoding& encoding) {
    SCOPED_TRACE(info.kind.api_version() + " " + std::string(info.kind.kind) + " as " + encoding.name);
    std::string name(get_string(sample, "metadata.name"));
    if (name == "sample") make(sample, "metadata.name") = name = "sample-" + std::string(encoding.name);
    std::string path = collection(info), one = path + "/" + name;
    std::string ask_json = headers("application/json"), ask = headers(encoding.media_type);
    Revision before = fixture->engine->revision();

    RawAnswer made = client.ask("POST", path, written(encoding, info, sample), headers(encoding.media_type, encoding.media_type));
    ASSERT_EQ(made.status, 201) << made.body;
    EXPECT_EQ(made.header("Content-Type"), encoding.media_type);
    json::value object = read(encoding, made.body);
    EXPECT_EQ(get_string(object, "kind"), info.kind.kind);
    EXPECT_EQ(get_string(object, "apiVersion"), info.kind.api_version());
    ASSERT_FALSE(get_string(object, "metadata.uid").empty()) << to_text(object);

    // The server adds a condition to a flow schema by itself.
    bool judged = info.kind.kind == "FlowSchema";
    auto as_made = [&](json::value value) {
      if (judged) value.get_object().erase("status"), value.get_object()["metadata"].get_object().erase("resourceVersion");
      return sorted(value);
    };
    auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (judged && get_array(client.get(one, ask_json).json(), "status.conditions").empty() &&
           std::chrono::steady_clock::now() < until)
      std::this_thread::yield();
    json::value got = read(encoding, client.get(one, ask).body);
    EXPECT_EQ(as_made(got), as_made(object));
    EXPECT_EQ(sorted(got), sorted(client.get(one, ask_json).json())) << "every encoding says the same";

    json::value list = read(encoding, client.get(path + "?labelSelector=tier%3Dtest", ask).body);
    EXPECT_EQ(get_string(list, "kind"), info.list_kind);
    bool listed = false;
    for (const json::value& item : get_array(list, "items")) listed = listed || get_string(item, "metadata.name") == name;
    EXPECT_TRUE(listed) << to_text(list);

    json::value event = first_event(info, name, before, encoding);
    EXPECT_EQ(get_string(event, "type"), "ADDED");
    EXPECT_EQ(get_string(event, "object.metadata.uid"), get_string(object, "metadata.uid")) << to_text(event);
    EXPECT_EQ(get_string(event, "object.apiVersion"), info.kind.api_version());

    RawAnswer patched = client.ask("PATCH", one, R"({"metadata":{"labels":{"patched":"yes"}}})",
                                   headers(encoding.media_type, "application/merge-patch+json"));
    EXPECT_EQ(patched.status, 200) << patched.body;
    EXPECT_EQ(get_string(read(encoding, patched.body), "metadata.labels.patched"), "yes");

    json::value configuration =
        json::object{{"apiVersion", info.kind.api_version()},
                     {"kind", info.kind.kind},
                     {"metadata", json::object{{"name", name}, {"labels", json::object{{"applied", "yes"}}}}}};
    RawAnswer applied = client.ask("PATCH", one + "?fieldManager=round", to_yaml(configuration),
                                   headers(encoding.media_type, "application/apply-patch+yaml"));
    EXPECT_EQ(applied.status, 200) << applied.body;
    json::value now = read(encoding, applied.body);
    EXPECT_EQ(get_string(now, "metadata.labels.applied"), "yes");
    bool managed = false;
    for (const json::value& entry : get_array(now, "metadata.managedFields")) {
      managed = managed || (get_string(entry, "manager") == "round" && get_string(entry, "operation") == "Apply" &&
                            get_string(entry, "apiVersion") == info.kind.api_version());
    }
    EXPECT_TRUE(managed) << to_text(now);

    RawAnswer gone = client.ask("DELETE", one, R"({"gracePeriodSeconds":0,"propagationPolicy":"Background"})", ask_json);
    EXPECT_EQ(gone.status, 200) << gone.body;
    RawAnswer left = client.get(one, ask_json);
    bool ending = left.status == 200 && !get_string(left.json(), "metadata.deletionTimestamp").empty();
    EXPECT_TRUE(left.status == 404 || ending) << left.body;
  }

  static inline ServerFixture* fixture = nullptr;
  KeyPair admin = fixture->server->admin();
  RawClient client{fixture->port(), &admin};
};

TEST_F(Kinds, live_and_die_in_every_encoding) {
  for (const schema::KindInfo& info : schema::catalog().kinds()) {
    if (!info.has_verb("create") || !info.has_verb("get")) continue;
    auto sample = sample_objects().find(info.kind.api_version() + "/" + std::string(info.kind.kind));
    ASSERT_NE(sample, sample_objects().end()) << "no sample of " << info.kind.api_version() << " " << info.kind.kind;
    if (sample->second.empty()) continue;
    for (const TestedEncoding& encoding : kEncodings) round(info, MUST(parse_json(sample->second)), encoding);
  }
}

constexpr const char* kOld = "/api/v1/namespaces/default/events";
constexpr const char* kNew = "/apis/events.k8s.io/v1/namespaces/default/events";

TEST_F(Kinds, an_event_is_one_object_under_two_names) {
  Revision before = fixture->engine->revision();
  std::string text = sample_objects().at("events.k8s.io/v1/Event");
  RawAnswer made = client.ask("POST", kNew, text);
  ASSERT_EQ(made.status, 201) << made.body;
  json::value older = client.get(std::string(kOld) + "/sample").json();
  EXPECT_EQ(get_string(older, "apiVersion"), "v1");
  EXPECT_EQ(get_string(older, "message"), "m");
  EXPECT_EQ(get_string(older, "metadata.uid"), get_string(made.json(), "metadata.uid"));
  EXPECT_EQ(get_string(older, "metadata.resourceVersion"), get_string(made.json(), "metadata.resourceVersion"));

  const schema::KindInfo& old_info = *schema::catalog().by_kind("v1", "Event");
  const schema::KindInfo& new_info = *schema::catalog().by_kind("events.k8s.io/v1", "Event");
  EXPECT_EQ(get_string(first_event(old_info, "sample", before, kEncodings[0]), "object.involvedObject.name"), "p");
  EXPECT_EQ(get_string(first_event(new_info, "sample", before, kEncodings[0]), "object.regarding.name"), "p");
  EXPECT_EQ(get_string(first_event(new_info, "sample", before, kEncodings[2]), "object.note"), "m");

  EXPECT_EQ(get_array(client.get(std::string(kNew) + "?fieldSelector=regarding.name%3Dp").json(), "items").size(), 1u);
  EXPECT_EQ(get_array(client.get(std::string(kOld) + "?fieldSelector=involvedObject.name%3Dp").json(), "items").size(), 1u);
  EXPECT_EQ(client.get(std::string(kOld) + "?fieldSelector=regarding.name%3Dp").status, 400);

  RawAnswer patched = client.ask("PATCH", std::string(kNew) + "/sample",
                                 R"({"series":{"count":2,"lastObservedTime":"2026-01-02T03:04:06.000000Z"}})",
                                 "Content-Type: application/strategic-merge-patch+json\r\n");
  EXPECT_EQ(patched.status, 200) << patched.body;
  EXPECT_EQ(get_int(client.get(std::string(kOld) + "/sample").json(), "series.count"), 2);
  RawAnswer refused =
      client.ask("PATCH", std::string(kNew) + "/sample", R"({"note":"other"})", "Content-Type: application/merge-patch+json\r\n");
  EXPECT_EQ(refused.status, 422) << refused.body;

  RawAnswer table = client.get(std::string(kNew) + "/sample", "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n");
  EXPECT_EQ(get_string(get_array(table.json(), "columnDefinitions").at(0), "name"), "Last Seen");
  EXPECT_EQ(client.ask("DELETE", std::string(kOld) + "/sample").status, 200);
  RawAnswer missing = client.get(std::string(kNew) + "/sample");
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(get_string(missing.json(), "message"), "events.events.k8s.io \"sample\" not found");
}

constexpr const char* kFirst = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
constexpr const char* kSecond = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";

TEST_F(Kinds, an_autoscaler_is_one_object_in_two_versions) {
  Revision before = fixture->engine->revision();
  ASSERT_EQ(client.ask("POST", kSecond, sample_objects().at("autoscaling/v2/HorizontalPodAutoscaler")).status, 201);
  json::value first = client.get(std::string(kFirst) + "/sample").json();
  EXPECT_EQ(get_string(first, "apiVersion"), "autoscaling/v1");
  EXPECT_TRUE(find_keys(first, {"metadata", "annotations", "autoscaling.alpha.kubernetes.io/metrics"})) << to_text(first);
  make(first, "spec.maxReplicas") = 9;
  RawAnswer put = client.ask("PUT", std::string(kFirst) + "/sample", to_text(first));
  EXPECT_EQ(put.status, 200) << put.body;
  json::value second = client.get(std::string(kSecond) + "/sample").json();
  EXPECT_EQ(get_int(second, "spec.maxReplicas"), 9);
  EXPECT_EQ(get_string(get_array(second, "spec.metrics").at(0), "resource.name"), "memory") << "what version 1 lacks is not lost";
  EXPECT_FALSE(find(second, "metadata.annotations"));
  const schema::KindInfo& info = *schema::catalog().by_kind("autoscaling/v1", "HorizontalPodAutoscaler");
  EXPECT_EQ(get_string(first_event(info, "sample", before, kEncodings[0]), "object.apiVersion"), "autoscaling/v1");
  EXPECT_EQ(get_array(client.get(kFirst).json(), "items").size(), 1u);

  RawAnswer groups = client.get("/apis/autoscaling");
  EXPECT_EQ(get_string(groups.json(), "preferredVersion.version"), "v2");
  EXPECT_EQ(get_array(groups.json(), "versions").size(), 2u);
  auto hash_in = [&](const char* path) {
    json::value list = client.get(path).json();
    for (const json::value& resource : get_array(list, "resources")) {
      if (get_string(resource, "name") == "horizontalpodautoscalers")
        return std::string(get_string(resource, "storageVersionHash"));
    }
    return std::string();
  };
  EXPECT_EQ(hash_in("/apis/autoscaling/v1"), hash_in("/apis/autoscaling/v2"));
  EXPECT_EQ(client.ask("DELETE", std::string(kFirst) + "/sample").status, 200);
  EXPECT_EQ(client.get(std::string(kSecond) + "/sample").status, 404);
}

TEST_F(Kinds, definitions_take_their_names_one_after_the_other) {
  const std::string path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  json::value body = MUST(parse_json(sample_objects().at("apiextensions.k8s.io/v1/CustomResourceDefinition")));
  RawAnswer made = client.ask("POST", path, to_text(body));
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(get_string(made.json(), "status.acceptedNames.plural"), "widgets");
  const json::value definition = made.json();
  EXPECT_EQ(get_array(definition, "status.conditions").size(), 2u);
  for (const json::value& condition : get_array(definition, "status.conditions")) {
    EXPECT_EQ(get_string(condition, "status"), "False") << "nothing serves it yet";
    EXPECT_EQ(get_string(condition, "reason"), "NotServed");
    EXPECT_EQ(get_string(condition, "message"), "this server stores definitions, but does not serve their kinds yet");
  }
  EXPECT_EQ(get_int(made.json(), "metadata.generation"), 1);
  make(body, "metadata.name") = "gadgets.example.com";
  make(body, "spec.names.plural") = "gadgets";
  RawAnswer second = client.ask("POST", path, to_text(body));
  ASSERT_EQ(second.status, 201) << second.body;
  EXPECT_EQ(get_string(get_array(second.json(), "status.conditions").at(0), "message"), "\"WidgetList\" is already in use");
  EXPECT_EQ(get_string(get_array(second.json(), "status.conditions").at(0), "reason"), "ListKindConflict");
  json::value blind = second.json();
  make(blind, "metadata").get_object().erase("resourceVersion");
  RawAnswer unconditional = client.ask("PUT", path + "/gadgets.example.com", to_text(blind));
  EXPECT_EQ(unconditional.status, 422) << unconditional.body;
  EXPECT_NE(unconditional.body.find("metadata.resourceVersion: Invalid value: 0: must be specified for an update"),
            std::string::npos);
  client.ask("DELETE", path, "{}");
}

TEST_F(Kinds, the_api_begins_with_its_flow_schemas) {
  json::value levels = client.get("/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations").json();
  EXPECT_EQ(get_array(levels, "items").size(), 8u);
  RawAnswer exempt = client.get("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/exempt");
  EXPECT_EQ(get_int(exempt.json(), "spec.matchingPrecedence"), 1);
  RawAnswer refused = client.ask("PATCH", "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/catch-all",
                                 R"({"spec":{"matchingPrecedence":500}})", "Content-Type: application/merge-patch+json\r\n");
  EXPECT_EQ(refused.status, 422);
  EXPECT_NE(refused.body.find("spec of 'catch-all' must equal the fixed value"), std::string::npos) << refused.body;
  RawAnswer shares =
      client.ask("PATCH", "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations/exempt",
                 R"({"spec":{"exempt":{"lendablePercent":10}}})", "Content-Type: application/merge-patch+json\r\n");
  EXPECT_EQ(shares.status, 200) << shares.body;
}

TEST_F(Kinds, a_local_api_service_is_there_at_once) {
  RawAnswer made = client.ask("POST", "/apis/apiregistration.k8s.io/v1/apiservices",
                              sample_objects().at("apiregistration.k8s.io/v1/APIService"));
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(get_string(get_array(made.json(), "status.conditions").at(0), "reason"), "Local");
  RawAnswer table = client.get("/apis/apiregistration.k8s.io/v1/apiservices/v1.example.com",
                               "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n");
  EXPECT_EQ(to_text(json::value(get_array(table.json(), "rows").at(0).at("cells"))).find(R"(["v1.example.com","Local","True")"),
            0u)
      << table.body;
  client.ask("DELETE", "/apis/apiregistration.k8s.io/v1/apiservices/v1.example.com");
}

}  // namespace
}  // namespace coracle::api
