// SPDX-License-Identifier: Apache-2.0
// Provisioner: creates directories of this node as volumes of claims, expands them, and deletes them when their claims are gone.
//   claim whose selected node this is  ──▶ create directory ▸ create PersistentVolume with claimRef ▸ publish directory
//   the same with a claim as dataSource──▶ copy into a staged directory ▸ that is the directory ▸ on as above
//   claim with a larger request        ──▶ condition Resizing ▸ raise quota ▸ capacity of the volume ▸ capacity of the claim
//   bound claim that wants attributes  ──▶ say in the status of the claim that a directory has none
//   Released volume, policy Delete     ──▶ check the store again ▸ delete the object ▸ remove the path ▸ remove the finalizer ▸
//                                          delete the content
//   any of them while its disk is away ──▶ wait for the disk, and say so
//   claim for which no directory can be made here ──▶ remove the selected node, so that its pod is scheduled again
//   volume that a user deletes before  ──▶ remove the selected node from the claim, so that its pod is rescheduled ▸ as above
//   its claim is bound
// Every step can be repeated. The node agent's workers call reconcile(); the provisioner has no thread.
//   keys: {"claim/<namespace>", name} · {"volume", name} · {"volume", ""}: clearing, again
// A class may name by its parameter nodePath the root for its volumes.
// Source: Kubernetes "Storage Classes", KEP-2644 (the finalizer), KEP-1790 (the status of an expansion), KEP-3751 (that of
// attributes); sig-storage-lib-external-provisioner and kubernetes-csi/external-resizer (semantics, texts);
// rancher/local-path-provisioner (nodePath).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "daemon/event/recorder.h"
#include "daemon/informer/informer.h"
#include "daemon/queue/work_queue.h"
#include "daemon/volume/local/directories.h"
#include "runtime/base/clock.h"
#include "runtime/base/guarded.h"
#include "store/client/client.h"
#include "store/object/quantity.h"

namespace coracle::volume {

struct Copied {
  int64_t entries = 0;
  Bytes bytes;
};

struct ProvisionerSeams {
  Client& client;
  Informer& claims;
  Informer& volumes;
  Informer& classes;
  EventRecorder events;
  Directories& directories;
  std::function<void(Key key)> enqueue;  // calls reconcile(key) soon
  // Run the task on a thread of its own. Only tasks with the same owner may wait for each other: they are on the same disk, and
  // while that hangs, they do not end. No copy may keep a deletion waiting.
  using InBackground = std::function<void(std::function<void(std::stop_token)> task, const std::string& owner)>;
  InBackground delete_in_background, copy_in_background;
  Directories::Answers answers;                      // the place of the host can be looked at now. Blocks for a moment at most
  std::function<bool(const Key& claim)> in_use;      // a pod of this node uses it
  std::function<bool(const Key& claim)> in_use_yet;  // the same, for pods that may belong to an earlier claim with that name
  // Copies the content of a bound claim's volume to an empty directory and syncs it to the disk. Blocks. Calls `so_far` often
  // with the progress. Errors: conflict if a pod uses the claim.
  using SoFar = std::function<void(const Copied& count)>;
  std::function<Result<Copied>(const Key& claim, const Fd& to, const SoFar& so_far, std::stop_token stop)> copy;
  const Clock& clock;
};

class Provisioner {
 public:
  Provisioner(std::string node_name, ProvisionerSeams seams);  // before the informers start
  static bool is_key(const Key& key);

  // Handlers of the informers. Do not block.
  void on_claim(const Informer::Change& change);
  void on_volume(const Informer::Change& change) const;
  void on_class(const Informer::Change& change) const;

  // Call after the informers have synced: deletes what an earlier process left. Blocks for a moment at most.
  void start();
  void clear();  // deletes the content of removed volumes, in the background
  // For a key for which is_key() is true. Blocks for the disk, not for long. An error is to be tried again with back-off.
  Result<Outcome> reconcile(const Key& key);
  bool is_ours(const Object& volume) const;       // created by this node's provisioner: a local volume
  bool may_provision(const Object& claim) const;  // it names no volume, and its class has a provisioner of this daemon

 private:
  bool is_served(const Object& volume) const;
  bool is_in_root(const Object& volume) const;
  Result<Outcome> reconcile_claim(const Key& key);
  Result<Outcome> reconcile_volume(const std::string& name);
  Result<Outcome> reconcile_clearing();
  void clear(const std::string& root);
  Result<Outcome> provision(const Object& claim, const Object& storage_class);
  Result<bool> fill(const Object& claim, const std::string& root);
  Result<ObjectPtr> source_of(const Object& claim) const;
  void copy(const Object& claim, const Object& source, std::shared_ptr<Directories::Staged> staged);
  Result<void> publish(const Object& volume);
  Result<Outcome> refuse_attributes(const Object& claim, const Object& volume);
  Result<ObjectPtr> expand(const Object& claim, const Object& volume);
  Result<ObjectPtr> begin_expansion(const Object& claim, const Object& volume, const Quantity& wanted);
  Result<void> note_failed_expansion(const Object& claim, const Error& why);
  Result<ObjectPtr> write_status(const json::value& claim);
  Result<bool> is_in_use(const Object& volume);
  bool is_in_use_by_name(const Object& volume) const;
  Result<std::string> others_at_place_of(const Object& volume) const;
  void tell_passed_over(const Object& claim, const std::vector<std::string>& roots) const;
  void tell_ignored(const Object& claim, const Object& storage_class, const std::string& path) const;
  Result<Outcome> wait_for_disk(const Object& volume, const Error& why) const;
  Result<void> unselect_node(const Object& claim);
  Result<void> delete_object(const Object& volume);
  Result<void> finish_deletion(const Object& volume);

  const std::string node_name_;
  ProvisionerSeams seams_;
  struct Copy {  // into a claim's first directory
    bool runs = true;
    std::string uid;      // of the claim, after the copy has ended
    Result<void> result;  // set after the copy has ended
    std::string waits;    // why it cannot start, as reported; then it does not run either
  };
  Guarded<std::map<Key, Copy>> copies_;                         // by claim
  Guarded<std::set<Key>> left_something_;                       // claims: one of this name is gone, its directory may be there
  Guarded<std::map<std::string, SteadyTime>> clears_again_at_;  // by root: its disk was away when it was to be cleared
};

}  // namespace coracle::volume
