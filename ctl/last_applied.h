// SPDX-License-Identifier: Apache-2.0
// The annotation in which client-side apply stores the configuration that it applied last.
#pragma once

#include <string_view>

namespace coracle::ctl {

constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

}  // namespace coracle::ctl
