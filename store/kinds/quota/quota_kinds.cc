// SPDX-License-Identifier: Apache-2.0
// Registers this folder. ResourceQuotas and LimitRanges.
#include "store/kinds/quota/quota_kinds.h"

namespace coracle::schema {
namespace {

constexpr KindRules kQuotaKinds[] = {
    {.api_version = "v1", .resource = "resourcequotas", .update = check_quota_update, .status = check_quota_status},
};

}  // namespace

extern const KindFamily quota_family;
const KindFamily quota_family{
    .defaults = {limit_defaults},
    .validation = {quota_rules},
    .cells = {quota_cells},
    .kinds = kQuotaKinds,
};

}  // namespace coracle::schema
