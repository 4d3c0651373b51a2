// SPDX-License-Identifier: Apache-2.0
// NumberRuns: a set of numbers as runs of neighbours. It finds the lowest number that is not in the set in logarithmic time,
// however many are. Pure.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>

namespace coracle::kinds {

class NumberRuns {
 public:
  // Adds a number, if it is not in the set.
  void add(int64_t number) {
    auto next = runs_.upper_bound(number);
    bool joins_next = next != runs_.end() && next->first == number + 1;
    int64_t last = joins_next ? next->second : number;
    if (next != runs_.begin()) {
      auto before = std::prev(next);
      if (before->second >= number) return;
      if (before->second == number - 1) {
        before->second = last;
        if (joins_next) runs_.erase(next);
        return;
      }
    }
    if (joins_next) runs_.erase(next);
    runs_.emplace(number, last);
  }
  // Removes a number, if it is in the set.
  void remove(int64_t number) {
    auto run = around(number);
    if (run == runs_.end()) return;
    int64_t last = run->second;
    if (run->first == number) runs_.erase(run);
    else run->second = number - 1;
    if (last > number) runs_.emplace(number + 1, last);
  }
  // The lowest number that is not in the set and not below `from`.
  int64_t lowest_free(int64_t from) const {
    auto run = around(from);
    return run == runs_.end() ? from : run->second + 1;
  }
  bool empty() const { return runs_.empty(); }

 private:
  using Runs = std::map<int64_t, int64_t>;
  template <typename OfRuns>
  static auto find(OfRuns& runs, int64_t number) -> decltype(runs.begin()) {
    auto next = runs.upper_bound(number);
    if (next == runs.begin()) return runs.end();
    auto run = std::prev(next);
    return run->second >= number ? run : runs.end();
  }
  Runs::iterator around(int64_t number) { return find(runs_, number); }
  Runs::const_iterator around(int64_t number) const { return find(runs_, number); }

  Runs runs_;  // first and last number of each; between two runs at least one number is missing
};

}  // namespace coracle::kinds
