// SPDX-License-Identifier: Apache-2.0
// Pods: begin Pending with a quality-of-service class; admission gives them a service account with its token volume, a
// priority, and the tolerations that everybody gets; deletion is graceful.
// Source: Kubernetes admission controllers ServiceAccount, Priority, DefaultTolerationSeconds; "Pod Quality of Service Classes".
#include <algorithm>

#include "daemon/registry/identity.h"
#include "daemon/registry/kinds/kinds.h"
#include "daemon/registry/metadata.h"
#include "runtime/base/text.h"
#include "store/object/quantity.h"
#include "store/object/status.h"

namespace coracle::registry {
namespace {

constexpr std::string_view kMirror = "kubernetes.io/config.mirror";
constexpr std::string_view kTokenPath = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr std::chrono::seconds kAccountWait{1};  // a new namespace's default account comes from a controller

bool positive(const json::object& amounts, std::string_view resource) {
  const json::value* amount = amounts.if_contains(resource);
  if (!amount) return false;
  auto quantity = Quantity::from_json(*amount);
  return quantity && !quantity->is_zero();
}

bool same_amount(const json::object& a, const json::object& b, std::string_view resource) {
  const json::value *x = a.if_contains(resource), *y = b.if_contains(resource);
  if (!x || !y) return false;
  auto left = Quantity::from_json(*x), right = Quantity::from_json(*y);
  return left && right && *left == *right;
}

template <typename F>
void for_each_container(const json::value& pod, F f) {
  for (std::string_view list : {"spec.initContainers", "spec.containers"})
    for (const json::value& container : get_array(pod, list)) f(container);
}

void forget_status(json::value& object) {
  json::object status{{"phase", "Pending"}, {"qosClass", ""}};
  object.get_object()["status"] = std::move(status);
}

std::string_view qos_class(const json::value& pod) {
  bool any = false, guaranteed = true;
  for_each_container(pod, [&](const json::value& container) {
    const json::object& requests = get_object(container, "resources.requests");
    const json::object& limits = get_object(container, "resources.limits");
    for (std::string_view resource : {"cpu", "memory"}) {
      bool requested = positive(requests, resource), limited = positive(limits, resource);
      any |= requested || limited;
      guaranteed &= limited && (!requested || same_amount(requests, limits, resource));
    }
  });
  if (!any) return "BestEffort";
  return guaranteed ? "Guaranteed" : "Burstable";
}

// ---- service account ----

Result<ObjectPtr> find_account(const Key& key, const Admission& admission) {
  auto found = admission.engine.get(kServiceAccount, key);
  if (found || key.name != "default") return found;
  auto watcher = admission.engine.watch(kServiceAccount, key.ns, 0);
  auto deadline = std::chrono::steady_clock::now() + kAccountWait;
  while (watcher) {
    auto event = (*watcher)->take({}, deadline);
    if (!event || !*event) break;
    if ((*event)->object && (*event)->object->key() == key && (*event)->type != engine::EventType::deleted) return (*event)->object;
  }
  return admission.engine.get(kServiceAccount, key);
}

bool wants_token(const json::value& pod, const Object& account) {
  if (const json::value* own = find(pod, "spec.automountServiceAccountToken")) return !own->is_bool() || own->get_bool();
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
      json::object{{"downwardAPI",
                    json::object{{"items", json::array{json::object{
                                               {"path", "namespace"},
                                               {"fieldRef", json::object{{"apiVersion", "v1"}, {"fieldPath", "metadata.namespace"}}}}}}}}}};
  return json::object{{"name", name}, {"projected", json::object{{"sources", std::move(sources)}, {"defaultMode", 420}}}};
}

void mount_token(json::value& pod) {
  std::string name = "kube-api-access-" + random_suffix();
  bool mounted = false;
  for (std::string_view list : {"spec.initContainers", "spec.containers"}) {
    json::value* containers = const_cast<json::value*>(find(pod, list));
    if (!containers || !containers->is_array()) continue;
    for (json::value& container : containers->get_array()) {
      if (!container.is_object() || mounts_at(container, kTokenPath)) continue;
      json::value& mounts = container.get_object()["volumeMounts"];
      if (!mounts.is_array()) mounts.emplace_array();
      mounts.get_array().push_back(json::object{{"name", name}, {"readOnly", true}, {"mountPath", kTokenPath}});
      mounted = true;
    }
  }
  if (!mounted) return;
  json::value& volumes = make(pod, "spec.volumes");
  if (!volumes.is_array()) volumes.emplace_array();
  volumes.get_array().push_back(token_volume(name));
}

Result<void> admit_account(json::value& pod, const Admission& admission) {
  std::string ns(get_string(pod, "metadata.namespace")), name(get_string(pod, "spec.serviceAccountName"));
  if (name.empty()) name = get_string(pod, "spec.serviceAccount");
  if (name.empty()) name = "default";
  make(pod, "spec.serviceAccountName") = name;
  make(pod, "spec.serviceAccount") = name;
  auto account = find_account({ns, name}, admission);
  if (!account)
    return forbidden(kPod, get_string(pod, "metadata.name"),
                     "error looking up service account " + ns + "/" + name + ": serviceaccount " + coracle::quoted(name) + " not found");
  if (get_array(pod, "spec.imagePullSecrets").empty())
    if (const json::value* secrets = find((*account)->json(), "imagePullSecrets")) make(pod, "spec.imagePullSecrets") = *secrets;
  if (wants_token(pod, **account)) mount_token(pod);
  return {};
}

// ---- priority, tolerations ----

Result<void> admit_priority(json::value& pod) {
  static constexpr std::pair<std::string_view, int64_t> kClasses[] = {
      {"", 0}, {"system-cluster-critical", 2'000'000'000}, {"system-node-critical", 2'000'001'000}};
  std::string_view name = get_string(pod, "spec.priorityClassName");
  auto found = std::find_if(std::begin(kClasses), std::end(kClasses), [&](const auto& row) { return row.first == name; });
  if (found == std::end(kClasses))
    return forbidden(kPod, get_string(pod, "metadata.name"), "no PriorityClass with name " + std::string(name) + " was found");
  const json::value* given = find(pod, "spec.priority");
  if (given && !given->is_null() && get_int(pod, "spec.priority") != found->second)
    return forbidden(kPod, get_string(pod, "metadata.name"),
                     "the integer value of priority (" + to_text(*given) + ") must not be provided in pod spec; priority admission controller computed " +
                         std::to_string(found->second) + " from the given PriorityClass name");
  make(pod, "spec.priority") = found->second;
  if (get_string(pod, "spec.preemptionPolicy").empty()) make(pod, "spec.preemptionPolicy") = "PreemptLowerPriority";
  return {};
}

bool tolerates(const json::array& tolerations, std::string_view taint) {
  return std::any_of(tolerations.begin(), tolerations.end(), [&](const json::value& toleration) {
    std::string_view key = get_string(toleration, "key"), effect = get_string(toleration, "effect");
    return (key.empty() || key == taint) && (effect.empty() || effect == "NoExecute");
  });
}

void add_tolerations(json::value& pod) {
  json::value& list = make(pod, "spec.tolerations");
  if (!list.is_array()) list.emplace_array();
  json::array& all = list.get_array();
  for (std::string_view taint : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
    if (!tolerates(all, taint))
      all.push_back(json::object{{"key", taint}, {"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", 300}});
}

Result<void> admit_create(json::value& pod, const Admission& admission) {
  bool mirror = get_object(pod, "metadata.annotations").contains(kMirror);
  if (!mirror)
    TRY(admit_account(pod, admission));
  add_tolerations(pod);
  TRY(admit_priority(pod));
  make(pod, "status.qosClass") = qos_class(pod);
  return {};
}

}  // namespace

const Strategy& pod_strategy() {
  static const Strategy strategy = [] {
    Strategy s;
    s.kind = &kPod;
    s.deletion.graceful = true;
    s.deletion.counts_generations = true;
    s.prepare_create = forget_status;
    s.admit_create = admit_create;
    return s;
  }();
  return strategy;
}

}  // namespace coracle::registry
