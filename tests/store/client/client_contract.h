// SPDX-License-Identifier: Apache-2.0
// The contract of every Client as tests: a test program includes this and instantiates it with functions that create one.
//
//   INSTANTIATE_TEST_SUITE_P(Fake, ClientContract, testing::Values(ClientMaker{"fake", make_fake}));
//
// An implementation has its own server, in which the namespace "default" exists; nothing else is assumed about its contents. The
// tests wait for events, never for time.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "store/client/client.h"
#include "tests/store/client/recording_sink.h"

namespace coracle {

class ClientFixture {
 public:
  virtual ~ClientFixture() = default;
  virtual Client& client() = 0;
  // Makes it impossible to resume watches from the current revision. Returns false if the implementation cannot do this.
  virtual bool forget_past() { return false; }
};

struct ClientMaker {
  std::string name;
  std::function<std::unique_ptr<ClientFixture>()> make;
};
inline void PrintTo(const ClientMaker& maker, std::ostream* out) { *out << maker.name; }

class ClientContract : public testing::TestWithParam<ClientMaker> {
 protected:
  void SetUp() override {
    fixture_ = GetParam().make();
    if (!fixture_) GTEST_SKIP() << GetParam().name << " cannot be made here";
  }
  Client& client() { return fixture_->client(); }

  static json::value config(const std::string& name, const std::string& value = "1", const std::string& labels = "{}",
                            const std::string& ns = "default") {
    return MUST(parse_json(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":")" + name + R"(","namespace":")" + ns +
                           R"(","labels":)" + labels + R"(},"data":{"value":")" + value + R"("}})"));
  }
  static json::value pod(const std::string& name) {
    return MUST(
        parse_json(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name +
                   R"(","namespace":"default"},"spec":{"containers":[{"name":"main","image":"localhost/busybox:latest"}]}})"));
  }
  static json::value changed(const Object& object, std::string_view path, json::value value) {
    json::value body = object.json();
    make(body, path) = std::move(value);
    return body;
  }
  ObjectPtr create(const std::string& name, const std::string& value = "1", const std::string& labels = "{}") {
    return MUST(client().create(kConfigMap, config(name, value, labels)));
  }
  static Key key(const std::string& name) { return {"default", name}; }
  static std::vector<std::string> names(const ObjectList& list) {
    std::vector<std::string> out;
    for (const ObjectPtr& object : list.items) out.push_back(object->name());
    return out;
  }
  static WatchOptions scoped(std::string labels = "contract=yes") { return {"default", std::move(labels), "", 0}; }

  std::unique_ptr<ClientFixture> fixture_;
};

TEST_P(ClientContract, creates_and_gets) {
  ObjectPtr made = create("a");
  EXPECT_FALSE(made->uid().empty());
  EXPECT_GT(made->revision(), 0u);
  EXPECT_EQ(made->key(), key("a"));
  EXPECT_FALSE(get_string(made->json(), "metadata.creationTimestamp").empty());
  EXPECT_EQ(get_string(made->json(), "metadata.resourceVersion"), std::to_string(made->revision()));
  ObjectPtr got = MUST(client().get(kConfigMap, key("a")));
  EXPECT_EQ(got->json(), made->json());
  EXPECT_EQ(client().get(kConfigMap, key("b")).error().code(), Code::not_found);
  EXPECT_EQ(client().create(kConfigMap, config("a")).error().code(), Code::already_exists);
}

TEST_P(ClientContract, reads_the_scale_of_a_workload) {
  json::value body =
      MUST(parse_json(R"({"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"scaled","namespace":"default"},
      "spec":{"replicas":2,"selector":{"matchLabels":{"app":"x"}},"template":{"metadata":{"labels":{"app":"x"}},
      "spec":{"containers":[{"name":"main","image":"localhost/busybox:latest"}]}}}})"));
  ObjectPtr made = MUST(client().create(kReplicaSet, body));
  json::value scale = MUST(client().read(kReplicaSet, key("scaled"), "scale"));
  EXPECT_EQ(get_string(scale, "kind"), "Scale");
  EXPECT_EQ(get_int(scale, "spec.replicas"), 2);
  EXPECT_EQ(get_string(scale, "status.selector"), "app=x");
  make(scale, "spec.replicas") = 0;
  MUST(client().update(kReplicaSet, scale, {.subresource = "scale"}));
  EXPECT_EQ(get_int(MUST(client().get(kReplicaSet, key("scaled")))->json(), "spec.replicas"), 0);
  EXPECT_EQ(client().read(kReplicaSet, key("none"), "scale").error().code(), Code::not_found);
  constexpr Kind kStrange{"metrics.example.com", "v1", "Speed", "horses"};
  auto nobody = client().read(kStrange, key("*"), "speed", {{"labelSelector", "a=b"}});
  EXPECT_EQ(nobody.error().code(), Code::not_found);
  EXPECT_EQ(nobody.error().text(), "the server could not find the requested resource");
}

TEST_P(ClientContract, generates_names) {
  json::value body = config("");
  body.at("metadata").get_object().erase("name");
  make(body, "metadata.generateName") = "made-";
  ObjectPtr one = MUST(client().create(kConfigMap, body));
  ObjectPtr two = MUST(client().create(kConfigMap, body));
  EXPECT_TRUE(one->name().starts_with("made-"));
  EXPECT_NE(one->name(), two->name());
}

TEST_P(ClientContract, refuses_a_revision_on_create) {
  json::value body = config("a");
  make(body, "metadata.resourceVersion") = "5";
  EXPECT_FALSE(client().create(kConfigMap, body));
}

TEST_P(ClientContract, lists_sorted_by_selectors_and_pages) {
  for (const char* name : {"c", "a", "d", "b"})
    create(name, "1", std::string(R"({"contract":"yes","half":")") + (name[0] < 'c' ? "first" : "second") + "\"}");
  ListOptions options{"default", "contract=yes", "", 0, ""};
  ObjectList list = MUST(client().list(kConfigMap, options));
  EXPECT_EQ(names(list), (Names{"a", "b", "c", "d"}));
  EXPECT_GE(list.revision, list.items.back()->revision());
  options.label_selector = "contract,half notin (first)";
  EXPECT_EQ(names(MUST(client().list(kConfigMap, options))), (Names{"c", "d"}));
  options.label_selector = "contract=yes";
  options.field_selector = "metadata.name=b";
  EXPECT_EQ(names(MUST(client().list(kConfigMap, options))), (Names{"b"}));
  options.field_selector = "";
  options.limit = 3;
  ObjectList page = MUST(client().list(kConfigMap, options));
  EXPECT_EQ(names(page), (Names{"a", "b", "c"}));
  ASSERT_FALSE(page.continue_token.empty());
  options.continue_token = page.continue_token;
  page = MUST(client().list(kConfigMap, options));
  EXPECT_EQ(names(page), (Names{"d"}));
  EXPECT_TRUE(page.continue_token.empty());
  EXPECT_EQ(client().list(kConfigMap, {"default", "a in b", "", 0, ""}).error().code(), Code::bad_request);
  ListOptions only{.label_selector = "half=first",
                   .only = {{"default", "c"}, {"default", "b"}, {"other", "a"}, {"default", "none"}}};
  EXPECT_EQ(names(MUST(client().list(kConfigMap, only))), (Names{"b"}));
}

TEST_P(ClientContract, keeps_namespaces_apart) {
  json::value ns = *parse_json(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"other"}})");
  (void)MUST(client().create(kNamespace, ns));
  create("a", "here", R"({"contract":"yes"})");
  (void)MUST(client().create(kConfigMap, config("a", "there", R"({"contract":"yes"})", "other")));
  ObjectPtr there = MUST(client().get(kConfigMap, {"other", "a"}));
  EXPECT_EQ(get_string(there->json(), "data.value"), "there");
  EXPECT_EQ(MUST(client().list(kConfigMap, {"default", "contract=yes", "", 0, ""})).items.size(), 1u);
  EXPECT_EQ(MUST(client().list(kConfigMap, {"", "contract=yes", "", 0, ""})).items.size(), 2u);
}

TEST_P(ClientContract, updates_and_detects_conflicts) {
  ObjectPtr first = create("a");
  ObjectPtr second = MUST(client().update(kConfigMap, changed(*first, "data.value", "2")));
  EXPECT_GT(second->revision(), first->revision());
  EXPECT_EQ(second->uid(), first->uid());
  EXPECT_EQ(client().update(kConfigMap, changed(*first, "data.value", "3")).error().code(), Code::conflict);
  json::value unconditional = config("a", "4");
  EXPECT_EQ(get_string(MUST(client().update(kConfigMap, unconditional))->json(), "data.value"), "4");
  EXPECT_EQ(client().update(kConfigMap, config("missing")).error().code(), Code::not_found);
}

TEST_P(ClientContract, an_update_that_changes_nothing_is_none) {
  ObjectPtr first = create("a");
  ObjectPtr again = MUST(client().update(kConfigMap, first->json()));
  EXPECT_EQ(again->revision(), first->revision());
}

TEST_P(ClientContract, patches) {
  create("a");
  json::value merge = *parse_json(R"({"data":{"value":null,"other":"x"}})");
  ObjectPtr merged = MUST(client().patch(kConfigMap, key("a"), PatchType::merge, merge));
  EXPECT_EQ(get_object(merged->json(), "data"), parse_json(R"({"other":"x"})")->get_object());
  json::value operations = *parse_json(R"([{"op":"replace","path":"/data/other","value":"y"}])");
  ObjectPtr patched = MUST(client().patch(kConfigMap, key("a"), PatchType::json, operations));
  EXPECT_EQ(get_string(patched->json(), "data.other"), "y");
  json::value strategic = *parse_json(R"({"metadata":{"labels":{"x":"y"}}})");
  EXPECT_EQ(MUST(client().patch(kConfigMap, key("a"), PatchType::strategic, strategic))->label("x"), "y");
  json::value failing = *parse_json(R"([{"op":"test","path":"/data/other","value":"n"}])");
  EXPECT_EQ(client().patch(kConfigMap, key("a"), PatchType::json, failing).error().code(), Code::invalid);
  json::value stale = *parse_json(R"({"metadata":{"resourceVersion":"1"},"data":{"z":"z"}})");
  EXPECT_EQ(client().patch(kConfigMap, key("a"), PatchType::merge, stale).error().code(), Code::conflict);
  EXPECT_EQ(client().patch(kConfigMap, key("none"), PatchType::merge, merge).error().code(), Code::not_found);
}

TEST_P(ClientContract, applies) {
  UpdateOptions options{"", "contract", false};
  json::value intent = config("a", "1");
  ObjectPtr made = MUST(client().patch(kConfigMap, key("a"), PatchType::apply, intent, options));
  EXPECT_FALSE(made->uid().empty());
  make(intent, "data.value") = "2";
  ObjectPtr again = MUST(client().patch(kConfigMap, key("a"), PatchType::apply, intent, options));
  EXPECT_EQ(get_string(again->json(), "data.value"), "2");
  EXPECT_EQ(again->uid(), made->uid());
}

TEST_P(ClientContract, removes) {
  ObjectPtr made = create("a");
  EXPECT_EQ(client().remove(kConfigMap, key("a"), {{}, "another-uid", {}, ""}).error().code(), Code::conflict);
  EXPECT_EQ(client().remove(kConfigMap, key("a"), {{}, {}, made->revision() + 1000, ""}).error().code(), Code::conflict);
  EXPECT_TRUE(client().remove(kConfigMap, key("a"), {{}, made->uid(), made->revision(), ""}));
  EXPECT_EQ(client().get(kConfigMap, key("a")).error().code(), Code::not_found);
  EXPECT_EQ(client().remove(kConfigMap, key("a")).error().code(), Code::not_found);
}

TEST_P(ClientContract, finalizers_delay_removal) {
  json::value body = config("a");
  make(body, "metadata.finalizers") = json::array{"example.com/hold"};
  (void)MUST(client().create(kConfigMap, body));
  ASSERT_TRUE(client().remove(kConfigMap, key("a")));
  ObjectPtr held = MUST(client().get(kConfigMap, key("a")));
  EXPECT_TRUE(held->deleting());
  ASSERT_TRUE(client().update(kConfigMap, changed(*held, "metadata.finalizers", json::array())));
  EXPECT_EQ(client().get(kConfigMap, key("a")).error().code(), Code::not_found);
}

TEST_P(ClientContract, status_is_apart_from_the_rest) {
  ObjectPtr made = MUST(client().create(kPod, pod("p")));
  int64_t generation = get_int(made->json(), "metadata.generation");
  json::value both = changed(*made, "status.phase", "Running");
  make(both, "metadata.labels") = json::object{{"x", "y"}};
  ObjectPtr main = MUST(client().update(kPod, both));
  EXPECT_NE(get_string(main->json(), "status.phase"), "Running");
  EXPECT_EQ(main->label("x"), "y");
  both = changed(*main, "status.phase", "Running");
  make(both, "metadata.annotations") = json::object{{"a", "b"}};  // of most kinds: as in Kubernetes
  make(both, "spec").get_object().clear();
  ObjectPtr status = MUST(client().update(kPod, both, {"status", "", false}));
  EXPECT_EQ(get_string(status->json(), "status.phase"), "Running");
  EXPECT_EQ(status->annotation("a"), "b");
  EXPECT_EQ(get_array(status->json(), "spec.containers"), get_array(main->json(), "spec.containers"));
  EXPECT_EQ(get_int(status->json(), "metadata.generation"), generation);
  json::value patch = *parse_json(R"({"status":{"reason":"Tested"}})");
  status = MUST(client().patch(kPod, key("p"), PatchType::merge, patch, {"status", "", false}));
  EXPECT_EQ(get_string(status->json(), "status.reason"), "Tested");
  EXPECT_EQ(get_string(status->json(), "status.phase"), "Running");
}

// Another object may have the same name now: a write with a uid only applies to the object with that uid.
TEST_P(ClientContract, a_status_is_of_the_object_that_is_meant) {
  ObjectPtr made = MUST(client().create(kPod, pod("p")));
  json::value patch = *parse_json(R"({"metadata":{"uid":"another-uid"},"status":{"reason":"Tested"}})");
  for (PatchType type : {PatchType::merge, PatchType::strategic})
    EXPECT_EQ(client().patch(kPod, key("p"), type, patch, {"status", "", false}).error().code(), Code::conflict);
  json::value body = changed(*made, "status.reason", "Tested");
  make(body, "metadata.uid") = "another-uid";
  make(body, "metadata").get_object().erase("resourceVersion");
  EXPECT_EQ(client().update(kPod, body, {"status", "", false}).error().code(), Code::conflict);
  EXPECT_EQ(get_string(MUST(client().get(kPod, key("p")))->json(), "status.reason"), "");
  make(patch, "metadata.uid") = made->uid();
  EXPECT_TRUE(client().patch(kPod, key("p"), PatchType::merge, patch, {"status", "", false}));
}

TEST_P(ClientContract, binds_and_deletes_pods_gracefully) {
  (void)MUST(client().create(kPod, pod("p")));
  json::value binding = *parse_json(R"({"apiVersion":"v1","kind":"Binding","metadata":{"name":"p","namespace":"default"},
                                        "target":{"apiVersion":"v1","kind":"Node","name":"here"}})");
  ASSERT_TRUE(client().create_subresource(kPod, key("p"), "binding", binding));
  ObjectPtr bound = MUST(client().get(kPod, key("p")));
  EXPECT_EQ(get_string(bound->json(), "spec.nodeName"), "here");
  EXPECT_EQ(client().create_subresource(kPod, key("p"), "binding", binding).error().code(), Code::conflict);

  ASSERT_TRUE(client().remove(kPod, key("p"), {7, {}, {}, ""}));
  ObjectPtr dying = MUST(client().get(kPod, key("p")));
  EXPECT_TRUE(dying->deleting());
  EXPECT_EQ(get_int(dying->json(), "metadata.deletionGracePeriodSeconds"), 7);
  ASSERT_TRUE(client().remove(kPod, key("p"), {0, dying->uid(), {}, ""}));
  EXPECT_EQ(client().get(kPod, key("p")).error().code(), Code::not_found);
}

TEST_P(ClientContract, an_unscheduled_pod_goes_at_once) {
  (void)MUST(client().create(kPod, pod("p")));
  ASSERT_TRUE(client().remove(kPod, key("p")));
  EXPECT_EQ(client().get(kPod, key("p")).error().code(), Code::not_found);
}

TEST_P(ClientContract, a_watch_tells_what_is_and_what_happens) {
  create("a", "1", R"({"contract":"yes"})");
  create("b", "1", R"({"contract":"yes"})");
  RecordingSink sink;
  auto watch = MUST(client().watch(kConfigMap, scoped(), sink));
  ASSERT_EQ(sink.wait_names(3), (Names{"added a", "added b", "synced"}));
  ObjectPtr c = create("c", "1", R"({"contract":"yes"})");
  (void)MUST(client().update(kConfigMap, changed(*c, "data.value", "2")));
  ASSERT_TRUE(client().remove(kConfigMap, key("c")));
  ASSERT_EQ(sink.wait_names(6), (Names{"added a", "added b", "synced", "added c", "modified c", "deleted c"}));
  std::vector<WatchEvent> events = sink.wait(6);
  for (size_t i = 3; i < events.size(); i++) {
    EXPECT_GT(events[i].revision, events[i - 1].revision);
    EXPECT_EQ(events[i].object->revision(), events[i].revision);
  }
  EXPECT_EQ(get_string(events[5].object->json(), "data.value"), "2");
}

TEST_P(ClientContract, a_watch_goes_on_from_a_revision) {
  ObjectPtr a = create("a", "1", R"({"contract":"yes"})");
  create("b", "1", R"({"contract":"yes"})");
  ObjectPtr later = MUST(client().update(kConfigMap, changed(*a, "data.value", "2")));
  WatchOptions options = scoped();
  options.after = a->revision();
  RecordingSink sink;
  auto watch = MUST(client().watch(kConfigMap, options, sink));
  EXPECT_EQ(sink.wait_names(2), (Names{"added b", "modified a"}));
  create("c", "1", R"({"contract":"yes"})");
  EXPECT_EQ(sink.wait_names(3), (Names{"added b", "modified a", "added c"}));
  EXPECT_EQ(sink.wait(2)[1].revision, later->revision());
}

TEST_P(ClientContract, a_list_and_a_watch_meet_without_a_gap) {
  create("a", "1", R"({"contract":"yes"})");
  WatchOptions options = scoped();
  options.after = MUST(client().list(kConfigMap, {"default", "contract=yes", "", 0, ""})).revision;
  create("b", "1", R"({"contract":"yes"})");
  RecordingSink sink;
  auto watch = MUST(client().watch(kConfigMap, options, sink));
  EXPECT_EQ(sink.wait_names(1), (Names{"added b"}));
}

TEST_P(ClientContract, a_selector_turns_changes_into_arrivals_and_departures) {
  RecordingSink sink;
  auto watch = MUST(client().watch(kConfigMap, scoped(), sink));
  ASSERT_EQ(sink.wait_names(1), (Names{"synced"}));
  ObjectPtr a = create("a");
  ObjectPtr in = MUST(client().update(kConfigMap, changed(*a, "metadata.labels", {{"contract", "yes"}})));
  ObjectPtr out = MUST(client().update(kConfigMap, changed(*in, "metadata.labels", json::object())));
  ASSERT_EQ(sink.wait_names(3), (Names{"synced", "added a", "deleted a"}));
  WatchEvent gone = sink.wait(3)[2];
  EXPECT_EQ(gone.revision, out->revision());
  EXPECT_EQ(gone.object->label("contract"), "yes");
  EXPECT_EQ(gone.object->revision(), out->revision());
}

TEST_P(ClientContract, a_field_selector_watches_one_object) {
  create("a");
  create("b");
  RecordingSink sink;
  auto watch = MUST(client().watch(kConfigMap, {"default", "", "metadata.name=b", 0}, sink));
  EXPECT_EQ(sink.wait_names(2), (Names{"added b", "synced"}));
}

TEST_P(ClientContract, a_destroyed_watch_is_silent) {
  RecordingSink sink;
  auto watch = MUST(client().watch(kConfigMap, scoped(), sink));
  ASSERT_EQ(sink.wait_names(1), (Names{"synced"}));
  watch.reset();
  create("a", "1", R"({"contract":"yes"})");
  RecordingSink other;
  auto second = MUST(client().watch(kConfigMap, scoped(), other));
  ASSERT_EQ(other.wait_names(2), (Names{"added a", "synced"}));
  EXPECT_EQ(sink.wait_names(1), (Names{"synced"}));
}

TEST_P(ClientContract, a_watch_from_a_forgotten_revision_is_gone) {
  ObjectPtr a = create("a", "1", R"({"contract":"yes"})");
  create("b");
  if (!fixture_->forget_past()) GTEST_SKIP() << "this client's past cannot be dropped on demand";
  RecordingSink sink;
  WatchOptions options = scoped();
  options.after = a->revision();
  auto watch = client().watch(kConfigMap, options, sink);
  Code code = watch ? sink.wait_end().value_or(Error(Code::internal, "the watch went on")).code() : watch.error().code();
  EXPECT_EQ(code, Code::gone);
}

TEST_P(ClientContract, many_watches_see_the_same_order) {
  RecordingSink sinks[3];
  std::vector<std::unique_ptr<Watch>> watches;
  for (RecordingSink& sink : sinks) watches.push_back(MUST(client().watch(kConfigMap, scoped(), sink)));
  for (int i = 0; i < 20; i++) create("n" + std::to_string(i), "1", R"({"contract":"yes"})");
  Names first = sinks[0].wait_names(21);
  ASSERT_EQ(first.size(), 21u);
  EXPECT_EQ(sinks[1].wait_names(21), first);
  EXPECT_EQ(sinks[2].wait_names(21), first);
}

}  // namespace coracle
