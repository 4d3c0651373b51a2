// SPDX-License-Identifier: Apache-2.0
// Seccomp profiles as programs: compiled once by libseccomp, then kept in memory and on the disk under the hash of what
// they were made from. Compiling the default profile takes 16 ms, more than everything else in a container's start
// together.
//   profile (the specification's object) + capabilities ─▶ hash ─▶ memory ─▶ disk ─▶ libseccomp
// Source: runtime-spec config-linux.md "Seccomp"; seccomp(2); libseccomp's binary tree optimisation.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/guarded.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::runtime {

struct SeccompProgram {
  std::string hash;                    // finds it again
  uint32_t flags = 0;                  // SECCOMP_FILTER_FLAG_*
  std::vector<uint64_t> instructions;  // sock_filter
};
using SeccompPtr = std::shared_ptr<const SeccompProgram>;

class SeccompCache {
 public:
  explicit SeccompCache(std::string directory) : directory_(std::move(directory)) {}
  // `capabilities`: bits of the bounding set, for the profile's "capabilities" member. Errors: invalid, with the field.
  Result<SeccompPtr> get(const json::value& profile, uint64_t capabilities);
  // A program that get() made, by its hash, also before a restart. Errors: not_found.
  Result<SeccompPtr> find(const std::string& hash);

 private:
  Result<SeccompPtr> load(const std::string& hash);
  std::string directory_;
  Guarded<std::map<std::string, SeccompPtr>> programs_;
};

// Without any cache. Errors: invalid, with the field.
Result<SeccompProgram> compile_seccomp(const json::value& profile, uint64_t capabilities);

}  // namespace coracle::runtime
