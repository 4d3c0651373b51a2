// SPDX-License-Identifier: Apache-2.0
// Endpoints and EndpointSlices: which pods back a Service, and how few objects change when one pod changes.
#include "daemon/controller/service/endpoints.h"

#include "tests/daemon/controller/bench.h"

namespace coracle::controller {
namespace {

ObjectPtr service(const std::string& spec) {
  return MUST(Object::make(kService, MUST(parse_json(R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"web",
    "namespace":"default","uid":"svc","labels":{"team":"a"}},"spec":)" +
                                                     spec + "}"))));
}

ObjectPtr backend_pod(const std::string& name, const std::string& ip, bool ready, const std::string& extra = "",
                      const std::string& meta = "") {
  return MUST(Object::make(
      kPod, MUST(parse_json(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name +
                            R"(","namespace":"default","uid":"uid-)" + name + "\"" + meta +
                            R"(},"spec":{"nodeName":"pi","containers":[{"name":"c",
    "ports":[{"name":"http","containerPort":8080,"protocol":"TCP"}]}])" +
                            extra + R"(},"status":{"phase":"Running","podIP":")" + ip +
                            R"(","conditions":[{"type":"Ready","status":")" + (ready ? "True" : "False") + R"("}]}})"))));
}

std::vector<ObjectPtr> backend_pods(int count) {
  std::vector<ObjectPtr> out;
  for (int i = 0; i < count; ++i)
    out.push_back(backend_pod("p" + std::to_string(i), "10.0." + std::to_string(i / 250) + "." + std::to_string(i % 250), true));
  return out;
}

TEST(Backends, take_each_pod_as_it_is) {
  auto web = service(R"({"selector":{"a":"b"},"ports":[{"name":"h","port":80,"targetPort":"http","protocol":"TCP"}]})");
  struct Row {
    const char* name;
    ObjectPtr pod;
    const char* want;  // conditions ready, serving, terminating; or nothing
  };
  for (const Row& row :
       {Row{"ready", backend_pod("p", "10.0.0.1", true), "110"}, Row{"not ready", backend_pod("p", "10.0.0.1", false), "000"},
        Row{"going", backend_pod("p", "10.0.0.1", true, "", R"(,"deletionTimestamp":"2024-01-01T00:00:00Z")"), "011"},
        Row{"no address", backend_pod("p", "", true), ""}, Row{"other family", backend_pod("p", "fd00::1", true), ""}}) {
    auto found = backends(*web, {row.pod}, "IPv4", {});
    std::string got;
    for (const Backend& b : found) got = std::string(b.ready ? "1" : "0") + (b.serving ? "1" : "0") + (b.terminating ? "1" : "0");
    EXPECT_EQ(got, row.want) << row.name;
  }
  auto found = backends(*web, {backend_pod("p", "10.0.0.1", true)}, "IPv4", [](std::string_view) { return "here"; });
  EXPECT_EQ((*found[0].ports)[0].port, 8080);
  EXPECT_EQ(found[0].zone, "here");
}

// Pods that have no node yet or have ended are not examined for each Service.
TEST(Backends, are_looked_for_among_the_pods_that_have_an_address) {
  FakeClient client;
  Informer pods(client, kPod);
  index_addressed(pods);
  for (const auto& [name, ip, phase] : {std::tuple("runs", "10.0.0.1", "Running"), std::tuple("other", "10.0.0.2", "Running"),
                                        std::tuple("waits", "", "Pending"), std::tuple("ended", "10.0.0.3", "Succeeded")})
    client.put(kPod, R"({"metadata":{"name":")" + std::string(name) + R"(","namespace":"default","labels":{"app":")" +
                         (std::string_view(name) == "other" ? "db" : "web") + R"("}},"status":{"phase":")" + phase +
                         R"(","podIP":")" + ip + R"("}})");
  MUST(pods.start());
  client.settle();
  EXPECT_EQ(pods.size(), 4u);
  EXPECT_EQ(pods.by_index("addressed", "default").size(), 2u);
  SelectorCache selectors(selector_of_service);
  auto found = selected_pods(pods, *service(R"({"selector":{"app":"web"}})"), selectors);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0]->name(), "runs");
}

TEST(Backends, unready_addresses_are_published_when_asked_for) {
  auto web = service(R"({"publishNotReadyAddresses":true,"ports":[]})");
  EXPECT_TRUE(backends(*web, {backend_pod("p", "10.0.0.1", false)}, "IPv4", {})[0].ready);
}

TEST(Backends, a_pod_without_the_named_port_is_not_behind_it) {
  auto web = service(R"({"ports":[{"name":"h","port":80,"targetPort":"admin","protocol":"TCP"}]})");
  EXPECT_TRUE(backends(*web, {backend_pod("p", "10.0.0.1", true)}, "IPv4", {}).empty());
}

// Comparing each port of the pod with each port of the Service would take minutes.
TEST(Backends, very_many_named_ports_cost_little) {
  constexpr int kPorts = 10'000;
  std::string wanted, offered;
  for (int i = 0; i < kPorts; ++i) {
    std::string number = std::to_string(i + 1), comma = i ? "," : "";
    wanted +=
        comma + R"({"name":"s)" + number + R"(","port":)" + number + R"(,"targetPort":"p)" + number + R"(","protocol":"TCP"})";
    offered += comma + R"({"name":"p)" + number + R"(","containerPort":)" + number + R"(,"protocol":"TCP"})";
  }
  auto found = backends(*service(R"({"ports":[)" + wanted + "]}"),
                        {backend_pod("p", "10.0.0.1", true,
                                     R"(,"initContainers":[{"name":"i","restartPolicy":"Always","ports":[)" + offered + "]}]")},
                        "IPv4", {});
  ASSERT_EQ(found.size(), 1u);
  ASSERT_EQ(found[0].ports->size(), size_t(kPorts));
  EXPECT_EQ(found[0].ports->back().port, kPorts);
}

TEST(Backends, sidecars_offer_ports_and_what_ends_before_them_does_not) {
  auto web = service(R"({"ports":[{"name":"h","port":80,"targetPort":"proxy","protocol":"TCP"}]})");
  auto with = [&](const std::string& policy) {
    return backend_pod(
        "p", "10.0.0.1", true,
        R"(,"initContainers":[{"name":"i")" + policy + R"(,"ports":[{"name":"proxy","containerPort":9000,"protocol":"TCP"}]}])");
  };
  EXPECT_TRUE(backends(*web, {with("")}, "IPv4", {}).empty());
  auto found = backends(*web, {with(R"(,"restartPolicy":"Always")")}, "IPv4", {});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ((*found[0].ports)[0].port, 9000);
}

TEST(Backends, a_host_name_counts_in_the_services_own_subdomain) {
  auto web = service(R"({"clusterIP":"None"})");
  EXPECT_EQ(
      backends(*web, {backend_pod("p", "10.0.0.1", true, R"(,"hostname":"db-0","subdomain":"web")")}, "IPv4", {})[0].hostname,
      "db-0");
  EXPECT_EQ(backends(*web, {backend_pod("p", "10.0.0.1", true, R"(,"hostname":"db-0","subdomain":"x")")}, "IPv4", {})[0].hostname,
            "");
}

// Pods with hostNetwork share the node's address: an unready one must not hide a ready one.
TEST(Backends, of_several_at_one_address_the_ready_one_comes_first) {
  auto web = service(R"({"ports":[{"port":80,"targetPort":8080,"protocol":"TCP"}]})");
  auto going = backend_pod("a", "10.0.0.1", false, "", R"(,"deletionTimestamp":"2024-01-01T00:00:00Z")"),
       up = backend_pod("b", "10.0.0.1", true), broken = backend_pod("c", "10.0.0.1", false);
  for (auto all : {std::vector{going, up, broken}, std::vector{broken, going, up}, std::vector{up, broken, going}}) {
    auto found = backends(*web, all, "IPv4", {});
    EXPECT_TRUE(found[0].ready);
    SlicePlan plan = plan_slices({*web, "web", kSliceController}, {{"IPv4", found}}, {});
    ASSERT_EQ(get_array(plan.create[0], "endpoints").size(), 1u);
    EXPECT_TRUE(get_bool(get_array(plan.create[0], "endpoints")[0], "conditions.ready"));
  }
}

TEST(Backends, hints_say_who_shall_use_them) {
  struct Row {
    const char *spread, *zone;
    bool ready;
    const char* want;
  };
  for (const Row& row : {Row{"", "z", true, ""}, Row{"PreferClose", "z", true, R"({"forZones":[{"name":"z"}]})"},
                         Row{"PreferSameZone", "z", true, R"({"forZones":[{"name":"z"}]})"}, Row{"PreferSameZone", "", true, ""},
                         Row{"PreferSameNode", "z", true, R"({"forZones":[{"name":"z"}],"forNodes":[{"name":"pi"}]})"},
                         Row{"PreferSameNode", "", true, R"({"forNodes":[{"name":"pi"}]})"},
                         Row{"PreferSameNode", "z", false, ""}, Row{"example.com/other", "z", true, ""}}) {
    auto web = service(R"({"trafficDistribution":")" + std::string(row.spread) +
                       R"(","ports":[{"port":80,"targetPort":8080,"protocol":"TCP"}]})");
    auto found = backends(*web, {backend_pod("p", "10.0.0.1", row.ready)}, "IPv4",
                          [&](std::string_view) { return std::string(row.zone); });
    SlicePlan plan = plan_slices({*web, "web", kSliceController}, {{"IPv4", found}}, {});
    const json::value* hints = find(get_array(plan.create[0], "endpoints")[0], "hints");
    EXPECT_EQ(hints ? to_text(*hints) : "", row.want) << row.spread << " " << row.zone;
  }
}

TEST(Endpoints, keep_ready_and_unready_addresses_apart) {
  auto web = service(R"({"ports":[{"name":"h","port":80,"targetPort":8080,"protocol":"TCP"}]})");
  auto behind = backends(*web,
                         {backend_pod("a", "10.0.0.1", true), backend_pod("b", "10.0.0.2", false),
                          backend_pod("c", "10.0.0.3", true, "", R"(,"deletionTimestamp":"2024-01-01T00:00:00Z")")},
                         "IPv4", {});
  json::value body = endpoints_object(*web, behind, nullptr);
  const json::array& subsets = get_array(body, "subsets");
  ASSERT_EQ(subsets.size(), 1u);
  EXPECT_EQ(get_array(subsets[0], "addresses").size(), 1u);
  EXPECT_EQ(get_array(subsets[0], "notReadyAddresses").size(), 1u);
  EXPECT_EQ(to_text(*find(subsets[0], "ports")), R"([{"name":"h","port":8080,"protocol":"TCP"}])");
  EXPECT_EQ(get_string(body, "metadata.labels.team"), "a");
  EXPECT_EQ(get_string(get_array(subsets[0], "addresses")[0], "targetRef.name"), "a");
}

TEST(Endpoints, no_more_than_a_thousand_addresses) {
  auto web = service(R"({"ports":[{"port":80,"targetPort":8080,"protocol":"TCP"}]})");
  json::value body = endpoints_object(*web, backends(*web, backend_pods(1200), "IPv4", {}), nullptr);
  EXPECT_EQ(get_array(get_array(body, "subsets")[0], "addresses").size(), kEndpointsMax);
  EXPECT_EQ(get_object(body, "metadata.annotations").at("endpoints.kubernetes.io/over-capacity").as_string(), "truncated");
}

TEST(Endpoints, of_too_many_the_ready_ones_stay) {
  auto web = service(R"({"ports":[{"port":80,"targetPort":8080,"protocol":"TCP"}]})");
  std::vector<ObjectPtr> all = backend_pods(1000);
  for (int i = 0; i < 5; ++i) all.push_back(backend_pod("n" + std::to_string(i), "10.0.0.0" + std::to_string(i), false));
  all.pop_back(), all.erase(all.begin());
  json::value body = endpoints_object(*web, backends(*web, all, "IPv4", {}), nullptr);
  EXPECT_EQ(get_array(get_array(body, "subsets")[0], "addresses").size(), 999u);
  EXPECT_EQ(get_array(get_array(body, "subsets")[0], "notReadyAddresses").size(), 1u);
}

struct Slices : testing::Test {
  ObjectPtr web = service(R"({"selector":{"a":"b"},"ports":[{"name":"h","port":80,"targetPort":8080,"protocol":"TCP"}]})");
  std::vector<ObjectPtr> present;
  int names = 0;

  // Applies the plan to `present`; returns the numbers "created updated deleted".
  std::string step(const std::vector<ObjectPtr>& pods) {
    SliceOwner owner{*web, "web", kSliceController};
    SlicePlan plan = plan_slices(owner, {{"IPv4", backends(*web, pods, "IPv4", {})}}, present);
    for (const ObjectPtr& gone : plan.remove) std::erase(present, gone);
    for (json::value& body : plan.update) {
      for (ObjectPtr& slice : present)
        if (slice->name() == get_string(body, "metadata.name")) slice = MUST(Object::make(kEndpointSlice, body));
    }
    for (json::value& body : plan.create) {
      make(body, "metadata.name") = "web-" + std::to_string(++names);
      present.push_back(MUST(Object::make(kEndpointSlice, body)));
    }
    return std::to_string(plan.create.size()) + " " + std::to_string(plan.update.size()) + " " +
           std::to_string(plan.remove.size());
  }
  size_t endpoints() {
    size_t count = 0;
    for (const ObjectPtr& slice : present) {
      EXPECT_LE(get_array(slice->json(), "endpoints").size(), kEndpointsPerSlice);
      count += get_array(slice->json(), "endpoints").size();
    }
    return count;
  }
};

TEST_F(Slices, hold_a_hundred_each_and_change_no_more_than_they_must) {
  EXPECT_EQ(step(backend_pods(250)), "3 0 0");
  EXPECT_EQ(endpoints(), 250u);
  EXPECT_EQ(step(backend_pods(250)), "0 0 0");
  EXPECT_EQ(step(backend_pods(251)), "0 1 0");  // the one with free space
  std::vector<ObjectPtr> fewer = backend_pods(251);
  fewer.erase(fewer.begin());
  EXPECT_EQ(step(fewer), "0 1 0");
  EXPECT_EQ(endpoints(), 250u);
  step(backend_pods(10));
  EXPECT_EQ(endpoints(), 10u);
}

TEST_F(Slices, an_empty_one_says_that_nobody_is_there) {
  EXPECT_EQ(step({}), "1 0 0");
  EXPECT_EQ(step({}), "0 0 0");
  EXPECT_EQ(step(backend_pods(1)), "0 1 0");
  EXPECT_EQ(present.size(), 1u);
  EXPECT_EQ(step({}), "0 1 0");
  EXPECT_EQ(present.size(), 1u);
  EXPECT_EQ(present[0]->label(kServiceNameLabel), "web");
  EXPECT_EQ(present[0]->label(kManagedByLabel), kSliceController);
  EXPECT_EQ(present[0]->controller()->uid, "svc");
}

struct EndpointsTest : Bench {
  void put_service(const std::string& spec) {
    client.put(kService, R"({"metadata":{"name":"web","namespace":"default","uid":"svc"},"spec":)" + spec + "}");
    settle();
  }
  void put_pod(const std::string& name) {
    client.put(
        kPod, R"({"metadata":{"name":")" + name + R"(","namespace":"default","labels":{"app":"web"}},"spec":{"containers":[]}})");
    settle();
  }
};

TEST_F(EndpointsTest, follow_pods_and_go_with_their_service) {
  start();
  put_service(R"({"selector":{"app":"web"},"ports":[{"port":80,"targetPort":8080,"protocol":"TCP"}]})");
  ASSERT_EQ(count(kEndpointSlice), 1u);
  put_pod("a");
  put_pod("b");
  play_kubelet();
  EXPECT_EQ(count(kEndpointSlice), 1u);
  EXPECT_EQ(get_array(client.all(kEndpointSlice)[0]->json(), "endpoints").size(), 2u);
  const json::array& subsets = get_array(client.find(kEndpoints, {"default", "web"})->json(), "subsets");
  EXPECT_EQ(get_array(subsets[0], "addresses").size(), 2u);
  MUST(client.remove(kService, {"default", "web"}));
  settle();
  EXPECT_EQ(count(kEndpointSlice), 0u);
  EXPECT_EQ(count(kEndpoints), 0u);
}

TEST_F(EndpointsTest, slices_follow_the_zone_of_a_node) {
  start();
  put_service(R"({"selector":{"app":"web"},"ports":[{"port":80,"targetPort":8080,"protocol":"TCP"}]})");
  put_pod("a");
  play_kubelet();
  std::string node(get_string(client.find(kPod, {"default", "a"})->json(), "spec.nodeName"));
  auto zone = [&] { return std::string(get_string(get_array(client.all(kEndpointSlice)[0]->json(), "endpoints")[0], "zone")); };
  EXPECT_EQ(zone(), "");
  for (const char* name : {"shed", "barn"}) {
    client.put(kNode, R"({"metadata":{"name":")" + node + R"(","labels":{"topology.kubernetes.io/zone":")" + name + "\"}}}");
    settle();
    EXPECT_EQ(zone(), name);
  }
}

TEST_F(EndpointsTest, a_late_cache_makes_nothing_twice) {
  start();
  client.clear_calls();
  client.lose_event(2);  // the Service's event is the first, that of its Endpoints the second
  put_service(R"({"selector":{"app":"web"},"ports":[{"port":80,"targetPort":8080,"protocol":"TCP"}]})");
  put_pod("a");
  play_kubelet();
  std::vector<std::string> calls = client.calls();
  EXPECT_EQ(std::ranges::count(calls, "create endpoints default/web"), 1);
}

TEST_F(EndpointsTest, hand_written_ones_are_mirrored) {
  start();
  put_service(R"({"ports":[{"port":80,"protocol":"TCP"}]})");
  EXPECT_EQ(count(kEndpoints), 0u);  // Endpoints of a Service without a selector are the user's
  client.put(kEndpoints, R"({"metadata":{"name":"web","namespace":"default","annotations":{"a":"b",
    "kubectl.kubernetes.io/last-applied-configuration":"{}"}},"subsets":[{"addresses":[{"ip":"1.2.3.4"}],
    "notReadyAddresses":[{"ip":"1.2.3.5"}],"ports":[{"port":8080,"protocol":"TCP"}]}]})");
  settle();
  ASSERT_EQ(count(kEndpointSlice), 1u);
  ObjectPtr slice = client.all(kEndpointSlice)[0];
  EXPECT_EQ(slice->label(kManagedByLabel), kSliceMirror);
  EXPECT_EQ(get_array(slice->json(), "endpoints").size(), 2u);
  EXPECT_EQ(to_text(get_object(slice->json(), "metadata.annotations")), R"({"a":"b"})");
  client.put(kEndpoints, R"({"metadata":{"name":"web","namespace":"default"}})");
  settle();
  EXPECT_EQ(count(kEndpointSlice), 0u) << "where nothing is written, nothing is mirrored";
  client.put(kEndpoints, R"({"metadata":{"name":"web","namespace":"default"},"subsets":[{"addresses":[{"ip":"1.2.3.4"}]}]})");
  settle();
  EXPECT_EQ(count(kEndpointSlice), 1u);
  client.erase(kEndpoints, {"default", "web"});
  settle();
  EXPECT_EQ(count(kEndpointSlice), 0u);
}

TEST_F(EndpointsTest, hand_written_ones_go_with_their_service_too) {
  start();
  client.put(kEndpoints, R"({"metadata":{"name":"web","namespace":"default"},"subsets":[{"addresses":[{"ip":"1.2.3.4"}]}]})");
  settle();
  EXPECT_EQ(count(kEndpoints), 1u) << "there is no Service yet";
  put_service(R"({"ports":[{"port":80,"protocol":"TCP"}]})");
  settle();
  EXPECT_EQ(count(kEndpoints), 1u);
  client.erase(kService, {"default", "web"});
  settle();
  EXPECT_EQ(count(kEndpoints), 0u);
}

TEST_F(EndpointsTest, a_load_balancer_is_the_nodes_own_address) {
  start();
  put_service(R"({"type":"LoadBalancer","selector":{"app":"web"}})");
  auto ingress = [&] { return get_array(client.find(kService, {"default", "web"})->json(), "status.loadBalancer.ingress"); };
  ASSERT_EQ(ingress().size(), 1u);
  EXPECT_EQ(get_string(ingress()[0], "ip"), "192.168.1.7");
  put_service(R"({"type":"ClusterIP","selector":{"app":"web"}})");
  EXPECT_TRUE(ingress().empty());
}

TEST_F(EndpointsTest, leaves_alone_the_status_of_load_balancers_that_are_somebody_elses) {
  start();
  client.put(kService, R"({"metadata":{"name":"web","namespace":"default"},
                           "spec":{"type":"LoadBalancer","loadBalancerClass":"example.com/lb","selector":{"app":"web"}},
                           "status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.9","ipMode":"VIP"}]}}})");
  settle();
  ObjectPtr service = client.find(kService, {"default", "web"});
  const json::array& ingress = get_array(service->json(), "status.loadBalancer.ingress");
  ASSERT_EQ(ingress.size(), 1u);
  EXPECT_EQ(get_string(ingress[0], "ip"), "192.0.2.9");
}

}  // namespace
}  // namespace coracle::controller
