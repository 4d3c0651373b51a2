// SPDX-License-Identifier: Apache-2.0
// The real runtime fulfils the contract.
#include "tests/runtime/container/live_runtime.h"
#include "tests/runtime/runtime_contract.h"

namespace coracle::runtime {
namespace {

class LiveSubject : public RuntimeSubject {
 public:
  LiveSubject() { MUST(fixture_.open()); }
  Runtime& runtime() override { return *fixture_.runtime; }
  ContainerSpec sleeps(const std::string& id) override {
    // A shell as the first process of its namespace ignores SIGTERM without a handler.
    return fixture_.shell(id, "trap 'exit 143' TERM; echo ready; while true; do sleep 100 & wait $!; done");
  }
  ContainerSpec ignores_signals(const std::string& id) override {
    return fixture_.shell(id, "trap '' TERM; echo ready; while true; do sleep 100 & wait $!; done");
  }
  ContainerSpec exits(const std::string& id, int code) override { return fixture_.shell(id, "exit " + std::to_string(code)); }
  ContainerSpec has_no_program(const std::string& id) override { return fixture_.program(id, {"/no/such/program"}); }
  void wait_ready(const std::string& id) override { fixture_.wait_log(id, "ready"); }
  ExecSpec prints(const std::string& text, int code) override {
    ExecSpec spec;
    spec.args = {"/bin/sh", "-c", "printf %s '" + text + "'; exit " + std::to_string(code)};
    return spec;
  }

 private:
  LiveRuntime fixture_;
};

INSTANTIATE_TEST_SUITE_P(Live, RuntimeContract, ::testing::Values([]() -> std::unique_ptr<RuntimeSubject> {
                           if (!LiveRuntime::missing().empty()) return nullptr;
                           return std::make_unique<LiveSubject>();
                         }));

}  // namespace
}  // namespace coracle::runtime

int main(int argc, char** argv) {
  if (std::string why = coracle::runtime::LiveRuntime::missing(); !why.empty()) {
    std::printf("skipped: %s\n", why.c_str());
    return 77;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
