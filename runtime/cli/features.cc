// SPDX-License-Identifier: Apache-2.0
// features: the capabilities of this runtime, for engines.
#include "runtime/cli/commands.h"
#include "runtime/oci/features_document.h"

namespace coracle::cli {

Result<int> features(const Options&) {
  runtime::SeccompFacts seccomp = runtime::seccomp_facts();
  oci::FeatureFacts facts;
  facts.runtime_version = CORACLE_VERSION;
  facts.seccomp_version = seccomp.version;
  facts.seccomp_architectures = seccomp.architectures;
  facts.seccomp_flags = seccomp.flags;
  facts.has_systemd = facts.has_systemd_user = true;
  TRY(print(to_pretty(oci::features(facts), 2) + "\n"));
  return 0;
}

}  // namespace coracle::cli
