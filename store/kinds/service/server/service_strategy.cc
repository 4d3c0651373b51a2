// SPDX-License-Identifier: Apache-2.0
// Services: cluster IPs and node ports are allocated from the configured ranges. The allocated values are those of the existing
// Services and of the writes under way (service_addresses.h). So nothing can leak or be allocated twice.
//   desired (spec) + allocated (all other services) ──▶ clusterIP(s), nodePorts
// Source: Kubernetes "Service", "Service ClusterIP allocation" and KEP-3070 (dynamic addresses at random, from the upper part of
// the range first), KEP-3668 (dynamic node ports likewise).
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "runtime/base/random.h"
#include "runtime/base/text.h"
#include "store/kinds/service/server/address_range.h"
#include "store/kinds/service/server/service_addresses.h"
#include "store/kinds/strategy.h"
#include "store/object/object.h"
#include "store/object/status.h"
#include "store/schema/views.h"

namespace coracle::kinds {
namespace {

// The size of the lower part of the range, which is reserved for static addresses. Source: Kubernetes "avoiding collisions".
uint32_t reserved_at_start(const AddressRange& range) {
  uint32_t size = range.last() - range.base + 2;
  return std::clamp(size / 16, uint32_t(16), uint32_t(256));
}

// A free one from a random place on: what a Service has given back is not given to the next one while clients remember it.
template <typename Number, typename F>
std::optional<Number> free_at_random(Number first, Number last, F&& lowest_free) {
  if (first > last) return std::nullopt;
  Number place = first + Number(random_below(uint32_t(last - first + 1)));
  if (auto found = lowest_free(place, last)) return found;
  return place > first ? lowest_free(first, place - 1) : std::nullopt;
}

std::optional<uint32_t> free_address(const AddressRange& range, const ServiceIndex::AllocatedByOthers& others) {
  auto lowest_free = [&](uint32_t first, uint32_t last) { return others.free_address(first, last); };
  uint32_t middle = std::min(range.base + reserved_at_start(range), range.last());
  if (auto found = free_at_random(middle, range.last(), lowest_free)) return found;
  return free_at_random(range.first() + 1, middle - 1, lowest_free);  // the first one is the API's
}

// What a Service had before the write. It keeps that, also where a range has changed since.
using Kept = ServiceIndex::Allocated;

Result<void> give_address(json::value& service, const ServiceIndex::AllocatedByOthers& others, const Kept& kept,
                          const Ranges& ranges) {
  AddressRange range = TRY(AddressRange::parse(ranges.service_cidr));
  std::string name(view::Service(service).metadata().name()), wanted(view::Service(service).spec().cluster_ip());
  uint32_t address;
  if (wanted.empty()) {
    auto found = free_address(range, others);
    if (!found) return internal_error("failed to allocate a serviceIP: range is full");
    address = *found;
  } else {
    auto asked = parse_address(wanted);
    std::string value = "[\"" + wanted + "\"]";
    bool is_kept = asked && kept.addresses.contains(*asked);
    bool inside = asked && range.contains(*asked) && *asked >= range.first() && *asked <= range.last();
    if (!is_kept && !inside)
      return invalid(kService, name,
                     {invalid_value("spec.clusterIPs", value,
                                    "failed to allocate IP " + wanted + ": the provided IP (" + wanted +
                                        ") is not in the valid range. The range of valid IPs is " + ranges.service_cidr)});
    if (!is_kept && others.has_address(*asked))
      return invalid(
          kService, name,
          {invalid_value("spec.clusterIPs", value, "failed to allocate IP " + wanted + ": provided IP is already allocated")});
    address = *asked;
  }
  make(service, "spec.clusterIP") = address_text(address);
  make(service, "spec.clusterIPs") = json::array{json::string(address_text(address))};
  return {};
}

// The node ports in the order in which one write gives them to those who name none: from a random place on, so that one that was
// given back is not given again at once. The lower end, which manifests name (30080), comes last.
class NodePorts {
 public:
  explicit NodePorts(const Ranges& ranges) {
    const int64_t first = ranges.node_port_min, last = ranges.node_port_max, size = last - first + 1;
    const int64_t middle = first + (size > 16 ? std::clamp(size / 32, int64_t(16), int64_t(128)) : 0);
    const int64_t place = middle <= last ? middle + random_below(uint32_t(last - middle + 1)) : middle;
    parts_ = {{{place, last}, {middle, place - 1}, {first, middle - 1}}};
  }
  // The next free one that `skips` does not refuse. Neither it nor those before it are looked at again.
  template <typename F>
  std::optional<int64_t> next_free(const ServiceIndex::AllocatedByOthers& others, F&& skips) {
    for (auto& [from, last] : parts_) {
      while (from <= last) {
        auto found = others.free_port(from, last);
        from = found.value_or(last) + 1;
        if (found && !skips(*found)) return found;
      }
    }
    return std::nullopt;
  }

 private:
  std::array<std::pair<int64_t, int64_t>, 3> parts_;  // what is left of each: first and last
};

// Gives node ports to the ports of the Service, and returns their numbers. Its ports may share a number if their protocols
// differ; other Services may not have it by any protocol. `allocates`: ports that name none get one. Source: Kubernetes
// pkg/registry/core/service/storage/alloc.go.
Result<std::set<int64_t>> give_ports(json::value& service, const ServiceIndex::AllocatedByOthers& others, const Kept& kept,
                                     bool allocates, const Ranges& ranges) {
  std::set<int64_t> numbers;
  json::value& ports = make(service, "spec.ports");
  if (!ports.is_array()) return numbers;
  std::string name(view::Service(service).metadata().name());
  auto is_taken = [&](int64_t number) { return !kept.ports.contains(number) && others.has_port(number); };
  NodePorts dynamic(ranges);
  json::array& all = ports.get_array();
  std::set<int64_t> named;
  std::map<int64_t, int64_t> by_port;  // 53 by TCP and by UDP have one node port
  for (view::ServicePort each : view::Service(service).spec().ports())
    if (int64_t number = each.node_port()) named.insert(number), by_port.emplace(each.port(), number);
  const int64_t health_port = view::Service(service).spec().health_check_node_port();
  if (health_port) named.insert(health_port);
  // Kubernetes accepts that, and the proxy cannot serve both. At a create, the health port is refused as taken, as there.
  auto is_own_health_port = [&](int64_t number) { return number == health_port && kept.ports.contains(number); };
  std::set<std::pair<int64_t, std::string>> given;  // with the protocol
  for (size_t i = 0; i < all.size(); i++) {
    if (!all[i].is_object()) continue;
    const int64_t port = view::ServicePort(all[i]).port();
    std::string protocol(view::ServicePort(all[i]).protocol()), field = "spec.ports[" + std::to_string(i) + "].nodePort";
    int64_t wanted = view::ServicePort(all[i]).node_port();
    if (wanted == 0) {
      if (!allocates) continue;
      auto twin = by_port.find(port);
      if (twin != by_port.end() && !given.contains({twin->second, protocol}) && !is_taken(twin->second)) {
        wanted = twin->second;
      } else {
        auto found = dynamic.next_free(others, [&](int64_t number) { return named.contains(number); });
        if (!found) return internal_error("failed to allocate a nodePort: range is full");
        wanted = *found;
        by_port.emplace(port, wanted);
      }
    } else if (!kept.ports.contains(wanted) && (wanted < ranges.node_port_min || wanted > ranges.node_port_max)) {
      return invalid(kService, name,
                     {invalid_value(field, std::to_string(wanted),
                                    "provided port is not in the valid range. The range of valid ports is " +
                                        std::to_string(ranges.node_port_min) + "-" + std::to_string(ranges.node_port_max))});
    } else if (is_taken(wanted) || is_own_health_port(wanted) || given.contains({wanted, protocol})) {
      return invalid(kService, name, {invalid_value(field, std::to_string(wanted), "provided port is already allocated")});
    }
    given.emplace(wanted, protocol);
    numbers.insert(wanted);
    all[i].get_object()["nodePort"] = wanted;
  }
  return numbers;
}

// A load balancer with externalTrafficPolicy Local has a health check node port.
bool has_health_port(const json::value& service) {
  view::ServiceSpec spec = view::Service(service).spec();
  return spec.type() == "LoadBalancer" && spec.external_traffic_policy() == "Local";
}

// `given`: the node ports of the same Service.
Result<void> give_health_port(json::value& service, const ServiceIndex::AllocatedByOthers& others, const Kept& kept,
                              const std::set<int64_t>& given, const Ranges& ranges) {
  int64_t port = view::Service(service).spec().health_check_node_port();
  bool is_kept = kept.ports.contains(port), outside = port < ranges.node_port_min || port > ranges.node_port_max;
  std::string failed = "failed to allocate requested HealthCheck NodePort " + std::to_string(port) + ": ";
  if (port != 0 && outside && !is_kept)
    return internal_error(failed + "provided port is not in the valid range. The range of valid ports is " +
                          std::to_string(ranges.node_port_min) + "-" + std::to_string(ranges.node_port_max));
  bool taken = given.contains(port) || (!is_kept && others.has_port(port));
  if (port != 0 && taken) return internal_error(failed + "provided port is already allocated");
  if (port != 0) return {};
  auto found = NodePorts(ranges).next_free(others, [&](int64_t number) { return given.contains(number); });
  if (!found) return internal_error("failed to allocate a HealthCheck NodePort 0: range is full");
  make(service, "spec.healthCheckNodePort") = *found;
  return {};
}

bool has_address(std::string_view type) {
  return type == "ClusterIP" || type == "NodePort" || type == "LoadBalancer" || type.empty();
}
bool has_ports(std::string_view type) { return type == "NodePort" || type == "LoadBalancer"; }

// Whether ports that name no node port get one.
bool allocates_ports(const json::value& service) {
  view::ServiceSpec spec = view::Service(service).spec();
  return spec.type() == "NodePort" || (spec.type() == "LoadBalancer" && spec.allocate_load_balancer_node_ports_or(true));
}

bool is_family_six(std::string_view address) { return address.find(':') != std::string_view::npos; }

// Sets the IP families. Only IPv4 is served; requests for another family or for two are rejected. A headless service without a
// selector may have any, because its endpoints are external. Source: Kubernetes pkg/registry/core/service/storage/alloc.go.
Result<void> settle_families(json::value& service) {
  view::ServiceSpec spec = view::Service(service).spec();
  std::string name(view::Service(service).metadata().name());
  const json::array& addresses = spec.cluster_ips().raw();
  json::array families = spec.ip_families().raw();
  std::string policy(spec.ip_family_policy());
  bool any_family = spec.cluster_ip() == "None" && spec.selector().empty();
  bool two = addresses.size() > 1 || families.size() > 1;
  if (policy.empty()) policy = any_family || two ? "RequireDualStack" : "SingleStack";
  std::vector<Cause> causes;
  for (auto [field, given] : {std::pair("spec.clusterIPs", &addresses), std::pair("spec.ipFamilies", &std::as_const(families))})
    if (given->size() > 2)
      return invalid(kService, name, {invalid_value(field, to_text(*given), "may only hold up to 2 values")});
  auto refuse_two = [&](size_t count, const char* what) {
    if (policy != "SingleStack" || count < 2) return;
    causes.push_back(invalid_value(
        "spec.ipFamilyPolicy", quoted(policy),
        "must be \"RequireDualStack\" or \"PreferDualStack\" when multiple " + std::string(what) + " are specified"));
  };
  refuse_two(addresses.size(), "clusterIPs"), refuse_two(families.size(), "ipFamilies");
  if (any_family && causes.empty()) {
    if (families.empty()) families.emplace_back("IPv4");
    if (policy != "SingleStack" && families.size() == 1)
      families.emplace_back(families[0] == json::value("IPv4") ? "IPv6" : "IPv4");
    make(service, "spec.ipFamilies") = std::move(families);
    make(service, "spec.ipFamilyPolicy") = policy;
    return {};
  }
  if (policy == "RequireDualStack")
    causes.push_back(
        invalid_value("spec.ipFamilyPolicy", quoted(policy), "this cluster is not configured for dual-stack services"));
  for (size_t i = 0; i < families.size(); i++)
    if (families[i] == json::value("IPv6"))
      causes.push_back(invalid_value("spec.ipFamilies[" + std::to_string(i) + "]", "\"IPv6\"", "not configured on this cluster"));
  for (size_t i = families.size(); i < addresses.size(); i++)
    if (addresses[i].is_string() && is_family_six(addresses[i].get_string()))
      causes.push_back(invalid_value("spec.clusterIPs[" + std::to_string(i) + "]", to_text(addresses),
                                     "IPv6 is not configured on this cluster"));
  if (!causes.empty()) return invalid(kService, name, std::move(causes));
  if (families.empty()) families.emplace_back("IPv4");
  make(service, "spec.ipFamilies") = std::move(families);
  make(service, "spec.ipFamilyPolicy") = policy;
  return {};
}

void drop(json::value& service, std::initializer_list<std::string_view> fields) {
  json::value& spec = make(service, "spec");
  for (std::string_view field : fields) spec.get_object().erase(field);
}

Result<void> choose(json::value& service, const ServiceIndex::AllocatedByOthers& others, const Kept& kept, const Ranges& ranges) {
  std::string type(view::Service(service).spec().type());
  if (has_address(type)) {
    TRY(settle_families(service));
    if (view::Service(service).spec().cluster_ip() == "None") make(service, "spec.clusterIPs") = json::array{"None"};
    else TRY(give_address(service, others, kept, ranges));
  }
  if (!has_ports(type)) return {};
  const std::set<int64_t> given = TRY(give_ports(service, others, kept, allocates_ports(service), ranges));
  return has_health_port(service) ? give_health_port(service, others, kept, given, ranges) : Result<void>();
}

Result<void> allocate(json::value& service, const Kept& kept, const Allocation& allocation) {
  auto choose_among = [&](const ServiceIndex::AllocatedByOthers& others) {
    return choose(service, others, kept, allocation.ranges);
  };
  allocation.hold = TRY(allocation.services.reserve(service, !allocation.dry_run, choose_among));
  return {};
}

Result<void> allocate_at_create(json::value& service, const Allocation& allocation) { return allocate(service, {}, allocation); }

void prepare_service_create(json::value& service) {
  service.get_object()["status"] = json::object{{"loadBalancer", json::object()}};
  view::ServiceSpec spec = view::Service(service).spec();
  if (!spec.cluster_ip().empty() || spec.cluster_ips().empty()) return;
  if (json::value first = spec.cluster_ips().raw()[0]; first.is_string()) make(service, "spec.clusterIP") = std::move(first);
}

// After a change to a type without node ports, removes the allocated ones. Ports that the client adds now are left for validation
// to reject.
void drop_node_ports(json::value& service, const json::value& old) {
  std::set<int64_t> given;
  for (view::ServicePort port : view::Service(old).spec().ports()) given.insert(port.node_port());
  json::value& ports = make(service, "spec.ports");
  if (!ports.is_array()) return;
  for (json::value& port : ports.get_array())
    if (port.is_object() && given.contains(view::ServicePort(port).node_port())) port.get_object().erase("nodePort");
}

// Removes fields of the old type that the client has sent back unchanged.
void drop_unchanged(json::value& service, const json::value& old, std::initializer_list<std::string_view> fields) {
  const json::object& before_all = view::Service(old).spec().members();
  for (std::string_view field : fields) {
    const json::object& now_all = view::Service(service).spec().members();  // changes with each field that is removed
    const json::value *now = now_all.if_contains(field), *before = before_all.if_contains(field);
    if (now && before && same_json(*now, *before)) drop(service, {field});
  }
}

std::string_view protocol_of(view::ServicePort port) { return port.protocol().empty() ? "TCP" : port.protocol(); }

// Keeps the node ports that the client omits: of the port of that name, else of that number and protocol, unless another port has
// them now. Source: Kubernetes pkg/registry/core/service/storage/storage.go, patchAllocatedValues, which knows only the names.
void keep_node_ports(json::value& service, const json::value& old) {
  json::value& ports = make(service, "spec.ports");
  if (!ports.is_array()) return;
  std::set<int64_t> used;
  for (view::ServicePort port : view::Service(service).spec().ports()) used.insert(port.node_port());
  std::map<std::string_view, int64_t> by_name;
  std::map<std::pair<int64_t, std::string_view>, int64_t> by_number;  // and protocol
  for (view::ServicePort before : view::Service(old).spec().ports()) {
    int64_t number = before.node_port();
    if (number == 0 || used.contains(number)) continue;
    by_name[before.name()] = number;
    by_number[{before.port(), protocol_of(before)}] = number;
  }
  auto keep = [&](const auto& numbers, auto&& key_of) {
    std::vector<int64_t> kept;
    for (json::value& port : ports.get_array()) {
      if (!port.is_object() || view::ServicePort(port).node_port() != 0) continue;
      auto found = numbers.find(key_of(view::ServicePort(port)));
      if (found == numbers.end() || used.contains(found->second)) continue;
      port.get_object()["nodePort"] = found->second;
      kept.push_back(found->second);  // TCP and UDP may share it
    }
    used.insert(kept.begin(), kept.end());
  };
  keep(by_name, [](view::ServicePort port) { return port.name(); });
  keep(by_number, [](view::ServicePort port) { return std::pair(port.port(), protocol_of(port)); });
}

// Keeps allocated values that the client omits, if the type still has them.
void prepare_service_update(json::value& service, const json::value& old) {
  view::ServiceSpec before = view::Service(old).spec();
  std::string type(view::Service(service).spec().type()), old_type(before.type());
  bool keeps_address = has_address(type) && has_address(old_type);
  if (!has_address(type) && has_address(old_type))
    drop_unchanged(service, old, {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"});
  if (keeps_address && view::Service(service).spec().cluster_ip().empty()) {
    for (std::string_view field : {"clusterIP", "clusterIPs"})
      if (const json::value* kept = before.members().if_contains(field)) make(service, "spec").get_object()[field] = *kept;
  }
  if (keeps_address && view::Service(service).spec().ip_family_policy().empty())
    if (before.has_ip_family_policy()) make(service, "spec.ipFamilyPolicy") = before.ip_family_policy();
  if (old_type == "LoadBalancer" && type != old_type)
    drop_unchanged(service, old, {"allocateLoadBalancerNodePorts", "loadBalancerClass"});
  if (!has_ports(type) && has_ports(old_type)) drop_unchanged(service, old, {"externalTrafficPolicy"});
  if (has_health_port(old) && !has_health_port(service)) drop_unchanged(service, old, {"healthCheckNodePort"});
  if (has_health_port(old) && has_health_port(service) && view::Service(service).spec().health_check_node_port() == 0) {
    make(service, "spec.healthCheckNodePort") = before.health_check_node_port();
  }
  if (!has_ports(type)) return drop_node_ports(service, old);
  if (allocates_ports(service) && allocates_ports(old)) keep_node_ports(service, old);
}

Result<void> allocate_update(json::value& service, const Object& old, const Allocation& allocation) {
  return allocate(service, Kept::of(old.json()), allocation);
}

}  // namespace

extern const StrategyFamily service_strategies;
const StrategyFamily service_strategies{{{.kind = &kService,
                                          .prepare_create = prepare_service_create,
                                          .prepare_update = prepare_service_update,
                                          .allocate_create = allocate_at_create,
                                          .allocate_update = allocate_update}}};

}  // namespace coracle::kinds
