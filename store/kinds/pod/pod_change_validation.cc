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
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

constexpr std::string_view kMirror = "kubernetes.io/config.mirror";

// A terminated container that is not restarted must stay terminated. `sidecars`: names of containers that are restarted whatever
// the policy says.
void check_ends(view::Range<view::ContainerStatus> now, view::Range<view::ContainerStatus> olds,
                const std::set<std::string_view>& sidecars, std::string_view path, std::string_view policy, Findings& out) {
  if (policy == "Always") return;
  std::map<std::string_view, size_t> going_on;  // number of such statuses by name
  for (view::ContainerStatus status : now)
    if (!status.state().has_terminated()) ++going_on[status.name()];
  for (size_t i = 0; i < olds.size(); ++i) {
    view::ContainerStateTerminated end = olds[i].state().terminated();
    if (!end || (end.exit_code() != 0 && policy == "OnFailure")) continue;
    std::string_view name = olds[i].name();
    auto found = sidecars.contains(name) ? going_on.end() : going_on.find(name);
    size_t count = found == going_on.end() ? 0 : found->second;
    for (size_t n = 0; n < count && !out.full(); ++n) {
      out.forbidden(sub(item(std::string(path), i), "state"), "may not be transitioned to non-terminated state");
    }
  }
}

template <typename Address>
void check_status_addresses(view::Range<Address> addresses, std::string_view path, Findings& out) {
  std::set<std::string_view> seen;
  size_t four = 0;
  for (size_t i = 0; i < addresses.size(); ++i) {
    std::string_view ip = addresses[i].ip();
    const std::vector<std::string> problems = ip_problems(ip, true);
    if (!problems.empty()) out.invalid_all(item(std::string(path), i), ip, problems);
    if (addresses.size() > 1 && !seen.insert(ip).second) out.duplicate_json(item(std::string(path), i), addresses[i].raw());
    four += ip.find(':') == ip.npos;
  }
  bool one_of_each = addresses.size() == 2 && four == 1;
  if (addresses.size() > 1 && !one_of_each)
    out.invalid_json(std::string(path), addresses.raw(), "may specify no more than one IP for each IP family");
}

void check_debug_containers(view::Pod now, view::Pod before, Findings& out) {
  if (before.metadata().annotations().contains(kMirror)) {
    return out.forbidden("", "static pods do not support ephemeral containers");
  }
  std::map<std::string_view, const json::value*> news;  // the first of each name
  for (view::EphemeralContainer container : now.spec().ephemeral_containers()) news.emplace(container.name(), &container.raw());
  for (view::EphemeralContainer old : before.spec().ephemeral_containers()) {
    std::string_view name = old.name();
    auto kept = news.find(name);
    if (kept == news.end()) {
      out.forbidden("spec.ephemeralContainers", "existing ephemeral containers " + quoted(name) + " may not be removed\n");
    } else if (!same_json(*kept->second, old.raw())) {
      out.forbidden("spec.ephemeralContainers", "existing ephemeral containers " + quoted(name) + " may not be changed\n");
    }
  }
}

// Annotations of a pod that the server itself reads.
void check_pod_annotations(const json::value& pod, Findings& out) {
  constexpr std::string_view kCost = "controller.kubernetes.io/pod-deletion-cost";
  const json::object& annotations = view::Pod(pod).metadata().annotations();
  if (const json::value* cost = annotations.if_contains(kCost); cost && cost->is_string()) {
    std::string_view text = cost->get_string();
    bool signless = !text.starts_with('+') && !(text.size() > 1 && text.starts_with('0'));
    if (!signless || !parse_number<int32_t>(text))
      out.invalid(entry("metadata.annotations", kCost), text, "must be a 32bit integer");
  }
  const json::value* mirror = annotations.if_contains(kMirror);
  if (mirror && mirror->is_string() && view::Pod(pod).spec().node_name().empty()) {
    out.invalid(entry("metadata.annotations", kMirror), mirror->get_string(),
                "must set spec.nodeName if mirror pod annotation is set");
  }
  check_profile_annotations(pod, out);
}

// The claims that are made for ephemeral volumes have the names of both.
void check_claim_names(view::Pod pod, Findings& out) {
  std::string_view name = pod.metadata().name();
  view::Range<view::Volume> volumes = pod.spec().volumes();
  for (size_t i = 0; i < volumes.size() && !name.empty(); ++i) {
    std::string_view volume = volumes[i].name();
    if (volume.empty() || !volumes[i].has_ephemeral()) continue;
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
      std::string_view image = view::Container(containers[i]).image();
      if (trim(image).size() != image.size())
        out.invalid(sub(item(std::string(list), i), "image"), image, "must not have leading or trailing whitespace");
    }
  }
}

void check_pod_create(const json::value& pod, Findings& out) {
  view::PodSpec spec = view::Pod(pod).spec();
  if (!spec.ephemeral_containers().empty()) out.forbidden("spec.ephemeralContainers", "cannot be set on create");
  if (!spec.node_name().empty() && !spec.scheduling_gates().empty()) {
    out.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared");
  }
  check_pod_annotations(pod, out);
  check_profiles_agree(pod, out);
  check_images(pod, out);
  check_claim_names(view::Pod(pod), out);
  if (!spec.service_account_name().empty()) return;
  view::Range<view::Volume> volumes = spec.volumes();
  for (size_t i = 0; i < volumes.size(); ++i) {
    view::Range<view::VolumeProjection> sources = volumes[i].projected().sources();
    for (size_t j = 0; j < sources.size(); ++j) {
      if (sources[j].has_service_account_token())
        out.forbidden(sub(item(sub(item("spec.volumes", i), "projected.sources"), j), "serviceAccountToken"),
                      "must not be specified when serviceAccountName is not set");
    }
  }
}

void check_pod_annotations_update(const json::value& now, const json::value& before, Findings& out) {
  constexpr std::string_view kAppArmor = "container.apparmor.security.beta.kubernetes.io/";
  const json::object &news = view::Pod(now).metadata().annotations(), &olds = view::Pod(before).metadata().annotations();
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
  if (!same_json(olds, news)) check_pod_annotations(now, out);
}

void check_pod_status(const json::value& now, const json::value& before, Findings& out) {
  view::PodStatus status = view::Pod(now).status(), old = view::Pod(before).status();
  view::Range<view::PodCondition> conditions = status.conditions();
  for (size_t i = 0; i < conditions.size(); ++i) {
    std::string_view type = conditions[i].type();
    const std::vector<std::string> problems = qualified_name_problems(type);
    if (!problems.empty()) out.invalid_all(sub(item("metadata.conditions", i), "Type"), type, problems);  // Kubernetes' own path
  }
  std::string_view nominated = status.nominated_node_name();
  if (!nominated.empty() && nominated != old.nominated_node_name()) {
    out.invalid_all("status.nominatedNodeName", nominated, dns_subdomain_problems(nominated));
  }
  if (!old.qos_class().empty()) {
    const json::value qos(status.qos_class()), old_qos(old.qos_class());
    check_immutable(out, "status.qosClass", status.has_qos_class() ? &qos : nullptr, &old_qos);
  }
  view::PodSpec spec = view::Pod(before).spec();
  std::set<std::string_view> sidecars;
  for (view::Container container : spec.init_containers())
    if (container.restart_policy() == "Always") sidecars.insert(container.name());
  check_ends(status.container_statuses(), old.container_statuses(), {}, "status.containerStatuses", spec.restart_policy(), out);
  check_ends(status.init_container_statuses(), old.init_container_statuses(), sidecars, "status.initContainerStatuses",
             spec.restart_policy(), out);
  check_ends(status.ephemeral_container_statuses(), old.ephemeral_container_statuses(), {}, "status.ephemeralContainerStatuses",
             "Never", out);
  check_status_addresses(status.pod_ips(), "status.podIPs", out);
  check_status_addresses(status.host_ips(), "status.hostIPs", out);
  view::Range<view::HostIP> hosts = status.host_ips();
  if (!hosts.empty() && hosts[0].ip() != status.host_ip()) {
    out.invalid("status.hostIPs[0].ip", hosts[0].ip(), "must be equal to `hostIP`");
  }
}

void check_gates_only_go(const json::value& now, const json::value& before, Findings& out) {
  std::set<std::string_view> olds;
  for (view::PodSchedulingGate gate : view::Pod(before).spec().scheduling_gates()) olds.insert(gate.name());
  view::Range<view::PodSchedulingGate> news = view::Pod(now).spec().scheduling_gates();
  for (size_t i = 0; i < news.size(); ++i) {
    std::string_view name = news[i].name();
    if (olds.contains(name)) continue;
    out.forbidden(sub(item("spec.schedulingGates", i), "name"),
                  "only deletion is allowed, but found new scheduling gate '" + std::string(name) + "'");
  }
}

void check_pod_subresource(const json::value& now, const json::value& before, std::string_view subresource, Findings& out) {
  if (subresource == "ephemeralcontainers") check_debug_containers(view::Pod(now), view::Pod(before), out);
}

}  // namespace coracle::schema
