// SPDX-License-Identifier: Apache-2.0
// Registers this folder. Namespaces.
#include "store/kinds/namespace/namespace_kinds.h"

namespace coracle::schema {
namespace {

constexpr KindRules kNamespaceKinds[] = {
    {.api_version = "v1", .resource = "namespaces", .begin = begin_namespace},
};

}  // namespace

extern const KindFamily namespace_family;
const KindFamily namespace_family{
    .defaults = {namespace_defaults},
    .kinds = kNamespaceKinds,
};

}  // namespace coracle::schema
