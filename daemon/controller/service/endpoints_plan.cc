// SPDX-License-Identifier: Apache-2.0
// The backends of a Service, and the objects that contain them. See endpoints.h.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "daemon/controller/service/endpoints.h"
#include "store/object/selector.h"

namespace coracle::controller {
namespace {

constexpr const char* kAddressed = "addressed";  // index of pods
constexpr const char* kByService = "service";    // index of slices; the gate of the start order adds the same

std::string_view family_of(std::string_view address) { return address.find(':') == address.npos ? "IPv4" : "IPv6"; }

std::string address_of(view::Pod pod, std::string_view family) {
  for (view::PodIP address : pod.status().pod_ips())
    if (family_of(address.ip()) == family) return std::string(address.ip());
  std::string_view only = pod.status().pod_ip();
  return !only.empty() && family_of(only) == family ? std::string(only) : "";
}

// The ports of a pod by name and protocol, from the first container that has each.
using NamedPorts = std::map<std::pair<std::string_view, std::string_view>, int64_t>;

NamedPorts named_ports(view::Pod pod) {
  NamedPorts named;
  auto add = [&](view::Container container) {
    for (view::ContainerPort port : container.ports())
      if (!port.name().empty()) named.try_emplace({port.name(), port.protocol()}, port.container_port());
  };
  for (view::Container container : pod.spec().containers()) add(container);
  for (view::Container container : pod.spec().init_containers())
    // Other init containers end before the main ones start and serve nothing.
    if (container.restart_policy() == "Always") add(container);
  return named;
}

// The container port of a named target port and its protocol; 0 if this pod has none. `named`: the pod's ports, filled on first
// use, because a Service and a pod may have thousands of ports each.
int64_t target_port(view::Pod pod, view::ServicePort port, std::optional<NamedPorts>& named) {
  const json::value* target = port.target_port();
  if (!target) return port.port();
  if (target->is_int64()) return target->get_int64() ? target->get_int64() : port.port();
  if (!target->is_string()) return 0;
  std::string_view name(target->get_string().data(), target->get_string().size());
  if (!named) named = named_ports(pod);
  auto found = named->find({name, port.protocol()});
  return found == named->end() ? 0 : found->second;
}

std::vector<ServicePort> ports_of(view::Service service, view::Pod pod) {
  std::vector<ServicePort> ports;
  std::optional<NamedPorts> named;
  for (view::ServicePort port : service.spec().ports())
    if (int64_t number = target_port(pod, port, named))
      ports.push_back({std::string(port.name()), std::string(port.protocol()), std::string(port.app_protocol()), number});
  return ports;
}

json::value reference_to(const Object& pod) {
  return {{"kind", "Pod"}, {"namespace", pod.ns()}, {"name", pod.name()}, {"uid", pod.uid()}};
}

}  // namespace

bool is_headless(const Object& service) { return view::Service(service).spec().cluster_ip() == "None"; }

std::vector<std::string> families(const Object& service) {
  std::vector<std::string> out;
  for (std::string_view family : view::Service(service).spec().ip_families()) out.emplace_back(family);
  if (out.empty()) out.emplace_back("IPv4");
  return out;
}

std::vector<Backend> backends(const Object& object, const std::vector<ObjectPtr>& pods, std::string_view family,
                              const std::function<std::string(std::string_view node)>& zone_of) {
  view::Service service(object);
  std::string_view spread = service.spec().traffic_distribution();
  bool same_node = spread == "PreferSameNode", close = same_node || spread == "PreferSameZone" || spread == "PreferClose";
  std::vector<Backend> out;
  SharedPorts before;  // pods of one template have the same ports
  for (const ObjectPtr& pod_object : pods) {
    view::Pod pod(*pod_object);
    std::string address = address_of(pod, family);
    if (address.empty() || is_terminal(pod)) continue;
    SharedPorts ports = ports_of(service, pod);
    if (ports->empty() && !service.spec().ports().empty()) continue;  // it has none of the requested ports
    if (ports == before) ports = before;
    before = ports;
    Backend backend{std::move(address), std::move(ports)};
    backend.serving = is_ready(pod);
    backend.terminating = pod_object->deleting();
    backend.ready = service.spec().publish_not_ready_addresses() || (backend.serving && !backend.terminating);
    backend.node = pod.spec().node_name();
    if (zone_of) backend.zone = zone_of(backend.node);
    backend.prefers_zone = close && backend.ready && !backend.zone.empty();
    backend.prefers_node = same_node && backend.ready && !backend.node.empty();
    if (pod.spec().subdomain() == object.name()) backend.hostname = pod.spec().hostname();
    backend.target = reference_to(*pod_object);
    out.push_back(std::move(backend));
  }
  std::sort(out.begin(), out.end(), [](const Backend& a, const Backend& b) {
    auto key = [](const Backend& backend) {
      return std::tuple(std::string_view(backend.address), !backend.ready, !backend.serving);
    };
    return key(a) < key(b);
  });
  return out;
}

// ---- Endpoints ----

namespace {

json::value endpoint_address(const Backend& backend) {
  json::object out{{"ip", backend.address}};
  if (!backend.hostname.empty()) out["hostname"] = backend.hostname;
  if (!backend.node.empty()) out["nodeName"] = backend.node;
  if (!backend.target.is_null()) out["targetRef"] = backend.target;
  return out;
}

json::value port_json(const ServicePort& port) {
  json::object out;
  if (!port.name.empty()) out["name"] = port.name;
  out["port"] = port.port;
  out["protocol"] = port.protocol.empty() ? "TCP" : port.protocol;
  if (!port.app_protocol.empty()) out["appProtocol"] = port.app_protocol;
  return out;
}

json::array ports_json(const std::vector<ServicePort>& ports) {
  json::array out;
  for (const ServicePort& port : ports) out.push_back(port_json(port));
  return out;
}

// If not all fit, ready addresses take precedence.
json::array subsets_of(const std::vector<Backend>& backends, bool& truncated) {
  std::map<SharedPorts, std::pair<json::array, json::array>> by_ports;  // ready, not ready
  size_t count = 0;
  auto add = [&](const Backend& backend) {
    truncated = ++count > kEndpointsMax;
    if (truncated) return;
    auto& [ready, not_ready] = by_ports[backend.ports];
    (backend.ready ? ready : not_ready).push_back(endpoint_address(backend));
  };
  for (const Backend& backend : backends)
    if (backend.ready) add(backend);
  for (const Backend& backend : backends)
    if (!backend.ready && !backend.terminating) add(backend);
  json::array subsets;
  for (auto& [ports, addresses] : by_ports) {
    json::object subset;
    if (!addresses.first.empty()) subset["addresses"] = std::move(addresses.first);
    if (!addresses.second.empty()) subset["notReadyAddresses"] = std::move(addresses.second);
    if (!ports->empty()) subset["ports"] = ports_json(*ports);
    subsets.push_back(std::move(subset));
  }
  return subsets;
}

}  // namespace

json::value endpoints_object(const Object& service, const std::vector<Backend>& backends, const ObjectPtr& present) {
  bool truncated = false;
  json::array subsets = subsets_of(backends, truncated);
  json::object labels = service.labels();
  labels.erase(kHeadlessLabel);
  labels["endpoints.kubernetes.io/managed-by"] = "endpoint-controller";
  if (is_headless(service)) labels[kHeadlessLabel] = "";
  json::value body = present ? present->json()
                             : json::value{{"apiVersion", "v1"},
                                           {"kind", "Endpoints"},
                                           {"metadata", {{"name", service.name()}, {"namespace", service.ns()}}}};
  make(body, "metadata.labels") = std::move(labels);
  constexpr std::string_view kOverCapacity = "endpoints.kubernetes.io/over-capacity";
  if (truncated) make_object(body, "metadata.annotations")[kOverCapacity] = "truncated";
  else if (view::Endpoints(body).metadata().has_annotations()) make_object(body, "metadata.annotations").erase(kOverCapacity);
  if (subsets.empty()) body.as_object().erase("subsets");
  else body.as_object()["subsets"] = std::move(subsets);
  return body;
}

// ---- EndpointSlices ----

namespace {

json::value slice_endpoint(const Backend& backend) {
  json::object out{
      {"addresses", {backend.address}},
      {"conditions", {{"ready", backend.ready}, {"serving", backend.serving}, {"terminating", backend.terminating}}}};
  if (!backend.hostname.empty()) out["hostname"] = backend.hostname;
  if (!backend.target.is_null()) out["targetRef"] = backend.target;
  if (!backend.node.empty()) out["nodeName"] = backend.node;
  if (!backend.zone.empty()) out["zone"] = backend.zone;
  json::object hints;
  if (backend.prefers_zone) hints["forZones"] = json::array{{{"name", backend.zone}}};
  if (backend.prefers_node) hints["forNodes"] = json::array{{{"name", backend.node}}};
  if (!hints.empty()) out["hints"] = std::move(hints);
  return out;
}

json::array slice_ports(const std::vector<ServicePort>& ports) {
  json::array out = ports_json(ports);
  for (json::value& port : out)  // EndpointSlice ports have an explicit empty name
    if (!port.as_object().contains("name")) port.as_object()["name"] = "";
  return out;
}

json::object slice_labels(const SliceOwner& owner) {
  json::object labels = owner.owner.labels();
  for (std::string_view own : {kHeadlessLabel, kSkipMirrorLabel}) labels.erase(own);
  labels.erase("endpoints.kubernetes.io/managed-by");
  if (owner.headless) labels[kHeadlessLabel] = "";
  labels[kServiceNameLabel] = owner.service;
  labels[kManagedByLabel] = owner.manager;
  return labels;
}

// A mirrored slice gets the annotations of its Endpoints, except those that concern that object only.
void copy_annotations(const SliceOwner& owner, json::value& slice) {
  if (owner.manager != kSliceMirror) return;
  json::object annotations = metadata_of(owner.owner).annotations();
  for (const char* own : {"kubectl.kubernetes.io/last-applied-configuration", "endpoints.kubernetes.io/last-change-trigger-time"})
    annotations.erase(own);
  if (!annotations.empty()) make(slice, "metadata.annotations") = std::move(annotations);
  else if (view::EndpointSlice(slice).metadata().has_annotations()) make_object(slice, "metadata").erase("annotations");
}

json::value new_slice(const SliceOwner& owner, const std::string& family) {
  return {{"apiVersion", "discovery.k8s.io/v1"},
          {"kind", "EndpointSlice"},
          {"metadata",
           {{"generateName", owner.service + "-"},
            {"namespace", owner.owner.ns()},
            {"ownerReferences", json::array{controller_reference(owner.owner)}}}},
          {"addressType", family}};
}

// The endpoints of one family with one set of ports, distributed over the slices that contain them already, then over slices with
// free space, then over new ones.
struct Group {
  std::vector<ObjectPtr> slices;
  std::map<std::string, const Backend*> wanted;  // by address
};

class Spreader {
 public:
  Spreader(const SliceOwner& owner, const std::string& family, SlicePlan& plan) : owner_(owner), family_(family), plan_(plan) {}

  void spread(const std::vector<ServicePort>& ports, Group& group) {
    json::array port_list = slice_ports(ports);
    std::vector<json::array> kept(group.slices.size());
    for (size_t i = 0; i < group.slices.size(); ++i)
      for (view::Endpoint endpoint : view::EndpointSlice(*group.slices[i]).endpoints()) take(endpoint, group, kept[i]);
    for (size_t i = 0; i < kept.size(); ++i) {
      bool needed = !kept[i].empty();
      while (needed && kept[i].size() < kEndpointsPerSlice && !group.wanted.empty()) move_first(group, kept[i]);
    }
    for (size_t i = 0; i < kept.size(); ++i) {
      if (kept[i].empty())
        while (kept[i].size() < kEndpointsPerSlice && !group.wanted.empty()) move_first(group, kept[i]);
      if (kept[i].empty()) plan_.remove.push_back(group.slices[i]);
      else put(group.slices[i], port_list, std::move(kept[i]));
    }
    while (!group.wanted.empty()) {
      json::array fresh;
      while (fresh.size() < kEndpointsPerSlice && !group.wanted.empty()) move_first(group, fresh);
      put(nullptr, port_list, std::move(fresh));
    }
  }

  // A Service without endpoints has one empty slice.
  void placeholder(const std::vector<ObjectPtr>& slices) {
    put(slices.empty() ? nullptr : slices[0], {}, {});
    for (size_t i = 1; i < slices.size(); ++i) plan_.remove.push_back(slices[i]);
  }

 private:
  static void take(view::Endpoint endpoint, Group& group, json::array& into) {
    if (endpoint.addresses().empty()) return;
    auto found = group.wanted.find(std::string(endpoint.addresses()[0]));
    if (found == group.wanted.end()) return;
    into.push_back(slice_endpoint(*found->second));
    group.wanted.erase(found);
  }
  static void move_first(Group& group, json::array& into) {
    into.push_back(slice_endpoint(*group.wanted.begin()->second));
    group.wanted.erase(group.wanted.begin());
  }
  void put(const ObjectPtr& present, const json::array& ports, json::array endpoints) {
    json::value body = present ? present->json() : new_slice(owner_, family_);
    make(body, "metadata.labels") = slice_labels(owner_);
    copy_annotations(owner_, body);
    body.as_object()["endpoints"] = std::move(endpoints);
    body.as_object()["ports"] = ports;
    if (!present) plan_.create.push_back(std::move(body));
    else if (!same_json(body, present->json())) plan_.update.push_back(std::move(body));
  }

  const SliceOwner& owner_;
  const std::string& family_;
  SlicePlan& plan_;
};

std::vector<ServicePort> ports_in(const Object& slice) {
  std::vector<ServicePort> ports;
  for (auto port : view::EndpointSlice(slice).ports())
    ports.push_back({std::string(port.name()), std::string(port.protocol()), std::string(port.app_protocol()), port.port()});
  return ports;
}

}  // namespace

SlicePlan plan_slices(const SliceOwner& owner, const std::map<std::string, std::vector<Backend>>& wanted,
                      const std::vector<ObjectPtr>& present) {
  SlicePlan plan;
  std::set<std::string> known;
  for (const auto& [family, backends] : wanted) {
    known.insert(family);
    Spreader spreader(owner, family, plan);
    std::vector<ObjectPtr> slices;
    std::map<SharedPorts, Group> groups;
    for (const Backend& backend : backends) groups[backend.ports].wanted.emplace(backend.address, &backend);
    for (const ObjectPtr& slice : present)
      if (view::EndpointSlice(*slice).address_type() == family) slices.push_back(slice);
    if (groups.empty()) {
      spreader.placeholder(slices);
      continue;
    }
    for (const ObjectPtr& slice : slices) {
      auto group = groups.find(ports_in(*slice));
      if (group != groups.end()) group->second.slices.push_back(slice);
      else groups.begin()->second.slices.push_back(slice);  // its ports are outdated: it is reused for other endpoints
    }
    for (auto& [ports, group] : groups) spreader.spread(*ports, group);
  }
  for (const ObjectPtr& slice : present)
    if (!known.contains(std::string(view::EndpointSlice(*slice).address_type()))) plan.remove.push_back(slice);
  return plan;
}

std::map<std::string, std::vector<Backend>> backends_of_endpoints(const Object& endpoints) {
  std::map<std::string, std::vector<Backend>> out;
  for (view::EndpointSubset subset : view::Endpoints(endpoints).subsets()) {
    std::vector<ServicePort> listed;
    for (auto port : subset.ports())
      listed.push_back({std::string(port.name()), std::string(port.protocol()), std::string(port.app_protocol()), port.port()});
    const SharedPorts ports(std::move(listed));
    auto add = [&](auto addresses, bool ready) {
      for (view::EndpointAddress address : addresses) {
        Backend backend{std::string(address.ip()), ports, ready, ready, false};
        backend.node = address.node_name();
        backend.hostname = address.hostname();
        backend.target = address.target_ref().raw();
        out[std::string(family_of(address.ip()))].push_back(std::move(backend));
      }
    };
    add(subset.addresses(), true);
    add(subset.not_ready_addresses(), false);
  }
  return out;
}

Result<void> apply(Client& client, const SlicePlan& plan, const Key& key, OwnWrites& own) {
  for (const json::value& body : plan.create) {
    ObjectPtr created = TRY(client.create(kEndpointSlice, body).wrap("create slice"));
    own.wrote(key, created->revision());
  }
  for (const json::value& body : plan.update) {
    ObjectPtr updated = TRY(client.update(kEndpointSlice, body).wrap("update slice"));
    own.wrote(key, updated->revision());
  }
  for (const ObjectPtr& slice : plan.remove) {
    auto removed = client.remove(kEndpointSlice, slice->key(), {.uid = slice->uid()});
    if (!removed && removed.error().code() != Code::not_found) return removed.take_error().wrap("remove slice");
  }
  return {};
}

void name_services(const SelectorIndex& services, const Informer::Change& pod, const std::function<void(Key)>& enqueue) {
  bool has_new_labels = pod.before && pod.after && !same_json(pod.before->labels(), pod.after->labels());
  std::vector<Key> concerned = services.matching(pod.any());
  if (has_new_labels)
    for (Key& before : services.matching(*pod.before))
      if (!std::ranges::binary_search(concerned, before)) enqueue(std::move(before));
  for (Key& service : concerned) enqueue(std::move(service));
}

void index_by_service(Informer& slices) {
  slices.add_index(kByService, [](const Object& slice) -> std::vector<std::string> {
    return {slice.ns() + "/" + std::string(slice.label(kServiceNameLabel))};
  });
}

std::vector<ObjectPtr> slices_of(const Informer& slices, const Key& service, std::string_view manager) {
  std::vector<ObjectPtr> found = slices.by_index(kByService, service.text());
  std::erase_if(found, [&](const ObjectPtr& slice) { return slice->label(kManagedByLabel) != manager; });
  return found;
}

void index_addressed(Informer& pods) {
  pods.add_index(kAddressed, [](const Object& object) {
    view::Pod pod(object);
    bool may_serve = !(pod.status().pod_ip().empty() && pod.status().pod_ips().empty()) && !is_terminal(pod);
    return may_serve ? std::vector<std::string>{object.ns()} : std::vector<std::string>{};
  });
}

std::vector<ObjectPtr> selected_pods(const Informer& pods, const Object& service, SelectorCache& selectors) {
  auto selector = selectors.of(service);
  if (!selector) return {};
  std::vector<ObjectPtr> out = pods.by_index(kAddressed, service.ns());
  std::erase_if(out, [&](const ObjectPtr& pod) { return !selector->matches(*pod); });
  return out;
}

}  // namespace coracle::controller
