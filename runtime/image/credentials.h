// SPDX-License-Identifier: Apache-2.0
// Which of a pod's credentials are meant for a registry. Pure.
// Source: docker's config.json and Kubernetes' imagePullSecrets for how registries are named.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/runtime.h"

namespace coracle::image {

// Places in `all` of those meant for `host` (a registry or mirror, host[:port]) and the repository; the longest path prefix
// first.
std::vector<size_t> matching_credentials(const std::vector<runtime::Credentials>& all, std::string_view host,
                                         std::string_view repository);

}  // namespace coracle::image
