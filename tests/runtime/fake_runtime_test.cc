// SPDX-License-Identifier: Apache-2.0
// The fake runtime fulfils the runtime's contract and follows its script.
#include "tests/runtime/fake_runtime.h"

#include "tests/runtime/runtime_contract.h"

namespace coracle::runtime {
namespace {

ContainerSpec container(const std::string& id) {
  ContainerSpec spec;
  spec.id = id;
  spec.spec.process.args = {"/bin/app"};
  return spec;
}

class FakeSubject : public RuntimeSubject {
 public:
  Runtime& runtime() override { return runtime_; }
  ContainerSpec sleeps(const std::string& id) override {
    runtime_.script(id, {});
    return container(id);
  }
  ContainerSpec ignores_signals(const std::string& id) override {
    runtime_.script(id, {.exits_at_once = {}, .ignores_signals = true, .log = {}, .start_error = {}});
    return container(id);
  }
  ContainerSpec exits(const std::string& id, int code) override {
    runtime_.script(id, {.exits_at_once = code, .ignores_signals = false, .log = {}, .start_error = {}});
    return container(id);
  }
  ContainerSpec has_no_program(const std::string& id) override {
    runtime_.script(
        id, {.exits_at_once = {}, .ignores_signals = false, .log = {}, .start_error = Error(Code::not_found, "no such program")});
    return container(id);
  }
  ExecSpec prints(const std::string& text, int code) override {
    runtime_.on_exec([=](auto&, auto&, auto&) {
      return FakeRuntime::ExecAnswer{.exit_code = code, .out = text, .err = "", .after = {}, .error = {}};
    });
    ExecSpec spec;
    spec.args = {"/bin/print"};
    return spec;
  }

 private:
  FakeRuntime runtime_;
};

INSTANTIATE_TEST_SUITE_P(Fake, RuntimeContract,
                         ::testing::Values([]() -> std::unique_ptr<RuntimeSubject> { return std::make_unique<FakeSubject>(); }));

TEST(FakeRuntime, fails_on_the_nth_call) {
  FakeRuntime runtime;
  SandboxSpec spec;
  spec.id = "one";
  runtime.fail("create_sandbox", 2, Error(Code::unavailable, "no memory"));
  ASSERT_OK(runtime.create_sandbox(spec));
  spec.id = "two";
  EXPECT_CODE(runtime.create_sandbox(spec), Code::unavailable);
  ASSERT_OK(runtime.create_sandbox(spec));
}

TEST(FakeRuntime, can_lose_a_change) {
  FakeRuntime runtime;
  int changes = 0;
  runtime.on_change([&](const std::string&) { ++changes; });
  SandboxSpec spec;
  spec.id = "one";
  ASSERT_OK(runtime.create_sandbox(spec));
  ASSERT_OK(runtime.start_container("one", container("app-0")));
  int before = changes;
  runtime.lose_changes(true);
  runtime.exit("one", "app-0", 1);
  EXPECT_EQ(changes, before);
  EXPECT_TRUE(runtime.sandbox("one")->containers[0].exit);
}

TEST(FakeRuntime, finds_images_by_their_short_names) {
  FakeRuntime runtime;
  std::string id = runtime.images_fake().add("docker.io/library/web:latest");
  EXPECT_EQ(runtime.images().find("web")->id, id);
  EXPECT_EQ(runtime.images().find(id)->id, id);
  EXPECT_CODE(runtime.images().find("web:2"), Code::not_found);
  runtime.images_fake().add("localhost/tool:1", {}, false);
  EXPECT_CODE(runtime.images().find("localhost/tool:1"), Code::not_found);
  ASSERT_OK(runtime.images().pull("localhost/tool:1", {}, {}, {}));
  ASSERT_OK(runtime.images().find("localhost/tool:1"));
}

}  // namespace
}  // namespace coracle::runtime
