// SPDX-License-Identifier: Apache-2.0
// Behaviour of the kubeconfig reader.
#include "store/client/kubeconfig.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "runtime/base/text.h"

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

TEST(Kubeconfig, says_what_is_wrong_and_where) {
  struct Row {
    std::string text;
    KubeconfigChoice choice;
    const char* want;
  };
  for (const Row& row :
       {Row{"", {}, "empty"}, Row{"a: [", {}, "line"}, Row{config(), {.context = "no"}, "context \"no\" does not exist"},
        Row{config("exec: {command: x}"), {}, "exec"}, Row{config("client-key-data: '*'"), {}, "client-key-data"},
        Row{config("client-key: /no/such/file"), {}, "/no/such/file"}, Row{config(), {.user = "nobody"}, "user \"nobody\""}}) {
    auto access = parse_kubeconfig(row.text, "the-file", row.choice);
    ASSERT_FALSE(access) << row.text;
    EXPECT_NE(access.error().text().find(row.want), std::string::npos) << access.error().text();
    EXPECT_NE(access.error().text().find("the-file"), std::string::npos) << access.error().text();
  }
}

TEST(Kubeconfig, a_mistyped_KUBECONFIG_means_no_other_cluster) {
  ::setenv("KUBECONFIG", "/none/a:/none/b", 1);
  auto found = find_kubeconfigs("");
  ASSERT_FALSE(found) << found->front();
  EXPECT_NE(found.error().text().find("KUBECONFIG names /none/a:/none/b"), std::string::npos) << found.error().text();
  EXPECT_TRUE(find_kubeconfigs("/none/c")) << "what is given counts, and reading it will say that it is not there";
  ::unsetenv("KUBECONFIG");
}

TEST(Kubeconfig, hides_secrets_where_it_is_shown) {
  std::string shown = redacted_kubeconfig(config("token: verysecret, client-key-data: a2V5"));
  EXPECT_EQ(shown.find("verysecret"), std::string::npos);
  EXPECT_EQ(shown.find("a2V5"), std::string::npos);
  EXPECT_NE(shown.find("REDACTED"), std::string::npos);
}

}  // namespace
}  // namespace coracle
