// SPDX-License-Identifier: Apache-2.0
// TaskPool: a bounded number of threads for work that blocks for long (pulls, lifecycle hooks), made when there is work and
// gone when there is none for a while: an idle node keeps none of them. Who has many tasks that hang (a pod with a hook in each
// of its containers) gets no more threads than each may have, and holds up nobody else.
#pragma once

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
using Executor = std::function<void(Task task)>;  // runs it some time, elsewhere

class TaskPool {
 public:
  // `name`: its threads'. `each_max`: threads that tasks of one owner have at once; absent: all.
  TaskPool(ThreadName name, size_t threads_max, size_t each_max = SIZE_MAX)
      : name_(name), threads_max_(threads_max), each_max_(each_max) {}
  ~TaskPool();  // asks what runs to stop, waits for it; what is queued is dropped
  // In the order in which they come, but for those of an `owner` who has all his threads.
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
  size_t count_ready(const State& state) const;  // queued tasks that may begin now
  std::deque<Queued>::iterator find_ready(State& state) const;

  const ThreadName name_;
  const size_t threads_max_, each_max_;
  std::stop_source stop_;
  Guarded<State> state_;
};

}  // namespace coracle::node
