// SPDX-License-Identifier: Apache-2.0
// What `features` says: which of the specification this runtime carries out, whatever the machine at hand allows.
// Engines choose by it what they put into config.json. Pure: what only the libraries and the caller know is handed in.
// Source: opencontainers/runtime-spec v1.3, features.md, features-linux.md.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/json.h"

namespace coracle::oci {

constexpr const char* kVersionMin = "1.0.0";  // of the specification: what ociVersion may say
constexpr const char* kVersionMax = "1.3.0";

struct FeatureFacts {
  std::string runtime_version;                     // ours
  std::string seccomp_version;                     // libseccomp's, "2.5.4"; "": the runtime was built without it
  std::vector<std::string> seccomp_architectures;  // that libseccomp knows, as SCMP_ARCH_X86_64
  std::vector<std::string> seccomp_flags;          // that the running kernel takes, as SECCOMP_FILTER_FLAG_LOG
  bool has_systemd = false;                        // the runtime can ask systemd for its cgroups,
  bool has_systemd_user = false;                   // and a user's own one
};

json::value features(const FeatureFacts& facts);

}  // namespace coracle::oci
