// SPDX-License-Identifier: Apache-2.0
// See seccomp_profile.h.
#include "runtime/oci/seccomp_profile.h"

#include <algorithm>

#include "runtime/oci/field.h"

namespace coracle::oci {
namespace {

constexpr size_t kSyscallRulesMax = 10000;
constexpr size_t kNamesMax = 20000;     // of all rules together
constexpr uint32_t kArgumentsMax = 6;   // of a system call
constexpr uint32_t kErrnoMax = 4094;    // libseccomp's limit
constexpr uint32_t kTraceMax = 0xffff;  // SECCOMP_RET_DATA
constexpr size_t kSocketPathMax = 107;  // sockaddr_un

template <typename T>
struct Named {
  const char* name;
  T value;
};

constexpr Named<SeccompAction> kActions[] = {{"SCMP_ACT_KILL", SeccompAction::kill_thread},
                                             {"SCMP_ACT_KILL_PROCESS", SeccompAction::kill_process},
                                             {"SCMP_ACT_KILL_THREAD", SeccompAction::kill_thread},
                                             {"SCMP_ACT_TRAP", SeccompAction::trap},
                                             {"SCMP_ACT_ERRNO", SeccompAction::errno_},
                                             {"SCMP_ACT_TRACE", SeccompAction::trace},
                                             {"SCMP_ACT_ALLOW", SeccompAction::allow},
                                             {"SCMP_ACT_LOG", SeccompAction::log},
                                             {"SCMP_ACT_NOTIFY", SeccompAction::notify}};
constexpr Named<SeccompOperator> kOperators[] = {{"SCMP_CMP_NE", SeccompOperator::ne},
                                                 {"SCMP_CMP_LT", SeccompOperator::lt},
                                                 {"SCMP_CMP_LE", SeccompOperator::le},
                                                 {"SCMP_CMP_EQ", SeccompOperator::eq},
                                                 {"SCMP_CMP_GE", SeccompOperator::ge},
                                                 {"SCMP_CMP_GT", SeccompOperator::gt},
                                                 {"SCMP_CMP_MASKED_EQ", SeccompOperator::masked_eq}};
constexpr Named<SeccompFlag> kFlags[] = {{"SECCOMP_FILTER_FLAG_TSYNC", SeccompFlag::tsync},
                                         {"SECCOMP_FILTER_FLAG_LOG", SeccompFlag::log},
                                         {"SECCOMP_FILTER_FLAG_SPEC_ALLOW", SeccompFlag::spec_allow},
                                         {"SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV", SeccompFlag::wait_killable_recv}};

template <typename T, size_t n>
void read_name(const Field& in, const Named<T> (&table)[n], T& out) {
  std::string name;
  in.read(name);
  for (const Named<T>& entry : table)
    if (name == entry.name) return void(out = entry.value);
  if (in.is_there()) in.complain("unknown " + quoted(name));
}

template <typename T, size_t n>
std::vector<std::string> names_of(const Named<T> (&table)[n]) {
  std::vector<std::string> out;
  for (const Named<T>& entry : table) out.push_back(entry.name);
  return out;
}

SeccompVerdict read_verdict(const Field& action, const Field& errno_ret) {
  SeccompVerdict out;
  read_name(action, kActions, out.action);
  errno_ret.read(out.errno_ret);
  bool is_errno = out.action == SeccompAction::errno_, is_trace = out.action == SeccompAction::trace;
  if (errno_ret.is_there() && !is_errno && !is_trace) errno_ret.complain("only SCMP_ACT_ERRNO and SCMP_ACT_TRACE take one");
  if (out.errno_ret > (is_trace ? kTraceMax : kErrnoMax)) errno_ret.complain("out of range");
  return out;
}

SeccompCondition read_condition(const Field& in) {
  SeccompCondition out;
  in.need("index").read(out.index);
  if (out.index >= kArgumentsMax) in.at("index").complain("out of range");
  in.need("value").read(out.value);
  in.at("valueTwo").read(out.value_two);
  read_name(in.need("op"), kOperators, out.op);
  return out;
}

SeccompRule read_rule(const Field& in) {
  SeccompRule out;
  in.need("names").read(out.names);
  if (in.has("names") && out.names.empty()) in.at("names").complain("empty");
  out.verdict = read_verdict(in.need("action"), in.at("errnoRet"));
  in.at("args").each_object([&](const Field& item) { out.conditions.push_back(read_condition(item)); });
  if (out.verdict.action != SeccompAction::notify) return out;
  // The listener is sent after the filter is loaded, with these calls.
  for (const std::string& name : out.names)
    if (name == "sendmsg" || name == "write")
      in.at("action").complain("SCMP_ACT_NOTIFY cannot be used for the " + name + " syscall");
  return out;
}

void read_listener(const Field& in, SeccompProfile& out) {
  SeccompListener listener;
  Field path = in.at("listenerPath"), metadata = in.at("listenerMetadata");
  path.read(listener.path);
  metadata.read(listener.metadata);
  if (listener.path.empty() && !listener.metadata.empty()) metadata.complain("listenerPath is missing");
  bool notifies = std::any_of(out.rules.begin(), out.rules.end(),
                              [](const SeccompRule& rule) { return rule.verdict.action == SeccompAction::notify; });
  if (!notifies) return;  // ignored without notify rules, as specified
  if (listener.path.empty()) return path.complain("SCMP_ACT_NOTIFY needs one");
  if (listener.path[0] != '/') path.complain("not absolute");
  if (listener.path.size() > kSocketPathMax) path.complain("too long for a socket");
  out.listener = std::move(listener);
}

void check_sizes(const Field& in, const SeccompProfile& profile) {
  size_t names = 0;
  for (const SeccompRule& rule : profile.rules) names += rule.names.size();
  for (const auto& [capability, calls] : profile.by_capability) names += calls.size();
  if (profile.rules.size() > kSyscallRulesMax || names > kNamesMax) in.at("syscalls").complain("too many");
}

SeccompProfile read_profile(const Field& in) {
  SeccompProfile out;
  in.must_be_object();
  out.otherwise = read_verdict(in.need("defaultAction"), in.at("defaultErrnoRet"));
  if (out.otherwise.action == SeccompAction::notify)
    in.at("defaultAction").complain("SCMP_ACT_NOTIFY cannot be used for every call");
  in.at("architectures").each([&](const Field& item) {
    item.read(out.architectures.emplace_back());
    const auto& known = seccomp_architecture_names();
    if (std::find(known.begin(), known.end(), out.architectures.back()) == known.end())
      item.complain("unknown " + quoted(out.architectures.back()));
  });
  in.at("flags").each([&](const Field& item) { read_name(item, kFlags, out.flags.emplace_back()); });
  if (!in.has("flags")) out.flags = {SeccompFlag::spec_allow};  // an empty list is one. Source: runc, crun
  in.at("syscalls").each_object([&](const Field& item) { out.rules.push_back(read_rule(item)); });
  in.at("capabilities").each_entry([&](const std::string& name, const Field& item) { item.read(out.by_capability[name]); });
  read_listener(in, out);
  check_sizes(in, out);
  return out;
}

}  // namespace

Result<SeccompProfile> parse_seccomp(const json::value& seccomp) {
  std::optional<Error> error;
  SeccompProfile out = read_profile(Field(&seccomp, "linux.seccomp", &error));
  if (error) return std::move(*error);
  return out;
}

std::vector<std::string> seccomp_action_names() { return names_of(kActions); }
std::vector<std::string> seccomp_operator_names() { return names_of(kOperators); }
std::vector<std::string> seccomp_flag_names() { return names_of(kFlags); }

const std::vector<std::string>& seccomp_architecture_names() {
  static const std::vector<std::string> names = {
      "SCMP_ARCH_X86",         "SCMP_ARCH_X86_64",   "SCMP_ARCH_X32",         "SCMP_ARCH_ARM",    "SCMP_ARCH_AARCH64",
      "SCMP_ARCH_LOONGARCH64", "SCMP_ARCH_M68K",     "SCMP_ARCH_MIPS",        "SCMP_ARCH_MIPS64", "SCMP_ARCH_MIPS64N32",
      "SCMP_ARCH_MIPSEL",      "SCMP_ARCH_MIPSEL64", "SCMP_ARCH_MIPSEL64N32", "SCMP_ARCH_PPC",    "SCMP_ARCH_PPC64",
      "SCMP_ARCH_PPC64LE",     "SCMP_ARCH_S390",     "SCMP_ARCH_S390X",       "SCMP_ARCH_SH",     "SCMP_ARCH_SHEB",
      "SCMP_ARCH_PARISC",      "SCMP_ARCH_PARISC64", "SCMP_ARCH_RISCV64"};
  return names;
}

}  // namespace coracle::oci
