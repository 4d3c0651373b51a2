// SPDX-License-Identifier: Apache-2.0
// Who a request is from, and the way that it takes.
#include "store/client/http.h"

#include <gtest/gtest.h>
#include <httplib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace coracle {
namespace {

class HttpTest : public testing::Test {
 protected:
  HttpTest() {
    server_.Get(".*", [this](const httplib::Request& request, httplib::Response& response) {
      seen_.push_back(request);
      if (request.get_header_value("Authorization") == "Bearer stale") response.status = 401;
      response.set_content("{}", "application/json");
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::jthread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~HttpTest() override { server_.stop(); }
  ServerAccess access() const {
    ServerAccess access;
    access.server = "http://127.0.0.1:" + std::to_string(port_);
    return access;
  }
  static int status(ServerAccess access) {
    auto http = MUST(Http::make(std::move(access)));
    auto answer = http->send({.path = "/version"});
    EXPECT_TRUE(answer) << answer.error().text();
    return answer ? answer->status : 0;
  }
  httplib::Server server_;
  std::vector<httplib::Request> seen_;
  int port_ = 0;
  std::jthread thread_;
};

TEST_F(HttpTest, says_whom_it_acts_as) {
  ServerAccess as = access();
  as.impersonate = {"jane", "42", {"devs", "ops"}, {{"example.com/Scope", "view"}, {"a b", "c"}}};
  EXPECT_EQ(status(as), 200);
  const httplib::Request& request = seen_.front();
  EXPECT_EQ(request.get_header_value("Impersonate-User"), "jane");
  EXPECT_EQ(request.get_header_value("Impersonate-Uid"), "42");
  EXPECT_EQ(request.get_header_value_count("Impersonate-Group"), 2u);
  EXPECT_EQ(request.get_header_value("Impersonate-Extra-example.com%2fScope"), "view");
  EXPECT_EQ(request.get_header_value("Impersonate-Extra-a%20b"), "c");
}

TEST_F(HttpTest, tries_again_with_a_plugins_new_token) {
  std::string directory = testing::TempDir() + "/http-test-XXXXXX";
  ASSERT_TRUE(::mkdtemp(directory.data()));
  std::string path = directory + "/plugin";
  std::ofstream(path)
      << "#!/bin/sh\ntoken=stale; [ -e " << directory << "/ran ] && token=fresh; touch " << directory << "/ran\n"
      << R"(echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"'$token'"}}')"
      << "\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  ServerAccess with_plugin = access();
  with_plugin.exec = ExecPlugin{.api_version = "client.authentication.k8s.io/v1", .command = path};
  EXPECT_EQ(status(with_plugin), 200);
  ASSERT_EQ(seen_.size(), 2u);
  EXPECT_EQ(seen_[1].get_header_value("Authorization"), "Bearer fresh");
  with_plugin.token = "mine";
  EXPECT_EQ(status(with_plugin), 200);
  EXPECT_EQ(seen_.back().get_header_value("Authorization"), "Bearer mine") << "a token that is given needs no plugin";
  with_plugin.token.clear(), with_plugin.client_certificate_pem = "certificate", with_plugin.client_key_pem = "key";
  EXPECT_EQ(status(with_plugin), 200);
  EXPECT_FALSE(seen_.back().has_header("Authorization")) << "nor does a certificate";
  std::filesystem::remove_all(directory);
}

TEST_F(HttpTest, sends_no_header_within_another) {
  ServerAccess broken = access();
  broken.impersonate.user = "jane\r\nImpersonate-Group: system:masters";
  auto http = MUST(Http::make(broken));
  auto answer = http->send({.path = "/version"});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().text(), "the value of Impersonate-User has a line break in it");
  EXPECT_TRUE(seen_.empty());
}

TEST_F(HttpTest, names_a_server_without_its_password) {
  ServerAccess with_user = access();
  with_user.server = "http://me:secret@127.0.0.1:1";  // where nobody listens
  auto http = MUST(Http::make(with_user));
  auto answer = http->send({.path = "/version"});
  ASSERT_FALSE(answer);
  EXPECT_TRUE(answer.error().text().starts_with("the connection to the server 127.0.0.1:1 was refused")) << answer.error().text();
}

TEST_F(HttpTest, goes_through_a_proxy) {
  ServerAccess behind = access();
  behind.proxy_url = behind.server;
  behind.server = "http://nowhere.invalid:1";
  EXPECT_EQ(status(behind), 200);
  EXPECT_EQ(seen_.front().get_header_value("Host"), "nowhere.invalid:1");
}

}  // namespace
}  // namespace coracle
