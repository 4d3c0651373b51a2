// SPDX-License-Identifier: Apache-2.0
// A fixture for tests that look at a pod from inside: a runtime, and functions that run containers of "pod" to their end.
#pragma once

#include <gtest/gtest.h>

#include "tests/runtime/container/live_runtime.h"

namespace coracle::runtime {

class LivePod : public ::testing::Test {
 protected:
  Runtime& runtime() { return *fixture_->runtime; }
  // Runs the container to its end, checks the exit code and returns its output.
  std::string run(ContainerSpec spec, int want = 0, const std::string& sandbox = "pod") {
    auto started = runtime().start_container(sandbox, spec);
    if (!started) return "start: " + started.error().text();
    auto exit = fixture_->wait_end(sandbox, spec.id);
    EXPECT_EQ(exit ? exit->exit_code : -1, want) << fixture_->output(spec.id) << fixture_->output(spec.id, "stderr");
    std::string out = fixture_->output(spec.id);
    std::string err = fixture_->output(spec.id, "stderr");
    EXPECT_TRUE(runtime().remove_container(sandbox, spec.id).ok());
    (void)sys::unlink(spec.log.path);
    return out + err;
  }
  std::string sh(const std::string& command, int want = 0) { return run(fixture_->shell("app-0", command), want); }
  std::unique_ptr<LiveRuntime> fixture_;
};

}  // namespace coracle::runtime
