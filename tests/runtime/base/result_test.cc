// SPDX-License-Identifier: Apache-2.0
// Result and Error.
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

TEST(Result, is_copied_moved_and_assigned_as_what_it_holds) {
  const std::string text(100, 'x');  // on the heap, so that the sanitizers detect a double free or a leak
  Result<std::string> value(text), error = Error(Code::conflict, text);
  Result<std::string> copy = value;
  EXPECT_EQ(*copy, text);
  copy = error;  // a value becomes an error
  ASSERT_FALSE(copy);
  EXPECT_EQ(copy.error().text(), text);
  copy = Result<std::string>(value);  // and the error becomes a value again
  ASSERT_TRUE(copy);
  EXPECT_EQ(*value, text);
  Result<std::string> moved = std::move(copy);
  EXPECT_EQ(*moved, text);
  moved = Error(Code::gone, text);
  EXPECT_EQ(moved.take_error().text(), text);

  Result<std::unique_ptr<int>> only_movable(std::make_unique<int>(3));
  Result<std::unique_ptr<int>> taken = std::move(only_movable);
  EXPECT_EQ(**taken, 3);
  static_assert(!std::is_copy_constructible_v<Result<std::unique_ptr<int>>>);
}

TEST(ResultDeathTest, the_side_that_is_not_there_ends_the_process) {
  EXPECT_DEATH((void)*Result<int>(Error(Code::gone, "")), "bug");
  EXPECT_DEATH((void)Result<int>(3).error(), "bug");
  EXPECT_DEATH((void)Result<void>().error(), "bug");
  EXPECT_DEATH((void)Result<void>().take_error(), "bug");
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
