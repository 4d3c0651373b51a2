// SPDX-License-Identifier: Apache-2.0
// Changes of an existing pod: valid transitions of its status, and ephemeral containers, which can only be added.
// pod_validation.cc checks changes of the main resource, pod_resize_validation.cc those of amounts. Source: core/v1 API
// reference, Pod; Kubernetes "Ephemeral Containers".
#include <map>
#include <set>

#include "runtime/base/text.h"
#include "store/kinds/pod/pod_kinds.h"
#include "store/kinds/pod/pod_validation.h"
#include "store/schema/validate/syntax.h"

namespace coracle::schema {
namespace {

constexpr std::string_view kMirror = "kubernetes.io/config.mirror";

// A terminated container that is not restarted must stay terminated.
void check_ends(const json::value& now, const json::value& before, std::string_view list, std::string_view policy,
                Findings& out) {
  if (policy == "Always") return;
  std::string path = sub("status", list);
  const json::array& olds = get_array(before, path);
  std::set<std::string_view> sidecars;
  std::map<std::string_view, size_t> going_on;  // number of such statuses by name
  if (list == "initContainerStatuses")
    for (const json::value& container : get_array(before, "spec.initContainers"))
      if (get_string(container, "restartPolicy") == "Always") sidecars.insert(get_string(container, "name"));
  for (const json::value& status : get_array(now, path))
    if (!find(status, "state.terminated")) ++going_on[get_string(status, "name")];
  for (size_t i = 0; i < olds.size(); ++i) {
    const json::value* end = find(olds[i], "state.terminated");
    if (!end || (get_int(*end, "exitCode") != 0 && policy == "OnFailure")) continue;
    std::string_view name = get_string(olds[i], "name");
    auto found = sidecars.contains(name) ? going_on.end() : going_on.find(name);
    size_t count = found == going_on.end() ? 0 : found->second;
    for (size_t n = 0; n < count && !out.full(); ++n) {
      out.forbidden(sub(item(path, i), "state"), "may not be transitioned to non-terminated state");
    }
  }
}

void check_status_addresses(const json::value& now, std::string_view list, Findings& out) {
  std::string path = sub("status", list);
  const json::array& addresses = get_array(now, path);
  std::set<std::string_view> seen;
  size_t four = 0;
  for (size_t i = 0; i < addresses.size(); ++i) {
    std::string_view ip = get_string(addresses[i], "ip");
    out.invalid_all(item(path, i), ip, ip_problems(ip, true));
    if (addresses.size() > 1 && !seen.insert(ip).second) out.duplicate_json(item(path, i), addresses[i]);
    four += ip.find(':') == ip.npos;
  }
  bool one_of_each = addresses.size() == 2 && four == 1;
  if (addresses.size() > 1 && !one_of_each)
    out.invalid_json(path, addresses, "may specify no more than one IP for each IP family");
}

void check_debug_containers(const json::value& now, const json::value& before, Findings& out) {
  if (get_object(before, "metadata.annotations").contains(kMirror)) {
    return out.forbidden("", "static pods do not support ephemeral containers");
  }
  std::map<std::string_view, const json::value*> news;  // the first of each name
  for (const json::value& container : get_array(now, "spec.ephemeralContainers"))
    news.emplace(get_string(container, "name"), &container);
  for (const json::value& old : get_array(before, "spec.ephemeralContainers")) {
    std::string_view name = get_string(old, "name");
    auto kept = news.find(name);
    if (kept == news.end()) {
      out.forbidden("spec.ephemeralContainers", "existing ephemeral containers " + quoted(name) + " may not be removed\n");
    } else if (*kept->second != old) {
      out.forbidden("spec.ephemeralContainers", "existing ephemeral containers " + quoted(name) + " may not be changed\n");
    }
  }
}

// Annotations of a pod that the server itself reads.
void check_pod_annotations(const json::value& pod, Findings& out) {
  constexpr std::string_view kCost = "controller.kubernetes.io/pod-deletion-cost";
  const json::object& annotations = get_object(pod, "metadata.annotations");
  if (const json::value* cost = annotations.if_contains(kCost); cost && cost->is_string()) {
    std::string_view text = cost->get_string();
    bool signless = !text.starts_with('+') && !(text.size() > 1 && text.starts_with('0'));
    if (!signless || !parse_number<int32_t>(text))
      out.invalid(entry("metadata.annotations", kCost), text, "must be a 32bit integer");
  }
  const json::value* mirror = annotations.if_contains(kMirror);
  if (mirror && mirror->is_string() && get_string(pod, "spec.nodeName").empty()) {
    out.invalid(entry("metadata.annotations", kMirror), mirror->get_string(),
                "must set spec.nodeName if mirror pod annotation is set");
  }
  check_profile_annotations(pod, out);
}

// The claims that are made for ephemeral volumes have the names of both.
void check_claim_names(const json::value& pod, Findings& out) {
  std::string_view name = get_string(pod, "metadata.name");
  const json::array& volumes = get_array(pod, "spec.volumes");
  for (size_t i = 0; i < volumes.size() && !name.empty(); ++i) {
    std::string_view volume = get_string(volumes[i], "name");
    if (volume.empty() || !find(volumes[i], "ephemeral")) continue;
    std::string claim = std::string(name) + "-" + std::string(volume);
    for (const std::string& problem : dns_subdomain_problems(claim))
      out.invalid(sub(item("spec.volumes", i), "name"), volume, "PVC name " + quoted(claim) + ": " + problem);
  }
}

}  // namespace

void check_images(const json::value& pod, Findings& out) {
  for (std::string_view list : {"spec.initContainers", "spec.containers", "spec.ephemeralContainers"}) {
    const json::array& containers = get_array(pod, list);
    for (size_t i = 0; i < containers.size(); ++i) {
      std::string_view image = get_string(containers[i], "image");
      if (trim(image).size() != image.size())
        out.invalid(sub(item(std::string(list), i), "image"), image, "must not have leading or trailing whitespace");
    }
  }
}

void check_pod_create(const json::value& pod, Findings& out) {
  if (!get_array(pod, "spec.ephemeralContainers").empty()) out.forbidden("spec.ephemeralContainers", "cannot be set on create");
  if (!get_string(pod, "spec.nodeName").empty() && !get_array(pod, "spec.schedulingGates").empty()) {
    out.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared");
  }
  check_pod_annotations(pod, out);
  check_profiles_agree(pod, out);
  check_images(pod, out);
  check_claim_names(pod, out);
  if (!get_string(pod, "spec.serviceAccountName").empty()) return;
  const json::array& volumes = get_array(pod, "spec.volumes");
  for (size_t i = 0; i < volumes.size(); ++i) {
    const json::array& sources = get_array(volumes[i], "projected.sources");
    for (size_t j = 0; j < sources.size(); ++j) {
      if (find(sources[j], "serviceAccountToken"))
        out.forbidden(sub(item(sub(item("spec.volumes", i), "projected.sources"), j), "serviceAccountToken"),
                      "must not be specified when serviceAccountName is not set");
    }
  }
}

void check_pod_annotations_update(const json::value& now, const json::value& before, Findings& out) {
  constexpr std::string_view kAppArmor = "container.apparmor.security.beta.kubernetes.io/";
  const json::object &news = get_object(now, "metadata.annotations"), &olds = get_object(before, "metadata.annotations");
  for (const auto& pair : olds) {
    const json::value* kept = news.if_contains(pair.key());
    if (kept && *kept == pair.value()) continue;
    std::string at = entry("metadata.annotations", pair.key());
    if (std::string_view(pair.key()).starts_with(kAppArmor)) out.forbidden(at, "may not remove or update AppArmor annotations");
    if (pair.key() == kMirror) out.forbidden(at, "may not remove or update mirror pod annotation");
  }
  for (const auto& pair : news) {
    if (olds.contains(pair.key())) continue;
    std::string at = entry("metadata.annotations", pair.key());
    if (std::string_view(pair.key()).starts_with(kAppArmor)) out.forbidden(at, "may not add AppArmor annotations");
    if (pair.key() == kMirror) out.forbidden(at, "may not add mirror pod annotation");
  }
  if (olds != news) check_pod_annotations(now, out);
}

void check_pod_status(const json::value& now, const json::value& before, Findings& out) {
  const json::array& conditions = get_array(now, "status.conditions");
  for (size_t i = 0; i < conditions.size(); ++i) {
    std::string_view type = get_string(conditions[i], "type");
    out.invalid_all(sub(item("metadata.conditions", i), "Type"), type, qualified_name_problems(type));  // Kubernetes' own path
  }
  std::string_view nominated = get_string(now, "status.nominatedNodeName");
  if (!nominated.empty() && nominated != get_string(before, "status.nominatedNodeName")) {
    out.invalid_all("status.nominatedNodeName", nominated, dns_subdomain_problems(nominated));
  }
  if (const json::value* qos = find(before, "status.qosClass"); qos && !get_string(before, "status.qosClass").empty())
    check_immutable(out, "status.qosClass", find(now, "status.qosClass"), qos);
  std::string_view policy = get_string(before, "spec.restartPolicy");
  check_ends(now, before, "containerStatuses", policy, out);
  check_ends(now, before, "initContainerStatuses", policy, out);
  check_ends(now, before, "ephemeralContainerStatuses", "Never", out);
  check_status_addresses(now, "podIPs", out);
  check_status_addresses(now, "hostIPs", out);
  const json::array& hosts = get_array(now, "status.hostIPs");
  if (!hosts.empty() && get_string(hosts[0], "ip") != get_string(now, "status.hostIP")) {
    out.invalid("status.hostIPs[0].ip", get_string(hosts[0], "ip"), "must be equal to `hostIP`");
  }
}

void check_gates_only_go(const json::value& now, const json::value& before, Findings& out) {
  std::set<std::string_view> olds;
  for (const json::value& gate : get_array(before, "spec.schedulingGates")) olds.insert(get_string(gate, "name"));
  const json::array& news = get_array(now, "spec.schedulingGates");
  for (size_t i = 0; i < news.size(); ++i) {
    std::string_view name = get_string(news[i], "name");
    if (olds.contains(name)) continue;
    out.forbidden(sub(item("spec.schedulingGates", i), "name"),
                  "only deletion is allowed, but found new scheduling gate '" + std::string(name) + "'");
  }
}

void check_pod_subresource(const json::value& now, const json::value& before, std::string_view subresource, Findings& out) {
  if (subresource == "ephemeralcontainers") check_debug_containers(now, before, out);
}

}  // namespace coracle::schema
