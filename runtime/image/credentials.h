// SPDX-License-Identifier: Apache-2.0
// Selects the credentials of a pod for a registry. Pure. Source: docker's config.json and Kubernetes' imagePullSecrets for the
// names of registries.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/runtime.h"

namespace coracle::image {

// Indexes into `all` of the credentials for `host` (a registry or mirror, host[:port]) and the repository; the longest path
// prefix first.
std::vector<size_t> matching_credentials(const std::vector<runtime::Credentials>& all, std::string_view host,
                                         std::string_view repository);

}  // namespace coracle::image
