// SPDX-License-Identifier: Apache-2.0
// The contract of runtime/runtime.h as tests: every implementation runs all of them. A program that includes this header defines
// a Subject for its implementation and instantiates the suite:
//   INSTANTIATE_TEST_SUITE_P(Fake, RuntimeContract, ::testing::Values([] { return std::make_unique<FakeSubject>(); }));
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "runtime/runtime.h"
#include "tests/runtime/expect.h"

namespace coracle::runtime {

// The implementation under test, with what the suite needs from it.
class RuntimeSubject {
 public:
  virtual ~RuntimeSubject() = default;
  virtual Runtime& runtime() = 0;
  // Specs of containers with this behaviour.
  virtual ContainerSpec sleeps(const std::string& id) = 0;           // runs until signalled
  virtual ContainerSpec ignores_signals(const std::string& id) = 0;  // only SIGKILL ends it
  virtual ContainerSpec exits(const std::string& id, int code) = 0;  // at once
  virtual ContainerSpec has_no_program(const std::string& id) = 0;   // start fails
  virtual ExecSpec prints(const std::string& text, int code) = 0;    // to stdout, then exits
  virtual void wait_ready(const std::string&) {}                     // until a container that was just started is ready
};

using MakeSubject = std::function<std::unique_ptr<RuntimeSubject>()>;

class RuntimeContract : public ::testing::TestWithParam<MakeSubject> {
 protected:
  void SetUp() override {
    subject_ = GetParam()();
    if (!subject_) GTEST_SKIP() << "this machine cannot run the implementation";
    runtime().on_change([this](const std::string& id) {
      std::lock_guard lock(mutex_);
      changed_.insert(id);
      event_.notify_all();
    });
  }
  void TearDown() override {
    if (!subject_) return;
    auto left = runtime().sandboxes();
    ASSERT_TRUE(left.ok());
    for (auto& sandbox : *left) EXPECT_TRUE(runtime().remove_sandbox(sandbox.id).ok());
    runtime().on_change({});
    subject_.reset();
  }
  Runtime& runtime() { return subject_->runtime(); }
  RuntimeSubject& subject() { return *subject_; }

  static SandboxSpec sandbox(const std::string& id) {
    SandboxSpec spec;
    spec.id = id;
    spec.metadata = "{\"pod\":\"" + id + "\"}";
    spec.hostname = id;
    return spec;
  }
  std::optional<ContainerState> container(const std::string& sandbox_id, const std::string& id) {
    auto state = runtime().sandbox(sandbox_id);
    if (!state) return std::nullopt;
    for (auto& container : state->containers)
      if (container.id == id) return container;
    return std::nullopt;
  }
  // Waits for change notifications until the container has ended; this proves that none was lost.
  std::optional<ExitStatus> wait_exit(const std::string& sandbox_id, const std::string& id) {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (true) {
      {
        std::lock_guard lock(mutex_);
        changed_.erase(sandbox_id);
      }
      auto state = container(sandbox_id, id);
      if (!state) return std::nullopt;
      if (state->exit) return state->exit;
      std::unique_lock lock(mutex_);
      if (!event_.wait_until(lock, deadline, [&] { return changed_.count(sandbox_id) > 0; })) return std::nullopt;
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable event_;
  std::set<std::string> changed_;
  std::unique_ptr<RuntimeSubject> subject_;  // last: its threads use the members above
};

TEST_P(RuntimeContract, keeps_a_sandbox_with_its_metadata) {
  ASSERT_OK(runtime().create_sandbox(sandbox("one")));
  auto state = runtime().sandbox("one");
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(state->id, "one");
  EXPECT_EQ(state->metadata, "{\"pod\":\"one\"}");
  EXPECT_TRUE(state->alive);
  EXPECT_GT(state->pid, 0);
  EXPECT_TRUE(state->containers.empty());
  auto all = runtime().sandboxes();
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all->size(), 1u);
  EXPECT_EQ((*all)[0].id, "one");
}

TEST_P(RuntimeContract, refuses_a_sandbox_twice_and_bad_ids) {
  ASSERT_OK(runtime().create_sandbox(sandbox("one")));
  EXPECT_CODE(runtime().create_sandbox(sandbox("one")), Code::already_exists);
  for (const char* bad : {"", "..", "a/b", "Upper", "with space", "under_score"})
    EXPECT_CODE(runtime().create_sandbox(sandbox(bad)), Code::invalid);
  EXPECT_CODE(runtime().create_sandbox(sandbox(std::string(65, 'a'))), Code::invalid);
}

TEST_P(RuntimeContract, says_not_found_for_what_is_not_there) {
  EXPECT_CODE(runtime().sandbox("none"), Code::not_found);
  EXPECT_CODE(runtime().network_namespace("none"), Code::not_found);
  EXPECT_CODE(runtime().start_container("none", subject().sleeps("app-0")), Code::not_found);
  EXPECT_CODE(runtime().signal_container("none", "app-0", SIGTERM), Code::not_found);
  EXPECT_CODE(runtime().usage("none", ""), Code::not_found);
  ASSERT_OK(runtime().create_sandbox(sandbox("one")));
  EXPECT_CODE(runtime().signal_container("one", "app-0", SIGTERM), Code::not_found);
  EXPECT_CODE(runtime().kill_container("one", "app-0"), Code::not_found);
  EXPECT_CODE(runtime().exec("one", "app-0", subject().prints("x", 0)), Code::not_found);
  EXPECT_CODE(runtime().container_root("one", "app-0"), Code::not_found);
  EXPECT_CODE(runtime().writable_layer("none", "app-0"), Code::not_found);
  EXPECT_CODE(runtime().writable_layer("one", "app-0"), Code::not_found);
}

TEST_P(RuntimeContract, removing_what_is_not_there_succeeds) {
  ASSERT_OK(runtime().remove_sandbox("none"));
  ASSERT_OK(runtime().create_sandbox(sandbox("one")));
  ASSERT_OK(runtime().remove_container("one", "none"));
  ASSERT_OK(runtime().remove_sandbox("one"));
  ASSERT_OK(runtime().remove_sandbox("one"));
  EXPECT_CODE(runtime().sandbox("one"), Code::not_found);
  ASSERT_OK(runtime().create_sandbox(sandbox("one")));  // the id is free again
}

TEST_P(RuntimeContract, has_a_network_namespace) {
  ASSERT_OK(runtime().create_sandbox(sandbox("one")));
  auto netns = runtime().network_namespace("one");
  ASSERT_TRUE(netns.ok());
  EXPECT_GE(netns->get(), 0);
}

TEST_P(RuntimeContract, runs_a_container_until_it_is_signalled) {
  ASSERT_OK(runtime().create_sandbox(sandbox("one")));
  ContainerSpec spec = subject().sleeps("app-0");
  spec.metadata = "mine";
  ASSERT_OK(runtime().start_container("one", spec));
  auto state = container("one", "app-0");
  ASSERT_TRUE(state);
  EXPECT_TRUE(state->running);
  EXPECT_GT(state->pid, 0);
  EXPECT_EQ(state->metadata, "mine");
  EXPECT_FALSE(state->exit);
  subject().wait_ready("app-0");
  ASSERT_OK(runtime().signal_container("one", "app-0", SIGTERM));
  auto exit = wait_exit("one", "app-0");
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->exit_code, 128 + SIGTERM);
  EXPECT_FALSE(exit->oom_killed);
  EXPECT_LE(exit->started, exit->finished);
  state = container("one", "app-0");
  ASSERT_TRUE(state);
  EXPECT_FALSE(state->running);
  EXPECT_EQ(state->pid, 0);
  ASSERT_OK(runtime().signal_container("one", "app-0", SIGTERM));  // a signal after the end is no error
  ASSERT_OK(runtime().kill_container("one", "app-0"));
}

TEST_P(RuntimeContract, remembers_exit_codes) {
  ASSERT_OK(runtime().create_sandbox(sandbox("one")));
  for (int code : {0, 1, 3, 127, 255}) {
    std::string id = "app-" + std::to_string(code);
    ASSERT_OK(runtime().start_container("one", subject().exits(id, code)));
    auto exit = wait_exit("one", id);
    ASSERT_TRUE(exit) << id;
    EXPECT_EQ(exit->exit_code, code);
    EXPECT_EQ(exit->signal, 0);
  }
}

TEST_P(RuntimeContract, kills_what_ignores_signals) {
  ASSERT_OK(runtime().create_sandbox(sandbox("one")));
  ASSERT_OK(runtime().start_container("one", subject().ignores_signals("app-0")));
  subject().wait_ready("app-0");
  ASSERT_OK(runtime().signal_container("one", "app-0", SIGTERM));
  auto state = container("one", "app-0");
  ASSERT_TRUE(state);
  EXPECT_TRUE(state->running);
  EXPECT_CODE(runtime().remove_container("one", "app-0"), Code::conflict);
  ASSERT_OK(runtime().kill_container("one", "app-0"));
  auto exit = wait_exit("one", "app-0");
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->exit_code, 137);
  EXPECT_EQ(exit->signal, SIGKILL);
  ASSERT_OK(runtime().remove_container("one", "app-0"));
  EXPECT_FALSE(container("one", "app-0"));
}

TEST_P(RuntimeContract, refuses_an_id_in_use_and_starts_again_under_another) {
  ASSERT_OK(runtime().create_sandbox(sandbox("one")));
  ASSERT_OK(runtime().start_container("one", subject().exits("app-0", 1)));
  ASSERT_TRUE(wait_exit("one", "app-0"));
  EXPECT_CODE(runtime().start_container("one", subject().sleeps("app-0")), Code::conflict);
  ASSERT_OK(runtime().start_container("one", subject().sleeps("app-1")));
  ASSERT_OK(runtime().remove_container("one", "app-0"));
  ASSERT_OK(runtime().start_container("one", subject().sleeps("app-0")));
}

TEST_P(RuntimeContract, a_failed_start_leaves_nothing) {
  ASSERT_OK(runtime().create_sandbox(sandbox("one")));
  auto failed = runtime().start_container("one", subject().has_no_program("app-0"));
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.error().text(), "");
  EXPECT_FALSE(container("one", "app-0"));
  ContainerSpec empty = subject().sleeps("app-0");
  empty.spec.process.args.clear();
  EXPECT_CODE(runtime().start_container("one", empty), Code::invalid);
  ASSERT_OK(runtime().start_container("one", subject().sleeps("app-0")));
}

TEST_P(RuntimeContract, runs_programs_beside_the_container) {
  ASSERT_OK(runtime().create_sandbox(sandbox("one")));
  ASSERT_OK(runtime().start_container("one", subject().sleeps("app-0")));
  auto exec = runtime().exec("one", "app-0", subject().prints("hello", 4));
  ASSERT_TRUE(exec.ok()) << exec.error().text();
  Fd out = (*exec)->take_stdout();
  ASSERT_GE(out.get(), 0);
  std::string text;
  char buffer[256];
  for (ssize_t n; (n = ::read(out.get(), buffer, sizeof buffer)) > 0;) text.append(buffer, size_t(n));
  EXPECT_EQ(text, "hello");
  auto code = (*exec)->wait({});
  ASSERT_TRUE(code.ok());
  EXPECT_EQ(*code, 4);
  ASSERT_OK(runtime().kill_container("one", "app-0"));
  ASSERT_TRUE(wait_exit("one", "app-0"));
  EXPECT_CODE(runtime().exec("one", "app-0", subject().prints("x", 0)), Code::conflict);
}

TEST_P(RuntimeContract, an_exec_wait_can_be_cancelled) {
  ASSERT_OK(runtime().create_sandbox(sandbox("one")));
  ASSERT_OK(runtime().start_container("one", subject().sleeps("app-0")));
  auto exec = runtime().exec("one", "app-0", subject().prints("", 0));
  ASSERT_TRUE(exec.ok());
  std::stop_source stop;
  stop.request_stop();
  auto code = (*exec)->wait(stop.get_token());
  EXPECT_TRUE(code.ok() || code.error().code() == Code::cancelled);  // it may have ended earlier
}

TEST_P(RuntimeContract, removing_a_sandbox_ends_its_containers) {
  ASSERT_OK(runtime().create_sandbox(sandbox("one")));
  ASSERT_OK(runtime().create_sandbox(sandbox("two")));
  ASSERT_OK(runtime().start_container("one", subject().sleeps("app-0")));
  ASSERT_OK(runtime().start_container("one", subject().ignores_signals("side-0")));
  ASSERT_OK(runtime().start_container("two", subject().sleeps("app-0")));
  ASSERT_OK(runtime().remove_sandbox("one"));
  EXPECT_CODE(runtime().sandbox("one"), Code::not_found);
  auto state = container("two", "app-0");
  ASSERT_TRUE(state);
  EXPECT_TRUE(state->running);
}

}  // namespace coracle::runtime
