// SPDX-License-Identifier: Apache-2.0
// Default classes, claims that grow, and the finalizers of storage that may be in use.
#include "tests/daemon/admission/admission_fixture.h"

namespace coracle::admission {
namespace {

std::string claim(const std::string& name, const std::string& spec = "", const std::string& size = "1Gi") {
  return R"({"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":")" + name +
         R"(","namespace":"default"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":")" + size +
         "\"}}" + spec + "}}";
}

// Stored directly: admission uses the class even if its kind is not served.
void put_class(AdmissionFixture& fixture, const Kind& kind, const std::string& name, const std::string& made,
               const char* annotation, bool grows = false) {
  json::object metadata{{"name", name}, {"uid", "u-" + name}, {"creationTimestamp", made}};
  if (annotation) metadata["annotations"] = json::object{{annotation, "true"}};
  json::value body = json::object{
      {"apiVersion", kind.api_version()}, {"kind", kind.kind}, {"metadata", metadata}, {"allowVolumeExpansion", grows}};
  MUST(fixture.engine->write({&kind, {"", name}, body, std::nullopt}, engine::Durability::durable));
}

TEST(DefaultStorageClass, the_newest_default_where_none_is_named) {
  AdmissionFixture fixture;
  EXPECT_FALSE(find(MUST(fixture.put(claim("a")))->json(), "spec.storageClassName")) << "there is none";
  put_class(fixture, kStorageClass, "plain", "2026-03-01T00:00:00Z", nullptr);
  put_class(fixture, kStorageClass, "old", "2026-01-01T00:00:00Z", "storageclass.kubernetes.io/is-default-class");
  put_class(fixture, kStorageClass, "new", "2026-02-01T00:00:00Z", "storageclass.kubernetes.io/is-default-class");
  EXPECT_EQ(get_string(MUST(fixture.put(claim("b")))->json(), "spec.storageClassName"), "new");
  EXPECT_EQ(get_string(MUST(fixture.put(claim("c", R"(,"storageClassName":"plain")")))->json(), "spec.storageClassName"),
            "plain");
  EXPECT_EQ(get_string(MUST(fixture.put(claim("d", R"(,"storageClassName":"")")))->json(), "spec.storageClassName"), "")
      << "none is wanted";
}

TEST(DefaultIngressClass, the_default_where_none_is_named) {
  AdmissionFixture fixture;
  auto ingress = [](const char* name, const char* more) {
    return R"({"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":")" + std::string(name) +
           R"(","namespace":"default"},"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":80}}})" + more + "}}";
  };
  put_class(fixture, kIngressClass, "edge", "2026-01-01T00:00:00Z", "ingressclass.kubernetes.io/is-default-class");
  EXPECT_EQ(get_string(MUST(fixture.put(ingress("a", "")))->json(), "spec.ingressClassName"), "edge");
  EXPECT_EQ(get_string(MUST(fixture.put(ingress("b", R"(,"ingressClassName":"other")")))->json(), "spec.ingressClassName"),
            "other");
}

TEST(StorageObjectInUseProtection, claims_begin_with_their_finalizer) {
  AdmissionFixture fixture;
  EXPECT_EQ(get_array(MUST(fixture.put(claim("a")))->json(), "metadata.finalizers"),
            (json::array{"kubernetes.io/pvc-protection"}));
}

TEST(PersistentVolumeClaimResize, where_the_class_lets_volumes_grow) {
  AdmissionFixture fixture;
  put_class(fixture, kStorageClass, "fixed", "2026-01-01T00:00:00Z", nullptr);
  put_class(fixture, kStorageClass, "growing", "2026-01-01T00:00:00Z", nullptr, true);
  ObjectPtr fixed = MUST(fixture.put(claim("fixed", R"(,"storageClassName":"fixed","volumeName":"v")")));
  ObjectPtr growing = MUST(fixture.put(claim("growing", R"(,"storageClassName":"growing","volumeName":"w")")));
  auto grow = [&](const char* name) {
    return fixture.try_merge(kPersistentVolumeClaim, {"default", name},
                             R"({"spec":{"resources":{"requests":{"storage":"2Gi"}}}})");
  };
  fixture.store(*fixed, "status", json::object{{"phase", "Bound"}});
  fixture.store(*growing, "status", json::object{{"phase", "Bound"}});
  EXPECT_EQ(grow("fixed").error().text(),
            "persistentvolumeclaims \"fixed\" is forbidden: only dynamically provisioned pvc can be resized and the storageclass "
            "that provisions the pvc must support resize");
  EXPECT_TRUE(grow("growing"));
}

}  // namespace
}  // namespace coracle::admission
