// SPDX-License-Identifier: Apache-2.0
// Fd: no descriptor leaks, especially not in moves.
#include "runtime/base/fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace coracle {
namespace {

bool open_now(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(Fd, assignment_closes_what_was_held) {
  Fd a(::open("/dev/null", O_RDONLY | O_CLOEXEC)), b(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  int first = a.get(), second = b.get();
  a = std::move(b);
  EXPECT_FALSE(open_now(first));
  EXPECT_EQ(a.get(), second);
  EXPECT_FALSE(bool(b));
  a.reset();
  EXPECT_FALSE(open_now(second));
}

}  // namespace
}  // namespace coracle
