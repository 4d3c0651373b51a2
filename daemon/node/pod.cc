// SPDX-License-Identifier: Apache-2.0
// See pod.h. The API has set defaults and validated the pod; absent fields read as empty.
#include "daemon/node/pod.h"

#include <algorithm>

#include "daemon/volume/backing.h"
#include "store/kinds/pod/pod_state.h"

namespace coracle::node {

namespace {

constexpr const char* kStatusLists[] = {"status.containerStatuses", "status.initContainerStatuses",
                                        "status.ephemeralContainerStatuses"};
constexpr size_t kHostnameMax = 63;  // sethostname(2) allows 64, DNS labels 63

RestartPolicy parse_policy(std::string_view text, RestartPolicy absent) {
  if (text == "Always") return RestartPolicy::always;
  if (text == "OnFailure") return RestartPolicy::on_failure;
  if (text == "Never") return RestartPolicy::never;
  return absent;
}

ContainerRef reference_to(const json::value& spec, bool init) {
  bool sidecar = init && get_string(spec, "restartPolicy") == "Always";
  return {&spec, get_string(spec, "name"), sidecar ? Role::sidecar : init ? Role::init : Role::main};
}

void add_references(const json::value& source, References& found) {
  if (auto name = get_string(source, "configMap.name"); !name.empty()) found.config_maps.emplace(name);
  if (auto name = get_string(source, "secret.secretName"); !name.empty()) found.secrets.emplace(name);
  if (auto name = get_string(source, "secret.name"); !name.empty()) found.secrets.emplace(name);  // in projected volumes
}

}  // namespace

std::vector<ContainerRef> containers_of(const json::value& pod) {
  std::vector<ContainerRef> containers;
  containers.reserve(count_containers(pod));
  for (const auto& spec : get_array(pod, "spec.initContainers")) containers.push_back(reference_to(spec, true));
  for (const auto& spec : get_array(pod, "spec.containers")) containers.push_back(reference_to(spec, false));
  return containers;
}

std::vector<ContainerRef> ephemeral_of(const json::value& pod) {
  std::vector<ContainerRef> containers;
  for (const auto& spec : get_array(pod, "spec.ephemeralContainers"))
    containers.push_back({&spec, get_string(spec, "name"), Role::ephemeral});
  return containers;
}

size_t count_containers(const json::value& pod) {
  size_t count = 0;
  for (const char* list : {"spec.initContainers", "spec.containers", "spec.ephemeralContainers"})
    count += get_array(pod, list).size();
  return count;
}

std::optional<ContainerRef> find_container(const json::value& pod, std::string_view name) {
  for (const char* list : {"spec.initContainers", "spec.containers"})
    for (const auto& spec : get_array(pod, list))
      if (get_string(spec, "name") == name) return reference_to(spec, list == std::string_view("spec.initContainers"));
  for (const auto& container : ephemeral_of(pod))
    if (container.name == name) return container;
  return std::nullopt;
}

ContainerIndex::ContainerIndex(const json::value& pod) : all_(containers_of(pod)) {
  for (const auto& container : ephemeral_of(pod)) all_.push_back(container);
  // Of two containers with the same name, the first counts.
  for (size_t i = 0; i < all_.size(); ++i) by_name_.emplace(all_[i].name, i);
  for (const char* list : kStatusLists)
    for (const auto& status : get_array(pod, list)) statuses_.emplace(get_string(status, "name"), &status);
}

const ContainerRef* ContainerIndex::find(std::string_view name) const {
  auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &all_[found->second];
}

const json::value* ContainerIndex::status_of(std::string_view container) const {
  auto found = statuses_.find(container);
  return found == statuses_.end() ? nullptr : found->second;
}

const json::value* status_of(const json::value& pod, std::string_view container) {
  for (const char* list : kStatusLists)
    for (const auto& status : get_array(pod, list))
      if (get_string(status, "name") == container) return &status;
  return nullptr;
}

RestartPolicy restart_policy(const json::value& pod, const ContainerRef& container) {
  RestartPolicy policy = parse_policy(get_string(pod, "spec.restartPolicy"), RestartPolicy::always);
  if (container.role == Role::sidecar) return RestartPolicy::always;
  if (container.role == Role::ephemeral) return RestartPolicy::never;
  // An init container in a pod with restartPolicy Always is restarted only after a failure.
  if (container.role == Role::init && policy == RestartPolicy::always) policy = RestartPolicy::on_failure;
  return parse_policy(get_string(*container.spec, "restartPolicy"), policy);
}

bool restarts_by_rule(const json::value& container, int exit_code) {
  for (const auto& rule : get_array(container, "restartPolicyRules")) {
    const json::array& values = get_array(rule, "exitCodes.values");
    bool among =
        std::any_of(values.begin(), values.end(), [&](const auto& v) { return v.is_int64() && v.get_int64() == exit_code; });
    bool matches = get_string(rule, "exitCodes.operator") == "NotIn" ? !among : among;
    if (matches && get_string(rule, "action") == "Restart") return true;
  }
  return false;
}

int64_t grace_seconds(const json::value& pod) {
  if (const auto* deletion = find(pod, "metadata.deletionGracePeriodSeconds"); deletion && deletion->is_int64())
    return std::max<int64_t>(deletion->get_int64(), 0);
  int64_t seconds = get_int(pod, "spec.terminationGracePeriodSeconds", 30);
  return seconds < 0 ? 1 : seconds;  // Source: kubelet, pod_workers.go
}

bool ends_by_itself(const json::value& pod) { return is_terminal(view::Pod(pod)); }

std::vector<HostPort> host_ports(const json::value& pod) {
  std::vector<HostPort> ports;
  if (get_bool(pod, "spec.hostNetwork")) return ports;  // such a pod listens on the host's addresses itself
  for (const auto& container : containers_of(pod)) {
    for (const auto& port : get_array(*container.spec, "ports")) {
      int64_t host_port = get_int(port, "hostPort");
      if (host_port <= 0) continue;
      auto protocol = get_string(port, "protocol");
      ports.push_back({std::string(get_string(port, "hostIP")), uint16_t(host_port), uint16_t(get_int(port, "containerPort")),
                       protocol.empty() ? "TCP" : std::string(protocol)});
    }
  }
  return ports;
}

bool is_recursively_read_only(const json::value& volume_mount) {
  auto wanted = get_string(volume_mount, "recursiveReadOnly");
  return wanted == "Enabled" || wanted == "IfPossible";
}

References volume_references(const json::value& pod) {
  References found;
  for (const auto& volume : get_array(pod, "spec.volumes")) {
    add_references(volume, found);
    if (std::string claim = volume::claim_name(get_string(pod, "metadata.name"), volume); !claim.empty())
      found.claims.insert(std::move(claim));
    for (const auto& source : get_array(volume, "projected.sources")) add_references(source, found);
  }
  return found;
}

bool is_pod_uid(std::string_view uid) {
  auto fine = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-'; };
  return !uid.empty() && uid.size() <= 64 && std::all_of(uid.begin(), uid.end(), fine);
}

Result<PodPaths> paths_of(const AgentConfig& config, const Key& pod, std::string_view uid) {
  if (!is_pod_uid(uid)) return Error(Code::invalid, "pod uid is not usable as a name");
  for (const auto& part : {pod.ns, pod.name})
    if (part.empty() || part.find('/') != part.npos || part == "." || part == "..")
      return Error(Code::invalid, "pod name is not usable as a path");
  std::string id(uid);
  return PodPaths{config.state_dir + "/" + id, config.memory_dir + "/" + id,
                  config.log_dir + "/" + pod.ns + "_" + pod.name + "_" + id};
}

std::string hostname_of(const json::value& pod) {
  std::string name(get_string(pod, "spec.hostname"));
  if (auto override_ = get_string(pod, "spec.hostnameOverride"); !override_.empty()) return std::string(override_);
  if (name.empty()) name = get_string(pod, "metadata.name");
  if (name.size() > kHostnameMax) {
    name.resize(kHostnameMax);
    while (!name.empty() && (name.back() == '-' || name.back() == '.')) name.pop_back();
  }
  return name;
}

std::string fqdn_of(const json::value& pod, std::string_view cluster_domain) {
  auto subdomain = get_string(pod, "spec.subdomain");
  if (subdomain.empty()) return "";
  return hostname_of(pod) + "." + std::string(subdomain) + "." + std::string(get_string(pod, "metadata.namespace")) + ".svc." +
         std::string(cluster_domain);
}

}  // namespace coracle::node
