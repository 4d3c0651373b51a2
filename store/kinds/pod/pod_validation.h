// SPDX-License-Identifier: Apache-2.0
// The parts of a pod's validation in separate files. Pure.
#pragma once

#include <string>
#include <string_view>

#include "store/schema/validate/findings.h"

namespace coracle::schema {

// Of a pod's spec: duplicate topology spread constraints, scheduling gates (placement_validation.cc); containers and what they
// use of the pod: devices, hooks, sysctls, claims, the operating system (debug_container_validation.cc).
void check_placement(const json::value& spec, const std::string& path, Findings& out);
void check_surroundings(const json::value& spec, const std::string& path, Findings& out);

// Annotations that are older than the fields with the same meaning (seccomp, AppArmor): their format, and on create that they
// agree with the fields (pod_template_validation.cc).
void check_profile_annotations(const json::value& pod, Findings& out);
void check_profiles_agree(const json::value& pod, Findings& out);

// Of an update (pod_change_validation.cc).
void check_pod_annotations_update(const json::value& now, const json::value& before, Findings& out);
void check_gates_only_go(const json::value& now, const json::value& before, Findings& out);
// Of a pod itself; templates may say what their pods may not.
void check_images(const json::value& pod, Findings& out);
void check_pod_resize(const json::value& now, const json::value& before, Findings& out);  // pod_resize_validation.cc
void check_pod_subresource(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);

}  // namespace coracle::schema
