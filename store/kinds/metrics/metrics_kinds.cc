// SPDX-License-Identifier: Apache-2.0
// Registers this folder. NodeMetrics and PodMetrics.
#include "store/kinds/metrics/metrics_kinds.h"

namespace coracle::schema {

extern const KindFamily metrics_family;
const KindFamily metrics_family{
    .cells = {metrics_cells},
};

}  // namespace coracle::schema
