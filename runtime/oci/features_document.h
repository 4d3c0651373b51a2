// SPDX-License-Identifier: Apache-2.0
// The output of `features`: which parts of the specification this runtime implements, independent of the machine. Engines use it
// to decide what to put into config.json. Pure: the caller passes what only the libraries can tell.
// Source: opencontainers/runtime-spec v1.3, features.md, features-linux.md.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/json.h"

namespace coracle::oci {

constexpr const char* kVersionMin = "1.0.0";  // the supported range of ociVersion
constexpr const char* kVersionMax = "1.3.0";

struct FeatureInfo {
  std::string runtime_version;                     // ours
  std::string seccomp_version;                     // libseccomp's, "2.5.4"; "": built without it
  std::vector<std::string> seccomp_architectures;  // supported by libseccomp, as SCMP_ARCH_X86_64
  std::vector<std::string> seccomp_flags;          // supported by the kernel, as SECCOMP_FILTER_FLAG_LOG
  bool has_systemd = false;                        // the runtime can use systemd for cgroups,
  bool has_systemd_user = false;                   // and the user's own instance
  std::vector<std::string> own_annotations;        // of config.json, that change what the runtime does
};

json::value features(const FeatureInfo& info);

}  // namespace coracle::oci
