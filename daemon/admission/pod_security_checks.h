// SPDX-License-Identifier: Apache-2.0
// The checks of the Pod Security Standards, one function per check and version. Pure. Each returns the violation, with
// Kubernetes' text; nullopt if the pod passes. Source: pod-security-admission/policy/check_*.go.
#pragma once

#include "daemon/admission/pod_security_policy.h"

namespace coracle::admission {

struct CheckedPod {
  view::ObjectMeta metadata;
  view::PodSpec spec;
};

using Verdict = std::optional<Violation>;

Verdict check_app_armor(const CheckedPod& pod);
Verdict check_capabilities_baseline(const CheckedPod& pod);
Verdict check_host_namespaces(const CheckedPod& pod);
Verdict check_host_path_volumes(const CheckedPod& pod);
Verdict check_host_ports(const CheckedPod& pod);
Verdict check_host_probes(const CheckedPod& pod);
Verdict check_privileged(const CheckedPod& pod);
Verdict check_proc_mount(const CheckedPod& pod);
Verdict check_proc_mount_1_35(const CheckedPod& pod);  // exempts pods with a user namespace
Verdict check_se_linux(const CheckedPod& pod);
Verdict check_se_linux_1_31(const CheckedPod& pod);
Verdict check_seccomp_annotations(const CheckedPod& pod);
Verdict check_seccomp_baseline(const CheckedPod& pod);
Verdict check_sysctls(const CheckedPod& pod);
Verdict check_sysctls_1_27(const CheckedPod& pod);
Verdict check_sysctls_1_29(const CheckedPod& pod);
Verdict check_sysctls_1_32(const CheckedPod& pod);
Verdict check_windows_host_process(const CheckedPod& pod);

Verdict check_privilege_escalation(const CheckedPod& pod);
Verdict check_privilege_escalation_1_25(const CheckedPod& pod);  // exempts Windows pods, which lack the field
Verdict check_capabilities_restricted(const CheckedPod& pod);
Verdict check_capabilities_restricted_1_25(const CheckedPod& pod);
Verdict check_restricted_volumes(const CheckedPod& pod);
Verdict check_run_as_non_root(const CheckedPod& pod);
Verdict check_run_as_non_root_1_35(const CheckedPod& pod);
Verdict check_run_as_user(const CheckedPod& pod);
Verdict check_run_as_user_1_35(const CheckedPod& pod);
Verdict check_seccomp_restricted(const CheckedPod& pod);
Verdict check_seccomp_restricted_1_25(const CheckedPod& pod);

}  // namespace coracle::admission
