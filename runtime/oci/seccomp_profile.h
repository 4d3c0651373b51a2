// SPDX-License-Identifier: Apache-2.0
// `linux.seccomp` as structs: the allowed system calls, and the action for others. Reading checks everything that needs no
// libseccomp; container/seccomp_program.h compiles it.
// Source: runtime-spec config-linux.md "Seccomp"; seccomp(2), seccomp_unotify(2).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::oci {

enum class SeccompAction : uint8_t { kill_thread, kill_process, trap, errno_, trace, allow, log, notify };
enum class SeccompOperator : uint8_t { ne, lt, le, eq, ge, gt, masked_eq };
enum class SeccompFlag : uint8_t { tsync, log, spec_allow, wait_killable_recv };

struct SeccompCondition {
  uint32_t index = 0;  // of the argument, 0 to 5
  SeccompOperator op = SeccompOperator::eq;
  uint64_t value = 0, value_two = 0;  // masked_eq: the mask, then the expected result
};

struct SeccompVerdict {
  SeccompAction action = SeccompAction::errno_;
  uint32_t errno_ret = 1;  // EPERM; for errno_ and trace
  bool operator==(const SeccompVerdict&) const = default;
};

struct SeccompRule {
  std::vector<std::string> names;  // never empty; may contain calls of other architectures
  SeccompVerdict verdict;
  std::vector<SeccompCondition> conditions;  // all must match; of several on one argument, any
};

struct SeccompListener {  // decides on calls with the action notify
  std::string path;       // of its socket
  std::string metadata;   // passed to it
  bool operator==(const SeccompListener&) const = default;
};

struct SeccompProfile {
  SeccompVerdict otherwise;                // for calls without a rule
  std::vector<std::string> architectures;  // SCMP_ARCH_X86_64, ...; empty: the native one and its compatible ones
  std::vector<SeccompFlag> flags;
  std::vector<SeccompRule> rules;
  std::optional<SeccompListener> listener;  // required for notify rules, otherwise unused
  // An extension: capability → calls that are allowed to its holders.
  std::map<std::string, std::vector<std::string>> by_capability;
};

Result<SeccompProfile> parse_seccomp(const json::value& seccomp);  // Errors: invalid, too_large, with the field

// The supported values, by the specification's names.
std::vector<std::string> seccomp_action_names();
std::vector<std::string> seccomp_operator_names();
std::vector<std::string> seccomp_flag_names();
const std::vector<std::string>& seccomp_architecture_names();

}  // namespace coracle::oci
