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

TEST(Discovery, the_version_that_is_next_in_shape_comes_first) {
  auto others = [](const std::vector<const char*>& versions, const char* wanted) {
    json::array list;
    for (const char* version : versions) list.push_back(json::object{{"version", version}});
    return other_versions(json::object{{"versions", std::move(list)}}, wanted);
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(others({"v1", "v2beta1", "v2beta2"}, "v2"), (Names{"v2beta2", "v2beta1", "v1"}));
  EXPECT_EQ(others({"v1alpha1", "v1beta1", "v1", "v2"}, "v1"), (Names{"v1beta1", "v1alpha1", "v2"}));
  EXPECT_EQ(others({"v1"}, "v1"), Names());
}

}  // namespace
}  // namespace coracle::ctl
