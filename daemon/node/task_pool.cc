// SPDX-License-Identifier: Apache-2.0
// Threads that come and go with the work: see task_pool.h.
#pragma GCC diagnostic ignored "-Wuse-after-free"  // g++ 12 misreads std::stop_token's last release

#include "daemon/node/task_pool.h"

namespace coracle::node {

namespace {
constexpr std::chrono::seconds kIdleFor{10};
}

TaskPool::~TaskPool() {
  stop_.request_stop();
  std::map<int, std::jthread> threads;
  std::deque<std::jthread> ended;
  state_.with([&](State& state) {
    state.closed = true;
    state.tasks.clear();
    threads.swap(state.threads);
    ended.swap(state.ended);
  });
  state_.notify();
}  // joins them

void TaskPool::post(Task task) {
  std::deque<std::jthread> ended;
  state_.with([&](State& state) {
    if (state.closed) return;
    ended.swap(state.ended);
    state.tasks.push_back(std::move(task));
    if (state.tasks.size() <= state.idle || state.threads.size() >= threads_max_) return;
    int id = state.next_id++;
    state.threads.emplace(id, std::jthread([this, id] { run(id); }));
  });
  state_.notify();
}

void TaskPool::run(int id) {
  std::stop_token stop = stop_.get_token();
  while (true) {
    state_.with([](State& state) { ++state.idle; });
    auto until = std::chrono::steady_clock::now() + kIdleFor;
    Task task = state_.wait_until(
        stop, until, [](const State& state) { return !state.tasks.empty(); },
        [&](State& state) -> Task {
          --state.idle;
          if (!state.tasks.empty() && !state.closed) {
            Task next = std::move(state.tasks.front());
            state.tasks.pop_front();
            return next;
          }
          // Its owner is taken with it; whoever posts next joins it.
          if (auto self = state.threads.find(id); self != state.threads.end()) {
            state.ended.push_back(std::move(self->second));
            state.threads.erase(self);
          }
          return nullptr;
        });
    if (!task) return;
    task(stop);
  }
}

}  // namespace coracle::node
