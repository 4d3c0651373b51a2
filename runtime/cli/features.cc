// SPDX-License-Identifier: Apache-2.0
// features: the capabilities of this runtime, for engines.
#include "runtime/cli/commands.h"
#include "runtime/oci/features_document.h"

namespace coracle::cli {

Result<int> features(const Options&) {
  runtime::SeccompInfo seccomp = runtime::seccomp_info();
  oci::FeatureInfo info;
  info.runtime_version = CORACLE_VERSION;
  info.seccomp_version = seccomp.version;
  info.seccomp_architectures = seccomp.architectures;
  info.seccomp_flags = seccomp.flags;
  info.has_systemd = info.has_systemd_user = true;
  info.own_annotations = {kKeepGroups, kFailUnknownCalls, kPidfdReceiver, cgroup::kSubgroupAnnotation};
  TRY(print(to_pretty(oci::features(info), 2) + "\n"));
  return 0;
}

}  // namespace coracle::cli
