// SPDX-License-Identifier: Apache-2.0
// OpenAPI documents: complete, consistent, and with the parts that kubectl needs.
#include "store/schema/openapi.h"

#include <gtest/gtest.h>

#include <set>

#include "store/schema/wire.h"

namespace coracle::schema {
namespace {

void find_references(const json::value& value, std::set<std::string>& found) {
  if (const json::object* object = value.if_object()) {
    for (const auto& pair : *object) {
      if (pair.key() == "$ref" && pair.value().is_string()) found.emplace(pair.value().get_string());
      else find_references(pair.value(), found);
    }
  } else if (const json::array* array = value.if_array()) {
    for (const json::value& item : *array) find_references(item, found);
  }
}

TEST(OpenApi, every_group_and_version_has_a_document_whose_references_resolve) {
  EXPECT_EQ(openapi_v3_paths(catalog())[0], "api/v1");
  for (const std::string& path : openapi_v3_paths(catalog())) {
    auto document = parse_json(openapi_v3(catalog(), path));
    ASSERT_TRUE(document) << path;
    const json::object& schemas = get_object(*document, "components.schemas");
    std::set<std::string> references;
    find_references(*document, references);
    EXPECT_FALSE(references.empty()) << path;
    for (const std::string& reference : references) {
      ASSERT_TRUE(reference.starts_with("#/components/schemas/")) << reference;
      EXPECT_TRUE(schemas.contains(reference.substr(21))) << path << " " << reference;
    }
  }
  EXPECT_EQ(openapi_v3(catalog(), "apis/nothing/v1"), "");
}

TEST(OpenApi, a_patch_of_every_writable_kind_understands_field_validation) {
  for (const KindInfo& info : catalog().kinds()) {
    if (!info.has_verb("patch")) continue;
    std::string path = info.kind.group.empty() ? "api/v1" : "apis/" + info.kind.api_version();
    json::value document = *parse_json(openapi_v3(catalog(), path));
    bool understood = false;
    for (const auto& pair : get_object(document, "paths")) {
      const json::value* patch = find(pair.value(), "patch");
      if (!patch || get_string(*patch, "x-kubernetes-group-version-kind.kind") != info.kind.kind) continue;
      EXPECT_EQ(get_string(*patch, "x-kubernetes-group-version-kind.group"), info.kind.group);
      for (const json::value& parameter : get_array(*patch, "parameters")) {
        understood = understood || (get_string(parameter, "name") == "fieldValidation" && get_string(parameter, "in") == "query");
      }
    }
    EXPECT_TRUE(understood) << info.kind.kind;
  }
}

TEST(OpenApi, describes_types_with_the_extensions_of_kubernetes) {
  json::value document = *parse_json(openapi_v3(catalog(), "api/v1"));
  const json::value* pod = find_keys(document, {"components", "schemas", "io.k8s.api.core.v1.Pod"});
  ASSERT_NE(pod, nullptr);
  EXPECT_EQ(to_text(*find(*pod, "x-kubernetes-group-version-kind")), R"([{"group":"","kind":"Pod","version":"v1"}])");
  const json::value* spec = find_keys(document, {"components", "schemas", "io.k8s.api.core.v1.PodSpec"});
  EXPECT_EQ(to_text(*find(*spec, "required")), R"(["containers"])");
  const json::value* volumes = find(*spec, "properties.volumes");
  EXPECT_EQ(get_string(*volumes, "x-kubernetes-list-type"), "map");
  EXPECT_EQ(to_text(*find(*volumes, "x-kubernetes-list-map-keys")), R"(["name"])");
  EXPECT_EQ(get_string(*volumes, "x-kubernetes-patch-merge-key"), "name");
  EXPECT_EQ(get_string(*volumes, "x-kubernetes-patch-strategy"), "merge,retainKeys");
  EXPECT_EQ(to_text(*find(*volumes, "items")), R"({"allOf":[{"$ref":"#/components/schemas/io.k8s.api.core.v1.Volume"}]})");
  EXPECT_EQ(get_string(*spec, "properties.restartPolicy.type"), "string");
  EXPECT_EQ(get_string(*spec, "properties.restartPolicy.default"), "Always");
  EXPECT_EQ(get_array(*spec, "properties.restartPolicy.enum").size(), 3u);
  const json::value* volume = find_keys(document, {"components", "schemas", "io.k8s.api.core.v1.PersistentVolumeSpec"});
  EXPECT_EQ(get_string(*volume, "properties.claimRef.x-kubernetes-map-type"), "granular");
  json::value policy = *parse_json(openapi_v3(catalog(), "apis/policy/v1"));
  const json::value* budget = find_keys(policy, {"components", "schemas", "io.k8s.api.policy.v1.PodDisruptionBudgetSpec"});
  EXPECT_EQ(get_string(*budget, "properties.selector.x-kubernetes-patch-strategy"), "replace");
  EXPECT_NE(find_keys(document, {"paths", "/api/v1/namespaces/{namespace}/pods/{name}/status", "patch"}), nullptr);
  EXPECT_NE(find_keys(document, {"paths", "/api/v1/nodes/{name}", "patch"}), nullptr);
  EXPECT_NE(find_keys(document, {"paths", "/api/v1/pods", "get"}), nullptr);
}

TEST(OpenApi, version_two_is_one_document_for_all) {
  json::value document = *parse_json(openapi_v2(catalog()));
  EXPECT_EQ(get_string(document, "swagger"), "2.0");
  std::set<std::string> references;
  find_references(document, references);
  for (const std::string& reference : references) {
    ASSERT_TRUE(reference.starts_with("#/definitions/")) << reference;
    EXPECT_TRUE(get_object(document, "definitions").contains(reference.substr(14))) << reference;
  }
  for (const KindInfo& info : catalog().kinds()) {
    EXPECT_TRUE(get_object(document, "definitions").contains(info.type().openapi_name())) << info.kind.kind;
  }
}

TEST(OpenApi, version_two_in_protobuf_holds_the_same_definitions) {
  std::string bytes = openapi_v2_protobuf(catalog());
  json::value document = *parse_json(openapi_v2(catalog()));
  std::set<std::string> names;
  for (WireReader wire(bytes); !wire.done();) {
    WireField field = *wire.next();
    EXPECT_TRUE(field.number != 1 || field.bytes == "2.0");
    if (field.number != 9) continue;
    for (WireReader definitions(field.bytes); !definitions.done();) {
      WireReader named(definitions.next()->bytes);
      names.emplace(named.next()->bytes);
    }
  }
  EXPECT_EQ(names.size(), get_object(document, "definitions").size());
  EXPECT_TRUE(names.contains("io.k8s.api.apps.v1.Deployment"));
}

TEST(OpenApi, the_hash_is_stable_and_long) {
  EXPECT_EQ(openapi_hash(catalog()).size(), 64u);
  EXPECT_EQ(openapi_hash(catalog()), openapi_hash(catalog()));
}

}  // namespace
}  // namespace coracle::schema
