// SPDX-License-Identifier: Apache-2.0
// Untrusted seccomp profiles: the result is a one-line error, or a program that the kernel would accept and that applies the
// default action to every call that the profile does not name.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/container/seccomp_program.h"

using namespace coracle;

namespace {

void must(bool holds) {
  if (!holds) __builtin_trap();
}

std::vector<sock_filter> steps_of(const runtime::SeccompProgram& program) {
  std::vector<sock_filter> out(program.instructions.size());
  if (!out.empty()) std::memcpy(out.data(), program.instructions.data(), out.size() * sizeof out[0]);
  return out;
}

// As the kernel's own check: known instructions, jumps within the program, a return at the end.
void check_form(const std::vector<sock_filter>& steps) {
  must(!steps.empty() && steps.size() <= runtime::kSeccompInstructionsMax);
  for (size_t i = 0; i < steps.size(); ++i) {
    const sock_filter& step = steps[i];
    switch (BPF_CLASS(step.code)) {
      case BPF_LD: must(step.code == (BPF_LD | BPF_W | BPF_ABS) && step.k < sizeof(seccomp_data) && step.k % 4 == 0); break;
      case BPF_ALU: must(step.code == (BPF_ALU | BPF_AND | BPF_K)); break;
      case BPF_JMP:
        if (BPF_OP(step.code) == BPF_JA) must(step.k < steps.size() - i - 1);
        else must(i + 1 + std::max(step.jt, step.jf) < steps.size());
        break;
      default: must(step.code == (BPF_RET | BPF_K));
    }
  }
  must(steps.back().code == (BPF_RET | BPF_K));
}

uint32_t decide(const std::vector<sock_filter>& steps, const seccomp_data& data) {
  uint32_t a = 0;
  for (size_t i = 0;; ++i) {
    const sock_filter& step = steps[i];
    bool jump = false;
    switch (step.code) {
      case BPF_LD | BPF_W | BPF_ABS: std::memcpy(&a, reinterpret_cast<const char*>(&data) + step.k, sizeof a); continue;
      case BPF_ALU | BPF_AND | BPF_K: a &= step.k; continue;
      case BPF_RET | BPF_K: return step.k;
      case BPF_JMP | BPF_JA: i += step.k; continue;
      case BPF_JMP | BPF_JEQ | BPF_K: jump = a == step.k; break;
      case BPF_JMP | BPF_JGT | BPF_K: jump = a > step.k; break;
      case BPF_JMP | BPF_JGE | BPF_K: jump = a >= step.k; break;
      case BPF_JMP | BPF_JSET | BPF_K: jump = (a & step.k) != 0; break;
      default: must(false);
    }
    i += jump ? step.jt : step.jf;
  }
}

bool names(const oci::SeccompProfile& profile, const char* call) {
  auto holds = [&](const std::vector<std::string>& list) { return std::find(list.begin(), list.end(), call) != list.end(); };
  for (const oci::SeccompRule& rule : profile.rules)
    if (holds(rule.names)) return true;
  for (const auto& [capability, calls] : profile.by_capability)
    if (holds(calls)) return true;
  return false;
}

uint32_t by_default(const oci::SeccompProfile& profile) {
  switch (profile.otherwise.action) {
    case oci::SeccompAction::kill_thread: return SECCOMP_RET_KILL_THREAD;
    case oci::SeccompAction::kill_process: return SECCOMP_RET_KILL_PROCESS;
    case oci::SeccompAction::trap: return SECCOMP_RET_TRAP;
    case oci::SeccompAction::errno_: return SECCOMP_RET_ERRNO | profile.otherwise.errno_ret;
    case oci::SeccompAction::trace: return SECCOMP_RET_TRACE | profile.otherwise.errno_ret;
    case oci::SeccompAction::allow: return SECCOMP_RET_ALLOW;
    case oci::SeccompAction::log: return SECCOMP_RET_LOG;
    case oci::SeccompAction::notify: break;  // it is refused
  }
  must(false);
  return 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto given = parse_json(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!given) return 0;
  auto profile = oci::parse_seccomp(*given);
  auto program = runtime::compile_seccomp(*given, ~uint64_t(0));
  must(profile.ok() || !program.ok());
  if (!program) {
    must(!program.error().text().empty() && program.error().text().find('\n') == std::string::npos);
    return 0;
  }
  std::vector<sock_filter> steps = steps_of(*program);
  check_form(steps);
  struct Call {
    const char* name;
    int number;
  };
  for (const Call& call : {Call{"read", SYS_read}, Call{"ptrace", SYS_ptrace}, Call{"kexec_load", SYS_kexec_load},
                           Call{"openat2", SYS_openat2}, Call{"a call of the future", 100000}}) {
    if (names(*profile, call.name)) continue;
    seccomp_data question{};
    question.nr = call.number;
#if defined(__x86_64__)
    question.arch = AUDIT_ARCH_X86_64;
#else
    question.arch = AUDIT_ARCH_AARCH64;
#endif
    std::fill(std::begin(question.args), std::end(question.args), size * 0x9e3779b97f4a7c15);
    uint32_t got = decide(steps, question);
    must(got == by_default(*profile) || got == (SECCOMP_RET_ERRNO | ENOSYS));
  }
  return 0;
}
