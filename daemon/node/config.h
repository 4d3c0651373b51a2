// SPDX-License-Identifier: Apache-2.0
// Configuration of the node agent, and the functions that it calls in other components: the pod network and mounts (sys). They
// are plain functions so that neither side depends on the other.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/base/units.h"
#include "store/object/kind.h"

namespace coracle::node {

// The handlers that a RuntimeClass may name. All mean the one runtime; "runc" is accepted for compatibility and "" is the
// default.
inline constexpr std::string_view kRuntimeHandlers[] = {"", "coracle", "runc"};
inline bool is_runtime_handler(std::string_view name) {
  return std::find(std::begin(kRuntimeHandlers), std::end(kRuntimeHandlers), name) != std::end(kRuntimeHandlers);
}

struct HostPort {
  std::string host_ip;  // "": every address of the host
  uint16_t host_port = 0, container_port = 0;
  std::string protocol;  // "TCP", "UDP", "SCTP"
};

struct Attachment {
  std::vector<std::string> ips;             // the pod's addresses, the primary one first
  std::vector<std::string> conflicts = {};  // for events: host ports that programs of the machine listen on already
};

// The pod network, set by main.
struct PodNetworkHooks {
  // Gives the sandbox its interface, addresses and host ports. Idempotent: for a sandbox that is attached already, also by an
  // earlier daemon, it returns the existing addresses. Blocks only for system calls.
  std::function<Result<Attachment>(const std::string& sandbox_id, const Fd& network_namespace, const Key& pod,
                                   const std::vector<HostPort>& host_ports)>
      attach;
  // Announces that the sandbox's network namespace and its interface are about to be removed. May be absent.
  std::function<void(const std::string& sandbox_id)> expect_loss;
  // Releases what attach gave. Succeeds if there is nothing to release.
  std::function<Result<void>(const std::string& sandbox_id)> detach;
  // Whether the Service rules send new connections to this address as a ready endpoint; an endpoint that is known to terminate
  // does not count. Absent: never. Call Agent::look_at_draining when the answer may have changed.
  std::function<bool(const std::string& address)> serves;
  std::vector<std::string> nameservers;  // the cluster DNS, for dnsPolicy ClusterFirst
  std::string cluster_domain = "cluster.local";
};

struct NfsShare {
  std::string server, path;          // "10.0.0.5" or "nas.lan"; "/export"
  std::vector<std::string> options;  // nfs(5)
};

// Mounts in the host's mount namespace. Without them, memory-backed volumes fail and Secret volumes are stored on the disk.
struct MountHooks {
  // Mounts a tmpfs on an existing directory unless one is mounted there. `size` 0: half of the memory.
  std::function<Result<void>(const std::string& directory, Bytes size, unsigned mode)> tmpfs;
  // Mounts a hugetlbfs with pages of `page_size` and at most `size` bytes. Absent: volumes of medium HugePages fail.
  std::function<Result<void>(const std::string& directory, Bytes page_size, Bytes size, unsigned mode)> huge_pages;
  std::function<Result<void>(const std::string& directory)> unmount;  // lazily, all of them; succeeds when nothing is mounted
  // The same of all that is mounted below it. Absent: what is mounted in a volume keeps it from being removed.
  std::function<Result<void>(const std::string& directory)> unmount_below;
  // Mounts a share on an existing directory unless one is mounted there. Blocks for its server. Errors: not_found, the machine
  // has no program for it; what that program says; timeout; cancelled. Absent: NFS volumes fail.
  std::function<Result<void>(const NfsShare& share, const std::string& directory, std::stop_token stop)> nfs;
  // Checks that the server of the share mounted there answers. Blocks. Errors: timeout if it does not answer; unavailable if the
  // mount returns errors; cancelled.
  std::function<Result<void>(const std::string& directory, std::stop_token stop)> server_answers;
  // Looks at a path of the host. Blocks as long as its disk or its server does. Absent: stat(2).
  std::function<void(const std::string& path)> look_at;
};

// Which images are subject to a check of the pod's pull credentials: kubelet's imagePullCredentialsVerificationPolicy.
enum class VerificationPolicy : uint8_t {
  never,              // NeverVerify: no image is checked
  never_preloaded,    // NeverVerifyPreloadedImages: all images except preloaded ones
  never_allowlisted,  // NeverVerifyAllowlistedImages: all images except preloaded ones on the allowlist
  always,             // AlwaysVerify: all images
};
struct ImageVerification {
  VerificationPolicy policy = VerificationPolicy::never_preloaded;
  // Repositories without tag or digest; "registry.example/team/*" matches all repositories below it.
  std::vector<std::string> allowlist;
};

// Removal of unused images. Source: kubelet's imageGCHighThresholdPercent, imageGCLowThresholdPercent, imageMinimumGCAge.
struct ImageCollection {
  int high_percent = 85;                // of the disk in use: then images are removed; 100: never
  int low_percent = 80;                 // until that is reached
  std::chrono::seconds least_age{120};  // that an image has not been used
};

// AppArmor functions, set by main. If they are absent, the kernel has no AppArmor.
struct AppArmorHooks {
  std::function<bool()> enabled;                                      // AppArmor is enabled in the kernel
  std::function<Result<bool>(const std::string& profile)> is_loaded;  // the profile is loaded in the kernel
  // Loads the profile of type RuntimeDefault if necessary and returns its name. Blocks. Errors: the reason why it cannot be
  // loaded.
  std::function<Result<std::string>()> default_profile;
};

struct AgentConfig {
  std::string node_name;
  std::vector<std::string> node_ips;                                      // of this machine, the primary one first
  std::string machine_id, boot_id, os_image, kernel_version;              // for nodeInfo; "": read from the machine
  std::string state_dir = "/var/lib/coracle/pods";                        // <uid>/…: emptyDir, hosts file, termination messages
  std::string memory_dir = "/run/coracle/volumes";                        // <uid>/…: configMap, secret, projected, downwardAPI
  std::string log_dir = "/var/log/pods";                                  // <namespace>_<name>_<uid>/<container>/<n>.log
  std::string log_links_dir;                                              // "/var/log/containers": see log_links.h; "": none
  std::string manifests_dir;                                              // static pods; "": none
  std::string images_dir;                                                 // archives of images to import; "": none
  std::string images_record = "/var/lib/coracle/imported-archives.json";  // which of them were
  std::vector<std::string> volume_dirs;                  // <namespace>_<claim>_<uid>: provisioned volumes; empty: no provisioning
  std::string seccomp_dir = "/var/lib/coracle/seccomp";  // seccomp profiles of type Localhost
  std::string host_root = "";                            // "" is "/"; base of hostPath volumes and /etc/resolv.conf, for tests
  int pods_max = 110;
  int workers = 4;                                // pods synced concurrently
  std::chrono::milliseconds place_patience{100};  // a worker waits so long for a place of the host: see slow_places.h
  bool seccomp_default = true;                    // RuntimeDefault for pods without a seccomp profile
  bool has_own_users = false;   // kernel and disk support user namespaces for pods; reported in the Node's status only
  int64_t pod_pids_max = 4096;  // limit of processes and threads per pod; 0: no limit
  ImageVerification image_verification;
  ImageCollection image_collection;
  bool run_present_images_offline = false;  // with policy Always, while the registry cannot be reached
  MountHooks mounts;
  AppArmorHooks apparmor;
};

}  // namespace coracle::node
