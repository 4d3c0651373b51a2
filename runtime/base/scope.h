// SPDX-License-Identifier: Apache-2.0
// Scope: the undo steps of an acquisition in several steps. The destructor runs them in reverse order, unless they are dismissed.
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
  void add(std::function<void()> undo) { undos_.push_back(std::move(undo)); }  // an undo step handles its own errors
  void dismiss() { undos_.clear(); }

 private:
  std::vector<std::function<void()>> undos_;
};

}  // namespace coracle
