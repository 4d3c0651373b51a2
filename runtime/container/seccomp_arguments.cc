// SPDX-License-Identifier: Apache-2.0
// See seccomp_arguments.h. The instructions:
//   load the architecture; for each: not it → the next;
//     load the number; for each call: not it → the next;
//       for each rule: a condition fails → the next; return what it says
//       return what is said of all other calls
//     go to the program
// Source: seccomp(2), bpf(2); linux/filter.h.
#include "runtime/container/seccomp_arguments.h"

#include <endian.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>

namespace coracle::runtime {
namespace {

using oci::SeccompCondition;
using oci::SeccompOperator;

// i386 has these calls twice: behind socketcall and ipc, where nobody can see their arguments, and by numbers of their
// own, which libseccomp does not tell. Source: arch/x86/entry/syscalls/syscall_32.tbl.
const std::map<std::string, uint32_t> kDirectNumbersOfI386 = {
    {"socket", 359},  {"socketpair", 360}, {"bind", 361},       {"connect", 362},     {"listen", 363},
    {"accept4", 364}, {"getsockopt", 365}, {"setsockopt", 366}, {"getsockname", 367}, {"getpeername", 368},
    {"sendto", 369},  {"sendmsg", 370},    {"recvfrom", 371},   {"recvmsg", 372},     {"shutdown", 373},
    {"semget", 393},  {"semctl", 394},     {"shmget", 395},     {"shmctl", 396},      {"shmat", 397},
    {"shmdt", 398},   {"msgget", 399},     {"msgsnd", 400},     {"msgrcv", 401},      {"msgctl", 402}};

bool is_multiplexed(int number) { return number <= -100 && number > -300; }  // __PNR_socket, ..., __PNR_shmctl

constexpr uint32_t kSocketcallOfI386 = 102, kIpcOfI386 = 117;
constexpr uint64_t kIpcCallMask = 0xffff;  // above stands a version

bool is_refusal(uint32_t action) {
  uint32_t what = action & SECCOMP_RET_ACTION_FULL;
  return what != SECCOMP_RET_ALLOW && what != SECCOMP_RET_LOG && what != SECCOMP_RET_TRACE;
}

uint32_t audit_of(uint32_t architecture) {  // x32 is x86-64 with a bit in the number
  return architecture == SCMP_ARCH_X32 ? uint32_t(SCMP_ARCH_X86_64) : architecture;
}

struct Label {
  std::vector<size_t> jumps;
};

class Assembler {
 public:
  void load(uint32_t offset) { emit(BPF_LD | BPF_W | BPF_ABS, 0, 0, offset); }
  void mask(uint32_t bits) { emit(BPF_ALU | BPF_AND | BPF_K, 0, 0, bits); }
  void give(uint32_t action) { emit(BPF_RET | BPF_K, 0, 0, action); }
  void go(Label& to) {
    to.jumps.push_back(out_.size());
    emit(BPF_JMP | BPF_JA, 0, 0, 0);
  }
  void when(uint16_t test, uint32_t value, Label& to) {
    emit(uint16_t(BPF_JMP | test | BPF_K), 0, 1, value);
    go(to);
  }
  void unless(uint16_t test, uint32_t value, Label& to) {
    emit(uint16_t(BPF_JMP | test | BPF_K), 1, 0, value);
    go(to);
  }
  void give_when_equal(uint32_t value, uint32_t action) {
    emit(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, value);
    give(action);
  }
  void here(const Label& label) {
    for (size_t jump : label.jumps) out_[jump].k = uint32_t(out_.size() - jump - 1);
  }
  const std::vector<sock_filter>& steps() const { return out_; }

 private:
  void emit(uint16_t code, uint8_t when_true, uint8_t when_false, uint32_t value) {
    out_.push_back({code, when_true, when_false, value});
  }
  std::vector<sock_filter> out_;
};

constexpr uint32_t low_of(uint32_t index) {
  return uint32_t(offsetof(seccomp_data, args)) + index * 8 + (__BYTE_ORDER == __BIG_ENDIAN ? 4 : 0);
}
constexpr uint32_t high_of(uint32_t index) {
  return uint32_t(offsetof(seccomp_data, args)) + index * 8 + (__BYTE_ORDER == __BIG_ENDIAN ? 0 : 4);
}
constexpr uint32_t low(uint64_t value) { return uint32_t(value); }
constexpr uint32_t high(uint64_t value) { return uint32_t(value >> 32); }

// Goes on where the condition holds, to `no` where it does not. The high word decides, unless it is equal.
void test(Assembler& to, const SeccompCondition& condition, Label& no) {
  Label yes;
  uint64_t value = condition.value;
  to.load(high_of(condition.index));
  switch (condition.op) {
    case SeccompOperator::eq:
      to.unless(BPF_JEQ, high(value), no);
      to.load(low_of(condition.index));
      to.unless(BPF_JEQ, low(value), no);
      break;
    case SeccompOperator::ne:
      to.unless(BPF_JEQ, high(value), yes);
      to.load(low_of(condition.index));
      to.when(BPF_JEQ, low(value), no);
      break;
    case SeccompOperator::gt:
    case SeccompOperator::ge:
      to.when(BPF_JGT, high(value), yes);
      to.unless(BPF_JEQ, high(value), no);
      to.load(low_of(condition.index));
      to.unless(condition.op == SeccompOperator::gt ? BPF_JGT : BPF_JGE, low(value), no);
      break;
    case SeccompOperator::lt:
    case SeccompOperator::le:
      to.when(BPF_JGT, high(value), no);
      to.unless(BPF_JEQ, high(value), yes);
      to.load(low_of(condition.index));
      to.when(condition.op == SeccompOperator::lt ? BPF_JGE : BPF_JGT, low(value), no);
      break;
    case SeccompOperator::masked_eq:
      to.mask(high(value));
      to.unless(BPF_JEQ, high(condition.value_two), no);
      to.load(low_of(condition.index));
      to.mask(low(value));
      to.unless(BPF_JEQ, low(condition.value_two), no);
      break;
  }
  to.here(yes);
}

// One comparison for equality of a small value.
bool is_plain(const SeccompClause& clause) {
  return clause.conditions.size() == 1 && clause.conditions[0].op == SeccompOperator::eq && high(clause.conditions[0].value) == 0;
}

// Writes the rules from `at` on that compare one argument with one small value each: the words are loaded once.
size_t write_values(Assembler& to, const std::vector<SeccompClause>& clauses, size_t at) {
  Label none;
  uint32_t index = clauses[at].conditions[0].index;
  to.load(high_of(index));
  to.unless(BPF_JEQ, 0, none);
  to.load(low_of(index));
  for (; at < clauses.size() && is_plain(clauses[at]) && clauses[at].conditions[0].index == index; ++at)
    to.give_when_equal(low(clauses[at].conditions[0].value), clauses[at].action);
  to.here(none);
  return at;
}

void write_clauses(Assembler& to, const std::vector<SeccompClause>& clauses, std::optional<uint32_t> otherwise, Label& end) {
  for (size_t i = 0; i < clauses.size();) {
    if (is_plain(clauses[i])) {
      i = write_values(to, clauses, i);
      continue;
    }
    Label no;
    for (const SeccompCondition& condition : clauses[i].conditions) test(to, condition, no);
    to.give(clauses[i].action);
    to.here(no);
    ++i;
  }
  if (otherwise) to.give(*otherwise);
  else to.go(end);
}

}  // namespace

ArgumentChecks::ArgumentChecks(const std::vector<uint32_t>& architectures) : architectures_(architectures) {}

bool ArgumentChecks::can_take(const std::string& call) const {
  for (uint32_t architecture : architectures_) {
    int number = ::seccomp_syscall_resolve_name_arch(architecture, call.c_str());
    if (is_multiplexed(number) && architecture != SCMP_ARCH_X86) return false;
  }
  return true;
}

const char* ArgumentChecks::multiplexer_of(const std::string& call) {
  int number = ::seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86, call.c_str());
  return !is_multiplexed(number) ? nullptr : number > -200 ? "socketcall" : "ipc";
}

void ArgumentChecks::add(const std::string& call, const std::vector<SeccompClause>& clauses, uint32_t otherwise,
                         bool is_seen_through) {
  for (uint32_t architecture : architectures_) {
    int number = ::seccomp_syscall_resolve_name_arch(architecture, call.c_str());
    if (is_multiplexed(number)) {
      if (!is_seen_through) add_multiplexed(number, clauses);
      auto direct = kDirectNumbersOfI386.find(call);
      number = direct == kDirectNumbersOfI386.end() ? -1 : int(direct->second);
    }
    if (number >= 0) calls_.push_back({audit_of(architecture), uint32_t(number), clauses, otherwise});
  }
}

// What the arguments are cannot be seen: what is refused for some of them is refused for all, and nothing is allowed.
void ArgumentChecks::add_multiplexed(int number, const std::vector<SeccompClause>& clauses) {
  for (const SeccompClause& clause : clauses) {
    if (!is_refusal(clause.action)) continue;
    bool is_socket = number > -200;
    uint64_t call = uint64_t(-number % 100);
    uint32_t by = is_socket ? kSocketcallOfI386 : kIpcOfI386;
    SeccompCondition which{.index = 0, .op = SeccompOperator::eq, .value = call};
    if (!is_socket) which = {.index = 0, .op = SeccompOperator::masked_eq, .value = kIpcCallMask, .value_two = call};
    auto place = std::find_if(calls_.begin(), calls_.end(),
                              [&](const Call& each) { return each.architecture == SCMP_ARCH_X86 && each.number == by; });
    if (place == calls_.end()) place = calls_.insert(calls_.end(), {SCMP_ARCH_X86, by, {}, std::nullopt});
    place->clauses.push_back({clause.action, {which}});
    return;
  }
}

void ArgumentChecks::prepend_to(std::vector<uint64_t>& program) const {
  if (calls_.empty()) return;
  std::map<uint32_t, std::vector<const Call*>> by_architecture;
  for (const Call& call : calls_) by_architecture[call.architecture].push_back(&call);
  Assembler to;
  Label end;
  to.load(offsetof(seccomp_data, arch));
  for (const auto& [architecture, calls] : by_architecture) {
    Label next;
    to.unless(BPF_JEQ, architecture, next);
    to.load(offsetof(seccomp_data, nr));
    for (const Call* call : calls) {
      Label other;
      to.unless(BPF_JEQ, call->number, other);
      write_clauses(to, call->clauses, call->otherwise, end);
      to.here(other);
    }
    to.go(end);
    to.here(next);
  }
  to.here(end);
  std::vector<uint64_t> head(to.steps().size());
  std::memcpy(head.data(), to.steps().data(), head.size() * sizeof head[0]);
  program.insert(program.begin(), head.begin(), head.end());
}

}  // namespace coracle::runtime
