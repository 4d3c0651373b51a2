// SPDX-License-Identifier: Apache-2.0
// Behaviour of Result and Error.
#include "runtime/base/result.h"

#include <gtest/gtest.h>

namespace coracle {
namespace {

Result<int> half(int n) {
  if (n % 2) return Error(Code::invalid, "odd");
  return n / 2;
}
Result<int> quarter(int n) {
  int once = TRY(half(n));
  return TRY(half(once).wrap("second half"));
}

TEST(Result, try_hands_the_error_up_with_its_context) {
  EXPECT_EQ(*quarter(8), 2);
  auto failed = quarter(6);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::invalid);
  EXPECT_EQ(failed.error().text(), "second half: odd");
}

TEST(Result, errno_is_positive_and_has_a_code) {
  errno = ENOENT;
  Error error = Error::from_errno("open config");
  EXPECT_EQ(error.err(), ENOENT);
  EXPECT_EQ(error.code(), Code::not_found);
  EXPECT_EQ(error.text(), "open config: No such file or directory");
}

TEST(Result, of_void_carries_errors_too) {
  Result<void> fine;
  EXPECT_TRUE(fine);
  Result<void> failed = Error(Code::conflict, "busy");
  EXPECT_FALSE(failed);
  EXPECT_EQ(failed.take_error().text(), "busy");
}

}  // namespace
}  // namespace coracle
