// SPDX-License-Identifier: Apache-2.0
// From Services and EndpointSlices to the ruleset's text: golden files for readers, and checks for input that must not get into
// the ruleset.
#include "daemon/network/proxy.h"

#include <gtest/gtest.h>

#include <set>

#include "daemon/network/endpoints.h"
#include "tests/daemon/network/golden.h"
#include "tests/daemon/network/objects.h"

namespace coracle::network {
namespace {

const char* const kHttp = R"([{"name":"http","port":8080,"protocol":"TCP"}])";

ProxyInput input(std::vector<ObjectPtr> services, std::vector<ObjectPtr> slices) {
  ProxyInput out;
  out.pods = MUST(Ipv4Range::parse("10.244.0.0/24"));
  out.services = MUST(Ipv4Range::parse("10.96.0.0/16"));
  out.dns = MUST(Ipv4::parse("10.96.0.10"));
  out.service_objects = std::move(services);
  out.slices = std::move(slices);
  return out;
}

ObjectPtr web(const std::string& more = "", const std::string& status = "") {
  return service("web",
                 R"({"type":"ClusterIP","clusterIP":"10.96.3.7",
    "ports":[{"name":"http","port":80,"protocol":"TCP","targetPort":8080}])" +
                     more + "}",
                 status);
}

ObjectPtr web_slice() {
  return slice(
      "web",
      "[" + endpoint("10.244.0.5", kReady) + "," + endpoint("10.244.0.4", kReady) + "," + endpoint("10.244.0.6", kNotReady) + "]",
      kHttp);
}

std::string elements(const ProxyPlan& plan, const std::string& set) {
  std::string out;
  for (const auto& [key, value] : plan.rules.sets.at(set).elements) out += key + " : " + value + "\n";
  return out;
}

size_t udp_paths(const ProxyPlan& plan) {
  size_t count = 0;
  for (const auto& [front, lists] : plan.udp)
    for (const UdpEndpoints& one : lists) count += (*one).size();
  return count;
}

TEST(Proxy, empty) { EXPECT_GOLDEN("empty.nft", replace_script(plan_proxy(input({}, {})).rules)); }

TEST(Proxy, cluster_ip_goes_to_ready_endpoints) {
  EXPECT_GOLDEN("cluster-ip.nft", replace_script(plan_proxy(input({web()}, {web_slice()})).rules));
}

TEST(Endpoints, who_is_known_to_end_is_not_waited_for) {
  const std::string ends = R"(,"conditions":{"ready":true,"serving":true,"terminating":true})";
  std::vector<ObjectPtr> slices = {web_slice(),
                                   slice("own", "[" + endpoint("10.244.0.8", ends) + "," + endpoint("10.244.0.9") + "]", kHttp)};
  std::string served;
  for (Ipv4 one : served_addresses(slices)) served += one.text() + " ";
  EXPECT_EQ(served, "10.244.0.4 10.244.0.5 10.244.0.9 ");
}

TEST(Endpoints, most_metadata_concerns_no_rule) {
  auto changed = [](const ObjectPtr& object, std::string_view path, json::value value) {
    json::value body = object->json();
    make(body, path) = std::move(value);
    return MUST(Object::make(object->kind(), body));
  };
  const ObjectPtr before = web(), endpoints = web_slice();
  EXPECT_TRUE(have_same_rules(*before, *before));
  EXPECT_TRUE(have_same_rules(*before, *changed(before, "metadata.annotations", {{"a", "b"}})));
  EXPECT_TRUE(have_same_rules(*before, *changed(before, "metadata.resourceVersion", "7")));
  EXPECT_TRUE(have_same_rules(*endpoints, *changed(endpoints, "metadata.generation", 2)));
  for (const ObjectPtr& after :
       {changed(before, "metadata.labels", {{"service.kubernetes.io/headless", ""}}),
        changed(before, "metadata.annotations", {{"service.beta.kubernetes.io/load-balancer-source-ranges", "192.0.2.0/24"}}),
        changed(before, "spec.externalIPs", {"192.0.2.7"}), changed(before, "spec.clusterIP", "10.96.3.8"),
        changed(before, "status.loadBalancer.ingress", json::array{json::object{{"ip", "192.0.2.8"}}})}) {
    EXPECT_FALSE(have_same_rules(*before, *after)) << after->text();
    EXPECT_FALSE(have_same_rules(*after, *before)) << after->text();
  }
  EXPECT_FALSE(have_same_rules(*endpoints, *changed(endpoints, "endpoints", json::array())));
  EXPECT_FALSE(have_same_rules(*endpoints, *changed(endpoints, "metadata.labels", {{"kubernetes.io/service-name", "other"}})));
}

TEST(Proxy, node_port_udp_affinity_and_host_ports) {
  ObjectPtr dns = service("talk", R"({"type":"NodePort","clusterIP":"10.96.3.8","sessionAffinity":"ClientIP",
    "sessionAffinityConfig":{"clientIP":{"timeoutSeconds":600}},
    "ports":[{"port":53,"protocol":"UDP","nodePort":30053}]})");
  ProxyInput in = input({dns}, {slice("talk", "[" + endpoint("10.244.0.5") + "," + endpoint("10.244.0.7") + "]",
                                      R"([{"port":5353,"protocol":"UDP"}])")});
  in.host_ports = {{{Protocol::tcp, {}, 8080, 80}, MUST(Ipv4::parse("10.244.0.9"))},
                   {{Protocol::udp, MUST(Ipv4::parse("192.168.1.4")), 514, 1514}, MUST(Ipv4::parse("10.244.0.9"))}};
  ProxyPlan plan = plan_proxy(in);
  EXPECT_EQ(udp_paths(plan), 2u + 2u + 1u) << "cluster address, node port, host port";
  EXPECT_GOLDEN("node-port.nft", replace_script(plan.rules));
}

TEST(Proxy, external_addresses_and_load_balancer_with_sources) {
  ObjectPtr object = web(
      R"(,"type":"LoadBalancer","externalIPs":["192.0.2.7"],
    "loadBalancerSourceRanges":["198.51.100.0/24","bad; flush ruleset"])",
      R"(,"status":{"loadBalancer":{"ingress":[{"ip":"192.168.1.4","ipMode":"VIP"},{"ip":"192.168.1.5","ipMode":"Proxy"}]}})");
  EXPECT_GOLDEN("load-balancer.nft", replace_script(plan_proxy(input({object}, {web_slice()})).rules));
}

// Which sources a load balancer at 192.168.1.4 admits: "all", or ranges. `ranges` is the field's JSON array.
std::string admitted(const std::string& annotation, const std::string& ranges, const std::set<Ipv4>& local = {},
                     const std::string& external = "[]") {
  json::value body = web(R"(,"type":"LoadBalancer","externalIPs":)" + external + R"(,"loadBalancerSourceRanges":)" + ranges,
                         R"(,"status":{"loadBalancer":{"ingress":[{"ip":"192.168.1.4"}]}})")
                         ->json();
  if (!annotation.empty())
    make(body, "metadata.annotations") = json::object{{"service.beta.kubernetes.io/load-balancer-source-ranges", annotation}};
  ProxyInput in = input({MUST(Object::make(kService, body))}, {web_slice()});
  in.local = local;
  ProxyPlan plan = plan_proxy(in);
  const std::string& verdict = plan.rules.sets.at("services").elements.at("tcp . 192.168.1.4 . 80");
  if (verdict == "goto service/default/web/http/tcp") return "all";
  EXPECT_EQ(verdict, "goto admit/default/web/http/tcp");
  std::string out;
  for (std::string rule : plan.rules.chains.at("admit/default/web/http/tcp").rules)
    out += rule == "drop" ? "no other" : rule.substr(9, rule.find(" goto ") - 9) + " ";
  return out;
}

TEST(Proxy, sources_that_a_load_balancer_admits) {
  EXPECT_EQ(admitted("", "[]"), "all");
  EXPECT_EQ(admitted("", R"(["10.0.0.0/8"," 198.51.100.0/24\t"])"), "10.0.0.0/8 198.51.100.0/24 no other") << "with spaces";
  EXPECT_EQ(admitted(" 10.0.0.0/8,\n198.51.100.0/24 ", "[]"), "10.0.0.0/8 198.51.100.0/24 no other");
  EXPECT_EQ(admitted("10.0.0.0/8", R"(["198.51.100.0/24"])"), "198.51.100.0/24 no other") << "the annotation does not count";
  EXPECT_EQ(admitted(" ", "[]"), "all");
  EXPECT_EQ(admitted("", R"(["10.0.0.0/8","0.0.0.0/0"])"), "all");
  EXPECT_EQ(admitted("0.0.0.0/0", "[]"), "all");
  for (const char* nobodys : {"10.0.0.1", "10.0.0.0/33", "10.0.0.1/8", "fd00::/8", ",", "10.0.0.0/8 accept"})
    EXPECT_EQ(admitted(nobodys, "[]"), "no other") << nobodys;
  EXPECT_EQ(admitted("", R"(["10.0.0.0/8"])", {}, R"(["192.168.1.4"])"), "10.0.0.0/8 no other") << "an external address too";
}

TEST(Proxy, a_machine_that_is_admitted_may_come_from_the_balancers_address) {
  const Ipv4 own = MUST(Ipv4::parse("192.168.1.7")), balancer = MUST(Ipv4::parse("192.168.1.4")),
             gateway = MUST(Ipv4::parse("10.244.0.1"));
  EXPECT_EQ(admitted("192.168.1.7/32", "[]", {own, balancer, gateway}), "192.168.1.7/32 192.168.1.4/32 no other");
  EXPECT_EQ(admitted("192.168.1.7/32", "[]", {own, gateway}), "192.168.1.7/32 no other") << "it is not the machine's address";
  EXPECT_EQ(admitted("192.168.1.8/32", "[]", {own, balancer, gateway}), "192.168.1.8/32 no other");
  EXPECT_EQ(admitted("10.244.0.0/16", "[]", {own, balancer, gateway}), "10.244.0.0/16 no other") << "pods only";
}

TEST(Proxy, services_of_another_proxy_are_left_to_it) {
  for (const char* label : {"service.kubernetes.io/service-proxy-name", "service.kubernetes.io/headless"}) {
    json::value labelled = web()->json();
    make(labelled, "metadata.labels") = json::object{{label, "foo-bar"}};
    ProxyPlan plan = plan_proxy(input({MUST(Object::make(kService, labelled))}, {web_slice()}));
    EXPECT_EQ(elements(plan, "services") + elements(plan, "refused"), "") << label;
    make(labelled, "metadata.labels") = json::object{{"app", label}};
    plan = plan_proxy(input({MUST(Object::make(kService, labelled))}, {web_slice()}));
    EXPECT_NE(elements(plan, "services"), "") << label;
  }
}

TEST(Proxy, without_endpoints_is_refused) {
  ObjectPtr object = web(R"(,"type":"NodePort","externalIPs":["192.0.2.7"])");
  ObjectPtr with_node_port = service("np", R"({"type":"NodePort","clusterIP":"10.96.3.9",
    "ports":[{"port":80,"nodePort":30080}]})");
  ProxyPlan plan = plan_proxy(input({object, with_node_port}, {}));
  EXPECT_EQ(elements(plan, "refused"), "tcp . 10.96.3.7 . 80 : \ntcp . 10.96.3.9 . 80 : \ntcp . 192.0.2.7 . 80 : \n");
  EXPECT_EQ(elements(plan, "refused-node-ports"), "tcp . 30080 : \n");
  EXPECT_EQ(elements(plan, "services"), "");
}

std::string ignored(const ProxyPlan& plan) {
  std::string out;
  for (const Ignored& one : plan.ignored) out += (one.service ? one.service->name() : "-") + ": " + one.message + "\n";
  return out;
}

// Ports times addresses, sources and endpoints: the size of one Service's rules is limited.
TEST(Proxy, a_service_of_many_ports_and_addresses_has_bounds) {
  std::string ports, slice_ports, addresses, sources, endpoints;
  for (int i = 1; i <= 20'000; ++i) {
    std::string number = std::to_string(i), comma = i > 1 ? "," : "";
    ports += comma + R"({"name":"p)" + number + R"(","port":)" + number + R"(,"protocol":"TCP"})";
    slice_ports += comma + R"({"name":"p)" + number + R"(","port":)" + number + R"(,"protocol":"TCP"})";
    addresses += comma + "\"192." + std::to_string(1 + i / 250 % 100) + ".7." + std::to_string(1 + i % 250) + "\"";
    sources += comma + "\"198.51." + std::to_string(i / 250) + "." + std::to_string(i % 250) + "/32\"";
  }
  for (int i = 2; i < 200; ++i) endpoints += (i > 2 ? "," : "") + endpoint("10.244.0." + std::to_string(i));
  ObjectPtr object = service("web",
                             R"({"type":"LoadBalancer","clusterIP":"10.96.3.7","ports":[)" + ports + R"(],"externalIPs":[)" +
                                 addresses + R"(],"loadBalancerSourceRanges":[)" + sources + "]}",
                             R"(,"status":{"loadBalancer":{"ingress":[{"ip":"192.168.1.4"}]}})");
  ProxyPlan plan = plan_proxy(input({object}, {slice("web", "[" + endpoints + "]", "[" + slice_ports + "]")}));
  EXPECT_EQ(ignored(plan),
            "web: external addresses beyond 4096 of all ports are ignored\n"
            "web: source ranges beyond 65536 of all ports are ignored\n"
            "web: endpoints beyond 16384 of all ports are ignored\n"
            "web: ports beyond 1000 are ignored\n");
  size_t elements = 0, rules = 0;
  for (const auto& [name, set] : plan.rules.sets) elements += set.elements.size();
  for (const auto& [name, chain] : plan.rules.chains) rules += chain.rules.size();
  EXPECT_LT(elements, 10'000u);
  EXPECT_LT(rules, 80'000u);
  EXPECT_TRUE(plan.rules.sets.at("services").elements.contains("tcp . 10.96.3.7 . 1"));
}

// Endpoints times addresses.
TEST(Proxy, endpoints_of_a_udp_port_are_held_once) {
  std::string addresses, endpoints;
  for (int i = 1; i <= 4096; ++i)
    addresses += (i > 1 ? "," : "") + ("\"192." + std::to_string(1 + i / 250)) + ".7." + std::to_string(1 + i % 250) + "\"";
  for (int i = 2; i < 250; ++i) endpoints += (i > 2 ? "," : "") + endpoint("10.244.0." + std::to_string(i));
  ObjectPtr object = service(
      "web", R"({"clusterIP":"10.96.3.7","ports":[{"name":"p","port":53,"protocol":"UDP"}],"externalIPs":[)" + addresses + "]}");
  ObjectPtr other = service("other", R"({"clusterIP":"10.96.3.8","ports":[{"name":"p","port":53,"protocol":"UDP"}]})");
  const std::string port = R"([{"name":"p","port":53,"protocol":"UDP"}])";
  ProxyPlan plan = plan_proxy(
      input({object, other}, {slice("web", "[" + endpoints + "]", port), slice("other", "[" + endpoints + "]", port)}));
  EXPECT_EQ(udp_paths(plan), 4098u * 248u);
  std::set<const void*> lists;
  for (const auto& [front, endpoints] : plan.udp)
    for (const UdpEndpoints& one : endpoints) lists.insert(&*one);
  EXPECT_EQ(lists.size(), 2u);
}

// ---- ports and addresses of the machine ----

constexpr const char* kEarly = "2026-01-01T00:00:00Z";
constexpr const char* kLate = "2026-02-01T00:00:00Z";

// A machine 192.168.1.4 with sshd and an API server.
ProxyInput on_machine(std::vector<ObjectPtr> services, std::vector<ObjectPtr> slices) {
  ProxyInput out = input(std::move(services), std::move(slices));
  out.api_port = 6443;
  out.local = {MUST(Ipv4::parse("192.168.1.4")), MUST(Ipv4::parse("192.168.1.5"))};
  out.listeners = {{Protocol::tcp, {}, 22}, {Protocol::udp, MUST(Ipv4::parse("192.168.1.5")), 514}};
  return out;
}

ObjectPtr thief(const std::string& external, const std::string& ports, const std::string& cluster = "10.96.9.9",
                const std::string& name = "aaa", const std::string& since = kEarly) {
  return service_since(name, since,
                       R"({"clusterIP":")" + cluster + R"(","externalIPs":[)" + external + R"(],"ports":[)" + ports + "]}");
}

ObjectPtr thief_slice(const std::string& name = "aaa") {
  return slice(name, "[" + endpoint("10.244.0.66", kReady) + "]",
               R"([{"name":"a","port":1,"protocol":"TCP"},{"name":"b","port":2,"protocol":"UDP"}])");
}

// A thousand ports, thirty thousand endpoints: addresses are parsed once, and lists beyond the limit are not built.
TEST(Proxy, endpoints_are_not_read_again_for_each_port) {
  std::string ports, slice_ports, endpoints;
  for (int i = 1; i <= 1000; ++i) {
    std::string number = std::to_string(i), comma = i > 1 ? "," : "";
    ports += comma + R"({"name":"p)" + number + R"(","port":)" + number + R"(,"protocol":"TCP"})";
    slice_ports += comma + R"({"name":"p)" + number + R"(","port":)" + number + R"(,"protocol":"TCP"})";
    endpoints += comma + endpoint("10.244." + std::to_string(i / 250) + "." + std::to_string(i % 250 + 1));
  }
  ObjectPtr object = service("web", R"({"clusterIP":"10.96.3.7","ports":[)" + ports + "]}");
  std::vector<ObjectPtr> slices(30, slice("web", "[" + endpoints + "]", "[" + slice_ports + "]"));
  ProxyPlan plan = plan_proxy(input({object}, slices));
  EXPECT_EQ(ignored(plan), "web: endpoints beyond 16384 of all ports are ignored\n");
  EXPECT_EQ(plan.rules.sets.at("services").elements.size(), 17u);
  EXPECT_EQ(plan.rules.sets.at("refused").elements.size(), 983u);
}

TEST(Proxy, endpoints_behind_many_external_addresses_are_held_once) {
  std::string addresses, endpoints;
  for (int i = 0; i < 4000; ++i)
    addresses += (i ? ",\"192.0." : "\"192.0.") + std::to_string(i / 250) + "." + std::to_string(i % 250 + 1) + "\"";
  for (int i = 0; i < 900; ++i)
    endpoints += (i ? "," : "") + endpoint("10.244." + std::to_string(i / 250) + "." + std::to_string(i % 250 + 1));
  ObjectPtr object =
      service("web", R"({"clusterIP":"10.96.3.7","ports":[{"port":53,"protocol":"UDP"}],"externalIPs":[)" + addresses + "]}");
  ProxyPlan plan = plan_proxy(input({object}, {slice("web", "[" + endpoints + "]", R"([{"port":53,"protocol":"UDP"}])")}));
  EXPECT_EQ(udp_paths(plan), 4001u * 900u);
  std::set<const void*> lists;
  for (const auto& [front, behind] : plan.udp)
    for (const UdpEndpoints& one : behind) lists.insert(&*one);
  EXPECT_EQ(lists.size(), 1u);
}

TEST(Proxy, external_addresses_take_no_cluster_address_and_no_pod) {
  const std::string external = R"("10.96.0.10","10.96.3.7","10.244.0.4","127.0.0.1","169.254.169.254","0.0.0.0","192.0.2.7")";
  ObjectPtr greedy = thief(external, R"({"name":"a","port":80},{"name":"b","port":53,"protocol":"UDP"})");
  for (std::vector<ObjectPtr> slices : {std::vector<ObjectPtr>{thief_slice(), web_slice()}, {web_slice()}}) {
    ProxyPlan plan = plan_proxy(on_machine({greedy, web()}, slices));
    std::string all = elements(plan, "services") + elements(plan, "refused");
    EXPECT_NE(all.find("tcp . 192.0.2.7 . 80 : "), all.npos) << all;
    EXPECT_NE(all.find("tcp . 10.96.3.7 . 80 : goto service/default/web/http/tcp"), all.npos) << all;
    for (const char* foreign : {"10.96.0.10", "udp . 10.96.3.7", "10.244.0.4 .", "127.0.0.1", "169.254.169.254", "0.0.0.0"})
      EXPECT_EQ(all.find(foreign), all.npos) << foreign << "\n" << all;
    EXPECT_EQ(ignored(plan),
              "aaa: external address 10.96.0.10 is ignored: it is in the range of cluster addresses, 10.96.0.0/16\n"
              "aaa: external address 10.96.3.7 is ignored: it is in the range of cluster addresses, 10.96.0.0/16\n"
              "aaa: external address 10.244.0.4 is ignored: it is in the range of the pods' addresses, 10.244.0.0/24\n"
              "aaa: external address 127.0.0.1 is ignored: loopback, link-local and multicast addresses are nobody's\n"
              "aaa: external address 169.254.169.254 is ignored: loopback, link-local and multicast addresses are nobody's\n");
  }
}

TEST(Proxy, this_machines_ports_stay_its_own) {
  const std::string ports = R"({"name":"a","port":22},{"name":"api","port":6443},{"name":"b","port":514,"protocol":"UDP"})";
  const char* const want =
      "aaa: external address 192.168.1.4 is ignored at port 22/TCP: a process of this machine listens there\n"
      "aaa: external address 192.168.1.5 is ignored at port 22/TCP: a process of this machine listens there\n"
      "aaa: external address 192.168.1.4 is ignored at port 6443/TCP: the API of this machine is there\n"
      "aaa: external address 192.168.1.5 is ignored at port 6443/TCP: the API of this machine is there\n"
      "aaa: external address 192.168.1.5 is ignored at port 514/UDP: a process of this machine listens there\n";
  const std::string spec = R"("clusterIP":"10.96.9.9","ports":[)" + ports + "]";
  ObjectPtr external = thief(R"("192.168.1.4","192.168.1.5")", ports);
  ObjectPtr balancer = service_since("aaa", kEarly, R"({"type":"LoadBalancer",)" + spec + "}",
                                     R"(,"status":{"loadBalancer":{"ingress":[{"ip":"192.168.1.4"},{"ip":"192.168.1.5"}]}})");
  for (const ObjectPtr& one : {external, balancer}) {
    EXPECT_TRUE(has_external_addresses({one}));
    for (std::vector<ObjectPtr> slices : {std::vector<ObjectPtr>{}, {thief_slice()}}) {
      ProxyPlan plan = plan_proxy(on_machine({one}, slices));
      std::string all = elements(plan, "services") + elements(plan, "refused");
      EXPECT_EQ(ignored(plan), want);
      EXPECT_EQ(all.find("tcp . 192.168.1."), all.npos) << all;
      EXPECT_EQ(all.find("udp . 192.168.1.5"), all.npos) << all;
      EXPECT_NE(all.find("udp . 192.168.1.4 . 514"), all.npos) << "nobody listens there\n" << all;
    }
  }
  EXPECT_FALSE(has_external_addresses({web()}));
}

// A user's, or a pod's with hostNetwork.
TEST(Proxy, programs_that_are_not_the_machines_keep_no_port_of_its_addresses) {
  const std::string ports = R"({"name":"a","port":80},{"name":"b","port":514,"protocol":"UDP"})";
  ObjectPtr external = thief(R"("192.168.1.4","192.168.1.5")", ports);
  ObjectPtr balancer = service_since("aaa", kEarly, R"({"type":"LoadBalancer","clusterIP":"10.96.9.9","ports":[)" + ports + "]}",
                                     R"(,"status":{"loadBalancer":{"ingress":[{"ip":"192.168.1.4"},{"ip":"192.168.1.5"}]}})");
  for (const ObjectPtr& one : {external, balancer}) {
    for (std::vector<ObjectPtr> slices : {std::vector<ObjectPtr>{}, {thief_slice()}}) {
      ProxyInput in = on_machine({one}, slices);
      in.listeners = {{Protocol::tcp, {}, 80, false}, {Protocol::udp, MUST(Ipv4::parse("192.168.1.5")), 514, false}};
      ProxyPlan plan = plan_proxy(in);
      std::string all = elements(plan, "services") + elements(plan, "refused");
      EXPECT_EQ(ignored(plan), "");
      for (const char* served : {"tcp . 192.168.1.4 . 80 ", "tcp . 192.168.1.5 . 80 ", "udp . 192.168.1.5 . 514 "})
        EXPECT_NE(all.find(served), all.npos) << served << "\n" << all;
      in.listeners.insert({Protocol::tcp, {}, 80});
      EXPECT_EQ(ignored(plan_proxy(in)),
                "aaa: external address 192.168.1.4 is ignored at port 80/TCP: a process of this machine listens there\n"
                "aaa: external address 192.168.1.5 is ignored at port 80/TCP: a process of this machine listens there\n")
          << "one of root's listens as well";
    }
  }
}

TEST(Proxy, the_apis_port_is_no_node_port_and_no_host_port) {
  ObjectPtr object = service_since("np", kEarly, R"({"type":"NodePort","clusterIP":"10.96.9.9","ports":[
    {"name":"a","port":80,"nodePort":6443},{"name":"b","port":81,"nodePort":6443,"protocol":"UDP"}]})");
  ProxyInput in = on_machine({object}, {thief_slice("np")});
  in.host_ports = {{{Protocol::tcp, {}, 6443, 80}, MUST(Ipv4::parse("10.244.0.9"))},
                   {{Protocol::tcp, MUST(Ipv4::parse("192.168.1.4")), 6443, 80}, MUST(Ipv4::parse("10.244.0.9"))}};
  ProxyPlan plan = plan_proxy(in);
  EXPECT_EQ(elements(plan, "node-ports"), "udp . 6443 : goto service/default/np/b/udp\n");
  EXPECT_EQ(elements(plan, "host-ports") + elements(plan, "host-ports-at"), "");
  EXPECT_EQ(ignored(plan),
            "np: node port 6443/TCP is ignored: it is the API's\n"
            "-: host port 6443/TCP of pod 10.244.0.9 is ignored: it is the API's\n"
            "-: host port 6443/TCP of pod 10.244.0.9 is ignored: it is the API's\n");
  in.slices.clear();
  EXPECT_EQ(elements(plan_proxy(in), "refused-node-ports"), "udp . 6443 : \n");
}

TEST(Proxy, a_port_at_which_the_machine_listens_is_no_node_port) {
  ObjectPtr object = service_since("np", kEarly, R"({"type":"NodePort","clusterIP":"10.96.9.9","ports":[
    {"name":"a","port":80,"nodePort":22},{"name":"b","port":81,"nodePort":22,"protocol":"UDP"},
    {"name":"c","port":82,"nodePort":514},{"name":"d","port":83,"nodePort":514,"protocol":"UDP"},
    {"name":"e","port":84,"nodePort":30053,"protocol":"UDP"},{"name":"f","port":85,"nodePort":30080},
    {"name":"g","port":86,"nodePort":30081}]})");
  EXPECT_TRUE(has_external_addresses({object}));
  for (std::vector<ObjectPtr> slices : {std::vector<ObjectPtr>{}, {thief_slice("np")}}) {
    ProxyInput in = on_machine({object}, slices);
    in.listeners.insert({Protocol::tcp, MUST(Ipv4::parse("127.0.0.1")), 30080});   // has no node ports
    in.listeners.insert({Protocol::tcp, MUST(Ipv4::parse("10.96.0.10")), 30081});  // nor has the built-in DNS server's address
    in.listeners.insert({Protocol::udp, {}, 30053});
    in.listeners.insert({Protocol::tcp, {}, 30080, false});  // a user's, or a pod's with hostNetwork
    for (bool for_clients : {false, true}) {
      in.client_ports = for_clients ? PortRange{1024, 65535} : PortRange{32768, 60999};
      ProxyPlan plan = plan_proxy(in);
      std::string all = elements(plan, "node-ports") + elements(plan, "refused-node-ports");
      EXPECT_EQ(all.find("tcp . 22"), all.npos) << all;
      EXPECT_EQ(all.find("udp . 514"), all.npos) << all;
      for (const char* free : {"udp . 22 ", "tcp . 514 ", "tcp . 30080 ", "tcp . 30081 "})
        EXPECT_NE(all.find(free), all.npos) << free;
      EXPECT_EQ(all.find("udp . 30053") != all.npos, for_clients) << all;
      std::string want =
          "np: node port 22/TCP is ignored: a process of this machine listens there\n"
          "np: node port 514/UDP is ignored: a process of this machine listens there\n";
      if (!for_clients) want += "np: node port 30053/UDP is ignored: a process of this machine listens there\n";
      EXPECT_EQ(ignored(plan), want);
      EXPECT_EQ(plan.outside.size(), 7u) << "those that are not served as well";
    }
  }
  EXPECT_TRUE(plan_proxy(on_machine({web()}, {web_slice()})).outside.empty());
}

TEST(Proxy, an_external_address_is_the_older_services) {
  ObjectPtr young = thief(R"("192.0.2.7")", R"({"name":"a","port":80})", "10.96.9.9", "aaa", kLate);
  ObjectPtr old =
      thief(R"("192.0.2.7")", R"({"name":"a","port":80},{"name":"b","port":80,"protocol":"UDP"})", "10.96.9.8", "zzz", kEarly);
  for (std::vector<ObjectPtr> slices : {std::vector<ObjectPtr>{thief_slice("aaa"), thief_slice("zzz")}, {thief_slice("aaa")}}) {
    ProxyPlan plan = plan_proxy(on_machine({young, old}, slices));
    EXPECT_EQ(ignored(plan), "aaa: external address 192.0.2.7 is ignored at port 80/TCP: Service default/zzz has it\n");
    const bool serves = slices.size() == 2;
    EXPECT_EQ(elements(plan, "services").find("tcp . 192.0.2.7 . 80 : goto service/default/zzz/a/tcp") != std::string::npos,
              serves);
    EXPECT_EQ(elements(plan, "refused").find("tcp . 192.0.2.7 . 80") != std::string::npos, !serves);
    EXPECT_EQ(udp_paths(plan), serves ? 2u : 0u);
  }
}

TEST(Proxy, cluster_addresses_of_an_earlier_range_come_before_external_ones) {
  ObjectPtr greedy = thief(R"("10.43.0.1")", R"({"name":"a","port":80})");
  ObjectPtr victim = service_since("web", kLate, R"({"clusterIP":"10.43.0.1","ports":[{"name":"http","port":80}]})");
  ProxyPlan plan = plan_proxy(on_machine({greedy, victim}, {thief_slice(), web_slice()}));
  EXPECT_EQ(plan.rules.sets.at("services").elements.at("tcp . 10.43.0.1 . 80"), "goto service/default/web/http/tcp");
  EXPECT_EQ(ignored(plan), "aaa: external address 10.43.0.1 is ignored at port 80/TCP: it is the cluster address of a Service\n");
}

TEST(Proxy, terminating_endpoints_serve_when_nothing_else_does) {
  auto chain = [](const std::string& endpoints) {
    ProxyPlan plan = plan_proxy(input({web()}, {slice("web", endpoints, kHttp)}));
    auto found = plan.rules.chains.find("service/default/web/http/tcp");
    return found == plan.rules.chains.end() ? std::string() : found->second.rules.at(0);
  };
  std::string dying = endpoint("10.244.0.4", kTerminating), ready = endpoint("10.244.0.5", kReady);
  EXPECT_EQ(chain("[" + dying + "," + ready + "]"), "meta l4proto tcp dnat to 10.244.0.5:8080");
  EXPECT_EQ(chain("[" + dying + "]"), "meta l4proto tcp dnat to 10.244.0.4:8080");
  EXPECT_EQ(chain("[" + endpoint("10.244.0.4", kNotReady) + "]"), "");
}

TEST(Proxy, endpoints_of_several_slices_count_once) {
  ProxyPlan plan = plan_proxy(
      input({web()}, {web_slice(), slice("web", "[" + endpoint("10.244.0.4", kReady) + "," + endpoint("10.244.0.9", kReady) + "]",
                                         kHttp, "other")}));
  EXPECT_EQ(plan.rules.chains.at("service/default/web/http/tcp").rules.at(0),
            "meta l4proto tcp dnat ip to numgen random mod 3 map { 0 : 10.244.0.4 . 8080, 1 : 10.244.0.5 . 8080, "
            "2 : 10.244.0.9 . 8080 }");
}

TEST(Proxy, headless_external_name_and_foreign_addresses_are_no_business_of_ours) {
  std::vector<ObjectPtr> services = {
      service("headless", R"({"clusterIP":"None","ports":[{"port":80}]})"),
      service("external", R"({"type":"ExternalName","externalName":"example.com","ports":[{"port":80}]})"),
      service("not-yet", R"({"ports":[{"name":"http","port":80}]})"),
      service("six", R"({"clusterIP":"fd00::1","clusterIPs":["fd00::1"],"ports":[{"name":"http","port":80}]})"),
  };
  std::vector<ObjectPtr> slices = {slice("headless", "[" + endpoint("10.244.0.4") + "]", R"([{"port":80}])"),
                                   slice("six", "[" + endpoint("fd00::2") + "]", kHttp, "abcde", "IPv6")};
  ProxyPlan plan = plan_proxy(input(services, slices));
  EXPECT_EQ(elements(plan, "services"), "");
}

TEST(Proxy, nothing_but_addresses_and_names_gets_into_the_script) {
  std::vector<ObjectPtr> services = {
      service("web", R"({"clusterIP":"10.96.3.7 ; flush ruleset","externalIPs":["127.0.0.1","1.2.3.4 accept"],
        "ports":[{"name":"a b","port":80},{"name":"http","port":99999},{"name":"ok","port":81,"protocol":"tcp;"}]})"),
      service("x } ; flush ruleset", R"({"clusterIP":"10.96.3.8","ports":[{"name":"http","port":80}]})"),
  };
  std::string endpoints = "[" + endpoint("127.0.0.1") + "," + endpoint("169.254.169.254") + "," + endpoint("224.0.0.1") + "," +
                          endpoint("0.0.0.0") + "," + endpoint("10.244.0.4;") + "]";
  ProxyPlan plan = plan_proxy(input(services, {slice("web", endpoints, kHttp)}));
  EXPECT_EQ(replace_script(plan.rules), replace_script(plan_proxy(input({}, {})).rules));
}

TEST(Proxy, our_dns_server_stands_behind_its_service_until_somebody_else_does) {
  ObjectPtr dns = service("kube-dns", R"({"clusterIP":"10.96.0.10","ports":[{"name":"dns","port":53,"protocol":"UDP"}]})");
  ProxyInput in = input({dns}, {});
  EXPECT_EQ(plan_proxy(in).rules, plan_proxy(input({}, {})).rules) << "no rule in the way, none refusing";
  in.dns_port = 10053;
  EXPECT_EQ(elements(plan_proxy(in), "services"), "tcp . 10.96.0.10 . 53 : goto dns/tcp\nudp . 10.96.0.10 . 53 : goto dns/udp\n");
  in.slices = {slice("kube-dns", "[" + endpoint("10.244.0.4") + "]", R"([{"name":"dns","port":5353,"protocol":"UDP"}])")};
  EXPECT_EQ(elements(plan_proxy(in), "services"),
            "tcp . 10.96.0.10 . 53 : goto dns/tcp\nudp . 10.96.0.10 . 53 : goto service/default/kube-dns/dns/udp\n");
}

TEST(Ruleset, a_change_touches_only_what_differs) {
  Ruleset before = plan_proxy(input({web()}, {web_slice()})).rules;
  EXPECT_EQ(change_script(before, before), "");
  ObjectPtr two = slice("web", "[" + endpoint("10.244.0.5") + "," + endpoint("10.244.0.8") + "]", kHttp);
  EXPECT_GOLDEN("change-endpoint.nft", change_script(before, plan_proxy(input({web()}, {two})).rules));
}

TEST(Ruleset, what_dynamic_sets_remember_goes_over_with_the_time_it_has_left) {
  Ruleset rules = plan_proxy(input({web(R"(,"sessionAffinity":"ClientIP")")}, {web_slice()})).rules;
  std::string dynamic;
  for (const auto& [name, set] : rules.sets)
    if (is_dynamic(set)) dynamic += name + "\n";
  EXPECT_EQ(dynamic, "clients/default/web/http/tcp/10.244.0.4.8080\nclients/default/web/http/tcp/10.244.0.5.8080\n");
  EXPECT_EQ(expiring_element_text("\x0a\xf4\x01\xfe", 9999), "10.244.1.254 timeout 10s");
  EXPECT_EQ(expiring_element_text("\x0a\xf4\x01", 9999), "");
}

TEST(Ruleset, a_service_comes_and_goes) {
  Ruleset none = plan_proxy(input({}, {})).rules;
  Ruleset one = plan_proxy(input({web(R"(,"sessionAffinity":"ClientIP")")}, {web_slice()})).rules;
  EXPECT_GOLDEN("service-comes-and-goes.nft", change_script(none, one) + "# and goes\n" + change_script(one, none));
}

}  // namespace
}  // namespace coracle::network
