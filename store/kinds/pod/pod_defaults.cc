// SPDX-License-Identifier: Apache-2.0
// Defaults of pods that depend on other fields: the pull policy follows from the image's tag, requests from limits, and host
// ports of a hostNetwork pod from its container ports. Source: core/v1 API reference, Pod and Container.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "store/kinds/pod/pod_kinds.h"
#include "store/object/quantity.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

// True for an image without a digest whose tag is "latest" or missing: it may change, so it is pulled each time.
bool names_latest(std::string_view image) {
  if (image.find('@') != image.npos) return false;
  size_t slash = image.rfind('/');
  size_t colon = image.rfind(':');
  bool tagged = colon != image.npos && (slash == image.npos || colon > slash);
  return !tagged || image.substr(colon + 1) == "latest";
}

std::string_view pull_policy(std::string_view image) { return names_latest(image) ? "Always" : "IfNotPresent"; }

void default_container(json::object& container) {
  if (unset(container, "imagePullPolicy")) container["imagePullPolicy"] = pull_policy(text_at(container, "image"));
}

void default_image_volume(json::object& image) {
  if (unset(image, "pullPolicy")) image["pullPolicy"] = pull_policy(text_at(image, "reference"));
}

void default_volume(json::object& volume) {
  bool has_source = volume.size() > (volume.contains("name") ? 1u : 0u);
  if (!has_source) volume["emptyDir"].emplace_object();
}

// serviceAccount is the deprecated name of serviceAccountName; both are written.
void default_pod_spec(json::object& spec) {
  std::string account(text_at(spec, "serviceAccountName"));
  if (account.empty()) account = text_at(spec, "serviceAccount");
  if (account.empty()) return;
  spec["serviceAccountName"] = account;
  spec["serviceAccount"] = account;
}

void requests_from_limits(json::object& resources) {
  json::object* limits = object_at(resources, "limits");
  if (!limits || limits->empty()) return;
  json::object copied = *limits;
  if (!object_at(resources, "requests")) resources["requests"].emplace_object();
  json::object& requests = resources["requests"].get_object();
  json::object merged;
  for (const auto& pair : copied) {
    if (!requests.contains(pair.key())) requests[pair.key()] = pair.value();
  }
  std::vector<std::string> names;  // map keys are sorted
  for (const auto& pair : requests) names.emplace_back(pair.key());
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) merged[name] = requests[name];
  requests = std::move(merged);
}

// The sum of the requests of containers that run together; nothing if there is none.
std::optional<Quantity> aggregated_request(const json::object& spec, std::string_view resource) {
  static const json::array none;
  auto containers = [&](std::string_view list) -> const json::array& {
    const json::value* found = spec.if_contains(list);
    return found && found->is_array() ? found->get_array() : none;
  };
  Quantity sum, sidecars, largest;
  bool any = false;
  auto request_of = [&](view::Container container) {
    const json::value* asked = container.resources().requests().if_contains(resource);
    any |= asked != nullptr;
    return asked ? Quantity::from_json(*asked).value_or(Quantity()) : Quantity();
  };
  for (const json::value& one : containers("initContainers")) {
    view::Container container(one);
    Quantity request = request_of(container);
    if (container.restart_policy() == "Always") {
      sidecars += request;
      continue;
    }
    request += sidecars;  // it runs beside the earlier sidecars
    largest = std::max(largest, request);
  }
  for (const json::value& one : containers("containers")) sum += request_of(view::Container(one));
  sum += sidecars;
  if (!any) return std::nullopt;
  return std::max(sum, largest);
}

// For a pod with pod-level resources: the request is the sum of its containers' requests, otherwise the pod's limit. Source:
// KEP-2837, pod-level resources.
void default_pod_requests(json::object& spec) {
  json::object* resources = object_at(spec, "resources");
  if (!resources) return;
  json::object* limits = object_at(*resources, "limits");
  bool says_something =
      (limits && !limits->empty()) || (object_at(*resources, "requests") && !object_at(*resources, "requests")->empty());
  if (!says_something) return;
  for (std::string_view name : {"cpu", "memory"}) {
    json::object* requests = object_at(*resources, "requests");
    if (requests && requests->contains(name)) continue;
    auto asked = aggregated_request(spec, name);
    if (!asked) continue;
    if (!requests) requests = &(*resources)["requests"].emplace_object();
    (*requests)[name] = asked->text();
  }
  requests_from_limits(*resources);
}

void resize_policies(json::object& container) {
  json::object* resources = object_at(container, "resources");
  json::object* requests = resources ? object_at(*resources, "requests") : nullptr;
  if (!requests) return;
  for (std::string_view resource : {"cpu", "memory"}) {
    if (!requests->contains(resource)) continue;
    if (!array_at(container, "resizePolicy")) container["resizePolicy"].emplace_array();
    json::array& policies = container["resizePolicy"].get_array();
    bool named = false;
    for (const json::value& policy : policies) named = named || view::ContainerResizePolicy(policy).resource_name() == resource;
    if (!named) policies.push_back({{"resourceName", resource}, {"restartPolicy", "NotRequired"}});
  }
}

void host_ports(json::object& container) {
  json::array* ports = array_at(container, "ports");
  if (!ports) return;
  for (json::value& port : *ports) {
    json::object* one = port.if_object();
    if (one && unset(*one, "hostPort") && one->contains("containerPort")) (*one)["hostPort"] = (*one)["containerPort"];
  }
}

// Defaults for pods only: a template stays unchanged.
void default_pod(json::object& pod) {
  json::object* spec = object_at(pod, "spec");
  if (!spec) return;
  if (unset(*spec, "enableServiceLinks", true)) (*spec)["enableServiceLinks"] = true;
  bool host_network = !unset(*spec, "hostNetwork");
  for (std::string_view list : {"initContainers", "containers"}) {
    json::array* containers = array_at(*spec, list);
    if (!containers) continue;
    for (json::value& value : *containers) {
      json::object* container = value.if_object();
      if (!container) continue;
      if (json::object* resources = object_at(*container, "resources")) requests_from_limits(*resources);
      bool keeps_running = list == "containers" || text_at(*container, "restartPolicy") == "Always";
      if (keeps_running) resize_policies(*container);
      if (host_network) host_ports(*container);
    }
  }
  default_pod_requests(*spec);
}

constexpr NamedDefaultRule kPodDefaults[] = {
    {"io.k8s.api.core.v1.Pod", default_pod},
    {"io.k8s.api.core.v1.PodSpec", default_pod_spec},
    {"io.k8s.api.core.v1.Container", default_container},
    {"io.k8s.api.core.v1.EphemeralContainer", default_container},
    {"io.k8s.api.core.v1.Volume", default_volume},
    {"io.k8s.api.core.v1.ImageVolumeSource", default_image_volume},
};

}  // namespace

std::span<const NamedDefaultRule> pod_defaults() { return kPodDefaults; }

}  // namespace coracle::schema
