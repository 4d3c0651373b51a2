// SPDX-License-Identifier: Apache-2.0
// See bpf.h.
#include "runtime/sys/bpf.h"

#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

namespace coracle::sys {
namespace {

bpf_insn instruction(uint8_t code, uint8_t to, uint8_t from, int16_t offset, int32_t value) {
  bpf_insn out{};
  out.code = code;
  out.dst_reg = to & 15;
  out.src_reg = from & 15;
  out.off = offset;
  out.imm = value;
  return out;
}

constexpr uint8_t kLoad = BPF_LDX | BPF_MEM | BPF_W;
constexpr uint8_t kMove = BPF_ALU64 | BPF_MOV, kMove32 = BPF_ALU | BPF_MOV;
constexpr uint8_t kJumpIfNot = BPF_JMP | BPF_JNE | BPF_K;
// Registers: 2 = type, 3 = access, 4 = major, 5 = minor.

uint32_t access_bits(const DeviceMatch& rule) {
  return uint32_t(rule.make) * BPF_DEVCG_ACC_MKNOD | uint32_t(rule.read) * BPF_DEVCG_ACC_READ |
         uint32_t(rule.write) * BPF_DEVCG_ACC_WRITE;
}

// Instructions that leave by returning the rule's verdict, or fall through when it does not match.
std::vector<bpf_insn> match(const DeviceMatch& rule) {
  constexpr uint32_t kAllAccess = BPF_DEVCG_ACC_MKNOD | BPF_DEVCG_ACC_READ | BPF_DEVCG_ACC_WRITE;
  std::vector<bpf_insn> body;
  std::vector<size_t> misses;  // jumps to the end of this rule
  auto unless = [&](uint8_t jump, uint8_t reg, uint8_t other, int32_t value) {
    misses.push_back(body.size());
    body.push_back(instruction(jump, reg, other, 0, value));
  };
  if (rule.type != 'a') unless(kJumpIfNot, 2, 0, rule.type == 'b' ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR);
  if (access_bits(rule) != kAllAccess) {
    // Allowed when all that is asked is in the rule; refused when any of it is.
    body.push_back(instruction(kMove32 | BPF_X, 1, 3, 0, 0));
    body.push_back(instruction(BPF_ALU | BPF_AND | BPF_K, 1, 0, 0, int32_t(access_bits(rule))));
    if (rule.allow) {
      unless(BPF_JMP | BPF_JNE | BPF_X, 1, 3, 0);
    } else {
      unless(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 0);
    }
  }
  if (rule.major) unless(kJumpIfNot, 4, 0, int32_t(*rule.major));
  if (rule.minor) unless(kJumpIfNot, 5, 0, int32_t(*rule.minor));
  body.push_back(instruction(kMove | BPF_K, 0, 0, 0, rule.allow));
  body.push_back(instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
  for (size_t at : misses) body[at].off = int16_t(body.size() - at - 1);
  return body;
}

}  // namespace

std::vector<uint64_t> device_program(const std::vector<DeviceMatch>& rules) {
  std::vector<bpf_insn> program = {
      instruction(kLoad, 2, 1, offsetof(bpf_cgroup_dev_ctx, access_type), 0),
      instruction(kMove32 | BPF_X, 3, 2, 0, 0),
      instruction(BPF_ALU | BPF_AND | BPF_K, 2, 0, 0, 0xffff),
      instruction(BPF_ALU | BPF_RSH | BPF_K, 3, 0, 0, 16),
      instruction(kLoad, 4, 1, offsetof(bpf_cgroup_dev_ctx, major), 0),
      instruction(kLoad, 5, 1, offsetof(bpf_cgroup_dev_ctx, minor), 0),
  };
  bool decides_all = false;
  for (auto rule = rules.rbegin(); rule != rules.rend() && !decides_all; ++rule) {
    for (const bpf_insn& step : match(*rule)) program.push_back(step);
    // What comes after such a rule can never be reached, and the kernel refuses programs with dead ends.
    decides_all = rule->type == 'a' && !rule->major && !rule->minor && rule->read && rule->write && rule->make;
  }
  if (!decides_all) {
    program.push_back(instruction(kMove | BPF_K, 0, 0, 0, 0));
    program.push_back(instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
  }
  std::vector<uint64_t> out(program.size());
  static_assert(sizeof(bpf_insn) == sizeof(uint64_t));
  std::memcpy(out.data(), program.data(), program.size() * sizeof(uint64_t));
  return out;
}

Result<Fd> load_device_program(const std::vector<uint64_t>& instructions) {
  bpf_attr attributes{};
  attributes.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
  attributes.insn_cnt = uint32_t(instructions.size());
  attributes.insns = reinterpret_cast<uint64_t>(instructions.data());
  attributes.license = reinterpret_cast<uint64_t>("Apache-2.0");
  Fd program(int(::syscall(SYS_bpf, BPF_PROG_LOAD, &attributes, sizeof attributes)));
  if (!program) return Error::from_errno("load device filter");
  return program;
}

Result<void> attach_device_program(const Fd& cgroup, const Fd& program) {
  bpf_attr attributes{};
  attributes.target_fd = uint32_t(cgroup.get());
  attributes.attach_bpf_fd = uint32_t(program.get());
  attributes.attach_type = BPF_CGROUP_DEVICE;
  attributes.attach_flags = BPF_F_ALLOW_MULTI;
  if (::syscall(SYS_bpf, BPF_PROG_ATTACH, &attributes, sizeof attributes) < 0)
    return Error::from_errno("attach device filter");
  return {};
}

}  // namespace coracle::sys
