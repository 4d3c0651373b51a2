// SPDX-License-Identifier: Apache-2.0
// The token cache: bounded in number and age.
#include "daemon/auth/token_cache.h"

#include <gtest/gtest.h>

namespace coracle::auth {
namespace {

FindingPtr finding(std::string name) { return std::make_shared<const Finding>(Finding{{std::move(name), "", {}, {}}, {}}); }
std::string name_in(TokenCache& cache, std::string_view token, SteadyTime now) {
  FindingPtr found = cache.find(sha256_of(token), now);
  return found ? found->user.name : std::string();
}

TEST(TokenCache, knows_tokens_by_their_sha_256) {
  TokenDigest digest = sha256_of("abc");  // FIPS 180-2, appendix B.1
  EXPECT_EQ(digest[0], 0xba);
  EXPECT_EQ(digest[31], 0xad);
  EXPECT_NE(sha256_of(""), sha256_of("a"));
}

TEST(TokenCache, forgets_what_is_old) {
  TokenCache cache;
  SteadyTime now{};
  cache.put(sha256_of("a"), finding("jane"), now);
  EXPECT_EQ(name_in(cache, "a", now + kTokenRemembered - std::chrono::milliseconds(1)), "jane");
  EXPECT_EQ(name_in(cache, "a", now + kTokenRemembered), "") << "being asked for makes it no younger";
  EXPECT_EQ(cache.size(), 0u);
  cache.put(sha256_of("a"), finding("jane"), now);
  cache.put(sha256_of("a"), finding("bob"), now);
  EXPECT_EQ(cache.size(), 1u);
  EXPECT_EQ(name_in(cache, "a", now), "bob");
  cache.forget(sha256_of("a"));
  cache.forget(sha256_of("b"));
  EXPECT_EQ(name_in(cache, "a", now), "");
}

TEST(TokenCache, lets_the_one_go_that_was_not_used_for_the_longest) {
  TokenCache cache(3);
  SteadyTime now{};
  for (const char* token : {"a", "b", "c"}) cache.put(sha256_of(token), finding(token), now);
  EXPECT_EQ(name_in(cache, "a", now), "a");
  cache.put(sha256_of("d"), finding("d"), now);
  EXPECT_EQ(cache.size(), 3u);
  EXPECT_EQ(name_in(cache, "b", now), "");
  for (const char* token : {"a", "c", "d"}) EXPECT_EQ(name_in(cache, token, now), token);
  cache.clear();
  EXPECT_EQ(cache.size(), 0u);
}

}  // namespace
}  // namespace coracle::auth
