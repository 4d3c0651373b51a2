// SPDX-License-Identifier: Apache-2.0
// LimitRange: which values containers get, which ones are refused, and the messages.
#include "tests/daemon/admission/admission_fixture.h"

namespace coracle::admission {
namespace {

constexpr const char* kRange =
    R"({"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"range","namespace":"default"},"spec":{"limits":[)";

std::string asks(const std::string& requests, const std::string& limits) {
  return R"(,"resources":{"requests":{)" + requests + R"(},"limits":{)" + limits + "}}";
}

TEST(LimitRanger, gives_what_is_not_named_and_says_so) {
  AdmissionFixture fixture;
  MUST(fixture.put(std::string(kRange) +
                   R"({"type":"Container","default":{"cpu":"500m","memory":"64Mi"},"defaultRequest":{"cpu":"100m"}}]}})"));
  ObjectPtr pod = MUST(fixture.put(AdmissionFixture::pod("p", R"(,"resources":{"limits":{"memory":"32Mi"}})",
                                                         R"(,"initContainers":[{"name":"first","image":"i"}])")));
  const json::value& container = get_array(pod->json(), "spec.containers")[0];
  EXPECT_EQ(get_string(container, "resources.limits.cpu"), "500m");
  EXPECT_EQ(get_string(container, "resources.limits.memory"), "32Mi") << "what was named stays";
  EXPECT_EQ(get_string(container, "resources.requests.cpu"), "100m");
  EXPECT_EQ(get_string(get_array(pod->json(), "spec.initContainers")[0], "resources.limits.memory"), "64Mi");
  std::string told(pod->annotation("kubernetes.io/limit-ranger"));
  EXPECT_TRUE(told.starts_with("LimitRanger plugin set: cpu request for container c; cpu limit for container c; ")) << told;
  EXPECT_NE(told.find("cpu, memory limit for init container first"), told.npos) << told;
  EXPECT_EQ(get_string(pod->json(), "status.qosClass"), "Burstable") << "the class follows from what was given";
  EXPECT_EQ(get_array(container, "resizePolicy").size(), 2u) << "and so do defaults";
  EXPECT_TRUE(fixture.registry().create_subresource(kPod, pod->key(), "binding",
                                                    json::object{{"target", json::object{{"kind", "Node"}, {"name", "n"}}}}, {}));
}

TEST(LimitRanger, refuses_what_is_outside) {
  struct Row {
    const char* limit;
    std::string container;
    std::string says;
  };
  const Row rows[] = {
      {R"({"type":"Container","min":{"cpu":"200m"}})", asks(R"("cpu":"100m")", R"("cpu":"1")"),
       "minimum cpu usage per Container is 200m, but request is 100m"},
      {R"({"type":"Container","max":{"memory":"1Gi"},"default":{"memory":"1Gi"}})", asks("", R"("memory":"2Gi")"),
       "maximum memory usage per Container is 1Gi, but limit is 2Gi"},
      {R"({"type":"Container","max":{"ephemeral-storage":"1Gi"},"default":{"cpu":"1"},"defaultRequest":{"cpu":"1"}})",
       asks(R"("ephemeral-storage":"2Gi")", R"("ephemeral-storage":"3Gi")"),
       "maximum ephemeral-storage usage per Container is 1Gi, but limit is 3Gi"},
      {R"({"type":"Container","maxLimitRequestRatio":{"cpu":"2"}})", asks(R"("cpu":"100m")", R"("cpu":"1")"),
       "cpu max limit to request ratio per Container is 2, but provided ratio is 10.000000"},
      {R"({"type":"Pod","max":{"cpu":"1"}})", asks(R"("cpu":"500m")", ""),
       "maximum cpu usage per Pod is 1.  No limit is specified"},
      {R"({"type":"Pod","min":{"memory":"1Gi"}})", "", "minimum memory usage per Pod is 1Gi.  No request is specified"},
      {R"({"type":"Container","min":{"cpu":"2","memory":"1Gi"}})", asks(R"("cpu":"1","memory":"1Mi")", ""),
       "[minimum cpu usage per Container is 2, but request is 1, minimum memory usage per Container is 1Gi, but request is 1Mi]"},
  };
  for (const Row& row : rows) {
    AdmissionFixture fixture;
    // Stored directly, so that no defaults are added to the LimitRange itself.
    MUST(fixture.engine->write({&fixture.kind("v1", "LimitRange"),
                                {"default", "range"},
                                AdmissionFixture::parse(std::string(kRange) + row.limit + R"(]}})"),
                                Revision(0)},
                               engine::Durability::durable));
    EXPECT_EQ(fixture.refusal(AdmissionFixture::pod("p", row.container)), "pods \"p\" is forbidden: " + row.says);
  }
}

TEST(LimitRanger, bounds_claims_by_what_they_request) {
  AdmissionFixture fixture;
  MUST(fixture.put(std::string(kRange) +
                   R"({"type":"PersistentVolumeClaim","min":{"storage":"1Gi"},"max":{"storage":"2Gi"}}]}})"));
  auto claim = [](const char* size) {
    return R"({"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"data","namespace":"default"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":")" +
           std::string(size) + R"("}}}})";
  };
  EXPECT_EQ(
      fixture.refusal(claim("5Gi")),
      "persistentvolumeclaims \"data\" is forbidden: maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 5Gi");
  EXPECT_EQ(
      fixture.refusal(claim("1Mi")),
      "persistentvolumeclaims \"data\" is forbidden: minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi");
  EXPECT_EQ(fixture.refusal(claim("2Gi")), "admitted");
}

}  // namespace
}  // namespace coracle::admission
