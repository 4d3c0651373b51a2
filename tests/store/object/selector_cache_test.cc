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

}  // namespace
}  // namespace coracle
