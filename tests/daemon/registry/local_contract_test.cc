// SPDX-License-Identifier: Apache-2.0
// The local Client, without HTTP, fulfils the contract of every Client.
#include "tests/daemon/registry/registry_fixture.h"
#include "tests/store/client/client_contract.h"

namespace coracle::registry {
namespace {

class LocalClientFixture : public ClientFixture {
 public:
  Client& client() override { return fixture_.client(); }
  bool forget_past() override {
    fixture_.engine->compact(fixture_.engine->revision());
    return true;
  }

 private:
  RegistryFixture fixture_;
};

}  // namespace
}  // namespace coracle::registry

namespace coracle {
INSTANTIATE_TEST_SUITE_P(Local, ClientContract,
                         testing::Values(ClientMaker{"local", [] { return std::make_unique<registry::LocalClientFixture>(); }}));
}  // namespace coracle
