// SPDX-License-Identifier: Apache-2.0
// What is loaded can be called, and what is missing is named.
#include "runtime/base/shared_library.h"

#include <gtest/gtest.h>

namespace coracle {
namespace {

TEST(SharedLibrary, finds_functions) {
  const SharedLibrary library = MUST(SharedLibrary::load("libc.so.6"));
  int (*absolute)(int) = nullptr;
  ASSERT_TRUE(library.find(absolute, "abs"));
  EXPECT_EQ(absolute(-3), 3);
}

TEST(SharedLibrary, names_the_library_that_is_missing) {
  auto library = SharedLibrary::load("libdoes-not-exist.so.1");
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code(), Code::unavailable);
  EXPECT_TRUE(library.error().text().starts_with("libdoes-not-exist.so.1 cannot be loaded: ")) << library.error().text();
}

TEST(SharedLibrary, names_the_function_that_is_missing) {
  const SharedLibrary library = MUST(SharedLibrary::load("libc.so.6"));
  void (*function)() = nullptr;
  auto found = library.find(function, "does_not_exist");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().text(), "libc.so.6 has no function does_not_exist");
  EXPECT_EQ(function, nullptr);
}

}  // namespace
}  // namespace coracle
