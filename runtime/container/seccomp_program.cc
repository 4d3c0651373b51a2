// SPDX-License-Identifier: Apache-2.0
// See seccomp_program.h.
#include "runtime/container/seccomp_program.h"

#include <linux/seccomp.h>
#include <seccomp.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "runtime/base/text.h"
#include "runtime/container/seccomp_arguments.h"
#include "runtime/container/seccomp_newest.h"
#include "runtime/oci/capabilities.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"

namespace coracle::runtime {
namespace {

constexpr size_t kSearchedRulesMin = 32;  // below, a binary tree is no gain; libseccomp 2.5 errs on an empty one

using Conditions = std::vector<oci::SeccompCondition>;
using oci::SeccompAction;

Error bad(const std::string& text) { return Error(Code::invalid, "linux.seccomp." + text); }

struct Context {
  scmp_filter_ctx handle = nullptr;
  ~Context() {
    if (handle) ::seccomp_release(handle);
  }
};

uint32_t action_of(const oci::SeccompVerdict& verdict) {
  switch (verdict.action) {
    case SeccompAction::kill_thread: return SCMP_ACT_KILL_THREAD;
    case SeccompAction::kill_process: return SCMP_ACT_KILL_PROCESS;
    case SeccompAction::trap: return SCMP_ACT_TRAP;
    case SeccompAction::errno_: return SCMP_ACT_ERRNO(verdict.errno_ret);
    case SeccompAction::trace: return SCMP_ACT_TRACE(verdict.errno_ret);
    case SeccompAction::allow: return SCMP_ACT_ALLOW;
    case SeccompAction::log: return SCMP_ACT_LOG;
    case SeccompAction::notify: return SCMP_ACT_NOTIFY;
  }
  return SCMP_ACT_KILL_PROCESS;
}

bool is_permissive(const oci::SeccompVerdict& verdict) {
  return verdict.action == SeccompAction::allow || verdict.action == SeccompAction::log || verdict.action == SeccompAction::trace;
}

scmp_arg_cmp comparison_of(const oci::SeccompCondition& condition) {
  static constexpr scmp_compare kOperators[] = {SCMP_CMP_NE, SCMP_CMP_LT, SCMP_CMP_LE,       SCMP_CMP_EQ,
                                                SCMP_CMP_GE, SCMP_CMP_GT, SCMP_CMP_MASKED_EQ};
  scmp_arg_cmp out{};
  out.arg = condition.index;
  out.op = kOperators[size_t(condition.op)];
  out.datum_a = condition.value;
  if (out.op == SCMP_CMP_MASKED_EQ) out.datum_b = condition.value_two;
  return out;
}

// libseccomp takes one comparison per argument: more mean "or", as other runtimes read them.
bool repeats_argument(const Conditions& conditions) {
  unsigned seen = 0;
  for (const oci::SeccompCondition& condition : conditions) {
    if (seen >> condition.index & 1) return true;
    seen |= 1u << condition.index;
  }
  return false;
}

// The rules, call by call. A rule for all of a call's arguments leaves no room for others; of several for some of them
// libseccomp makes something else, so these are ours.
class RuleBook {
 public:
  explicit RuleBook(uint32_t otherwise) : otherwise_(otherwise) {}

  // `where`: of the rule, for errors.
  Result<void> add(const oci::SeccompRule& rule, const std::string& where) {
    uint32_t action = action_of(rule.verdict);
    if (action == otherwise_) return {};
    for (const std::string& name : rule.names) {
      if (!repeats_argument(rule.conditions)) {
        TRY(add(name, {action, rule.conditions}).wrap("linux.seccomp." + where + ": " + name));
        continue;
      }
      for (const oci::SeccompCondition& condition : rule.conditions)
        TRY(add(name, {action, {condition}}).wrap("linux.seccomp." + where + ": " + name));
    }
    return {};
  }

  Result<void> write(const Context& context, ArgumentChecks& checks) const {
    for (const auto& [name, clauses] : calls_) {
      int call = ::seccomp_syscall_resolve_name(name.c_str());
      if (call == __NR_SCMP_ERROR) continue;  // another machine's, or newer than libseccomp
      auto whole =
          std::find_if(clauses.begin(), clauses.end(), [](const SeccompClause& clause) { return clause.conditions.empty(); });
      if (whole != clauses.end()) {
        TRY(write(context, *whole, call).wrap("linux.seccomp.syscalls: " + name));
      } else if (clauses.size() > 1 && checks.can_take(name)) {
        const char* multiplexer = ArgumentChecks::multiplexer_of(name);
        checks.add(name, clauses, otherwise_, multiplexer && calls_.count(multiplexer));
      } else {
        for (const SeccompClause& clause : clauses) TRY(write(context, clause, call).wrap("linux.seccomp.syscalls: " + name));
      }
    }
    return {};
  }

 private:
  using Key = std::vector<std::array<uint64_t, 4>>;
  static Key key_of(const Conditions& conditions) {
    Key out;
    for (const oci::SeccompCondition& each : conditions)
      out.push_back({each.index, uint64_t(each.op), each.value, each.value_two});
    std::sort(out.begin(), out.end());
    return out;
  }

  Result<void> add(const std::string& name, SeccompClause clause) {
    auto [said, is_new] = said_.try_emplace({name, key_of(clause.conditions)}, clause.action);
    if (is_new) {
      calls_[name].push_back(std::move(clause));
    } else if (said->second != clause.action && !clause.conditions.empty()) {
      return Error(Code::invalid, "another rule for the same arguments decides otherwise");
    }
    return {};
  }

  static Result<void> write(const Context& context, const SeccompClause& clause, int call) {
    std::vector<scmp_arg_cmp> all;
    for (const oci::SeccompCondition& condition : clause.conditions) all.push_back(comparison_of(condition));
    int rc = ::seccomp_rule_add_array(context.handle, clause.action, call, unsigned(all.size()), all.data());
    if (rc != 0) return Error(Code::invalid, ::strerror(-rc));
    return {};
  }

  uint32_t otherwise_;
  std::map<std::string, std::vector<SeccompClause>> calls_;
  std::map<std::pair<std::string, Key>, uint32_t> said_;
};

uint32_t architecture_of(const std::string& name) {  // 0: of no processor that this libseccomp knows
  return ::seccomp_arch_resolve_name(to_lower(std::string_view(name).substr(std::strlen("SCMP_ARCH_"))).c_str());
}

// The machine's own, and what the profile names; where it names nothing, the 32-bit relatives: else they would be a way
// around it, or no way at all. Gives all that are in the filter.
Result<std::vector<uint32_t>> add_architectures(const Context& context, const oci::SeccompProfile& profile) {
  std::vector<uint32_t> wanted, out = {::seccomp_arch_native()};
  for (const std::string& name : profile.architectures) wanted.push_back(architecture_of(name));
#if defined(__x86_64__)
  if (wanted.empty()) wanted = {SCMP_ARCH_X86, SCMP_ARCH_X32};
#elif defined(__aarch64__)
  if (wanted.empty()) wanted = {SCMP_ARCH_ARM};
#endif
  for (uint32_t token : wanted) {
    if (token == 0) continue;
    int rc = ::seccomp_arch_add(context.handle, token);
    if (rc == -EEXIST || rc == -EDOM) continue;  // there already, or of the other endianness: cannot run here
    if (rc != 0) return bad("architectures: " + std::string(::strerror(-rc)));
    out.push_back(token);
  }
  return out;
}

uint32_t flags_of(const oci::SeccompProfile& profile) {
  uint32_t flags = profile.listener ? uint32_t(SECCOMP_FILTER_FLAG_NEW_LISTENER) : 0;
  for (oci::SeccompFlag flag : profile.flags) {
    if (flag == oci::SeccompFlag::log) flags |= SECCOMP_FILTER_FLAG_LOG;
    if (flag == oci::SeccompFlag::spec_allow) flags |= SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    // The kernel takes it only together with a listener. Synchronising threads is nothing to do for one thread.
    if (flag == oci::SeccompFlag::wait_killable_recv && profile.listener) flags |= SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
  }
  return flags;
}

Result<std::vector<uint64_t>> export_program(const Context& context) {
  Fd file = TRY(sys::make_memfd("seccomp", "", false));
  int rc = ::seccomp_export_bpf(context.handle, file.get());
  if (rc != 0) return Error(Code::internal, std::string("export seccomp program: ") + ::strerror(-rc));
  Fd again = TRY(sys::open(sys::fd_path(file), O_RDONLY));
  std::string bytes = TRY(sys::read_all(again));
  std::vector<uint64_t> out(bytes.size() / sizeof(uint64_t));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(uint64_t));
  return out;
}

}  // namespace

Result<SeccompProgram> compile_seccomp(const json::value& given, uint64_t capabilities) {
  oci::SeccompProfile profile = TRY(oci::parse_seccomp(given));
  uint32_t otherwise = action_of(profile.otherwise);
  Context context{::seccomp_init(otherwise)};
  if (!context.handle) return Error(Code::internal, "seccomp_init");
  size_t names = 0;
  for (const oci::SeccompRule& rule : profile.rules) names += rule.names.size();
  // Older libraries lack it: slower to load, as right.
  if (names > kSearchedRulesMin) (void)::seccomp_attr_set(context.handle, SCMP_FLTATR_CTL_OPTIMIZE, 2);
  // A program of an architecture that the filter does not know must not get by where it allows what it does not name.
  if (int rc = ::seccomp_attr_set(context.handle, SCMP_FLTATR_ACT_BADARCH,
                                  is_permissive(profile.otherwise) ? SCMP_ACT_KILL_PROCESS : otherwise))
    return Error(Code::internal, std::string("seccomp_attr_set: ") + ::strerror(-rc));
  std::vector<uint32_t> architectures = TRY(add_architectures(context, profile));
  RuleBook rules(otherwise);
  ArgumentChecks checks(architectures);
  NewestCalls newest(architectures);
  // What a capability allows comes first: of two that decide otherwise on a whole call, the first counts.
  for (const auto& [name, calls] : profile.by_capability) {
    auto bit = oci::capability_number(name);
    if (!bit || !(capabilities >> *bit & 1)) continue;
    oci::SeccompRule rule{.names = calls, .verdict = {SeccompAction::allow}, .conditions = {}};
    TRY(rules.add(rule, "capabilities." + name));
    newest.add(calls);
  }
  for (size_t i = 0; i < profile.rules.size(); ++i) {
    TRY(rules.add(profile.rules[i], "syscalls[" + std::to_string(i) + "]"));
    newest.add(profile.rules[i].names);
  }
  TRY(rules.write(context, checks));
  SeccompProgram out;
  out.flags = flags_of(profile);
  out.listener = std::move(profile.listener);
  out.instructions = TRY(export_program(context));
  checks.prepend_to(out.instructions);
  if (!is_permissive(profile.otherwise)) newest.answer(out.instructions);
  if (out.instructions.size() > kSeccompInstructionsMax) return Error(Code::too_large, "linux.seccomp: the program is too long");
  return out;
}

SeccompFacts seccomp_facts() {
  const scmp_version* version = ::seccomp_version();
  SeccompFacts out;
  out.version = std::to_string(version->major) + "." + std::to_string(version->minor) + "." + std::to_string(version->micro);
  for (const std::string& name : oci::seccomp_architecture_names())
    if (architecture_of(name)) out.architectures.push_back(name);
  for (auto [name, flags] : {std::pair("SECCOMP_FILTER_FLAG_TSYNC", SECCOMP_FILTER_FLAG_TSYNC),
                             std::pair("SECCOMP_FILTER_FLAG_LOG", SECCOMP_FILTER_FLAG_LOG),
                             std::pair("SECCOMP_FILTER_FLAG_SPEC_ALLOW", SECCOMP_FILTER_FLAG_SPEC_ALLOW),
                             std::pair("SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV",
                                       SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)})
    if (sys::takes_seccomp_flags(uint32_t(flags))) out.flags.emplace_back(name);
  return out;
}

}  // namespace coracle::runtime
