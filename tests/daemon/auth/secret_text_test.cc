// SPDX-License-Identifier: Apache-2.0
// Comparing secrets: each byte counts, whatever the length.
#include "daemon/auth/secret_text.h"

#include <gtest/gtest.h>

namespace coracle::auth {
namespace {

TEST(SameSecret, compares_each_byte) {
  for (size_t size = 0; size < 40; ++size) {
    std::string secret(size, 's');
    EXPECT_TRUE(same_secret(secret, std::string(secret))) << size;
    EXPECT_FALSE(same_secret(secret, secret + "s")) << size;
    for (size_t at = 0; at < size; ++at) {
      std::string other = secret;
      other[at] = 'x';
      EXPECT_FALSE(same_secret(secret, other)) << size << " at " << at;
    }
  }
}

}  // namespace
}  // namespace coracle::auth
