// SPDX-License-Identifier: Apache-2.0
// See update_rules.h: lists, of the exceptions each.
#include "daemon/registry/update_rules.h"

#include <algorithm>
#include <span>
#include <string_view>

namespace coracle::registry {
namespace {

using Names = std::span<const std::string_view>;

bool lists(Names names, const Kind& kind) {
  return std::find(names.begin(), names.end(), kind.qualified_resource()) != names.end();
}

constexpr std::string_view kCreates[] = {"endpoints",
                                         "events",
                                         "events.events.k8s.io",
                                         "limitranges",
                                         "services",
                                         "leases.coordination.k8s.io",
                                         "roles.rbac.authorization.k8s.io",
                                         "rolebindings.rbac.authorization.k8s.io",
                                         "clusterroles.rbac.authorization.k8s.io",
                                         "clusterrolebindings.rbac.authorization.k8s.io"};

constexpr std::string_view kConditional[] = {"leases.coordination.k8s.io",
                                             "poddisruptionbudgets.policy",
                                             "runtimeclasses.node.k8s.io",
                                             "volumeattachments.storage.k8s.io",
                                             "csidrivers.storage.k8s.io",
                                             "csinodes.storage.k8s.io",
                                             "csistoragecapacities.storage.k8s.io",
                                             "mutatingwebhookconfigurations.admissionregistration.k8s.io",
                                             "validatingwebhookconfigurations.admissionregistration.k8s.io",
                                             "validatingadmissionpolicies.admissionregistration.k8s.io",
                                             "validatingadmissionpolicybindings.admissionregistration.k8s.io",
                                             "mutatingadmissionpolicies.admissionregistration.k8s.io",
                                             "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
                                             "customresourcedefinitions.apiextensions.k8s.io",
                                             "apiservices.apiregistration.k8s.io",
                                             "storageversionmigrations.storagemigration.k8s.io"};

constexpr std::string_view kOrphaning[] = {"replicationcontrollers", "jobs.batch"};

// Their status is written without any metadata.
constexpr std::string_view kStatusOnly[] = {
    "flowschemas.flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
    "apiservices.apiregistration.k8s.io",       "validatingadmissionpolicies.admissionregistration.k8s.io",
    "resourceclaims.resource.k8s.io",           "volumeattachments.storage.k8s.io"};
constexpr std::string_view kLabelsKept[] = {"deployments.apps"};
constexpr std::string_view kOwnersKept[] = {"pods"};

}  // namespace

bool creates_on_update(const Kind& kind) { return lists(kCreates, kind); }
bool updates_unconditionally(const Kind& kind) { return !lists(kConditional, kind); }
bool orphans_by_default(const Kind& kind) { return lists(kOrphaning, kind); }

bool status_takes(const Kind& kind, std::string_view field) {
  if (lists(kStatusOnly, kind)) return false;
  return !(field == "labels" && lists(kLabelsKept, kind)) && !(field == "ownerReferences" && lists(kOwnersKept, kind));
}

}  // namespace coracle::registry
