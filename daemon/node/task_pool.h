// SPDX-License-Identifier: Apache-2.0
// TaskPool: a bounded number of threads for work that blocks for long (pulls, lifecycle hooks), made when there is work and
// gone when there is none for a while: an idle node keeps none of them.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <stop_token>
#include <thread>

#include "runtime/base/guarded.h"

namespace coracle::node {

using Task = std::function<void(std::stop_token stop)>;
using Executor = std::function<void(Task task)>;  // runs it some time, elsewhere

class TaskPool {
 public:
  explicit TaskPool(size_t threads_max) : threads_max_(threads_max) {}
  ~TaskPool();  // asks what runs to stop, waits for it; what is queued is dropped
  void post(Task task);

 private:
  struct State {
    std::deque<Task> tasks;
    std::map<int, std::jthread> threads;
    std::deque<std::jthread> ended;
    size_t idle = 0;
    int next_id = 0;
    bool closed = false;
  };
  void run(int id);

  size_t threads_max_;
  std::stop_source stop_;
  Guarded<State> state_;
};

}  // namespace coracle::node
