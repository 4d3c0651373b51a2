// SPDX-License-Identifier: Apache-2.0
// Environment, downward API values and managed network files, by value.
#include "daemon/node/environment.h"

#include <gtest/gtest.h>

#include "daemon/node/network_files.h"
#include "runtime/base/text.h"
#include "store/object/object.h"
#include "tests/daemon/parsed.h"

namespace coracle::node {
namespace {

ObjectPtr object(const Kind& kind, std::string_view text) { return *Object::make(kind, parsed(text)); }

const json::value kPodJson = parsed(R"({"metadata":{"name":"web","namespace":"shop","uid":"u-1","labels":{"app":"web","b":"2"},
  "annotations":{"note":"a \"quoted\" one"}},"spec":{"serviceAccountName":"robot","containers":[
  {"name":"a","resources":{"limits":{"cpu":"1500m","memory":"64Mi"},"requests":{"cpu":"250m"}}},{"name":"b"}]}})");
const PodIdentity kIdentity{"node-1", {"192.0.2.1"}, {"10.1.0.7", "fd00::7"}, {{"cpu", "2"}, {"memory", "1Gi"}}};

std::string expanded(std::string_view text, const std::map<std::string, std::string>& variables) {
  TextBudget budget("the text", 16 << 20);
  return MUST(expand(text, variables, budget));
}

TEST(Expand, replaces_what_it_knows) {
  struct Row {
    const char *text, *want;
  };
  const std::map<std::string, std::string> variables{{"A", "1"}, {"B", "$(A)"}};
  for (const Row& row : {Row{"$(A)", "1"}, Row{"x$(A)y", "x1y"}, Row{"$$(A)", "$(A)"}, Row{"$$$(A)", "$1"}, Row{"$(C)", "$(C)"},
                         Row{"$(B)", "$(A)"}, Row{"$A", "$A"}, Row{"$", "$"}, Row{"$(A", "$(A"}, Row{"$()", "$()"},
                         Row{"a$$b", "a$b"}, Row{"", ""}})
    EXPECT_EQ(expanded(row.text, variables), row.want) << row.text;
}

TEST(Expand, what_is_never_closed_is_read_once) {
  std::string open;
  for (int i = 0; i < 1'500'000; ++i) open += "$(";
  EXPECT_EQ(expanded(open, {}), open);
  EXPECT_EQ(expanded("$(A)" + open, {{"A", "1"}}), "1" + open);
}

TEST(Expand, ends_with_its_budget) {
  TextBudget budget("the text", 10);
  EXPECT_EQ(MUST(expand("$(A)", {{"A", "123456"}}, budget)), "123456");
  EXPECT_EQ(expand("x", {}, budget).error().text(), "the text would take more than 10 bytes");
}

TEST(Field, values) {
  struct Row {
    const char *path, *want;
  };
  for (const Row& row :
       {Row{"metadata.name", "web"}, Row{"metadata.namespace", "shop"}, Row{"metadata.uid", "u-1"},
        Row{"metadata.labels['app']", "web"}, Row{"metadata.labels['absent']", ""},
        Row{"metadata.labels", "app=\"web\"\nb=\"2\""}, Row{"spec.nodeName", "node-1"}, Row{"spec.serviceAccountName", "robot"},
        Row{"status.podIP", "10.1.0.7"}, Row{"status.podIPs", "10.1.0.7,fd00::7"}, Row{"status.hostIP", "192.0.2.1"}})
    EXPECT_EQ(*field_value(kPodJson, row.path, kIdentity), row.want) << row.path;
  EXPECT_FALSE(field_value(kPodJson, "spec.containers", kIdentity));
}

TEST(Resource, values) {
  struct Row {
    int container;
    const char *resource, *divisor, *want;
  };
  for (const Row& row :
       {Row{0, "limits.cpu", "\"0\"", "2"}, Row{0, "limits.cpu", "\"1m\"", "1500"}, Row{0, "requests.cpu", "\"1m\"", "250"},
        Row{0, "limits.memory", "\"1Mi\"", "64"}, Row{0, "limits.memory", "null", "67108864"}, Row{1, "limits.cpu", "\"1\"", "2"},
        Row{1, "limits.memory", "\"1Mi\"", "1024"}, Row{1, "requests.cpu", "\"1\"", "0"}}) {
    json::value divisor = parsed(row.divisor);
    EXPECT_EQ(*resource_value(get_array(kPodJson, "spec.containers")[size_t(row.container)], row.resource, &divisor, kIdentity),
              row.want)
        << row.resource;
  }
}

Lookup lookup() {
  Lookup made;
  made.config_map = [](std::string_view name) -> ObjectPtr {
    if (name != "settings") return nullptr;
    return object(
        kConfigMap,
        R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"settings"},"data":{"x":"1","y":"2"}})");
  };
  made.secret = [](std::string_view name) -> ObjectPtr {
    if (name != "keys") return nullptr;
    return object(kSecret,
                  R"({"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"shop","name":"keys"},"data":{"k":"c2VjcmV0"}})");
  };
  made.file = [](std::string_view volume, const std::string& path) -> Result<std::string> {
    if (volume != "shared" || path != "a.env") return Error(Code::not_found, "no such file");
    return std::string("# made by init\nA='one'\nEMPTY=\n");
  };
  const std::vector<ObjectPtr> services = {
      object(kService, R"({"apiVersion":"v1","kind":"Service","metadata":{"namespace":"shop","name":"redis-master"},
                       "spec":{"clusterIP":"10.96.0.11","ports":[{"name":"main","port":6379,"protocol":"TCP"},{"port":80,"protocol":"UDP"}]}})"),
      object(
          kService,
          R"({"apiVersion":"v1","kind":"Service","metadata":{"namespace":"shop","name":"headless"},"spec":{"clusterIP":"None","ports":[{"port":1}]}})"),
      object(
          kService,
          R"({"apiVersion":"v1","kind":"Service","metadata":{"namespace":"default","name":"kubernetes"},"spec":{"clusterIP":"10.96.0.1","ports":[{"name":"https","port":443}]}})")};
  made.services = [services](bool) { return services; };
  return made;
}

TEST(Environment, is_made_in_order) {
  auto variables = make_environment(
      kPodJson,
      parsed(R"json({"name":"a","envFrom":[{"configMapRef":{"name":"settings"}},{"prefix":"P_","secretRef":{"name":"keys"}},
    {"configMapRef":{"name":"none","optional":true}}],"env":[{"name":"x","value":"own"},{"name":"Z","value":"$(x)-$(P_k)-$(REDIS_MASTER_SERVICE_PORT)-$(later)"},{"name":"later","value":"l"},
    {"name":"POD","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}},{"name":"OPT","valueFrom":{"secretKeyRef":{"name":"keys","key":"none","optional":true}}},
    {"name":"KEY","valueFrom":{"secretKeyRef":{"name":"keys","key":"k"}}},{"name":"CPU","valueFrom":{"resourceFieldRef":{"containerName":"a","resource":"limits.cpu","divisor":"1m"}}}]})json"),
      lookup(), kIdentity);
  ASSERT_TRUE(variables) << variables.error().text();
  auto& v = *variables;
  EXPECT_EQ(v["x"], "own");
  EXPECT_EQ(v["y"], "2");
  EXPECT_EQ(v["P_k"], "secret");
  EXPECT_EQ(v["Z"], "own-secret-6379-$(later)");
  EXPECT_EQ(v["POD"], "web");
  EXPECT_EQ(v["KEY"], "secret");
  EXPECT_EQ(v["CPU"], "1500");
  EXPECT_EQ(v.count("OPT"), 0u);
  EXPECT_EQ(v["REDIS_MASTER_SERVICE_HOST"], "10.96.0.11");
  EXPECT_EQ(v["REDIS_MASTER_SERVICE_PORT_MAIN"], "6379");
  EXPECT_EQ(v["REDIS_MASTER_PORT"], "tcp://10.96.0.11:6379");
  EXPECT_EQ(v["REDIS_MASTER_PORT_80_UDP"], "udp://10.96.0.11:80");
  EXPECT_EQ(v["REDIS_MASTER_PORT_80_UDP_PROTO"], "udp");
  EXPECT_EQ(v["KUBERNETES_SERVICE_HOST"], "10.96.0.1");
  EXPECT_EQ(v["KUBERNETES_SERVICE_PORT_HTTPS"], "443");
  EXPECT_EQ(v.count("HEADLESS_SERVICE_HOST"), 0u);
}

// A small manifest can refer to a large amount of data.
TEST(Environment, has_a_bound_whatever_refers_to_what) {
  std::string doubling = R"({"name":"A0","value":"xx"})", large, names;
  for (int i = 1; i <= 60; ++i) {
    std::string before = "$(A" + std::to_string(i - 1) + ")";
    doubling += R"(,{"name":"A)" + std::to_string(i) + R"(","value":")" + before + before + "\"}";
  }
  Lookup with_large = lookup();
  ObjectPtr map =
      object(kConfigMap, R"({"metadata":{"name":"large","namespace":"shop"},"data":{"k":")" + std::string(1 << 20, 'x') + "\"}}");
  int reads = 0;
  with_large.config_map = [&](std::string_view) { return ++reads, map; };
  for (int i = 0; i < 20'000; ++i) {
    std::string name = "N" + std::to_string(i);
    large += (i ? "," : "") + std::string(R"({"prefix":")") + name + R"(","configMapRef":{"name":"large"}})";
    names +=
        (i ? "," : "") + std::string(R"({"name":")") + name + R"(","valueFrom":{"configMapKeyRef":{"name":"large","key":"k"}}})";
  }
  for (const std::string& container : {R"({"name":"a","env":[)" + doubling + "]}", R"({"name":"a","envFrom":[)" + large + "]}",
                                       R"({"name":"a","env":[)" + names + "]}"}) {
    reads = 0;
    auto made = make_environment(kPodJson, parsed(container), with_large, kIdentity);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().text(), "the container's environment would take more than 16 MiB");
    EXPECT_LE(reads, 1);
  }
}

TEST(EnvFile, says_what_a_key_is) {
  struct Row {
    const char *text, *want;  // of the key A; "-" when it is not there, "line …" when the file is malformed
  };
  for (const Row& row : {Row{"A='one'", "one"},
                         Row{"  A='one'  # why\n", "one"},
                         Row{"\n# A='no'\nA=''\n", ""},
                         Row{"A='two\nlines'\n", "two\nlines"},
                         Row{"A='$x \\n \"'\n", "$x \\n \""},
                         Row{"B='x'\r\nA='y'\r\n", "y"},
                         Row{"A=1\n", "1"},
                         Row{"A=1 2 # note\n", "1 2"},
                         Row{"A= 'one'\n", ""},
                         Row{"A='first'\nA='second'\n", "first"},
                         Row{"AA='x'\nB='A=1'\n", "-"},
                         Row{"", "-"},
                         Row{"A=k=v\n", "k=v"},
                         Row{"B\n", "line 1: missing '='"},
                         Row{"\nA ='x'\n", "line 2: whitespace before '='"},
                         Row{"='x'\n", "line 1: empty variable name"},
                         Row{"B='x\ny\n", "line 1: unclosed single quote"},
                         Row{"B='x\n'y\nA='z'\n", "line 2: unexpected content after closing quote"},
                         Row{"A=\"x\"\n", "line 1: such a value must stand in single quotes"},
                         Row{"A='z'\nthe rest is not read\n", "z"}}) {
    auto got = value_in_env_file(row.text, "A");
    EXPECT_EQ(got ? got->value_or("-") : got.error().text(), row.want) << row.text;
  }
}

TEST(Environment, takes_values_from_files) {
  auto made = make_environment(
      kPodJson, parsed(R"json({"env":[{"name":"X","valueFrom":{"fileKeyRef":{"volumeName":"shared","path":"a.env","key":"A"}}},
        {"name":"Y","value":"$(X) more"},{"name":"E","valueFrom":{"fileKeyRef":{"volumeName":"shared","path":"a.env","key":"EMPTY"}}},
        {"name":"N","valueFrom":{"fileKeyRef":{"volumeName":"shared","path":"a.env","key":"B","optional":true}}},
        {"name":"O","valueFrom":{"fileKeyRef":{"volumeName":"shared","path":"none","key":"A","optional":true}}}]})json"),
      lookup(), kIdentity);
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_EQ(made->at("X"), "one");
  EXPECT_EQ(made->at("Y"), "one more");
  EXPECT_EQ(made->at("E"), "");
  EXPECT_EQ(made->count("N") + made->count("O"), 0u);
}

TEST(Environment, without_service_links_only_the_api_server) {
  json::value pod = kPodJson;
  make(pod, "spec.enableServiceLinks") = false;
  auto variables = make_environment(pod, parsed(R"({"name":"a"})"), lookup(), kIdentity);
  EXPECT_EQ(variables->count("REDIS_MASTER_SERVICE_HOST"), 0u);
  EXPECT_EQ(variables->count("KUBERNETES_SERVICE_HOST"), 1u);
}

TEST(Environment, services_are_listed_once_and_all_only_for_service_links) {
  for (bool links : {true, false}) {
    json::value pod = kPodJson;
    make(pod, "spec.enableServiceLinks") = links;
    std::vector<bool> asked;
    Lookup counted = lookup();
    counted.services = [&asked, services = counted.services](bool all) { return asked.push_back(all), services(all); };
    auto variables = make_environment(
        pod, parsed(R"json({"name":"a","env":[{"name":"API","value":"$(KUBERNETES_SERVICE_HOST)"}]})json"), counted, kIdentity);
    ASSERT_TRUE(variables) << variables.error().text();
    EXPECT_EQ(variables->at("API"), "10.96.0.1");
    EXPECT_EQ(asked, std::vector<bool>{links});
  }
}

TEST(Environment, names_what_is_missing) {
  struct Row {
    const char *container, *want;
  };
  for (const Row& row :
       {Row{R"({"envFrom":[{"configMapRef":{"name":"none"}}]})", "configmap \"none\" not found"},
        Row{R"({"envFrom":[{"secretRef":{"name":"none"}}]})", "secret \"none\" not found"},
        Row{R"({"env":[{"name":"A","valueFrom":{"configMapKeyRef":{"name":"settings","key":"z"}}}]})",
            "couldn't find key z in ConfigMap shop/settings"},
        Row{R"({"env":[{"name":"A","valueFrom":{"fileKeyRef":{"volumeName":"shared","path":"a.env","key":"z"}}}]})",
            "environment variable key \"z\" not found in file \"a.env\" of volume \"shared\""},
        Row{R"({"env":[{"name":"A","valueFrom":{"fileKeyRef":{"volumeName":"shared","path":"no","key":"z"}}}]})",
            "file \"no\" of volume \"shared\": no such file"},
        Row{R"({"env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"keys","key":"z"}}}]})",
            "couldn't find key z in Secret shop/keys"}}) {
    auto made = make_environment(kPodJson, parsed(row.container), lookup(), kIdentity);
    ASSERT_FALSE(made) << row.container;
    EXPECT_EQ(made.error().text(), row.want);
  }
}

PodNetworkHooks network() {
  PodNetworkHooks hooks;
  hooks.nameservers = {"10.96.0.10"};
  return hooks;
}

TEST(ResolvConf, follows_the_policy) {
  const ResolvConf host = ResolvConf::parse("# host\nnameserver 192.0.2.53\nsearch example.org lan\noptions timeout:1 ndots:1\n");
  struct Row {
    const char *spec, *want;
  };
  const std::string cluster =
      "search shop.svc.cluster.local svc.cluster.local cluster.local example.org lan\nnameserver 10.96.0.10\noptions ndots:5\n";
  const std::string as_host = "search example.org lan\nnameserver 192.0.2.53\noptions timeout:1 ndots:1\n";
  for (
      const Row& row :
      {Row{R"({})", cluster.c_str()}, Row{R"({"dnsPolicy":"ClusterFirst"})", cluster.c_str()},
       Row{R"({"dnsPolicy":"Default"})", as_host.c_str()},
       Row{R"({"dnsPolicy":"ClusterFirst","hostNetwork":true})", as_host.c_str()},
       Row{R"({"dnsPolicy":"ClusterFirstWithHostNet","hostNetwork":true})", cluster.c_str()},
       Row{R"({"dnsPolicy":"None","dnsConfig":{"nameservers":["1.1.1.1"],"searches":["a.b"],"options":[{"name":"ndots","value":"2"},{"name":"edns0"}]}})",
           "search a.b\nnameserver 1.1.1.1\noptions ndots:2 edns0\n"},
       Row{R"({"dnsConfig":{"nameservers":["1.1.1.1","10.96.0.10"],"options":[{"name":"ndots","value":"1"}]}})",
           "search shop.svc.cluster.local svc.cluster.local cluster.local example.org lan\nnameserver 10.96.0.10\nnameserver "
           "1.1.1.1\noptions ndots:1\n"}}) {
    json::value pod = parsed(std::string(R"({"metadata":{"namespace":"shop"},"spec":)") + row.spec + "}");
    EXPECT_EQ(make_resolv_conf(pod, host, network()).text(), row.want) << row.spec;
  }
}

TEST(ResolvConf, the_root_is_no_search_domain) {
  struct Row {
    const char* line;
    std::vector<std::string> want;
  };
  using Domains = std::vector<std::string>;
  for (const Row& row :
       {Row{"search . lan", {"lan"}}, Row{"search .", {}}, Row{"search lan. example.org.", {"lan", "example.org"}},
        Row{"domain .", {}}, Row{"search a b\nsearch .", {}}})
    EXPECT_EQ(ResolvConf::parse(std::string(row.line) + "\n").searches, Domains(row.want)) << row.line;
  ResolvConf twice = ResolvConf::parse("search cluster.local. lan\n");
  json::value pod = parsed(R"({"metadata":{"namespace":"shop"},"spec":{}})");
  EXPECT_EQ(make_resolv_conf(pod, twice, network()).searches,
            (Domains{"shop.svc.cluster.local", "svc.cluster.local", "cluster.local", "lan"}));
}

TEST(HostsFile, names_the_pod_and_its_aliases) {
  json::value pod = parsed(
      R"({"metadata":{"namespace":"shop","name":"web"},"spec":{"subdomain":"pages","hostAliases":[{"ip":"1.2.3.4","hostnames":["a","b.c"]}]}})");
  std::string text = make_hosts_file(pod, {"10.1.0.7"}, "", "cluster.local");
  EXPECT_NE(text.find("127.0.0.1\tlocalhost\n"), text.npos);
  EXPECT_NE(text.find("10.1.0.7\tweb.pages.shop.svc.cluster.local\tweb\n"), text.npos);
  EXPECT_NE(text.find("1.2.3.4\ta\tb.c\n"), text.npos);
  make(pod, "spec.hostNetwork") = true;
  EXPECT_TRUE(make_hosts_file(pod, {}, "127.0.0.1 me\n", "cluster.local").find("127.0.0.1 me\n") != std::string::npos);
}

}  // namespace
}  // namespace coracle::node
