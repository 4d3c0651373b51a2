// SPDX-License-Identifier: Apache-2.0
// A byte queue from a receiving thread to a consuming one. It has no limit of its own: the producer checks size() and stops
// receiving in time, because it must wait for other events too.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/guarded.h"

namespace coracle::api {

constexpr size_t kBacklogMax = 256 << 10;  // queued bytes at which the producer pauses

class ByteQueue {  // Thread-safe.
 public:
  // False: the consumer has abandoned the queue.
  bool put(std::string_view bytes) {
    bool wanted = state_.with([&](State& state) { return !state.unwanted && (state.bytes += bytes, true); });
    state_.notify();
    return wanted;
  }
  void end() {  // no more bytes follow
    state_.with([](State& state) { state.ended = true; });
    state_.notify();
  }
  // The consumer stops. Returns the number of discarded bytes.
  size_t abandon() {
    size_t dropped = state_.with([](State& state) {
      state.unwanted = true;
      return std::exchange(state.bytes, {}).size();
    });
    state_.notify();
    return dropped;
  }
  bool cut_off() const {
    return state_.with([](const State& state) { return state.unwanted; });
  }
  // Blocks until there are bytes and returns all of them. "": end, or abandoned.
  std::string take() {
    return state_.wait(
        {}, [](const State& state) { return !state.bytes.empty() || state.ended || state.unwanted; },
        [](State& state) { return std::exchange(state.bytes, {}); });
  }
  size_t size() const {
    return state_.with([](const State& state) { return state.bytes.size(); });
  }

 private:
  struct State {
    std::string bytes;
    bool ended = false, unwanted = false;
  };
  Guarded<State> state_;
};

}  // namespace coracle::api
