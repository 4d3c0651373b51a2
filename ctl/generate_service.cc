// SPDX-License-Identifier: Apache-2.0
// Services from flags, and Services for objects that exist. See generate.h.
// Source: kubectl pkg/cmd/create/create_service.go, pkg/cmd/expose, pkg/cmd/run.
#include <algorithm>
#include <set>

#include "ctl/flag_values.h"
#include "ctl/generate.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"

namespace coracle::ctl {
namespace {

constexpr size_t kServiceNameBytesMax = 63;

// "PORT[:TARGETPORT]". More parts are ignored, as in kubectl.
Result<json::value> tcp_port_of(const std::string& text, int64_t node_port) {
  std::vector<std::string> parts = split_words(text, ':');
  auto port = parse_number<uint16_t>(parts[0]);
  if (!port) return Error(Code::bad_request, fault_of_port(parts[0]));
  json::value target = *port;
  if (parts.size() > 1) {
    if (auto number = parse_number<int64_t>(parts[1])) {
      if (*number < 1 || *number > 65535) return Error(Code::bad_request, "must be between 1 and 65535, inclusive");
      target = *number;
    } else {
      TRY(check_port_name(parts[1]));
      target = parts[1];
    }
  }
  json::object entry{{"name", join(parts, "-")}, {"protocol", "TCP"}, {"port", *port}, {"targetPort", std::move(target)}};
  if (node_port) entry["nodePort"] = node_port;
  return json::value(std::move(entry));
}

json::value service_with(json::object object, json::object spec) {
  object["spec"] = std::move(spec);
  make(object["status"], "loadBalancer").emplace_object();
  return object;
}

}  // namespace

Result<json::value> service_of(const ServiceFlags& flags) {
  bool external = flags.type == "ExternalName";
  if (flags.cluster_ip == "None" && flags.type != "ClusterIP")
    return Error(Code::bad_request, "ClusterIP=None can only be used with ClusterIP service type");
  if (flags.tcp.empty() && flags.cluster_ip != "None" && !external)
    return Error(Code::bad_request, "at least one tcp port specifier must be provided");
  if (external && !is_dns_subdomain(flags.external_name))
    return Error(Code::bad_request, "invalid service external name " + flags.external_name);
  json::array ports;
  for (const auto& text : flags.tcp) {
    json::value port = TRY(tcp_port_of(text, flags.node_port));
    ports.push_back(std::move(port));
  }
  json::object labels{{"app", flags.name}}, spec, object = named_object("v1", "Service", flags.name);
  object["metadata"].get_object()["labels"] = labels;
  if (!ports.empty()) spec["ports"] = std::move(ports);
  spec["selector"] = labels;
  if (!flags.cluster_ip.empty()) spec["clusterIP"] = flags.cluster_ip;
  spec["type"] = flags.type;
  if (!flags.external_name.empty()) spec["externalName"] = flags.external_name;
  return service_with(std::move(object), std::move(spec));
}

Result<json::value> run_service_of(const PodFlags& flags) {
  json::object labels = TRY(labels_of(flags.labels));
  auto port = parse_number<int64_t>(flags.port);
  if (!port) return Error(Code::bad_request, "--port must be set when exposing a service");
  json::object object = named_object("v1", "Service", flags.name);
  if (!labels.empty()) object["metadata"].get_object()["labels"] = labels;
  else labels["run"] = flags.name;
  json::object spec{{"ports", json::array{json::object{{"protocol", "TCP"}, {"port", *port}, {"targetPort", *port}}}},
                    {"selector", std::move(labels)}};
  return service_with(std::move(object), std::move(spec));
}

namespace {

using OpenPorts = std::vector<std::pair<int64_t, std::set<std::string>>>;  // port and its protocols, in the order of ports

OpenPorts open_ports(const json::value& object, const schema::KindInfo& kind) {
  OpenPorts all;
  auto add = [&](int64_t number, std::string_view given) {
    auto known = std::ranges::find(all, number, &OpenPorts::value_type::first);
    if (known == all.end()) known = all.insert(all.end(), {number, {}});
    known->second.insert(given.empty() ? "TCP" : std::string(given));
  };
  if (kind.kind == kService) {
    for (view::ServicePort port : view::Service(object).spec().ports()) add(port.port(), port.protocol());
    return all;
  }
  // All workloads have the template at the same place.
  view::PodSpec pod = kind.kind == kPod ? view::Pod(object).spec() : view::Deployment(object).spec().template_().spec();
  for (view::Container container : pod.containers())
    for (view::ContainerPort port : container.ports()) add(port.container_port(), port.protocol());
  return all;
}

// The ports in --port with their protocols from `open`; TCP for a port that is not in it. Errors: bad_request.
Result<OpenPorts> named_ports(const OpenPorts& open, std::string_view names) {
  OpenPorts named;
  for (std::string_view text : split(names, ',')) {
    auto number = parse_number<int64_t>(text);
    if (!number) return Error(Code::bad_request, "strconv.Atoi: parsing " + coracle::quoted(text) + ": invalid syntax");
    auto known = std::ranges::find(open, *number, &OpenPorts::value_type::first);
    named.emplace_back(*number, known == open.end() ? std::set<std::string>{"TCP"} : known->second);
  }
  return named;
}

Result<json::array> exposed_ports(OpenPorts wanted, const ExposeFlags& flags) {
  if (!flags.port.empty()) wanted = TRY(named_ports(wanted, flags.port));
  json::array ports;
  for (size_t i = 0; i < wanted.size(); ++i) {
    auto& [number, protocols] = wanted[i];
    if (!flags.protocol.empty()) protocols = {flags.protocol};
    for (const std::string& protocol : protocols) {
      json::object port;
      std::string name = "port-" + std::to_string(i + 1);
      if (protocols.size() > 1) port["name"] = name + "-" + to_lower(protocol);
      else if (wanted.size() > 1) port["name"] = name;
      port["protocol"] = protocol;
      port["port"] = number;
      port["targetPort"] = flags.target_port.empty() ? json::value(number) : count_or_text(flags.target_port);
      ports.push_back(std::move(port));
    }
  }
  return ports;
}

// How Go's %+v prints the expressions of a selector.
std::string printed_expressions(view::Range<view::LabelSelectorRequirement> expressions) {
  std::vector<std::string> all;
  for (view::LabelSelectorRequirement one : expressions)
    all.push_back("{Key:" + std::string(one.key()) + " Operator:" + std::string(one.operator_()) + " Values:[" +
                  join(view::strings(one.values()), " ") + "]}");
  return "[" + join(all, " ") + "]";
}

Result<json::object> exposed_selector(const json::value& object, const schema::KindInfo& kind, const ExposeFlags& flags) {
  if (!flags.selector.empty()) return labels_of(split_words(flags.selector, ','));
  auto fault = [](const std::string& why) {
    return Error(Code::invalid, "couldn't retrieve selectors via --selector flag or introspection: " + why);
  };
  if (kind.kind == kPod) {
    const json::object& labels = metadata_of(object).labels();
    if (labels.empty()) return fault("the pod has no labels and cannot be exposed");
    return labels;
  }
  if (kind.kind == kService || kind.kind == kReplicationController) {  // their selectors are plain maps at the same place
    view::ServiceSpec spec = view::Service(object).spec();
    if (kind.kind == kService && !spec.has_selector()) return fault("the service has no pod selector set");
    const json::object& selector = spec.selector();
    if (selector.empty()) return Error(Code::invalid, "selector must be specified");
    return selector;
  }
  view::LabelSelector selector = view::Deployment(object).spec().selector();
  const json::object& labels = selector.match_labels();
  if (labels.empty()) return fault("invalid " + std::string(kind.singular) + ": no selectors, therefore cannot be exposed");
  if (!selector.match_expressions().empty())  // a Service selects by labels alone
    return fault("couldn't convert expressions - \"" + printed_expressions(selector.match_expressions()) +
                 "\" to map-based selector format");
  return labels;
}

}  // namespace

Result<json::value> exposing_service_of(const json::value& object, const schema::KindInfo& kind, const ExposeFlags& flags) {
  bool exposable = kind.kind == kPod || kind.kind == kService || kind.kind == kReplicationController ||
                   kind.kind == kDeployment || kind.kind == kReplicaSet;
  if (!exposable)
    return Error(Code::bad_request, "cannot expose a " + std::string(kind.kind.kind) + (kind.kind.group.empty() ? "" : ".") +
                                        std::string(kind.kind.group));
  json::object selector = TRY(exposed_selector(object, kind, flags));
  json::array ports = TRY(exposed_ports(open_ports(object, kind), flags));
  if (ports.empty() && flags.cluster_ip != "None")
    return Error(Code::bad_request, "couldn't find port via --port flag or introspection");
  if (!flags.session_affinity.empty() && flags.session_affinity != "None" && flags.session_affinity != "ClientIP")
    return Error(Code::bad_request, "unknown session affinity: " + flags.session_affinity);
  std::string name(metadata_of(object).name().substr(0, kServiceNameBytesMax));
  json::object service = named_object("v1", "Service", flags.name.empty() ? name : flags.name);
  json::object labels = TRY(labels_of(flags.labels));
  if (labels.empty()) labels = metadata_of(object).labels();
  if (!labels.empty()) service["metadata"].get_object()["labels"] = std::move(labels);
  json::object spec;
  if (!ports.empty()) spec["ports"] = std::move(ports);
  spec["selector"] = std::move(selector);
  if (!flags.cluster_ip.empty()) spec["clusterIP"] = flags.cluster_ip;
  if (!flags.type.empty()) spec["type"] = flags.type;
  if (!flags.external_ip.empty()) spec["externalIPs"] = json::array{json::string(flags.external_ip)};
  if (!flags.session_affinity.empty()) spec["sessionAffinity"] = flags.session_affinity;
  if (flags.type == "LoadBalancer" && !flags.load_balancer_ip.empty()) spec["loadBalancerIP"] = flags.load_balancer_ip;
  return overridden(service_with(std::move(service), std::move(spec)), flags.overrides, flags.override_type);
}

}  // namespace coracle::ctl
