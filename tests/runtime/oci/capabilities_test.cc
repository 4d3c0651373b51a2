// SPDX-License-Identifier: Apache-2.0
// Names of capabilities and their bits.
#include "runtime/oci/capabilities.h"

#include <gtest/gtest.h>

namespace coracle::oci {
namespace {

TEST(OciCapabilities, know_the_kernel_s_names) {
  EXPECT_EQ(capability_number("CAP_CHOWN"), 0);
  EXPECT_EQ(capability_number("CAP_NET_RAW"), 13);
  for (const char* bad : {"NET_RAW", "CAP_", "CAP_0", "13", "cap_chown", ""}) EXPECT_FALSE(capability_number(bad)) << bad;
  auto all = all_capabilities();
  EXPECT_GE(all.size(), 41u);
  EXPECT_EQ(all[0], "CAP_CHOWN");
  EXPECT_EQ(*capability_set({"CAP_CHOWN", "CAP_NET_RAW"}), 1u | 1u << 13);
}

}  // namespace
}  // namespace coracle::oci
