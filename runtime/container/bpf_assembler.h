// SPDX-License-Identifier: Apache-2.0
// Assembles a classic BPF program over seccomp_data from the last instruction to the first, so that the target of an instruction
// exists when it is emitted. A test therefore contains both of its jumps, which reach 255 instructions, and equal return
// instructions are shared. (The kernel's time to load a program grows with its instructions.) Source: seccomp(2); bpf(4),
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
  // The target of a jump.
  struct Place {
    size_t to_end = 0;    // number of instructions from the target to the end of the program; 0: any return of `action`
    uint32_t action = 0;  // SECCOMP_RET_*
  };

  static Place ret(uint32_t action) { return {.action = action}; }
  Place load(uint32_t offset, Place next) { return step(BPF_LD | BPF_W | BPF_ABS, offset, next); }
  Place mask(uint32_t bits, Place next) { return step(BPF_ALU | BPF_AND | BPF_K, bits, next); }
  // `test`: BPF_JEQ, BPF_JGT or BPF_JGE; compares the loaded value with `value`.
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
  static constexpr size_t kReach = UINT8_MAX - 1;  // of a branch: a jump for the other branch may be inserted

  size_t distance(Place place) const { return backward_.size() - place.to_end; }
  Place put(const sock_filter& instruction) {
    backward_.push_back(instruction);
    return {.to_end = backward_.size()};
  }
  Place step(uint16_t code, uint32_t value, Place next) {
    directly_before(next);
    return put({code, 0, 0, value});
  }
  // Emits a jump or return, if needed, so that the next emitted instruction continues at `next`.
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
  std::map<uint32_t, Place> returns_;  // the nearest return instruction by action
};

}  // namespace coracle::runtime
