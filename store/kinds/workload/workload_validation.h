// SPDX-License-Identifier: Apache-2.0
// Rules that all workloads share: a selector with a template, and pod templates with restartPolicy Always. Pure.
#pragma once

#include <string>
#include <string_view>

#include "store/schema/validate/findings.h"

namespace coracle::schema {

// spec.selector is not empty ("empty selector is invalid for <workload>") and matches the template's labels. An absent selector
// matches nothing.
void check_selector_and_template(const json::value& spec, std::string_view workload, const std::string& path, Findings& out);
// `matches`: whether the selector matches the labels of the template.
void check_template_labels(const json::value& spec, bool matches, const std::string& path, Findings& out);
// Requires restartPolicy Always and no activeDeadlineSeconds.
void check_endless_template(const json::value& spec, std::string_view workload, const std::string& path, Findings& out);

}  // namespace coracle::schema
