// SPDX-License-Identifier: Apache-2.0
// The device filter, interpreted as the kernel would run it: every form of rule, alone and combined, compared with a direct
// evaluation of the rules in C++.
#include "runtime/sys/bpf.h"

#include <gtest/gtest.h>
#include <linux/bpf.h>

#include <cstring>
#include <random>

namespace coracle::sys {
namespace {

constexpr uint32_t kMake = BPF_DEVCG_ACC_MKNOD, kRead = BPF_DEVCG_ACC_READ, kWrite = BPF_DEVCG_ACC_WRITE;

struct Asked {
  char type;
  uint32_t access, major, minor;
};

// Interprets the few instructions that device_program() uses; any other instruction is a failure, and so is running past the end.
bool run(const std::vector<uint64_t>& program, const Asked& asked) {
  uint64_t reg[11] = {};
  bpf_cgroup_dev_ctx context{asked.access << 16 | uint32_t(asked.type == 'b' ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR),
                             asked.major, asked.minor};
  for (size_t pc = 0; pc < program.size(); ++pc) {
    bpf_insn step;
    std::memcpy(&step, &program[pc], sizeof step);
    uint64_t& to = reg[step.dst_reg];
    const uint64_t from = reg[step.src_reg];
    const auto imm = uint32_t(step.imm);
    switch (step.code) {
      case BPF_LDX | BPF_MEM | BPF_W: {
        uint32_t word;
        std::memcpy(&word, reinterpret_cast<const char*>(&context) + step.off, sizeof word);
        to = word;
        continue;
      }
      case BPF_ALU | BPF_MOV | BPF_X: to = uint32_t(from); continue;
      case BPF_ALU64 | BPF_MOV | BPF_K: to = uint64_t(int64_t(step.imm)); continue;
      case BPF_ALU | BPF_AND | BPF_K: to = uint32_t(to) & imm; continue;
      case BPF_ALU | BPF_RSH | BPF_K: to = uint32_t(to) >> imm; continue;
      case BPF_JMP32 | BPF_JNE | BPF_K:
        if (uint32_t(to) != imm) pc += size_t(step.off);
        continue;
      case BPF_JMP32 | BPF_JEQ | BPF_K:
        if (uint32_t(to) == imm) pc += size_t(step.off);
        continue;
      case BPF_JMP | BPF_JA: pc += size_t(step.off); continue;
      case BPF_JMP | BPF_EXIT: return reg[0];
      default: ADD_FAILURE() << "instruction " << int(step.code) << " at " << pc; return false;
    }
  }
  ADD_FAILURE() << "the program runs off its end";
  return false;
}

DeviceMatch rule(bool allow, char type, std::optional<uint32_t> major, std::optional<uint32_t> minor, std::string_view access) {
  auto has = [&](char c) { return access.find(c) != access.npos; };
  return {allow, type, major, minor, has('r'), has('w'), has('m')};
}

// The expected decision: for each device and access, the last matching rule decides.
bool meant(const std::vector<DeviceMatch>& rules, const Asked& asked) {
  for (uint32_t bit : {kMake, kRead, kWrite}) {
    if (!(asked.access & bit)) continue;
    bool is_allowed = false;
    for (const DeviceMatch& each : rules) {
      bool speaks = bit == kMake ? each.make : bit == kRead ? each.read : each.write;
      if (speaks && (each.type == 'a' || each.type == asked.type) && (!each.major || *each.major == asked.major) &&
          (!each.minor || *each.minor == asked.minor))
        is_allowed = each.allow;
    }
    if (!is_allowed) return false;
  }
  return true;
}

struct Row {
  const char* name;
  std::vector<DeviceMatch> rules;
  Asked asked;
  bool want;
};

TEST(DeviceProgram, decides) {
  const DeviceMatch all = rule(true, 'a', {}, {}, "rwm"), none = rule(false, 'a', {}, {}, "rwm");
  const Row rows[] = {
      {"no rule, nothing allowed", {}, {'c', kRead, 1, 3}, false},
      {"all", {all}, {'b', kMake, 8, 0}, true},
      {"none", {none}, {'c', kRead, 1, 3}, false},
      {"none, then one", {none, rule(true, 'c', 1, 3, "rwm")}, {'c', kRead | kWrite, 1, 3}, true},
      {"… of another minor", {none, rule(true, 'c', 1, 3, "rwm")}, {'c', kRead, 1, 5}, false},
      {"… of another major", {none, rule(true, 'c', 1, 3, "rwm")}, {'c', kRead, 2, 3}, false},
      {"… of another type", {none, rule(true, 'c', 1, 3, "rwm")}, {'b', kRead, 1, 3}, false},
      {"any minor", {rule(true, 'c', 136, {}, "rw")}, {'c', kRead, 136, 77}, true},
      {"any major", {rule(true, 'c', {}, 3, "rw")}, {'c', kRead, 9, 3}, true},
      {"any of a type", {rule(true, 'b', {}, {}, "m")}, {'b', kMake, 9, 3}, true},
      {"'a' with numbers", {rule(true, 'a', 1, 3, "r")}, {'b', kRead, 1, 3}, true},
      {"a part of what is allowed", {rule(true, 'c', 1, 3, "rwm")}, {'c', kMake, 1, 3}, true},
      {"more than is allowed", {rule(true, 'c', 1, 3, "r")}, {'c', kRead | kWrite, 1, 3}, false},
      {"allowed by two rules together",
       {rule(true, 'c', 1, 3, "r"), rule(true, 'c', 1, {}, "w")},
       {'c', kRead | kWrite, 1, 3},
       true},
      {"refused after allowed", {all, rule(false, 'c', 1, 3, "w")}, {'c', kWrite, 1, 3}, false},
      {"… in part: the rest is allowed", {all, rule(false, 'c', 1, 3, "w")}, {'c', kRead, 1, 3}, true},
      {"… in part: asked together", {all, rule(false, 'c', 1, 3, "w")}, {'c', kRead | kWrite, 1, 3}, false},
      {"allowed after refused", {rule(false, 'c', 1, 3, "rwm"), all}, {'c', kWrite, 1, 3}, true},
      {"allowed again in part", {all, rule(false, 'c', 1, 3, "rw"), rule(true, 'c', 1, 3, "r")}, {'c', kRead, 1, 3}, true},
      {"… and no more", {all, rule(false, 'c', 1, 3, "rw"), rule(true, 'c', 1, 3, "r")}, {'c', kRead | kWrite, 1, 3}, false},
      {"a rule of nothing", {rule(true, 'a', {}, {}, "")}, {'c', kRead, 1, 3}, false},
      {"a refusal of nothing", {all, rule(false, 'a', {}, {}, "")}, {'c', kRead, 1, 3}, true},
      {"what comes before all does not count",
       {rule(false, 'c', 1, 3, "rwm"), all, rule(true, 'b', 8, 0, "r")},
       {'c', kRead, 1, 3},
       true},
      {"one of several whole ones", {rule(true, 'c', 1, 3, "rwm"), rule(true, 'c', 1, 5, "rwm")}, {'c', kRead, 1, 5}, true},
      {"… none of them", {rule(true, 'c', 1, 3, "rwm"), rule(true, 'c', 2, 5, "rwm")}, {'c', kRead, 1, 5}, false},
      {"… but refused by a later one",
       {rule(true, 'c', 1, 3, "rwm"), rule(true, 'c', 136, {}, "rwm"), rule(false, 'c', 136, 5, "rwm")},
       {'c', kRead, 136, 5},
       false},
      {"numbers of 32 bits", {rule(true, 'c', 0xffffffff, 0x80000000, "r")}, {'c', kRead, 0xffffffff, 0x80000000}, true},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(run(device_program(row.rules), row.asked), row.want) << row.name;
    EXPECT_EQ(meant(row.rules, row.asked), row.want) << row.name;
  }
}

TEST(DeviceProgram, means_what_the_rules_mean) {
  std::mt19937 random(20);
  auto pick = [&](uint32_t n) { return uint32_t(random() % n); };
  for (int round = 0; round < 3000; ++round) {
    std::vector<DeviceMatch> rules;
    for (uint32_t i = pick(9); i > 0; --i) {
      std::optional<uint32_t> major, minor;
      if (pick(3)) major = pick(3);
      if (pick(3)) minor = pick(3);
      const bool is_whole = pick(2);
      rules.push_back({pick(3) > 0, "abc"[pick(3)], major, minor, is_whole || pick(2), is_whole || pick(2), is_whole || pick(2)});
    }
    auto program = device_program(rules);
    for (int i = 0; i < 20; ++i) {
      Asked asked{"bc"[pick(2)], 1 + pick(7), pick(3), pick(3)};
      ASSERT_EQ(run(program, asked), meant(rules, asked)) << "round " << round;
    }
  }
}

// The kernel's verifier: no unreachable code, no jump out of range. Without permission to load programs, the other tests still
// count.
TEST(DeviceProgram, is_accepted_by_the_kernel) {
  auto loaded = load_device_program(device_program({}));
  if (!loaded) GTEST_SKIP() << loaded.error().text();
  std::vector<DeviceMatch> rules;
  for (uint32_t i = 0; i < kDeviceRulesMax; ++i)
    rules.push_back(rule(i % 2, "abc"[i % 3], i, i % 5 ? std::optional(i) : std::nullopt, i % 7 ? "r" : "rwm"));
  std::vector<DeviceMatch> whole;
  for (uint32_t i = 0; i < kDeviceRulesMax; ++i)
    whole.push_back(rule(i < 128, i % 64 < 32 ? 'c' : 'b', i % 7, i % 9 ? std::optional(i) : std::nullopt, "rwm"));
  for (const auto& each : {rules,
                           whole,
                           {rule(true, 'a', {}, {}, "rwm"), rules[0]},
                           {rules[0], rule(false, 'a', {}, {}, "rwm")},
                           {rule(true, 'a', {}, {}, "")}}) {
    auto result = load_device_program(device_program(each));
    EXPECT_TRUE(result) << result.error().text();
  }
}

}  // namespace
}  // namespace coracle::sys
