// SPDX-License-Identifier: Apache-2.0
// See seccomp_table.h. The generated program:
//   load the architecture; for each one: no match → the next; load the number; binary search for the range
//     a range: return its action; or for each clause: a condition fails → the next; all match → return its action
//   return the action for unknown architectures
#include "runtime/container/seccomp_table.h"

#include <endian.h>
#include <linux/seccomp.h>
#include <seccomp.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

namespace coracle::runtime {
namespace {

using oci::SeccompCondition;
using oci::SeccompOperator;

// Two ranges of numbers: the kernel treats x32 as x86-64 with numbers from 1 << 30; Arm has private calls from 0xf0000.
constexpr uint32_t kX32First = 0x40000000, kArmOwnFirst = 0xf0000;

// i386 has these calls twice: through socketcall and ipc, where a filter cannot see the arguments, and as direct calls, whose
// numbers libseccomp does not return.
const std::map<std::string, uint32_t> kDirectNumbersOfI386 = {
    {"recvmmsg", 337}, {"sendmmsg", 345}, {"socket", 359},     {"socketpair", 360}, {"bind", 361},        {"connect", 362},
    {"listen", 363},   {"accept4", 364},  {"getsockopt", 365}, {"setsockopt", 366}, {"getsockname", 367}, {"getpeername", 368},
    {"sendto", 369},   {"sendmsg", 370},  {"recvfrom", 371},   {"recvmsg", 372},    {"shutdown", 373},    {"semget", 393},
    {"semctl", 394},   {"shmget", 395},   {"shmctl", 396},     {"shmat", 397},      {"shmdt", 398},       {"msgget", 399},
    {"msgsnd", 400},   {"msgrcv", 401},   {"msgctl", 402}};
constexpr uint32_t kSocketcallOfI386 = 102, kIpcOfI386 = 117;
constexpr uint64_t kIpcCallMask = 0xffff;  // the upper bits are a version

bool is_multiplexed(int number) { return number <= -100 && number > -300; }  // __PNR_socket, ..., __PNR_shmctl
bool is_of_socketcall(int number) { return number > -200; }

bool is_refusal(uint32_t action) {
  uint32_t what = action & SECCOMP_RET_ACTION_FULL;
  return what != SECCOMP_RET_ALLOW && what != SECCOMP_RET_LOG && what != SECCOMP_RET_TRACE;
}

bool is_whole(const std::vector<SeccompClause>& clauses) { return clauses.size() == 1 && clauses[0].conditions.empty(); }

constexpr uint32_t low_of(uint32_t index) {
  return uint32_t(offsetof(seccomp_data, args)) + index * 8 + (__BYTE_ORDER == __BIG_ENDIAN ? 4 : 0);
}
constexpr uint32_t high_of(uint32_t index) {
  return uint32_t(offsetof(seccomp_data, args)) + index * 8 + (__BYTE_ORDER == __BIG_ENDIAN ? 0 : 4);
}
constexpr uint32_t low(uint64_t value) { return uint32_t(value); }
constexpr uint32_t high(uint64_t value) { return uint32_t(value >> 32); }

using Place = BpfAssembler::Place;

// Compares the high word first; the low word only if it is equal.
Place test(BpfAssembler& to, const SeccompCondition& condition, Place yes, Place no) {
  const uint64_t value = condition.value;
  auto test_low = [&](uint16_t test, Place yes, Place no) {
    return to.load(low_of(condition.index), to.test(test, low(value), yes, no));
  };
  auto test_high = [&](Place place) { return to.load(high_of(condition.index), place); };
  switch (condition.op) {
    case SeccompOperator::eq: return test_high(to.test(BPF_JEQ, high(value), test_low(BPF_JEQ, yes, no), no));
    case SeccompOperator::ne: return test_high(to.test(BPF_JEQ, high(value), test_low(BPF_JEQ, no, yes), yes));
    case SeccompOperator::gt:
    case SeccompOperator::ge: {
      Place equal = test_low(condition.op == SeccompOperator::gt ? BPF_JGT : BPF_JGE, yes, no);
      return test_high(to.test(BPF_JGT, high(value), yes, to.test(BPF_JEQ, high(value), equal, no)));
    }
    case SeccompOperator::lt:
    case SeccompOperator::le: {
      Place equal = test_low(condition.op == SeccompOperator::lt ? BPF_JGE : BPF_JGT, no, yes);
      return test_high(to.test(BPF_JGT, high(value), no, to.test(BPF_JEQ, high(value), equal, yes)));
    }
    case SeccompOperator::masked_eq: {  // libseccomp masks both sides
      const uint64_t wanted = condition.value_two & value;
      Place equal = to.load(low_of(condition.index), to.mask(low(value), to.test(BPF_JEQ, low(wanted), yes, no)));
      return test_high(to.mask(high(value), to.test(BPF_JEQ, high(wanted), equal, no)));
    }
  }
  return no;
}

// A single test for equality with a value below 2^32.
bool is_plain(const SeccompClause& clause) {
  return clause.conditions.size() == 1 && clause.conditions[0].op == SeccompOperator::eq && high(clause.conditions[0].value) == 0;
}

// The first matching clause decides.
Place test_clauses(BpfAssembler& to, const std::vector<SeccompClause>& clauses, uint32_t otherwise) {
  Place next = BpfAssembler::ret(otherwise);
  for (size_t end = clauses.size(); end > 0;) {
    const SeccompClause& last = clauses[end - 1];
    if (!is_plain(last)) {
      Place yes = BpfAssembler::ret(last.action);
      for (auto condition = last.conditions.rbegin(); condition != last.conditions.rend(); ++condition)
        yes = test(to, *condition, yes, next);
      next = yes;
      --end;
      continue;
    }
    // Preceding clauses that compare the same argument with small values share the loads of its words.
    const uint32_t index = last.conditions[0].index;
    Place equal = next;
    for (; end > 0 && is_plain(clauses[end - 1]) && clauses[end - 1].conditions[0].index == index; --end) {
      const SeccompClause& clause = clauses[end - 1];
      equal = to.test(BPF_JEQ, low(clause.conditions[0].value), BpfAssembler::ret(clause.action), equal);
    }
    next = to.load(high_of(index), to.test(BPF_JEQ, 0, to.load(low_of(index), equal), next));
  }
  return next;
}

// Emits a binary search for the range from `first` to before `last` that contains the loaded number.
template <typename Range>
Place search(BpfAssembler& to, const Range* first, const Range* last) {
  if (last - first == 1)
    return first->clauses ? test_clauses(to, *first->clauses, first->action) : BpfAssembler::ret(first->action);
  const Range* middle = first + (last - first) / 2;
  Place upper = search(to, middle, last);
  Place lower = search(to, first, middle);
  return to.test(BPF_JGE, middle->from, upper, lower);
}

}  // namespace

SeccompTable::SeccompTable(std::vector<uint32_t> architectures, uint32_t otherwise, bool allows_unnamed)
    : wanted_(std::move(architectures)), otherwise_(otherwise), allows_unnamed_(allows_unnamed) {
  const bool has_x32 = std::count(wanted_.begin(), wanted_.end(), uint32_t(SCMP_ARCH_X32));
  for (uint32_t architecture : wanted_) {
    if (architecture == SCMP_ARCH_X32) continue;  // part of x86-64
    Architecture& added = architectures_.emplace_back();
    added.audit = architecture;
    added.regions.push_back({});
    if (architecture == SCMP_ARCH_X86_64) added.regions.push_back({.first = kX32First, .is_known = has_x32});
    if (architecture == SCMP_ARCH_ARM) added.regions.push_back({.first = kArmOwnFirst});
  }
}

SeccompTable::Architecture& SeccompTable::of(uint32_t architecture) {
  const uint32_t audit = architecture == SCMP_ARCH_X32 ? uint32_t(SCMP_ARCH_X86_64) : architecture;
  return *std::find_if(architectures_.begin(), architectures_.end(),
                       [&](const Architecture& each) { return each.audit == audit; });
}

void SeccompTable::name(const std::string& call) {
  for (uint32_t architecture : wanted_) {
    int number = ::seccomp_syscall_resolve_name_arch(architecture, call.c_str());
    if (number < 0) continue;
    auto& regions = of(architecture).regions;
    auto region =
        std::find_if(regions.rbegin(), regions.rend(), [&](const Region& each) { return uint32_t(number) >= each.first; });
    region->newest = std::max<int64_t>(region->newest, number);
  }
}

const char* SeccompTable::multiplexer_of(const std::string& call) {
  int number = ::seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86, call.c_str());
  return !is_multiplexed(number) ? nullptr : is_of_socketcall(number) ? "socketcall" : "ipc";
}

void SeccompTable::add(const std::string& call, const Clauses& clauses, bool is_seen_through) {
  for (uint32_t architecture : wanted_) {
    int number = ::seccomp_syscall_resolve_name_arch(architecture, call.c_str());
    if (is_multiplexed(number) && architecture == SCMP_ARCH_X86) {
      if (!is_seen_through) add_multiplexed(of(architecture), number, clauses);
      auto direct = kDirectNumbersOfI386.find(call);
      number = direct == kDirectNumbersOfI386.end() ? -1 : int(direct->second);
    }
    if (number >= 0) of(architecture).calls[uint32_t(number)] = clauses;
  }
}

// The arguments cannot be seen, so a call that is refused for some of them is refused for all. A clause cannot allow the call.
void SeccompTable::add_multiplexed(Architecture& i386, int number, const Clauses& clauses) {
  const bool is_decided = is_whole(clauses);
  auto decides = std::find_if(clauses.begin(), clauses.end(),
                              [&](const SeccompClause& clause) { return is_decided || is_refusal(clause.action); });
  if (decides == clauses.end()) return;
  const uint64_t call = uint64_t(-number % 100);
  SeccompCondition which{.index = 0, .op = SeccompOperator::eq, .value = call};
  if (!is_of_socketcall(number)) which = {.index = 0, .op = SeccompOperator::masked_eq, .value = kIpcCallMask, .value_two = call};
  i386.calls[is_of_socketcall(number) ? kSocketcallOfI386 : kIpcOfI386].push_back({decides->action, {which}});
}

uint32_t SeccompTable::unknown() const { return allows_unnamed_ ? uint32_t(SECCOMP_RET_KILL_PROCESS) : otherwise_; }

std::vector<SeccompTable::Range> SeccompTable::ranges_of(const Architecture& architecture) const {
  constexpr uint32_t kNoSuchCall = SECCOMP_RET_ERRNO | ENOSYS;
  std::map<uint32_t, Range> points;
  for (size_t i = 0; i < architecture.regions.size(); ++i) {
    const Region& region = architecture.regions[i];
    const uint32_t unnamed = region.is_known ? otherwise_ : unknown();
    const bool has_future = region.newest >= 0 && !allows_unnamed_ && region.first != kArmOwnFirst;
    auto point = [&](uint32_t number) {
      Range range{.from = number, .action = has_future && int64_t(number) > region.newest ? kNoSuchCall : unnamed};
      points.try_emplace(number, range);
    };
    point(region.first);
    if (has_future) point(uint32_t(region.newest) + 1);
    const bool is_last = i + 1 == architecture.regions.size();
    const auto end = is_last ? architecture.calls.end() : architecture.calls.lower_bound(architecture.regions[i + 1].first);
    for (auto call = architecture.calls.lower_bound(region.first); call != end; ++call) {
      const auto& [number, clauses] = *call;
      const bool is_decided = is_whole(clauses);
      points[number] = {
          .from = number, .action = is_decided ? clauses[0].action : otherwise_, .clauses = is_decided ? nullptr : &clauses};
      point(number + 1);  // replaced if the next number is a call too
    }
    // A tracer sets the number -1 to skip a call: like libseccomp, this does not treat it as an x32 call.
    if (!region.is_known && is_last) points[UINT32_MAX] = {.from = UINT32_MAX, .action = otherwise_};
  }
  std::vector<Range> out;
  for (const auto& [number, range] : points) {
    const bool is_same = !out.empty() && !out.back().clauses && !range.clauses && out.back().action == range.action;
    if (!is_same) out.push_back(range);
  }
  return out;
}

std::vector<uint64_t> SeccompTable::program() const {
  BpfAssembler to;
  Place next = BpfAssembler::ret(unknown());
  for (auto architecture = architectures_.rbegin(); architecture != architectures_.rend(); ++architecture) {
    const std::vector<Range> ranges = ranges_of(*architecture);
    Place found = search(to, ranges.data(), ranges.data() + ranges.size());
    Place own = to.load(offsetof(seccomp_data, nr), found);
    next = to.test(BPF_JEQ, architecture->audit, own, next);
  }
  return to.program(to.load(offsetof(seccomp_data, arch), next));
}

}  // namespace coracle::runtime
