// SPDX-License-Identifier: Apache-2.0
// Rules on the arguments of one call, several of them, as instructions of our own: libseccomp (2.5.4, seen) merges such
// rules into one tree of 32-bit comparisons and then lets through what none of them allows. Here the first rule that
// holds decides. The instructions stand before libseccomp's program, which never hears of these calls.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/oci/seccomp_profile.h"

namespace coracle::runtime {

struct SeccompClause {
  uint32_t action = 0;                            // SECCOMP_RET_*
  std::vector<oci::SeccompCondition> conditions;  // all must hold
};

class ArgumentChecks {
 public:
  explicit ArgumentChecks(const std::vector<uint32_t>& architectures);  // SCMP_ARCH_*

  // Whether the call's number is known wherever it exists; then it may be added.
  bool can_take(const std::string& call) const;
  // `is_seen_through`: the profile speaks of socketcall or ipc itself, where i386 has this call behind one of these.
  void add(const std::string& call, const std::vector<SeccompClause>& clauses, uint32_t otherwise, bool is_seen_through);
  void prepend_to(std::vector<uint64_t>& program) const;

  static const char* multiplexer_of(const std::string& call);  // "socketcall", "ipc" or nullptr

 private:
  struct Call {
    uint32_t architecture;  // AUDIT_ARCH_*
    uint32_t number;
    std::vector<SeccompClause> clauses;
    std::optional<uint32_t> otherwise;  // nothing: the program goes on
  };
  void add_multiplexed(int number, const std::vector<SeccompClause>& clauses);
  std::vector<uint32_t> architectures_;
  std::vector<Call> calls_;
};

}  // namespace coracle::runtime
