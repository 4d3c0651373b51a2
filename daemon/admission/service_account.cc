// SPDX-License-Identifier: Apache-2.0
// ServiceAccount: a pod runs as a service account of its namespace ("default" if it names none). It gets a volume with the
// account's token, and the account's pull secrets. An account may restrict its pods to its own secrets. Source: Kubernetes
// plugin/pkg/admission/serviceaccount.
#include <algorithm>
#include <array>
#include <set>

#include "daemon/admission/plugin.h"
#include "daemon/admission/pod.h"
#include "runtime/base/text.h"
#include "store/object/object.h"

namespace coracle::admission {
namespace {

constexpr std::string_view kTokenPath = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr std::string_view kVolumePrefix = "kube-api-access-";
constexpr std::string_view kEnforce = "kubernetes.io/enforce-mountable-secrets";
constexpr std::string_view kEphemeral = "ephemeralcontainers";
constexpr std::chrono::seconds kAccountWait{1};  // a controller creates a new namespace's default account

// ---- the account ----

ObjectPtr find_account(const Key& key, const ClusterState& cluster, bool may_wait) {
  ObjectPtr found = cluster.get(kServiceAccount, key);
  if (found || key.name != "default" || !may_wait) return found;
  auto watcher = cluster.engine().watch(kServiceAccount, key.ns, 0);
  auto deadline = std::chrono::steady_clock::now() + kAccountWait;
  while (watcher) {
    auto event = (*watcher)->take({}, deadline);
    if (!event || !*event) break;
    if ((*event)->object && (*event)->object->key() == key && (*event)->type != engine::EventType::deleted)
      return (*event)->object;
  }
  return cluster.get(kServiceAccount, key);
}

Result<ObjectPtr> account_of(const Request& request, const ClusterState& cluster, bool may_wait) {
  Key key{request.key.ns, std::string(view::Pod(*request.object).spec().service_account_name())};
  ObjectPtr account = find_account(key, cluster, may_wait);
  if (!account)
    return refuse(request, "error looking up service account " + key.text() + ": serviceaccount " + coracle::quoted(key.name) +
                               " not found");
  return account;
}

// ---- the token ----

bool needs_token(view::PodSpec pod, const Object& account) {
  return pod.automount_service_account_token_or(view::ServiceAccount(account).automount_service_account_token_or(true));
}

bool mounts_at(view::Container container, std::string_view path) {
  for (view::VolumeMount mount : container.volume_mounts())
    if (mount.mount_path() == path) return true;
  return false;
}

json::value token_volume(std::string_view name) {
  json::array sources{
      json::object{{"serviceAccountToken", json::object{{"expirationSeconds", 3607}, {"path", "token"}}}},
      json::object{{"configMap", json::object{{"name", "kube-root-ca.crt"},
                                              {"items", json::array{json::object{{"key", "ca.crt"}, {"path", "ca.crt"}}}}}}},
      json::object{
          {"downwardAPI",
           json::object{{"items", json::array{json::object{{"path", "namespace"},
                                                           {"fieldRef", json::object{{"apiVersion", "v1"},
                                                                                     {"fieldPath", "metadata.namespace"}}}}}}}}}};
  return json::object{{"name", name}, {"projected", json::object{{"sources", std::move(sources)}, {"defaultMode", 420}}}};
}

void mount_token(json::value& pod, const ClusterState& cluster) {
  std::string name;
  for (view::Volume volume : view::Pod(pod).spec().volumes())
    if (volume.name().starts_with(kVolumePrefix) && name.empty()) name = volume.name();
  bool there = !name.empty(), mounted = false;
  if (!there) name = std::string(kVolumePrefix) + cluster.suffix();
  for (std::string_view list : {"spec.initContainers", "spec.containers"}) {
    if (!find(pod, list)) continue;
    for (json::value& container : make_array(pod, list)) {
      if (!container.is_object() || mounts_at(view::Container(container), kTokenPath)) continue;
      make_array(container, "volumeMounts")
          .push_back(json::object{{"name", name}, {"readOnly", true}, {"mountPath", kTokenPath}});
      mounted = true;
    }
  }
  if (mounted && !there) make_array(pod, "spec.volumes").push_back(token_volume(name));
}

// ---- secrets ----

template <typename T>
std::set<std::string_view> names_in(view::Range<T> references) {
  std::set<std::string_view> names;
  for (T reference : references) names.insert(reference.name());
  return names;
}

bool enforces_secrets(const Object& account) {
  static constexpr std::array kTrue = {"1", "t", "T", "true", "TRUE", "True"};  // as Go's ParseBool
  return std::find(kTrue.begin(), kTrue.end(), account.annotation(kEnforce)) != kTrue.end();
}

// The first secret that the containers of `list` use and the account does not list; "" if there is none.
std::string foreign_secret(view::PodSpec pod, std::string_view only, const char* called, const Object& account) {
  std::set<std::string_view> allowed = names_in(view::ServiceAccount(account).secrets());
  std::string why;
  std::string tail = "\" is not allowed because service account " + account.name() + " does not reference that secret";
  visit_containers(pod, [&](view::Container container, std::string_view list, size_t) {
    if (list != only || !why.empty()) return;
    std::string who = std::string(called) + " " + std::string(container.name());
    for (view::EnvVar variable : container.env()) {
      view::SecretKeySelector key = variable.value_from().secret_key_ref();
      if (key && !allowed.contains(key.name()) && why.empty())
        why = who + " with envVar " + std::string(variable.name()) + " referencing secret.secretName=\"" +
              std::string(key.name()) + tail;
    }
    for (view::EnvFromSource source : container.env_from()) {
      view::SecretEnvSource secret = source.secret_ref();
      if (secret && !allowed.contains(secret.name()) && why.empty())
        why = who + " with envFrom referencing secret.secretName=\"" + std::string(secret.name()) + tail;
    }
  });
  return why;
}

std::string foreign_secret(view::PodSpec pod, const Object& account) {
  view::ServiceAccount listed(account);
  std::set<std::string_view> allowed = names_in(listed.secrets()), pulls = names_in(listed.image_pull_secrets());
  for (view::Volume volume : pod.volumes()) {
    std::string name(volume.secret().secret_name());
    if (volume.has_secret() && !allowed.contains(name))
      return "volume with secret.secretName=\"" + name + "\" is not allowed because service account " + account.name() +
             " does not reference that secret";
  }
  if (auto why = foreign_secret(pod, "initContainers", "init container", account); !why.empty()) return why;
  if (auto why = foreign_secret(pod, "containers", "container", account); !why.empty()) return why;
  auto used = pod.image_pull_secrets();
  for (size_t i = 0; i < used.size(); i++)
    if (std::string name(used[i].name()); !pulls.contains(name))
      return "imagePullSecrets[" + std::to_string(i) + "].name=\"" + name + "\" is not allowed because service account " +
             account.name() + " does not reference that imagePullSecret";
  return {};
}

Result<void> check_mirror(const Request& request) {
  view::PodSpec pod = view::Pod(*request.object).spec();
  if (!pod.service_account_name().empty()) return refuse(request, "a mirror pod may not reference service accounts");
  bool secrets = false, tokens = false;
  visit_secrets(pod, [&](std::string_view) { secrets = true; });
  if (secrets) return refuse(request, "a mirror pod may not reference secrets");
  for (view::Volume volume : pod.volumes())
    for (view::VolumeProjection source : volume.projected().sources()) tokens |= source.has_service_account_token();
  if (tokens) return refuse(request, "a mirror pod may not use ServiceAccountToken volume projections");
  return {};
}

class ServiceAccount : public Plugin {
 public:
  std::string_view name() const override { return "ServiceAccount"; }

  Result<void> admit(Request& request, const ClusterState& cluster) const override {
    if (!request.creates(kPod)) return {};
    json::value& pod = *request.object;
    if (is_mirror(view::Pod(pod))) return check_mirror(request);
    view::PodSpec before = view::Pod(pod).spec();
    std::string name(before.service_account_name());
    if (name.empty()) name = before.service_account();
    if (name.empty()) name = "default";
    make(pod, "spec.serviceAccountName") = name;
    make(pod, "spec.serviceAccount") = name;  // the deprecated field is kept equal
    ObjectPtr account = TRY(account_of(request, cluster, true));
    if (needs_token(view::Pod(pod).spec(), *account)) mount_token(pod, cluster);
    if (view::Pod(pod).spec().image_pull_secrets().empty())
      if (const json::array& secrets = view::ServiceAccount(*account).image_pull_secrets().raw(); !secrets.empty())
        make(pod, "spec.imagePullSecrets") = secrets;
    return {};
  }

  Result<void> validate(const Request& request, const ClusterState& cluster) const override {
    bool debugs = request.kind == kPod && request.subresource == kEphemeral && request.operation == Operation::update;
    if (!request.creates(kPod) && !debugs) return {};
    view::Pod pod(*request.object);
    if (request.creates(kPod) && is_mirror(pod)) return check_mirror(request);
    if (debugs && pod.spec().service_account_name().empty())
      return refuse(request, "no service account specified for pod " + request.key.text());
    ObjectPtr account = TRY(account_of(request, cluster, false));
    if (!enforces_secrets(*account)) return {};
    std::string why = debugs ? foreign_secret(pod.spec(), "ephemeralContainers", "ephemeral container", *account)
                             : foreign_secret(pod.spec(), *account);
    if (!why.empty()) return refuse(request, why);
    return {};
  }
};

}  // namespace

std::unique_ptr<Plugin> make_service_account() { return std::make_unique<ServiceAccount>(); }

}  // namespace coracle::admission
