// SPDX-License-Identifier: Apache-2.0
// A selector is parsed once for each state of its owner.
#include "store/object/selector_cache.h"

#include <gtest/gtest.h>

#include "store/object/object.h"

namespace coracle {
namespace {

ObjectPtr service(const std::string& uid, const std::string& revision, const std::string& spec) {
  return MUST(Object::make(
      kService, MUST(parse_json(R"({"apiVersion":"v1","kind":"Service","metadata":{"namespace":"d","name":")" + uid +
                                R"(","uid":")" + uid + R"(","resourceVersion":")" + revision + R"("},"spec":)" + spec + "}"))));
}

TEST(SelectorCache, reads_what_an_owner_selects_until_it_changes) {
  int read = 0;
  SelectorCache cache([&](const Object& owner) {
    ++read;
    return selector_of_service(owner);
  });
  const ObjectPtr web = service("a", "1", R"({"selector":{"app":"web"}})"), none = service("b", "1", "{}");
  const json::object labels{{"app", "web"}};
  for (int i = 0; i < 100; ++i) {
    auto selector = cache.of(*web);
    ASSERT_TRUE(selector);
    EXPECT_TRUE(selector->matches(labels));
    EXPECT_FALSE(cache.of(*none)) << "it selects nobody";
  }
  EXPECT_EQ(read, 2);
  const ObjectPtr changed = service("a", "2", R"({"selector":{"app":"db"}})");
  EXPECT_FALSE(cache.of(*changed)->matches(labels));
  EXPECT_EQ(read, 3);
  cache.forget(changed->key());
  EXPECT_FALSE(cache.of(*changed)->matches(labels));
  EXPECT_EQ(read, 4);
}

ObjectPtr set(const std::string& uid, int revision, int generation, const std::string& app) {
  return MUST(Object::make(
      kReplicaSet,
      MUST(parse_json(R"({"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"namespace":"d","name":"s","uid":")" + uid +
                      R"(","resourceVersion":")" + std::to_string(revision) + R"(","generation":)" + std::to_string(generation) +
                      R"(},"spec":{"selector":{"matchLabels":{"app":")" + app + R"("}}}})"))));
}

// A set's status changes with each of its pods.
TEST(SelectorCache, reads_a_selector_once_for_each_generation) {
  int read = 0;
  SelectorCache cache([&](const Object& owner) {
    ++read;
    return selector_in_spec(owner);
  });
  for (int revision = 1; revision <= 100; ++revision)
    EXPECT_TRUE(cache.of(*set("a", revision, 1, "web"))->matches({{"app", "web"}}));
  EXPECT_EQ(read, 1);
  EXPECT_TRUE(cache.of(*set("a", 101, 2, "db"))->matches({{"app", "db"}}));
  EXPECT_EQ(read, 2);
  EXPECT_TRUE(cache.of(*set("b", 102, 2, "other"))->matches({{"app", "other"}})) << "another set has its name now";
  EXPECT_EQ(read, 3);
}

}  // namespace
}  // namespace coracle
