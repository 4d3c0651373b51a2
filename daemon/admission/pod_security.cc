// SPDX-License-Identifier: Apache-2.0
// PodSecurity: labels of a namespace define what its pods may do. Violating pods are rejected (enforce), recorded in the audit
// log (audit) or warned about (warn); for workloads there are warnings about their pods. There are no exemptions, as in
// Kubernetes without a configuration. Source: pod-security-admission/admission; policy in pod_security_policy.h.
#include <map>
#include <set>

#include "daemon/admission/plugin.h"
#include "daemon/admission/pod.h"
#include "daemon/admission/pod_security_policy.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/object.h"
#include "store/object/status.h"

namespace coracle::admission {
namespace {

constexpr std::string_view kEnforcedPolicy = "pod-security.kubernetes.io/enforce-policy";
constexpr std::string_view kAuditViolations = "pod-security.kubernetes.io/audit-violations";
constexpr std::string_view kAuditError = "pod-security.kubernetes.io/error";
constexpr size_t kPodsMax = 3000;  // pods of a namespace that are checked when its level is raised

// Whether an update changes images or containers: other mutable fields do not matter here.
bool significant(view::PodSpec pod, view::PodSpec old) {
  for (auto list : {&view::PodSpec::containers, &view::PodSpec::init_containers}) {
    auto now = (pod.*list)(), before = (old.*list)();
    if (now.size() != before.size()) return true;
    for (size_t i = 0; i < now.size(); i++)
      if (now[i].image() != before[i].image()) return true;
  }
  std::set<std::pair<std::string_view, std::string_view>> known;  // name and image
  for (view::EphemeralContainer before : old.ephemeral_containers()) known.emplace(before.name(), before.image());
  for (view::EphemeralContainer container : pod.ephemeral_containers())
    if (!known.contains({container.name(), container.image()})) return true;
  return false;
}

Result<void> evaluate(const Request& request, const SecurityPolicy& policy, view::PodTemplateSpec pod, bool enforce) {
  if (!policy.errors.empty()) {
    std::vector<std::string> parts;
    for (const Cause& cause : policy.errors) parts.push_back(cause.field + ": " + cause.message);
    request.annotate(std::string(kAuditError),
                     "Failed to parse policy: " + (parts.size() == 1 ? parts[0] : "[" + join(parts, ", ") + "]"));
  }
  auto audited = violations(policy.audit, pod.metadata(), pod.spec());
  if (!audited.empty())
    request.annotate(std::string(kAuditViolations),
                     "would violate PodSecurity " + quoted(policy.audit.text()) + ": " + details(audited));
  if (enforce) {
    request.annotate(std::string(kEnforcedPolicy), policy.enforce.text());
    auto found = violations(policy.enforce, pod.metadata(), pod.spec());
    if (!found.empty()) return refuse(request, "violates PodSecurity " + quoted(policy.enforce.text()) + ": " + details(found));
  }
  auto warned = violations(policy.warn, pod.metadata(), pod.spec());
  if (!warned.empty()) request.warn("would violate PodSecurity " + quoted(policy.warn.text()) + ": " + details(warned));
  return {};
}

// ---- namespaces ----

// Warns about existing pods that violate the new level, one line per kind of violation with the names of pods.
void warn_of_pods(const Request& request, const ClusterState& cluster, const std::string& ns, const LevelVersion& enforce) {
  struct Seen {
    std::string first;
    size_t count = 0;
  };
  std::map<std::string, Seen> found;
  std::vector<ObjectPtr> pods = cluster.list(kPod, ns), first, more;
  std::set<std::string> controllers;  // of pods with the same controller, one is checked first
  for (ObjectPtr& pod : pods) {
    auto controller = pod->controller();
    (controller && !controllers.insert(controller->uid).second ? more : first).push_back(std::move(pod));
  }
  first.insert(first.end(), more.begin(), more.end());
  size_t total = first.size();
  first.resize(std::min(total, kPodsMax));
  for (const ObjectPtr& pod : first) {
    auto violated = violations(enforce, view::Pod(*pod).metadata(), view::Pod(*pod).spec());
    if (violated.empty()) continue;
    Seen& seen = found[reasons(violated)];
    if (seen.count++ == 0 || pod->name() < seen.first) seen.first = pod->name();
  }
  if (first.size() < total)
    request.warn("new PodSecurity enforce level only checked against the first " + std::to_string(first.size()) + " of " +
                 std::to_string(total) + " existing pods");
  if (!found.empty())
    request.warn("existing pods in namespace " + quoted(ns) + " violate the new PodSecurity enforce level " +
                 quoted(enforce.text()));
  std::set<std::string> lines;
  for (const auto& [why, seen] : found) {
    std::string others = seen.count == 1   ? ""
                         : seen.count == 2 ? " (and 1 other pod)"
                                           : " (and " + std::to_string(seen.count - 1) + " other pods)";
    lines.insert(seen.first + others + ": " + why);
  }
  for (const std::string& line : lines) request.warn(line);
}

Result<void> check_namespace(const Request& request, const ClusterState& cluster) {
  view::ObjectMeta metadata = metadata_of(*request.object);
  std::string name(metadata.name());
  SecurityPolicy policy = policy_of(metadata.labels());
  if (request.operation == Operation::create) {
    if (!policy.errors.empty()) return invalid(kNamespace, name, std::move(policy.errors));
    return {};
  }
  SecurityPolicy before = policy_of(metadata_of(*request.old).labels());
  if (!policy.errors.empty() && policy.errors != before.errors) return invalid(kNamespace, name, std::move(policy.errors));
  bool stricter = policy.enforce.level > before.enforce.level || policy.enforce.minor != before.enforce.minor;
  if (policy.enforce == before.enforce || policy.enforce.level == SecurityLevel::privileged || !stricter) return {};
  warn_of_pods(request, cluster, name, policy.enforce);
  return {};
}

class PodSecurity : public Plugin {
 public:
  std::string_view name() const override { return "PodSecurity"; }

  Result<void> validate(const Request& request, const ClusterState& cluster) const override {
    if (request.operation == Operation::remove) return {};
    if (request.kind == kNamespace) return request.subresource.empty() ? check_namespace(request, cluster) : Result<void>();
    if (request.kind == kPod) return check_pod(request, cluster);
    return check_workload(request, cluster);
  }

 private:
  static Result<void> check_pod(const Request& request, const ClusterState& cluster) {
    const std::string_view sub = request.subresource;
    if (!sub.empty() && sub != "ephemeralcontainers" && sub != "resize") return {};  // the others do not write a pod's spec
    ObjectPtr ns = cluster.get(kNamespace, {"", request.key.ns});
    if (!ns) return internal_error("failed to lookup namespace " + quoted(request.key.ns));
    SecurityPolicy policy = policy_of(ns->labels());
    if (policy.errors.empty() && policy.privileged()) {
      request.annotate(std::string(kEnforcedPolicy), policy.enforce.text());
      return {};
    }
    view::PodTemplateSpec pod = pod_of(request.info, *request.object);
    if (request.old && !significant(pod.spec(), view::Pod(*request.old).spec())) return {};
    return evaluate(request, policy, pod, true);
  }

  static Result<void> check_workload(const Request& request, const ClusterState& cluster) {
    if (!request.subresource.empty()) return {};
    view::PodTemplateSpec pod = pod_of(request.info, *request.object);
    ObjectPtr ns = pod ? cluster.get(kNamespace, {"", request.key.ns}) : nullptr;
    if (!ns) return {};
    SecurityPolicy policy = policy_of(ns->labels());
    bool quiet = policy.errors.empty() && policy.warn.level == SecurityLevel::privileged &&
                 policy.audit.level == SecurityLevel::privileged;
    if (quiet) return {};
    return evaluate(request, policy, pod, false);
  }
};

}  // namespace

std::unique_ptr<Plugin> make_pod_security() { return std::make_unique<PodSecurity>(); }

}  // namespace coracle::admission
