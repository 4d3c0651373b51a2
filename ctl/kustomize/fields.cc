// SPDX-License-Identifier: Apache-2.0
// See fields.h.
#include "ctl/kustomize/fields.h"

#include <algorithm>

#include "runtime/base/text.h"

namespace coracle::kustomize {
namespace {

// Splits at '/', except behind a backslash.
std::vector<std::string> split_spec_path(std::string_view path) {
  std::vector<std::string> parts;
  if (path.starts_with('/')) path.remove_prefix(1);
  for (std::string_view part : split(path, '/')) {
    if (!parts.empty() && parts.back().ends_with('\\')) {
      parts.back().back() = '/';
      parts.back() += part;
    } else {
      parts.emplace_back(part);
    }
  }
  return parts;
}

class FieldSetter {
 public:
  FieldSetter(const FieldSpec& spec, const Creation& creation, const std::function<Result<void>(Node&)>& set)
      : path_(split_spec_path(spec.path)), create_(spec.create && creation.creates), creation_(creation), set_(set) {}

  Result<void> visit(Node& node, size_t at) const {
    if (at == path_.size()) return set_(node);
    if (node.is_null()) return {};
    if (node.is_list()) {
      for (Node& item : node.items) {
        TRY(visit(item, at));
      }
      return {};
    }
    if (!node.is_map()) return Error(Code::invalid, path_[at] + " is looked for in a text; expected a map or a list");
    std::string name = path_[at];
    bool list = name.ends_with("[]");
    if (list) name.resize(name.size() - 2);
    if (name.empty()) return Error(Code::invalid, "a part of the path is empty");
    bool last = at + 1 == path_.size();
    Node* field = node.find(name);
    if (!create_ || list) {
      if (!field) return {};
      if (list && field->is_null()) *field = Node::list();
      return visit(*field, at + 1);
    }
    Node fresh;
    fresh.kind = last ? creation_.kind : Node::Kind::map;
    fresh.tag = last ? creation_.tag : Tag::none;
    if (!field) {
      node.members.push_back({name, std::move(fresh)});
      field = &node.members.back().value;
    } else if (field->is_null()) {
      *field = std::move(fresh);
    }
    return visit(*field, at + 1);
  }

 private:
  const std::vector<std::string> path_;
  const bool create_;
  const Creation& creation_;
  const std::function<Result<void>(Node&)>& set_;
};

// ---- the default configuration ----

using Words = std::vector<std::string_view>;

struct Holder {                                // of a pod template
  std::string_view kind, version, group, pod;  // pod: the path of its spec
};

// The types whose pod's ConfigMaps and Secrets are renamed.
constexpr Holder kHolders[] = {
    {"Pod", "v1", "", "spec/"},
    {"PodTemplate", "", "", "template/spec/"},
    {"Deployment", "", "", "spec/template/spec/"},
    {"ReplicaSet", "", "", "spec/template/spec/"},
    {"DaemonSet", "", "", "spec/template/spec/"},
    {"StatefulSet", "", "", "spec/template/spec/"},
    {"Job", "", "", "spec/template/spec/"},
    {"CronJob", "", "", "spec/jobTemplate/spec/template/spec/"},
};
// The types whose pod's accounts, claims and priority classes are.
constexpr Holder kWorkloads[] = {
    {"StatefulSet", "", "", "spec/template/spec/"},
    {"Deployment", "", "", "spec/template/spec/"},
    {"ReplicationController", "", "", "spec/template/spec/"},
    {"CronJob", "", "", "spec/jobTemplate/spec/template/spec/"},
    {"Job", "", "", "spec/template/spec/"},
    {"DaemonSet", "", "", "spec/template/spec/"},
    {"Pod", "", "", "spec/"},
};

FieldSpec spec_of(std::string path, std::string_view kind = {}, std::string_view group = {}, std::string_view version = {},
                  bool create = false) {
  return {{std::string(group), std::string(version), std::string(kind)}, std::move(path), create};
}

template <size_t N>
void add_pod_paths(FieldSpecs& specs, const Holder (&holders)[N], const Words& paths) {
  for (const Holder& holder : holders)
    for (std::string_view path : paths) {
      if (holder.kind == "CronJob" && path.starts_with("volumes/nfs"))  // kustomize's table has this path
        specs.push_back(spec_of("spec/jobTemplate/spec/template/volumes/nfs/server", holder.kind));
      else specs.push_back(spec_of(std::string(holder.pod).append(path), holder.kind, holder.group, holder.version));
    }
}

void add_names(TransformerConfig& config) {
  auto add = [&](Gvk target, FieldSpecs referrers) {
    config.name_reference.push_back({std::move(target), std::move(referrers)});
  };
  for (const char* kind : {"Deployment", "ReplicationController", "ReplicaSet", "StatefulSet"})
    add({"", "", kind}, {spec_of("spec/scaleTargetRef/name", "HorizontalPodAutoscaler")});

  FieldSpecs maps;
  add_pod_paths(maps, kHolders,
                {"volumes/configMap/name", "containers/env/valueFrom/configMapKeyRef/name",
                 "initContainers/env/valueFrom/configMapKeyRef/name", "containers/envFrom/configMapRef/name",
                 "initContainers/envFrom/configMapRef/name", "volumes/projected/sources/configMap/name"});
  maps.push_back(spec_of("spec/configSource/configMap", "Node"));
  maps.push_back(spec_of("rules/resourceNames", "Role"));
  maps.push_back(spec_of("rules/resourceNames", "ClusterRole"));
  maps.push_back(spec_of(R"(metadata/annotations/nginx.ingress.kubernetes.io\/fastcgi-params-configmap)", "Ingress"));
  add({"", "v1", "ConfigMap"}, std::move(maps));

  FieldSpecs secrets;
  add_pod_paths(secrets, kHolders,
                {"volumes/secret/secretName", "containers/env/valueFrom/secretKeyRef/name",
                 "initContainers/env/valueFrom/secretKeyRef/name", "containers/envFrom/secretRef/name",
                 "initContainers/envFrom/secretRef/name", "imagePullSecrets/name", "volumes/projected/sources/secret/name"});
  secrets.push_back(spec_of("spec/tls/secretName", "Ingress"));
  for (const char* name : {"ingress.kubernetes.io\\/auth-secret", "nginx.ingress.kubernetes.io\\/auth-secret",
                           "nginx.ingress.kubernetes.io\\/auth-tls-secret"})
    secrets.push_back(spec_of(std::string("metadata/annotations/") + name, "Ingress"));
  secrets.push_back(spec_of("imagePullSecrets/name", "ServiceAccount"));
  for (const char* name : {"secretName", "adminSecretName", "userSecretName", "secretRef"})
    secrets.push_back(spec_of(std::string("parameters/") + name, "StorageClass"));
  secrets.push_back(spec_of("rules/resourceNames", "Role"));
  secrets.push_back(spec_of("rules/resourceNames", "ClusterRole"));
  secrets.push_back(
      spec_of("spec/template/spec/containers/env/valueFrom/secretKeyRef/name", "Service", "serving.knative.dev", "v1"));
  secrets.push_back(spec_of("spec/azureFile/secretName", "PersistentVolume"));
  add({"", "v1", "Secret"}, std::move(secrets));

  constexpr const char* kAdmission = "admissionregistration.k8s.io";
  constexpr const char* kRbac = "rbac.authorization.k8s.io";
  add({"", "v1", "Service"},
      {spec_of("spec/serviceName", "StatefulSet", "apps"), spec_of("spec/rules/http/paths/backend/serviceName", "Ingress"),
       spec_of("spec/backend/serviceName", "Ingress"), spec_of("spec/rules/http/paths/backend/service/name", "Ingress"),
       spec_of("spec/defaultBackend/service/name", "Ingress"),
       spec_of("spec/service/name", "APIService", "apiregistration.k8s.io"),
       spec_of("webhooks/clientConfig/service", "ValidatingWebhookConfiguration", kAdmission),
       spec_of("webhooks/clientConfig/service", "MutatingWebhookConfiguration", kAdmission)});
  add({kRbac, "", "Role"}, {spec_of("roleRef/name", "RoleBinding", kRbac)});
  add({kRbac, "", "ClusterRole"},
      {spec_of("roleRef/name", "RoleBinding", kRbac), spec_of("roleRef/name", "ClusterRoleBinding", kRbac)});

  FieldSpecs accounts = {spec_of("subjects", "RoleBinding", kRbac), spec_of("subjects", "ClusterRoleBinding", kRbac)};
  add_pod_paths(accounts, kWorkloads, {"serviceAccountName"});
  add({"", "v1", "ServiceAccount"}, std::move(accounts));

  FieldSpecs claims;
  add_pod_paths(claims, kWorkloads, {"volumes/persistentVolumeClaim/claimName"});
  add({"", "v1", "PersistentVolumeClaim"}, std::move(claims));
  add({"", "v1", "PersistentVolume"},
      {spec_of("spec/volumeName", "PersistentVolumeClaim"), spec_of("rules/resourceNames", "ClusterRole")});
  add({"storage.k8s.io", "v1", "StorageClass"},
      {spec_of("spec/storageClassName", "PersistentVolume"), spec_of("spec/storageClassName", "PersistentVolumeClaim"),
       spec_of("spec/volumeClaimTemplates/spec/storageClassName", "StatefulSet")});

  FieldSpecs priorities;
  add_pod_paths(priorities, kWorkloads, {"priorityClassName"});
  add({"scheduling.k8s.io", "v1", "PriorityClass"}, std::move(priorities));
  add({kAdmission, "", "ValidatingAdmissionPolicy"},
      {spec_of("spec/policyName", "ValidatingAdmissionPolicyBinding", kAdmission)});
}

void add_labels(TransformerConfig& config) {
  FieldSpecs& labels = config.common_labels;
  labels.push_back(spec_of("spec/selector", "Service", "", "v1", true));
  labels.push_back(spec_of("spec/selector", "ReplicationController", "", "v1", true));
  for (const char* kind : {"Deployment", "ReplicaSet", "DaemonSet"})
    labels.push_back(spec_of("spec/selector/matchLabels", kind, "", "", true));
  labels.push_back(spec_of("spec/selector/matchLabels", "StatefulSet", "apps", "", true));
  for (const char* kind : {"Deployment", "StatefulSet"}) {
    for (const char* side : {"podAffinity", "podAntiAffinity"}) {
      std::string affinity = std::string("spec/template/spec/affinity/") + side;
      labels.push_back(spec_of(
          affinity + "/preferredDuringSchedulingIgnoredDuringExecution/podAffinityTerm/labelSelector/matchLabels", kind, "apps"));
      labels.push_back(
          spec_of(affinity + "/requiredDuringSchedulingIgnoredDuringExecution/labelSelector/matchLabels", kind, "apps"));
    }
    labels.push_back(spec_of("spec/template/spec/topologySpreadConstraints/labelSelector/matchLabels", kind, "apps"));
  }
  labels.push_back(spec_of("spec/selector/matchLabels", "Job", "batch"));
  labels.push_back(spec_of("spec/jobTemplate/spec/selector/matchLabels", "CronJob", "batch"));
  labels.push_back(spec_of("spec/selector/matchLabels", "PodDisruptionBudget", "policy"));
  for (const char* path : {"spec/podSelector", "spec/ingress/from/podSelector", "spec/egress/to/podSelector"})
    labels.push_back(spec_of(std::string(path) + "/matchLabels", "NetworkPolicy", "networking.k8s.io"));

  FieldSpecs& templates = config.template_labels;
  templates.push_back(spec_of("metadata/labels", "", "", "", true));
  templates.push_back(spec_of("spec/template/metadata/labels", "ReplicationController", "", "v1", true));
  for (const char* kind : {"Deployment", "ReplicaSet", "DaemonSet"})
    templates.push_back(spec_of("spec/template/metadata/labels", kind, "", "", true));
  templates.push_back(spec_of("spec/template/metadata/labels", "StatefulSet", "apps", "", true));
  templates.push_back(spec_of("spec/volumeClaimTemplates[]/metadata/labels", "StatefulSet", "apps", "", true));
  templates.push_back(spec_of("spec/template/metadata/labels", "Job", "batch", "", true));
  templates.push_back(spec_of("spec/jobTemplate/metadata/labels", "CronJob", "batch", "", true));
  templates.push_back(spec_of("spec/jobTemplate/spec/template/metadata/labels", "CronJob", "batch", "", true));
  labels.insert(labels.end(), templates.begin(), templates.end());

  FieldSpecs& annotations = config.common_annotations;
  annotations.push_back(spec_of("metadata/annotations", "", "", "", true));
  annotations.push_back(spec_of("spec/template/metadata/annotations", "ReplicationController", "", "v1", true));
  for (const char* kind : {"Deployment", "ReplicaSet", "DaemonSet", "StatefulSet"})
    annotations.push_back(spec_of("spec/template/metadata/annotations", kind, "", "", true));
  annotations.push_back(spec_of("spec/template/metadata/annotations", "Job", "batch", "", true));
  annotations.push_back(spec_of("spec/jobTemplate/metadata/annotations", "CronJob", "batch", "", true));
  annotations.push_back(spec_of("spec/jobTemplate/spec/template/metadata/annotations", "CronJob", "batch", "", true));
}

void add_variables(TransformerConfig& config) {
  constexpr Holder kVariableHolders[] = {
      {"CronJob", "", "", "spec/jobTemplate/spec/template/spec/"},
      {"DaemonSet", "", "", "spec/template/spec/"},
      {"Deployment", "", "", "spec/template/spec/"},
      {"Job", "", "", "spec/template/spec/"},
      {"Pod", "", "", "spec/"},
      {"ReplicaSet", "", "", "spec/template/spec/"},
      {"StatefulSet", "", "", "spec/template/spec/"},
  };
  FieldSpecs& specs = config.var_reference;
  add_pod_paths(specs, kVariableHolders,
                {"containers/args", "containers/command", "containers/env/value", "containers/volumeMounts/mountPath",
                 "initContainers/args", "initContainers/command", "initContainers/env/value",
                 "initContainers/volumeMounts/mountPath", "volumes/nfs/server"});
  std::erase_if(specs, [](const FieldSpec& spec) {
    return spec.gvk.kind == "StatefulSet" && spec.path == "spec/template/spec/volumes/nfs/server";
  });
  specs.push_back(spec_of("spec/volumeClaimTemplates/spec/nfs/server", "StatefulSet"));
  specs.push_back(spec_of("spec/template/metadata/annotations", "Deployment"));
  for (const char* path : {"spec/rules/host", "spec/tls/hosts", "spec/tls/secretName"}) specs.push_back(spec_of(path, "Ingress"));
  for (const char* path : {"spec/ports/port", "spec/ports/targetPort"}) specs.push_back(spec_of(path, "Service"));
  specs.push_back(spec_of("spec/nfs/server", "PersistentVolume"));
  specs.push_back(spec_of("metadata/labels"));
  specs.push_back(spec_of("metadata/annotations"));
}

TransformerConfig make_default_config() {
  TransformerConfig config;
  config.name_prefix.push_back(spec_of("metadata/name"));
  config.name_suffix.push_back(spec_of("metadata/name"));
  config.ns.push_back(spec_of("metadata/name", "Namespace", "", "", true));
  config.ns.push_back(spec_of("spec/service/namespace", "APIService", "apiregistration.k8s.io", "", true));
  config.ns.push_back(
      spec_of("spec/conversion/webhook/clientConfig/service/namespace", "CustomResourceDefinition", "apiextensions.k8s.io"));
  for (const char* pod : {"spec/", "spec/template/spec/"})
    for (const char* path : {"containers[]/image", "initContainers[]/image", "volumes[]/image/reference"})
      config.images.push_back(spec_of(std::string(pod) + path, "", "", "", true));
  for (const char* kind : {"Deployment", "ReplicationController", "ReplicaSet", "StatefulSet"})
    config.replicas.push_back(spec_of("spec/replicas", kind, "", "", true));
  add_labels(config);
  add_names(config);
  add_variables(config);
  config.sort();
  config.has_default = config.only_default = true;
  return config;
}

}  // namespace

Result<void> merge_specs(FieldSpecs& specs, const FieldSpecs& more) {
  for (const FieldSpec& spec : more) {
    auto known = std::find_if(specs.begin(), specs.end(),
                              [&](const FieldSpec& other) { return other.path == spec.path && other.gvk.is_selected(spec.gvk); });
    if (known == specs.end()) {
      if (specs.size() >= kFieldSpecsMax) return Error(Code::too_large, "too many field specs");
      specs.push_back(spec);
    } else if (known->create != spec.create) {
      return Error(Code::conflict, "conflicting field specs: create is true and false for " + spec.path);
    }
  }
  return {};
}

Result<void> TransformerConfig::merge(const TransformerConfig& other) {
  if (has_default && other.only_default) return {};  // most kustomizations have no configuration of their own
  bool is_default = empty() && other.only_default;
  TRY(merge_specs(name_prefix, other.name_prefix).wrap("namePrefix"));
  TRY(merge_specs(name_suffix, other.name_suffix).wrap("nameSuffix"));
  TRY(merge_specs(ns, other.ns).wrap("namespace"));
  TRY(merge_specs(common_labels, other.common_labels).wrap("commonLabels"));
  TRY(merge_specs(labels, other.labels).wrap("labels"));
  TRY(merge_specs(template_labels, other.template_labels).wrap("templateLabels"));
  TRY(merge_specs(common_annotations, other.common_annotations).wrap("commonAnnotations"));
  TRY(merge_specs(var_reference, other.var_reference).wrap("varReference"));
  TRY(merge_specs(images, other.images).wrap("images"));
  TRY(merge_specs(replicas, other.replicas).wrap("replicas"));
  for (const NameReference& reference : other.name_reference) {
    auto known = std::find_if(name_reference.begin(), name_reference.end(),
                              [&](const NameReference& one) { return one.target == reference.target; });
    if (known == name_reference.end()) {
      if (name_reference.size() >= kFieldSpecsMax) return Error(Code::too_large, "nameReference: too many");
      name_reference.push_back(reference);
    } else {
      TRY(merge_specs(known->referrers, reference.referrers).wrap("nameReference"));
    }
  }
  sort();
  has_default = has_default || other.has_default;
  only_default = is_default;
  return {};
}

void TransformerConfig::sort() {
  for (FieldSpecs* specs : {&name_prefix, &name_suffix, &ns, &common_labels, &labels, &template_labels, &common_annotations,
                            &var_reference, &images, &replicas})
    std::stable_sort(specs->begin(), specs->end(),
                     [](const FieldSpec& left, const FieldSpec& right) { return precedes(left.gvk, right.gvk); });
  std::stable_sort(name_reference.begin(), name_reference.end(),
                   [](const NameReference& left, const NameReference& right) { return precedes(left.target, right.target); });
}

const TransformerConfig& default_config() {
  static const TransformerConfig config = make_default_config();
  return config;
}

Result<void> set_fields(Node& object, const FieldSpec& spec, const Creation& creation,
                        const std::function<Result<void>(Node&)>& set) {
  if (!Gvk::of(object).is_selected(spec.gvk)) return {};
  return FieldSetter(spec, creation, set).visit(object, 0).wrap("field " + spec.path);
}

}  // namespace coracle::kustomize
