// SPDX-License-Identifier: Apache-2.0
// The fake client and the remote client fulfil the contract.
#include "store/client/remote.h"
#include "tests/store/client/client_contract.h"
#include "tests/store/client/fake_server.h"

namespace coracle {
namespace {

class FakeClientFixture : public ClientFixture {
 public:
  Client& client() override { return client_; }
  bool forget_past() override { return client_.forget_past(), true; }

 private:
  FakeClient client_;
};

INSTANTIATE_TEST_SUITE_P(Fake, ClientContract,
                         testing::Values(ClientMaker{"fake", [] { return std::make_unique<FakeClientFixture>(); }}));

class RemoteClientFixture : public ClientFixture {
 public:
  Client& client() override { return *remote_; }
  bool forget_past() override { return server_.objects().forget_past(), true; }

 private:
  FakeServer server_;
  std::unique_ptr<Remote> remote_ = Remote::make(ServerAccess{server_.url()}).value_or(nullptr);
};

INSTANTIATE_TEST_SUITE_P(Remote, ClientContract,
                         testing::Values(ClientMaker{"remote", [] { return std::make_unique<RemoteClientFixture>(); }}));

}  // namespace
}  // namespace coracle
