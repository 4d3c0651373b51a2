// SPDX-License-Identifier: Apache-2.0
// Bytes on their way from a thread that receives to one that uses them. It has no bound of its own: who puts looks at size() and
// stops receiving in time, for it has to wait for other things as well.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/guarded.h"

namespace coracle::api {

constexpr size_t kBacklogMax = 256 << 10;  // bytes that wait in one queue before its filler pauses

class ByteQueue {  // Thread-safe.
 public:
  // False: nobody wants them any more.
  bool put(std::string_view bytes) {
    bool wanted = state_.with([&](State& state) { return !state.unwanted && (state.bytes += bytes, true); });
    state_.notify();
    return wanted;
  }
  void end() {  // nothing follows
    state_.with([](State& state) { state.ended = true; });
    state_.notify();
  }
  // Nobody takes any more. Gives how many bytes were thrown away.
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
  // Blocks for all there is. "": the end, or abandoned.
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
