// SPDX-License-Identifier: Apache-2.0
// Compiled seccomp profiles, cached in memory and on disk together with their input.
//   profile (the specification's object) + capabilities ─▶ key ─▶ memory ─▶ disk ─▶ seccomp_table.h
// Source: runtime-spec config-linux.md "Seccomp"; seccomp(2).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/guarded.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "runtime/oci/seccomp_profile.h"

namespace coracle::runtime {

constexpr size_t kSeccompInstructionsMax = 4096;  // BPF_MAXINSNS

struct SeccompProgram {
  std::string name;                              // the name for find()
  std::string key;                               // the complete input
  uint32_t flags = 0;                            // SECCOMP_FILTER_FLAG_*; with NEW_LISTENER if there is a listener
  std::vector<uint64_t> instructions;            // sock_filter
  std::optional<oci::SeccompListener> listener;  // receives the descriptor that loading the program returns
};
using SeccompPtr = std::shared_ptr<const SeccompProgram>;

class SeccompCache {
 public:
  explicit SeccompCache(std::string directory) : directory_(std::move(directory)) {}
  // `capabilities`: the bounding set as bits, for the profile's "capabilities" member. Errors: invalid, with the field.
  Result<SeccompPtr> get(const json::value& profile, uint64_t capabilities);
  // A program that get() has compiled, by its name, also before a restart. Errors: not_found.
  Result<SeccompPtr> find(const std::string& name);

 private:
  struct Place {  // the location of a key's program, or a free name for it
    std::string name;
    SeccompPtr found;
  };
  Place look_up(const std::string& key);
  Result<SeccompPtr> load(const std::string& name);
  std::string directory_;
  Guarded<std::map<std::string, SeccompPtr>> programs_;
};

// Compiles without the cache. Errors: invalid, with the field.
Result<SeccompProgram> compile_seccomp(const json::value& profile, uint64_t capabilities);

// Errors: invalid if the profile names a system call that libseccomp does not know; a program leaves such out.
Result<void> check_call_names(const json::value& profile);

// Properties of libseccomp and the running kernel, for `features`.
struct SeccompInfo {
  std::string version;                     // libseccomp's, "2.5.4"
  std::vector<std::string> architectures;  // supported by it, as SCMP_ARCH_X86_64
  std::vector<std::string> flags;          // supported by the kernel, as SECCOMP_FILTER_FLAG_LOG
};
SeccompInfo seccomp_info();

}  // namespace coracle::runtime
