// SPDX-License-Identifier: Apache-2.0
// Registers this folder. ConfigMaps, Secrets and ServiceAccounts.
#include "store/kinds/config/config_kinds.h"

namespace coracle::schema {
namespace {

constexpr KindRules kConfigKinds[] = {
    {.api_version = "v1", .resource = "configmaps", .update = check_config_update},
    {.api_version = "v1", .resource = "secrets", .update = check_config_update},
};

}  // namespace

extern const KindFamily config_family;
const KindFamily config_family{
    .defaults = {secret_defaults},
    .validation = {config_rules},
    .kinds = kConfigKinds,
};

}  // namespace coracle::schema
