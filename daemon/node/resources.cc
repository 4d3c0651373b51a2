// SPDX-License-Identifier: Apache-2.0
// See resources.h.
#include "daemon/node/resources.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "runtime/base/text.h"
#include "store/object/object.h"
#include "store/schema/default.h"
#include "store/schema/views.h"

namespace coracle::node {

namespace {

constexpr int64_t kSharesMin = 2, kSharesMax = 262144, kSharesPerCpu = 1024;
constexpr int64_t kQuotaPeriodUs = 100'000, kQuotaMinUs = 1'000;

Quantity or_zero(const std::optional<Quantity>& quantity) { return quantity.value_or(Quantity()); }

int64_t shares_of(int64_t millicores) { return std::clamp(millicores * kSharesPerCpu / 1000, kSharesMin, kSharesMax); }

void set_cpu_limit(oci::Resources& resources, int64_t millicores) {
  if (millicores <= 0) return;
  resources.cpu_period_us = kQuotaPeriodUs;
  resources.cpu_quota_us = std::max(millicores * kQuotaPeriodUs / 1000, kQuotaMinUs);
}

// The container's limit, else its pod's: a pod-level limit is an upper bound for each container. Source: kubelet, getCPULimit and
// getMemoryLimit (semantics).
Quantity limit_of(const json::value& pod, const json::value& container, std::string_view name) {
  Quantity own = or_zero(amount_in(view::Container(container).resources().limits(), name));
  return own.is_zero() ? or_zero(amount_in(view::Pod(pod).spec().resources().limits(), name)) : own;
}

std::optional<Quantity> request_or_limit(const json::value& container, std::string_view name) {
  view::ResourceRequirements resources = view::Container(container).resources();
  auto request = amount_in(resources.requests(), name);
  return request ? request : amount_in(resources.limits(), name);
}

// The sum of the limits of all containers that run concurrently; nullopt if one has no limit.
std::optional<Quantity> pod_limit(const json::value& pod, std::string_view name) {
  if (auto own = amount_in(view::Pod(pod).spec().resources().limits(), name)) return own;
  Quantity sum, largest_init;
  for (const auto& container : containers_of(pod)) {
    auto limit = amount_in(view::Container(*container.spec).resources().limits(), name);
    if (!limit || limit->is_zero()) return std::nullopt;
    if (container.role == Role::init) largest_init = std::max(largest_init, *limit);
    else sum += *limit;
  }
  return std::max(sum, largest_init);
}

// The pod-level request beyond the sum of the containers' requests, divided equally. Source: kubelet, GetContainerOOMScoreAdjust.
int64_t share_of_rest(const json::value& pod) {
  auto whole = amount_in(view::Pod(pod).spec().resources().requests(), "memory");
  auto containers = containers_of(pod);
  if (!whole || containers.empty()) return 0;
  int64_t rest = whole->value();
  for (const auto& container : containers) rest -= or_zero(request_or_limit(*container.spec, "memory")).value();
  return std::max<int64_t>(rest, 0) / int64_t(containers.size());
}

std::string_view address_of(const HostPort& port) {
  return port.host_ip == "0.0.0.0" || port.host_ip == "::" ? std::string_view() : std::string_view(port.host_ip);
}

std::optional<Refusal> refuse_resource(const json::value& pod, const std::vector<ObjectPtr>& others,
                                       const json::object& allocatable, std::string_view name) {
  const json::value* there = allocatable.if_contains(name);
  auto total = there ? Quantity::from_json(*there) : Result<Quantity>(Quantity());
  Quantity wanted = pod_request(pod, name), used;
  if (!total || wanted.is_zero()) return std::nullopt;
  for (const auto& other : others) used += pod_request(other->json(), name);
  Quantity sum = used;
  sum += wanted;
  if (sum <= *total) return std::nullopt;
  auto number = [&](const Quantity& q) { return std::to_string(name == "cpu" ? q.milli_value() : q.value()); };
  return Refusal{"OutOf" + std::string(name), "Node didn't have enough resource: " + std::string(name) + ", requested: " +
                                                  number(wanted) + ", used: " + number(used) + ", capacity: " + number(*total)};
}

bool ports_clash(const std::vector<HostPort>& wanted, const std::vector<ObjectPtr>& others) {
  if (wanted.empty()) return false;
  // By number and protocol; "": every address.
  std::map<std::pair<uint16_t, std::string_view>, std::set<std::string_view>> addresses;
  for (const auto& port : wanted) addresses[{port.host_port, port.protocol}].insert(address_of(port));
  for (const auto& other : others)
    for (const auto& taken : host_ports(other->json())) {
      auto found = addresses.find({taken.host_port, taken.protocol});
      if (found == addresses.end()) continue;
      std::string_view address = address_of(taken);
      if (address.empty() || found->second.contains("") || found->second.contains(address)) return true;
    }
  return false;
}

}  // namespace

std::set<std::string> huge_page_names(const json::value& pod) {
  std::set<std::string> names;
  auto add = [&](view::ResourceRequirements resources) {
    for (const json::object* amounts : {&resources.requests(), &resources.limits()})
      for (const auto& [name, quantity] : *amounts)
        if (std::string_view(name).starts_with("hugepages-")) names.emplace(name);
  };
  for (const auto& container : containers_of(pod)) add(view::Container(*container.spec).resources());
  add(view::Pod(pod).spec().resources());
  return names;
}

std::set<std::string> extended_resource_names(const json::value& pod) {
  std::set<std::string> names;
  for (const auto& container : containers_of(pod))
    for (const auto& [name, quantity] : view::Container(*container.spec).resources().requests())
      if (name.find('/') != name.npos) names.emplace(name);
  return names;
}

QosClass qos_of(const json::value& pod) {
  std::string_view name = schema::qos_class(pod);
  if (name == "BestEffort") return QosClass::best_effort;
  return name == "Guaranteed" ? QosClass::guaranteed : QosClass::burstable;
}

const char* qos_name(QosClass qos) {
  switch (qos) {
    case QosClass::guaranteed: return "guaranteed";
    case QosClass::burstable: return "burstable";
    case QosClass::best_effort: return "besteffort";
  }
  return "besteffort";
}

Quantity pod_request(const json::value& pod, std::string_view name) {
  Quantity sidecars, sum, largest;
  for (const auto& container : containers_of(pod)) {
    Quantity request = or_zero(request_or_limit(*container.spec, name));
    if (container.role == Role::main) {
      sum += request;
    } else if (container.role == Role::sidecar) {
      sidecars += request;
    } else {
      Quantity beside = sidecars;  // an init container runs beside the sidecars before it
      beside += request;
      largest = std::max(largest, beside);
    }
  }
  sum += sidecars;
  sum = std::max(sum, largest);
  view::PodSpec spec = view::Pod(pod).spec();
  if (auto own = amount_in(spec.resources().requests(), name)) sum = *own;
  if (auto overhead = amount_in(spec.overhead(), name)) sum += *overhead;
  return sum;
}

oci::Resources container_resources(const json::value& pod, const json::value& container,
                                   const runtime::Enforcement& enforcement) {
  oci::Resources resources;
  resources.cpu_shares = uint64_t(shares_of(or_zero(request_or_limit(container, "cpu")).milli_value()));
  set_cpu_limit(resources, limit_of(pod, container, "cpu").milli_value());
  // No swap, as kubelet's NoSwap: the limit of memory and swap together is that of memory.
  if (auto limit = limit_of(pod, container, "memory").value(); limit > 0) {
    resources.memory_limit_bytes = resources.memory_swap_bytes = limit;
  } else if (enforcement.memory) {
    resources.unified["memory.swap.max"] = "0";
  }
  // If the kernel kills one process for memory, it kills the whole container.
  if (enforcement.memory) resources.unified["memory.oom.group"] = "1";
  return resources;
}

int64_t cpu_shares_of(const json::value& pod) { return shares_of(pod_request(pod, "cpu").milli_value()); }

oci::Resources pod_resources(const json::value& pod, int64_t pids_max) {
  oci::Resources resources;
  resources.cpu_shares = uint64_t(cpu_shares_of(pod));
  if (auto limit = pod_limit(pod, "cpu")) set_cpu_limit(resources, limit->milli_value());
  if (auto limit = pod_limit(pod, "memory"); limit && limit->value() > 0) resources.memory_limit_bytes = limit->value();
  if (pids_max > 0) resources.pids_limit = pids_max;
  return resources;
}

Bytes memory_volume_size(const json::value& pod, const json::value& volume, const json::object& allocatable) {
  Quantity size;
  auto bound = [&](const json::value* limit) {
    auto parsed = limit ? Quantity::from_json(*limit) : Result<Quantity>(Quantity());
    if (parsed && *parsed > Quantity() && (size.is_zero() || *parsed < size)) size = *parsed;
  };
  bound(allocatable.if_contains("memory"));
  if (auto limit = pod_limit(pod, "memory"); limit && !limit->is_zero() && (size.is_zero() || *limit < size)) size = *limit;
  bound(view::Volume(volume).empty_dir().size_limit());
  return size.bytes();
}

int oom_score_adj(const json::value& pod, const json::value& container, Bytes machine_memory) {
  if (view::Pod(pod).spec().priority_class_name() == "system-node-critical") return -997;
  switch (qos_of(pod)) {
    case QosClass::guaranteed: return -997;
    case QosClass::best_effort: return 1000;
    case QosClass::burstable: break;
  }
  int64_t request = or_zero(request_or_limit(container, "memory")).value() + share_of_rest(pod);
  int64_t score = machine_memory.count > 0 ? 1000 - int64_t(1000.0 * double(request) / double(machine_memory.count)) : 999;
  return int(std::clamp<int64_t>(score, 3, 999));  // never as protected as guaranteed, nor as exposed as best effort
}

std::string unenforceable(const json::value& pod, const runtime::Enforcement& enforcement) {
  bool memory = false, cpu = false;
  for (const auto& container : containers_of(pod)) {
    view::ResourceRequirements resources = view::Container(*container.spec).resources();
    memory |= amount_in(resources.limits(), "memory").has_value();
    cpu |= amount_in(resources.limits(), "cpu").has_value();
  }
  std::string missing;
  if (cpu && !enforcement.cpu) missing = "cpu";
  if (memory && !enforcement.memory) missing += missing.empty() ? "memory" : ", memory";
  return missing;
}

std::optional<Refusal> refuse(const json::value& pod, const std::vector<ObjectPtr>& others, const json::object& allocatable,
                              int pods_max) {
  if (int(others.size()) >= pods_max) {
    std::string count = std::to_string(others.size()), most = std::to_string(pods_max);
    return Refusal{"OutOfpods", "Node didn't have enough resource: pods, requested: 1, used: " + count + ", capacity: " + most};
  }
  for (const char* name : {"cpu", "memory", "ephemeral-storage"})
    if (auto refusal = refuse_resource(pod, others, allocatable, name)) return refusal;
  for (const auto& name : extended_resource_names(pod))
    if (auto refusal = refuse_resource(pod, others, allocatable, name)) return refusal;
  for (const auto& name : huge_page_names(pod))
    if (auto refusal = refuse_resource(pod, others, allocatable, name)) return refusal;
  if (ports_clash(host_ports(pod), others))
    return Refusal{"NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"};
  return refuse_sysctls(pod);
}

std::optional<Refusal> refuse_sysctls(const json::value& pod) {
  // Namespaced, and without effect on other pods. Source: Kubernetes, using sysctls, the safe set.
  static constexpr std::array<std::string_view, 13> kSafe = {"kernel.shm_rmid_forced",
                                                             "net.ipv4.ip_local_port_range",
                                                             "net.ipv4.tcp_syncookies",
                                                             "net.ipv4.ping_group_range",
                                                             "net.ipv4.ip_unprivileged_port_start",
                                                             "net.ipv4.ip_local_reserved_ports",
                                                             "net.ipv4.tcp_keepalive_time",
                                                             "net.ipv4.tcp_fin_timeout",
                                                             "net.ipv4.tcp_keepalive_intvl",
                                                             "net.ipv4.tcp_keepalive_probes",
                                                             "net.ipv4.tcp_rmem",
                                                             "net.ipv4.tcp_wmem",
                                                             "net.ipv4.tcp_slow_start_after_idle"};
  view::PodSpec spec = view::Pod(pod).spec();
  for (view::Sysctl sysctl : spec.security_context().sysctls()) {
    std::string name(sysctl.name());
    std::replace(name.begin(), name.end(), '/', '.');
    bool safe = std::find(kSafe.begin(), kSafe.end(), name) != kSafe.end();
    bool of_host = (name.starts_with("net.") && spec.host_network()) || (name.starts_with("kernel.") && spec.host_ipc());
    if (!safe || of_host)
      return Refusal{"SysctlForbidden", "forbidden sysctl: " + coracle::quoted(name) +
                                            (of_host ? " not allowed with host net or host ipc enabled" : " not allowlisted")};
  }
  return std::nullopt;
}

}  // namespace coracle::node
