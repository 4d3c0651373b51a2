// SPDX-License-Identifier: Apache-2.0
// See admit.h.
#include "daemon/node/admit.h"

#include "daemon/node/pod.h"
#include "daemon/placement/placement.h"
#include "runtime/base/text.h"
#include "runtime/runtime.h"
#include "store/object/object.h"
#include "store/schema/views.h"

namespace coracle::node {

namespace {

constexpr std::string_view kAppArmorPrefix = "container.apparmor.security.beta.kubernetes.io/";
constexpr std::string_view kLocalhostPrefix = "localhost/";

Refusal predicate_failed(const std::string& name, std::string_view why) {
  return Refusal{name, "Predicate " + name + " failed: " + std::string(why)};
}

std::optional<Refusal> refuse_operating_system(const json::value& pod) {
  const json::value* wanted = view::Pod(pod).spec().node_selector().if_contains("kubernetes.io/os");
  if (wanted && *wanted != "linux")
    return Refusal{"PodOSSelectorNodeLabelDoesNotMatch",
                   "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"};
  auto system = view::Pod(pod).spec().os().name();
  if (!system.empty() && system != "linux")
    return Refusal{"PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"};
  return std::nullopt;
}

// Checks limits that no sandbox can exceed, so that the pod is refused once instead of failing at every attempt.
std::optional<Refusal> refuse_size(const json::value& pod) {
  size_t count = count_containers(pod);
  if (count <= size_t(runtime::kSandboxContainersMax)) return std::nullopt;
  return Refusal{"TooManyContainers", "Pod has " + std::to_string(count) + " containers, this node runs at most " +
                                          std::to_string(runtime::kSandboxContainersMax) + " of one pod"};
}

std::optional<Refusal> refuse_placement(const Object& pod, const Object& node, bool is_static) {
  view::Pod viewed(pod);
  if (!placement::node_wanted(viewed, node))
    return predicate_failed("NodeAffinity", "node(s) didn't match Pod's node affinity/selector");
  if (is_static) return std::nullopt;
  for (view::Taint taint : view::Node(node).spec().taints())
    if (taint.effect() == "NoExecute" && !placement::tolerates(viewed, taint))
      return predicate_failed("TaintToleration", "node(s) had taints that the pod didn't tolerate");
  return std::nullopt;
}

bool asks_for_apparmor(const json::value& pod) {
  auto confines = [](std::string_view type) { return !type.empty() && type != "Unconfined"; };
  if (confines(view::Pod(pod).spec().security_context().app_armor_profile().type())) return true;
  for (const auto& container : containers_of(pod))
    if (confines(view::Container(*container.spec).security_context().app_armor_profile().type())) return true;
  for (const auto& annotation : view::Pod(pod).metadata().annotations())
    if (std::string_view(annotation.key()).starts_with(kAppArmorPrefix) && annotation.value() != "unconfined") return true;
  return false;
}

std::optional<Refusal> refuse_apparmor(const json::value& pod, const AppArmorHooks& hooks) {
  bool enabled = hooks.enabled && hooks.enabled();
  if (enabled || !asks_for_apparmor(pod)) return std::nullopt;
  return Refusal{"AppArmor", "Cannot enforce AppArmor: AppArmor is not enabled on the host"};
}

}  // namespace

std::optional<Refusal> refuse_pod(const Object& pod, const AdmitInputs& inputs, const AgentConfig& config) {
  const json::value& body = pod.json();
  if (auto refusal = refuse_size(body)) return refusal;  // checked first, because the checks below iterate over the containers
  if (auto refusal = refuse_operating_system(body)) return refusal;
  if (auto refusal = refuse(body, inputs.others, inputs.allocatable, config.pods_max)) return refusal;
  if (inputs.node)
    if (auto refusal = refuse_placement(pod, *inputs.node, inputs.is_static)) return refusal;
  return refuse_apparmor(body, config.apparmor);
}

AppArmorProfile apparmor_profile_of(const json::value& pod, const json::value& container) {
  auto read = [](view::AppArmorProfile profile) {
    return AppArmorProfile{std::string(profile.type()), std::string(profile.localhost_profile())};
  };
  view::Container viewed(container);
  if (AppArmorProfile own = read(viewed.security_context().app_armor_profile()); !own.type.empty()) return own;
  const json::value* annotation =
      view::Pod(pod).metadata().annotations().if_contains(std::string(kAppArmorPrefix) + std::string(viewed.name()));
  if (annotation && annotation->is_string()) {
    std::string_view text = annotation->get_string();
    if (text == "runtime/default") return {"RuntimeDefault", ""};
    if (text == "unconfined") return {"Unconfined", ""};
    if (text.starts_with(kLocalhostPrefix)) return {"Localhost", std::string(text.substr(kLocalhostPrefix.size()))};
  }
  return read(view::Pod(pod).spec().security_context().app_armor_profile());
}

}  // namespace coracle::node
