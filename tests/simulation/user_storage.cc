// SPDX-License-Identifier: Apache-2.0
// Actions on storage: claims and volumes are created, deleted and changed in any order, with classes of several kinds and pods
// that use claims. See user.h.
#include "tests/simulation/user.h"

namespace coracle::simulation {

void User::may_store(double rough) {
  stores_ = dice_.chance(0.4);
  if (!stores_) return;
  may(1, "claims",
      {[this] { create_claim(); }, [this] { create_claim(); }, [this] { create_volume(); }, [this] { create_pod_with_claim(); },
       [this] { create_pod_with_claim(); }});
  may(rough ? 0.8 : 0, "storage's changes",
      {[this] { remove(kPersistentVolumeClaim, false); }, [this] { remove(kPersistentVolumeClaim, false); },
       [this] { remove(kPersistentVolume, false); }, [this] { remove(kPod, false); },
       [this] {
         change(kPersistentVolume, [this](json::value& body) {
           make(body, "spec.persistentVolumeReclaimPolicy") = dice_.pick<std::string>({"Retain", "Delete"});
         });
       },
       [this] {
         change(kPersistentVolumeClaim, [this](json::value& body) {
           make(body, "spec.resources.requests.storage") = std::to_string(dice_.between(1, 6)) + "Gi";
         });
       },
       [this] {
         change(kStorageClass, [this](json::value& body) {
           make(body,
                "metadata.annotations") = {{"storageclass.kubernetes.io/is-default-class", dice_.chance(0.5) ? "true" : "false"}};
         });
       }});
}

void User::create_storage_classes() {
  auto storage_class = [this](const std::string& name, const std::string& provisioner, bool waits, bool by_default) {
    json::value body = {{"metadata", {{"name", name}}},
                        {"provisioner", provisioner},
                        {"allowVolumeExpansion", dice_.chance(0.7)},
                        {"reclaimPolicy", dice_.chance(0.7) ? "Delete" : "Retain"},
                        {"volumeBindingMode", waits ? "WaitForFirstConsumer" : "Immediate"}};
    if (by_default) make(body, "metadata.annotations") = {{"storageclass.kubernetes.io/is-default-class", "true"}};
    create(kStorageClass, std::move(body));
  };
  storage_class("directory", "coracle.io/directory", true, dice_.chance(0.5));
  storage_class("by-hand", "kubernetes.io/no-provisioner", dice_.chance(0.5), false);
}

void User::create_claim() {
  json::object spec{{"accessModes", {"ReadWriteOnce"}},
                    {"resources", {{"requests", {{"storage", std::to_string(dice_.between(1, 3)) + "Gi"}}}}}};
  if (dice_.chance(0.8)) spec["storageClassName"] = dice_.pick<std::string>({"directory", "directory", "by-hand", ""});
  if (dice_.chance(0.1)) spec["volumeName"] = name("disk");
  create(kPersistentVolumeClaim, {{"metadata", {{"name", name("data")}}}, {"spec", std::move(spec)}});
}

void User::create_volume() {
  std::string disk = name("disk");
  json::object spec{{"accessModes", {"ReadWriteOnce"}},
                    {"capacity", {{"storage", std::to_string(dice_.between(1, 4)) + "Gi"}}},
                    {"persistentVolumeReclaimPolicy", dice_.chance(0.7) ? "Retain" : "Delete"},
                    {"hostPath", {{"path", "/disks/" + disk}}}};
  if (dice_.chance(0.7)) spec["storageClassName"] = "by-hand";
  if (dice_.chance(0.2)) spec["claimRef"] = {{"namespace", ns()}, {"name", name("data")}};
  (void)client_.create(kPersistentVolume, {{"metadata", {{"name", disk}}}, {"spec", std::move(spec)}});
}

void User::create_pod_with_claim() {
  std::string app = name("x");
  json::value body = pod_template(app);
  make(body, "metadata.name") = app + "-" + std::to_string(dice_.between(0, 9));
  make(body, "spec.volumes") = json::array{{{"name", "v"}, {"persistentVolumeClaim", {{"claimName", name("data")}}}}};
  create(kPod, std::move(body));
}

}  // namespace coracle::simulation
