// SPDX-License-Identifier: Apache-2.0
// Pages of a list: the state at an earlier revision, and how pages follow each other.
#include "store/engine/listing.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "store/object/object.h"

namespace coracle::engine {
namespace {

RestingPtr resting_pod(const std::string& name, const std::string& label = "now") {
  return MUST(Object::make(kPod, MUST(parse_json(R"({"metadata":{"namespace":"n","name":")" + name + R"(","labels":{"is":")" +
                                                 label + R"("}}})"))))
      ->at_rest();
}

std::string names_in(const std::vector<RestingPtr>& objects) {
  std::string text;
  for (const RestingPtr& object : objects)
    text += (text.empty() ? "" : " ") + object->awake()->name() + ":" + std::string(object->awake()->label("is"));
  return text;
}

TEST(Listing, is_rewound_to_what_was_there) {
  const std::vector<RestingPtr> latest = {resting_pod("b"), resting_pod("d"), resting_pod("f")};
  EXPECT_EQ(names_in(rewound(latest, {})), "b:now d:now f:now");
  // b was added since, d was changed, and a, c and g were deleted.
  const std::map<Key, RestingPtr> differences = {{{"n", "a"}, resting_pod("a", "then")},
                                                 {{"n", "b"}, nullptr},
                                                 {{"n", "c"}, resting_pod("c", "then")},
                                                 {{"n", "d"}, resting_pod("d", "then")},
                                                 {{"n", "g"}, resting_pod("g", "then")}};
  EXPECT_EQ(names_in(rewound(latest, differences)), "a:then c:then d:then f:now g:then");
  EXPECT_EQ(names_in(rewound({}, differences)), "a:then c:then d:then g:then");
}

TEST(Listing, is_given_in_pages) {
  const std::vector<RestingPtr> all = {resting_pod("a"), resting_pod("b"), resting_pod("c"), resting_pod("d"), resting_pod("e")};
  ListOptions options;
  options.limit = 2;
  std::string names;
  std::optional<ContinueToken> token;
  std::vector<size_t> remaining;
  for (int pages = 0; pages < 5; ++pages) {
    RestingPage page = page_of<RestingPtr>({all, 7, token}, options);
    EXPECT_EQ(page.revision, Revision(7));
    names += "[" + names_in(page.items) + "]";
    remaining.push_back(page.remaining.value_or(100));
    if (page.continue_token.empty()) break;
    token = MUST(ContinueToken::parse(page.continue_token, true));
    EXPECT_EQ(token->revision, 7);
  }
  EXPECT_EQ(names, "[a:now b:now][c:now d:now][e:now]");
  EXPECT_EQ(remaining, (std::vector<size_t>{3, 1, 0}));
}

TEST(Listing, counts_only_what_matches_towards_the_limit) {
  const std::vector<RestingPtr> all = {resting_pod("a", "x"), resting_pod("b", "y"), resting_pod("c", "x"),
                                       resting_pod("d", "x")};
  ListOptions options;
  options.limit = 2;
  options.matches = [](const Object& object) { return object.label("is") == "x"; };
  ListPage page = page_of<ObjectPtr>({all, 7, {}}, options);
  ASSERT_EQ(page.items.size(), 2u);
  EXPECT_EQ(page.items[0]->name(), "a");
  EXPECT_EQ(page.items[1]->name(), "c");
  EXPECT_FALSE(page.continue_token.empty()) << "d follows";
  EXPECT_FALSE(page.remaining) << "with a filter it is not known";
}

TEST(Listing, tells_how_to_go_on_when_a_token_has_expired) {
  Error error = expired_token({5, {"n", "b"}});
  EXPECT_EQ(error.code(), Code::gone);
  ContinueToken next = MUST(ContinueToken::parse(error.details()->continue_token, true));
  EXPECT_EQ(next.revision, -1);
  EXPECT_EQ(next.after, (Key{"n", "b"}));
}

}  // namespace
}  // namespace coracle::engine
