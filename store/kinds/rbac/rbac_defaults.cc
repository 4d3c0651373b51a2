// SPDX-License-Identifier: Apache-2.0
// Subjects of bindings: the default group of users and groups is RBAC's. Source: rbac.authorization.k8s.io/v1 API reference.
#include "store/kinds/rbac/rbac_kinds.h"

namespace coracle::schema {
namespace {

void fill_subject(json::object& subject) {
  std::string_view kind = text_at(subject, "kind");
  if (unset(subject, "apiGroup") && (kind == "User" || kind == "Group")) subject["apiGroup"] = "rbac.authorization.k8s.io";
}

constexpr NamedDefaultRule kRbacDefaults[] = {{"io.k8s.api.rbac.v1.Subject", fill_subject}};

}  // namespace

std::span<const NamedDefaultRule> rbac_defaults() { return kRbacDefaults; }

}  // namespace coracle::schema
