// SPDX-License-Identifier: Apache-2.0
// Registers this folder. Webhook configurations and admission policies.
#include "store/kinds/admission/admission_kinds.h"

namespace coracle::schema {

extern const KindFamily admission_family;
const KindFamily admission_family{
    .validation = {webhook_rules},
    .cells = {admission_cells},
};

}  // namespace coracle::schema
