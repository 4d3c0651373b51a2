// SPDX-License-Identifier: Apache-2.0
// Threads have their name from their first instruction on.
#include "runtime/base/thread.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace coracle {
namespace {

std::string own_name() {
  char name[16] = {};
  ::pthread_getname_np(::pthread_self(), name, sizeof name);
  return name;
}

TEST(Thread, has_its_name) {
  const std::string before = own_name();
  std::string seen, longest;
  start_thread("http-worker", [&] { seen = own_name(); }).join();
  start_thread("fifteen-letters", [&] { longest = own_name(); }).join();
  EXPECT_EQ(seen, "http-worker");
  EXPECT_EQ(longest, "fifteen-letters");
  EXPECT_EQ(own_name(), before);
}

TEST(Thread, hears_of_its_stop_and_owns_what_it_was_given) {
  auto given = std::make_unique<int>(7);
  int seen = 0;
  {
    std::jthread thread = start_thread("x", [&seen, given = std::move(given)](std::stop_token stop) {
      while (!stop.stop_requested()) std::this_thread::yield();
      seen = *given;
    });
  }
  EXPECT_EQ(seen, 7);
}

}  // namespace
}  // namespace coracle
