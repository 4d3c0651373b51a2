// SPDX-License-Identifier: Apache-2.0
// The checks of validate.h by subject, and their shared helpers. Each check examines one subject of a specification and names the
// invalid field of config.json. None accesses the machine: what only the kernel can decide fails at the launch. Errors: invalid;
// unsupported for what is valid and not provided.
#pragma once

#include <string>

#include "runtime/base/result.h"
#include "runtime/base/text.h"
#include "runtime/oci/spec.h"

namespace coracle::oci {

constexpr uint32_t kIdMax = 0x7fffffff;  // CVE-2024-40635: larger ids wrapped around to root elsewhere

inline Error bad(const std::string& text) { return Error(Code::invalid, text); }
inline Error unsupported(const std::string& text) { return Error(Code::unsupported, text); }
inline std::string at(const char* list, size_t i) { return std::string(list) + "[" + std::to_string(i) + "]"; }

bool has_nul(const std::string& text);
bool is_absolute(const std::string& path);            // also: without NUL
bool is_one_line(const std::string& text);            // without control characters: it is written to a kernel file
bool is_number_list(std::string_view text);           // "0-3,7" as in cpuset(7); "" is valid
bool climbs(std::string_view path);                   // contains ".."
bool is_device_number(int64_t major, int64_t minor);  // within the kernel's 12 and 20 bits
bool is_bind(const Mount& mount);                     // by its options; the type does not matter

// The names that the checks accept, for `features`.
const std::vector<std::string>& namespace_names();
std::vector<std::string> memory_policy_modes();
const std::vector<std::string>& memory_policy_flags();

// validate.cc
Result<void> check_version(const Spec& spec);
Result<void> check_names(const Spec& spec);  // hostname, domainname
Result<void> check_hooks(const Spec& spec);
Result<void> check_annotations(const Spec& spec);
// validate_process.cc
Result<void> check_arguments(const Spec& spec);
Result<void> check_working_directory(const Spec& spec);
Result<void> check_user(const Spec& spec);
Result<void> check_capabilities(const Spec& spec);
Result<void> check_labels(const Spec& spec);
Result<void> check_rlimits(const Spec& spec);
Result<void> check_oom_score(const Spec& spec);
Result<void> check_scheduler(const Spec& spec);
Result<void> check_io_priority(const Spec& spec);
Result<void> check_affinity(const Spec& spec);
// validate_linux.cc
Result<void> check_mounts(const Spec& spec);
Result<void> check_procfs(const Spec& spec);
Result<void> check_paths(const Spec& spec);
Result<void> check_propagation(const Spec& spec);
Result<void> check_namespaces(const Spec& spec);
Result<void> check_mappings(const Spec& spec);
Result<void> check_time_offsets(const Spec& spec);
Result<void> check_devices(const Spec& spec);
Result<void> check_net_devices(const Spec& spec);
Result<void> check_personality(const Spec& spec);
Result<void> check_memory_policy(const Spec& spec);
Result<void> check_intel_rdt(const Spec& spec);
// validate_resources.cc
Result<void> check_cgroup_path(const Spec& spec);
Result<void> check_device_rules(const Spec& spec);
Result<void> check_memory(const Spec& spec);
Result<void> check_cpu(const Spec& spec);
Result<void> check_pids(const Spec& spec);
Result<void> check_block_io(const Spec& spec);
Result<void> check_hugepages(const Spec& spec);
Result<void> check_rdma(const Spec& spec);
Result<void> check_network_class(const Spec& spec);
Result<void> check_unified(const Spec& spec);
// validate_alone.cc: for a config.json that defines all namespaces of its container
Result<void> check_root(const Spec& spec);
Result<void> check_own_namespaces(const Spec& spec);
Result<void> check_own_user_namespace(const Spec& spec);
Result<void> check_own_sysctls(const Spec& spec);

}  // namespace coracle::oci
