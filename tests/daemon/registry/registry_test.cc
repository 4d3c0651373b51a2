// SPDX-License-Identifier: Apache-2.0
// The pipeline: the steps of every write of every kind, and those of some kinds.
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "store/kinds/service/server/address_range.h"
#include "store/object/status.h"
#include "store/schema/catalog.h"
#include "tests/daemon/registry/registry_fixture.h"
#include "tests/threads_asleep.h"

namespace coracle::registry {
namespace {

class RegistryTest : public testing::Test {
 protected:
  static constexpr std::string_view kDeploymentText = R"({"metadata":{"name":"d","namespace":"default"},"spec":{"replicas":2,
      "selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}},
      "status":{"replicas":9}})";
  static std::string map(const std::string& name) {
    return R"({"metadata":{"name":")" + name + R"(","namespace":"default"},"data":{"a":"b"}})";
  }
  static std::string pod(const std::string& name, const std::string& spec = {}) {
    return R"({"metadata":{"name":")" + name + R"(","namespace":"default"},"spec":{"containers":[{"name":"c","image":"i"}])" +
           spec + "}}";
  }
  static std::string service(const std::string& name, const std::string& spec = R"("ports":[{"port":80}])") {
    return R"({"metadata":{"name":")" + name + R"(","namespace":"default"},"spec":{)" + spec + "}}";
  }
  RegistryFixture fixture;
};

// ---- initial objects ----

TEST_F(RegistryTest, begins_with_namespaces_and_the_way_to_the_api) {
  for (const char* name : {"default", "kube-system", "kube-public", "kube-node-lease"}) {
    ObjectPtr ns = MUST(fixture.registry().get(kNamespace, {"", name}));
    EXPECT_EQ(get_string(ns->json(), "status.phase"), "Active");
    EXPECT_EQ(ns->label("kubernetes.io/metadata.name"), name);
  }
  EXPECT_EQ(get_string(MUST(fixture.registry().get(kService, {"default", "kubernetes"}))->json(), "spec.clusterIP"), "10.96.0.1");
  ObjectPtr slice = MUST(fixture.registry().get(kEndpointSlice, {"default", "kubernetes"}));
  EXPECT_EQ(slice->label("kubernetes.io/service-name"), "kubernetes");
}

TEST_F(RegistryTest, bootstrap_again_changes_nothing_but_a_new_address) {
  Revision before = fixture.engine->revision();
  MUST(bootstrap(fixture.registry(), fixture.ranges, {"192.0.2.1", 6443}));
  EXPECT_EQ(fixture.engine->revision(), before);
  MUST(bootstrap(fixture.registry(), fixture.ranges, {"192.0.2.9", 6443}));
  ObjectPtr endpoints = MUST(fixture.registry().get(kEndpoints, {"default", "kubernetes"}));
  EXPECT_NE(endpoints->text().find("192.0.2.9"), std::string::npos);
  EXPECT_EQ(endpoints->text().find("192.0.2.1\""), std::string::npos);
}

// ---- metadata ----

TEST_F(RegistryTest, decides_itself_what_a_client_may_not_say) {
  ObjectPtr made = fixture.make(
      kConfigMap, R"({"metadata":{"name":"m","namespace":"default","uid":"mine","creationTimestamp":"2000-01-01T00:00:00Z",
      "generation":7,"deletionTimestamp":"2000-01-01T00:00:00Z"}})");
  EXPECT_NE(made->uid(), "mine");
  EXPECT_EQ(get_string(made->json(), "metadata.creationTimestamp"), format_time(fixture.clock.now()));
  EXPECT_FALSE(made->deleting());
  json::value body = RegistryFixture::with(*made, "metadata.creationTimestamp", "1999-01-01T00:00:00Z");
  make(body, "data.x") = "y";
  ObjectPtr updated = MUST(fixture.try_update(kConfigMap, body));
  EXPECT_EQ(get_string(updated->json(), "metadata.creationTimestamp"), get_string(made->json(), "metadata.creationTimestamp"));
  EXPECT_EQ(fixture.try_update(kConfigMap, RegistryFixture::with(*updated, "metadata.uid", "other")).error().code(),
            Code::conflict);
}

TEST_F(RegistryTest, only_a_deletion_tells_when_an_object_ends) {
  ObjectPtr made = fixture.make(kConfigMap, R"({"metadata":{"name":"m","namespace":"default","finalizers":["a/x"]}})");
  Key key{"default", "m"};
  const std::string time = R"({"metadata":{"deletionTimestamp":"2031-01-01T00:00:00Z"}})";
  const std::string grace = R"({"metadata":{"deletionGracePeriodSeconds":7}})";
  const std::string no_end = R"({"metadata":{"deletionTimestamp":null,"deletionGracePeriodSeconds":null}})";
  EXPECT_EQ(
      fixture.try_merge(kConfigMap, key, time).error().text(),
      "ConfigMap \"m\" is invalid: metadata.deletionTimestamp: Invalid value: \"2031-01-01T00:00:00Z\": field is immutable");
  EXPECT_EQ(fixture.try_merge(kConfigMap, key, grace).error().text(),
            "ConfigMap \"m\" is invalid: metadata.deletionGracePeriodSeconds: Invalid value: 7: field is immutable");
  ASSERT_FALSE(MUST(fixture.registry().remove(kConfigMap, key, {}, {})).gone);
  ObjectPtr ending = MUST(fixture.registry().get(kConfigMap, key));
  for (const std::string& kept : {time, no_end}) {
    ObjectPtr after = MUST(fixture.try_merge(kConfigMap, key, kept));
    EXPECT_EQ(get_string(after->json(), "metadata.deletionTimestamp"), get_string(ending->json(), "metadata.deletionTimestamp"));
    EXPECT_EQ(get_int(after->json(), "metadata.deletionGracePeriodSeconds"), 0);
  }
  EXPECT_EQ(fixture.try_merge(kConfigMap, key, grace).error().code(), Code::invalid);
}

TEST_F(RegistryTest, generates_names) {
  ObjectPtr made = fixture.make(kConfigMap, R"({"metadata":{"generateName":"x-","namespace":"default"}})");
  EXPECT_TRUE(made->name().starts_with("x-"));
  EXPECT_EQ(made->name().size(), 7u);
  EXPECT_EQ(fixture.try_make(kConfigMap, R"({"metadata":{"namespace":"default"}})").error().code(), Code::invalid);
}

TEST_F(RegistryTest, writes_nothing_when_nothing_changes) {
  ObjectPtr made = fixture.make(kConfigMap, map("m"));
  EXPECT_EQ(MUST(fixture.try_update(kConfigMap, made->json()))->revision(), made->revision());
  EXPECT_EQ(MUST(fixture.try_merge(kConfigMap, made->key(), R"({"data":{"a":"b"}})"))->revision(), made->revision());
}

TEST_F(RegistryTest, keeps_the_halves_of_an_object_apart) {
  ObjectPtr made = fixture.make(kDeployment, kDeploymentText);
  EXPECT_EQ(get_int(made->json(), "status.replicas"), 0) << "a client does not create a status";
  EXPECT_EQ(get_int(made->json(), "metadata.generation"), 1);
  json::value both = RegistryFixture::with(*made, "spec.replicas", 3);
  make(both, "status.replicas") = 5;
  ObjectPtr spec = MUST(fixture.try_update(kDeployment, both));
  EXPECT_EQ(get_int(spec->json(), "spec.replicas"), 3);
  EXPECT_EQ(get_int(spec->json(), "status.replicas"), 0);
  EXPECT_EQ(get_int(spec->json(), "metadata.generation"), 2);
  both = RegistryFixture::with(*spec, "spec.replicas", 4);
  make(both, "status.replicas") = 5;
  make(both, "metadata.labels.x") = "y";
  ObjectPtr status = MUST(fixture.try_update(kDeployment, both, "status"));
  EXPECT_EQ(get_int(status->json(), "spec.replicas"), 3);
  EXPECT_EQ(get_int(status->json(), "status.replicas"), 5);
  EXPECT_EQ(get_int(status->json(), "metadata.generation"), 2);
  EXPECT_EQ(status->label("x"), "");
  EXPECT_EQ(get_int(MUST(fixture.try_merge(kDeployment, {"default", "d"}, R"({"metadata":{"labels":{"x":"y"}}})"))->json(),
                    "metadata.generation"),
            2);
}

// Whatever the body says of the rest, or leaves out: the rest stays, in its text too.
TEST_F(RegistryTest, a_status_leaves_all_else_as_it_was) {
  ObjectPtr made = fixture.make(
      kDeployment,
      R"({"metadata":{"name":"d","namespace":"default","generateName":"d-","labels":{"a":"b"},"annotations":{"c":"d"},
      "ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"m","uid":"u"}]},"spec":{"replicas":2,"paused":true,
      "selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})");
  auto rest_of = [](const Object& object) {
    json::value rest = object.json();
    rest.get_object().erase("status");
    for (const char* own : {"resourceVersion", "annotations", "finalizers", "ownerReferences"})
      rest.at("metadata").get_object().erase(own);
    return to_sorted_text(rest);
  };
  const json::value name = RegistryFixture::parse(R"({"metadata":{"name":"d","namespace":"default"}})");
  json::value whole = made->json(), other = made->json();
  make(other, "spec") = RegistryFixture::parse(R"({"replicas":7,"selector":{"matchLabels":{"x":"y"}},"minReadySeconds":3,
      "template":{"metadata":{"labels":{"x":"y"}},"spec":{"containers":[{"name":"c","image":"j"}]}}})");
  make(other, "metadata.labels") = json::object{{"x", "y"}};
  make(other, "metadata.generateName") = "e-";
  make(other, "metadata.generation") = 8;
  make(other, "metadata.creationTimestamp") = "2020-01-01T00:00:00Z";
  int replicas = 0;
  for (json::value body : {name, whole, other}) {
    make(body, "status.replicas") = ++replicas;
    make(body, "metadata").get_object().erase("resourceVersion");
    ObjectPtr written = MUST(fixture.try_update(kDeployment, body, "status"));
    EXPECT_EQ(get_int(written->json(), "status.replicas"), replicas);
    EXPECT_EQ(rest_of(*written), rest_of(*made)) << replicas;
    const bool named_only = replicas == 1;  // for this kind, these belong to the status
    EXPECT_EQ(written->annotation("c"), named_only ? "" : "d");
    EXPECT_EQ(written->owners().size(), named_only ? 0u : 1u);
  }
  ObjectPtr patched =
      MUST(fixture.try_merge(kDeployment, made->key(), R"({"spec":{"replicas":9},"status":{"replicas":4}})", "status"));
  EXPECT_EQ(get_int(patched->json(), "status.replicas"), 4);
  EXPECT_EQ(rest_of(*patched), rest_of(*made));
  ObjectPtr none = MUST(fixture.try_update(kDeployment, name, "status"));
  EXPECT_EQ(get_int(none->json(), "status.replicas"), 0) << "a body without a status is an empty one";
  ObjectPtr spec = MUST(fixture.try_merge(kDeployment, made->key(), R"({"spec":{"replicas":5},"status":{"replicas":6}})"));
  EXPECT_EQ(get_int(spec->json(), "spec.replicas"), 5);
  EXPECT_EQ(get_int(spec->json(), "status.replicas"), 0);
}

// A status update also writes labels and annotations, unless the kind excludes them.
TEST_F(RegistryTest, a_status_is_written_with_metadata_or_without) {
  struct Row {
    const Kind* kind;
    std::string_view text;
    bool labels, annotations;
  };
  const Kind& flow = schema::catalog().by_kind("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration")->kind;
  for (const Row& row :
       {Row{&kService, R"({"metadata":{"name":"s","namespace":"default"},"spec":{"ports":[{"port":80}]}})", true, true},
        Row{&kNamespace, R"({"metadata":{"name":"n"}})", true, true}, Row{&kDeployment, kDeploymentText, false, true},
        Row{&flow, R"({"metadata":{"name":"p"},"spec":{"type":"Limited","limited":{"limitResponse":{"type":"Reject"}}}})", false,
            false}}) {
    SCOPED_TRACE(row.kind->kind);
    ObjectPtr made = fixture.make(*row.kind, row.text);
    ObjectPtr written =
        MUST(fixture.try_merge(*row.kind, made->key(), R"({"metadata":{"labels":{"x":"y"},"annotations":{"x":"y"}},
        "status":{"conditions":[{"type":"A","status":"True","reason":"R","message":"","lastTransitionTime":"2024-01-01T00:00:00Z"}]}})",
                               "status"));
    EXPECT_EQ(written->label("x"), row.labels ? "y" : "");
    EXPECT_EQ(written->annotation("x"), row.annotations ? "y" : "");
    EXPECT_EQ(get_array(written->json(), "status.conditions").size(), 1u);
    EXPECT_EQ(written->label("kubernetes.io/metadata.name"), made->label("kubernetes.io/metadata.name"))
        << "what was there stays";
  }
}

// So does an apply to the status: the applier owns exactly the fields that it could set.
TEST_F(RegistryTest, an_applied_status_holds_the_metadata_that_came_with_it) {
  fixture.make(kDeployment, kDeploymentText);
  Writer writer;
  writer.field_manager = "judge";
  json::value applied = RegistryFixture::parse(
      R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"default","labels":{"x":"y"},"annotations":{"x":"y"}},
      "status":{"replicas":2}})");
  ObjectPtr written =
      MUST(fixture.registry().patch(kDeployment, {"default", "d"}, "status", PatchType::apply, applied, false, writer)).object;
  EXPECT_EQ(written->annotation("x"), "y");
  EXPECT_EQ(written->label("x"), "");
  std::string held;
  for (const json::value& entry : get_array(written->json(), "metadata.managedFields"))
    if (get_string(entry, "manager") == "judge") held = to_text(*find(entry, "fieldsV1"));
  EXPECT_EQ(held, R"({"f:metadata":{"f:annotations":{"f:x":{}}},"f:status":{"f:replicas":{}}})");
}

TEST_F(RegistryTest, repeats_a_patch_on_what_is_newer) {
  fixture.make(kConfigMap, map("m"));
  std::atomic<int> failed = 0;
  std::vector<std::jthread> writers;
  for (int w = 0; w < 4; w++)
    writers.emplace_back([&, w] {
      for (int i = 0; i < 10; i++)
        if (!fixture.try_merge(kConfigMap, {"default", "m"}, R"({"data":{"w)" + std::to_string(w * 10 + i) + R"(":"x"}})"))
          failed++;
    });
  writers.clear();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(get_object(MUST(fixture.registry().get(kConfigMap, {"default", "m"}))->json(), "data").size(), 41u);
}

// The parsed form of an old object is freed with it, however often it was changed.
TEST_F(RegistryTest, a_changed_object_keeps_no_memory_of_the_old_one) {
  struct Row {
    const char* name;
    PatchType type;
    std::string_view subresource, patch;
  };
  const Key key{"default", "d"};
  fixture.make(kDeployment, kDeploymentText);
  Writer writer;
  writer.field_manager = "me";
  for (const Row& row : {
           Row{"a merge patch", PatchType::merge, "", R"({"metadata":{"labels":{"a":"1"}}})"},
           Row{"a strategic patch", PatchType::strategic, "",
               R"({"spec":{"template":{"spec":{"containers":[{"name":"c","image":"2"}]}}}})"},
           Row{"a JSON patch", PatchType::json, "", R"([{"op":"add","path":"/metadata/labels/b","value":"3"}])"},
           Row{"an apply", PatchType::apply, "",
               R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","labels":{"c":"4"}}})"},
           Row{"a status", PatchType::merge, "status", R"({"status":{"replicas":5}})"},
           Row{"a scale", PatchType::merge, "scale", R"({"spec":{"replicas":6}})"},
           Row{"an applied scale", PatchType::apply, "scale",
               R"({"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"d"},"spec":{"replicas":6}})"},
       }) {
    ObjectPtr before = MUST(fixture.registry().get(kDeployment, key));
    const json::memory_resource* memory = before->json().storage().get();
    auto after =
        fixture.registry().patch(kDeployment, key, row.subresource, row.type, RegistryFixture::parse(row.patch), false, writer);
    ASSERT_TRUE(after) << row.name << ": " << after.error().text();
    ASSERT_GT(after->object->revision(), before->revision()) << row.name;
    EXPECT_NE(after->object->json().storage().get(), memory) << row.name;
    EXPECT_EQ(to_text(after->object->json()), after->object->text()) << row.name;
  }
  ObjectPtr held = MUST(fixture.try_merge(kDeployment, key, R"({"metadata":{"finalizers":["example.com/a"]}})"));
  Removed removed = MUST(fixture.registry().remove(kDeployment, key, {}, {}));
  ASSERT_FALSE(removed.gone);
  EXPECT_NE(removed.object->json().storage().get(), held->json().storage().get()) << "a deletion that waits";
}

// Error messages go to logs.
TEST_F(RegistryTest, a_refused_patch_does_not_show_the_object) {
  Key key{"default", "s"};
  fixture.make(
      kSecret,
      R"({"metadata":{"name":"s","namespace":"default","annotations":{"a":"hunter0"}},"stringData":{"password":"hunter1"}})");
  for (auto [type, patch] :
       {std::pair(PatchType::strategic, R"({"data":{"password":12345678}})"),
        std::pair(PatchType::strategic, R"({"data":{"more":"hunter2"}})"), std::pair(PatchType::merge, R"({"data":["hunter2"]})"),
        std::pair(PatchType::merge, R"({"stringData":{"x":12345678}})"),
        std::pair(PatchType::json, R"([{"op":"add","path":"/data/x","value":"hunter2!"}])"),
        std::pair(PatchType::json, R"([{"op":"test","path":"/data/password","value":"hunter2"}])"),
        std::pair(PatchType::apply, R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"x":12345678}})")}) {
    Writer writer;
    writer.field_manager = "me";
    auto refused = fixture.registry().patch(kSecret, key, "", type, RegistryFixture::parse(patch), false, writer);
    ASSERT_FALSE(refused) << patch;
    std::string told = to_text(to_status(refused.error()));
    for (std::string_view value : {"hunter", "12345678", "aHVudGVy"}) EXPECT_EQ(told.find(value), std::string::npos) << told;
  }
  ObjectPtr pod = fixture.make(kConfigMap, R"({"metadata":{"name":"m","namespace":"default"},"data":{"k":"live"}})");
  auto refused = fixture.registry().patch(kConfigMap, pod->key(), "", PatchType::strategic,
                                          RegistryFixture::parse(R"({"data":{"k":1}})"), false, {});
  EXPECT_EQ(refused.error().text(),
            " \"\" is invalid: patch: Invalid value: data[k]: expected a string, found the number 1 (put it in quotes)");
  EXPECT_EQ(refused.error().details()->causes[0].field, "patch");
}

TEST_F(RegistryTest, a_refused_secret_does_not_show_its_values) {
  fixture.make(kSecret, R"({"metadata":{"name":"fixed","namespace":"default"},"immutable":true,"data":{"a":"aHVudGVyMQ=="}})");
  std::vector<Error> refused;
  for (
      const char* text :
      {R"({"metadata":{"name":"s","namespace":"default"},"type":"kubernetes.io/dockerconfigjson","data":{".dockerconfigjson":"aHVudGVyMQ=="}})",
       R"({"metadata":{"name":"s","namespace":"default"},"data":{"not a key":"aHVudGVyMQ=="}})",
       R"({"metadata":{"name":"s","namespace":"default","labels":{"a":"not good"}},"data":{"a":"aHVudGVyMQ=="},"stringData":{"b":"hunter2"}})",
       R"({"metadata":{"name":"fixed","namespace":"default"},"stringData":{"a":"hunter2"}})"}) {
    auto made = fixture.try_make(kSecret, text);
    ASSERT_FALSE(made) << text;
    refused.push_back(made.take_error());
  }
  auto changed = fixture.try_update(
      kSecret, RegistryFixture::parse(
                   R"({"metadata":{"name":"fixed","namespace":"default"},"immutable":true,"data":{"a":"aHVudGVyMg=="}})"));
  ASSERT_FALSE(changed);
  refused.push_back(changed.take_error());
  for (const Error& error : refused) {
    std::string told = to_text(to_status(error));
    for (std::string_view value : {"hunter", "aHVudGVy"}) EXPECT_EQ(told.find(value), std::string::npos) << told;
  }
}

TEST_F(RegistryTest, tells_plainly_that_a_new_object_has_no_version) {
  for (const char* text :
       {R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m","namespace":"default","resourceVersion":"5"}})"}) {
    auto made = fixture.try_make(kConfigMap, text);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code(), Code::bad_request);
    EXPECT_EQ(made.error().text(), "resourceVersion should not be set on objects to be created");
    Writer writer;
    writer.field_manager = "me";
    auto applied =
        fixture.registry().patch(kConfigMap, {"default", "m"}, "", PatchType::apply, RegistryFixture::parse(text), false, writer);
    ASSERT_FALSE(applied);
    EXPECT_EQ(applied.error().code(), Code::bad_request);
    EXPECT_EQ(applied.error().text(), "resourceVersion should not be set on objects to be created");
  }
}

TEST_F(RegistryTest, drops_repeated_owners_in_one_pass) {
  json::array owners(20'000, RegistryFixture::parse(R"({"apiVersion":"v1","kind":"ConfigMap","name":"o","uid":"u"})"));
  json::value body = RegistryFixture::parse(map("owned"));
  make(body, "metadata.ownerReferences") = owners;
  for (int i = 0; i < 20'000; i++)
    make(body, "metadata.ownerReferences").get_array()[size_t(i)].get_object()["uid"] = "u" + std::to_string(i % 10'000);
  std::vector<std::string> warnings;
  Writer writer;
  writer.warnings = &warnings;
  auto made = fixture.registry().create(kConfigMap, {"default", ""}, body, writer);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_LT(warnings[0].size(), 1000u);
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_EQ(get_array(made->object->json(), "metadata.ownerReferences").size(), 10'000u);
}

TEST_F(RegistryTest, a_json_patch_cannot_nest_without_end) {
  fixture.make(kConfigMap, map("m"));
  json::value operations = RegistryFixture::parse(R"([{"op":"add","path":"/x","value":[[]]}])");
  std::string innermost = "/x/0";
  for (size_t i = 0, depth = 2; i < 17; i++, depth *= 2) {
    operations.get_array().push_back(json::object{{"op", "copy"}, {"from", "/x"}, {"path", innermost + "/0"}});
    for (size_t j = 0; j < depth; j++) innermost += "/0";
  }
  auto refused = fixture.registry().patch(kConfigMap, {"default", "m"}, "", PatchType::json, operations, false, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::bad_request) << refused.error().text();
}

class NobodyCreates : public Guard {
 public:
  Result<void> check(const GuardedWrite&) const override { return {}; }
  Result<void> check_create(const Kind& kind, const Key& key, const User&) const override {
    return forbidden(kind, key.name, "no create");
  }
};

TEST_F(RegistryTest, an_update_that_would_create_asks_for_that_right) {
  NobodyCreates guard;
  fixture.registry().set_guard(&guard);
  User jane{"jane", "", {}, {}};
  Writer writer;
  writer.field_manager = "me";
  writer.user = &jane;
  json::value lease = RegistryFixture::parse(
      R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"n","namespace":"kube-node-lease"}})");
  for (bool dry_run : {true, false}) {
    writer.dry_run = dry_run;
    auto put = fixture.registry().update(kLease, {"kube-node-lease", "n"}, "", lease, writer);
    ASSERT_FALSE(put);
    EXPECT_EQ(put.error().code(), Code::forbidden);
    auto applied = fixture.registry().patch(kLease, {"kube-node-lease", "n"}, "", PatchType::apply, lease, false, writer);
    ASSERT_FALSE(applied);
    EXPECT_EQ(applied.error().code(), Code::forbidden);
  }
  EXPECT_EQ(fixture.registry().get(kLease, {"kube-node-lease", "n"}).error().code(), Code::not_found);
  writer.dry_run = false;
  writer.user = nullptr;
  EXPECT_TRUE(fixture.registry().update(kLease, {"kube-node-lease", "n"}, "", lease, writer)) << "the daemon may";
  writer.user = &jane;
  EXPECT_TRUE(fixture.registry().patch(kLease, {"kube-node-lease", "n"}, "", PatchType::apply, lease, false, writer))
      << "it is there";
  fixture.registry().set_guard(nullptr);
}

TEST_F(RegistryTest, makes_events_and_leases_by_update) {
  json::value lease =
      RegistryFixture::parse(R"({"metadata":{"name":"n","namespace":"kube-node-lease"},"spec":{"holderIdentity":"n"}})");
  EXPECT_TRUE(fixture.try_update(kLease, lease));
  EXPECT_FALSE(fixture.try_update(kConfigMap, RegistryFixture::parse(map("absent"))));
  coracle::make(lease, "metadata.uid") = "of-one-that-is-gone";
  coracle::make(lease, "metadata.name") = "absent";
  auto refused = fixture.try_update(kLease, lease);
  EXPECT_EQ(refused.error().code(), Code::conflict);
  EXPECT_NE(refused.error().text().find("UID in precondition: of-one-that-is-gone, UID in object meta: "), std::string::npos);
  EXPECT_FALSE(fixture.registry().get(kLease, {"kube-node-lease", "absent"}));
}

TEST_F(RegistryTest, says_that_a_name_is_taken_by_one_that_goes) {
  const std::string held = R"({"metadata":{"name":"m","namespace":"default","finalizers":["a/x"]}})";
  fixture.make(kConfigMap, held);
  EXPECT_EQ(fixture.try_make(kConfigMap, held).error().text(), "configmaps \"m\" already exists");
  EXPECT_FALSE(MUST(fixture.registry().remove(kConfigMap, {"default", "m"}, {}, {})).gone);
  Writer dry;
  dry.dry_run = true;
  for (const Writer& writer : {Writer(), dry}) {
    Error error = fixture.try_make(kConfigMap, held, writer).error();
    EXPECT_EQ(error.code(), Code::already_exists);
    EXPECT_EQ(error.text(), "object is being deleted: configmaps \"m\" already exists");
    EXPECT_EQ(error.details()->name, "m");
  }
}

// Stored by a version with looser rules.
TEST_F(RegistryTest, what_was_stored_when_the_rules_were_looser_is_scaled_labelled_and_deleted) {
  ObjectPtr made = fixture.make(kDeployment, kDeploymentText);
  json::value old = made->json();
  coracle::make(old, "metadata.finalizers") = json::array{"x/y"};
  coracle::make(old, "spec.template.spec.containers").get_array()[0].get_object()["env"] = json::array{{{"name", "A=B"}}};
  MUST(fixture.engine->write({&kDeployment, made->key(), old, std::nullopt}, engine::Durability::durable));
  const Key key{"default", "d"};
  auto text_of = [](const Result<ObjectPtr>& written) { return written ? "written" : written.error().text(); };
  EXPECT_EQ(text_of(fixture.try_merge(kDeployment, key, R"({"spec":{"replicas":7}})", "scale")), "written");
  EXPECT_EQ(get_int(MUST(fixture.registry().get(kDeployment, key))->json(), "spec.replicas"), 7);
  EXPECT_EQ(text_of(fixture.try_merge(kDeployment, key, R"({"metadata":{"labels":{"a":"b"}}})")), "written");
  EXPECT_EQ(text_of(fixture.try_merge(kDeployment, key, R"({"status":{"replicas":1}})", "status")), "written");
  auto refused = fixture.try_merge(kDeployment, key, R"({"spec":{"template":{"metadata":{"labels":{"a b":"c"}}}}})");
  EXPECT_NE(text_of(refused).find("Invalid value: \"a b\""), std::string::npos) << text_of(refused);
  EXPECT_EQ(text_of(refused).find("A=B"), std::string::npos) << text_of(refused);
  EXPECT_FALSE(MUST(fixture.registry().remove(kDeployment, key, {}, {})).gone);
  EXPECT_EQ(text_of(fixture.try_merge(kDeployment, key, R"({"metadata":{"finalizers":null}})")), "written");
  EXPECT_FALSE(fixture.registry().get(kDeployment, key));
}

// ---- deletion ----

TEST_F(RegistryTest, deletes_when_the_last_finalizer_goes) {
  fixture.make(kConfigMap, R"({"metadata":{"name":"m","namespace":"default","finalizers":["a/x","a/y"]}})");
  Key key{"default", "m"};
  EXPECT_FALSE(MUST(fixture.registry().remove(kConfigMap, key, {}, {})).gone);
  auto more = fixture.try_merge(kConfigMap, key, R"({"metadata":{"finalizers":["a/x","a/y","a/z"]}})");
  EXPECT_EQ(more.error().code(), Code::invalid);
  EXPECT_NE(more.error().text().find("no new finalizers can be added if the object is being deleted, found new finalizers "
                                     "[]string{\"a/z\"}"),
            std::string::npos)
      << more.error().text();
  EXPECT_TRUE(fixture.try_merge(kConfigMap, key, R"({"metadata":{"finalizers":["a/y"]}})"));
  EXPECT_TRUE(fixture.registry().get(kConfigMap, key));
  EXPECT_TRUE(fixture.try_merge(kConfigMap, key, R"({"metadata":{"finalizers":null}})"));
  EXPECT_EQ(fixture.registry().get(kConfigMap, key).error().code(), Code::not_found);
}

TEST_F(RegistryTest, a_namespace_waits_until_it_is_empty) {
  fixture.make(kNamespace, R"({"metadata":{"name":"x"}})");
  EXPECT_FALSE(MUST(fixture.registry().remove(kNamespace, {"", "x"}, {}, {})).gone);
  ObjectPtr marked = MUST(fixture.registry().get(kNamespace, {"", "x"}));
  EXPECT_EQ(get_string(marked->json(), "status.phase"), "Terminating");
  auto refused = fixture.try_make(kConfigMap, R"({"metadata":{"name":"m","namespace":"x"}})");
  EXPECT_EQ(refused.error().text(),
            "configmaps \"m\" is forbidden: unable to create new content in namespace x because it is being terminated");
  EXPECT_EQ(refused.error().details()->causes[0].reason, "NamespaceTerminating");
  EXPECT_TRUE(fixture.try_update(kNamespace, RegistryFixture::with(*marked, "spec.finalizers", json::array())))
      << "ignored: only finalize may";
  EXPECT_TRUE(fixture.registry().get(kNamespace, {"", "x"}));
  marked = MUST(fixture.registry().get(kNamespace, {"", "x"}));
  EXPECT_TRUE(fixture.try_update(kNamespace, RegistryFixture::with(*marked, "spec.finalizers", json::array()), "finalize"));
  EXPECT_FALSE(fixture.registry().get(kNamespace, {"", "x"}));
}

TEST_F(RegistryTest, deletes_collections_by_selector) {
  for (const char* name : {"a", "b"}) fixture.make(kConfigMap, map(name));
  ListRequest which;
  which.options.ns = "default";
  which.options.field_selector = "metadata.name=a";
  EXPECT_EQ(MUST(fixture.registry().remove_all(kConfigMap, which, {}, {})).items.size(), 1u);
  EXPECT_FALSE(fixture.registry().get(kConfigMap, {"default", "a"}));
  EXPECT_TRUE(fixture.registry().get(kConfigMap, {"default", "b"}));
}

// ---- pods ----

TEST_F(RegistryTest, admits_pods_with_account_token_priority_and_tolerations) {
  ObjectPtr made = fixture.make(kPod, pod("p"));
  const json::value& body = made->json();
  EXPECT_EQ(get_string(body, "spec.serviceAccountName"), "default");
  EXPECT_EQ(get_int(body, "spec.priority", -1), 0);
  EXPECT_EQ(get_string(body, "status.phase"), "Pending");
  EXPECT_EQ(get_string(body, "status.qosClass"), "BestEffort");
  EXPECT_EQ(get_array(body, "spec.tolerations").size(), 2u);
  const json::value& mount = get_array(get_array(body, "spec.containers")[0], "volumeMounts")[0];
  EXPECT_EQ(get_string(mount, "mountPath"), "/var/run/secrets/kubernetes.io/serviceaccount");
  EXPECT_EQ(get_string(get_array(body, "spec.volumes")[0], "name"), get_string(mount, "name"));
  EXPECT_EQ(get_array(MUST(fixture.try_make(kPod, pod("q", R"(,"automountServiceAccountToken":false)")))->json(), "spec.volumes")
                .size(),
            0u);
  auto unknown = fixture.try_make(kPod, pod("r", R"(,"serviceAccountName":"nobody")"));
  EXPECT_EQ(unknown.error().text(),
            "pods \"r\" is forbidden: error looking up service account default/nobody: serviceaccount \"nobody\" not found");
  EXPECT_EQ(fixture.try_make(kPod, pod("s", R"(,"priorityClassName":"high")")).error().code(), Code::forbidden);
  EXPECT_EQ(
      get_int(MUST(fixture.try_make(kPod, pod("t", R"(,"priorityClassName":"system-node-critical")")))->json(), "spec.priority"),
      2000001000);
}

TEST_F(RegistryTest, waits_for_a_new_namespaces_account) {
  bool is_made = false;
  for (int turn = 0; turn < 5 && !is_made; ++turn) {  // on a busy machine, the controller may be late
    const std::string ns = "x" + std::to_string(turn);
    fixture.make(kNamespace, R"({"metadata":{"name":")" + ns + "\"}}");
    std::jthread controller([&, who_asks = ::gettid()] {
      EXPECT_TRUE(come_to_rest({who_asks})) << "whoever makes the pod waits";
      fixture.make(kServiceAccount, R"({"metadata":{"name":"default","namespace":")" + ns + "\"}}");
    });
    is_made = fixture
                  .try_make(kPod, R"({"metadata":{"name":"p","namespace":")" + ns +
                                      R"("},"spec":{"containers":[{"name":"c","image":"i"}]}})")
                  .ok();
  }
  EXPECT_TRUE(is_made);
}

TEST_F(RegistryTest, classes_pods_by_what_they_ask_for) {
  auto class_of = [&](const char* name, const std::string& resources) {
    return std::string(
        get_string(fixture
                       .make(kPod, R"({"metadata":{"name":")" + std::string(name) +
                                       R"(","namespace":"default"},"spec":{"containers":[{"name":"c","image":"i","resources":)" +
                                       resources + "}]}}")
                       ->json(),
                   "status.qosClass"));
  };
  EXPECT_EQ(class_of("a", R"({"limits":{"cpu":"1","memory":"1Gi"}})"), "Guaranteed");
  EXPECT_EQ(class_of("b", R"({"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"1000m","memory":"1024Mi"}})"), "Guaranteed");
  EXPECT_EQ(class_of("c", R"({"limits":{"cpu":"1"}})"), "Burstable");
  EXPECT_EQ(class_of("d", R"({"requests":{"memory":"1Mi"}})"), "Burstable");
  EXPECT_EQ(class_of("e", "{}"), "BestEffort");
}

TEST_F(RegistryTest, binds_a_pod_once) {
  fixture.make(kPod, pod("p"));
  json::value binding = RegistryFixture::parse(R"({"target":{"kind":"Node","name":"n"}})");
  EXPECT_TRUE(fixture.registry().create_subresource(kPod, {"default", "p"}, "binding", binding, {}));
  ObjectPtr bound = MUST(fixture.registry().get(kPod, {"default", "p"}));
  EXPECT_EQ(get_string(bound->json(), "spec.nodeName"), "n");
  EXPECT_EQ(get_string(get_array(bound->json(), "status.conditions")[0], "type"), "PodScheduled");
  EXPECT_EQ(fixture.registry().create_subresource(kPod, {"default", "p"}, "binding", binding, {}).error().code(), Code::conflict);
  EXPECT_EQ(
      fixture.registry().create_subresource(kPod, {"default", "p"}, "binding", RegistryFixture::parse("{}"), {}).error().code(),
      Code::invalid);
  EXPECT_EQ(fixture.registry().create_subresource(kPod, {"default", "absent"}, "binding", binding, {}).error().code(),
            Code::not_found);
}

TEST_F(RegistryTest, what_a_subresource_is_written_with_is_read_as_its_kind) {
  fixture.make(kPod, pod("p"));
  Writer strict;
  strict.validation = FieldValidation::strict;
  struct Row {
    const Kind& kind;
    const char *key, *subresource, *body;
    Code want;
  };
  for (const Row& row : {
           Row{kPod, "p", "binding", R"({"metadata":{"name":"other"},"target":{"name":"n"}})", Code::bad_request},
           Row{kPod, "p", "binding", R"({"metadata":{"name":"p","namespace":"x"},"target":{"name":"n"}})", Code::bad_request},
           Row{kPod, "p", "binding", R"({"metadata":{"name":"p","resourceVersion":"1"},"target":{"name":"n"}})", Code::conflict},
           Row{kPod, "p", "binding", R"({"kind":"Pod","target":{"name":"n"}})", Code::bad_request},
           Row{kPod, "p", "binding", R"({"apiVersion":"v2","target":{"name":"n"}})", Code::bad_request},
           Row{kPod, "p", "binding", R"({"target":{"name":7}})", Code::bad_request},
           Row{kPod, "p", "binding", R"({"target":{"name":"n"},"colour":"red"})", Code::bad_request},
           Row{kPod, "p", "binding", "[]", Code::bad_request},
           Row{kPod, "p", "eviction", R"({"metadata":{"name":"other"}})", Code::bad_request},
           Row{kPod, "p", "eviction", R"({"kind":"Pod"})", Code::bad_request},
           Row{kPod, "p", "eviction", R"({"deleteOptions":{"gracePeriodSeconds":"x"}})", Code::bad_request},
           Row{kPod, "p", "eviction", R"({"deleteOptions":{"preconditions":{"uid":7}}})", Code::bad_request},
           Row{kPod, "p", "eviction", R"({"deleteOptions":{"preconditions":{"resourceVersion":"0"}}})", Code::conflict},
           Row{kPod, "p", "eviction", R"({"deleteOptions":{"preconditions":{"uid":""}}})", Code::conflict},
       }) {
    auto answer = fixture.registry().create_subresource(row.kind, {"default", row.key}, row.subresource,
                                                        RegistryFixture::parse(row.body), strict);
    ASSERT_FALSE(answer) << row.subresource << row.body;
    EXPECT_EQ(answer.error().code(), row.want) << row.subresource << row.body << answer.error().text();
  }
  ObjectPtr still = MUST(fixture.registry().get(kPod, {"default", "p"}));
  EXPECT_FALSE(still->deleting());
  EXPECT_EQ(get_string(still->json(), "spec.nodeName"), "");
  EXPECT_TRUE(fixture.registry().create_subresource(
      kPod, {"default", "p"}, "eviction", RegistryFixture::parse(R"({"apiVersion":"policy/v1beta1","kind":"Eviction"})"), strict))
      << "as older clients send it";
}

TEST_F(RegistryTest, evicts_gracefully) {
  fixture.make(kPod, pod("p", R"(,"nodeName":"n")"));
  EXPECT_TRUE(fixture.registry().create_subresource(kPod, {"default", "p"}, "eviction",
                                                    RegistryFixture::parse(R"({"metadata":{"name":"p"}})"), {}));
  ObjectPtr leaving = MUST(fixture.registry().get(kPod, {"default", "p"}));
  EXPECT_TRUE(leaving->deleting());
  EXPECT_EQ(get_int(leaving->json(), "metadata.deletionGracePeriodSeconds"), 30);
  EXPECT_EQ(get_int(leaving->json(), "metadata.generation"), 2);
}

// ---- services ----

TEST_F(RegistryTest, gives_services_addresses_and_ports) {
  ObjectPtr one = fixture.make(kService, service("one")),
            two = fixture.make(kService,
                               service("two", R"("type":"NodePort","ports":[{"port":80,"name":"a"},{"port":81,"name":"b"}])"));
  std::string address(get_string(one->json(), "spec.clusterIP"));
  EXPECT_FALSE(address.empty());
  EXPECT_NE(address, get_string(two->json(), "spec.clusterIP"));
  EXPECT_EQ(to_text(*find(one->json(), "spec.clusterIPs")), "[\"" + address + "\"]");
  EXPECT_EQ(get_string(one->json(), "spec.ipFamilyPolicy"), "SingleStack");
  int64_t port = get_int(get_array(two->json(), "spec.ports")[0], "nodePort");
  EXPECT_GE(port, 30000);
  EXPECT_NE(port, get_int(get_array(two->json(), "spec.ports")[1], "nodePort"));
}

// Manifests name ports at the lower end: whoever names none must not have them. Source: KEP-3668.
TEST_F(RegistryTest, leaves_the_lower_node_ports_to_those_who_name_them) {
  auto ports_of = [](const ObjectPtr& made) {
    std::vector<int64_t> ports;
    for (const json::value& port : get_array(made->json(), "spec.ports")) ports.push_back(get_int(port, "nodePort"));
    return ports;
  };
  ObjectPtr one = fixture.make(
      kService, service("one", R"("type":"LoadBalancer","externalTrafficPolicy":"Local","ports":[{"port":80,"name":"a"},
    {"port":443,"name":"b","nodePort":30086},{"port":53,"name":"t"},{"port":53,"name":"u","protocol":"UDP"}])"));
  const std::vector<int64_t> of_one = ports_of(one);
  EXPECT_EQ(of_one[1], 30086);
  EXPECT_EQ(of_one[2], of_one[3]) << "TCP and UDP of one port share a node port";
  const std::set<int64_t> different{of_one[0], of_one[1], of_one[2], get_int(one->json(), "spec.healthCheckNodePort")};
  EXPECT_EQ(different.size(), 4u);
  EXPECT_EQ(*different.begin(), 30086) << "the others are of the upper part";
  ObjectPtr two = fixture.make(kService, service("two", R"("type":"NodePort","ports":[{"port":80,"name":"a","nodePort":30001},
    {"port":53,"name":"t"},{"port":53,"name":"u","protocol":"UDP","nodePort":30053}])"));
  EXPECT_EQ(ports_of(two), (std::vector<int64_t>{30001, 30053, 30053}));
  ObjectPtr balanced = fixture.make(kService, service("three", R"("type":"LoadBalancer","allocateLoadBalancerNodePorts":false,
    "ports":[{"port":80,"name":"a"},{"port":81,"name":"b","nodePort":30081}])"));
  EXPECT_EQ(ports_of(balanced), (std::vector<int64_t>{0, 30081})) << "those that name one get it";
  kinds::Ranges small;
  small.node_port_min = 30000, small.node_port_max = 30031;
  RegistryFixture crowded(small);
  std::set<int64_t> given;
  auto give_one = [&] {
    std::string name = "s" + std::to_string(given.size());
    given.insert(ports_of(crowded.make(kService, service(name, R"("type":"NodePort","ports":[{"port":80}])")))[0]);
  };
  for (int i = 0; i < 16; i++) give_one();
  EXPECT_EQ(given.size(), 16u);
  EXPECT_EQ(*given.begin(), 30016) << "the upper part first";
  for (int i = 0; i < 16; i++) give_one();
  EXPECT_EQ(given.size(), 32u) << "the lower end is used once the rest is";
  EXPECT_EQ(crowded.try_make(kService, service("full", R"("type":"NodePort","ports":[{"port":80}])")).error().text(),
            "Internal error occurred: failed to allocate a nodePort: range is full");
  EXPECT_FALSE(crowded.try_make(kService, service("udp", R"("type":"NodePort","ports":[{"port":53,"protocol":"UDP"}])")))
      << "a node port belongs to one Service, with all its protocols";
  MUST(crowded.registry().remove(kService, {"default", "s7"}, {}, {}));
  ObjectPtr dns = crowded.make(kService, service("dns", R"("type":"NodePort","ports":[{"port":53,"name":"t"},
    {"port":53,"protocol":"UDP","name":"u"}])"));
  EXPECT_EQ(ports_of(dns)[0], ports_of(dns)[1]);
}

// A client may remember the address of a Service that is gone: the next Service must not answer there. Source: KEP-3070.
TEST_F(RegistryTest, gives_addresses_and_node_ports_at_random) {
  constexpr int kTurns = 12;
  std::set<std::string> addresses;
  std::set<int64_t> ports;
  for (int i = 0; i < kTurns; i++) {
    ObjectPtr made = fixture.make(kService, service("s", R"("type":"NodePort","ports":[{"port":80}])"));
    std::string address(get_string(made->json(), "spec.clusterIP"));
    EXPECT_GE(*kinds::parse_address(address), *kinds::parse_address("10.96.1.0")) << "the lower part is for those who name one";
    addresses.insert(address);
    ports.insert(get_int(get_array(made->json(), "spec.ports")[0], "nodePort"));
    MUST(fixture.registry().remove(kService, {"default", "s"}, {}, {}));
  }
  EXPECT_GT(addresses.size(), 1u);
  EXPECT_GT(ports.size(), 1u);
}

TEST_F(RegistryTest, refuses_addresses_and_ports_that_are_taken_or_out_of_range) {
  fixture.make(kService, service("one", R"("clusterIP":"10.96.0.50","type":"NodePort","ports":[{"port":80,"nodePort":30123}])"));
  for (const char* spec :
       {R"("clusterIP":"10.96.0.50","ports":[{"port":80}])", R"("clusterIP":"10.44.0.1","ports":[{"port":80}])",
        R"("type":"NodePort","ports":[{"port":80,"nodePort":30123}])", R"("type":"NodePort","ports":[{"port":80,"nodePort":80}])",
        R"("clusterIP":"10.96.255.255","ports":[{"port":80}])"})
    EXPECT_EQ(fixture.try_make(kService, service("two", spec)).error().code(), Code::invalid) << spec;
  const std::string taken = R"("type":"NodePort","ports":[{"port":80,"protocol":"UDP","nodePort":30123}])";
  const char* says = "spec.ports[0].nodePort: Invalid value: 30123: provided port is already allocated";
  EXPECT_NE(fixture.try_make(kService, service("udp", taken)).error().text().find(says), std::string::npos)
      << "a node port belongs to one Service, with all its protocols";
  const std::string balanced = R"("type":"LoadBalancer","allocateLoadBalancerNodePorts":false,"ports":[{"port":80,"nodePort":)";
  for (const char* port : {"30123", "80"})
    EXPECT_FALSE(fixture.try_make(kService, service("lb", balanced + port + "}]"))) << port;
  MUST(fixture.try_make(kService, service("both", R"("type":"NodePort","ports":[{"name":"t","port":53,"nodePort":30053},
    {"name":"u","port":5353,"protocol":"UDP","nodePort":30053}])")));
}

// The addresses and ports of existing Services stay when a setting moves the ranges: they can be labelled as before.
TEST_F(RegistryTest, a_service_keeps_what_a_changed_range_does_not_have) {
  fixture.make(kService, service("s", R"("clusterIP":"10.96.9.9","type":"LoadBalancer","externalTrafficPolicy":"Local",
    "healthCheckNodePort":30124,"ports":[{"port":80,"nodePort":30123}])"));
  fixture.ranges.service_cidr = "10.97.0.0/16", fixture.ranges.node_port_min = 31000;
  fixture.reopen();
  MUST(fixture.try_merge(kService, {"default", "s"}, R"({"metadata":{"labels":{"a":"b"}}})"));
  EXPECT_FALSE(fixture.try_merge(kService, {"default", "s"}, R"({"spec":{"ports":[{"port":80,"nodePort":30125}]}})"));
  EXPECT_FALSE(fixture.try_make(kService, service("t", R"("clusterIP":"10.96.9.10","ports":[{"port":80}])")));
}

// Whoever replaces a Service without naming its node ports means the ports of the same name, whatever their numbers are now.
TEST_F(RegistryTest, a_service_keeps_the_node_ports_of_its_ports) {
  struct Row {
    const char *before, *after;
    std::vector<int64_t> want;  // 0: another one
  };
  for (const Row& row : {
           Row{R"({"port":80,"nodePort":30080})", R"({"port":8080})", {30080}},
           Row{R"({"name":"a","port":80,"nodePort":30080},{"name":"b","port":81,"nodePort":30081})",
               R"({"name":"b","port":80},{"name":"a","port":81})",
               {30081, 30080}},
           Row{R"({"name":"a","port":80,"nodePort":30080},{"name":"b","port":81,"nodePort":30081})",
               R"({"name":"a","port":81},{"name":"c","port":80})",
               {30080, 0}},
           Row{R"({"name":"a","port":80,"nodePort":30080})", R"({"name":"b","port":80})", {30080}},
           Row{R"({"name":"a","port":80,"nodePort":30080})",
               R"({"name":"a","port":80},{"name":"b","port":81,"nodePort":30080})",
               {0, 30080}},
           Row{R"({"name":"t","port":53,"nodePort":30053},{"name":"u","port":53,"protocol":"UDP","nodePort":30053})",
               R"({"name":"t","port":5353},{"name":"u","port":5353,"protocol":"UDP"})",
               {30053, 30053}},
       }) {
    auto spec = [](const char* ports) { return R"("type":"NodePort","ports":[)" + std::string(ports) + "]"; };
    fixture.make(kService, service("s", spec(row.before)));
    ObjectPtr now = MUST(fixture.try_update(kService, RegistryFixture::parse(service("s", spec(row.after)))));
    const json::array& ports = get_array(now->json(), "spec.ports");
    ASSERT_EQ(ports.size(), row.want.size()) << row.after;
    for (size_t i = 0; i < ports.size(); i++) {
      int64_t got = get_int(ports[i], "nodePort");
      if (row.want[i]) EXPECT_EQ(got, row.want[i]) << row.after;
      else EXPECT_TRUE(got > 30081) << row.after << ": " << got;
    }
    MUST(fixture.registry().remove(kService, {"default", "s"}, {}, {}));
  }
}

TEST_F(RegistryTest, no_port_of_a_service_gets_its_health_check_port) {
  kinds::Ranges small;
  small.node_port_min = 30000, small.node_port_max = 30002;
  RegistryFixture crowded(small);
  for (int i = 0; i < 8; i++) {
    ObjectPtr made = MUST(crowded.try_make(kService, service("s", R"("type":"LoadBalancer","externalTrafficPolicy":"Local",
      "healthCheckNodePort":30001,"ports":[{"name":"a","port":80}])")));
    EXPECT_NE(get_int(get_array(made->json(), "spec.ports")[0], "nodePort"), 30001);
    MUST(crowded.try_merge(kService, {"default", "s"}, R"({"spec":{"ports":[{"name":"a","port":80},{"name":"b","port":81}]}})"));
    MUST(crowded.registry().remove(kService, {"default", "s"}, {}, {}));
  }
}

TEST_F(RegistryTest, keeps_what_a_service_was_given_and_takes_it_back) {
  ObjectPtr made = fixture.make(kService, service("s", R"("type":"NodePort","ports":[{"port":80}])"));
  std::string address(get_string(made->json(), "spec.clusterIP"));
  int64_t port = get_int(get_array(made->json(), "spec.ports")[0], "nodePort");
  ObjectPtr again = MUST(fixture.try_update(
      kService, RegistryFixture::parse(service("s", R"("type":"NodePort","ports":[{"port":80}],"selector":{"a":"b"})"))));
  EXPECT_EQ(get_string(again->json(), "spec.clusterIP"), address);
  EXPECT_EQ(get_int(get_array(again->json(), "spec.ports")[0], "nodePort"), port);
  ObjectPtr inside = MUST(fixture.try_merge(kService, {"default", "s"}, R"({"spec":{"type":"ClusterIP"}})"));
  EXPECT_EQ(get_int(get_array(inside->json(), "spec.ports")[0], "nodePort"), 0);
  EXPECT_EQ(get_string(inside->json(), "spec.clusterIP"), address);
  MUST(fixture.registry().remove(kService, {"default", "s"}, {}, {}));
  EXPECT_TRUE(fixture.try_make(kService, service("t", "\"clusterIP\":\"" + address + R"(","ports":[{"port":80}])")))
      << "an address that was given back";
}

// More writes than the index's watch can queue, with no read in between.
TEST_F(RegistryTest, knows_what_is_taken_after_services_changed_by_the_thousand) {
  ObjectPtr one = fixture.make(kService, service("one", R"("type":"NodePort","ports":[{"port":80}])"));
  for (int i = 0; i < 1500; ++i)
    MUST(fixture.try_merge(kService, {"default", "one"},
                           R"({"status":{"conditions":[{"type":"a","status":"True","reason":"r)" + std::to_string(i) +
                               R"(","message":"","lastTransitionTime":"2024-01-01T00:00:00Z"}]}})",
                           "status"));
  std::string address(get_string(one->json(), "spec.clusterIP"));
  EXPECT_FALSE(fixture.try_make(kService, service("two", "\"clusterIP\":\"" + address + R"(","ports":[{"port":80}])")));
  MUST(fixture.registry().remove(kService, {"default", "one"}, {}, {}));
  EXPECT_TRUE(fixture.try_make(kService, service("two", "\"clusterIP\":\"" + address + R"(","ports":[{"port":80}])")));
}

TEST_F(RegistryTest, leaves_headless_and_external_services_alone) {
  ObjectPtr headless = fixture.make(kService, service("h", R"("clusterIP":"None","ports":[{"port":80}])"));
  EXPECT_EQ(to_text(*find(headless->json(), "spec.clusterIPs")), R"(["None"])");
  ObjectPtr external = fixture.make(kService, service("e", R"("type":"ExternalName","externalName":"example.com")"));
  EXPECT_EQ(find(external->json(), "spec.clusterIP"), nullptr);
}

// Only one IP family is served: a request for the other one, or for both, gets an error instead of a wrong field.
TEST_F(RegistryTest, refuses_services_of_families_that_are_not_served) {
  struct Row {
    const char *spec, *says;
  };
  for (const Row& row : {
           Row{R"("ipFamilies":["IPv6"])", "spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster"},
           Row{R"("ipFamilyPolicy":"RequireDualStack")",
               "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is "
               "not configured for dual-stack services"},
           Row{R"("ipFamilyPolicy":"PreferDualStack","ipFamilies":["IPv4","IPv6"])", "spec.ipFamilies[1]: Invalid value: "},
           Row{R"("ipFamilies":["IPv4","IPv6"])", "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": "},
           Row{R"("ipFamilyPolicy":"SingleStack","ipFamilies":["IPv4","IPv6"])", "when multiple ipFamilies are specified"},
           Row{R"("clusterIP":"fd00::1","clusterIPs":["fd00::1"])", "IPv6 is not configured on this cluster"},
           Row{R"("clusterIP":"None","selector":{"a":"b"},"ipFamilies":["IPv6"])", "spec.ipFamilies[0]: Invalid value: \"IPv6\""},
           Row{R"("ipFamilies":["IPv6","IPv6","IPv6"])",
               "spec.ipFamilies: Invalid value: [\"IPv6\",\"IPv6\",\"IPv6\"]: may only "
               "hold up to 2 values"},
           Row{R"("type":"ExternalName","externalName":"a.b","clusterIP":"10.96.0.9")",
               "may not be set for ExternalName services"},
       }) {
    auto made = fixture.try_make(kService, service("s", std::string(R"("ports":[{"port":80}],)") + row.spec));
    ASSERT_FALSE(made) << row.spec;
    EXPECT_EQ(made.error().code(), Code::invalid) << row.spec;
    EXPECT_NE(made.error().text().find(row.says), std::string::npos) << row.spec << ": " << made.error().text();
  }
  ObjectPtr prefers = fixture.make(kService, service("p", R"("ports":[{"port":80}],"ipFamilyPolicy":"PreferDualStack")"));
  EXPECT_EQ(to_text(*find(prefers->json(), "spec.ipFamilies")), R"(["IPv4"])");
  EXPECT_EQ(get_string(prefers->json(), "spec.ipFamilyPolicy"), "PreferDualStack");
  ObjectPtr theirs = fixture.make(kService, service("t", R"("clusterIP":"None","ipFamilyPolicy":"RequireDualStack")"));
  EXPECT_EQ(to_text(*find(theirs->json(), "spec.ipFamilies")), R"(["IPv4","IPv6"])") << "its endpoints are somebody else's";
  ObjectPtr silent = fixture.make(kService, service("u", R"("clusterIP":"None")"));
  EXPECT_EQ(get_string(silent->json(), "spec.ipFamilyPolicy"), "RequireDualStack") << "as in Kubernetes";
  EXPECT_EQ(to_text(*find(silent->json(), "spec.ipFamilies")), R"(["IPv4","IPv6"])");
  ObjectPtr replaced =
      MUST(fixture.try_update(kService, RegistryFixture::parse(service("p", R"("ports":[{"port":80}],"selector":{"a":"b"})"))));
  EXPECT_EQ(get_string(replaced->json(), "spec.ipFamilyPolicy"), "PreferDualStack") << "an update that names none keeps it";
}

TEST_F(RegistryTest, a_service_gives_its_address_back_when_it_becomes_a_name) {
  fixture.make(kService, service("s", R"("ports":[{"port":80}])"));
  ObjectPtr name =
      MUST(fixture.try_merge(kService, {"default", "s"}, R"({"spec":{"type":"ExternalName","externalName":"example.com"}})"));
  for (const char* field : {"spec.clusterIP", "spec.clusterIPs", "spec.ipFamilies", "spec.ipFamilyPolicy"})
    EXPECT_EQ(find(name->json(), field), nullptr) << field;
}

TEST_F(RegistryTest, gives_no_address_twice_however_many_ask) {
  std::vector<std::jthread> askers;
  std::atomic<int> failed = 0;
  for (int a = 0; a < 4; a++)
    askers.emplace_back([&, a] {
      for (int i = 0; i < 8; i++)
        if (!fixture.try_make(kService, service("s" + std::to_string(a) + "-" + std::to_string(i),
                                                R"("type":"NodePort","ports":[{"port":80}])")))
          failed++;
    });
  askers.clear();
  EXPECT_EQ(failed, 0);
  std::set<std::string> addresses;
  std::set<int64_t> ports;
  auto all = MUST(fixture.registry().list(kService, {}));
  for (const ObjectPtr& service : all.items) {
    addresses.emplace(get_string(service->json(), "spec.clusterIP"));
    ports.insert(get_int(get_array(service->json(), "spec.ports")[0], "nodePort"));
  }
  EXPECT_EQ(addresses.size(), 33u);
  EXPECT_EQ(ports.size(), 33u) << "32 and the 0 of the Service kubernetes";
}

TEST_F(RegistryTest, says_when_a_range_is_full) {
  kinds::Ranges small;
  small.service_cidr = "10.96.0.0/28", small.node_port_min = 30000, small.node_port_max = 30001;
  RegistryFixture crowded(small);
  int made = 0;
  while (made < 100 && crowded.try_make(kService, service("s" + std::to_string(made)))) made++;
  EXPECT_EQ(made, 13) << "16 less network, broadcast and the API's own";
  EXPECT_NE(crowded.try_make(kService, service("x")).error().text().find("range is full"), std::string::npos);
}

// As when one namespace has filled etcd: users get an error but may delete, and the daemon's own writes still work.
TEST(FullStore, refuses_users_and_lets_the_machine_work) {
  RegistryFixture fixture(kinds::Ranges(), 256 << 10);
  const std::string large(60'000, 'x');
  auto config_map = [&](int i) {
    return R"({"metadata":{"name":"c)" + std::to_string(i) + R"(","namespace":"default","finalizers":["a.b/c"]},"data":{"k":")" +
           large + "\"}}";
  };
  User jane{"jane", "", {"system:authenticated"}, {}};
  Writer writer;
  writer.user = &jane;
  int made = 0;
  while (made < 10 && fixture.try_make(kConfigMap, config_map(made), writer)) made++;
  ASSERT_LT(made, 10);
  ASSERT_GT(made, 0);
  auto refused = fixture.try_make(kConfigMap, config_map(made), writer);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text().find("etcdserver: mvcc: database space exceeded"), 0u) << refused.error().text();
  EXPECT_EQ(refused.error().code(), Code::internal);

  Writer internal = internal_writer();
  std::string node = R"({"metadata":{"name":"n","annotations":{"k":")" + large + "\"}}}";
  EXPECT_TRUE(fixture.try_make(kNode, node, internal)) << "the machine's own";
  User kubelet{"system:node:n", "", {"system:nodes"}, {}};
  Writer by_node;
  by_node.user = &kubelet;
  json::value status = RegistryFixture::parse(R"({"status":{"conditions":[{"type":"Ready","status":"True"}]}})");
  EXPECT_TRUE(fixture.registry().patch(kNode, {"", "n"}, "status", PatchType::merge, status, false, by_node));
  std::string pod =
      R"({"metadata":{"name":"p","namespace":"default"},"spec":{"containers":[{"name":"c","image":")" + large + "\"}]}}";
  EXPECT_FALSE(fixture.try_make(kPod, pod, internal)) << "a controller makes them of what a user has written";

  EXPECT_TRUE(fixture.registry().remove(kConfigMap, {"default", "c0"}, {}, writer)) << "it is marked, which takes space";
  json::value none = RegistryFixture::parse(R"({"metadata":{"finalizers":null}})");
  EXPECT_TRUE(fixture.registry().patch(kConfigMap, {"default", "c0"}, {}, PatchType::merge, none, false, writer));
  EXPECT_FALSE(fixture.registry().get(kConfigMap, {"default", "c0"}));
}

TEST_F(RegistryTest, what_a_component_would_write_again_does_not_wait_for_the_disk) {
  fixture.options.soft_delay = std::chrono::hours(1);
  fixture.reopen();
  fixture.make(kConfigMap, R"({"metadata":{"name":"c","namespace":"default"}})");
  const Key key{"default", "c"};
  auto value = [](const std::string& text) { return RegistryFixture::parse(R"({"data":{"k":")" + text + "\"}}"); };
  auto written = fixture.engine->last_written();
  ObjectPtr second = MUST(fixture.client().patch(kConfigMap, key, PatchType::merge, value("2"), {.is_repeated = true}));
  json::value body = second->json();
  make(body, "data.k") = "3";
  MUST(fixture.client().update(kConfigMap, body, {.is_repeated = true}));
  EXPECT_EQ(get_string(MUST(fixture.client().get(kConfigMap, key))->json(), "data.k"), "3");
  EXPECT_EQ(fixture.engine->last_written(), written);
  Writer user;
  user.is_repeated = true;
  MUST(fixture.registry().patch(kConfigMap, key, {}, PatchType::merge, value("4"), false, user));
  EXPECT_NE(fixture.engine->last_written(), written) << "of nobody else";
  written = fixture.engine->last_written();
  MUST(fixture.client().patch(kConfigMap, key, PatchType::merge, value("5"), {}));
  EXPECT_NE(fixture.engine->last_written(), written);
}

// It would be lost with what the component has not put on the disk yet.
TEST_F(RegistryTest, what_a_user_confirms_is_on_the_disk) {
  fixture.options.soft_delay = fixture.options.lazy_delay = std::chrono::hours(1);
  fixture.reopen();
  const Key key{"default", "c"}, node{"", "n"};
  fixture.make(kConfigMap, R"({"metadata":{"name":"c","namespace":"default"}})");
  fixture.make(kNode, R"({"metadata":{"name":"n"}})");
  fixture.make(kEndpoints, R"({"metadata":{"name":"c","namespace":"default","finalizers":["example.com/keep"]}})");
  const json::value value = RegistryFixture::parse(R"({"data":{"k":"2"}})");
  const json::value label = RegistryFixture::parse(R"({"metadata":{"labels":{"k":"2"}}})");
  Writer user;
  auto waits = [&](auto&& write) {
    auto written = fixture.engine->last_written();
    MUST(write());
    return fixture.engine->last_written() != written;
  };
  auto patch = [&](const Kind& kind, const Key& which, const json::value& by) {
    return [&, which] { return fixture.registry().patch(kind, which, {}, PatchType::merge, by, false, user); };
  };
  for (auto [kind, which, by] : {std::tuple(&kConfigMap, key, &value), std::tuple(&kNode, node, &label)}) {
    SCOPED_TRACE(which.name);
    auto by_component = [&] { return fixture.client().patch(*kind, which, PatchType::merge, *by, {.is_repeated = true}); };
    EXPECT_FALSE(waits(by_component));
    EXPECT_FALSE(waits(by_component)) << "it changes nothing and is no user";
    EXPECT_TRUE(waits(patch(*kind, which, *by)));
    EXPECT_FALSE(waits(patch(*kind, which, *by))) << "it is there";
  }
  EXPECT_FALSE(waits([&] { return fixture.client().remove(kEndpoints, key, {}); }));
  EXPECT_TRUE(waits([&] { return fixture.registry().remove(kEndpoints, key, {}, user); })) << "its deletion has begun already";
}

TEST_F(RegistryTest, secrets_take_plain_text) {
  ObjectPtr made = fixture.make(kSecret, R"({"metadata":{"name":"s","namespace":"default"},"stringData":{"k":"v"}})");
  EXPECT_EQ(get_string(made->json(), "data.k"), "dg==");
  EXPECT_EQ(find(made->json(), "stringData"), nullptr);
  EXPECT_EQ(get_string(made->json(), "type"), "Opaque");
}

TEST_F(RegistryTest, what_is_measured_is_shown_and_stored_nowhere) {
  std::vector<std::string> asked;
  Filter filter;
  fixture.registry().set_measure(
      kPodMetrics, [&](const std::string& ns, const std::string& name, const Filter& wanted) -> Result<std::vector<ObjectPtr>> {
        asked.push_back(ns + "/" + name);
        filter = wanted;
        if (ns == "broken") return Error(Code::unavailable, "the kernel is silent");
        std::vector<ObjectPtr> out;
        for (const char* one : {"a", "b"})
          if (name.empty() || name == one)
            out.push_back(MUST(Object::make(
                kPodMetrics, RegistryFixture::parse(R"({"metadata":{"name":")" + std::string(one) +
                                                    R"(","namespace":"default","labels":{"app":")" + one + R"("}}})"))));
        return out;
      });
  Revision before = fixture.engine->revision();
  EXPECT_EQ(MUST(fixture.client().get(kPodMetrics, {"default", "b"}))->name(), "b");
  EXPECT_EQ(MUST(fixture.client().list(kPodMetrics, {})).items.size(), 2u);
  auto chosen = MUST(fixture.client().list(kPodMetrics, {.ns = "default", .label_selector = "app=b"}));
  ASSERT_EQ(chosen.items.size(), 1u);
  EXPECT_EQ(chosen.items[0]->name(), "b");
  EXPECT_EQ(asked, (std::vector<std::string>{"default/b", "/", "default/"}));
  auto pod = [](const char* name, const char* app) {
    return MUST(Object::make(kPod, RegistryFixture::parse(R"({"metadata":{"name":")" + std::string(name) +
                                                          R"(","namespace":"default","labels":{"app":")" + app + R"("}}})")));
  };
  EXPECT_TRUE(filter(*pod("a", "b")));
  EXPECT_FALSE(filter(*pod("b", "a"))) << "who measures need not measure it";
  auto named = MUST(fixture.client().list(kPodMetrics, {.only = {{"default", "a"}, {"default", "none"}}}));
  ASSERT_EQ(named.items.size(), 1u);
  EXPECT_EQ(named.items[0]->name(), "a");
  EXPECT_TRUE(filter(*pod("a", "x")));
  EXPECT_FALSE(filter(*pod("b", "x")));
  EXPECT_EQ(fixture.client().get(kPodMetrics, {"default", "none"}).error().text(), "pods.metrics.k8s.io \"none\" not found");
  EXPECT_EQ(fixture.client().list(kPodMetrics, {.ns = "broken"}).error().code(), Code::unavailable);
  EXPECT_EQ(fixture.engine->revision(), before);
  EXPECT_EQ(fixture.engine->count(kPodMetrics), 0u);
}

TEST_F(RegistryTest, a_scale_that_is_not_there_is_named_as_kubernetes_does) {
  fixture.make(kDeployment, kDeploymentText);
  EXPECT_EQ(get_int(MUST(fixture.client().read(kDeployment, {"default", "d"}, "scale", {})), "spec.replicas"), 2);
  EXPECT_EQ(fixture.client().read(kDeployment, {"default", "x"}, "scale", {}).error().text(),
            "deployments/scale.apps \"x\" not found");
}

TEST(Registry, knows_nothing_of_a_kind_that_is_not_served) {
  static constexpr Kind kBoat{"boats.example.com", "v1", "Boat", "boats"};
  const Key key{"default", "b"};
  const json::value body = RegistryFixture::parse(R"({"metadata":{"name":"b","namespace":"default"}})");
  RegistryFixture fixture;
  Registry& registry = fixture.registry();
  EXPECT_EQ(registry.get(kBoat, key).error().code(), Code::not_found);
  EXPECT_EQ(registry.list(kBoat, {}).error().code(), Code::not_found);
  EXPECT_EQ(registry.list_at_rest(kBoat, {}).error().code(), Code::not_found);
  EXPECT_EQ(registry.create(kBoat, {"default", ""}, body, {}).error().code(), Code::not_found);
  EXPECT_EQ(registry.update(kBoat, key, {}, body, {}).error().code(), Code::not_found);
  EXPECT_EQ(registry.patch(kBoat, key, {}, PatchType::merge, body, false, {}).error().code(), Code::not_found);
  EXPECT_EQ(registry.remove(kBoat, key, {}, {}).error().code(), Code::not_found);
  EXPECT_EQ(registry.create_subresource(kBoat, key, "eviction", body, {}).error().code(), Code::not_found);
  EXPECT_EQ(fixture.client().read(kBoat, key, "scale", {}).error().text(), "the server could not find the requested resource");
}

}  // namespace
}  // namespace coracle::registry
