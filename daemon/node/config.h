// SPDX-License-Identifier: Apache-2.0
// What main tells the node agent about its machine, and what main does for it where the agent may not reach itself:
// the pod network (another room) and mounts (sys). Plain functions, so that neither side names the other.
#pragma once

#include <algorithm>
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

// The handlers that a RuntimeClass may name: the one runtime there is, as itself and as what it stands for. "" is the default.
inline constexpr std::string_view kRuntimeHandlers[] = {"", "coracle", "runc"};
inline bool is_runtime_handler(std::string_view name) {
  return std::find(std::begin(kRuntimeHandlers), std::end(kRuntimeHandlers), name) != std::end(kRuntimeHandlers);
}

struct HostPort {
  std::string host_ip;  // "" = every address of the host
  uint16_t host_port = 0, container_port = 0;
  std::string protocol;  // "TCP", "UDP", "SCTP"
};

struct Attachment {
  std::vector<std::string> ips;             // the pod's addresses, the primary one first
  std::vector<std::string> conflicts = {};  // what its host ports take from programs of the machine, worded for events
};

// The pod network, as main wires it.
struct PodNetworkHooks {
  // Gives the sandbox its interface, addresses and host ports. Idempotent: for a sandbox attached before (by a daemon
  // before this one, too) it returns the addresses that it has. Blocks for the kernel's work only.
  std::function<Result<Attachment>(const std::string& sandbox_id, const Fd& network_namespace, const Key& pod,
                                   const std::vector<HostPort>& host_ports)>
      attach;
  // The sandbox's namespace is about to go, and its interface with it. Absent: nobody wants to know.
  std::function<void(const std::string& sandbox_id)> expect_loss;
  // Releases what attach gave. Succeeds when there is nothing.
  std::function<Result<void>(const std::string& sandbox_id)> detach;
  // Whether Services send new connections to this address as a ready endpoint's; one that is known to be ending is none.
  // Absent: never. Agent::look_at_draining says when to ask again.
  std::function<bool(const std::string& address)> serves;
  std::vector<std::string> nameservers;  // the cluster's DNS, for dnsPolicy ClusterFirst
  std::string cluster_domain = "cluster.local";
};

struct NfsShare {
  std::string server, path;          // "10.0.0.5" or "nas.lan"; "/export"
  std::vector<std::string> options;  // nfs(5)
};

// Mounts in the host's mount namespace. Without them memory-backed volumes fail, and secrets rest on the disk.
struct MountHooks {
  // Mounts a tmpfs on an existing directory unless it is one already. `size` 0: half of the memory.
  std::function<Result<void>(const std::string& directory, Bytes size, unsigned mode)> tmpfs;
  // The same with huge pages of `page_size`; no more than `size` bytes of them. Absent: volumes of medium HugePages fail.
  std::function<Result<void>(const std::string& directory, Bytes page_size, Bytes size, unsigned mode)> huge_pages;
  std::function<Result<void>(const std::string& directory)> unmount;  // lazily, all of them; succeeds when nothing is mounted
  // Mounts a share on an existing directory unless one is mounted there. Blocks for its server. Errors: not_found, the machine
  // has no program for it; what that program says; timeout; cancelled. Absent: NFS volumes fail.
  std::function<Result<void>(const NfsShare& share, const std::string& directory, std::stop_token stop)> nfs;
  // Whether the server of what is mounted there answers. Blocks for it. Errors: timeout, it does not; cancelled.
  std::function<Result<void>(const std::string& directory, std::stop_token stop)> server_answers;
};

// Whose right to an image that is here is looked at before a pod runs it: kubelet's imagePullCredentialsVerificationPolicy.
enum class VerificationPolicy : uint8_t {
  never,              // NeverVerify: nobody's
  never_preloaded,    // NeverVerifyPreloadedImages: everybody's, but to images that nobody pulled
  never_allowlisted,  // NeverVerifyAllowlistedImages: the same, and of those only to what the list does not name
  always,             // AlwaysVerify
};
struct ImageVerification {
  VerificationPolicy policy = VerificationPolicy::never_preloaded;
  std::vector<std::string> allowlist;  // repositories without tag or digest; "registry.example/team/*" is all below it
};

// AppArmor, as main finds it. Without them the kernel has none.
struct AppArmorHooks {
  std::function<bool()> enabled;                                      // it is switched on
  std::function<Result<bool>(const std::string& profile)> is_loaded;  // the kernel knows the profile
  // The name of the profile that RuntimeDefault means, loaded. Blocks. Errors: why it cannot be loaded.
  std::function<Result<std::string>()> default_profile;
};

struct AgentConfig {
  std::string node_name;
  std::vector<std::string> node_ips;                          // of this machine, the primary one first
  std::string machine_id, boot_id, os_image, kernel_version;  // for nodeInfo; "" = read from the machine
  std::string state_dir = "/var/lib/coracle/pods";            // <uid>/…: emptyDir, hosts file, termination messages
  std::string memory_dir = "/run/coracle/volumes";            // <uid>/…: configMap, secret, projected, downwardAPI
  std::string log_dir = "/var/log/pods";                      // <namespace>_<name>_<uid>/<container>/<n>.log
  std::string log_links_dir;                                  // "/var/log/containers": see log_links.h; "" = none
  std::string manifests_dir;                                  // static pods; "" = none
  std::vector<std::string> volume_dirs;                  // <namespace>_<claim>_<uid>: what claims get; none = no claim gets any
  std::string seccomp_dir = "/var/lib/coracle/seccomp";  // profiles of type Localhost
  std::string host_root = "";                            // "" = "/": where hostPath volumes and /etc/resolv.conf are read; tests
  int pods_max = 110;
  int workers = 4;              // pods worked on at once
  bool seccomp_default = true;  // RuntimeDefault for pods that name no profile
  bool has_own_users = false;   // kernel and disk can give pods user namespaces of their own; only told
  int64_t pod_pids_max = 4096;  // processes and threads of one pod; 0 = no limit
  ImageVerification image_verification;
  MountHooks mounts;
  AppArmorHooks apparmor;
};

}  // namespace coracle::node
