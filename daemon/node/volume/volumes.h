// SPDX-License-Identifier: Apache-2.0
// A pod's volumes and their directories on this machine (prepare, mounts, remove). What one volume is: pod_volume.h; what the
// node writes into one: payload.h; the places inside them: mount_points.h.
//   volume + ConfigMaps, Secrets, pod, token ──volume_payload──▶ Payload ──write_payload──▶ directory ──mounts──▶ Fd
// emptyDir volumes are in the pod's state directory (medium Memory and HugePages: a file system mounted there). Images and NFS
// shares are mounted there too (pod_images.cc, nfs_mounts.h). configMap, secret, downwardAPI and projected volumes are in the
// pod's memory directory, so that secrets do not reach the disk and refreshing does not wear flash. Volumes has no state: it
// compares what exists with what should exist, also after a restart. Source: Kubernetes core/v1 Volume, VolumeMount, projected
// volumes; kubelet's volume errors (texts).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/node/container_spec.h"
#include "daemon/node/environment.h"
#include "daemon/node/pod.h"
#include "daemon/node/task_pool.h"
#include "daemon/node/volume/mount_points.h"
#include "daemon/node/volume/nfs_mounts.h"
#include "daemon/node/volume/payload.h"
#include "daemon/node/volume/pod_volume.h"
#include "daemon/node/volume/slow_places.h"

namespace coracle::node {

// Requests a token of the pod's ServiceAccount, bound to the pod, from the API.
using TokenSource =
    std::function<Result<std::string>(const json::value& pod, std::string_view audience, int64_t expiration_seconds)>;

// When to replace a token: after four fifths of its lifetime, and after a day at the latest. nullopt if it is not a token.
std::optional<WallTime> token_refresh_time(std::string_view token);

struct VolumeResult {
  std::optional<WallTime> refresh_at;  // when a token in the volumes must be replaced
  bool waits = false;    // for a file server, or a slow place of the host: the pod is synced again when it has answered
  bool is_slow = false;  // it waits for a place of the host: to be looked at again after kSlowTold, so that an event says so
  std::vector<MountFailure> failures;  // none: all volumes that containers have are there
};

struct PrepareInputs;

class Volumes {
 public:
  // Gives the pod a claim that one pod at a time may have. False: another one on this node has it.
  using TakeAlone = std::function<bool(const std::string& uid, const Key& claim)>;

  // `places` is asked before a place of the host is touched. `elsewhere` runs long deletions. Without `take_alone` nobody asks
  // whether another pod has a claim.
  Volumes(const AgentConfig& config, const Clock& clock, runtime::ImageStore& images, NfsMounts& nfs, SlowPlaces& places,
          TokenSource tokens, Executor elsewhere, TakeAlone take_alone = {})
      : config_(config),
        clock_(clock),
        images_(images),
        nfs_(nfs),
        places_(places),
        tokens_(std::move(tokens)),
        elsewhere_(std::move(elsewhere)),
        take_alone_(std::move(take_alone)) {}

  // Brings all volumes level with the pod, each as far as it can be. Blocks for files, and for tokens.
  // `first_id`: of the pod's range of the host's ids, where it has users of its own: then what is in memory belongs to
  // them, because not every kernel can id-map a tmpfs (Linux 6.3 can), and what is on a disk is id-mapped.
  // `begins`: nothing of the pod runs yet, so that what lasts longer than it may get its fsGroup.
  VolumeResult prepare(const json::value& pod, const PodPaths& paths, const Lookup& lookup, const PodIdentity& identity,
                       bool begins, uint32_t first_id = 0) const;

  // Asks again, for volumes that are ready, whether their places on the host answer: before a container opens them.
  VolumeResult ask_places(const json::value& pod, const volume::StorageObjects& storage) const;

  // Whether the place of the host can be looked at now. Blocks for AgentConfig::place_patience at most.
  bool answers(const std::string& place) const;

  // The mounts of a container. The descriptors stay valid when files in the volumes are renamed. Errors: invalid, not_found,
  // unsupported.
  Result<std::vector<VolumeMount>> mounts(const json::value& pod, const json::value& container, const PodPaths& paths,
                                          const std::map<std::string, std::string>& environment,
                                          const volume::StorageObjects& storage) const;

  // The block volumes of a container. Errors: invalid, not_found.
  static Result<std::vector<VolumeDevice>> devices(const json::value& pod, const json::value& container,
                                                   const volume::StorageObjects& storage);

  // The content of a file in an emptyDir of the pod; a container may have written it. Errors: not_found; invalid if it is not a
  // regular file or larger than 1 MiB.
  Result<std::string> read_file(const json::value& pod, const PodPaths& paths, std::string_view volume,
                                const std::string& path) const;

  // Whether one of the volumes is on a file server, which may have become unreachable since prepare().
  static bool need_server(const json::value& pod, const volume::StorageObjects& storage);

  // Unmounts and removes all volumes and releases their images. The rest of the pod's directory stays. Volumes with very many
  // files are moved to <state_dir>/.removed and deleted later on another thread. Errors: unavailable while one is still being
  // mounted or given to a group; the pod is synced again.
  Result<void> remove(const PodPaths& paths, const std::string& uid) const;
  // Continues the deletions of an earlier daemon, on another thread.
  void clear() const;

 private:
  struct VolumeKind;  // the kinds of volumes that the node has: the table in volumes.cc
  static const VolumeKind* kind_of(const json::value& volume);

  // Before the first container starts, for volumes of one kind.
  Result<void> prepare_empty_dir(const PodVolume& source, const PrepareInputs& inputs, VolumeResult& result) const;
  Result<void> prepare_host_path(const PodVolume& source, const PrepareInputs& inputs, VolumeResult& result) const;
  Result<void> prepare_local(const PodVolume& source, const PrepareInputs& inputs, VolumeResult& result) const;
  Result<void> prepare_nfs(const PodVolume& source, const PrepareInputs& inputs, VolumeResult& result) const;
  Result<void> prepare_image(const PodVolume& source, const PrepareInputs& inputs, VolumeResult& result) const;
  Result<void> prepare_payload(const PodVolume& source, const PrepareInputs& inputs, VolumeResult& result) const;
  Result<void> make_empty_dir(const json::value& volume, const PrepareInputs& inputs) const;
  Result<void> write_payload_volume(const json::value& volume, const PrepareInputs& inputs, VolumeResult& result) const;
  Result<void> mount_huge_pages(const json::value& pod, const json::value& volume, const std::string& path) const;
  Result<void> check_host_path(const json::value& volume) const;
  // What containers mount.
  Result<Fd> open_directory(const json::value& volume, std::string_view name, const PodPaths& paths) const;
  Result<Fd> open_host_path(const json::value& volume, std::string_view name, const PodPaths& paths) const;
  Result<Fd> open_local(const json::value& volume, std::string_view name, const PodPaths& paths) const;
  Result<Fd> open_payload(const json::value& volume, std::string_view name, const PodPaths& paths) const;
  bool is_beside_pods(const std::string& place) const;
  Result<SlowPlaces::Answer> ask(const std::string& uid, const std::string& place, SlowPlaces::Until until) const;
  bool answers(const std::string& uid, const PodVolume& source, SlowPlaces::Until until, VolumeFailures& failures,
               VolumeResult& result) const;
  bool is_given_to_group(const json::value& pod, const PodVolume& source, SlowPlaces::Until until, VolumeFailures& failures,
                         VolumeResult& result) const;
  Result<void> set_aside(const Fd& state, const std::string& uid) const;
  void clear(const std::string& name) const;

  const AgentConfig& config_;
  const Clock& clock_;
  runtime::ImageStore& images_;
  NfsMounts& nfs_;
  SlowPlaces& places_;
  TokenSource tokens_;
  Executor elsewhere_;
  TakeAlone take_alone_;
};

}  // namespace coracle::node
