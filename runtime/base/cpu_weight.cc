// SPDX-License-Identifier: Apache-2.0
// See cpu_weight.h.
#include "runtime/base/cpu_weight.h"

#include <cmath>

namespace coracle {

uint64_t weight_of_shares(uint64_t shares) {
  if (shares == 0) return 0;
  if (shares <= 2) return 1;
  if (shares >= 262144) return kCpuWeightMax;
  // The logarithm of the weight is a parabola over the logarithm of the shares, through all three points.
  double log = std::log2(double(shares));
  return uint64_t(std::ceil(std::pow(10, (log * log + 125 * log) / 612 - 7.0 / 34)));
}

}  // namespace coracle
