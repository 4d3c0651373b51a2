// SPDX-License-Identifier: Apache-2.0
// The remote client against the real server over TLS, with registry, engine and disk. It fulfils the contract of every Client,
// and follows its kubeconfig for trust and credentials.
#include "store/client/kubeconfig.h"
#include "store/client/remote.h"
#include "tests/daemon/api/server_fixture.h"
#include "tests/store/client/client_contract.h"

namespace coracle::api {
namespace {

ServerAccess written_access(const ServerFixture& fixture) {
  return MUST(read_kubeconfig(fixture.directory + "/admin.kubeconfig"));
}
std::unique_ptr<Remote> remote_of(ServerAccess access) { return MUST(Remote::make(std::move(access))); }

class ServedClientFixture : public ClientFixture {
 public:
  Client& client() override { return *remote_; }
  bool forget_past() override {
    fixture_.engine->compact(fixture_.engine->revision());
    return true;
  }

 private:
  ServerFixture fixture_;
  std::unique_ptr<Remote> remote_ = remote_of(written_access(fixture_));
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

}  // namespace
}  // namespace coracle::api

namespace coracle {
INSTANTIATE_TEST_SUITE_P(Served, ClientContract,
                         testing::Values(ClientMaker{"served", [] { return std::make_unique<api::ServedClientFixture>(); }}));
}  // namespace coracle
