// SPDX-License-Identifier: Apache-2.0
// See task_pool.h.
#pragma GCC diagnostic ignored "-Wuse-after-free"  // g++ 12 misreads std::stop_token's last release

#include "daemon/node/task_pool.h"

#include <algorithm>
#include <string_view>

#include "runtime/base/thread.h"

namespace coracle::node {

namespace {
constexpr std::chrono::seconds kIdleFor{10};
}

TaskPool::~TaskPool() {
  request_stop();
  std::map<int, std::jthread> threads;
  std::deque<std::jthread> ended;
  state_.with([&](State& state) {
    threads.swap(state.threads);
    ended.swap(state.ended);
  });
}  // joins the threads

void TaskPool::request_stop() {
  stop_.request_stop();
  std::deque<Queued> dropped;  // what they have captured is freed without the lock
  state_.with([&](State& state) {
    state.closed = true;
    dropped.swap(state.tasks);
  });
  state_.notify();
}

bool TaskPool::wait_for_end(std::chrono::steady_clock::time_point deadline) {
  auto has_ended = [](const State& state) { return state.running.empty(); };
  return state_.wait_until({}, deadline, has_ended, has_ended);
}

size_t TaskPool::count_ready(const State& state) const {
  std::map<std::string_view, size_t> begun;
  size_t ready = 0;
  for (const Queued& queued : state.tasks) {
    auto running = state.running.find(queued.owner);
    size_t& with_it = begun[queued.owner];
    if (with_it + (running == state.running.end() ? 0 : running->second) >= each_max_) continue;
    ++with_it, ++ready;
  }
  return ready;
}

std::deque<TaskPool::Queued>::iterator TaskPool::find_ready(State& state) const {
  return std::find_if(state.tasks.begin(), state.tasks.end(), [&](const Queued& queued) {
    auto running = state.running.find(queued.owner);
    return running == state.running.end() || running->second < each_max_;
  });
}

void TaskPool::post(Task task, const std::string& owner) {
  std::deque<std::jthread> ended;
  state_.with([&](State& state) {
    if (state.closed) return;
    ended.swap(state.ended);
    state.tasks.push_back({owner, std::move(task)});
    if (count_ready(state) <= state.idle || state.threads.size() >= threads_max_) return;
    int id = state.next_id++;
    state.threads.emplace(id, start_thread(name_, [this, id] { run(id); }));
  });
  state_.notify();
}

void TaskPool::run(int id) {
  std::stop_token stop = stop_.get_token();
  while (true) {
    state_.with([](State& state) { ++state.idle; });
    auto until = std::chrono::steady_clock::now() + kIdleFor;
    std::string owner;
    Task task = state_.wait_until(
        stop, until, [this](State& state) { return find_ready(state) != state.tasks.end(); },
        [&](State& state) -> Task {
          --state.idle;
          if (auto ready = find_ready(state); ready != state.tasks.end() && !state.closed) {
            Task next = std::move(ready->task);
            owner = std::move(ready->owner);
            state.tasks.erase(ready);
            ++state.running[owner];
            return next;
          }
          // The thread removes itself from the map; the next post() joins it.
          if (auto self = state.threads.find(id); self != state.threads.end()) {
            state.ended.push_back(std::move(self->second));
            state.threads.erase(self);
          }
          return nullptr;
        });
    if (!task) return;
    task(stop);
    task = nullptr;  // frees its captures before the next task starts
    state_.with([&](State& state) {
      if (--state.running[owner] == 0) state.running.erase(owner);
    });
    state_.notify();  // a task may have waited for a thread of this owner
  }
}

}  // namespace coracle::node
