// SPDX-License-Identifier: Apache-2.0
// Runs a seccomp program as the kernel would: it returns the action for a call without making the call.
#pragma once

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstring>

#include "runtime/container/seccomp_program.h"

namespace coracle::runtime {

inline uint32_t run_filter(const SeccompProgram& program, const seccomp_data& data) {
  uint32_t a = 0, x = 0;
  auto load = [&](uint32_t offset) {
    uint32_t word;
    std::memcpy(&word, reinterpret_cast<const char*>(&data) + offset, sizeof word);
    return word;
  };
  for (size_t pc = 0; pc < program.instructions.size(); ++pc) {
    sock_filter step;
    std::memcpy(&step, &program.instructions[pc], sizeof step);
    bool jump = false;
    switch (step.code) {
      case BPF_LD | BPF_W | BPF_ABS: a = load(step.k); continue;
      case BPF_RET | BPF_K: return step.k;
      case BPF_JMP | BPF_JA: pc += step.k; continue;
      case BPF_ALU | BPF_AND | BPF_K: a &= step.k; continue;
      case BPF_MISC | BPF_TAX: x = a; continue;
      case BPF_JMP | BPF_JEQ | BPF_K: jump = a == step.k; break;
      case BPF_JMP | BPF_JGT | BPF_K: jump = a > step.k; break;
      case BPF_JMP | BPF_JGE | BPF_K: jump = a >= step.k; break;
      case BPF_JMP | BPF_JSET | BPF_K: jump = a & step.k; break;
      default: ADD_FAILURE() << "instruction " << step.code << " at " << pc; return x;
    }
    pc += jump ? step.jt : step.jf;
  }
  ADD_FAILURE() << "the program runs off its end";
  return 0;
}

}  // namespace coracle::runtime
