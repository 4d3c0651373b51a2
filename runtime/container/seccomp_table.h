// SPDX-License-Identifier: Apache-2.0
// What becomes of each system call, by architecture and number, and the program that looks it up: a binary search over ranges of
// numbers that are answered alike. Names become numbers by libseccomp. Its own compiler is not used: it takes ten times as long,
// and (2.5.4, seen) of several rules on one call's arguments it makes one tree that lets through what none of them allows.
//
// Numbers beyond all that a profile names, of calls that are newer than it, fail with ENOSYS unless it allows what it does not
// name: programs ask for new calls first and fall back only when there is no such call.
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
  std::vector<oci::SeccompCondition> conditions;  // all must hold; none: always
};

class SeccompTable {
 public:
  // `architectures`: SCMP_ARCH_*, of this machine. `otherwise`: for calls that are not named. `allows_unnamed`: that one lets
  // them happen; then what no architecture knows is killed, since it would be a way around the rules.
  SeccompTable(std::vector<uint32_t> architectures, uint32_t otherwise, bool allows_unnamed);

  void name(const std::string& call);  // the profile names this call: raises the newest number that it knows
  // The first clause that holds decides; where none does, `otherwise`. `is_seen_through`: the profile has a rule for socketcall
  // or ipc itself, behind which i386 has this call.
  void add(const std::string& call, const std::vector<SeccompClause>& clauses, bool is_seen_through);
  std::vector<uint64_t> program() const;  // sock_filter

  static const char* multiplexer_of(const std::string& call);  // "socketcall", "ipc" or nullptr

 private:
  using Clauses = std::vector<SeccompClause>;
  struct Region {  // numbers of one architecture, up to the next region's first
    uint32_t first = 0;
    int64_t newest = -1;  // named; -1: none
    bool is_known = true;
  };
  struct Architecture {
    uint32_t audit = 0;  // AUDIT_ARCH_*, as the kernel tells it
    std::vector<Region> regions;
    std::map<uint32_t, Clauses> calls;
  };
  struct Range {
    uint32_t from = 0;
    uint32_t action = 0;
    const Clauses* clauses = nullptr;  // before the action; null: none
  };

  Architecture& of(uint32_t architecture);
  void add_multiplexed(Architecture& i386, int number, const Clauses& clauses);
  std::vector<Range> ranges_of(const Architecture& architecture) const;
  uint32_t unknown() const;  // of a call that no architecture in the filter has

  const std::vector<uint32_t> wanted_;
  const uint32_t otherwise_;
  const bool allows_unnamed_;
  std::vector<Architecture> architectures_;
};

}  // namespace coracle::runtime
