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
  Key key{request.key.ns, std::string(get_string(*request.object, "spec.serviceAccountName"))};
  ObjectPtr account = find_account(key, cluster, may_wait);
  if (!account)
    return refuse(request, "error looking up service account " + key.text() + ": serviceaccount " + coracle::quoted(key.name) +
                               " not found");
  return account;
}

// ---- the token ----

bool needs_token(const json::value& pod, const Object& account) {
  if (const json::value* own = find(pod, "spec.automountServiceAccountToken"); own && own->is_bool()) return own->get_bool();
  return get_bool(account.json(), "automountServiceAccountToken", true);
}

bool mounts_at(const json::value& container, std::string_view path) {
  for (const json::value& mount : get_array(container, "volumeMounts"))
    if (get_string(mount, "mountPath") == path) return true;
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
  for (const json::value& volume : get_array(pod, "spec.volumes"))
    if (get_string(volume, "name").starts_with(kVolumePrefix) && name.empty()) name = get_string(volume, "name");
  bool there = !name.empty(), mounted = false;
  if (!there) name = std::string(kVolumePrefix) + cluster.suffix();
  for (std::string_view list : {"spec.initContainers", "spec.containers"}) {
    if (!find(pod, list)) continue;
    for (json::value& container : array_at(pod, list)) {
      if (!container.is_object() || mounts_at(container, kTokenPath)) continue;
      array_at(container, "volumeMounts").push_back(json::object{{"name", name}, {"readOnly", true}, {"mountPath", kTokenPath}});
      mounted = true;
    }
  }
  if (mounted && !there) array_at(pod, "spec.volumes").push_back(token_volume(name));
}

// ---- secrets ----

std::set<std::string_view> names_in(const Object& account, std::string_view list) {
  std::set<std::string_view> names;
  for (const json::value& reference : get_array(account.json(), list)) names.insert(get_string(reference, "name"));
  return names;
}

bool enforces_secrets(const Object& account) {
  static constexpr std::array kTrue = {"1", "t", "T", "true", "TRUE", "True"};  // as Go's ParseBool
  return std::find(kTrue.begin(), kTrue.end(), account.annotation(kEnforce)) != kTrue.end();
}

// The first secret that the containers of `list` use and the account does not list; "" if there is none.
std::string foreign_secret(const json::value& pod, std::string_view only, const char* called, const Object& account) {
  std::set<std::string_view> allowed = names_in(account, "secrets");
  std::string why;
  std::string tail = "\" is not allowed because service account " + account.name() + " does not reference that secret";
  visit_containers(*find(pod, "spec"), [&](const json::value& container, std::string_view list, size_t) {
    if (list != only || !why.empty()) return;
    std::string who = std::string(called) + " " + std::string(get_string(container, "name"));
    for (const json::value& variable : get_array(container, "env")) {
      std::string_view name = get_string(variable, "valueFrom.secretKeyRef.name");
      if (find(variable, "valueFrom.secretKeyRef") && !allowed.contains(name) && why.empty())
        why = who + " with envVar " + std::string(get_string(variable, "name")) + " referencing secret.secretName=\"" +
              std::string(name) + tail;
    }
    for (const json::value& source : get_array(container, "envFrom")) {
      std::string_view name = get_string(source, "secretRef.name");
      if (find(source, "secretRef") && !allowed.contains(name) && why.empty())
        why = who + " with envFrom referencing secret.secretName=\"" + std::string(name) + tail;
    }
  });
  return why;
}

std::string foreign_secret(const json::value& pod, const Object& account) {
  std::set<std::string_view> allowed = names_in(account, "secrets"), pulls = names_in(account, "imagePullSecrets");
  for (const json::value& volume : get_array(pod, "spec.volumes")) {
    std::string name(get_string(volume, "secret.secretName"));
    if (find(volume, "secret") && !allowed.contains(name))
      return "volume with secret.secretName=\"" + name + "\" is not allowed because service account " + account.name() +
             " does not reference that secret";
  }
  if (auto why = foreign_secret(pod, "initContainers", "init container", account); !why.empty()) return why;
  if (auto why = foreign_secret(pod, "containers", "container", account); !why.empty()) return why;
  const json::array& used = get_array(pod, "spec.imagePullSecrets");
  for (size_t i = 0; i < used.size(); i++)
    if (std::string name(get_string(used[i], "name")); !pulls.contains(name))
      return "imagePullSecrets[" + std::to_string(i) + "].name=\"" + name + "\" is not allowed because service account " +
             account.name() + " does not reference that imagePullSecret";
  return {};
}

Result<void> check_mirror(const Request& request) {
  const json::value& pod = *request.object;
  if (!get_string(pod, "spec.serviceAccountName").empty())
    return refuse(request, "a mirror pod may not reference service accounts");
  bool secrets = false, tokens = false;
  if (const json::value* spec = find(pod, "spec")) visit_secrets(*spec, [&](std::string_view) { secrets = true; });
  if (secrets) return refuse(request, "a mirror pod may not reference secrets");
  for (const json::value& volume : get_array(pod, "spec.volumes"))
    for (const json::value& source : get_array(volume, "projected.sources"))
      tokens |= find(source, "serviceAccountToken") != nullptr;
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
    std::string name(get_string(pod, "spec.serviceAccountName"));
    if (name.empty()) name = get_string(pod, "spec.serviceAccount");
    if (name.empty()) name = "default";
    make(pod, "spec.serviceAccountName") = name;
    make(pod, "spec.serviceAccount") = name;  // the deprecated field is kept equal
    ObjectPtr account = TRY(account_of(request, cluster, true));
    if (needs_token(pod, *account)) mount_token(pod, cluster);
    if (get_array(pod, "spec.imagePullSecrets").empty())
      if (const json::array& secrets = get_array(account->json(), "imagePullSecrets"); !secrets.empty())
        make(pod, "spec.imagePullSecrets") = secrets;
    return {};
  }

  Result<void> validate(const Request& request, const ClusterState& cluster) const override {
    bool debugs = request.kind == kPod && request.subresource == kEphemeral && request.operation == Operation::update;
    if (!request.creates(kPod) && !debugs) return {};
    const json::value& pod = *request.object;
    if (request.creates(kPod) && is_mirror(view::Pod(pod))) return check_mirror(request);
    if (debugs && get_string(pod, "spec.serviceAccountName").empty())
      return refuse(request, "no service account specified for pod " + request.key.text());
    ObjectPtr account = TRY(account_of(request, cluster, false));
    if (!enforces_secrets(*account)) return {};
    std::string why =
        debugs ? foreign_secret(pod, "ephemeralContainers", "ephemeral container", *account) : foreign_secret(pod, *account);
    if (!why.empty()) return refuse(request, why);
    return {};
  }
};

}  // namespace

std::unique_ptr<Plugin> make_service_account() { return std::make_unique<ServiceAccount>(); }

}  // namespace coracle::admission
