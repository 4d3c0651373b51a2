// SPDX-License-Identifier: Apache-2.0
// Validation of /resize, which changes the CPU and memory of a pod's containers and of the pod itself, and nothing else. Source:
// Kubernetes core validation, ValidatePodResize; KEP-1287, KEP-5419.
#include <algorithm>

#include "store/kinds/pod/pod_kinds.h"
#include "store/kinds/pod/pod_state.h"
#include "store/kinds/pod/pod_validation.h"
#include "store/schema/default.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

constexpr std::string_view kResizable[] = {"cpu", "memory"};

// Gives `owner`, a container or the pod's spec, the CPU and memory of `old`.
void restore_amounts(json::value& owner, const json::value& old) {
  for (std::string_view field : {"limits", "requests"}) {
    std::string path = sub("resources", field);
    json::object amounts = get_object(owner, path);
    for (std::string_view name : kResizable) {
      const json::value* amount = get_object(old, path).if_contains(name);
      if (amount) amounts[name] = *amount;
      else amounts.erase(name);
    }
    if (!amounts.empty()) make(owner, path) = std::move(amounts);
    else if (find(owner, path)) make(owner, "resources").get_object().erase(field);
  }
  // Pods and containers have their resources at the same place.
  view::ResourceRequirements left = view::Container(owner).resources();
  if (left && left.members().empty() && !view::Container(old).has_resources()) owner.get_object().erase("resources");
}

// Without the default policies that a container gets together with its first amount of a resource.
void drop_added_default_policies(json::value& container, const json::value& old) {
  json::array policies = view::Container(container).resize_policy().raw();
  const size_t before = view::Container(old).resize_policy().size();
  auto is_default = [&] { return view::ContainerResizePolicy(policies.back()).restart_policy() == "NotRequired"; };
  while (policies.size() > before && is_default()) policies.pop_back();
  if (!policies.empty()) container.get_object()["resizePolicy"] = std::move(policies);
  else container.get_object().erase("resizePolicy");
}

bool lacks_amounts(const json::value& now, const json::value& before, std::string_view amounts) {
  const json::object& kept = get_object(now, amounts);
  return std::ranges::any_of(get_object(before, amounts), [&](const auto& pair) { return !kept.contains(pair.key()); });
}

// `whose` is "" for a container.
void check_nothing_removed(const json::value& now, const json::value& before, const std::string& path, const std::string& whose,
                           Findings& out) {
  for (auto [field, what] : {std::pair{"resources.requests", "requests"}, std::pair{"resources.limits", "limits"}})
    if (lacks_amounts(now, before, field)) out.forbidden(sub(path, field), whose + "resource " + what + " cannot be removed");
}

bool has_amounts(const json::value& spec) {
  view::ResourceRequirements resources = view::PodSpec(spec).resources();
  return !resources.requests().empty() || !resources.limits().empty();
}

void check_pod_amounts(const json::value& now, const json::value& before, Findings& out) {
  if (!has_amounts(now) && !has_amounts(before)) return;
  if (view::PodSpec(before).has_resources() && !view::PodSpec(now).has_resources())
    return out.forbidden("spec.resources", "pod-level resources cannot be removed");
  check_nothing_removed(now, before, "spec", "pod-level ", out);
  json::value restored = now;
  restore_amounts(restored, before);
  const json::value *left = view::PodSpec(restored).resources().pointer(), *old = view::PodSpec(before).resources().pointer();
  bool same = left && old ? same_json(*left, *old) : left == old;
  if (!same) out.forbidden("spec", "only cpu and memory resources are mutable at pod-level");
}

// Whether both lists have the same containers in the same order.
bool check_order(const json::value& now, const json::value& before, std::string_view list, Findings& out) {
  const json::array &news = get_array(now, list), &olds = get_array(before, list);
  std::string path = sub("spec", list);
  if (news.size() != olds.size()) {
    out.forbidden(path, std::string(list) + " may not be added or removed on resize");
    return false;
  }
  bool same = true;
  for (size_t i = 0; i < olds.size(); ++i) {
    if (view::Container(news[i]).name() == view::Container(olds[i]).name()) continue;
    out.forbidden(sub(item(path, i), "name"), std::string(list) + " may not be renamed or reordered on resize");
    same = false;
  }
  return same;
}

void check_containers(const json::value& now, const json::value& before, std::string_view list, Findings& out) {
  const json::array &news = get_array(now, list), &olds = get_array(before, list);
  bool init = list == "initContainers";
  std::string path = sub("spec", list);
  for (size_t i = 0; i < olds.size(); ++i) {
    check_nothing_removed(news[i], olds[i], item(path, i), "", out);
    json::value restored = news[i];
    if (!restored.is_object()) continue;
    restore_amounts(restored, olds[i]);
    drop_added_default_policies(restored, olds[i]);
    const bool same = same_json(restored, olds[i]);
    if (!same && init) out.forbidden(item(path, i), "only cpu and memory resources for init or sidecar containers are mutable");
    else if (!same) out.forbidden("spec", "only cpu and memory resources are mutable");
    view::Container old(olds[i]);
    if (!init || old.restart_policy() == "Always" || same_json(news[i], olds[i])) continue;
    for (view::ContainerResizePolicy policy : old.resize_policy())
      if (policy.restart_policy() == "RestartContainer")
        out.forbidden(item(path, i), "non-sidecar init containers with a resize policy of RestartContainer cannot be resized");
  }
}

// All but what the checks above look at.
json::value rest_of(json::value spec) {
  for (std::string_view part : {"resources", "containers", "initContainers"}) spec.get_object().erase(part);
  return spec;
}

// A node that can resize tells the resources of running containers.
bool node_can_resize(const json::value& pod) {
  for (view::ContainerStatus status : view::Pod(pod).status().container_statuses())
    if (status.state().has_running()) return status.has_resources();
  return true;
}

}  // namespace

void check_pod_resize(const json::value& now, const json::value& before, Findings& out) {
  if (is_mirror(view::Pod(before))) return out.forbidden("", "static pods cannot be resized");
  if (view::Pod(before).spec().os().name() == "windows") return out.forbidden("", "windows pods cannot be resized");
  std::string_view was = view::Pod(before).status().qos_class();
  if (was.empty()) was = qos_class(before);
  if (was != qos_class(now)) out.invalid("spec", was, "Pod QOS Class may not change as a result of resizing");
  if (!node_can_resize(before)) out.forbidden("spec", "Pod running on node without support for resize");
  view::PodSpec viewed = view::Pod(now).spec(), old_viewed = view::Pod(before).spec();
  if (!viewed || !old_viewed) return;
  const json::value *spec = viewed.pointer(), *old = old_viewed.pointer();
  check_pod_amounts(*spec, *old, out);
  bool same_containers = check_order(*spec, *old, "containers", out);
  if (!check_order(*spec, *old, "initContainers", out) || !same_containers) return;
  for (std::string_view list : {"initContainers", "containers"}) check_containers(*spec, *old, list, out);
  if (!same_json(rest_of(*spec), rest_of(*old))) out.forbidden("spec", "only cpu and memory resources are mutable");
}

}  // namespace coracle::schema
