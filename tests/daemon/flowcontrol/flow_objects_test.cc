// SPDX-License-Identifier: Apache-2.0
// The stored flow schemas and priority levels: mandatory objects are restored, changes take effect, and a dangling reference gets
// a condition.
#include "daemon/flowcontrol/flow_objects.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>

#include "daemon/registry/bootstrap.h"
#include "runtime/base/guarded.h"
#include "store/engine/engine.h"
#include "store/object/object.h"
#include "store/schema/catalog.h"
#include "tests/catalogs.h"

namespace coracle::flowcontrol {
namespace {

class FlowObjectsTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/coracle-flow-XXXXXX";
    directory = ::mkdtemp(path);
    engine::Options options;
    options.find_kind = find_built_in();
    engine = MUST(engine::Engine::open(directory + "/store.db", options));
    registry = std::make_unique<registry::Registry>(*engine, built_in_catalogs(), kinds::Ranges{});
    MUST(registry::bootstrap(*registry, {}, {"192.0.2.1", 6443}));
    controller = std::make_unique<FlowController>(stored_rules(*registry), FlowControllerLimits{});
    objects = std::make_unique<FlowObjects>(*registry, *controller);
    MUST(objects->follow([this] {
      stirred.with([](int& times) { times++; });
      stirred.notify();
    }));
    objects->reconcile();
  }
  void TearDown() override {
    objects->unfollow();
    objects.reset(), controller.reset(), registry.reset(), engine.reset();
    std::filesystem::remove_all(directory);
  }

  static const Kind& kind(const char* name) { return schema::catalog().by_kind("flowcontrol.apiserver.k8s.io/v1", name)->kind; }
  const Kind &schemas = kind("FlowSchema"), &levels = kind("PriorityLevelConfiguration");

  // Runs something that changes an object, waits for the event, and runs the maintenance.
  template <typename F>
  void change(F&& what) {
    int before = stirred.with([](int times) { return times; });
    what();
    auto told = [&](int times) { return times > before; };
    ASSERT_TRUE(stirred.wait_until({}, std::chrono::steady_clock::now() + std::chrono::seconds(60), told, told));
    objects->reconcile();
  }
  json::value condition(const std::string& name) {
    ObjectPtr schema = MUST(registry->get(schemas, {"", name}));
    for (const json::value& one : get_array(schema->json(), "status.conditions"))
      if (get_string(one, "type") == "Dangling") return one;
    return nullptr;
  }
  std::string place_of(const std::string& name) {
    auth::Attributes asked;
    asked.verb = "get", asked.resource = "pods", asked.ns = "default";
    Classified found = controller->classify({name, "", {"system:authenticated"}, {}}, asked);
    return found.schema() + "/" + found.level();
  }
  void make_schema(const std::string& name, const std::string& level, const std::string& who) {
    MUST(registry->create(
        schemas, {},
        MUST(parse_json(R"({"metadata":{"name":")" + name + R"("},"spec":{"priorityLevelConfiguration":{"name":")" + level +
                        R"("},"matchingPrecedence":50,"rules":[{"subjects":[{"kind":"User","user":{"name":")" + who +
                        R"("}}],"resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"namespaces":["*"]}]}]}})")),
        {}));
  }
  void make_level(const std::string& name) {
    MUST(registry->create(
        levels, {},
        MUST(parse_json(
            R"({"metadata":{"name":")" + name +
            R"("},"spec":{"type":"Limited","limited":{"nominalConcurrencyShares":7,"limitResponse":{"type":"Reject"}}}})")),
        {}));
  }

  std::string directory;
  std::unique_ptr<engine::Engine> engine;
  std::unique_ptr<registry::Registry> registry;
  std::unique_ptr<FlowController> controller;
  std::unique_ptr<FlowObjects> objects;
  Guarded<int> stirred{0};
};

TEST_F(FlowObjectsTest, schemas_and_levels_count_from_when_they_are_stored) {
  EXPECT_EQ(place_of("jane"), "global-default/global-default");
  make_level("mine");
  change([&] { make_schema("of-jane", "mine", "jane"); });
  EXPECT_EQ(place_of("jane"), "of-jane/mine");
  EXPECT_EQ(place_of("joe"), "global-default/global-default");
  change([&] { MUST(registry->remove(schemas, {"", "of-jane"}, {}, {})); });
  EXPECT_EQ(place_of("jane"), "global-default/global-default");
}

TEST_F(FlowObjectsTest, a_schema_says_whether_its_level_is_missing) {
  change([&] { make_schema("of-jane", "mine", "jane"); });
  json::value dangling = condition("of-jane");
  EXPECT_EQ(get_string(dangling, "status"), "True");
  EXPECT_EQ(get_string(dangling, "reason"), "NotFound");
  EXPECT_EQ(get_string(dangling, "message"),
            "This FlowSchema references the PriorityLevelConfiguration object named \"mine\" but there is no such object");
  EXPECT_NE(get_string(dangling, "lastTransitionTime"), "");
  EXPECT_EQ(place_of("jane"), "global-default/global-default") << "it counts for nothing";
  change([&] { make_level("mine"); });
  EXPECT_EQ(get_string(condition("of-jane"), "status"), "False");
  EXPECT_EQ(get_string(condition("of-jane"), "message"),
            "This FlowSchema references the PriorityLevelConfiguration object named \"mine\" and it exists");
  EXPECT_EQ(place_of("jane"), "of-jane/mine");
  change([&] { MUST(registry->remove(levels, {"", "mine"}, {}, {})); });
  EXPECT_EQ(get_string(condition("of-jane"), "status"), "True");
  EXPECT_EQ(get_string(condition("exempt"), "status"), "False");
}

TEST_F(FlowObjectsTest, a_condition_that_somebody_changed_is_put_right_and_others_are_left_alone) {
  change([&] {
    json::value patch =
        MUST(parse_json(R"({"status":{"conditions":[{"type":"Dangling","status":"True"},{"type":"Mine","status":"True"}]}})"));
    MUST(registry->patch(schemas, {"", "probes"}, "status", PatchType::merge, patch, false, {}));
  });
  EXPECT_EQ(get_string(condition("probes"), "status"), "False");
  EXPECT_EQ(get_array(MUST(registry->get(schemas, {"", "probes"}))->json(), "status.conditions").size(), 2u);
}

TEST_F(FlowObjectsTest, what_a_server_begins_with_comes_back) {
  for (const char* name : {"exempt", "catch-all", "global-default"}) {
    std::string uid = MUST(registry->get(schemas, {"", name}))->uid();
    change([&] { MUST(registry->remove(schemas, {"", name}, {}, {})); });
    auto back = registry->get(schemas, {"", name});
    ASSERT_TRUE(back) << name;
    EXPECT_NE((*back)->uid(), uid);
    change([&] { MUST(registry->remove(levels, {"", name}, {}, {})); });
    EXPECT_TRUE(registry->get(levels, {"", name})) << name;
  }
}

TEST_F(FlowObjectsTest, a_suggested_spec_is_the_administrators_once_they_say_so) {
  auto shares = [&] {
    return get_int(MUST(registry->get(levels, {"", "workload-low"}))->json(), "spec.limited.nominalConcurrencyShares");
  };
  auto patch = [&](const std::string& text) {
    MUST(registry->patch(levels, {"", "workload-low"}, "", PatchType::merge, MUST(parse_json(text)), false, {}));
  };
  change([&] { patch(R"({"spec":{"limited":{"nominalConcurrencyShares":5}}})"); });
  EXPECT_EQ(shares(), 100) << "it follows the server's version";
  change([&] {
    patch(
        R"({"metadata":{"annotations":{"apf.kubernetes.io/autoupdate-spec":"false"}},"spec":{"limited":{"nominalConcurrencyShares":5}}})");
  });
  EXPECT_EQ(shares(), 5);
}

TEST_F(FlowObjectsTest, nothing_is_written_where_all_is_level) {
  change([&] { make_level("one"); });
  Revision before = engine->revision();
  change([&] { make_level("two"); });
  EXPECT_EQ(engine->revision(), before + 1) << "the level that was made, and nothing of ours";
}

TEST_F(FlowObjectsTest, mandatory_ones_count_while_they_are_missing) {
  MUST(registry->remove(schemas, {"", "exempt"}, {}, {}));
  MUST(registry->remove(levels, {"", "exempt"}, {}, {}));
  FlowController other(stored_rules(*registry), {});
  EXPECT_TRUE(other.classify({"admin", "", {"system:masters"}, {}}, {}).exempt());
}

}  // namespace
}  // namespace coracle::flowcontrol
