// SPDX-License-Identifier: Apache-2.0
// A change of few Services changes the rules as a plan of all would, or says that it cannot.
#include <gtest/gtest.h>

#include <random>

#include "daemon/network/proxy.h"
#include "tests/daemon/network/objects.h"

namespace coracle::network {
namespace {

using States = std::map<std::string, ServiceState>;  // by name

const char* const kWebPorts = R"([{"name":"a","port":8080,"protocol":"TCP"},{"name":"u","port":53,"protocol":"UDP"}])";

ProxyInput this_machine() {
  ProxyInput out;
  out.pods = MUST(Ipv4Range::parse("10.244.0.0/24"));
  out.services = MUST(Ipv4Range::parse("10.96.0.0/16"));
  out.dns = MUST(Ipv4::parse("10.96.0.10"));
  out.dns_port = 10053;
  return out;
}

ProxyPlan plan_of_all(const States& states) {
  ProxyInput all = this_machine();
  for (const auto& [name, state] : states) {
    if (state.service) all.service_objects.push_back(state.service);
    all.slices.insert(all.slices.end(), state.slices.begin(), state.slices.end());
  }
  all.host_ports = {{{Protocol::tcp, {}, 8080, 80}, MUST(Ipv4::parse("10.244.0.2"))}};
  return plan_proxy(all);
}

// The rules as the proxy keeps them.
struct KeptRules {
  States states;
  ProxyPlan plan = plan_of_all(states);
  int in_part = 0, whole = 0;

  void become(const States& next) {
    std::vector<ServiceState> was, is;
    for (const auto& [name, state] : next) was.push_back(states[name]), is.push_back(state);
    for (const auto& [name, state] : next) states[name] = state;
    ProxyPlan expected = plan_of_all(states);
    auto change = plan.contested ? std::nullopt : plan_change(this_machine(), was, is, plan.rules, plan.hairpins);
    if (!change) {
      ++whole;
      plan = std::move(expected);
      return;
    }
    ++in_part;
    EXPECT_EQ(change_script(change->before, change->after), change_script(plan.rules, expected.rules));
    replace_part(plan.rules, change->before, change->after);
    for (const auto& [element, uses] : change->hairpins)
      if (uses > 0) plan.hairpins[element] = uses;
      else plan.hairpins.erase(element);
    EXPECT_EQ(replace_script(plan.rules), replace_script(expected.rules));
    EXPECT_EQ(plan.rules, expected.rules);
    EXPECT_EQ(plan.hairpins, expected.hairpins);
    EXPECT_EQ(plan.udp, expected.udp) << "nothing else has changed";
    EXPECT_EQ(plan.outside, expected.outside);
    EXPECT_EQ(plan.ignored.size(), expected.ignored.size());
    EXPECT_FALSE(expected.contested);
  }
};

ServiceState plain(const std::string& name, const std::string& address, const std::vector<std::string>& endpoints,
                   const std::string& more = "") {
  std::string list;
  for (const std::string& each : endpoints) list += (list.empty() ? "" : ",") + endpoint(each, kReady);
  return {service(name, R"({"clusterIP":")" + address + R"(","ports":[{"name":"a","port":80}])" + more + "}"),
          {slice(name, "[" + list + "]", kWebPorts)}};
}

TEST(ProxyChange, a_plain_service_comes_changes_and_goes) {
  KeptRules kept;
  kept.become({{"one", plain("one", "10.96.1.1", {"10.244.0.4", "10.244.0.5"})}});
  kept.become({{"two", plain("two", "10.96.1.2", {"10.244.0.5"}, R"(,"sessionAffinity":"ClientIP")")}});
  kept.become({{"one", plain("one", "10.96.1.1", {"10.244.0.4"})}});
  EXPECT_TRUE(kept.plan.rules.sets.at("hairpin").elements.contains("10.244.0.5 . 10.244.0.5")) << "the other one has it";
  kept.become({{"one", plain("one", "10.96.1.1", {})}});
  EXPECT_TRUE(kept.plan.rules.sets.at("refused").elements.contains("tcp . 10.96.1.1 . 80"));
  kept.become({{"one", {}}, {"two", {}}, {"three", plain("three", "10.96.1.1", {"10.244.0.2"})}});
  EXPECT_FALSE(kept.plan.rules.sets.at("hairpin").elements.contains("10.244.0.5 . 10.244.0.5"));
  kept.become({{"three", {}}});
  EXPECT_TRUE(kept.plan.rules.sets.at("hairpin").elements.contains("10.244.0.2 . 10.244.0.2")) << "of a host port";
  EXPECT_EQ(kept.in_part, 6);
  EXPECT_EQ(kept.whole, 0);
}

TEST(ProxyChange, what_may_concern_others_is_planned_with_them) {
  const ServiceState web = plain("web", "10.96.1.1", {"10.244.0.4"});
  struct Row {
    const char* name;
    ServiceState state;
  };
  for (const Row& row : {
           Row{"a node port", {service("x", R"({"clusterIP":"10.96.1.2","ports":[{"port":80,"nodePort":30080}]})"), {}}},
           Row{"an external address", plain("x", "10.96.1.2", {"10.244.0.4"}, R"(,"externalIPs":["192.0.2.7"])")},
           Row{"a refused address", plain("x", "10.96.1.2", {"10.244.0.4"}, R"(,"externalIPs":["127.0.0.1"])")},
           Row{"the DNS server's address", plain("x", "10.96.0.10", {"10.244.0.4"})},
           Row{"an address of an earlier range", plain("x", "10.97.0.1", {"10.244.0.4"})},
           Row{"an address of another one", plain("x", "10.96.1.1", {"10.244.0.4"})},
           Row{"such an address without endpoints", plain("x", "10.96.1.1", {})},
           Row{"UDP flows",
               {service("x", R"({"clusterIP":"10.96.1.2","ports":[{"name":"u","port":53,"protocol":"UDP"}]})"),
                {slice("x", "[" + endpoint("10.244.0.4") + "]", kWebPorts)}}},
       }) {
    KeptRules kept;
    kept.become({{"web", web}});
    ASSERT_EQ(kept.in_part, 1);
    kept.become({{"x", row.state}});
    EXPECT_EQ(kept.whole, 1) << row.name;
    kept.become({{"x", {}}});
    EXPECT_EQ(kept.whole, 2) << row.name;
  }
}

TEST(ProxyChange, whatever_comes_the_rules_are_those_of_a_plan_of_all) {
  std::mt19937 random(33);
  auto below = [&](unsigned count) { return random() % count; };
  auto some_slices = [&](const std::string& name) {
    std::vector<ObjectPtr> out;
    for (unsigned i = below(3); i > 0; --i) {
      std::string list;
      for (unsigned each = below(4); each > 0; --each)
        list += (list.empty() ? "" : ",") + endpoint("10.244.0." + std::to_string(2 + below(6)), below(4) ? kReady : kNotReady);
      out.push_back(slice(name, "[" + list + "]", kWebPorts, "part" + std::to_string(i)));
    }
    return out;
  };
  auto some_service = [&](const std::string& name, unsigned number) -> ObjectPtr {
    if (below(6) == 0) return nullptr;
    unsigned own = below(20) ? number : below(12);  // rarely the address of another one
    std::string address = below(15) ? "10.96.1." + std::to_string(1 + own) : "None", ports = R"({"name":"a","port":80})", more;
    if (below(3) == 0) ports += R"(,{"name":"b","port":81})";
    if (below(12) == 0) ports += R"(,{"name":"u","port":53,"protocol":"UDP"})";
    if (below(20) == 0) ports += R"(,{"name":"n","port":82,"nodePort":)" + std::to_string(30000 + number) + "}";
    if (below(4) == 0) more = R"(,"sessionAffinity":"ClientIP")";
    return service(name, R"({"clusterIP":")" + address + R"(","ports":[)" + ports + "]" + more + "}");
  };
  KeptRules kept;
  for (int step = 0; step < 1500 && !testing::Test::HasFailure(); ++step) {
    States next;
    for (unsigned i = 1 + below(3); i > 0; --i) {
      unsigned number = below(10);
      std::string name = "s" + std::to_string(number);
      ServiceState state = kept.states[name];
      if (below(2)) state.service = some_service(name, number);
      if (below(2)) state.slices = some_slices(name);
      next[name] = std::move(state);
    }
    kept.become(next);
  }
  EXPECT_GT(kept.in_part, 300);
  EXPECT_GT(kept.whole, 50);
}

}  // namespace
}  // namespace coracle::network
