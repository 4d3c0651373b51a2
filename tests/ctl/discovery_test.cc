// SPDX-License-Identifier: Apache-2.0
// A resource by what users call it.
#include "ctl/discovery.h"

#include <gtest/gtest.h>

namespace coracle::ctl {
namespace {

TEST(Discovery, finds_a_resource_by_any_of_its_names) {
  std::vector<ApiResource> resources = {{"", "v1", "pods", "pod", "Pod", true, {"po"}, {}, {}},
                                        {"example.com", "v2", "gadgets", "gadget", "Gadget", false, {"gd"}, {}, {}}};
  for (const char* word : {"pods", "pod", "po", "Pod"}) EXPECT_EQ(resource_named(resources, word), &resources[0]) << word;
  for (const char* word : {"gadgets.example.com", "gd", "gadget.v2.example.com", "gadgets.example"})
    EXPECT_EQ(resource_named(resources, word), &resources[1]) << word;
  for (const char* word : {"gadgets.other.com", "gadgets.v1.example.com", "ga", "pods.apps"})
    EXPECT_EQ(resource_named(resources, word), nullptr) << word;
  EXPECT_EQ(resources[1].group_version(), "example.com/v2");
  EXPECT_EQ(resources[0].group_version(), "v1");
}

}  // namespace
}  // namespace coracle::ctl
