// SPDX-License-Identifier: Apache-2.0
// Field ownership after writes through the pipeline: the client owns the fields that it sent; nobody owns what defaulting,
// admission and allocation add. So `kubectl apply` and `kubectl apply --server-side` of one manifest can follow each other
// without a conflict.
#include <gtest/gtest.h>

#include "daemon/registry/registry.h"
#include "store/schema/field_set.h"
#include "tests/daemon/registry/registry_fixture.h"

namespace coracle::registry {
namespace {

constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";
constexpr std::string_view kClientSide = "kubectl-client-side-apply";

class ManagedFields : public testing::Test {
 protected:
  static Writer as(std::string_view manager) {
    Writer writer;
    writer.field_manager = manager;
    return writer;
  }
  static Key key_of(const json::value& body) {
    return {std::string(get_string(body, "metadata.namespace")), std::string(get_string(body, "metadata.name"))};
  }
  Result<ObjectPtr> create(const Kind& kind, const json::value& body, std::string_view manager) {
    Written written = TRY(fixture.registry().create(kind, {key_of(body).ns, ""}, body, as(manager)));
    return written.object;
  }
  Result<ObjectPtr> patch(const Kind& kind, const Key& key, PatchType type, const json::value& patch, std::string_view manager,
                          bool force = false) {
    Written written = TRY(fixture.registry().patch(kind, key, "", type, patch, force, as(manager)));
    return written.object;
  }
  // The object as `kubectl apply` sends it.
  static json::value with_last_applied(const json::value& manifest) {
    json::value body = manifest;
    json::value& annotations = make(body, "metadata.annotations");
    if (!annotations.is_object()) annotations.emplace_object();
    json::value applied = body;
    annotations.get_object()[kLastApplied] = to_sorted_text(applied) + "\n";
    return body;
  }
  static std::string held_by(const Object& object, std::string_view manager, std::string_view operation = "Update") {
    for (const json::value& entry : get_array(object.json(), "metadata.managedFields"))
      if (get_string(entry, "manager") == manager && get_string(entry, "operation") == operation)
        return to_text(*find(entry, "fieldsV1"));
    return "";
  }
  // The migration of `kubectl apply --server-side` after its first apply: the fields of client-side apply go to the applier.
  Result<ObjectPtr> hand_over(const Object& object) {
    json::object fields;
    json::array entries;
    for (const json::value& entry : get_array(object.json(), "metadata.managedFields")) {
      if (get_string(entry, "manager") == kClientSide || get_string(entry, "manager") == "kubectl")
        fields = schema::union_of(std::move(fields), get_object(entry, "fieldsV1"));
      else entries.push_back(entry);
    }
    entries.push_back(json::object{{"manager", "kubectl"},
                                   {"operation", "Apply"},
                                   {"apiVersion", object.kind().api_version()},
                                   {"time", "2026-01-01T00:00:00Z"},
                                   {"fieldsType", "FieldsV1"},
                                   {"fieldsV1", fields}});
    json::value operations =
        json::array{json::object{{"op", "replace"}, {"path", "/metadata/managedFields"}, {"value", std::move(entries)}}};
    return patch(object.kind(), object.key(), PatchType::json, operations, "kubectl");
  }
  RegistryFixture fixture;
};

TEST_F(ManagedFields, client_side_apply_then_server_side_apply) {
  struct Row {
    const Kind& kind;
    const char* manifest;
    std::vector<std::string> unowned;  // fields that exist but were not sent
    std::vector<const char*> kept;     // paths whose values do not change
  };
  for (const Row& row : {
           Row{kPod,
               R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default","labels":{"a":"b"}},
               "spec":{"containers":[{"name":"c","image":"i","ports":[{"containerPort":53},{"containerPort":53,"protocol":"UDP"}]}]}})",
               {"f:dnsPolicy", "f:tolerations", "f:serviceAccountName", "f:volumes", "f:imagePullPolicy", "f:status",
                "f:priority"},
               {"spec.tolerations", "spec.serviceAccountName", "spec.dnsPolicy"}},
           Row{kJob,
               R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j","namespace":"default"},
               "spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}})",
               {"f:selector", "controller-uid", "f:completionMode", "f:suspend"},
               {"spec.selector", "spec.template.metadata.labels"}},
           Row{kService,
               R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"s","namespace":"default"},"spec":{"type":"NodePort",
               "ports":[{"name":"t","port":53},{"name":"u","port":53,"protocol":"UDP"}],"selector":{"a":"b"}}})",
               {"f:nodePort", "f:clusterIP", "f:ipFamilies", "f:sessionAffinity"},
               {"spec.ports", "spec.clusterIP", "spec.clusterIPs"}},
           Row{kPersistentVolume,
               R"({"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"v"},"spec":{"capacity":{"storage":"1Gi"},
               "accessModes":["ReadWriteOnce"],"hostPath":{"path":"/x"},"storageClassName":"s"}})",
               {"f:finalizers", "f:persistentVolumeReclaimPolicy", "f:volumeMode"},
               {"metadata.finalizers", "spec.persistentVolumeReclaimPolicy"}},
           Row{kPersistentVolumeClaim,
               R"({"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"c","namespace":"default"},
               "spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}},"storageClassName":"s"}})",
               {"f:finalizers", "f:volumeMode"},
               {"metadata.finalizers", "spec.volumeMode"}},
           Row{kDeployment,
               R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"default"},"spec":{
               "selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
               "spec":{"containers":[{"name":"c","image":"i","env":[{"name":"A","value":"1"}]}]}}}})",
               {"f:replicas", "f:progressDeadlineSeconds", "f:strategy"},
               {"spec.replicas", "spec.strategy"}},
       }) {
    SCOPED_TRACE(row.kind.kind);
    json::value manifest = RegistryFixture::parse(row.manifest);
    auto made = create(row.kind, with_last_applied(manifest), kClientSide);
    ASSERT_TRUE(made) << made.error().text();
    std::string held = held_by(**made, kClientSide);
    EXPECT_FALSE(held.empty());
    for (const std::string& field : row.unowned) EXPECT_EQ(held.find(field), std::string::npos) << field << " in " << held;
    for (const char* path : row.kept) ASSERT_NE(find((*made)->json(), path), nullptr) << path << " in " << (*made)->text();
    Key key = (*made)->key();
    auto first = patch(row.kind, key, PatchType::apply, manifest, "kubectl");
    ASSERT_TRUE(first) << first.error().text();
    auto handed = hand_over(**first);
    ASSERT_TRUE(handed) << handed.error().text();
    EXPECT_EQ(held_by(**handed, kClientSide), "");
    auto second = patch(row.kind, key, PatchType::apply, manifest, "kubectl");
    ASSERT_TRUE(second) << second.error().text();
    for (const char* path : row.kept) {
      const json::value* now = find((*second)->json(), path);
      ASSERT_NE(now, nullptr) << path;
      EXPECT_EQ(*now, *find((*made)->json(), path)) << path;
    }
    auto third = patch(row.kind, key, PatchType::apply, manifest, "kubectl");
    ASSERT_TRUE(third) << third.error().text();
    EXPECT_EQ((*third)->revision(), (*second)->revision()) << "the same again changes nothing";
  }
}

TEST_F(ManagedFields, an_update_holds_what_it_sent_and_not_its_defaults) {
  json::value manifest =
      RegistryFixture::parse(R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"default"},
      "spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})");
  MUST(create(kDeployment, manifest, "creator"));
  auto added =
      patch(kDeployment, {"default", "d"}, PatchType::strategic,
            RegistryFixture::parse(R"({"spec":{"template":{"spec":{"containers":[{"name":"x","image":"j"}]}}}})"), "editor");
  ASSERT_TRUE(added) << added.error().text();
  EXPECT_EQ(held_by(**added, "editor"),
            R"({"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"x\"}":{".":{},"f:image":{},"f:name":{}}}}}}})");
  auto scaled =
      patch(kDeployment, {"default", "d"}, PatchType::merge, RegistryFixture::parse(R"({"spec":{"replicas":3}})"), "scaler");
  EXPECT_EQ(held_by(**scaled, "scaler"), R"({"f:spec":{"f:replicas":{}}})");
  auto reset =
      patch(kDeployment, {"default", "d"}, PatchType::merge, RegistryFixture::parse(R"({"spec":{"replicas":null}})"), "other");
  EXPECT_EQ(get_int((*reset)->json(), "spec.replicas"), 1);
  EXPECT_EQ(held_by(**reset, "scaler"), "") << "its value is gone";
  EXPECT_EQ(held_by(**reset, "other"), "") << "a default is nobody's";
}

// Source: apimachinery managedfields, skipnonapplied.go.
TEST_F(ManagedFields, an_object_without_a_record_gets_one_by_an_apply_or_by_a_component) {
  const json::value labels = RegistryFixture::parse(R"({"metadata":{"labels":{"a":"b"}}})");
  auto applied = [](const char* value) {
    return RegistryFixture::parse(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","labels":{"a":")" +
                                  std::string(value) + R"("}}})");
  };
  const Key key{"default", "c"};
  MUST(fixture.registry().create(kConfigMap, {"default", ""}, applied("a"), internal_writer()));
  ObjectPtr labelled = MUST(patch(kConfigMap, key, PatchType::merge, labels, "kubectl-label"));
  EXPECT_EQ(find(labelled->json(), "metadata.managedFields"), nullptr);
  auto refused = patch(kConfigMap, key, PatchType::apply, applied("c"), "me");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("conflict with \"before-first-apply\""), std::string::npos) << refused.error().text();
  ObjectPtr taken = MUST(patch(kConfigMap, key, PatchType::apply, applied("c"), "me", true));
  EXPECT_EQ(held_by(*taken, "me", "Apply"), R"({"f:metadata":{"f:labels":{"f:a":{}}}})");
  MUST(patch(kConfigMap, key, PatchType::merge, RegistryFixture::parse(R"({"metadata":{"managedFields":[{}]}})"), "me"));
  ObjectPtr again = MUST(patch(kConfigMap, key, PatchType::merge, labels, "kubectl-label"));
  EXPECT_EQ(find(again->json(), "metadata.managedFields"), nullptr);
  Written by_component = MUST(fixture.registry().patch(kConfigMap, key, "", PatchType::merge,
                                                       RegistryFixture::parse(R"({"metadata":{"labels":{"x":"y"}}})"), false,
                                                       internal_writer("coracled")));
  EXPECT_EQ(held_by(*by_component.object, "coracled"), R"({"f:metadata":{"f:labels":{"f:x":{}}}})");
}

TEST_F(ManagedFields, who_applies_another_number_than_the_autoscaler_chose_is_told) {
  json::value manifest =
      RegistryFixture::parse(R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"default"},
      "spec":{"replicas":1,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})");
  MUST(patch(kDeployment, {"default", "d"}, PatchType::apply, manifest, "kubectl"));
  json::value scale = RegistryFixture::parse(
      R"({"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"d","namespace":"default"},"spec":{"replicas":4}})");
  MUST(fixture.registry().update(kDeployment, {"default", "d"}, "scale", scale, internal_writer("kube-controller-manager")));
  auto refused = patch(kDeployment, {"default", "d"}, PatchType::apply, manifest, "kubectl");
  ASSERT_FALSE(refused);
  EXPECT_EQ(
      refused.error().text(),
      "Apply failed with 1 conflict: conflict with \"kube-controller-manager\" with subresource \"scale\" using apps/v1 at " +
          format_time(fixture.clock.now()) + ": .spec.replicas");
}

TEST_F(ManagedFields, a_scale_is_applied_as_its_own_part) {
  json::value manifest =
      RegistryFixture::parse(R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"default"},
      "spec":{"replicas":1,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})");
  Key key{"default", "d"};
  MUST(patch(kDeployment, key, PatchType::apply, manifest, "alice"));
  json::value scale =
      RegistryFixture::parse(R"({"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"d"},"spec":{"replicas":0}})");
  auto apply = [&](bool force) {
    return fixture.registry().patch(kDeployment, key, "scale", PatchType::apply, scale, force, internal_writer("bob"));
  };
  auto refused = apply(false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text(), "Apply failed with 1 conflict: conflict with \"alice\": .spec.replicas");
  ObjectPtr taken = MUST(apply(true)).object;
  EXPECT_EQ(get_int(taken->json(), "spec.replicas", -1), 0);
  EXPECT_EQ(held_by(*taken, "bob", "Apply"), R"({"f:spec":{"f:replicas":{}}})");
  EXPECT_EQ(held_by(*taken, "alice", "Apply").find("f:replicas"), std::string::npos);
  MUST(patch(kDeployment, key, PatchType::merge,
             RegistryFixture::parse(R"({"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"}}})"),
             "alice"));
  scale.at("spec").at("replicas") = 3;
  ObjectPtr again =
      MUST(fixture.registry().patch(kDeployment, key, "scale", PatchType::apply, scale, true, internal_writer("kubectl"))).object;
  EXPECT_EQ(get_object(again->json(), "metadata.annotations").at("kubectl.kubernetes.io/last-applied-configuration"), "{}");
}

TEST_F(ManagedFields, what_is_applied_as_null_is_held_until_it_is_left_out) {
  json::value manifest = RegistryFixture::parse(
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default","annotations":null},"data":null})");
  Key key{"default", "c"};
  ObjectPtr made = MUST(patch(kConfigMap, key, PatchType::apply, manifest, "chart"));
  EXPECT_EQ(held_by(*made, "chart", "Apply"), R"({"f:data":{},"f:metadata":{"f:annotations":{}}})");
  MUST(patch(kConfigMap, key, PatchType::merge,
             RegistryFixture::parse(R"({"metadata":{"annotations":{"a":"b"}},"data":{"x":"y"}})"), "other"));
  ObjectPtr again = MUST(patch(kConfigMap, key, PatchType::apply, manifest, "chart"));
  EXPECT_EQ(get_string(again->json(), "data.x"), "y");
  manifest.get_object().erase("data");
  ObjectPtr without = MUST(patch(kConfigMap, key, PatchType::apply, manifest, "chart"));
  EXPECT_EQ(held_by(*without, "chart", "Apply"), R"({"f:metadata":{"f:annotations":{}}})");
  EXPECT_EQ(get_string(without->json(), "data.x"), "y") << "it is another's";
}

TEST_F(ManagedFields, a_field_applied_as_null_gets_its_default) {
  json::value manifest = RegistryFixture::parse(R"({"apiVersion":"apps/v1","kind":"Deployment",
    "metadata":{"name":"web","namespace":"default","creationTimestamp":null},
    "spec":{"replicas":null,"paused":null,"selector":{"matchLabels":{"app":"web"}},
      "template":{"metadata":{"creationTimestamp":null,"labels":{"app":"web"},"annotations":null},
        "spec":{"nodeSelector":null,"containers":[{"name":"c","image":"i","command":null}]}}}})");
  Key key{"default", "web"};
  ObjectPtr made = MUST(patch(kDeployment, key, PatchType::apply, manifest, "chart"));
  EXPECT_EQ(get_int(made->json(), "spec.replicas"), 1);
  std::string created(get_string(made->json(), "metadata.creationTimestamp"));
  ObjectPtr again = MUST(patch(kDeployment, key, PatchType::apply, manifest, "chart"));
  EXPECT_EQ(again->revision(), made->revision()) << "nothing changed";

  json::value more = RegistryFixture::parse(R"({"spec":{"replicas":5,"template":{"metadata":{"annotations":{"disk":"fast"}}}}})");
  MUST(patch(kDeployment, key, PatchType::merge, more, "chart"));
  auto conflict = patch(kDeployment, key, PatchType::apply, manifest, "chart");
  ASSERT_FALSE(conflict) << "the update with the same name is another's";
  EXPECT_EQ(conflict.error().details()->causes.size(), 1u);
  EXPECT_EQ(conflict.error().details()->causes[0].field, ".spec.replicas");
  ObjectPtr forced = MUST(patch(kDeployment, key, PatchType::apply, manifest, "chart", true));
  EXPECT_EQ(get_int(forced->json(), "spec.replicas"), 1) << "the default";
  EXPECT_EQ(get_string(forced->json(), "spec.template.metadata.annotations.disk"), "fast") << "a map keeps what is in it";
  EXPECT_EQ(get_string(forced->json(), "metadata.creationTimestamp"), created);
}

TEST_F(ManagedFields, what_the_server_gives_an_object_stays_when_it_is_applied_as_null) {
  json::value manifest =
      RegistryFixture::parse(R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"s","namespace":"default",
    "uid":null,"resourceVersion":null,"generation":null,"creationTimestamp":null,"deletionTimestamp":null,"selfLink":null},
    "spec":{"type":"NodePort","clusterIP":null,"clusterIPs":null,"ipFamilies":null,"ipFamilyPolicy":null,"selector":{"a":"b"},
      "ports":[{"port":80,"nodePort":null,"targetPort":null}]},"status":null})");
  ObjectPtr made = MUST(patch(kService, {"default", "s"}, PatchType::apply, manifest, "chart"));
  EXPECT_GE(get_int(get_array(made->json(), "spec.ports").at(0), "nodePort"), 30000);
  EXPECT_NE(get_string(made->json(), "spec.clusterIP"), "");
  ObjectPtr again = MUST(patch(kService, {"default", "s"}, PatchType::apply, manifest, "chart"));
  EXPECT_EQ(to_text(again->json()), to_text(made->json()));
}

TEST_F(ManagedFields, what_changes_nothing_is_no_write) {
  const Kind& policy = schema::catalog().by_kind("networking.k8s.io/v1", "NetworkPolicy")->kind;
  struct Row {
    const Kind& kind;
    const char* manifest;
  };
  for (const Row& row :
       {Row{kSecret,
            R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"default"},"stringData":{"a":"b"}})"},
        Row{policy, R"({"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"n","namespace":"default"},
             "spec":{"podSelector":{},"ingress":[{"ports":[{"port":80}]}]}})"}}) {
    const json::value manifest = RegistryFixture::parse(row.manifest);
    MUST(create(row.kind, manifest, kClientSide));
    fixture.clock.advance(std::chrono::seconds(5));
    ObjectPtr once = MUST(patch(row.kind, key_of(manifest), PatchType::strategic, manifest, kClientSide));
    fixture.clock.advance(std::chrono::seconds(5));
    ObjectPtr twice = MUST(patch(row.kind, key_of(manifest), PatchType::strategic, manifest, kClientSide));
    EXPECT_EQ(twice->revision(), once->revision()) << to_text(once->json()) << to_text(twice->json());
    json::value changed = RegistryFixture::parse(R"({"metadata":{"labels":{"x":"y"}}})");
    ObjectPtr labelled = MUST(patch(row.kind, key_of(manifest), PatchType::merge, changed, kClientSide));
    EXPECT_GT(labelled->revision(), twice->revision());
    EXPECT_EQ(get_string(get_array(labelled->json(), "metadata.managedFields")[0], "time"), format_time(fixture.clock.now()));
  }
}

TEST_F(ManagedFields, another_version_holds_what_was_sent_in_it) {
  const schema::KindInfo& v1 = *schema::catalog().by_kind("autoscaling/v1", "HorizontalPodAutoscaler");
  json::value manifest = RegistryFixture::parse(
      R"({"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler","metadata":{"name":"h","namespace":"default"},
      "spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"},"maxReplicas":3,"targetCPUUtilizationPercentage":50}})");
  auto made = create(v1.kind, manifest, "creator");
  ASSERT_TRUE(made) << made.error().text();
  std::string held = held_by(**made, "creator");
  EXPECT_EQ(held.find("f:minReplicas"), std::string::npos) << held;
  EXPECT_NE(held.find("f:maxReplicas"), std::string::npos) << held;
  EXPECT_NE(held.find("f:targetCPUUtilizationPercentage"), std::string::npos) << held;
}

TEST_F(ManagedFields, kubectl_keeps_the_last_applied_configuration_in_step) {
  json::value manifest = RegistryFixture::parse(
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m","namespace":"default"},"data":{"a":"<1>","b":"2"}})");
  MUST(create(kConfigMap, with_last_applied(manifest), kClientSide));
  make(manifest, "data") = json::object{{"a", "<3>"}};
  auto other = patch(kConfigMap, {"default", "m"}, PatchType::apply,
                     RegistryFixture::parse(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"data":{"c":"4"}})"),
                     "other");
  ASSERT_TRUE(other) << other.error().text();
  EXPECT_NE((*other)->annotation(kLastApplied).find("<1>"), std::string::npos) << "other managers leave it alone";
  auto applied = patch(kConfigMap, {"default", "m"}, PatchType::apply, manifest, "kubectl");
  ASSERT_TRUE(applied) << applied.error().text();
  EXPECT_EQ((*applied)->annotation(kLastApplied),
            R"({"apiVersion":"v1","data":{"a":"\u003c3\u003e"},"kind":"ConfigMap","metadata":{"name":"m","namespace":"default"}})"
            "\n");
  MUST(create(kConfigMap, RegistryFixture::parse(R"({"metadata":{"name":"n","namespace":"default"}})"), "x"));
  auto plain = patch(kConfigMap, {"default", "n"}, PatchType::apply,
                     RegistryFixture::parse(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"n"},"data":{"a":"1"}})"),
                     "kubectl");
  EXPECT_EQ((*plain)->annotation(kLastApplied), "") << "where there is none, there comes none";
}

// Source: structured-merge-diff, merge/update.go: managers without fields are removed, also the last one.
TEST_F(ManagedFields, who_applies_nothing_any_more_owns_nothing) {
  struct Row {
    const Kind& kind;
    std::string subresource, first, rest;
  };
  for (const Row& row :
       {Row{kServiceAccount, "", R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"a","labels":{"l":"x"}}})",
            R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"a"}})"},
        Row{kConfigMap, "", R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v"}})",
            R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}})"},
        Row{kPod, "status",
            R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"status":{"conditions":[{"type":"T","status":"True"}]}})",
            R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}})"}}) {
    SCOPED_TRACE(row.kind.kind);
    const Key key{"default", "a"};
    if (row.kind == kPod)
      fixture.make(kPod, R"({"metadata":{"name":"a","namespace":"default"},"spec":{"containers":[{"name":"c","image":"i"}]}})");
    auto apply = [&](const std::string& text) {
      return MUST(fixture.registry().patch(row.kind, key, row.subresource, PatchType::apply, RegistryFixture::parse(text), true,
                                           as("kubectl")))
          .object;
    };
    EXPECT_NE(held_by(*apply(row.first), "kubectl", "Apply"), "");
    ObjectPtr less = apply(row.rest);
    EXPECT_EQ(held_by(*less, "kubectl", "Apply"), "") << less->text();
    EXPECT_EQ(apply(row.rest)->revision(), less->revision()) << "the same again changes nothing";
  }
}

// Parts of an object that only a subresource writes.
TEST_F(ManagedFields, who_applies_a_subresource_owns_what_it_sent) {
  const Key key{"default", "p"};
  fixture.make(kPod, R"({"metadata":{"name":"p","namespace":"default"},"spec":{"containers":[{"name":"c","image":"i"}]}})");
  auto debugged = fixture.registry().patch(
      kPod, key, "ephemeralcontainers", PatchType::apply,
      RegistryFixture::parse(
          R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"ephemeralContainers":[{"name":"e","image":"j"}]}})"),
      false, as("debugger"));
  ASSERT_TRUE(debugged) << debugged.error().text();
  EXPECT_NE(held_by(*debugged->object, "debugger", "Apply").find("f:ephemeralContainers"), std::string::npos)
      << debugged->object->text();
}

}  // namespace
}  // namespace coracle::registry
