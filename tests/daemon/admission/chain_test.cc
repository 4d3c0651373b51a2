// SPDX-License-Identifier: Apache-2.0
// The chain as a whole: its order, and that a plugin sees what those before it made of an object.
#include "daemon/admission/chain.h"

#include "tests/daemon/admission/house.h"

namespace coracle::admission {
namespace {

TEST(Chain, has_kubernetes_order) {
  House house;
  Chain chain(*house.engine, [] { return "x"; });
  EXPECT_EQ(chain.names(),
            (std::vector<std::string_view>{"NamespaceLifecycle", "LimitRanger", "ServiceAccount", "NodeRestriction",
                                           "TaintNodesByCondition", "PodSecurity", "Priority", "DefaultTolerationSeconds",
                                           "DefaultStorageClass", "StorageObjectInUseProtection", "PersistentVolumeClaimResize",
                                           "RuntimeClass", "DefaultIngressClass", "StartOrder", "ResourceQuota"}));
}

TEST(Chain, a_quota_counts_what_a_range_gave) {
  House house;
  MUST(house.put(
      R"({"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"r","namespace":"default"},"spec":{"limits":[{"type":"Container","defaultRequest":{"cpu":"300m"}}]}})"));
  ObjectPtr quota = MUST(house.put(
      R"({"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"q","namespace":"default"},"spec":{"hard":{"requests.cpu":"500m"}}})"));
  house.store(*quota, "status", House::parse(R"({"hard":{"requests.cpu":"500m"},"used":{"requests.cpu":"0"}})"));
  EXPECT_EQ(house.refusal(House::pod("a")), "admitted");
  EXPECT_EQ(house.refusal(House::pod("b")),
            "pods \"b\" is forbidden: exceeded quota: q, requested: requests.cpu=300m, used: requests.cpu=300m, limited: "
            "requests.cpu=500m");
}

}  // namespace
}  // namespace coracle::admission
