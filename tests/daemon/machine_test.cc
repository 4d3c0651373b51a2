// SPDX-License-Identifier: Apache-2.0
// The settings that the daemon derives from the machine that it starts on.
#include "daemon/machine.h"

#include <gtest/gtest.h>

namespace coracle {
namespace {

json::value node(const char* name, const char* machine, const char* made) {
  return {{"metadata", {{"name", name}, {"creationTimestamp", made}}}, {"status", {{"nodeInfo", {{"machineID", machine}}}}}};
}

TEST(NodeName, is_the_hosts_until_the_machine_has_registered_and_stays) {
  EXPECT_EQ(node_name_of({}, "m1", "pi"), "pi");
  json::value first = node("raspberrypi", "m1", "2026-01-01T00:00:00Z"), second = node("a-later", "m1", "2026-01-02T00:00:00Z"),
              other = node("gateway", "m2", "2025-01-01T00:00:00Z"), unknown = node("bare", "", "2025-01-01T00:00:00Z");
  EXPECT_EQ(node_name_of({first}, "m1", "raspberrypi"), "raspberrypi");
  EXPECT_EQ(node_name_of({first}, "m1", "shop-7"), "raspberrypi") << "the host was renamed";
  EXPECT_EQ(node_name_of({other, unknown}, "m1", "shop-7"), "shop-7") << "other machines'";
  EXPECT_EQ(node_name_of({second, other, first}, "m1", "shop-7"), "raspberrypi") << "the first of several";
  EXPECT_EQ(node_name_of({first, second}, "m1", "a-later"), "a-later") << "one that it has registered under";
  EXPECT_EQ(node_name_of({unknown}, "", "shop-7"), "shop-7") << "who has no id cannot be told from others";
}

}  // namespace
}  // namespace coracle
