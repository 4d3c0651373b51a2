// SPDX-License-Identifier: Apache-2.0
// See seccomp_program.h.
#include "runtime/container/seccomp_program.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "runtime/base/text.h"
#include "runtime/container/seccomp_table.h"
#include "runtime/oci/capabilities.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"

namespace coracle::runtime {
namespace {

using Conditions = std::vector<oci::SeccompCondition>;
using oci::SeccompAction;

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

// libseccomp accepts one comparison per argument; runtimes that use it treat several as alternatives ("or").
bool repeats_argument(const Conditions& conditions) {
  unsigned seen = 0;
  for (const oci::SeccompCondition& condition : conditions) {
    if (seen >> condition.index & 1) return true;
    seen |= 1u << condition.index;
  }
  return false;
}

// The rules by system call. A rule for all arguments of a call excludes others.
class RuleSet {
 public:
  explicit RuleSet(uint32_t otherwise) : otherwise_(otherwise) {}

  // `where`: the rule's path, for errors.
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

  void write(SeccompTable& table) const {
    for (const auto& [name, clauses] : calls_) {
      auto whole =
          std::find_if(clauses.begin(), clauses.end(), [](const SeccompClause& clause) { return clause.conditions.empty(); });
      const char* multiplexer = SeccompTable::multiplexer_of(name);
      table.add(name, whole != clauses.end() ? std::vector{*whole} : clauses, multiplexer && calls_.count(multiplexer));
    }
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

  uint32_t otherwise_;
  std::map<std::string, std::vector<SeccompClause>> calls_;
  std::map<std::pair<std::string, Key>, uint32_t> said_;
};

uint32_t architecture_of(const std::string& name) {  // 0: unknown to this libseccomp
  return ::seccomp_arch_resolve_name(to_lower(std::string_view(name).substr(std::strlen("SCMP_ARCH_"))).c_str());
}

// The architectures whose programs this kernel may run, the native one first.
std::vector<uint32_t> family() {
#if defined(__x86_64__)
  return {SCMP_ARCH_X86_64, SCMP_ARCH_X86, SCMP_ARCH_X32};
#elif defined(__aarch64__)
  return {SCMP_ARCH_AARCH64, SCMP_ARCH_ARM};
#else
  return {::seccomp_arch_native()};
#endif
}

// The native architecture and those of the profile. If the profile names none, also the compatible ones: their calls would
// otherwise bypass the filter, or always fail. Architectures of the other byte order cannot run here.
std::vector<uint32_t> architectures_of(const oci::SeccompProfile& profile) {
  std::vector<uint32_t> out = family();
  if (profile.architectures.empty()) return out;
  out.resize(1);
  auto has = [&](uint32_t token) { return std::find(out.begin(), out.end(), token) != out.end(); };
  for (const std::string& name : profile.architectures) {
    const uint32_t token = architecture_of(name);
    const bool can_run = token != 0 && (token & __AUDIT_ARCH_LE) == (out[0] & __AUDIT_ARCH_LE);
    if (can_run && !has(token)) out.push_back(token);
  }
  if (!has(SCMP_ARCH_X86_64)) std::erase(out, uint32_t(SCMP_ARCH_X32));  // x32 is part of x86-64
  return out;
}

uint32_t flags_of(const oci::SeccompProfile& profile) {
  uint32_t flags = profile.listener ? uint32_t(SECCOMP_FILTER_FLAG_NEW_LISTENER) : 0;
  for (oci::SeccompFlag flag : profile.flags) {
    if (flag == oci::SeccompFlag::log) flags |= SECCOMP_FILTER_FLAG_LOG;
    if (flag == oci::SeccompFlag::spec_allow) flags |= SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    // The kernel accepts it only together with a listener. TSYNC is not needed for a single thread.
    if (flag == oci::SeccompFlag::wait_killable_recv && profile.listener) flags |= SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
  }
  return flags;
}

}  // namespace

Result<void> check_call_names(const json::value& given) {
  oci::SeccompProfile profile = TRY(oci::parse_seccomp(given));
  for (const oci::SeccompRule& rule : profile.rules)
    for (const std::string& name : rule.names)
      if (::seccomp_syscall_resolve_name(name.c_str()) == __NR_SCMP_ERROR)
        return Error(Code::invalid, "linux.seccomp.syscalls: " + quoted(name) + " is unknown to libseccomp");
  return {};
}

Result<SeccompProgram> compile_seccomp(const json::value& given, uint64_t capabilities) {
  oci::SeccompProfile profile = TRY(oci::parse_seccomp(given));
  const uint32_t otherwise = action_of(profile.otherwise);
  SeccompTable table(architectures_of(profile), otherwise, is_permissive(profile.otherwise));
  RuleSet rules(otherwise);
  // Calls of capabilities come first: of two rules for a whole call, the first wins.
  for (const auto& [name, calls] : profile.by_capability) {
    auto bit = oci::capability_number(name);
    if (!bit || !(capabilities >> *bit & 1)) continue;
    oci::SeccompRule rule{.names = calls, .verdict = {SeccompAction::allow}, .conditions = {}};
    TRY(rules.add(rule, "capabilities." + name));
    for (const std::string& call : calls) table.name(call);
  }
  for (size_t i = 0; i < profile.rules.size(); ++i) {
    TRY(rules.add(profile.rules[i], "syscalls[" + std::to_string(i) + "]"));
    for (const std::string& call : profile.rules[i].names) table.name(call);
  }
  rules.write(table);
  SeccompProgram out;
  out.flags = flags_of(profile);
  out.listener = std::move(profile.listener);
  out.instructions = table.program();
  if (out.instructions.size() > kSeccompInstructionsMax) return Error(Code::too_large, "linux.seccomp: the program is too long");
  return out;
}

SeccompInfo seccomp_info() {
  const scmp_version* version = ::seccomp_version();
  SeccompInfo out;
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
