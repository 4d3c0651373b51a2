// SPDX-License-Identifier: Apache-2.0
// The remote client against the real server over TLS and over its local socket, with registry, engine and disk. It fulfils the
// contract of every Client, and follows its kubeconfig for trust and credentials.
#include <sys/stat.h>

#include "store/client/kubeconfig.h"
#include "store/client/remote.h"
#include "tests/daemon/api/server_fixture.h"
#include "tests/store/client/client_contract.h"

namespace coracle::api {
namespace {

std::string kubeconfig_of(const ServerFixture& fixture) { return fixture.directory + "/admin.kubeconfig"; }
ServerAccess local_access(const ServerFixture& fixture) { return MUST(read_kubeconfig(kubeconfig_of(fixture))); }
ServerAccess written_access(const ServerFixture& fixture) {
  ServerAccess access = local_access(fixture);
  access.local_socket.clear();
  return access;
}
std::unique_ptr<Remote> remote_of(ServerAccess access) { return MUST(Remote::make(std::move(access))); }

class ServedClientFixture : public ClientFixture {
 public:
  explicit ServedClientFixture(ServerAccess (*access)(const ServerFixture&)) : remote_(remote_of(access(fixture_))) {}
  Client& client() override { return *remote_; }
  bool forget_past() override {
    fixture_.engine->compact(fixture_.engine->revision());
    return true;
  }

 private:
  ServerFixture fixture_;
  std::unique_ptr<Remote> remote_;
};

class RemoteTrust : public testing::Test {
 protected:
  Error refused(ServerAccess access) {
    auto remote = remote_of(std::move(access));
    auto answer = remote->list(kConfigMap, {.ns = "default"});
    if (answer) return Error(Code::internal, "was let in");
    return answer.error();
  }
  ServerFixture fixture;
  ServerAccess admin = written_access(fixture);
};

TEST_F(RemoteTrust, the_kubeconfig_that_the_server_writes_is_let_in) {
  auto remote = remote_of(admin);
  EXPECT_TRUE(remote->list(kConfigMap, {.ns = "default"}));
}

TEST_F(RemoteTrust, a_server_of_another_authority_is_not_spoken_to) {
  ServerFixture other;
  admin.ca_pem = other.server->ca_certificate();
  Error error = refused(admin);
  EXPECT_EQ(error.code(), Code::unavailable);
  EXPECT_NE(error.text().find("certificate"), std::string::npos) << error.text();
}

TEST_F(RemoteTrust, a_client_of_another_authority_is_nobody) {
  ServerFixture other;
  ServerAccess stranger = written_access(other);
  admin.client_certificate_pem = stranger.client_certificate_pem;
  admin.client_key_pem = stranger.client_key_pem;
  EXPECT_EQ(refused(admin).code(), Code::unauthorized);
}

TEST_F(RemoteTrust, without_credentials_nothing_is_seen) {
  admin.client_certificate_pem = admin.client_key_pem = "";
  EXPECT_EQ(refused(admin).code(), Code::forbidden);  // as system:anonymous
  admin.token = "guessed";
  EXPECT_EQ(refused(admin).code(), Code::unauthorized);
}

class LocalSocketTest : public testing::Test {
 protected:
  // Whom the server takes the requests for.
  std::string user_of(const ServerAccess& access) {
    auto http = MUST(Http::make(access));
    auto answer = MUST(http->send({.method = "POST",
                                   .path = "/apis/authentication.k8s.io/v1/selfsubjectreviews",
                                   .body = R"({"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"})"}));
    json::value review = MUST(parse_json(answer.body));
    return to_text(*find(review, "status.userInfo"));
  }
  ServerFixture fixture;
  ServerAccess admin = local_access(fixture);
};

TEST_F(LocalSocketTest, is_named_by_the_kubeconfig_and_belongs_to_root_alone) {
  ASSERT_FALSE(admin.local_socket.empty());
  struct stat socket {};
  ASSERT_EQ(::stat(admin.local_socket.c_str(), &socket), 0);
  EXPECT_TRUE(S_ISSOCK(socket.st_mode));
  EXPECT_EQ(socket.st_mode & 0777, 0600u);
}

TEST_F(LocalSocketTest, a_request_is_the_same_users_as_with_the_certificate) {
  EXPECT_EQ(user_of(admin), user_of(written_access(fixture)));
  EXPECT_NE(user_of(admin).find("kubernetes-admin"), std::string::npos);
}

TEST_F(LocalSocketTest, is_used_although_the_network_is_not) {
  admin.client_key_pem = "none";  // with which there is no TLS
  EXPECT_NE(user_of(admin).find("kubernetes-admin"), std::string::npos);
}

// The daemon is there, and answers whoever comes by the socket as the administrator.
TEST_F(LocalSocketTest, is_not_used_for_another_user_or_server) {
  const ServerAccess written = admin;
  admin.client_key_pem = "none";  // with which there is no TLS
  const ServerAccess local_only = admin;
  auto fails = [&](ServerAccess access) { return !MUST(Http::make(std::move(access)))->send({.path = "/version"}); };
  ASSERT_FALSE(fails(local_only));
  for (const auto& change : std::vector<std::function<void(ServerAccess&)>>{
           [](ServerAccess& as) { as.server += "1"; }, [](ServerAccess& as) { as.ca_pem += "\n"; },
           [](ServerAccess& as) { as.client_certificate_pem += "\n"; }, [](ServerAccess& as) { as.token = "t0ken"; },
           [](ServerAccess& as) { as.username = "u"; }, [](ServerAccess& as) { as.tls_server_name = "localhost"; },
           [](ServerAccess& as) { as.proxy_url = "http://127.0.0.1:1"; }, [](ServerAccess& as) { as.exec.emplace(); },
           [](ServerAccess& as) { as.insecure = true, as.ca_pem.clear(); },
           [](ServerAccess& as) { as.local_socket.insert(0, "."); }}) {
    ServerAccess changed = local_only;
    change(changed);
    EXPECT_TRUE(fails(changed));
  }
  ServerAccess someone = written;
  someone.token = "t0ken", someone.client_certificate_pem = someone.client_key_pem = "";
  EXPECT_NE(user_of(someone).find("someone"), std::string::npos);
}

TEST_F(LocalSocketTest, of_another_machine_is_not_used) {
  ServerFixture other;
  admin.local_socket = local_access(other).local_socket;
  admin.client_key_pem = "none";
  EXPECT_FALSE(MUST(Http::make(admin))->send({.path = "/version"}));
}

TEST_F(LocalSocketTest, a_path_is_no_way_to_write_headers) {
  auto http = MUST(Http::make(admin));
  for (const char* path : {"/version HTTP/1.1\r\nImpersonate-User: jane", "/a b", "version"})
    EXPECT_FALSE(http->send({.path = path})) << path;
  EXPECT_TRUE(http->send({.path = "/version"}));
}

TEST_F(LocalSocketTest, a_request_ends_at_its_timeout) {
  auto answer = MUST(Http::make(admin))
                    ->send({.path = "/api/v1/namespaces/default/configmaps",
                            .query = {{"watch", "1"}},
                            .timeout = std::chrono::milliseconds(100)});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), Code::timeout);
  EXPECT_NE(answer.error().text().find("did not answer in time"), std::string::npos) << answer.error().text();
}

TEST_F(LocalSocketTest, impersonation_holds_there_too) {
  admin.impersonate.user = "jane";
  EXPECT_NE(user_of(admin).find("\"jane\""), std::string::npos);
}

TEST_F(LocalSocketTest, without_it_the_network_is_used) {
  const std::string identity = MUST(sys::read_file(admin.local_socket + ".identity"));
  for (const std::string& directory :
       {fixture.directory + "/not-there", "/" + std::string(200, 'x'), fixture.directory + "/files"}) {
    admin.local_socket = directory + "/api.sock";
    EXPECT_NE(user_of(admin).find("kubernetes-admin"), std::string::npos) << directory;
    std::filesystem::create_directory(fixture.directory + "/files");
    std::ofstream(fixture.directory + "/files/api.sock.identity") << identity;
    std::ofstream(fixture.directory + "/files/api.sock");
  }
}

TEST_F(LocalSocketTest, is_gone_with_the_server) {
  fixture.server->stop();
  EXPECT_FALSE(std::filesystem::exists(admin.local_socket));
}

TEST_F(LocalSocketTest, one_that_a_killed_server_left_is_replaced) {
  fixture.server->stop();
  std::ofstream(admin.local_socket) << "left";
  Config config;
  config.pki_dir = fixture.directory + "/pki", config.listen = {{"127.0.0.1", 0}}, config.node_name = "test-node";
  config.kubeconfig_path = kubeconfig_of(fixture), config.local_socket_dir = fixture.directory;
  fixture.server = std::make_unique<Server>(config, *fixture.registry, fixture.streams, fixture.images, fixture.volumes);
  MUST(fixture.server->start());
  EXPECT_NE(user_of(local_access(fixture)).find("kubernetes-admin"), std::string::npos);
}

TEST_F(LocalSocketTest, a_server_that_cannot_make_it_serves_the_network) {
  Config config;
  config.pki_dir = fixture.directory + "/pki", config.listen = {{"127.0.0.1", 0}}, config.node_name = "test-node";
  config.kubeconfig_path = kubeconfig_of(fixture), config.local_socket_dir = fixture.directory + "/" + std::string(120, 'x');
  fixture.server->stop();
  fixture.server = std::make_unique<Server>(config, *fixture.registry, fixture.streams, fixture.images, fixture.volumes);
  MUST(fixture.server->start());
  ServerAccess access = local_access(fixture);
  EXPECT_EQ(access.local_socket, "");
  EXPECT_NE(user_of(access).find("kubernetes-admin"), std::string::npos);
}

}  // namespace
}  // namespace coracle::api

namespace coracle {
INSTANTIATE_TEST_SUITE_P(
    Served, ClientContract,
    testing::Values(ClientMaker{"served", [] { return std::make_unique<api::ServedClientFixture>(api::written_access); }},
                    ClientMaker{"served_locally", [] { return std::make_unique<api::ServedClientFixture>(api::local_access); }}));
}  // namespace coracle
