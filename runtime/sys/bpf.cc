// SPDX-License-Identifier: Apache-2.0
// See bpf.h.
#include "runtime/sys/bpf.h"

#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <set>
#include <span>

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
constexpr uint8_t kJumpIfNot = BPF_JMP32 | BPF_JNE | BPF_K, kJumpIf = BPF_JMP32 | BPF_JEQ | BPF_K;
constexpr uint8_t kAnd = BPF_ALU | BPF_AND | BPF_K;
// Registers: 2 = type, 3 = requested access that is not decided yet, 4 = major, 5 = minor.
constexpr uint32_t kAllAccess = BPF_DEVCG_ACC_MKNOD | BPF_DEVCG_ACC_READ | BPF_DEVCG_ACC_WRITE;

uint32_t access_bits(const DeviceMatch& rule) {
  return uint32_t(rule.make) * BPF_DEVCG_ACC_MKNOD | uint32_t(rule.read) * BPF_DEVCG_ACC_READ |
         uint32_t(rule.write) * BPF_DEVCG_ACC_WRITE;
}

// Whether it says the same of each access to a device of one type. Such rules need no look at the access.
bool is_whole(const DeviceMatch& rule) { return rule.type != 'a' && rule.major && access_bits(rule) == kAllAccess; }

// Instructions for whole rules of one type and one verdict, whose order does not matter. The kernel follows each jump when it
// checks a program, which takes longer than to load it: the type is compared once, and each major number once.
std::vector<bpf_insn> match_whole(std::span<const DeviceMatch> rules) {
  std::map<uint32_t, std::set<uint32_t>> minors;  // by major; none: each
  std::set<uint32_t> majors;                      // each minor of these
  for (const DeviceMatch& rule : rules) {
    if (rule.minor) minors[*rule.major].insert(*rule.minor);
    else majors.insert(*rule.major);
  }
  std::vector<bpf_insn> body;
  std::vector<size_t> hits;  // jumps to the verdict
  auto jump = [&](uint8_t kind, uint8_t reg, uint32_t value) {
    body.push_back(instruction(kind, reg, 0, 0, int32_t(value)));
    return body.size() - 1;
  };
  const size_t other_type = jump(kJumpIfNot, 2, rules[0].type == 'b' ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR);
  for (uint32_t major : majors) hits.push_back(jump(kJumpIf, 4, major));
  for (const auto& [major, some] : minors) {
    const size_t other_major = jump(kJumpIfNot, 4, major);
    for (uint32_t minor : some) hits.push_back(jump(kJumpIf, 5, minor));
    body[other_major].off = int16_t(body.size() - other_major - 1);
  }
  body.push_back(instruction(BPF_JMP | BPF_JA, 0, 0, 2, 0));
  for (size_t at : hits) body[at].off = int16_t(body.size() - at - 1);
  body.push_back(instruction(kMove | BPF_K, 0, 0, 0, rules[0].allow));
  body.push_back(instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
  body[other_type].off = int16_t(body.size() - other_type - 1);
  return body;
}

// Instructions for one rule: they return a verdict, or continue with the next rule while some access is undecided.
std::vector<bpf_insn> match(const DeviceMatch& rule) {
  std::vector<bpf_insn> body;
  std::vector<size_t> misses;  // jumps to the end of this rule
  auto unless = [&](uint8_t jump, uint8_t reg, int32_t value) {
    misses.push_back(body.size());
    body.push_back(instruction(jump, reg, 0, 0, value));
  };
  const auto bits = int32_t(access_bits(rule));
  if (rule.type != 'a') unless(kJumpIfNot, 2, rule.type == 'b' ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR);
  if (rule.major) unless(kJumpIfNot, 4, int32_t(*rule.major));
  if (rule.minor) unless(kJumpIfNot, 5, int32_t(*rule.minor));
  if (bits != kAllAccess && rule.allow) {  // its accesses are decided; earlier rules decide the others
    body.push_back(instruction(kAnd, 3, 0, 0, int32_t(~uint32_t(bits))));
    unless(kJumpIfNot, 3, 0);
  } else if (bits != kAllAccess) {  // a forbidden access denies the request
    body.push_back(instruction(kMove32 | BPF_X, 1, 3, 0, 0));
    body.push_back(instruction(kAnd, 1, 0, 0, bits));
    unless(kJumpIf, 1, 0);
  }
  body.push_back(instruction(kMove | BPF_K, 0, 0, 0, rule.allow));
  body.push_back(instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
  for (size_t at : misses) body[at].off = int16_t(body.size() - at - 1);
  return body;
}

constexpr char kProgramName[] = "coracle_devices";  // identifies our programs
static_assert(sizeof kProgramName <= BPF_OBJ_NAME_LEN);
constexpr uint32_t kProgramsMax = 64;  // the kernel's own limit for one cgroup

int bpf(int command, bpf_attr& attributes) { return int(::syscall(SYS_bpf, command, &attributes, sizeof attributes)); }

// Our device programs that are attached to `cgroup` itself, in order.
Result<std::vector<Fd>> own_programs(const Fd& cgroup) {
  uint32_t ids[kProgramsMax];
  bpf_attr query{};
  query.query.target_fd = uint32_t(cgroup.get());
  query.query.attach_type = BPF_CGROUP_DEVICE;
  query.query.prog_ids = reinterpret_cast<uintptr_t>(ids);
  query.query.prog_cnt = kProgramsMax;
  if (bpf(BPF_PROG_QUERY, query) < 0) return Error::from_errno("list device filters");
  std::vector<Fd> out;
  for (uint32_t i = 0; i < query.query.prog_cnt; ++i) {
    bpf_attr by_id{};
    by_id.prog_id = ids[i];
    Fd program(bpf(BPF_PROG_GET_FD_BY_ID, by_id));
    if (!program && errno == ENOENT) continue;  // detached meanwhile
    if (!program) return Error::from_errno("open device filter");
    bpf_prog_info info{};
    bpf_attr about{};
    about.info.bpf_fd = uint32_t(program.get());
    about.info.info_len = sizeof info;
    about.info.info = reinterpret_cast<uintptr_t>(&info);
    if (bpf(BPF_OBJ_GET_INFO_BY_FD, about) < 0) return Error::from_errno("look at device filter");
    if (std::strcmp(info.name, kProgramName) == 0) out.push_back(std::move(program));
  }
  return out;
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
  for (size_t left = rules.size(); left > 0 && !decides_all;) {
    const DeviceMatch& last = rules[left - 1];
    size_t first = left;
    while (first > 0 && is_whole(rules[first - 1]) && rules[first - 1].type == last.type && rules[first - 1].allow == last.allow)
      --first;
    const bool has_whole = first < left;
    if (!has_whole) --first;
    const auto some = std::span(rules).subspan(first, left - first);
    for (const bpf_insn& step : has_whole ? match_whole(some) : match(last)) program.push_back(step);
    // Instructions after such a rule are unreachable, and the kernel rejects programs with unreachable code.
    decides_all = last.type == 'a' && !last.major && !last.minor && access_bits(last) == kAllAccess;
    left = first;
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
  attributes.insns = reinterpret_cast<uintptr_t>(instructions.data());
  attributes.license = reinterpret_cast<uintptr_t>("Apache-2.0");
  std::memcpy(attributes.prog_name, kProgramName, sizeof kProgramName);
  Fd program(bpf(BPF_PROG_LOAD, attributes));
  if (!program) return Error::from_errno("load device filter");
  return program;
}

Result<void> attach_device_program(const Fd& cgroup, const Fd& program) {
  bpf_attr attributes{};
  attributes.target_fd = uint32_t(cgroup.get());
  attributes.attach_bpf_fd = uint32_t(program.get());
  attributes.attach_type = BPF_CGROUP_DEVICE;
  attributes.attach_flags = BPF_F_ALLOW_MULTI;
  if (bpf(BPF_PROG_ATTACH, attributes) < 0) return Error::from_errno("attach device filter");
  return {};
}

Result<void> replace_device_program(const Fd& cgroup, const Fd& program) {
  std::vector<Fd> old = TRY(own_programs(cgroup));
  if (old.empty()) return attach_device_program(cgroup, program);
  bpf_attr attributes{};
  attributes.target_fd = uint32_t(cgroup.get());
  attributes.attach_bpf_fd = uint32_t(program.get());
  attributes.attach_type = BPF_CGROUP_DEVICE;
  attributes.attach_flags = BPF_F_ALLOW_MULTI | BPF_F_REPLACE;
  attributes.replace_bpf_fd = uint32_t(old[0].get());
  if (bpf(BPF_PROG_ATTACH, attributes) < 0) return Error::from_errno("replace device filter");
  for (size_t i = 1; i < old.size(); ++i) {  // all programs must allow, so an older one would still deny
    bpf_attr detach{};
    detach.target_fd = uint32_t(cgroup.get());
    detach.attach_bpf_fd = uint32_t(old[i].get());
    detach.attach_type = BPF_CGROUP_DEVICE;
    if (bpf(BPF_PROG_DETACH, detach) < 0) return Error::from_errno("detach device filter");
  }
  return {};
}

}  // namespace coracle::sys
