// SPDX-License-Identifier: Apache-2.0
// See seccomp_newest.h. The instructions:
//   load the architecture;
//   for each: not it → the next; load the number; beyond the newest → ENOSYS; go to the program.
// Two architectures have numbers in two places: x32 shares x86-64's name and counts from 1 << 30, Arm has a few of its
// own above 0xf0000. Source: seccomp(2), bpf(2); linux/filter.h.
#include "runtime/container/seccomp_newest.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace coracle::runtime {
namespace {

constexpr uint32_t kX32Bit = 0x40000000, kArmOwn = 0xf0000, kNoLimit = 0xffffffff;

uint64_t step(uint16_t code, uint8_t when_true, uint8_t when_false, uint32_t value) {
  sock_filter filter{code, when_true, when_false, value};
  uint64_t out;
  std::memcpy(&out, &filter, sizeof out);
  return out;
}

constexpr uint16_t kGo = BPF_JMP | BPF_JA;
// Where a jump to the program stands, until its distance is known.
constexpr uint32_t kToProgram = 0xffffffff;

void refuse_beyond(std::vector<uint64_t>& out, int newest) {
  if (newest >= 0) {
    out.push_back(step(BPF_JMP | BPF_JGT | BPF_K, 0, 1, uint32_t(newest)));
    out.push_back(step(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOSYS));
  }
  out.push_back(step(kGo, 0, 0, kToProgram));
}

// Numbers from `second_from` on have their own newest one, or are none of our business (-1).
std::vector<uint64_t> section(int newest, uint32_t second_from, int second_newest) {
  std::vector<uint64_t> low, high, out;
  refuse_beyond(low, newest);
  refuse_beyond(high, second_newest);
  out.push_back(step(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)));
  if (second_from != kNoLimit) {
    out.push_back(step(BPF_JMP | BPF_JGE | BPF_K, 0, uint8_t(high.size()), second_from));
    out.insert(out.end(), high.begin(), high.end());
  }
  out.insert(out.end(), low.begin(), low.end());
  return out;
}

void aim_at_program(std::vector<uint64_t>& head) {
  for (size_t i = 0; i < head.size(); ++i) {
    sock_filter filter;
    std::memcpy(&filter, &head[i], sizeof filter);
    if (filter.code == kGo && filter.k == kToProgram) head[i] = step(kGo, 0, 0, uint32_t(head.size() - i - 1));
  }
}

}  // namespace

NewestCalls::NewestCalls(const std::vector<uint32_t>& architectures) {
  for (uint32_t architecture : architectures) all_.push_back({architecture, -1});
}

void NewestCalls::add(const std::vector<std::string>& calls) {
  for (const std::string& name : calls) {
    for (Numbers& numbers : all_) {
      int number = ::seccomp_syscall_resolve_name_arch(numbers.architecture, name.c_str());
      bool is_arms_own = numbers.architecture == SCMP_ARCH_ARM && number >= int(kArmOwn);
      if (number >= 0 && !is_arms_own) numbers.newest = std::max(numbers.newest, number);
    }
  }
}

void NewestCalls::answer(std::vector<uint64_t>& program) const {
  int x32 = -1;
  for (const Numbers& numbers : all_)
    if (numbers.architecture == SCMP_ARCH_X32) x32 = numbers.newest;
  std::vector<uint64_t> head = {step(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, arch))};
  for (const Numbers& numbers : all_) {
    if (numbers.architecture == SCMP_ARCH_X32 || numbers.newest < 0) continue;  // x32 is part of x86-64's
    std::vector<uint64_t> body = numbers.architecture == SCMP_ARCH_X86_64 ? section(numbers.newest, kX32Bit, x32)
                                 : numbers.architecture == SCMP_ARCH_ARM  ? section(numbers.newest, kArmOwn, -1)
                                                                          : section(numbers.newest, kNoLimit, -1);
    head.push_back(step(BPF_JMP | BPF_JEQ | BPF_K, 0, uint8_t(body.size()), numbers.architecture));
    head.insert(head.end(), body.begin(), body.end());
  }
  if (head.size() == 1) return;
  aim_at_program(head);
  program.insert(program.begin(), head.begin(), head.end());
}

}  // namespace coracle::runtime
