// SPDX-License-Identifier: Apache-2.0
// Guarded<T>: data that cannot be reached without its lock. Keep what runs inside short: no I/O, no callback, no second
// lock. `wait` sleeps on the data until a predicate holds or a stop is asked for; whoever changes it calls `notify`.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

namespace coracle {

template <typename T>
class Guarded {
 public:
  template <typename... Args>
  explicit Guarded(Args&&... args) : data_(std::forward<Args>(args)...) {}

  template <typename F>
  decltype(auto) with(F&& f) {
    std::lock_guard lock(mutex_);
    return std::forward<F>(f)(data_);
  }
  template <typename F>
  decltype(auto) with(F&& f) const {
    std::lock_guard lock(mutex_);
    return std::forward<F>(f)(std::as_const(data_));
  }
  // Blocks until ready(data) or stop. Returns then(data) either way: it must look again.
  template <typename Ready, typename Then>
  decltype(auto) wait(std::stop_token stop, Ready&& ready, Then&& then) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [&] { return ready(data_); });
    return std::forward<Then>(then)(data_);
  }
  // As wait, but no longer than until `deadline`.
  template <typename Ready, typename Then>
  decltype(auto) wait_until(std::stop_token stop, std::chrono::steady_clock::time_point deadline, Ready&& ready, Then&& then) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, stop, deadline, [&] { return ready(data_); });
    return std::forward<Then>(then)(data_);
  }
  void notify() { changed_.notify_all(); }

 private:
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  T data_;
};

}  // namespace coracle
