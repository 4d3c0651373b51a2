// SPDX-License-Identifier: Apache-2.0
// Which volume fits which claim, and the storage behind a pod's volume.
#include "daemon/volume/match.h"

#include <gtest/gtest.h>

#include "daemon/volume/backing.h"
#include "store/kinds/meta/default_object.h"

namespace coracle::volume {
namespace {

json::value parsed(const std::string& text) { return MUST(parse_json(text)); }

ObjectPtr volume_with(const std::string& name, const std::string& spec, const std::string& phase = "Available") {
  return MUST(
      Object::make(kPersistentVolume, parsed(R"({"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":")" + name +
                                             R"("},"spec":{)" + spec + R"(},"status":{"phase":")" + phase + R"("}})")));
}

ObjectPtr claim_with(const std::string& spec, const std::string& metadata = "", const std::string& status = "") {
  return MUST(Object::make(kPersistentVolumeClaim,
                           parsed(R"({"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"namespace":"ns","name":"data",
    "uid":"uid-data")" + metadata +
                                  R"(},"spec":{)" + spec + "}" + status + "}")));
}

constexpr const char* kOffer = R"("capacity":{"storage":"5Gi"},"accessModes":["ReadWriteOnce"])";
constexpr const char* kWish = R"("resources":{"requests":{"storage":"4Gi"}},"accessModes":["ReadWriteOnce"])";

TEST(Match, says_why_a_volume_does_not_do) {
  struct Row {
    std::string offered, wanted, why;
  };
  const std::string offer = kOffer, wish = kWish;
  for (const Row& row : std::vector<Row>{
           {offer, wish, ""},
           {R"("capacity":{"storage":"3Gi"},"accessModes":["ReadWriteOnce"])", wish, "requested PV is too small"},
           {R"("capacity":{"storage":"4096Mi"},"accessModes":["ReadWriteOnce"])", wish, ""},
           {offer + R"(,"storageClassName":"fast")", wish, "storageClassName does not match"},
           {offer + R"(,"storageClassName":"fast")", wish + R"(,"storageClassName":"fast")", ""},
           {offer + R"(,"volumeMode":"Filesystem")", wish, ""},
           {offer + R"(,"volumeMode":"Block")", wish, "incompatible volumeMode"},
           {R"("capacity":{"storage":"5Gi"},"accessModes":["ReadOnlyMany"])", wish, "incompatible accessMode"},
           {R"("capacity":{"storage":"5Gi"},"accessModes":["ReadOnlyMany","ReadWriteOnce"])", wish, ""},
           {offer + R"(,"volumeAttributesClassName":"gold")", wish, "volumeAttributesClassName does not match"},
           // The first of several reasons.
           {R"("capacity":{"storage":"3Gi"},"storageClassName":"fast")", wish, "requested PV is too small"},
           {R"("capacity":{"storage":"5Gi"},"volumeMode":"Block","volumeAttributesClassName":"gold")", wish,
            "volumeAttributesClassName does not match"},
       })
    EXPECT_EQ(mismatch(*volume_with("v", row.offered), *claim_with(row.wanted)), row.why) << row.offered << row.wanted;
}

TEST(Match, prefers_what_is_kept_and_then_what_is_small) {
  auto named = [](const ObjectPtr& found) { return found ? found->name() : std::string("none"); };
  ObjectPtr claim = claim_with(kWish);
  ObjectPtr big = volume_with("big", R"("capacity":{"storage":"50Gi"},"accessModes":["ReadWriteOnce"])"),
            fits = volume_with("fits", kOffer), early = volume_with("early", kOffer, "Pending"),
            kept = volume_with("kept", R"("capacity":{"storage":"90Gi"},"accessModes":["ReadWriteOnce"],"storageClassName":"x",
              "claimRef":{"namespace":"ns","name":"data"})"),
            tiny = volume_with("tiny", R"("capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],
              "claimRef":{"namespace":"ns","name":"data"})"),
            others =
                volume_with("others", std::string(kOffer) + R"(,"claimRef":{"namespace":"ns","name":"data","uid":"before"})");
  EXPECT_EQ(named(find_matching_volume({big, early, fits, others, tiny}, *claim, false)), "fits");
  EXPECT_EQ(named(find_matching_volume({big, fits, kept}, *claim, false)), "kept");
  EXPECT_EQ(named(find_matching_volume({big, fits}, *claim, true)), "none");
  EXPECT_EQ(named(find_matching_volume({big, fits, kept}, *claim, true)), "kept");
  EXPECT_EQ(named(find_matching_volume({big, fits}, *claim, false, [](const Object& one) { return one.name() == "big"; })),
            "big");
  EXPECT_EQ(named(find_matching_volume({big, kept, fits}, *claim, false, [](const Object& one) { return one.name() != "kept"; })),
            "none")
      << "what is kept for the claim is elsewhere";
}

TEST(Match, leaves_to_others_what_many_may_share) {
  auto volume = [](const char* name, const char* size, const char* modes) {
    return volume_with(name, std::string(R"("capacity":{"storage":")") + size + R"("},"accessModes":[)" + modes + "]");
  };
  const std::vector<ObjectPtr> all = {volume("shared", "5Gi", R"("ReadWriteOnce","ReadWriteMany")"),
                                      volume("alone", "20Gi", R"("ReadWriteOnce","ReadWriteOnce")"),
                                      volume("larger", "30Gi", R"("ReadWriteOnce")")};
  EXPECT_EQ(find_matching_volume(all, *claim_with(kWish), false)->name(), "alone");
  auto any = [](const Object&) { return true; };
  EXPECT_EQ(find_matching_volume(all, *claim_with(kWish), false, any)->name(), "shared") << "a node's first one is the smallest";
}

TEST(DefaultClass, is_the_newest_that_is_marked) {
  auto storage_class = [](const std::string& name, const std::string& made, const std::string& mark) {
    return MUST(
        Object::make(kStorageClass,
                     parsed(R"({"apiVersion":"storage.k8s.io/v1","kind":"StorageClass","provisioner":"x","metadata":{"name":")" +
                            name + R"(","creationTimestamp":")" + made + R"(","annotations":{)" + mark + "}}}")));
  };
  const std::string mark = R"("storageclass.kubernetes.io/is-default-class":"true")";
  EXPECT_FALSE(default_object({storage_class("a", "2026-01-01T00:00:00Z", "")}, kDefaultStorageClass));
  EXPECT_EQ(
      default_object({storage_class("a", "2026-01-01T00:00:00Z", mark), storage_class("b", "2026-01-02T00:00:00Z", mark),
                      storage_class("c", "2026-01-03T00:00:00Z", R"("storageclass.kubernetes.io/is-default-class":"false")")},
                     kDefaultStorageClass)
          ->name(),
      "b");
}

struct BackingTest : testing::Test {
  json::value pod = parsed(R"({"metadata":{"namespace":"ns","name":"web","uid":"uid-web"}})");
  ObjectPtr claim, volume;
  std::string behind(const std::string& source) {
    auto found = backing_of(pod, parsed(R"({"name":"v",)" + source + "}"),
                            {[&](const Key& key) { return claim && key == claim->key() ? claim : nullptr; },
                             [&](std::string_view name) { return volume && name == volume->name() ? volume : nullptr; }});
    return found ? found->volume->name() + (found->read_only ? " read-only" : "") : found.error().text();
  }
};

TEST_F(BackingTest, is_the_volume_once_both_say_so) {
  const std::string names = R"("persistentVolumeClaim":{"claimName":"data"})", at = "error processing PVC ns/data: ";
  EXPECT_EQ(behind(names), at + "persistentvolumeclaim \"data\" not found");
  claim = claim_with(kWish);
  EXPECT_EQ(behind(names), at + "PVC ns/data has non-bound phase (\"\") or empty pvc.Spec.VolumeName (\"\")");
  claim = claim_with(std::string(kWish) + R"(,"volumeName":"disk")", "", R"(,"status":{"phase":"Bound"})");
  EXPECT_EQ(behind(names), at + "persistentvolume \"disk\" not found");
  volume = volume_with("disk", std::string(kOffer) + R"(,"claimRef":{"namespace":"ns","name":"data","uid":"before"})");
  EXPECT_EQ(behind(names), at + "persistentvolume \"disk\" is bound to a different PVC");
  volume = volume_with("disk", std::string(kOffer) + R"(,"claimRef":{"namespace":"ns","name":"data","uid":"uid-data"})");
  EXPECT_EQ(behind(names), "disk");
  EXPECT_EQ(behind(R"("persistentVolumeClaim":{"claimName":"data","readOnly":true})"), "disk read-only");
  claim = claim_with(std::string(kWish) + R"(,"volumeName":"disk")", R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")",
                     R"(,"status":{"phase":"Bound"})");
  EXPECT_EQ(behind(names), at + "PVC is being deleted");
}

TEST_F(BackingTest, an_ephemeral_claim_is_the_pods_own) {
  EXPECT_EQ(claim_name("web", parsed(R"({"name":"v","ephemeral":{}})")), "web-v");
  EXPECT_EQ(claim_name("web", parsed(R"({"name":"v","emptyDir":{}})")), "");
  pod = parsed(R"({"metadata":{"namespace":"ns","name":"da","uid":"uid-da"}})");
  json::value made = claim_with(std::string(kWish) + R"(,"volumeName":"disk")", "", R"(,"status":{"phase":"Bound"})")->json();
  make(made, "metadata.name") = "da-v";
  claim = MUST(Object::make(kPersistentVolumeClaim, made));
  volume = volume_with("disk", std::string(kOffer) + R"(,"claimRef":{"namespace":"ns","name":"da-v","uid":"uid-data"})");
  EXPECT_EQ(behind(R"("ephemeral":{})"),
            "error processing PVC ns/da-v: PVC ns/da-v was not created for pod ns/da (pod is not owner)");
  make(made, "metadata.ownerReferences") =
      parsed(R"([{"apiVersion":"v1","kind":"Pod","name":"da","uid":"uid-da","controller":true}])");
  claim = MUST(Object::make(kPersistentVolumeClaim, made));
  EXPECT_EQ(behind(R"("ephemeral":{})"), "disk");
}

}  // namespace
}  // namespace coracle::volume
