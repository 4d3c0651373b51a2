// SPDX-License-Identifier: Apache-2.0
// Registers this folder. What all kinds share: metadata and label selectors.
#include "store/kinds/meta/meta_kinds.h"

namespace coracle::schema {

extern const KindFamily meta_family;
const KindFamily meta_family{
    .validation = {meta_rules},
};

}  // namespace coracle::schema
