// SPDX-License-Identifier: Apache-2.0
// TaskPool: a bounded pool of threads for tasks that block for long (pulls, lifecycle hooks). Threads are created for tasks and
// end after some idle time, so an idle node has none. Each owner has a limit of threads, so that an owner with many hanging tasks
// (a pod with a hook in each container) does not block the others.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <stop_token>
#include <string>

#include "runtime/base/guarded.h"
#include "runtime/base/thread.h"

namespace coracle::node {

using Task = std::function<void(std::stop_token stop)>;
using Executor = std::function<void(Task task)>;  // runs the task later, on another thread

class TaskPool {
 public:
  // `name`: of the threads. `each_max`: threads for tasks of one owner at once; absent: no limit.
  TaskPool(ThreadName name, size_t threads_max, size_t each_max = SIZE_MAX)
      : name_(name), threads_max_(threads_max), each_max_(each_max) {}
  ~TaskPool();  // request_stop(), and waits for the running tasks
  // Drops queued tasks and requests stop of the running ones. Nothing can be posted any more. Does not block.
  void request_stop();
  // Call after request_stop(). Blocks until no task runs, or until the deadline. False: one still runs, and the destructor would
  // wait for it, which on a dead disk may last for ever.
  bool wait_for_end(std::chrono::steady_clock::time_point deadline);
  // Queues a task. Tasks start in order, except that tasks of an `owner` at its limit wait.
  void post(Task task, const std::string& owner = {});

 private:
  struct Queued {
    std::string owner;
    Task task;
  };
  struct State {
    std::deque<Queued> tasks;
    std::map<std::string, size_t> running;  // by owner
    std::map<int, std::jthread> threads;
    std::deque<std::jthread> ended;
    size_t idle = 0;
    int next_id = 0;
    bool closed = false;
  };
  void run(int id);
  size_t count_ready(const State& state) const;  // queued tasks that may start now
  std::deque<Queued>::iterator find_ready(State& state) const;

  const ThreadName name_;
  const size_t threads_max_, each_max_;
  std::stop_source stop_;
  Guarded<State> state_;
};

}  // namespace coracle::node
