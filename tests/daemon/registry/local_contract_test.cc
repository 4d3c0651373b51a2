// SPDX-License-Identifier: Apache-2.0
// The Client without HTTP keeps the contract that every Client keeps.
#include "tests/daemon/registry/world.h"
#include "tests/store/client/client_contract.h"

namespace coracle::registry {
namespace {

class LocalWorld : public ClientWorld {
 public:
  Client& client() override { return world_.client(); }
  bool forget_past() override {
    world_.engine->compact(world_.engine->revision());
    return true;
  }

 private:
  World world_;
};

}  // namespace
}  // namespace coracle::registry

namespace coracle {
INSTANTIATE_TEST_SUITE_P(Local, ClientContract,
                         testing::Values(ClientMaker{"local", [] { return std::make_unique<registry::LocalWorld>(); }}));
}  // namespace coracle
