// SPDX-License-Identifier: Apache-2.0
// The kubeconfig reader.
#include "store/client/kubeconfig.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "runtime/base/text.h"
#include "store/client/in_cluster.h"

namespace coracle {
namespace {

std::string config(std::string_view user = "client-certificate-data: Y2VydA==, client-key-data: a2V5") {
  return "apiVersion: v1\nkind: Config\ncurrent-context: here\ncontexts:\n- {name: here, context: {cluster: c, user: u, "
         "namespace: ns}}\n"
         "- {name: there, context: {cluster: d, user: u}}\nclusters:\n- {name: c, cluster: {server: 'https://127.0.0.1:6443/', "
         "certificate-authority-data: Y2E=}}\n"
         "- {name: d, cluster: {server: 'https://other:1', insecure-skip-tls-verify: true}}\nusers:\n- {name: u, user: {" +
         std::string(user) + "}}\n";
}

TEST(Kubeconfig, reads_the_current_context) {
  auto access = parse_kubeconfig(config(), "k", {});
  ASSERT_TRUE(access) << access.error().text();
  EXPECT_EQ(access->server, "https://127.0.0.1:6443");
  EXPECT_EQ(access->ca_pem, "ca");
  EXPECT_EQ(access->client_certificate_pem, "cert");
  EXPECT_EQ(access->client_key_pem, "key");
  EXPECT_EQ(access->ns, "ns");
}

TEST(Kubeconfig, the_command_line_overrides_it) {
  auto access = parse_kubeconfig(config("token: t"), "k", {.context = "there", .cluster = "", .user = "", .ns = "x"});
  ASSERT_TRUE(access) << access.error().text();
  EXPECT_EQ(access->server, "https://other:1");
  EXPECT_TRUE(access->insecure);
  EXPECT_EQ(access->token, "t");
  EXPECT_EQ(access->ns, "x");
}

TEST(Kubeconfig, of_a_key_that_stands_twice_the_last_counts) {
  auto access = parse_kubeconfig(config("token: t") + "\nusers: [{name: other, user: {token: o}}]\n", "k", {.user = "other"});
  ASSERT_TRUE(access) << access.error().text();
  EXPECT_EQ(access->token, "o");
}

TEST(Kubeconfig, says_what_is_wrong) {
  struct Row {
    std::string text;
    KubeconfigChoice choice;
    const char* want;
  };
  const std::string plugin = "exec: {command: x, apiVersion: client.authentication.k8s.io/v1";
  for (const Row& row : std::vector<Row>{
           {"", {}, "the-file: names no clusters"},
           {"a: [", {}, "error loading config file \"the-file\": "},
           {"words", {}, "error loading config file \"the-file\": clusters, contexts and users are expected"},
           {"kind: Pod", {}, "error loading config file \"the-file\": no kind \"Pod\" is registered for version \"v1\""},
           {"apiVersion: v2", {}, "error loading config file \"the-file\": no kind \"Config\" is registered for version \"v2\""},
           {"clusters: x", {}, "error loading config file \"the-file\": clusters: must be a list"},
           {"clusters: [x]", {}, "error loading config file \"the-file\": clusters[0]: must be an object"},
           {"users: [{name: a}, {name: b, user: x}]",
            {},
            "error loading config file \"the-file\": users[1].user: must be an object"},
           {"users: [{name: a}, {name: a}]", {}, "error loading config file \"the-file\": users: duplicate name \"a\""},
           {config(), {.context = "no"}, "Error in configuration: context was not found for specified context: no"},
           {config(), {.cluster = "no"}, "no server found for cluster \"no\""},
           {config(), {.cluster = "no", .server = "https://x"}, "cluster \"no\" does not exist"},
           {config(), {.user = "nobody"}, "auth info \"nobody\" does not exist"},
           {config("client-key-data: '*', client-certificate-data: Y2VydA=="), {}, "the-file: client-key-data"},
           {config("client-certificate: /no/such/file, client-key-data: a2V5"),
            {},
            "unable to read client-cert /no/such/file for u due to open /no/such/file: no such file"},
           {config("client-certificate-data: Y2VydA=="), {}, "client-key-data or client-key must be specified for u"},
           {config("token: a, username: b"),
            {},
            "more than one authentication method found for u; found [token basicAuth], only one"},
           {config("as-groups: [a]"), {}, "requesting uid, groups or user-extra for u without impersonating a user"},
           {config(plugin + "}"), {}, "interactiveMode must be specified for u to use exec authentication plugin"},
           {config(plugin + ", interactiveMode: Maybe}"), {}, "invalid interactiveMode for u: \"Maybe\""},
           {config("exec: {}"),
            {},
            "Error in configuration: \n* command must be specified for u to use exec authentication plugin\n* apiVersion must "
            "be "},
           {config("auth-provider: {name: gcp}"), {}, "The gcp auth plugin has been removed."},
           {config("auth-provider: {name: other}"), {}, "no Auth Provider found for name \"other\""},
           {config("tokenFile: /no/token"), {}, "the-file: tokenFile"},
       }) {
    auto access = parse_kubeconfig(row.text, "the-file", row.choice);
    ASSERT_FALSE(access) << row.text;
    EXPECT_EQ(access.error().text().substr(0, std::string(row.want).size()), row.want) << row.text;
  }
}

TEST(Kubeconfig, flags_change_the_chosen_cluster_and_user) {
  KubeconfigChoice choice{.server = "https://else:2", .insecure = true};
  choice.token = "mine", choice.impersonate = {"jane", "7", {"devs", "ops"}, {{"scope", "a"}, {"scope", "b"}}};
  auto access = parse_kubeconfig(config("token: t, tokenFile: /no/token"), "k", choice);
  ASSERT_TRUE(access) << access.error().text();
  EXPECT_EQ(access->server, "https://else:2");
  EXPECT_TRUE(access->insecure);
  EXPECT_EQ(access->ca_pem, "") << "who trusts anybody needs no authority";
  EXPECT_EQ(access->token, "mine") << "a token from the command line goes before a file of tokens";
  EXPECT_EQ(access->impersonate.user, "jane");
  EXPECT_EQ(access->impersonate.groups, (std::vector<std::string>{"devs", "ops"}));
  EXPECT_EQ(access->impersonate.extra.size(), 2u);
}

TEST(Kubeconfig, another_server_has_another_name_in_its_certificate) {
  std::string text =
      "current-context: k\ncontexts: [{name: k, context: {cluster: c}}]\n"
      "clusters: [{name: c, cluster: {server: 'https://a', tls-server-name: name, proxy-url: 'socks5://p:1'}}]\n";
  EXPECT_EQ(parse_kubeconfig(text, "k", {})->tls_server_name, "name");
  EXPECT_EQ(parse_kubeconfig(text, "k", {})->proxy_url, "socks5://p:1");
  EXPECT_EQ(parse_kubeconfig(text, "k", {.server = "https://b"})->tls_server_name, "");
  EXPECT_EQ(parse_kubeconfig(text, "k", {.server = "https://b", .tls_server_name = "m"})->tls_server_name, "m");
  auto refused = parse_kubeconfig(
      "current-context: k\ncontexts: [{name: k, context: {cluster: c}}]\n"
      "clusters: [{name: c, cluster: {server: 'https://a', proxy-url: 'ftp://p'}}]\n",
      "k", {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("invalid 'proxy-url' \"ftp://p\" for cluster \"c\": unsupported scheme \"ftp\""),
            std::string::npos)
      << refused.error().text();
}

TEST(Kubeconfig, a_server_without_a_file) {
  auto plain = read_kubeconfigs({}, {.server = "localhost:8080"});
  ASSERT_TRUE(plain) << plain.error().text();
  EXPECT_EQ(plain->server, "http://localhost:8080");
  EXPECT_EQ(read_kubeconfigs({}, {.server = "host:1", .insecure = true})->server, "https://host:1");
  KubeconfigChoice choice{.server = "http://host:1"};
  choice.token = "secret";
  EXPECT_EQ(read_kubeconfigs({}, choice)->token, "") << "secrets do not go over the network in the clear";
}

TEST(Kubeconfig, a_pod_has_its_service_account) {
  std::string directory = testing::TempDir() + "/in-cluster-XXXXXX";
  ASSERT_TRUE(::mkdtemp(directory.data()));
  for (auto [name, text] : {std::pair{"token", "t\n"}, std::pair{"ca.crt", "CA"}, std::pair{"namespace", "shop"}})
    std::ofstream(directory + "/" + name) << text;
  ::unsetenv("KUBERNETES_SERVICE_HOST");
  EXPECT_FALSE(in_cluster_kubeconfig(directory)) << "no pod";
  ::setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1), ::setenv("KUBERNETES_SERVICE_PORT", "443", 1);
  auto config = in_cluster_kubeconfig(directory);
  ASSERT_TRUE(config);
  auto access = read_in_cluster(*config, {});
  ASSERT_TRUE(access) << access.error().text();
  EXPECT_EQ(access->server, "https://[fd00::1]:443");
  EXPECT_EQ(access->token + access->ca_pem + access->ns, "tCAshop");
  EXPECT_EQ(read_in_cluster(*config, {.ns = "other"})->ns, "other");
  EXPECT_FALSE(in_cluster_kubeconfig(directory + "/none"));
  ::unsetenv("KUBERNETES_SERVICE_HOST"), ::unsetenv("KUBERNETES_SERVICE_PORT");
  std::filesystem::remove_all(directory);
}

TEST(Kubeconfig, reads_a_plugin) {
  auto access = parse_kubeconfig(
      config(
          "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: ./bin/plugin, args: [a, b], env: [{name: X, value: "
          "y}], installHint: get it, provideClusterInfo: true, interactiveMode: Never}"),
      "/etc/k/config", {});
  ASSERT_TRUE(access) << access.error().text();
  ASSERT_TRUE(access->exec);
  EXPECT_EQ(access->exec->command, "/etc/k/bin/plugin") << "a path is one from the kubeconfig's directory";
  EXPECT_EQ(access->exec->args, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(access->exec->interactive, ExecPlugin::Interactive::never);
  EXPECT_EQ(to_text(access->exec->cluster),
            R"({"server":"https://127.0.0.1:6443","certificate-authority-data":"Y2E=","config":null})");
  access =
      parse_kubeconfig(config("exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: plugin}"), "/etc/k/config", {});
  EXPECT_EQ(access->exec->command, "plugin") << "a bare name is found by PATH";
  EXPECT_EQ(access->exec->interactive, ExecPlugin::Interactive::if_available);
}

TEST(Kubeconfig, merges_documents_as_kubectl_does) {
  json::value first = *parse_kubeconfig_document("users: [{name: red, user: {token: a}}]", "a"),
              second = *parse_kubeconfig_document(
                  "current-context: b\nusers: [{name: red, user: {username: x}}, {name: blue, user: {token: c}}]", "b");
  merge_kubeconfig(first, second);
  EXPECT_EQ(get_string(first, "current-context"), "b");
  EXPECT_EQ(to_text(*kubeconfig_entry(first, kKubeconfigLists[2], "red")), R"({"token":"a"})") << "the first file's alone";
  EXPECT_TRUE(kubeconfig_entry(first, kKubeconfigLists[2], "blue"));
}

TEST(Kubeconfig, a_mistyped_KUBECONFIG_means_no_other_cluster) {
  ::setenv("KUBECONFIG", "/none/a:/none/b", 1);
  auto found = find_kubeconfigs("");
  ASSERT_FALSE(found) << found->front();
  EXPECT_NE(found.error().text().find("KUBECONFIG names /none/a:/none/b"), std::string::npos) << found.error().text();
  EXPECT_TRUE(find_kubeconfigs("/none/c")) << "what is given counts, and reading it will say that it is not there";
  ::unsetenv("KUBECONFIG");
}

TEST(Kubeconfig, a_context_may_name_the_local_socket) {
  const std::string where = "namespace: ns";
  std::string text = config();
  text.replace(
      text.find(where), where.size(),
      where + ", extensions: [{name: other, extension: {path: /x}}, {name: coracle.io/socket, extension: {path: /run/s}}]");
  EXPECT_EQ(MUST(parse_kubeconfig(text, "k", {})).local_socket, "/run/s");
  EXPECT_EQ(MUST(parse_kubeconfig(text, "k", {.context = "there"})).local_socket, "");
  EXPECT_EQ(MUST(parse_kubeconfig(config(), "k", {})).local_socket, "");
  KubeconfigChoice as;
  as.impersonate.user = "jane", as.ns = "other", as.context = "here", as.user = "u", as.cluster = "c";
  EXPECT_EQ(MUST(parse_kubeconfig(text, "k", as)).local_socket, "/run/s");
  for (auto field : {&KubeconfigChoice::server, &KubeconfigChoice::tls_server_name, &KubeconfigChoice::token}) {
    KubeconfigChoice choice;
    choice.*field = "https://127.0.0.1:6443";
    EXPECT_EQ(MUST(parse_kubeconfig(text, "k", choice)).local_socket, "");
  }
}

}  // namespace
}  // namespace coracle
