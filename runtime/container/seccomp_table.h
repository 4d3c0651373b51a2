// SPDX-License-Identifier: Apache-2.0
// The actions of system calls by architecture and number, and the program that looks them up: a binary search over ranges of
// numbers with the same action. libseccomp resolves names to numbers. Its compiler is not used: it takes ten times as long. Also,
// for several rules on the arguments of one call, libseccomp 2.5.4 generates a tree that allows calls that no rule allows
// (observed).
//
// Calls that are newer than all calls in a profile, by their number, fail with ENOSYS, unless the profile allows unnamed calls.
// Programs try new calls first and only fall back if they fail with ENOSYS.
// Source: seccomp(2); runtime-spec config-linux.md "Seccomp"; arch/x86/entry/syscalls/syscall_32.tbl.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/container/bpf_assembler.h"
#include "runtime/oci/seccomp_profile.h"

namespace coracle::runtime {

struct SeccompClause {
  uint32_t action = 0;                            // SECCOMP_RET_*
  std::vector<oci::SeccompCondition> conditions;  // all must match; empty: always matches
};

class SeccompTable {
 public:
  // `architectures`: SCMP_ARCH_* of this machine. `otherwise`: the action for calls that are not named. `allows_unnamed`: that
  // action permits them; then a call of an unknown architecture kills the process, because it could bypass the rules.
  SeccompTable(std::vector<uint32_t> architectures, uint32_t otherwise, bool allows_unnamed);

  void name(const std::string& call);  // the profile names this call: raises the highest number that counts as known
  // The first matching clause decides; if none matches, `otherwise`. `is_seen_through`: the profile has a rule for socketcall or
  // ipc itself, which multiplex this call on i386.
  void add(const std::string& call, const std::vector<SeccompClause>& clauses, bool is_seen_through);
  std::vector<uint64_t> program() const;  // sock_filter

  static const char* multiplexer_of(const std::string& call);  // "socketcall", "ipc" or nullptr

 private:
  using Clauses = std::vector<SeccompClause>;
  struct Region {  // a range of numbers of one architecture, up to the next region's first
    uint32_t first = 0;
    int64_t newest = -1;  // the highest named number; -1: none
    bool is_known = true;
  };
  struct Architecture {
    uint32_t audit = 0;  // AUDIT_ARCH_*, as in seccomp_data
    std::vector<Region> regions;
    std::map<uint32_t, Clauses> calls;
  };
  struct Range {
    uint32_t from = 0;
    uint32_t action = 0;
    const Clauses* clauses = nullptr;  // checked before the action; null: none
  };

  Architecture& of(uint32_t architecture);
  void add_multiplexed(Architecture& i386, int number, const Clauses& clauses);
  std::vector<Range> ranges_of(const Architecture& architecture) const;
  uint32_t unknown() const;  // the action for a call of an architecture that is not in the filter

  const std::vector<uint32_t> wanted_;
  const uint32_t otherwise_;
  const bool allows_unnamed_;
  std::vector<Architecture> architectures_;
};

}  // namespace coracle::runtime
