// SPDX-License-Identifier: Apache-2.0
// Names that several CustomResourceDefinitions want at the same time, on a disk that takes its time.
#include <thread>

#include "tests/daemon/registry/registry_fixture.h"
#include "tests/store/engine/slow_disk.h"

namespace coracle::registry {
namespace {

constexpr size_t kDefinitions = 16;

class DefinitionNamesTest : public ::testing::Test {
 protected:
  // `names` of spec.names, beside the plural.
  static std::string definition(const std::string& plural, const std::string& names, const std::string& group = "example.com") {
    return R"({"metadata":{"name":")" + plural + "." + group + R"("},"spec":{"group":")" + group +
           R"(","scope":"Namespaced","names":{"plural":")" + plural + "\"," + names +
           R"(},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}})";
  }
  static std::string number(const char* before, size_t index) { return before + std::to_string(index); }
  // The results of so many creates at the same time. `body` gets the number of the create.
  template <typename Body>
  std::vector<ObjectPtr> made_at_once(Body&& body) {
    std::vector<ObjectPtr> made(kDefinitions);
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < kDefinitions; t++)
      threads.emplace_back([&, t] { made[t] = fixture.make(kCustomResourceDefinition, body(t)); });
    threads.clear();
    return made;
  }
  // The reason of the condition NamesAccepted: NotServed if there is no conflict.
  static std::string reason_of(const Object& definition) {
    for (const json::value& condition : get_array(definition.json(), "status.conditions"))
      if (get_string(condition, "type") == "NamesAccepted") return std::string(get_string(condition, "reason"));
    return {};
  }
  // Waits until `what` is true, a minute at most.
  template <typename What>
  static bool until(What&& what) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!what()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }
  static std::string accepted(const Object& definition, const std::string& field) {
    return std::string(get_string(definition.json(), "status.acceptedNames." + field));
  }

  engine::SlowDisk disk;
  RegistryFixture fixture{kinds::Ranges(), 0, disk.vfs()};
};

// The first commit stays on its way to the disk until all creates have their names.
TEST_F(DefinitionNamesTest, creates_share_commits) {
  const size_t before = disk.syncs();
  disk.hold_syncs(true);
  disk.set_delay(std::chrono::milliseconds(100));  // for those that reach the commits last
  std::vector<ObjectPtr> all;
  std::jthread making([&] {
    all = made_at_once([](size_t t) {
      return definition(number("things", t),
                        R"("kind":"Thing)" + std::to_string(t) + R"(","shortNames":["t)" + std::to_string(t) + R"("])");
    });
  });
  EXPECT_TRUE(until([&] { return disk.held_syncs() == 1; }));
  Writer dry;
  dry.dry_run = true;
  for (size_t t = 0; t < kDefinitions; t++) {
    const std::string same = definition("others", "\"kind\":\"" + number("Thing", t) + "\"");
    EXPECT_TRUE(until([&] {
      return reason_of(*MUST(fixture.try_make(kCustomResourceDefinition, same, dry))) == "ListKindConflict";
    })) << number("things", t);
  }
  EXPECT_EQ(disk.held_syncs(), 1u) << "no name waits for the disk";
  EXPECT_EQ(disk.syncs() - before, 1u);
  disk.hold_syncs(false);
  making.join();
  for (const ObjectPtr& made : all) EXPECT_EQ(reason_of(*made), "NotServed");
  EXPECT_LT(disk.syncs() - before, kDefinitions / 2) << "creates that wait for each other need a sync each";
}

TEST_F(DefinitionNamesTest, one_kind_goes_to_one_definition) {
  disk.set_delay(std::chrono::milliseconds(10));
  size_t won = 0;
  for (const ObjectPtr& made : made_at_once([](size_t t) { return definition(number("things", t), R"("kind":"Thing")"); })) {
    bool wins = accepted(*made, "kind") == "Thing";
    won += wins;
    EXPECT_EQ(reason_of(*made), wins ? "NotServed" : "ListKindConflict");
    EXPECT_TRUE(accepted(*made, "plural").starts_with("things")) << "its plural is its own";
  }
  EXPECT_EQ(won, 1u);
}

TEST_F(DefinitionNamesTest, one_short_name_goes_to_one_definition_of_a_group) {
  disk.set_delay(std::chrono::milliseconds(10));
  size_t won = 0;
  for (const ObjectPtr& made : made_at_once([](size_t t) {
         return definition(number("things", t), R"("kind":"Thing)" + std::to_string(t) + R"(","shortNames":["t"])",
                           t % 2 ? "example.com" : "example.org");
       })) {
    bool wins = reason_of(*made) == "NotServed";
    won += wins;
    EXPECT_TRUE(wins || reason_of(*made) == "ShortNamesConflict") << reason_of(*made);
  }
  EXPECT_EQ(won, 2u) << "one of each group";
}

TEST_F(DefinitionNamesTest, what_fails_is_only_tried_or_is_deleted_gives_its_names_back) {
  const std::string wanted = R"("kind":"Thing","shortNames":["t"])";
  disk.set_failing(true);
  EXPECT_FALSE(fixture.try_make(kCustomResourceDefinition, definition("first", wanted)));
  disk.set_failing(false);
  EXPECT_FALSE(fixture.try_make(kCustomResourceDefinition, definition("first", wanted + R"(,"categories":["A B"])")))
      << "invalid after its names were accepted";
  Writer dry;
  dry.dry_run = true;
  EXPECT_EQ(reason_of(*MUST(fixture.try_make(kCustomResourceDefinition, definition("first", wanted), dry))), "NotServed");
  EXPECT_EQ(reason_of(*fixture.make(kCustomResourceDefinition, definition("first", wanted))), "NotServed");
  EXPECT_EQ(reason_of(*fixture.make(kCustomResourceDefinition, definition("second", wanted))), "ListKindConflict");
  MUST(fixture.engine->remove(kCustomResourceDefinition, {"", "first.example.com"}, std::nullopt, engine::Durability::durable));
  ObjectPtr settled = MUST(
      fixture.try_merge(kCustomResourceDefinition, {"", "second.example.com"}, R"({"metadata":{"labels":{"again":"yes"}}})"));
  EXPECT_EQ(reason_of(*settled), "NotServed");
  EXPECT_EQ(accepted(*settled, "kind"), "Thing");
}

TEST_F(DefinitionNamesTest, a_definition_is_not_in_its_own_way) {
  const std::string wanted = R"("kind":"Thing","shortNames":["t"])";
  fixture.make(kCustomResourceDefinition, definition("things", wanted));
  ObjectPtr changed = MUST(
      fixture.try_merge(kCustomResourceDefinition, {"", "things.example.com"}, R"({"spec":{"names":{"shortNames":["t","u"]}}})"));
  EXPECT_EQ(reason_of(*changed), "NotServed");
  EXPECT_EQ(to_text(*find(changed->json(), "status.acceptedNames.shortNames")), R"(["t","u"])");
  EXPECT_EQ(reason_of(*fixture.make(kCustomResourceDefinition, definition("others", R"("kind":"Other","shortNames":["u"])"))),
            "ShortNamesConflict");
}

TEST_F(DefinitionNamesTest, a_restart_finds_them_all) {
  fixture.make(kCustomResourceDefinition, definition("things", R"("kind":"Thing","shortNames":["t"])"));
  fixture.reopen();
  EXPECT_EQ(reason_of(*fixture.make(kCustomResourceDefinition, definition("others", R"("kind":"Other","shortNames":["t"])"))),
            "ShortNamesConflict");
}

TEST_F(DefinitionNamesTest, one_that_got_no_name_at_all_gives_none_back) {
  fixture.make(kCustomResourceDefinition,
               definition("bars", R"("singular":"bar","kind":"Foo","listKind":"FooList","shortNames":["foos","foo"])"));
  const std::string wanted = R"("singular":"foo","kind":"Foo","listKind":"FooList")";
  EXPECT_EQ(accepted(*fixture.make(kCustomResourceDefinition, definition("foos", wanted)), "plural"), "");
  MUST(fixture.engine->remove(kCustomResourceDefinition, {"", "bars.example.com"}, std::nullopt, engine::Durability::durable));
  ObjectPtr settled =
      MUST(fixture.try_merge(kCustomResourceDefinition, {"", "foos.example.com"}, R"({"metadata":{"labels":{"again":"yes"}}})"));
  EXPECT_EQ(accepted(*settled, "plural"), "foos");
  EXPECT_EQ(reason_of(*fixture.make(kCustomResourceDefinition, definition("others", R"("kind":"Other","shortNames":["foo"])"))),
            "ShortNamesConflict");
}

}  // namespace
}  // namespace coracle::registry
