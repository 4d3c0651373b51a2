// SPDX-License-Identifier: Apache-2.0
// Running programs to their end, and counted mounts.
#include "runtime/sys/run.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "runtime/sys/mount.h"

namespace coracle::sys {
namespace {

RunSpec shell(const std::string& script) {
  return {.path = "/bin/sh", .argv = {"sh", "-c", script}, .env = {"PATH=/usr/bin:/bin"}, .input = "said to it", .timeout = {}};
}

RunSpec sleeps() {  // executes sleep directly, since a shell could leave it behind
  return {.path = find_program("sleep"), .argv = {"sleep", "1000"}, .env = {}, .input = "", .timeout = {}};
}

TEST(Run, hears_both_streams_and_the_exit_code) {
  auto heard = run_and_hear(shell("echo one; echo two >&2; cat; exit 3"));
  ASSERT_TRUE(heard) << heard.error().text();
  EXPECT_EQ(heard->exit_code, 3);
  EXPECT_EQ(heard->text, "one\ntwo\nsaid to it");
}

TEST(Run, keeps_the_beginning_of_a_long_text) {
  auto heard = run_and_hear(shell("yes | head -c 1000000"));
  ASSERT_TRUE(heard) << heard.error().text();
  EXPECT_EQ(heard->text.size(), 65536u);
}

TEST(Run, ends_what_takes_too_long) {
  RunSpec spec = sleeps();
  spec.timeout = std::chrono::seconds(1);
  auto heard = run_and_hear(spec);
  ASSERT_FALSE(heard);
  EXPECT_EQ(heard.error().code(), Code::timeout);
}

TEST(Run, ends_what_is_to_stop) {
  std::stop_source stop;
  RunSpec spec = sleeps();
  spec.stop = stop.get_token();
  std::jthread stopper([&] { stop.request_stop(); });
  auto code = run(spec);
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().code(), Code::cancelled);
}

TEST(Run, programs_are_found) {
  EXPECT_TRUE(find_program("sh").ends_with("/sh"));
  EXPECT_EQ(find_program("no-program-has-this-name"), "");
}

TEST(Mounts, are_counted_by_their_place) {
  ASSERT_FALSE(mounts_on("/proc")->empty());
  EXPECT_EQ(mounts_on("/proc")->back(), "proc");
  EXPECT_TRUE(mounts_on("/proc/self")->empty());
  EXPECT_EQ(mounts_on("/no/such/place").error().code(), Code::not_found);
}

}  // namespace
}  // namespace coracle::sys
