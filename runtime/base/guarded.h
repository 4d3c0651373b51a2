// SPDX-License-Identifier: Apache-2.0
// Guarded<T>: data that can only be accessed under its lock. Keep the functions passed to it short: no I/O, no callback, no
// second lock. `wait` blocks until a predicate on the data holds or a stop is requested; call `notify` after changing the data.
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
  // Blocks until ready(data) or a stop request. Returns then(data) in both cases, so `then` must check the condition again.
  template <typename Ready, typename Then>
  decltype(auto) wait(std::stop_token stop, Ready&& ready, Then&& then) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [&] { return ready(data_); });
    return std::forward<Then>(then)(data_);
  }
  // As wait, but at most until `deadline`.
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
