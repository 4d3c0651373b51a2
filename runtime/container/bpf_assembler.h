// SPDX-License-Identifier: Apache-2.0
// Instructions of a classic BPF program over seccomp_data, from the last one to the first: what comes next is there when an
// instruction is made. So a test holds both its ways in itself, which lead 255 instructions far, and all ways that return the
// same share one instruction. Loading a program takes the kernel time for each of them. Source: seccomp(2); bpf(4),
// linux/filter.h; kernel Documentation/networking/filter.rst.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

namespace coracle::runtime {

class BpfAssembler {
 public:
  // Where to go on.
  struct Place {
    size_t to_end = 0;    // how many instructions from there to the end of the program; 0: any that returns `action`
    uint32_t action = 0;  // SECCOMP_RET_*
  };

  static Place ret(uint32_t action) { return {.action = action}; }
  Place load(uint32_t offset, Place next) { return step(BPF_LD | BPF_W | BPF_ABS, offset, next); }
  Place mask(uint32_t bits, Place next) { return step(BPF_ALU | BPF_AND | BPF_K, bits, next); }
  // `test`: BPF_JEQ, BPF_JGT, BPF_JGE of what was loaded with `value`.
  Place test(uint16_t test, uint32_t value, Place yes, Place no) {
    yes = within_reach(yes);
    no = within_reach(no);
    return put({uint16_t(BPF_JMP | test | BPF_K), uint8_t(distance(yes)), uint8_t(distance(no)), value});
  }
  std::vector<uint64_t> program(Place first) {  // sock_filter
    directly_before(first);
    std::vector<uint64_t> out(backward_.size());
    for (size_t i = 0; i < out.size(); ++i) std::memcpy(&out[i], &backward_[out.size() - 1 - i], sizeof out[i]);
    return out;
  }

 private:
  static constexpr size_t kReach = UINT8_MAX - 1;  // of one of a test's ways: a jump for the other may come in between

  size_t distance(Place place) const { return backward_.size() - place.to_end; }
  Place put(const sock_filter& instruction) {
    backward_.push_back(instruction);
    return {.to_end = backward_.size()};
  }
  Place step(uint16_t code, uint32_t value, Place next) {
    directly_before(next);
    return put({code, 0, 0, value});
  }
  // What is put next goes on at `next`.
  void directly_before(Place next) {
    if (next.to_end == 0) put_return(next.action);
    else if (distance(next) > 0) put({BPF_JMP | BPF_JA, 0, 0, uint32_t(distance(next))});
  }
  Place put_return(uint32_t action) { return returns_[action] = put({BPF_RET | BPF_K, 0, 0, action}); }
  Place within_reach(Place place) {
    if (place.to_end == 0) {
      auto found = returns_.find(place.action);
      return found != returns_.end() && distance(found->second) < kReach ? found->second : put_return(place.action);
    }
    return distance(place) < kReach ? place : put({BPF_JMP | BPF_JA, 0, 0, uint32_t(distance(place))});
  }

  std::vector<sock_filter> backward_;
  std::map<uint32_t, Place> returns_;  // the nearest, by action
};

}  // namespace coracle::runtime
