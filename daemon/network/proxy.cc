// SPDX-License-Identifier: Apache-2.0
// See proxy.h.
#include "daemon/network/proxy.h"

#include <algorithm>
#include <optional>
#include <set>

#include "daemon/network/endpoints.h"
#include "store/kinds/service/source_ranges.h"
#include "store/object/object.h"
#include "store/schema/views.h"

namespace coracle::network {
namespace {

constexpr const char* kListens = "a process of this machine listens there";
constexpr const char* kProtocols = "meta l4proto { tcp, udp, sctp }";

constexpr const char* kServices = "services";          // protocol . address . port → chain
constexpr const char* kNodePorts = "node-ports";       // protocol . port → chain
constexpr const char* kHostPorts = "host-ports";       // protocol . port → pod
constexpr const char* kHostPortsAt = "host-ports-at";  // protocol . address . port → pod
constexpr const char* kRefused = "refused";            // protocol . address . port without an endpoint
constexpr const char* kRefusedNodePorts = "refused-node-ports";
constexpr const char* kHairpin = "hairpin";  // endpoints as source and destination of the same packet

std::string key(Protocol protocol, uint16_t port) { return std::string(protocol_name(protocol)) + " . " + std::to_string(port); }

std::string key(Protocol protocol, Ipv4 address, uint16_t port) {
  return std::string(protocol_name(protocol)) + " . " + address.text() + " . " + std::to_string(port);
}

std::string target(Ipv4 address, uint16_t port) { return address.text() + " . " + std::to_string(port); }

// Names become part of a script, so only the characters of DNS names are allowed.
bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 253 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
}

// Matches this machine's addresses except those for Services: the DNS server's address is on an interface too.
std::string own_address(const ProxyInput& input) {
  return "ip daddr != 127.0.0.0/8 ip daddr != " + input.services.text() + " fib daddr type local";
}

// The table without any Service.
Ruleset base_rules(const ProxyInput& input) {
  const std::string anchor = std::string("\"") + kAnchorName + "\"", ours = std::string("\"") + kLinkPrefix + "*\"";
  const std::string dns = input.dns.text(), own = own_address(input);
  Ruleset rules;
  rules.sets[kServices] = {true, "type inet_proto . ipv4_addr . inet_service : verdict;", {}};
  rules.sets[kNodePorts] = {true, "type inet_proto . inet_service : verdict;", {}};
  rules.sets[kHostPorts] = {true, "type inet_proto . inet_service : ipv4_addr . inet_service;", {}};
  rules.sets[kHostPortsAt] = {true, "type inet_proto . ipv4_addr . inet_service : ipv4_addr . inet_service;", {}};
  rules.sets[kRefused] = {false, "type inet_proto . ipv4_addr . inet_service;", {}};
  rules.sets[kRefusedNodePorts] = {false, "type inet_proto . inet_service;", {}};
  rules.sets[kHairpin] = {false, "type ipv4_addr . ipv4_addr;", {}};

  // If the rules change while a packet traverses them, it uses the old chain of its Service, but the endpoints in its map are
  // gone already, because the kernel evaluates maps in the newest generation. So packets that were not translated pass a second
  // time.
  const std::string to_pod = std::string(kProtocols) + " dnat ip to ";
  for (const std::string hook : {"prerouting", "output"}) {
    std::vector<std::string> all = {"jump translate"};
    if (hook == "output") {
      all.push_back("ip daddr 127.0.0.0/8 " + to_pod + "meta l4proto . ip daddr . th dport map @host-ports-at");
      all.push_back("ip daddr 127.0.0.1 " + to_pod + "meta l4proto . th dport map @host-ports");
    }
    rules.chains[hook] = {"type nat hook " + hook + " priority -100; policy accept;", all};
    rules.chains[hook + "-again"] = {"type nat hook " + hook + " priority -99; policy accept;", all};
  }
  rules.chains["translate"].rules = {
      "meta l4proto . ip daddr . th dport vmap @services",
      own + " " + to_pod + "meta l4proto . ip daddr . th dport map @host-ports-at",
      own + " meta l4proto . th dport vmap @node-ports",
      own + " " + to_pod + "meta l4proto . th dport map @host-ports",
  };
  rules.chains["postrouting"] = {"type nat hook postrouting priority 100; policy accept;",
                                 {
                                     "ct status dnat ip saddr . ip daddr @hairpin snat to " + input.pods.at(1).text(),
                                     "ip saddr 127.0.0.0/8 oifname " + ours + " snat to " + input.pods.at(1).text(),
                                     "ct status dnat oifname != \"lo\" oifname != " + ours + " masquerade",
                                     "ip saddr " + input.pods.text() + " oifname != \"lo\" oifname != " + ours + " masquerade",
                                 }};

  const std::string no_service = "ip daddr " + input.services.text() + " ip daddr != " + dns + " goto refuse";
  const std::string refuse_named = "meta l4proto . ip daddr . th dport @refused goto refuse";
  // No veth is attached to the bridge: packets routed to it are for a Service without endpoints, or for no Service. (Packets that
  // this machine sends to itself still have the bridge's name here after translation, so for them the address is checked.)
  rules.chains["filter-forward"] = {"type filter hook forward priority 0; policy accept;",
                                    {"oifname " + anchor + " goto refuse", refuse_named}};
  rules.chains["filter-output"] = {"type filter hook output priority 0; policy accept;",
                                   {
                                       no_service,
                                       refuse_named,
                                       // Pods reach each other through the machine on purpose, so ICMP redirects are dropped.
                                       "oifname " + ours + " icmp type redirect drop",
                                   }};
  rules.chains["filter-input"] = {"type filter hook input priority 0; policy accept;",
                                  {
                                      // The DNS server is for pods and this machine, not for other machines.
                                      "ip daddr " + dns + " iifname != \"lo\" iifname != " + ours + " drop",
                                      own + " meta l4proto . th dport @refused-node-ports goto refuse",
                                      refuse_named,
                                  }};
  rules.chains["refuse"].rules = {"meta l4proto tcp reject with tcp reset", "reject with icmp type port-unreachable"};
  return rules;
}

// One port of one Service.
struct Port {
  std::string id;  // "<ns>/<service>/<port>/<protocol>": the suffix of its chains' names
  Protocol protocol;
  uint16_t port, node_port;
  std::vector<Backend> backends;
  std::optional<UdpEndpoints> udp = {};  // the same, for UDP
};

// The addresses of a Service, beside its node ports.
struct Addresses {
  Ipv4 cluster;                    // empty if there is none
  std::vector<Ipv4> plain;         // externalIPs
  std::vector<Ipv4> balancer;      // a load balancer's addresses, possibly restricted to some sources
  std::vector<Ipv4Range> sources;  // empty: all
  bool restricted = false;
};

class Writer {
 public:
  explicit Writer(const ProxyInput& input)
      : input_(input), listened_on_(ports_listened_on(input)), plan_{base_rules(input), {}, {}, {}, {}, false} {}

  // Writes its chains, its cluster IP and its node ports. External addresses are written later, by external().
  void service(const ObjectPtr& object, const std::vector<ObjectPtr>& slices) {
    const view::Service service(*object);
    const std::string name = object->key().text();
    Addresses addresses = addresses_of(object, service);
    int64_t affinity = 0;
    if (service.spec().session_affinity() == "ClientIP") {
      affinity = service.spec().session_affinity_config().client_ip().timeout_seconds();
      if (affinity <= 0) affinity = 10800;
    }
    const SlicesOfService endpoints(slices);
    left_ = {};
    for (view::ServicePort port : service.spec().ports()) {
      if (left_.ports-- == 0) return ignore(object, "ports beyond " + std::to_string(kPortsMax) + " are ignored");
      Result<Protocol> protocol = parse_protocol(port.protocol());
      if (!protocol || port.port() <= 0 || port.port() > 65535) continue;
      if (!port.name().empty() && !is_name(port.name())) continue;
      Port one{name + "/" + (port.name().empty() ? std::to_string(port.port()) : std::string(port.name())) + "/" +
                   protocol_name(*protocol),
               *protocol, uint16_t(port.port()), uint16_t(port.node_port()),
               backends(object, endpoints, port.name(), port.protocol().empty() ? "TCP" : port.protocol())};
      // The built-in DNS server serves this address while the Service has no endpoints.
      if (one.backends.empty() && addresses.cluster == input_.dns) continue;
      if (one.node_port != 0) {
        plan_.outside.emplace(*protocol, one.node_port);
        const char* why = nullptr;
        if (is_api_port(*protocol, one.node_port)) why = "it is the API's";
        else if (listened_on_.contains({*protocol, one.node_port})) why = kListens;
        if (why) {
          ignore(object, "node port " + port_text(*protocol, one.node_port) + " is ignored: " + why, "NodePortIgnored");
          one.node_port = 0;
        }
      }
      write(object, std::move(one), addresses, affinity);
    }
  }

  // Call after all Services: the oldest Service gets a contested address.
  void external() {
    std::stable_sort(claims_.begin(), claims_.end(), [](const Claim& a, const Claim& b) { return a.since < b.since; });
    for (const Claim& claim : claims_)
      for (const auto& [address, verdict] : claim.addresses)
        if (std::string why = taken(claim.port, address); why.empty()) answer(claim, address, verdict);
        else ignore(claim.service, ignored_text(address, claim.port) + why);
  }

  // The built-in DNS server does not have port 53 of its address: redirects packets to its port.
  void dns_elsewhere(Ipv4 dns, uint16_t port) {
    for (Protocol protocol : {Protocol::tcp, Protocol::udp}) {
      std::string chain = std::string("dns/") + protocol_name(protocol);
      rules().chains[chain].rules = {translate(protocol, {dns, port})};
      bool is_ours = rules().sets[kServices].elements.try_emplace(key(protocol, dns, kDnsPort), "goto " + chain).second;
      if (is_ours && protocol == Protocol::udp) plan_.udp[{dns, kDnsPort}].emplace_back(std::vector<UdpAddress>{{dns, port}});
    }
  }

  void host_port(const PodPort& one) {
    const HostPort& port = one.port;
    if (is_api_port(port.protocol, port.host_port))
      return ignore(nullptr, "host port " + port_text(port.protocol, port.host_port) + " of pod " + one.pod.text() +
                                 " is ignored: it is the API's");
    Set& set = rules().sets[port.host_ip ? kHostPortsAt : kHostPorts];
    std::string where = port.host_ip ? key(port.protocol, port.host_ip, port.host_port) : key(port.protocol, port.host_port);
    if (!set.elements.try_emplace(where, target(one.pod, port.pod_port)).second) return;  // the first one keeps it
    hairpin(one.pod);
    if (port.protocol == Protocol::udp)
      plan_.udp[{port.host_ip, port.host_port}].emplace_back(std::vector<UdpAddress>{{one.pod, port.pod_port}});
  }

  ProxyPlan take() { return std::move(plan_); }

 private:
  Ruleset& rules() { return plan_.rules; }

  // A claim of one Service port for external addresses. A verdict of "" rejects the packets.
  struct Claim {
    ObjectPtr service;
    std::string since;  // creation time of the Service; RFC 3339 in UTC sorts as text
    Port port;
    std::vector<std::pair<Ipv4, std::string>> addresses;
  };

  // The endpoints, up to the Service's remaining limit.
  std::vector<Backend> backends(const ObjectPtr& object, const SlicesOfService& endpoints, std::string_view port_name,
                                std::string_view protocol) {
    std::vector<Backend> out;
    if (left_.endpoints > 0) out = endpoints.backends(port_name, protocol);
    const size_t most = std::min(kEndpointsPerPortMax, left_.endpoints);
    const bool is_beyond = most > 0 ? out.size() > most : endpoints.has_backends(port_name, protocol);
    if (is_beyond && most == left_.endpoints) ignore_rest(object, "endpoints", kEndpointsMax);
    if (is_beyond) out.resize(most);
    left_.endpoints -= out.size();
    return out;
  }

  Addresses addresses_of(const ObjectPtr& object, const view::Service& service) {
    Addresses out;
    out.cluster = cluster_address(service);
    auto add = [&](std::string_view text, std::vector<Ipv4>& to) {
      Ipv4 address = Ipv4::parse(text).value_or({});
      if (!address) return;
      if (std::string why = never_external(address); why.empty()) to.push_back(address);
      else ignore(object, ignored_text(address) + why);
    };
    for (std::string_view text : service.spec().external_ips()) add(text, out.plain);
    if (service.spec().type() != "LoadBalancer") return out;
    for (view::LoadBalancerIngress ingress : service.status().load_balancer().ingress())
      if (ingress.ip_mode() != "Proxy") add(ingress.ip(), out.balancer);
    for (std::string_view text : source_ranges(service)) {
      out.restricted = true;  // even by a range of IPv6, or a malformed one, which admits no IPv4 source
      if (Result<Ipv4Range> range = Ipv4Range::parse(text)) out.sources.push_back(*range);
    }
    for (const Ipv4Range& range : out.sources)
      if (range.bits == 0) out.restricted = false;
    if (out.restricted) admit_machine(out);
    return out;
  }

  // A balancer's address may be this machine's. What the machine sends there has the same address as its source, so it is
  // admitted with any other address of the machine.
  void admit_machine(Addresses& addresses) const {
    auto admits = [&](Ipv4 own) {
      const bool is_inside = own.loopback() || input_.pods.contains(own) || input_.services.contains(own);
      return !is_inside && std::any_of(addresses.sources.begin(), addresses.sources.end(),
                                       [&](const Ipv4Range& range) { return range.contains(own); });
    };
    if (std::none_of(input_.local.begin(), input_.local.end(), admits)) return;
    for (Ipv4 address : addresses.balancer)
      if (input_.local.contains(address)) addresses.sources.push_back({address, 32});
  }

  static std::string translate(Protocol protocol, const Backend& to) {
    return std::string("meta l4proto ") + protocol_name(protocol) + " dnat to " + to.address.text() + ":" +
           std::to_string(to.port);
  }

  static UdpEndpoints udp_endpoints(const std::vector<Backend>& backends) {
    std::vector<UdpAddress> out;
    for (const Backend& backend : backends) out.push_back({backend.address, backend.port});
    return UdpEndpoints(std::move(out));
  }

  void hairpin(Ipv4 address) {
    std::string element = address.text() + " . " + address.text();
    ++plan_.hairpins[element];
    rules().sets[kHairpin].elements.emplace(std::move(element), "");
  }

  // ---- external addresses ----

  void ignore(const ObjectPtr& service, std::string message, const char* reason = "ExternalAddressIgnored") {
    if (plan_.ignored.size() == kIgnoredMax) return;
    if (service && !told_.emplace(service.get(), message).second) return;  // reported already for another port
    plan_.ignored.push_back({service, std::move(message), reason});
  }
  void ignore_rest(const ObjectPtr& service, std::string_view what, size_t most) {
    ignore(service, std::string(what) + " beyond " + std::to_string(most) + " of all ports are ignored");
  }
  static std::string port_text(Protocol protocol, uint16_t port) {  // "22/TCP"
    std::string name = protocol_name(protocol);
    for (char& c : name) c = char(c - 'a' + 'A');
    return std::to_string(port) + "/" + name;
  }
  static std::string ignored_text(Ipv4 address) { return "external address " + address.text() + " is ignored: "; }
  static std::string ignored_text(Ipv4 address, const Port& port) {
    return "external address " + address.text() + " is ignored at port " + port_text(port.protocol, port.port) + ": ";
  }

  bool is_api_port(Protocol protocol, uint16_t port) const {
    return protocol == Protocol::tcp && port != 0 && port == input_.api_port;
  }

  // Ports at which processes of the machine itself listen at an address that has node ports; own_address() says which have none.
  static std::set<std::pair<Protocol, uint16_t>> ports_listened_on(const ProxyInput& input) {
    std::set<std::pair<Protocol, uint16_t>> out;
    for (const LocalPort& one : input.listeners) {
      if (!one.is_own) continue;
      const bool is_client = one.protocol == Protocol::udp && input.client_ports.contains(one.port);
      if (!is_client && !one.address.loopback() && !input.services.contains(one.address)) out.emplace(one.protocol, one.port);
    }
    return out;
  }

  // Why an address may not be an external address at any port; "" if it may.
  std::string never_external(Ipv4 address) const {
    if (!acceptable(address)) return "loopback, link-local and multicast addresses are nobody's";
    if (input_.services.contains(address)) return "it is in the range of cluster addresses, " + input_.services.text();
    if (input_.pods.contains(address)) return "it is in the range of the pods' addresses, " + input_.pods.text();
    return "";
  }

  // Why an external address is not available at this port; "" if it is.
  std::string taken(const Port& port, Ipv4 address) const {
    if (input_.local.contains(address)) {
      if (is_api_port(port.protocol, port.port)) return "the API of this machine is there";
      for (Ipv4 at : {Ipv4{}, address})
        if (input_.listeners.contains({port.protocol, at, port.port, true})) return kListens;
    }
    const std::string where = key(port.protocol, address, port.port);
    if (auto holder = holders_.find(where); holder != holders_.end()) return "Service " + holder->second + " has it";
    // A Service may have a cluster IP of an earlier range.
    if (plan_.rules.sets.at(kServices).elements.contains(where) || plan_.rules.sets.at(kRefused).elements.contains(where))
      return "it is the cluster address of a Service";
    return "";
  }

  // ---- rules of a Service ----

  void write(const ObjectPtr& object, Port port, const Addresses& addresses, int64_t affinity_seconds) {
    std::string verdict, balancer;  // "": there is no endpoint
    if (!port.backends.empty()) {
      std::string chain = "service/" + port.id;
      rules().chains[chain].rules = affinity_seconds > 0 ? choose_remembered(port, affinity_seconds) : choose(port);
      for (const Backend& backend : port.backends) hairpin(backend.address);
      if (port.protocol == Protocol::udp) port.udp = udp_endpoints(port.backends);
      verdict = balancer = "goto " + chain;
      if (addresses.restricted && !addresses.balancer.empty()) balancer = "goto " + admit(object, port, addresses, chain);
    }
    if (addresses.cluster) publish(port, addresses.cluster, verdict);
    if (port.node_port > 0 && verdict.empty()) {
      rules().sets[kRefusedNodePorts].elements.emplace(key(port.protocol, port.node_port), "");
    } else if (port.node_port > 0) {
      rules().sets[kNodePorts].elements.try_emplace(key(port.protocol, port.node_port), verdict);
      remember_udp(port, {}, port.node_port);
    }
    if (addresses.plain.empty() && addresses.balancer.empty()) return;
    plan_.outside.emplace(port.protocol, port.port);
    if (left_.external == 0) return ignore_rest(object, "external addresses", kExternalAddressesMax);
    Claim claim{object, std::string(view::Service(*object).metadata().creation_timestamp()), std::move(port), {}};
    std::map<Ipv4, std::string> answers;
    for (Ipv4 address : addresses.balancer) answers.emplace(address, balancer);  // first, because they may be restricted
    for (Ipv4 address : addresses.plain) answers.emplace(address, verdict);
    for (auto& [address, answer] : answers) {
      if (left_.external == 0) {
        ignore_rest(object, "external addresses", kExternalAddressesMax);
        break;
      }
      --left_.external;
      claim.addresses.emplace_back(address, std::move(answer));
    }
    claims_.push_back(std::move(claim));
  }

  void publish(const Port& port, Ipv4 address, const std::string& verdict) {
    const std::string where = key(port.protocol, address, port.port);
    plan_.contested |= rules().sets[kServices].elements.contains(where) || rules().sets[kRefused].elements.contains(where);
    if (verdict.empty()) rules().sets[kRefused].elements.emplace(where, "");
    else if (rules().sets[kServices].elements.try_emplace(where, verdict).second) remember_udp(port, address, port.port);
  }

  void answer(const Claim& claim, Ipv4 address, const std::string& verdict) {
    holders_.emplace(key(claim.port.protocol, address, claim.port.port), claim.service->key().text());
    publish(claim.port, address, verdict);
  }

  void remember_udp(const Port& port, Ipv4 to, uint16_t at) {
    if (port.udp) plan_.udp[{to, at}].push_back(*port.udp);
  }

  // Selects an endpoint by a random number and one map lookup.
  std::vector<std::string> choose(const Port& port) {
    if (port.backends.size() == 1) return {translate(port.protocol, port.backends[0])};
    std::string map;
    for (size_t i = 0; i < port.backends.size(); ++i)
      map += (i == 0 ? "" : ", ") + std::to_string(i) + " : " + target(port.backends[i].address, port.backends[i].port);
    return {std::string("meta l4proto ") + protocol_name(port.protocol) + " dnat ip to numgen random mod " +
            std::to_string(port.backends.size()) + " map { " + map + " }"};
  }

  // Each endpoint has a set of its recent clients, which are sent to it again; other clients are distributed.
  std::vector<std::string> choose_remembered(const Port& port, int64_t seconds) {
    std::vector<std::string> choice;
    std::string map;
    for (size_t i = 0; i < port.backends.size(); ++i) {
      const Backend& backend = port.backends[i];
      std::string id = port.id + "/" + backend.address.text() + "." + std::to_string(backend.port);
      rules().sets["clients/" + id] = {
          false, "type ipv4_addr; size " + std::to_string(kAffinityClientsMax) + "; flags dynamic, timeout;", {}};
      rules().chains["endpoint/" + id].rules = {
          "update @clients/" + id + " { ip saddr timeout " + std::to_string(seconds) + "s }",
          translate(port.protocol, backend),
      };
      choice.push_back("ip saddr @clients/" + id + " goto endpoint/" + id);
      map += (i == 0 ? "" : ", ") + std::to_string(i) + " : goto endpoint/" + id;
    }
    choice.push_back("numgen random mod " + std::to_string(port.backends.size()) + " vmap { " + map + " }");
    return choice;
  }

  std::string admit(const ObjectPtr& object, const Port& port, const Addresses& addresses, const std::string& chain) {
    std::string name = "admit/" + port.id;
    std::vector<std::string>& rules_of = rules().chains[name].rules;
    rules_of.clear();
    for (const Ipv4Range& range : addresses.sources) {
      if (left_.sources == 0) {
        ignore_rest(object, "source ranges", kSourceRangesMax);
        break;
      }
      --left_.sources;
      rules_of.push_back("ip saddr " + range.text() + " goto " + chain);
    }
    rules_of.push_back("drop");
    return name;
  }

  // The remaining limits of the Service that is being written.
  struct Left {
    size_t ports = kPortsMax, endpoints = kEndpointsMax, external = kExternalAddressesMax, sources = kSourceRangesMax;
  };

  const ProxyInput& input_;
  const std::set<std::pair<Protocol, uint16_t>> listened_on_;
  ProxyPlan plan_;
  Left left_;
  std::set<std::pair<const Object*, std::string>> told_;
  std::vector<Claim> claims_;
  std::map<std::string, std::string> holders_;  // owners of external addresses: protocol . address . port → Service
};

ProxyPlan plan_of(const ProxyInput& machine, const std::vector<ServiceState>& states) {
  ProxyInput input = machine;
  for (const ServiceState& state : states) {
    if (state.service) input.service_objects.push_back(state.service);
    input.slices.insert(input.slices.end(), state.slices.begin(), state.slices.end());
  }
  return plan_proxy(input);
}

// Whether no rule of other Services can depend on these: no other one may have an address in the range of cluster addresses.
bool are_apart(const ProxyInput& machine, const std::vector<ServiceState>& states) {
  return std::all_of(states.begin(), states.end(), [&](const ServiceState& state) {
    Ipv4 address = state.service ? cluster_address(view::Service(*state.service)) : Ipv4();
    return !address || (address != machine.dns && machine.services.contains(address));
  });
}

bool is_plain(const ProxyPlan& plan) { return plan.outside.empty() && plan.ignored.empty() && !plan.contested; }

size_t uses_of(const Hairpins& hairpins, const std::string& element) {
  auto found = hairpins.find(element);
  return found == hairpins.end() ? 0 : found->second;
}

// Fills in the change of the hairpins. False: the numbers do not fit.
bool change_hairpins(ProxyChange& change, const Hairpins& all, const Hairpins& less, const Hairpins& more) {
  std::map<std::string, std::string>&before = change.before.sets[kHairpin].elements,
                        &after = change.after.sets[kHairpin].elements;
  before.clear(), after.clear();
  Hairpins concerned = less;
  concerned.insert(more.begin(), more.end());
  for (const auto& [element, uses] : concerned) {
    const size_t then = uses_of(all, element), gone = uses_of(less, element);
    if (then < gone) return false;
    const size_t now = then - gone + uses_of(more, element);
    if (then > 0) before.emplace(element, "");
    if (now > 0) after.emplace(element, "");
    change.hairpins.emplace(element, now);
  }
  return true;
}

// Whether `after` publishes an address and port that another Service has, with endpoints or without.
bool clashes(const Ruleset& applied, const Ruleset& before, const Ruleset& after) {
  for (auto [mine, other] : {std::pair(kServices, kRefused), std::pair(kRefused, kServices)})
    for (const auto& [where, verdict] : after.sets.at(mine).elements)
      if (applied.sets.at(other).elements.contains(where) && !before.sets.at(other).elements.contains(where)) return true;
  return false;
}

// Services that another proxy serves, or none. Source: Kubernetes, well-known labels.
bool is_others(const Object& service) {
  for (const char* label : {"service.kubernetes.io/service-proxy-name", "service.kubernetes.io/headless"})
    if (service.mentions(label) && service.labels().contains(label)) return true;
  return false;
}

}  // namespace

const char* protocol_name(Protocol protocol) {
  switch (protocol) {
    case Protocol::tcp: return "tcp";
    case Protocol::udp: return "udp";
    case Protocol::sctp: return "sctp";
  }
  return "";
}

Result<Protocol> parse_protocol(std::string_view text) {
  if (text.empty() || text == "TCP") return Protocol::tcp;
  if (text == "UDP") return Protocol::udp;
  if (text == "SCTP") return Protocol::sctp;
  return Error(Code::invalid, "protocol must be TCP, UDP or SCTP");
}

bool has_external_addresses(const std::vector<ObjectPtr>& services) {
  return std::any_of(services.begin(), services.end(), [](const ObjectPtr& one) {
    return one->mentions("externalIPs") || one->mentions("ingress") || one->mentions("nodePort");
  });
}

ProxyPlan plan_proxy(const ProxyInput& input) {
  std::map<std::string, std::vector<ObjectPtr>> slices;
  for (const ObjectPtr& slice : input.slices) slices[service_of(*slice)].push_back(slice);

  Writer writer(input);
  static const std::vector<ObjectPtr> none;
  for (const ObjectPtr& object : input.service_objects) {
    view::Service service(*object);
    if (headless(service) || service.spec().type() == "ExternalName" || is_others(*object)) continue;
    if (!is_name(object->ns()) || !is_name(object->name())) continue;
    auto found = slices.find(object->key().text());
    writer.service(object, found == slices.end() ? none : found->second);
  }
  writer.external();
  if (input.dns_port != kDnsPort) writer.dns_elsewhere(input.dns, input.dns_port);
  for (const PodPort& port : input.host_ports) writer.host_port(port);
  return writer.take();
}

std::optional<ProxyChange> plan_change(const ProxyInput& machine, const std::vector<ServiceState>& was,
                                       const std::vector<ServiceState>& is, const Ruleset& applied, const Hairpins& hairpins) {
  if (!are_apart(machine, was) || !are_apart(machine, is)) return std::nullopt;
  ProxyPlan before = plan_of(machine, was), after = plan_of(machine, is);
  if (!is_plain(before) || !is_plain(after) || before.udp != after.udp) return std::nullopt;
  ProxyChange change{std::move(before.rules), std::move(after.rules), {}};
  if (!change_hairpins(change, hairpins, before.hairpins, after.hairpins)) return std::nullopt;
  drop_common(change.before, change.after);
  if (!is_replaceable(applied, change.before, change.after) || clashes(applied, change.before, change.after)) return std::nullopt;
  return change;
}

}  // namespace coracle::network
