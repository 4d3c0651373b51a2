// SPDX-License-Identifier: Apache-2.0
// The compiled catalog: the kinds agree with the constants in the code, names are found, the text is well formed.
#include "store/schema/catalog.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/text.h"
#include "store/schema/kind_family.h"

namespace coracle::schema {
namespace {

struct Constant {
  std::string name, group, version, kind, resource;
  bool namespaced;
};

// The constants of store/object/kind.h, as they stand there: one that is added needs no line here.
std::vector<Constant> constants_of_kinds() {
  const char* source = std::getenv("CORACLE_SOURCE");
  std::ifstream file(std::string(source ? source : ".") + "/store/object/kind.h");
  EXPECT_TRUE(file.is_open());
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  static const std::regex begin(R"(constexpr Kind k)");
  static const std::regex whole(R"rx(constexpr Kind (k\w+)\{"([^"]*)",\s*"([^"]*)",\s*"([^"]*)",\s*"([^"]*)"(,\s*false)?\};)rx");
  std::vector<Constant> found;
  for (std::sregex_iterator one(text.begin(), text.end(), whole), end; one != end; ++one)
    found.push_back({(*one)[1], (*one)[2], (*one)[3], (*one)[4], (*one)[5], !(*one)[6].matched});
  EXPECT_EQ(found.size(), size_t(std::distance(std::sregex_iterator(text.begin(), text.end(), begin), std::sregex_iterator())));
  return found;
}

TEST(Catalog, holds_the_kinds_that_code_names) {
  const std::vector<Constant> constants = constants_of_kinds();
  EXPECT_GT(constants.size(), 40u);
  for (const Constant& constant : constants) {
    SCOPED_TRACE(constant.name);
    const Kind kind{constant.group, constant.version, constant.kind, constant.resource, constant.namespaced};
    const KindInfo* found = catalog().find(kind);
    ASSERT_TRUE(found);
    const KindInfo& info = *found;
    EXPECT_EQ(info.kind.kind, kind.kind);
    EXPECT_EQ(info.kind.namespaced, kind.namespaced);
    EXPECT_EQ(info.type().name(), kind.kind);
    ASSERT_NE(info.list_type(), nullptr);
    EXPECT_EQ(info.list_type()->name(), std::string(kind.kind) + "List");
    EXPECT_FALSE(info.columns().empty());
    EXPECT_EQ(catalog().by_kind(kind.api_version(), kind.kind), &info);
  }
}

// A rule for a type or kind that does not exist would never be called.
TEST(Catalog, has_every_kind_and_type_that_a_rule_names) {
  for (const KindFamily* family : kind_families())
    for (const KindRules& rules : family->kinds) {
      bool found = std::ranges::any_of(catalog().kinds(), [&](const KindInfo& info) { return &rules_of(info) == &rules; });
      EXPECT_TRUE(found) << rules.api_version << " " << rules.resource;
    }
  for_each_rule(&KindFamily::validation,
                [](const NamedValidationRule& rule) { EXPECT_TRUE(type_named(rule.type)) << rule.type; });
  for_each_rule(&KindFamily::defaults, [](const NamedDefaultRule& rule) { EXPECT_TRUE(type_named(rule.type)) << rule.type; });
  std::set<std::string_view> cells;
  for_each_rule(&KindFamily::cells, [&](const NamedCellRule& rule) { EXPECT_TRUE(cells.insert(rule.name).second) << rule.name; });
}

TEST(Catalog, lists_packages_in_the_order_of_kubernetes_and_resources_by_name) {
  std::vector<std::string> shown;
  for (const KindInfo* info : catalog().by_category("all")) shown.emplace_back(info->kind.resource);
  EXPECT_EQ(join(shown, " "),
            "pods replicationcontrollers services daemonsets deployments replicasets statefulsets horizontalpodautoscalers "
            "cronjobs jobs");
}

TEST(Catalog, finds_what_a_user_types) {
  struct Row {
    const char* name;
    const char* want;
  };
  for (const Row& row :
       {Row{"pods", "Pod"}, Row{"pod", "Pod"}, Row{"po", "Pod"}, Row{"Pod", "Pod"}, Row{"deploy", "Deployment"},
        Row{"deployments.apps", "Deployment"}, Row{"deployment.v1.apps", "Deployment"}, Row{"deployments.extensions", ""},
        Row{"ep", "Endpoints"}, Row{"endpoints", "Endpoints"}, Row{"svc", "Service"}, Row{"nothing", ""}, Row{"", ""},
        // The beginning of a group, where it is none.
        Row{"hpa.autoscal", "HorizontalPodAutoscaler"}, Row{"storageclass.storage", "StorageClass"},
        Row{"deployments.a", "Deployment"}, Row{"pods.v", ""}, Row{"deployments.v1.ap", ""}}) {
    const KindInfo* info = catalog().by_name(row.name);
    EXPECT_EQ(info ? info->kind.kind : "", row.want) << row.name;
  }
}

TEST(Catalog, knows_subresources_and_verbs) {
  const KindInfo& deployment = catalog().of(kDeployment);
  const Subresource* scale = deployment.subresource("scale");
  ASSERT_NE(scale, nullptr);
  EXPECT_EQ(scale->kind, "Scale");
  EXPECT_EQ(scale->group, "autoscaling");
  EXPECT_TRUE(scale->has_verb("patch"));
  EXPECT_FALSE(scale->has_verb("create"));
  EXPECT_EQ(deployment.subresource("log"), nullptr);
  EXPECT_TRUE(deployment.has_verb("deletecollection"));
  EXPECT_FALSE(catalog().of(kNamespace).has_verb("deletecollection"));
}

TEST(Catalog, has_traits_of_a_kind_and_not_of_its_namesake_in_another_group) {
  const KindTraits &pod = catalog().of(kPod).traits, &of_metrics = catalog().of(kPodMetrics).traits;
  EXPECT_EQ(pod.pod_template, ".");
  EXPECT_EQ(catalog().of(kCronJob).traits.pod_template, "spec.jobTemplate.spec.template");
  EXPECT_TRUE(pod.graceful && pod.counts_generations && pod.returns_deleted);
  EXPECT_FALSE(of_metrics.graceful || of_metrics.counts_generations || of_metrics.returns_deleted);
  EXPECT_EQ(pod.selectable.front().name, "spec.nodeName");
  EXPECT_TRUE(of_metrics.selectable.empty());
  auto field = [](const KindInfo* info, std::string_view name) {
    auto all = info->traits.selectable;
    return std::ranges::find(all, name, [](const Selectable& each) { return each.name; });
  };
  EXPECT_EQ(field(catalog().by_resource("", "v1", "events"), "source")->other_path, "reportingComponent");
  EXPECT_EQ(field(catalog().by_resource("events.k8s.io", "v1", "events"), "regarding.name")->path, "involvedObject.name");
  EXPECT_EQ(field(&catalog().of(kNode), "spec.unschedulable")->otherwise, "false");
  EXPECT_EQ(catalog().of(kJob).traits.selectable_refusal, "field label \"%\" not supported for batchv1.Job");
}

// Only the stored version has the traits: a lookup at another version misses some.
TEST(Catalog, traits_of_what_is_stored_stand_at_the_version_that_is_stored) {
  for (const KindInfo& info : catalog().kinds()) {
    if (info.is_stored()) continue;
    const KindTraits& traits = info.traits;
    bool has_any = traits.orphans_dependents || traits.counts_generations || traits.graceful || traits.awaits_finalize ||
                   traits.keeps_first_status || traits.from_template || traits.names_pods || traits.uncounted ||
                   traits.no_owners || !traits.status_keeps.empty() || !traits.durability.empty() ||
                   !traits.pod_template.empty() || !traits.heartbeat.empty() || !traits.finalizer.empty() ||
                   !traits.warns.empty();
    EXPECT_FALSE(has_any) << info.kind.api_version() << " " << info.kind.kind;
  }
}

// Source: kubernetes, test/integration/apiserver/apidefinitions.
TEST(Catalog, kinds_are_written_as_kubernetes_writes_them) {
  auto those = [](auto&& has) {
    std::set<std::string> names;
    for (const KindInfo& info : catalog().kinds())
      if (info.has_verb("update") && has(info, info.stored().traits)) names.insert(info.kind.qualified_resource());
    return names;
  };
  using Names = std::set<std::string>;
  EXPECT_EQ(
      those([](const KindInfo& info, auto&) { return info.traits.created_by_update; }),
      (Names{"clusterrolebindings.rbac.authorization.k8s.io", "clusterroles.rbac.authorization.k8s.io", "endpoints", "events",
             "events.events.k8s.io", "leases.coordination.k8s.io", "limitranges", "rolebindings.rbac.authorization.k8s.io",
             "roles.rbac.authorization.k8s.io", "runtimeclasses.node.k8s.io", "services"}));
  EXPECT_EQ(those([](const KindInfo& info, auto&) { return info.traits.update_needs_revision; }),
            (Names{"apiservices.apiregistration.k8s.io", "csidrivers.storage.k8s.io", "csinodes.storage.k8s.io",
                   "csistoragecapacities.storage.k8s.io", "customresourcedefinitions.apiextensions.k8s.io",
                   "leases.coordination.k8s.io", "mutatingadmissionpolicies.admissionregistration.k8s.io",
                   "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
                   "mutatingwebhookconfigurations.admissionregistration.k8s.io", "poddisruptionbudgets.policy",
                   "runtimeclasses.node.k8s.io", "validatingadmissionpolicies.admissionregistration.k8s.io",
                   "validatingadmissionpolicybindings.admissionregistration.k8s.io",
                   "validatingwebhookconfigurations.admissionregistration.k8s.io", "volumeattachments.storage.k8s.io"}));
  EXPECT_EQ(those([](auto&, const KindTraits& traits) { return traits.orphans_dependents; }),
            (Names{"jobs.batch", "replicationcontrollers"}));
  EXPECT_EQ(those([](auto&, const KindTraits& traits) { return traits.no_owners; }), (Names{"events", "events.events.k8s.io"}));
  EXPECT_EQ(those([](const KindInfo& info, const KindTraits& traits) {
              return info.subresource("status") && !traits.counts_generations;
            }),
            (Names{"apiservices.apiregistration.k8s.io", "certificatesigningrequests.certificates.k8s.io",
                   "horizontalpodautoscalers.autoscaling", "namespaces", "nodes", "persistentvolumeclaims", "persistentvolumes",
                   "resourceclaims.resource.k8s.io", "resourcequotas", "servicecidrs.networking.k8s.io", "services",
                   "volumeattachments.storage.k8s.io"}));
  EXPECT_EQ(those([](auto&, const KindTraits& traits) { return traits.status_keeps == "all"; }),
            (Names{"apiservices.apiregistration.k8s.io", "flowschemas.flowcontrol.apiserver.k8s.io",
                   "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io", "resourceclaims.resource.k8s.io",
                   "servicecidrs.networking.k8s.io", "validatingadmissionpolicies.admissionregistration.k8s.io",
                   "volumeattachments.storage.k8s.io"}));
}

TEST(Catalog, traits_name_fields_that_there_are) {
  auto has_field = [](const Type& root, std::string_view path) {
    const Type* type = &root;
    for (std::string_view name : split(path, '.')) {
      if (name.ends_with("[]")) name.remove_suffix(2);
      const Field* field = type ? type->field(name) : nullptr;
      if (!field) return false;
      type = field->form == Form::object ? &field->type() : nullptr;
    }
    return true;
  };
  for (const KindInfo& info : catalog().kinds()) {
    const std::string name = info.kind.qualified_resource();
    const Type& stored = info.stored().type();
    for (const Selectable& field : info.traits.selectable) {
      EXPECT_TRUE(has_field(stored, field.path)) << name << " " << field.path;
      EXPECT_TRUE(field.other_path.empty() || has_field(stored, field.other_path)) << name << " " << field.other_path;
    }
    for (std::string_view path : {info.traits.pod_template, info.traits.heartbeat})
      EXPECT_TRUE(path.empty() || path == "." || has_field(stored, path)) << name << " " << path;
    constexpr std::string_view kDurabilities[] = {"", "soft", "lazy", "observed", "derived", "remeasured"};
    EXPECT_NE(std::ranges::find(kDurabilities, info.traits.durability), std::end(kDurabilities)) << name;
  }
}

TEST(Catalog, finds_whatever_travels_on_its_own) {
  for (auto [version, kind] : {std::pair{"v1", "Pod"},
                               {"apps/v1", "DeploymentList"},
                               {"v1", "Status"},
                               {"policy/v1", "Eviction"},
                               {"apps/v1", "DeleteOptions"},
                               {"autoscaling/v1", "Scale"},
                               {"authentication.k8s.io/v1", "TokenRequest"},
                               {"meta.k8s.io/v1", "PartialObjectMetadata"},
                               {"v1", "Binding"}}) {
    EXPECT_NE(root_type(version, kind), nullptr) << kind;
  }
  EXPECT_EQ(root_type("apps/v1", "Pod"), nullptr);
  EXPECT_EQ(root_type("v1", "PodSpec"), nullptr);
}

TEST(Catalog, types_are_well_formed) {
  std::set<std::string> names;
  for (const Type& type : all_types()) {
    EXPECT_TRUE(names.insert(type.openapi_name()).second) << type.openapi_name();
    EXPECT_EQ(type_named(type.openapi_name()), &type);
    EXPECT_EQ(&all_types()[type.index()], &type);
    EXPECT_FALSE(type.doc().empty()) << type.openapi_name();
    for (const Field& field : type.fields()) {
      std::string where = type.openapi_name() + "." + std::string(field.name());
      EXPECT_EQ(type.field(field.name()), &field) << where;
      EXPECT_FALSE(field.doc().empty()) << where;
      EXPECT_TRUE(field.default_json().empty() || parse_json(field.default_json())) << where;
      for (std::string_view key : field.list_keys()) EXPECT_NE(field.type().field(key), nullptr) << where;
      EXPECT_TRUE(field.merge_key().empty() || field.type().field(field.merge_key())) << where;
    }
  }
}

TEST(Catalog, every_verb_is_one_we_know) {
  const std::set<std::string_view> verbs = {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"};
  for (const KindInfo& info : catalog().kinds()) {
    for (std::string_view text = info.verbs; !text.empty();) {
      std::string_view verb = text.substr(0, text.find(','));
      EXPECT_TRUE(verbs.contains(verb)) << info.kind.kind << " " << verb;
      text.remove_prefix(std::min(text.size(), verb.size() + 1));
    }
  }
}

}  // namespace
}  // namespace coracle::schema
