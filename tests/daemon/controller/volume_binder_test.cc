// SPDX-License-Identifier: Apache-2.0
// The volume binder: which volume a claim gets, the two objects' status, and that an interruption between two writes changes
// nothing.
#include "daemon/controller/storage/volume_binder.h"

#include "tests/daemon/controller/bench.h"

namespace coracle::controller {
namespace {

struct VolumeBinderTest : Bench {
  // `spec` and `annotations`: further members, without braces.
  void put_volume(const std::string& name, const std::string& size, const std::string& spec = "",
                  const std::string& annotations = "") {
    client.put(kPersistentVolume,
               R"({"metadata":{"name":")" + name + R"(","uid":"uid-)" + name + R"(","labels":{"name":")" + name +
                   R"("},"annotations":{)" + annotations + R"(}},"spec":{"capacity":{"storage":")" + size +
                   R"("},"accessModes":["ReadWriteOnce","ReadOnlyMany"],"persistentVolumeReclaimPolicy":"Retain")" +
                   (spec.empty() ? "" : ",") + spec + R"(},"status":{"phase":"Pending"}})");
  }
  void put_claim(const std::string& name, const std::string& size, const std::string& spec = "",
                 const std::string& annotations = "") {
    client.put(kPersistentVolumeClaim, R"({"metadata":{"name":")" + name + R"(","namespace":"default","uid":"uid-)" + name +
                                           R"(","annotations":{)" + annotations +
                                           R"(}},"spec":{"resources":{"requests":{"storage":")" + size + R"("}})" +
                                           (spec.find("accessModes") == spec.npos ? R"(,"accessModes":["ReadWriteOnce"])" : "") +
                                           (spec.empty() ? "" : ",") + spec + R"(},"status":{"phase":"Pending"}})");
  }
  void put_class(const std::string& name, const std::string& more, const std::string& annotations = "") {
    client.put(kStorageClass, R"({"metadata":{"name":")" + name + R"(","annotations":{)" + annotations +
                                  R"(}},"provisioner":"example.com/disks")" + (more.empty() ? "" : ",") + more + "}");
  }
  std::string claim(const std::string& name) {  // "Bound big"
    ObjectPtr found = client.find(kPersistentVolumeClaim, {"default", name});
    if (!found) return "gone";
    std::string volume(get_string(found->json(), "spec.volumeName"));
    return std::string(get_string(found->json(), "status.phase")) + (volume.empty() ? "" : " " + volume);
  }
  std::string volume(const std::string& name) {  // "Bound data"
    ObjectPtr found = client.find(kPersistentVolume, {"", name});
    if (!found) return "gone";
    std::string claim(get_string(found->json(), "spec.claimRef.name"));
    return std::string(get_string(found->json(), "status.phase")) + (claim.empty() ? "" : " " + claim);
  }
};

TEST_F(VolumeBinderTest, a_claim_gets_the_smallest_volume_that_suits) {
  start();
  put_volume("huge", "100Gi");
  put_volume("small", "1Gi");
  put_volume("fits", "5Gi");
  put_volume("block", "5Gi", R"("volumeMode":"Block")");
  put_volume("fast", "5Gi", R"("storageClassName":"fast")");
  settle();  // a claim gets no volume that is not yet Available
  put_claim("data", "4Gi");
  settle();
  EXPECT_EQ(claim("data"), "Bound fits");
  EXPECT_EQ(volume("fits"), "Bound data");
  for (const char* other : {"huge", "small", "block", "fast"}) EXPECT_EQ(volume(other), "Available") << other;
  ObjectPtr bound = client.find(kPersistentVolumeClaim, {"default", "data"});
  EXPECT_EQ(to_text(*find(bound->json(), "status.capacity")), R"({"storage":"5Gi"})");
  EXPECT_EQ(to_text(*find(bound->json(), "status.accessModes")), R"(["ReadWriteOnce","ReadOnlyMany"])");
  EXPECT_EQ(bound->annotation(volume::kBindCompleted), "yes");
  EXPECT_EQ(bound->annotation(volume::kBoundByController), "yes");
  json::value reference = *find(client.find(kPersistentVolume, {"", "fits"})->json(), "spec.claimRef");
  EXPECT_EQ(get_string(reference, "uid"), "uid-data");
  EXPECT_EQ(get_string(reference, "kind"), "PersistentVolumeClaim");
}

TEST_F(VolumeBinderTest, a_volume_that_is_deleted_before_its_claim_has_it_is_not_kept_for_it) {
  put_claim("data", "1Gi");
  ObjectPtr claim = client.find(kPersistentVolumeClaim, {"default", "data"});
  auto half_bound = [](const std::string& metadata) {
    return MUST(Object::make(kPersistentVolume, *parse_json(R"({"metadata":{"name":"half")" + metadata + R"(},"spec":{"claimRef":
      {"namespace":"default","name":"data","uid":"uid-data"}},"status":{"phase":"Bound"}})")));
  };
  EXPECT_EQ(plan_volume(*half_bound(""), claim.get()).phase, "") << "its claim is being bound";
  EXPECT_EQ(plan_volume(*half_bound(R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")"), claim.get()).phase, "Available");
}

TEST_F(VolumeBinderTest, what_another_says_of_a_volume_stays_while_its_phase_does) {
  start();
  put_volume("small", "1Gi");
  settle();
  client.set_status(kPersistentVolume, {"", "small"}, R"({"phase":"Available","message":"worn out","reason":"Checked"})");
  settle();
  auto said = [&] { return get_string(client.find(kPersistentVolume, {"", "small"})->json(), "status.message"); };
  EXPECT_EQ(said(), "worn out");
  put_claim("data", "1Gi");
  settle();
  EXPECT_EQ(volume("small"), "Bound data");
  EXPECT_EQ(said(), "");
}

TEST_F(VolumeBinderTest, a_claim_waits_for_what_it_asks_for_and_says_for_what) {
  put_class("later", R"("volumeBindingMode":"WaitForFirstConsumer")");
  put_class("made", "");
  put_class("by-hand", R"("provisioner":"kubernetes.io/no-provisioner")");
  put_class("in-tree", R"("provisioner":"kubernetes.io/glusterfs")");
  put_class("moved", R"("provisioner":"kubernetes.io/aws-ebs")");
  struct Row {
    const char *claim, *want;
  };
  const Row kRows[] = {
      {R"("storageClassName":"")", "FailedBinding: no persistent volumes available for this claim and no storage class is set"},
      {R"("storageClassName":"gone")", "ProvisioningFailed: storageclass.storage.k8s.io \"gone\" not found"},
      {R"("storageClassName":"later")", "WaitForFirstConsumer: waiting for first consumer to be created before binding"},
      {R"("storageClassName":"by-hand")", "ProvisioningFailed: no volume plugin matched name: kubernetes.io/no-provisioner"},
      {R"("storageClassName":"in-tree")", "ProvisioningFailed: no volume plugin matched name: kubernetes.io/glusterfs"},
      {R"("storageClassName":"moved")",
       "ExternalProvisioning: Waiting for a volume to be created either by the external provisioner 'ebs.csi.aws.com' or "
       "manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and "
       "correctly registered."},
      {R"("storageClassName":"","volumeName":"small")",
       "VolumeMismatch: Cannot bind to requested volume \"small\": requested PV is too small"},
      {R"("storageClassName":"made","volumeName":"big")",
       "VolumeMismatch: Cannot bind to requested volume \"big\": storageClassName does not match"},
      {R"("storageClassName":"","volumeMode":"Block","volumeName":"big")",
       "VolumeMismatch: Cannot bind to requested volume \"big\": incompatible volumeMode"},
      {R"("storageClassName":"","accessModes":["ReadWriteMany"],"volumeName":"big")",
       "VolumeMismatch: Cannot bind to requested volume \"big\": incompatible accessMode"},
      {R"("storageClassName":"","volumeName":"taken")", "FailedBinding: volume \"taken\" already bound to a different claim."},
      {R"("storageClassName":"","volumeName":"nowhere")", ""},
      {R"("storageClassName":"made")",
       "ExternalProvisioning: Waiting for a volume to be created either by the external provisioner 'example.com/disks' or "
       "manually "
       "by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly "
       "registered."},
  };
  put_volume("small", "1Gi", R"("claimRef":{"kind":"PersistentVolumeClaim","namespace":"other","name":"x"})");
  put_volume("taken", "10Gi", R"("claimRef":{"namespace":"other","name":"x","uid":"uid-x"})");
  start();
  for (const Row& row : kRows) {
    client.erase(kPersistentVolume, {"", "small"}), client.erase(kPersistentVolume, {"", "big"});
    settle();
    events.take();
    std::string spec = row.claim;
    put_claim("data", "5Gi", spec);
    settle();
    if (spec.find("\"small\"") != spec.npos) put_volume("small", "1Gi");
    if (spec.find("\"big\"") != spec.npos) put_volume("big", "10Gi");
    settle();
    EXPECT_TRUE(claim("data").starts_with("Pending")) << row.claim << claim("data");
    std::string told;
    for (const EventRecord& event : events.take())
      if (event.about.name == "data") told = event.reason + ": " + event.message;
    EXPECT_EQ(told, row.want) << row.claim;
    client.erase(kPersistentVolumeClaim, {"default", "data"});
    settle();
  }
}

TEST_F(VolumeBinderTest, labels_choose) {
  start();
  put_volume("a", "1Gi");
  put_volume("b", "1Gi");
  put_claim("data", "1Gi", R"("selector":{"matchLabels":{"name":"b"}})");
  put_claim("none", "1Gi", R"("selector":{"matchExpressions":[{"key":"name","operator":"DoesNotExist"}]})");
  settle();
  EXPECT_EQ(claim("data"), "Bound b");
  EXPECT_EQ(claim("none"), "Pending");
  EXPECT_EQ(volume("a"), "Available");
}

TEST_F(VolumeBinderTest, who_is_named_in_advance_is_waited_for) {
  start();
  put_volume("kept", "10Gi", R"("storageClassName":"odd","claimRef":{"namespace":"default","name":"data"})");
  put_claim("other", "1Gi");
  settle();
  EXPECT_EQ(claim("other"), "Pending");
  EXPECT_EQ(volume("kept"), "Available data");
  put_claim("data", "1Gi");
  settle();
  EXPECT_EQ(claim("data"), "Bound kept");
  EXPECT_EQ(client.find(kPersistentVolume, {"", "kept"})->annotation(volume::kBoundByController), "") << "a person chose";
  put_claim("asks", "1Gi", R"("volumeName":"comes")");
  settle();
  EXPECT_EQ(claim("asks"), "Pending comes");
  put_volume("comes", "3Gi");
  settle();
  EXPECT_EQ(claim("asks"), "Bound comes");
  EXPECT_EQ(client.find(kPersistentVolumeClaim, {"default", "asks"})->annotation(volume::kBoundByController), "");
}

TEST_F(VolumeBinderTest, of_two_claims_one_gets_the_volume) {
  start();
  put_claim("a", "1Gi");
  put_claim("b", "1Gi");
  put_volume("only", "1Gi");
  settle();
  pass(std::chrono::seconds(2));
  EXPECT_NE(claim("a") == "Bound only", claim("b") == "Bound only") << claim("a") << ", " << claim("b");
}

TEST_F(VolumeBinderTest, a_class_is_asked_to_make_one) {
  start();
  put_class("made", "");
  put_class("later", R"("volumeBindingMode":"WaitForFirstConsumer")");
  put_claim("now", "1Gi", R"("storageClassName":"made")");
  put_claim("then", "1Gi", R"("storageClassName":"later")");
  settle();
  auto asked = [&](const char* name) {
    ObjectPtr found = client.find(kPersistentVolumeClaim, {"default", name});
    return std::string(found->annotation(volume::kProvisioner)) + " " + std::string(found->annotation(volume::kBetaProvisioner));
  };
  EXPECT_EQ(asked("now"), "example.com/disks example.com/disks");
  EXPECT_EQ(asked("then"), " ");
  put_volume("free", "1Gi", R"("storageClassName":"later")");
  settle();
  EXPECT_EQ(claim("then"), "Pending") << "where its pod will run is not known";
  client.erase(kPersistentVolume, {"", "free"});
  MUST(client.patch(kPersistentVolumeClaim, {"default", "then"}, PatchType::merge,
                    {{"metadata", {{"annotations", {{volume::kSelectedNode, "pi"}}}}}}));
  settle();
  EXPECT_EQ(asked("then"), "example.com/disks example.com/disks");
  put_volume("free", "1Gi", R"("storageClassName":"later")");
  settle();
  EXPECT_EQ(claim("then"), "Pending") << "the scheduler wants a volume on that node, and this one may be elsewhere";
  EXPECT_EQ(volume("free"), "Available");
  put_volume("pvc-2", "1Gi", R"("storageClassName":"later","claimRef":{"namespace":"default","name":"then","uid":"uid-then"})");
  settle();
  EXPECT_EQ(claim("then"), "Bound pvc-2");
  put_volume("pvc-1", "1Gi", R"("storageClassName":"made","claimRef":{"namespace":"default","name":"now","uid":"uid-now"})");
  settle();
  EXPECT_EQ(claim("now"), "Bound pvc-1");
}

TEST_F(VolumeBinderTest, a_directory_is_made_where_it_can_only_be) {
  put_class("directory", R"("provisioner":"coracle.io/directory")");
  start();
  put_claim("data", "1Gi", R"("storageClassName":"directory")");
  settle();
  EXPECT_EQ(client.find(kPersistentVolumeClaim, {"default", "data"})->annotation(volume::kSelectedNode), "pi");
  client.put(kNode, R"({"metadata":{"name":"second"}})");
  put_claim("other", "1Gi", R"("storageClassName":"directory")");
  settle();
  EXPECT_EQ(client.find(kPersistentVolumeClaim, {"default", "other"})->annotation(volume::kSelectedNode), "");
  EXPECT_TRUE(events.has("ProvisioningFailed", "directories are on one of several nodes"));
  put_volume("pvc-1", "1Gi",
             R"("storageClassName":"directory","claimRef":{"namespace":"default","name":"data","uid":"uid-data"})",
             R"("pv.kubernetes.io/provisioned-by":"coracle.io/directory")");
  settle();
  EXPECT_EQ(client.find(kPersistentVolumeClaim, {"default", "data"})->annotation(volume::kProvisioner), "coracle.io/directory");
}

// As when its volume was deleted before the claim had it.
TEST_F(VolumeBinderTest, a_directory_that_is_needed_again_is_made_again) {
  put_class("directory", R"("provisioner":"coracle.io/directory")");
  start();
  put_claim("data", "1Gi", R"("storageClassName":"directory")");
  settle();
  MUST(client.patch(kPersistentVolumeClaim, {"default", "data"}, PatchType::merge,
                    {{"metadata", {{"annotations", {{volume::kSelectedNode, nullptr}}}}}}));
  settle();
  EXPECT_EQ(client.find(kPersistentVolumeClaim, {"default", "data"})->annotation(volume::kSelectedNode), "pi");
}

TEST_F(VolumeBinderTest, a_node_that_is_gone_makes_no_directory) {
  put_class("directory", R"("provisioner":"coracle.io/directory","volumeBindingMode":"WaitForFirstConsumer")");
  put_class("far", R"("volumeBindingMode":"WaitForFirstConsumer")");
  start();
  client.put(kNode, R"({"metadata":{"name":"second"}})");
  const std::string on_second = R"("volume.kubernetes.io/selected-node":"second")";
  put_claim("data", "1Gi", R"("storageClassName":"directory")", on_second);
  put_claim("others", "1Gi", R"("storageClassName":"far")", on_second);
  settle();
  auto node_of = [&](const char* name) {
    return std::string(client.find(kPersistentVolumeClaim, {"default", name})->annotation(volume::kSelectedNode));
  };
  EXPECT_EQ(node_of("data"), "second");
  client.erase(kNode, {"", "second"});
  settle();
  EXPECT_EQ(node_of("data"), "") << "the scheduler selects another";
  EXPECT_TRUE(events.has("ProvisioningFailed", "node \"second\" not found"));
  EXPECT_EQ(node_of("others"), "second") << "its own provisioner sees to it";
}

TEST_F(VolumeBinderTest, the_default_class_may_come_later) {
  start();
  put_claim("any", "1Gi");
  put_claim("none", "1Gi", R"("storageClassName":"")");
  settle();
  put_class("made", "", R"("storageclass.kubernetes.io/is-default-class":"true")");
  settle();
  EXPECT_EQ(get_string(client.find(kPersistentVolumeClaim, {"default", "any"})->json(), "spec.storageClassName"), "made");
  EXPECT_EQ(get_string(client.find(kPersistentVolumeClaim, {"default", "none"})->json(), "spec.storageClassName"), "");
}

TEST_F(VolumeBinderTest, a_claim_without_a_class_takes_a_volume_without_one_first) {
  put_class("standard", "", R"("storageclass.kubernetes.io/is-default-class":"true")");
  put_volume("by-hand", "5Gi");
  put_volume("classed", "4Gi", R"("storageClassName":"standard")");
  start();
  put_claim("data", "4Gi");
  settle();
  EXPECT_EQ(claim("data"), "Bound by-hand");
}

TEST_F(VolumeBinderTest, a_claim_that_waits_names_the_pods_that_no_node_suits) {
  put_class("later", R"("volumeBindingMode":"WaitForFirstConsumer")");
  put_claim("data", "1Gi", R"("storageClassName":"later")");
  start();
  auto put_pod = [&](const std::string& name, const std::string& status) {
    client.put(kPod, R"({"metadata":{"namespace":"default","name":")" + name +
                         R"("},"spec":{"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"data"}}]},"status":{)" +
                         status + "}}");
    settle();
  };
  put_pod("new", R"("phase":"Pending")");
  EXPECT_TRUE(events.has("WaitForFirstConsumer", "waiting for first consumer to be created before binding"));
  EXPECT_FALSE(events.has("WaitForPodScheduled", "")) << "the scheduler may find a node at once";
  const std::string no_node = R"("conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}])";
  put_pod("web", R"("phase":"Pending",)" + no_node);
  EXPECT_TRUE(events.has("WaitForPodScheduled", "waiting for pod web to be scheduled"));
  put_pod("ended", R"("phase":"Failed",)" + no_node);
  put_pod("api", R"("phase":"Pending",)" + no_node);
  EXPECT_TRUE(events.has("WaitForPodScheduled", "waiting for pods api,web to be scheduled"));
}

TEST_F(VolumeBinderTest, a_volume_outlives_its_claim_as_its_policy_says) {
  start();
  put_volume("kept", "1Gi");
  put_volume("made", "2Gi", R"("persistentVolumeReclaimPolicy":"Delete")",
             R"("pv.kubernetes.io/provisioned-by":"example.com/disks")");
  put_volume("nobodys", "3Gi", R"("persistentVolumeReclaimPolicy":"Delete")");
  put_volume("old", "4Gi", R"("persistentVolumeReclaimPolicy":"Recycle")");
  put_volume("in-tree", "5Gi", R"("persistentVolumeReclaimPolicy":"Delete")",
             R"("pv.kubernetes.io/provisioned-by":"kubernetes.io/glusterfs")");
  put_volume("moved", "6Gi", R"("persistentVolumeReclaimPolicy":"Delete")",
             R"("pv.kubernetes.io/provisioned-by":"kubernetes.io/aws-ebs","pv.kubernetes.io/migrated-to":"ebs.csi.aws.com")");
  const std::vector<std::string> sizes{"1", "2", "3", "4", "5", "6"};
  for (const std::string& size : sizes) put_claim("claim" + size, size + "Gi");
  settle();
  pass(std::chrono::seconds(5));
  for (const std::string& size : sizes) {
    ASSERT_TRUE(claim("claim" + size).starts_with("Bound")) << size;
    client.erase(kPersistentVolumeClaim, {"default", "claim" + size});
  }
  settle();
  EXPECT_EQ(volume("kept"), "Released claim1");
  EXPECT_EQ(volume("made"), "Released claim2");
  EXPECT_EQ(volume("nobodys"), "Failed claim3");
  EXPECT_EQ(volume("old"), "Failed claim4");
  EXPECT_EQ(volume("in-tree"), "Failed claim5");
  EXPECT_EQ(volume("moved"), "Released claim6");
  EXPECT_TRUE(events.has("VolumeFailedDelete", "error getting deleter volume plugin for volume \"nobodys\""));
  EXPECT_TRUE(events.has("VolumeFailedDelete", "no volume plugin matched name: kubernetes.io/glusterfs"));
  EXPECT_TRUE(events.has("VolumeFailedRecycle", "No recycler plugin found for the volume!"));
  EXPECT_EQ(get_string(client.find(kPersistentVolume, {"", "old"})->json(), "status.message"),
            "No recycler plugin found for the volume! Set persistentVolumeReclaimPolicy to Retain or Delete");
  put_claim("claim1", "1Gi");  // the same name with another uid would not match
  client.put(kPersistentVolumeClaim, R"({"metadata":{"name":"claim1","namespace":"default","uid":"another"},"spec":{"accessModes":
    ["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}},"status":{"phase":"Pending"}})");
  settle();
  EXPECT_EQ(claim("claim1"), "Pending");
  EXPECT_EQ(volume("kept"), "Released claim1");
}

// Who waits for the phase Released sees it, whatever follows.
TEST(VolumePlan, a_volume_is_released_before_it_fails) {
  for (const char* policy : {"Delete", "Recycle", "Retain"}) {
    auto planned = [&](const std::string& phase) {
      ObjectPtr volume = MUST(Object::make(
          kPersistentVolume,
          MUST(parse_json(R"({"metadata":{"name":"v"},"spec":{"persistentVolumeReclaimPolicy":")" + std::string(policy) +
                          R"(","claimRef":{"namespace":"default","name":"c","uid":"u"}},"status":{"phase":")" + phase +
                          "\"}}"))));
      return plan_volume(*volume, nullptr);
    };
    SCOPED_TRACE(policy);
    EXPECT_EQ(planned("Bound").phase, "Released");
    EXPECT_FALSE(planned("Bound").event);
    const bool is_kept = policy == std::string("Retain");
    for (const char* phase : {"Released", "Failed"}) {
      EXPECT_EQ(planned(phase).phase, is_kept ? "" : "Failed");
      EXPECT_EQ(planned(phase).event.has_value(), !is_kept);
    }
  }
}

TEST_F(VolumeBinderTest, a_volume_of_the_other_mode_that_is_kept_for_a_claim_says_so_to_both) {
  start();
  put_claim("data", "1Gi", R"("storageClassName":"")");
  put_volume("device", "1Gi", R"("volumeMode":"Block","claimRef":{"namespace":"default","name":"data","uid":"uid-data"})");
  settle();
  EXPECT_TRUE(claim("data").starts_with("Pending"));
  std::map<std::string, std::string> told;
  for (const EventRecord& event : events.take())
    if (event.reason == "VolumeMismatch") told[event.about.name] += event.message;
  EXPECT_EQ(told, (std::map<std::string, std::string>{
                      {"device",
                       "Cannot bind PersistentVolume to requested PersistentVolumeClaim \"data\" due to incompatible "
                       "volumeMode."},
                      {"data",
                       "Cannot bind PersistentVolume \"device\" to requested PersistentVolumeClaim due to incompatible "
                       "volumeMode."}}));
}

TEST_F(VolumeBinderTest, a_claim_does_not_get_a_volume_that_is_being_deleted) {
  start();
  put_claim("data", "1Gi", R"("storageClassName":"","volumeName":"going")");
  client.put(kPersistentVolume, R"({"metadata":{"name":"going","uid":"uid-going","deletionTimestamp":"2026-01-01T00:00:00Z",
    "finalizers":["example.com/keep"]},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"]},
    "status":{"phase":"Available"}})");
  settle();
  EXPECT_EQ(claim("data"), "Pending going");
  EXPECT_TRUE(
      events.has("VolumeMismatch", "Cannot bind to requested volume \"going\": the volume is marked for deletion \"going\""));
}

TEST_F(VolumeBinderTest, what_a_resizer_writes_into_a_bound_claim_stays) {
  start();
  put_volume("disk", "5Gi", R"("volumeAttributesClassName":"slow")", R"("volume.alpha.kubernetes.io/pre-resize-capacity":"4Gi")");
  put_claim("data", "1Gi", R"("volumeAttributesClassName":"slow")");
  settle();
  ASSERT_EQ(claim("data"), "Bound disk");
  auto status = [&](const char* path) {
    return std::string(get_string(client.find(kPersistentVolumeClaim, {"default", "data"})->json(), path));
  };
  EXPECT_EQ(status("status.capacity.storage"), "4Gi") << "its file system has not grown yet";
  EXPECT_EQ(status("status.currentVolumeAttributesClassName"), "slow");
  client.set_status(kPersistentVolumeClaim, {"default", "data"},
                    R"({"phase":"Bound","accessModes":["ReadWriteOnce","ReadOnlyMany"],"capacity":{"storage":"5Gi"},
    "currentVolumeAttributesClassName":"fast"})");
  settle();
  EXPECT_EQ(status("status.capacity.storage"), "5Gi");
  EXPECT_EQ(status("status.currentVolumeAttributesClassName"), "fast");
  client.erase(kPersistentVolume, {"", "disk"});
  settle();
  EXPECT_EQ(to_text(*find(client.find(kPersistentVolumeClaim, {"default", "data"})->json(), "status")), R"({"phase":"Lost"})");
}

TEST_F(VolumeBinderTest, a_claim_that_asks_for_more_waits_for_the_resizer_of_its_volume) {
  start();
  put_volume("disk", "1Gi");
  put_volume("directory", "2Gi", "", R"("pv.kubernetes.io/provisioned-by":"coracle.io/directory")");
  put_claim("far", "1Gi", R"("volumeName":"disk")");
  put_claim("here", "2Gi", R"("volumeName":"directory")");
  settle();
  auto told = [&] {
    std::string names;
    for (const EventRecord& event : events.take())
      if (event.reason == "ExternalExpanding") names += event.about.name + " by " + event.component + " ";
    return names;
  };
  EXPECT_EQ(told(), "");
  for (const char* name : {"far", "here"})
    MUST(client.patch(kPersistentVolumeClaim, {"default", name}, PatchType::merge,
                      {{"spec", {{"resources", {{"requests", {{"storage", "3Gi"}}}}}}}}));
  settle();
  EXPECT_EQ(told(), "far by volume_expand ");
  MUST(client.patch(kPersistentVolumeClaim, {"default", "far"}, PatchType::merge, {{"metadata", {{"labels", {{"a", "b"}}}}}}));
  settle();
  EXPECT_EQ(told(), "") << "once is enough";
}

TEST_F(VolumeBinderTest, the_class_of_nobody_in_the_old_annotation_is_not_the_default_one) {
  put_class("made", "", R"("storageclass.kubernetes.io/is-default-class":"true")");
  start();
  put_claim("data", "1Gi", "", R"("volume.beta.kubernetes.io/storage-class":"")");
  settle();
  EXPECT_EQ(get_string(client.find(kPersistentVolumeClaim, {"default", "data"})->json(), "spec.storageClassName"), "");
  EXPECT_TRUE(events.has("FailedBinding", "no persistent volumes available for this claim and no storage class is set"));
}

TEST_F(VolumeBinderTest, a_claim_that_lost_its_volume_says_so) {
  start();
  put_volume("only", "1Gi");
  put_claim("data", "1Gi");
  settle();
  client.erase(kPersistentVolume, {"", "only"});
  settle();
  EXPECT_EQ(claim("data"), "Lost only");
  EXPECT_TRUE(events.has("ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!"));
  auto status = [&] { return to_text(*find(client.find(kPersistentVolumeClaim, {"default", "data"})->json(), "status")); };
  EXPECT_EQ(status(), R"({"phase":"Lost"})") << "it has neither a size nor access modes";
  put_volume("only", "1Gi");
  settle();
  EXPECT_EQ(claim("data"), "Bound only");
  EXPECT_NE(status().find(R"("capacity":{"storage":"1Gi"})"), std::string::npos) << status();
}

TEST_F(VolumeBinderTest, a_volume_is_unbind_when_its_claim_has_another) {
  start();
  put_claim("data", "1Gi", R"("volumeName":"first")");
  put_volume("second", "1Gi", R"("claimRef":{"namespace":"default","name":"data","uid":"uid-data"})",
             R"("pv.kubernetes.io/bound-by-controller":"yes")");
  put_volume("third", "1Gi", R"("claimRef":{"namespace":"default","name":"data","uid":"uid-data"})");
  settle();
  put_volume("first", "1Gi");
  settle();
  EXPECT_EQ(claim("data"), "Bound first");
  EXPECT_EQ(volume("second"), "Available");
  EXPECT_EQ(volume("third"), "Available data") << "a person keeps it for a claim of that name";
}

// Each write fails once; the next pass continues from that state.
struct CutOff : VolumeBinderTest, testing::WithParamInterface<int> {};
TEST_P(CutOff, is_made_good) {
  start();
  put_volume("fits", "5Gi");
  settle();
  client.fail(GetParam(), Error(Code::unavailable, "the plug was pulled"), GetParam() % 2 ? "update" : "");
  put_claim("data", "4Gi");
  settle();
  pass(std::chrono::seconds(3));
  EXPECT_EQ(claim("data"), "Bound fits");
  EXPECT_EQ(volume("fits"), "Bound data");
  client.fail((GetParam() + 1) / 2, Error(Code::unavailable, "the plug was pulled"));
  client.erase(kPersistentVolumeClaim, {"default", "data"});
  settle();
  pass(std::chrono::seconds(3));
  EXPECT_EQ(volume("fits"), "Released data");
}
INSTANTIATE_TEST_SUITE_P(VolumeBinder, CutOff, testing::Range(1, 9));

}  // namespace
}  // namespace coracle::controller
