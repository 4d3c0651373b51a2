// SPDX-License-Identifier: Apache-2.0
// See pod.h. The API has set defaults and validated the pod; absent fields read as empty.
#include "daemon/node/pod.h"

#include <algorithm>
#include <array>

#include "daemon/volume/backing.h"
#include "store/kinds/pod/pod_state.h"

namespace coracle::node {

namespace {

constexpr size_t kHostnameMax = 63;  // sethostname(2) allows 64, DNS labels 63

RestartPolicy parse_policy(std::string_view text, RestartPolicy absent) {
  if (text == "Always") return RestartPolicy::always;
  if (text == "OnFailure") return RestartPolicy::on_failure;
  if (text == "Never") return RestartPolicy::never;
  return absent;
}

ContainerRef reference_to(view::Container spec, bool init) {
  bool sidecar = init && spec.restart_policy() == "Always";
  return {&spec.raw(), spec.name(), sidecar ? Role::sidecar : init ? Role::init : Role::main};
}

std::array<view::Range<view::ContainerStatus>, 3> status_lists(const json::value& pod) {
  view::PodStatus status = view::Pod(pod).status();
  return {status.container_statuses(), status.init_container_statuses(), status.ephemeral_container_statuses()};
}

void add_references(std::string_view config_map, std::string_view secret, References& found) {
  if (!config_map.empty()) found.config_maps.emplace(config_map);
  if (!secret.empty()) found.secrets.emplace(secret);
}

}  // namespace

std::vector<ContainerRef> containers_of(const json::value& pod) {
  std::vector<ContainerRef> containers;
  containers.reserve(count_containers(pod));
  view::PodSpec spec = view::Pod(pod).spec();
  for (view::Container container : spec.init_containers()) containers.push_back(reference_to(container, true));
  for (view::Container container : spec.containers()) containers.push_back(reference_to(container, false));
  return containers;
}

std::vector<ContainerRef> ephemeral_of(const json::value& pod) {
  std::vector<ContainerRef> containers;
  for (view::EphemeralContainer container : view::Pod(pod).spec().ephemeral_containers())
    containers.push_back({&container.raw(), container.name(), Role::ephemeral});
  return containers;
}

size_t count_containers(const json::value& pod) {
  view::PodSpec spec = view::Pod(pod).spec();
  return spec.init_containers().size() + spec.containers().size() + spec.ephemeral_containers().size();
}

std::optional<ContainerRef> find_container(const json::value& pod, std::string_view name) {
  view::PodSpec spec = view::Pod(pod).spec();
  for (bool init : {true, false})
    for (view::Container container : init ? spec.init_containers() : spec.containers())
      if (container.name() == name) return reference_to(container, init);
  for (const auto& container : ephemeral_of(pod))
    if (container.name == name) return container;
  return std::nullopt;
}

ContainerIndex::ContainerIndex(const json::value& pod) : all_(containers_of(pod)) {
  for (const auto& container : ephemeral_of(pod)) all_.push_back(container);
  // Of two containers with the same name, the first counts.
  for (size_t i = 0; i < all_.size(); ++i) by_name_.emplace(all_[i].name, i);
  for (const auto& list : status_lists(pod))
    for (view::ContainerStatus status : list) statuses_.emplace(status.name(), &status.raw());
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
  for (const auto& list : status_lists(pod))
    for (view::ContainerStatus status : list)
      if (status.name() == container) return &status.raw();
  return nullptr;
}

RestartPolicy restart_policy(const json::value& pod, const ContainerRef& container) {
  RestartPolicy policy = parse_policy(view::Pod(pod).spec().restart_policy(), RestartPolicy::always);
  if (container.role == Role::sidecar) return RestartPolicy::always;
  if (container.role == Role::ephemeral) return RestartPolicy::never;
  // An init container in a pod with restartPolicy Always is restarted only after a failure.
  if (container.role == Role::init && policy == RestartPolicy::always) policy = RestartPolicy::on_failure;
  return parse_policy(view::Container(*container.spec).restart_policy(), policy);
}

bool restarts_by_rule(const json::value& container, int exit_code) {
  for (view::ContainerRestartRule rule : view::Container(container).restart_policy_rules()) {
    view::Range<int64_t> values = rule.exit_codes().values();
    bool among = std::find(values.begin(), values.end(), exit_code) != values.end();
    bool matches = rule.exit_codes().operator_() == "NotIn" ? !among : among;
    if (matches && rule.action() == "Restart") return true;
  }
  return false;
}

int64_t grace_seconds(const json::value& pod) {
  view::ObjectMeta metadata = view::Pod(pod).metadata();
  if (metadata.has_deletion_grace_period_seconds()) return std::max<int64_t>(metadata.deletion_grace_period_seconds(), 0);
  int64_t seconds = view::Pod(pod).spec().termination_grace_period_seconds_or(30);
  return seconds < 0 ? 1 : seconds;  // Source: kubelet, pod_workers.go
}

bool ends_by_itself(const json::value& pod) { return is_terminal(view::Pod(pod)); }

std::vector<HostPort> host_ports(const json::value& pod) {
  std::vector<HostPort> ports;
  if (view::Pod(pod).spec().host_network()) return ports;  // such a pod listens on the host's addresses itself
  for (const auto& container : containers_of(pod)) {
    for (view::ContainerPort port : view::Container(*container.spec).ports()) {
      if (port.host_port() <= 0) continue;
      ports.push_back({std::string(port.host_ip()), uint16_t(port.host_port()), uint16_t(port.container_port()),
                       port.protocol().empty() ? "TCP" : std::string(port.protocol())});
    }
  }
  return ports;
}

bool is_recursively_read_only(const json::value& volume_mount) {
  auto wanted = view::VolumeMount(volume_mount).recursive_read_only();
  return wanted == "Enabled" || wanted == "IfPossible";
}

References volume_references(const json::value& pod) {
  References found;
  for (view::Volume volume : view::Pod(pod).spec().volumes()) {
    add_references(volume.config_map().name(), volume.secret().secret_name(), found);
    if (std::string claim = volume::claim_name(view::Pod(pod).metadata().name(), volume.raw()); !claim.empty())
      found.claims.insert(std::move(claim));
    for (view::VolumeProjection source : volume.projected().sources())
      add_references(source.config_map().name(), source.secret().name(), found);
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
  view::PodSpec spec = view::Pod(pod).spec();
  std::string name(spec.hostname());
  if (auto override_ = spec.hostname_override(); !override_.empty()) return std::string(override_);
  if (name.empty()) name = view::Pod(pod).metadata().name();
  if (name.size() > kHostnameMax) {
    name.resize(kHostnameMax);
    while (!name.empty() && (name.back() == '-' || name.back() == '.')) name.pop_back();
  }
  return name;
}

std::string fqdn_of(const json::value& pod, std::string_view cluster_domain) {
  auto subdomain = view::Pod(pod).spec().subdomain();
  if (subdomain.empty()) return "";
  return hostname_of(pod) + "." + std::string(subdomain) + "." + std::string(view::Pod(pod).metadata().namespace_()) + ".svc." +
         std::string(cluster_domain);
}

}  // namespace coracle::node
