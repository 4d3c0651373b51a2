// SPDX-License-Identifier: Apache-2.0
// The target of a request to a proxy subresource, computed from the objects of the API; and the targets that are refused.
#include "daemon/api/proxy/target.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "runtime/sys/file.h"
#include "store/object/status.h"
#include "tests/daemon/api/raw_client.h"
#include "tests/daemon/api/server_fixture.h"

namespace coracle::api {
namespace {

TEST(ProxyName, is_scheme_name_and_port) {
  EXPECT_EQ(split_name("web"), (AskedName{"", "web", ""}));
  EXPECT_EQ(split_name("web:80"), (AskedName{"", "web", "80"}));
  EXPECT_EQ(split_name("web:http"), (AskedName{"", "web", "http"}));
  EXPECT_EQ(split_name("https:web:"), (AskedName{"https", "web", ""}));
  EXPECT_EQ(split_name(":web:80"), (AskedName{"", "web", "80"}));
  for (const char* bad : {"", ":80", "http::80", "ftp:web:80", "a:b:c:d", "HTTPS:web:1"}) EXPECT_FALSE(split_name(bad)) << bad;
}

TEST(ProxyAddress, is_never_the_machine_itself_or_its_link) {
  for (const char* good : {"10.0.0.1", "192.168.0.1", "172.16.0.1", "8.8.8.8", "2600::", "fd00::1", "::ffff:10.0.0.1"})
    EXPECT_TRUE(may_be_reached(good)) << good;
  for (const char* bad : {"127.0.0.1",
                          "127.8.8.8",
                          "169.254.169.254",
                          "169.254.1.1",
                          "0.0.0.0",
                          "0.1.2.3",
                          "255.255.255.255",
                          "224.0.0.1",
                          "239.1.1.1",
                          "::1",
                          "::",
                          "fe80::1",
                          "febf::1",
                          "ff02::1",
                          "::ffff:127.0.0.1",
                          "::ffff:169.254.169.254",
                          "::127.0.0.1",
                          "1",
                          "",
                          "localhost",
                          "10.0.0.1 ",
                          "10.0.0.01x",
                          "0x7f.1",
                          "fe80::1%eth0",
                          "10.0.0.1:80"})
    EXPECT_FALSE(may_be_reached(bad)) << bad;
}

class ProxyTarget : public testing::Test {
 protected:
  void SetUp() override {
    pod("p", R"([{"name":"a","image":"i"},{"name":"b","image":"i","ports":[{"containerPort":8080},{"containerPort":9090}]}])",
        "10.1.0.7");
    pod("portless", R"([{"name":"a","image":"i"}])", "10.1.0.8");
  }
  void pod(const std::string& name, const std::string& containers, const std::string& address) {
    create(kPod, R"({"metadata":{"name":")" + name + R"("},"spec":{"nodeName":"n","containers":)" + containers + "}}");
    if (!address.empty())
      status(kPod, {"default", name}, R"({"podIP":")" + address + R"(","podIPs":[{"ip":")" + address + R"("}]})");
  }
  void create(const Kind& kind, const std::string& text, const std::string& ns = "default") {
    auto made = fixture.registry->create(kind, {kind.namespaced ? ns : "", ""}, MUST(parse_json(text)), {});
    EXPECT_TRUE(made) << made.error().text();
  }
  void status(const Kind& kind, const Key& key, const std::string& text) {
    json::value patch = json::object{{"status", MUST(parse_json(text))}};
    auto done = fixture.registry->patch(kind, key, "status", PatchType::merge, patch, false, {});
    EXPECT_TRUE(done) << done.error().text();
  }
  void slice(const std::string& name, const std::string& service, const std::string& ports, const std::string& endpoints,
             const std::string& type = "IPv4") {
    create(kEndpointSlice, R"({"metadata":{"name":")" + name + R"(","labels":{"kubernetes.io/service-name":")" + service +
                               R"("}},"addressType":")" + type + R"(","ports":)" + ports + R"(,"endpoints":)" + endpoints + "}");
  }
  static std::string endpoint(const std::string& address, const std::string& pod, const std::string& ready = "true",
                              const std::string& ns = "default") {
    return R"({"addresses":[")" + address + R"("],"conditions":{"ready":)" + ready +
           R"(},"targetRef":{"kind":"Pod","namespace":")" + ns + R"(","name":")" + pod + R"("}})";
  }
  // "http 10.1.0.7:8080 (10.1.0.7:8080)", or "503 why".
  std::string found(const Kind& kind, const std::string& id) {
    auto target = find_target(*fixture.registry, kind, kind.namespaced ? "default" : "", id);
    if (!target) return std::to_string(http_status(target.error())) + " " + target.error().text();
    return std::string(target->secure ? "https " : "http ") + target->to.text() + " (" + target->host + ")";
  }

  ServerFixture fixture;
};

TEST_F(ProxyTarget, a_pod_is_reached_at_its_address_and_its_first_port) {
  EXPECT_EQ(found(kPod, "p"), "http 10.1.0.7:8080 (10.1.0.7:8080)");
  EXPECT_EQ(found(kPod, "p:81"), "http 10.1.0.7:81 (10.1.0.7:81)");
  EXPECT_EQ(found(kPod, "https:p:443"), "https 10.1.0.7:443 (10.1.0.7:443)");
  EXPECT_EQ(found(kPod, "https:p:"), "https 10.1.0.7:8080 (10.1.0.7:8080)");
  EXPECT_EQ(found(kPod, "portless"), "http 10.1.0.8:80 (10.1.0.8)");
  EXPECT_EQ(found(kPod, "https:portless:"), "https 10.1.0.8:443 (10.1.0.8)");
  pod("six", R"([{"name":"a","image":"i"}])", "fd00::9");
  EXPECT_EQ(found(kPod, "six"), "http [fd00::9]:80 ([fd00::9])");
  EXPECT_EQ(found(kPod, "six:8080"), "http [fd00::9]:8080 ([fd00::9]:8080)");
}

TEST_F(ProxyTarget, a_pod_that_is_not_there_or_nowhere_yet_is_not_reached) {
  EXPECT_EQ(found(kPod, "none"), "404 pods \"none\" not found");
  pod("early", R"([{"name":"a","image":"i"}])", "");
  EXPECT_EQ(found(kPod, "early"), "400 address not allowed");
  for (const char* id : {"p:http", "p:0", "p:65536", "p:-1", "p:80@198.51.100.1", "p:80#", "ftp:p:80", ":80", "a:b:c:d"})
    EXPECT_EQ(found(kPod, id), "400 invalid pod request \"" + std::string(id) + "\"");
}

TEST_F(ProxyTarget, a_status_that_names_the_machine_leads_nowhere) {
  for (const char* address : {"127.0.0.1", "169.254.169.254", "::1", "fe80::1", "::ffff:127.0.0.1"}) {
    json::value patch =
        json::object{{"status", json::object{{"podIP", address}, {"podIPs", json::array{json::object{{"ip", address}}}}}}};
    if (!fixture.registry->patch(kPod, {"default", "p"}, "status", PatchType::merge, patch, false, {}))
      continue;  // refused when it is created
    EXPECT_EQ(found(kPod, "p"), "400 address not allowed") << address;
  }
}

class ProxyServiceTarget : public ProxyTarget {
 protected:
  void SetUp() override {
    ProxyTarget::SetUp();
    create(kService,
           R"({"metadata":{"name":"s"},"spec":{"ports":[{"name":"a","port":80},{"name":"b","port":443,"targetPort":8443}]}})");
    create(kService, R"({"metadata":{"name":"one"},"spec":{"ports":[{"port":80}]}})");
  }
};

TEST_F(ProxyServiceTarget, leads_to_a_ready_pods_address_by_the_ports_name_or_number) {
  slice("s-1", "s", R"([{"name":"a","port":8080},{"name":"b","port":8443}])",
        "[" + endpoint("10.1.0.8", "portless", "false") + "," + endpoint("10.1.0.7", "p") + "]");
  EXPECT_EQ(found(kService, "s:a"), "http 10.1.0.7:8080 (10.1.0.7:8080)");
  EXPECT_EQ(found(kService, "s:80"), "http 10.1.0.7:8080 (10.1.0.7:8080)");
  EXPECT_EQ(found(kService, "https:s:b"), "https 10.1.0.7:8443 (10.1.0.7:8443)");
  EXPECT_EQ(found(kService, "https:s:443"), "https 10.1.0.7:8443 (10.1.0.7:8443)");
  EXPECT_EQ(found(kService, "s"), "503 no endpoints available for service \"s\"");  // the request does not say which of two ports
  EXPECT_EQ(found(kService, "s:c"), "503 no endpoints available for service \"s\"");
  EXPECT_EQ(found(kService, "s:8080"), "503 no service port 8080 found for service \"s\"");
  EXPECT_EQ(found(kService, "none"), "404 services \"none\" not found");
  EXPECT_EQ(found(kService, "x:s:80"), "400 invalid service request \"x:s:80\"");
  slice("one-1", "one", R"([{"port":8080}])", "[" + endpoint("10.1.0.7", "p") + "]");
  EXPECT_EQ(found(kService, "one"), "http 10.1.0.7:8080 (10.1.0.7:8080)");
  EXPECT_EQ(found(kService, "one:80"), "http 10.1.0.7:8080 (10.1.0.7:8080)");
}

TEST_F(ProxyServiceTarget, all_ready_pods_get_their_share) {
  slice("one-1", "one", R"([{"port":8080}])", "[" + endpoint("10.1.0.7", "p") + "," + endpoint("10.1.0.8", "portless") + "]");
  std::map<std::string, int> seen;
  for (int i = 0; i < 200; i++) seen[found(kService, "one")]++;
  EXPECT_EQ(seen.size(), 2u);
}

TEST_F(ProxyServiceTarget, the_first_address_family_comes_first) {
  pod("six", R"([{"name":"a","image":"i"}])", "fd00::9");
  slice("one-6", "one", R"([{"port":8080}])", "[" + endpoint("fd00::9", "six") + "]", "IPv6");
  EXPECT_EQ(found(kService, "one"), "http [fd00::9]:8080 ([fd00::9]:8080)");
  slice("one-4", "one", R"([{"port":8080}])", "[" + endpoint("10.1.0.7", "p") + "]");
  for (int i = 0; i < 20; i++) EXPECT_EQ(found(kService, "one"), "http 10.1.0.7:8080 (10.1.0.7:8080)");
}

TEST_F(ProxyServiceTarget, slices_lead_to_pods_that_have_the_address_and_nowhere_else) {
  create(kNamespace, R"({"metadata":{"name":"other"}})");
  slice("one-1", "one", R"([{"port":8080}])",
        "[" + endpoint("10.1.0.9", "p") + "," + endpoint("10.1.0.7", "portless") + "," + endpoint("10.1.0.7", "gone") + "," +
            endpoint("10.1.0.7", "p", "true", "other") +
            R"(,{"addresses":["10.1.0.7"]},{"addresses":["10.9.9.9"],"conditions":{"ready":true}}])");
  EXPECT_EQ(found(kService, "one"), "503 no endpoints available for service \"one\"");
  EXPECT_EQ(found(kService, "kubernetes:https"),
            "503 no endpoints available for service \"kubernetes\"");  // the slice refers to no pod
}

TEST_F(ProxyTarget, a_node_is_reached_at_its_address) {
  create(kNode, R"({"metadata":{"name":"far"}})");
  status(kNode, {"", "far"}, R"({"addresses":[{"type":"Hostname","address":"far"},{"type":"InternalIP","address":"10.9.0.1"}]})");
  EXPECT_EQ(found(kNode, "far:9100"), "http 10.9.0.1:9100 (10.9.0.1:9100)");
  EXPECT_EQ(found(kNode, "https:far:9100"), "https 10.9.0.1:9100 (10.9.0.1:9100)");
  EXPECT_EQ(found(kNode, "far"), "https 10.9.0.1:10250 (10.9.0.1:10250)");  // the node's agent
  EXPECT_EQ(found(kNode, "http:far:10250"), "https 10.9.0.1:10250 (10.9.0.1:10250)");
  EXPECT_EQ(found(kNode, "none"), "404 nodes \"none\" not found");
  create(kNode, R"({"metadata":{"name":"lost"}})");
  EXPECT_EQ(found(kNode, "lost"), "500 no preferred addresses found; known addresses: []");
  create(kNode, R"({"metadata":{"name":"here"}})");
  status(kNode, {"", "here"}, R"({"addresses":[{"type":"InternalIP","address":"127.0.0.1"}]})");
  EXPECT_EQ(found(kNode, "here:80"), "400 address not allowed");
}

class ProxyServe : public ProxyTarget {
 protected:
  std::string message(const RawAnswer& answer) { return std::string(get_string(answer.json(), "message")); }
  KeyPair identity = fixture.server->admin();
  RawClient client{fixture.port(), &identity};
};

TEST_F(ProxyServe, says_what_is_missing_as_a_status) {
  const std::string ns = "/api/v1/namespaces/default";
  RawAnswer none = client.get(ns + "/pods/none/proxy/x");
  EXPECT_EQ(none.status, 404);
  EXPECT_EQ(message(none), "pods \"none\" not found");
  create(kService, R"({"metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}})");
  RawAnswer empty = client.get(ns + "/services/s/proxy/x");
  EXPECT_EQ(empty.status, 503);
  EXPECT_EQ(get_string(empty.json(), "reason"), "ServiceUnavailable");
  EXPECT_EQ(message(empty), "no endpoints available for service \"s\"");
  EXPECT_EQ(client.get(ns + "/pods/a:b:c:d/proxy/x").status, 400);
  RawAnswer dry = client.get(ns + "/pods/p/proxy/x?dryRun=All");
  EXPECT_EQ(dry.status, 400);
  EXPECT_EQ(message(dry), "dryRun is not supported");
  EXPECT_EQ(client.get(ns + "/pods/p/proxy/%zz").status, 400);
  EXPECT_EQ(client.get(ns + "/configmaps/p/proxy/x").status, 404);  // has no such subresource
}

TEST_F(ProxyServe, asks_for_the_slash_that_a_pages_links_need) {
  RawAnswer answer = client.get("/api/v1/namespaces/default/pods/p/proxy?a=b");
  EXPECT_EQ(answer.status, 301);
  EXPECT_EQ(answer.header("Location"), "/api/v1/namespaces/default/pods/p/proxy/?a=b");
  EXPECT_FALSE(answer.header("Audit-ID").empty());
  client.send("HEAD /api/v1/namespaces/default/pods/https:p:80/proxy HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.receive_head().header("Location"), "/api/v1/namespaces/default/pods/https:p:80/proxy/");
}

TEST_F(ProxyServe, is_open_to_those_who_may_by_the_method) {
  create(kClusterRole, R"({"metadata":{"name":"reader"},"rules":[
                           {"apiGroups":[""],"resources":["pods/proxy"],"verbs":["get"],"resourceNames":["p:80"]}]})");
  create(kClusterRoleBinding,
         R"({"metadata":{"name":"reader"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"reader"},
                                  "subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"someone"}]})");
  RawClient someone(fixture.port());
  const std::string pods = "/api/v1/namespaces/default/pods/", token = "Authorization: Bearer t0ken\r\n";
  EXPECT_EQ(someone.get(pods + "p:80/proxy", token).status, 301);
  RawAnswer other = someone.get(pods + "p/proxy", token);
  EXPECT_EQ(other.status, 403);
  EXPECT_EQ(message(other),
            "pods \"p\" is forbidden: User \"someone\" cannot get resource \"pods/proxy\" in API group \"\" in the namespace "
            "\"default\"");
  EXPECT_EQ(someone.ask("POST", pods + "p:80/proxy", "x", token).status, 403);
  EXPECT_EQ(someone.ask("OPTIONS", pods + "p:80/proxy", "", token).status, 403);
}

TEST_F(ProxyServe, a_node_agents_paths_are_answered_here) {
  create(kNode, R"({"metadata":{"name":"test-node"}})");
  create(kPod, R"({"metadata":{"name":"here"},"spec":{"nodeName":"test-node","containers":[{"name":"a","image":"i"}]}})");
  const std::string node = "/api/v1/nodes/test-node/proxy";
  EXPECT_EQ(client.get(node).status, 301);
  RawAnswer health = client.get(node + "/healthz");
  EXPECT_EQ(health.status, 200);
  EXPECT_EQ(health.body, "ok");
  EXPECT_EQ(client.get(node + "/healthz/ping").body, "ok");
  RawAnswer pods = client.get("/api/v1/nodes/https:test-node:10250/proxy/pods");
  EXPECT_EQ(get_string(pods.json(), "kind"), "PodList");
  ASSERT_EQ(get_array(pods.json(), "items").size(), 1u);
  EXPECT_EQ(get_string(get_array(pods.json(), "items")[0], "metadata.name"), "here");
  EXPECT_NE(client.get(node + "/metrics").body.find("apiserver_request_total"), std::string::npos);
  for (const char* path : {"/stats/summary", "/configz", "/logsx", "/"}) {
    RawAnswer absent = client.get(node + path);
    EXPECT_EQ(absent.status, 404) << path;
    EXPECT_EQ(message(absent), "the node agent of this server does not serve \"" + std::string(path) + "\"");
  }
  EXPECT_EQ(client.ask("POST", node + "/pods", "x").status, 405);
  EXPECT_EQ(client.get("/api/v1/nodes/none/proxy/healthz").status, 404);
}

class SystemLogs : public ProxyServe {
 protected:
  SystemLogs() {
    create(kNode, R"({"metadata":{"name":"test-node"}})");
    write("syslog", "a line\n");
    write("pods/a b/0.log", std::string(200000, 'x') + "\n");
    write("app.gz", "\x1f\x8b\x08...");
    write("wtmp", std::string("\0\0\1", 3));
    write("empty", "");
    write("../secret", "root's");
    std::filesystem::create_symlink(root() + "/pods/a b/0.log", root() + "/pods/inside");  // like the links in
                                                                                           // /var/log/containers
    std::filesystem::create_symlink("../secret", root() + "/outside");
    std::filesystem::create_symlink(fixture.directory, root() + "/up");
    EXPECT_EQ(::mkfifo((root() + "/fifo").c_str(), 0600), 0);
  }
  std::string root() const { return fixture.directory + "/log"; }
  void write(const std::string& name, std::string_view text) {
    std::filesystem::create_directories((root() + "/" + name).substr(0, (root() + "/" + name).rfind('/')));
    MUST(sys::replace_file(root() + "/" + name, text, 0600, sys::Durability::volatile_));
  }
  RawAnswer get(const std::string& path) { return client.get("/api/v1/nodes/test-node/proxy/logs" + path); }
};

TEST_F(SystemLogs, lists_a_directory_as_a_page) {
  RawAnswer page = get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.header("Content-Type"), "text/html; charset=utf-8");
  EXPECT_NE(page.body.find("<a href=\"syslog\">syslog</a>\n"), page.body.npos) << page.body;
  EXPECT_NE(page.body.find("<a href=\"pods/\">pods/</a>\n"), page.body.npos);
  EXPECT_NE(get("/pods/").body.find("<a href=\"a%20b/\">a b/</a>"), page.body.npos);
  write("<b>", "");
  EXPECT_NE(get("/").body.find("<a href=\"%3Cb%3E\">&lt;b&gt;</a>"), page.body.npos);
}

TEST_F(SystemLogs, asks_for_the_slash_of_a_directory) {
  EXPECT_EQ(get("").header("Location"), "/api/v1/nodes/test-node/proxy/logs/");
  EXPECT_EQ(get("/pods?a=b").header("Location"), "/api/v1/nodes/test-node/proxy/logs/pods/?a=b");
}

TEST_F(SystemLogs, sends_a_file_whole) {
  RawAnswer file = get("/syslog");
  EXPECT_EQ(file.body, "a line\n");
  EXPECT_EQ(file.header("Content-Type"), "text/plain; charset=utf-8");
  EXPECT_EQ(file.header("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(get("/pods/a%20b/0.log").body.size(), 200001u);
  EXPECT_EQ(get("/empty").body, "");
  EXPECT_EQ(get("/empty").status, 200);
  EXPECT_EQ(get("/app.gz").header("Content-Type"), "application/gzip");
  EXPECT_EQ(get("/wtmp").header("Content-Type"), "application/octet-stream");
  client.send("HEAD /api/v1/nodes/test-node/proxy/logs/syslog HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.receive_head().status, 200);
  EXPECT_EQ(get("/syslog").status, 200);  // on the same connection
}

TEST_F(SystemLogs, follows_links_but_not_out) {
  EXPECT_EQ(get("/pods/inside").body.size(), 200001u);
  for (const char* path : {"/outside", "/up/", "/up/secret", "/../secret", "/pods/../../secret", "/%2e%2e/secret", "/..%2fsecret",
                           "/fifo", "/none", "/syslog/", "/syslog%00x"}) {
    RawAnswer answer = get(path);
    EXPECT_EQ(answer.status, 404) << path;
    EXPECT_EQ(answer.body.find("root's"), answer.body.npos) << path;
  }
  EXPECT_EQ(client.ask("POST", "/api/v1/nodes/test-node/proxy/logs/syslog", "x").status, 405);
}

TEST_F(ProxyServe, is_listed_as_kubernetes_lists_it) {
  std::string core = client.get("/api/v1").body;
  for (const std::string kind : {"Node", "Pod", "Service"}) {
    std::string entry = "{\"name\":\"" + to_lower(kind) +
                        "s/proxy\",\"singularName\":\"\",\"namespaced\":" + (kind == "Node" ? "false" : "true") + ",\"kind\":\"" +
                        kind + "ProxyOptions\",\"verbs\":[\"create\",\"delete\",\"get\",\"patch\",\"update\"]}";
    EXPECT_NE(core.find(entry), core.npos) << entry;
  }
}

}  // namespace
}  // namespace coracle::api
