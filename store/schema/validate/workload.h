// SPDX-License-Identifier: Apache-2.0
// What the rules of all workloads share: a selector with a template, and templates of pods that are to run for ever. Pure.
#pragma once

#include <string>
#include <string_view>

#include "store/object/selector.h"
#include "store/schema/validate/findings.h"

namespace coracle::schema {

// spec.selector is not empty ("empty selector is invalid for <workload>") and finds the template's labels. One that is absent
// finds nothing.
void check_selector_and_template(const json::value& spec, std::string_view workload, const std::string& path, Findings& out);
void check_template_labels(const json::value& spec, const LabelSelector& selector, const std::string& path, Findings& out);
// restartPolicy Always, no activeDeadlineSeconds.
void check_endless_template(const json::value& spec, std::string_view workload, const std::string& path, Findings& out);

}  // namespace coracle::schema
