// SPDX-License-Identifier: Apache-2.0
// Registers this folder. Leases.
#include "store/kinds/lease/lease_kinds.h"

namespace coracle::schema {

extern const KindFamily lease_family;
const KindFamily lease_family{
    .validation = {lease_rules},
};

}  // namespace coracle::schema
