// SPDX-License-Identifier: Apache-2.0
// Scope: undo steps of a multi-step acquisition, run in reverse unless dismissed.
#pragma once

#include <functional>
#include <utility>
#include <vector>

namespace coracle {

class Scope {
 public:
  Scope() = default;
  explicit Scope(std::function<void()> undo) { add(std::move(undo)); }
  Scope(Scope&& other) noexcept : undos_(std::exchange(other.undos_, {})) {}
  Scope& operator=(Scope&&) = delete;
  ~Scope() {
    for (auto undo = undos_.rbegin(); undo != undos_.rend(); ++undo) (*undo)();
  }
  void add(std::function<void()> undo) { undos_.push_back(std::move(undo)); }  // undo steps must not fail loudly
  void dismiss() { undos_.clear(); }

 private:
  std::vector<std::function<void()>> undos_;
};

}  // namespace coracle
