// SPDX-License-Identifier: Apache-2.0
// A pod's volumes: what they show (pure, volume_payload), and their directories on this machine (make, refresh, remove).
//   volume + ConfigMaps, Secrets, pod, token ──volume_payload──▶ Payload ──write_payload──▶ directory ──mounts──▶ Fd
// emptyDir lies in the pod's state directory (medium Memory and HugePages: a file system mounted there); images and NFS shares
// are mounted there (pod_images.cc, nfs_mounts.h). configMap, secret, downwardAPI and projected volumes lie in the pod's memory
// directory, so that secrets do not reach the disk and refreshing wears no flash. Nothing about them is remembered: what is there
// is compared with what should be, also after a restart. Source: Kubernetes core/v1 Volume, VolumeMount, projected volumes;
// kubelet's volume errors (texts).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/node/atomic_writer.h"
#include "daemon/node/container_spec.h"
#include "daemon/node/environment.h"
#include "daemon/node/nfs_mounts.h"
#include "daemon/node/pod.h"
#include "daemon/node/task_pool.h"

namespace coracle::node {

// Asks the API for a token of the pod's ServiceAccount, bound to the pod.
using TokenSource =
    std::function<Result<std::string>(const json::value& pod, std::string_view audience, int64_t expiration_seconds)>;

struct PayloadSources {
  Lookup lookup;
  PodIdentity identity;
  std::function<Result<std::string>(std::string_view audience, int64_t expiration_seconds, const std::string& path)> token;
};

// What a configMap, secret, downwardAPI or projected volume shows. Errors: not_found (worded for the event), invalid.
Result<Payload> volume_payload(const json::value& pod, const json::value& volume, const PayloadSources& sources);
bool is_payload_volume(const json::value& volume);

// Makes the places of what a container mounts inside volumes that it may not be able to write to. They stay while the volumes'
// files are replaced. Errors: what opening and making them gives.
Result<void> make_mount_points(const std::vector<VolumeMount>& volumes, const std::vector<ManagedFile>& files);

// When a token should be replaced: after four fifths of its life, and never older than a day. Nothing when it is not one.
std::optional<WallTime> token_refresh_time(std::string_view token);

struct VolumeResult {
  std::optional<WallTime> refresh_at;  // a token in them wants replacing then
  bool waits = false;                  // for a server: the pod is looked at again when it has answered
};

class Volumes {
 public:
  // `elsewhere`: where long deletions run.
  Volumes(const AgentConfig& config, const Clock& clock, runtime::ImageStore& images, NfsMounts& nfs, TokenSource tokens,
          Executor elsewhere)
      : config_(config),
        clock_(clock),
        images_(images),
        nfs_(nfs),
        tokens_(std::move(tokens)),
        elsewhere_(std::move(elsewhere)) {}

  // Brings all volumes level with the pod. Errors: worded for a FailedMount event. Blocks for files, and for tokens.
  // `first_id`: of the pod's range of the host's ids, where it has users of its own: then what is in memory belongs to
  // them, because not every kernel can id-map a tmpfs (Linux 6.3 can), and what is on a disk is id-mapped.
  // `begins`: nothing of the pod runs yet, so that what lasts longer than it may get its fsGroup.
  Result<VolumeResult> prepare(const json::value& pod, const PodPaths& paths, const Lookup& lookup, const PodIdentity& identity,
                               bool begins, uint32_t first_id = 0) const;

  // What a container mounts; descriptors stay valid beyond any renaming in the volumes. Errors: invalid, not_found.
  Result<std::vector<VolumeMount>> mounts(const json::value& pod, const json::value& container, const PodPaths& paths,
                                          const std::map<std::string, std::string>& environment,
                                          const volume::StorageObjects& storage) const;

  // The block volumes of a container. Errors: invalid, not_found.
  static Result<std::vector<VolumeDevice>> devices(const json::value& pod, const json::value& container,
                                                   const volume::StorageObjects& storage);

  // The text of a file in an emptyDir of the pod, which a container may have put there. Errors: not_found; invalid when it is
  // no file, or longer than 1 MiB.
  Result<std::string> read_file(const json::value& pod, const PodPaths& paths, std::string_view volume,
                                const std::string& path) const;

  // Whether one of them is on a server, which may have gone since prepare() was called.
  static bool need_server(const json::value& pod, const volume::StorageObjects& storage);

  // Unmounts and removes them all, and lets go of their images. The rest of the pod's directory stays. Volumes with very much in
  // them are moved to <state_dir>/.removed, and deleted there later, elsewhere. Errors: unavailable, one is being mounted still;
  // the pod is looked at again.
  Result<void> remove(const PodPaths& paths, const std::string& uid) const;
  // Goes on, elsewhere, with what a daemon before this one was deleting.
  void clear() const;

 private:
  Result<void> prepare_empty_dir(const json::value& pod, const json::value& volume, const std::string& path,
                                 uint32_t first_id) const;
  Result<void> mount_huge_pages(const json::value& pod, const json::value& volume, const std::string& path) const;
  Result<void> check_host_path(const json::value& volume) const;
  Result<Fd> open_volume(const json::value& volume, std::string_view name, const PodPaths& paths) const;
  Result<void> set_aside(const Fd& state, const std::string& uid) const;
  void clear(const std::string& name) const;

  const AgentConfig& config_;
  const Clock& clock_;
  runtime::ImageStore& images_;
  NfsMounts& nfs_;
  TokenSource tokens_;
  Executor elsewhere_;
};

}  // namespace coracle::node
