// SPDX-License-Identifier: Apache-2.0
// Credential plugins: what they get, what they print, when they run.
#include "store/client/exec_credential.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace coracle {
namespace {

constexpr const char* kV1 = "client.authentication.k8s.io/v1";

std::string printed(const std::string& status) {
  return std::string(R"({"kind":"ExecCredential","apiVersion":")") + kV1 + R"(","status":)" + status + "}";
}

TEST(ExecCredentialText, is_read) {
  auto credential = parse_exec_credential(printed(R"({"token":"t","expirationTimestamp":"2030-01-02T03:04:05Z"})"), kV1);
  ASSERT_TRUE(credential) << credential.error().text();
  EXPECT_EQ(credential->token, "t");
  EXPECT_EQ(format_time(*credential->expires), "2030-01-02T03:04:05Z");
  credential = parse_exec_credential(printed(R"({"clientCertificateData":"c","clientKeyData":"k"})"), kV1);
  ASSERT_TRUE(credential);
  EXPECT_EQ(credential->client_certificate_pem + credential->client_key_pem, "ck");
  // The kind is taken for granted, and YAML is understood.
  credential = parse_exec_credential(std::string(R"({"apiVersion":")") + kV1 + R"(","status":{"token":"t"}})", kV1);
  ASSERT_TRUE(credential) << credential.error().text();
  EXPECT_EQ(credential->token, "t");
  credential = parse_exec_credential(std::string("apiVersion: ") + kV1 + "\nstatus:\n  token: u\n", kV1);
  ASSERT_TRUE(credential) << credential.error().text();
  EXPECT_EQ(credential->token, "u");
}

TEST(ExecCredentialText, says_who_gets_standard_input) {
  using enum ExecPlugin::Interactive;
  for (bool terminal : {false, true})
    for (bool taken : {false, true}) {
      EXPECT_FALSE(*is_interactive(never, terminal, taken));
      EXPECT_EQ(*is_interactive(if_available, terminal, taken), terminal && !taken);
      EXPECT_EQ(bool(is_interactive(always, terminal, taken)), terminal && !taken);
    }
  EXPECT_TRUE(*is_interactive(always, true, false));
  EXPECT_TRUE(is_interactive(always, false, true).error().text().ends_with("standard input is not a terminal"));
  EXPECT_TRUE(is_interactive(always, true, true)
                  .error()
                  .text()
                  .ends_with("exec plugin cannot support interactive mode: standard input is unavailable: "
                             "used by stdin resource manifest reader"));
}

TEST(ExecCredentialText, is_refused_with_words) {
  struct Row {
    std::string text;
    const char* want;
  };
  for (const Row& row : std::vector<Row>{
           {"not json", "decoding stdout: couldn't get version/kind; json parse error: "},
           {"one\ntwo\n", "decoding stdout: couldn't get version/kind; json parse error: "},
           {"{", "decoding stdout: couldn't get version/kind; json parse error: "},
           {R"({"kind":"Pod"})", "kind must be ExecCredential"},
           {"{}",
            "exec plugin is configured to use API version client.authentication.k8s.io/v1, plugin returned version "
            "client.authentication.k8s.io/__internal"},
           {"", "plugin returned version client.authentication.k8s.io/__internal"},
           {R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1"})",
            "exec plugin is configured to use API version client.authentication.k8s.io/v1, plugin returned version "
            "client.authentication.k8s.io/v1beta1"},
           {printed("null"), "exec plugin didn't return a status field"},
           {printed("{}"), "exec plugin didn't return a token or cert/key pair"},
           {printed(R"({"clientKeyData":"k"})"), "exec plugin returned only certificate or key, not both"},
           {printed(R"({"token":"t","expirationTimestamp":"soon"})"), "expirationTimestamp"},
       }) {
    auto credential = parse_exec_credential(row.text, kV1);
    ASSERT_FALSE(credential) << row.text;
    EXPECT_NE(credential.error().text().find(row.want), std::string::npos) << credential.error().text();
  }
}

TEST(ExecCredentialText, says_what_the_plugin_is_asked) {
  ExecPlugin plugin{.api_version = kV1};
  EXPECT_EQ(exec_info(plugin, false),
            R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false}})");
  plugin.cluster = json::object{{"server", "https://x"}};
  EXPECT_NE(exec_info(plugin, true).find(R"("spec":{"cluster":{"server":"https://x"},"interactive":true})"), std::string::npos);
}

class ExecCredentialTest : public testing::Test {
 protected:
  ExecCredentialTest() {
    directory_ = testing::TempDir() + "/exec-credential-XXXXXX";
    EXPECT_TRUE(::mkdtemp(directory_.data()));
  }
  ~ExecCredentialTest() override { std::filesystem::remove_all(directory_); }
  // A plugin that notes each of its runs, and then does what `script` says.
  ExecPlugin plugin(const std::string& script) {
    std::string path = directory_ + "/plugin";
    std::ofstream(path) << "#!/bin/sh\necho run >>" << directory_ << "/runs\n" << script << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return {.api_version = kV1, .command = path, .interactive = ExecPlugin::Interactive::never};
  }
  size_t runs() const {
    std::ifstream file(directory_ + "/runs");
    size_t count = 0;
    for (std::string line; std::getline(file, line);) ++count;
    return count;
  }
  std::string directory_;
};

TEST_F(ExecCredentialTest, runs_once_while_it_is_good) {
  ExecCredential credential(plugin("echo '" + printed(R"({"token":"t"})") + "'"));
  auto first = credential.get();
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_EQ((*first)->token, "t");
  EXPECT_TRUE(credential.get());
  EXPECT_EQ(runs(), 1u);
  credential.reject(*first);
  EXPECT_TRUE(credential.get());
  EXPECT_EQ(runs(), 2u) << "the server refused it";
  credential.reject(*first);
  EXPECT_TRUE(credential.get());
  EXPECT_EQ(runs(), 2u) << "another one was made meanwhile";
}

TEST_F(ExecCredentialTest, runs_again_when_it_expired) {
  ExecCredential credential(plugin("echo '" + printed(R"({"token":"t","expirationTimestamp":"2001-01-01T00:00:00Z"})") + "'"));
  EXPECT_TRUE(credential.get());
  EXPECT_TRUE(credential.get());
  EXPECT_EQ(runs(), 2u);
}

TEST_F(ExecCredentialTest, gives_arguments_and_environment) {
  ExecPlugin wanted = plugin(R"(case "$KUBERNETES_EXEC_INFO" in *'"interactive":false'*) ;; *) exit 7;; esac
printf '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"%s-%s-%s"}}' "$1" "$WHO" "$HOME")");
  wanted.args = {"one"};
  wanted.env = {{"WHO", "me"}, {"HOME", "/nowhere"}};
  ExecCredential credential(wanted);
  auto made = credential.get();
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_EQ((*made)->token, "one-me-/nowhere");
}

TEST_F(ExecCredentialTest, says_why_there_is_none) {
  ExecPlugin absent{.api_version = kV1, .command = "no-such-plugin", .install_hint = "apt install it"};
  auto made = ExecCredential(absent).get();
  ASSERT_FALSE(made);
  EXPECT_EQ(
      made.error().text().find("Unable to connect to the server: getting credentials: exec: executable no-such-plugin not found"),
      0u);
  EXPECT_TRUE(made.error().text().ends_with("\n\napt install it"));
  made = ExecCredential(plugin("exit 3")).get();
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().text().find("/plugin failed with exit code 3"), std::string::npos) << made.error().text();
  ExecPlugin old = plugin("true");
  old.api_version = "client.authentication.k8s.io/v1alpha1";
  EXPECT_EQ(ExecCredential(old).get().error().text(),
            "exec plugin: invalid apiVersion \"client.authentication.k8s.io/v1alpha1\"");
}

}  // namespace
}  // namespace coracle
