// SPDX-License-Identifier: Apache-2.0
// The daemon's configuration: /etc/coracle/config.yaml over the vendor's /usr/lib/coracle/config.yaml over the defaults in this
// file. Every field has a default that works on one machine without a network. An unknown field is an error with its name, so
// that a typing mistake is noticed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/base/log.h"
#include "runtime/base/result.h"
#include "store/kinds/default_ranges.h"

namespace coracle {

inline constexpr const char *kLogDir = "/var/log/pods", *kLogLinksDir = "/var/log/containers";

struct Config {
  std::string path, vendor_path;  // the files that were read, if they exist; not settings

  // The node.
  std::string node_name;     // nodeName: "" = the host name in lower case at the first start
  std::string node_address;  // nodeAddress: "" = the address of the default route, else the first global one, else 127.0.0.1

  // The API.
  std::vector<std::string> listen;   // listen: addresses in addition to loopback; empty = the node's address
  uint16_t port = 6443;              // port: 0 picks a free one
  std::vector<std::string> tls_san;  // tlsSANs: additional names of the serving certificate
  std::string token_auth_file;       // tokenAuthFile: lines of token,user,uid,"group,..."; "" = none
  std::string audit_policy_file;     // auditPolicyFile: an audit.k8s.io/v1 Policy; "" = no audit
  std::string audit_log_path = "/var/log/coracle/audit.log";  // auditLogPath
  int audit_log_max_size = 10;                                // auditLogMaxSize: megabytes of one file, or "10Mi"
  int audit_log_max_backup = 2;                               // auditLogMaxBackup: number of full files that are kept

  // Paths.
  std::string state_dir = "/var/lib/coracle";            // stateDir: 0700
  std::string run_dir = "/run/coracle";                  // runDir
  std::string config_dir = "/etc/coracle";               // configDir: admin.kubeconfig is written here
  std::string manifests_dir = "/etc/coracle/manifests";  // manifestsDir: static pods
  std::string log_dir = kLogDir;                         // logDir: the containers' logs
  std::string log_links_dir;  // logLinksDir: links to them for log collectors; "" = /var/log/containers, if logDir is the default
  std::string pause_program = "/usr/libexec/coracle/coracle-pause";  // pauseProgram
  std::string image_program = "/usr/libexec/coracle/coracle-image";  // imageProgram
  std::string cgroup_root;                                           // cgroupRoot: "" = the detected one

  // The cluster.
  std::string pod_cidr = kinds::kDefaultPodCidr;            // podCIDR: the first address is the gateway
  std::string service_cidr = kinds::kDefaultServiceCidr;    // serviceCIDR
  std::string cluster_dns = kinds::kDefaultDnsAddress;      // clusterDNS: inside serviceCIDR
  std::string cluster_domain = "cluster.local";             // clusterDomain
  uint16_t node_port_first = kinds::kDefaultNodePortFirst;  // nodePortRange: "30000-32767"
  uint16_t node_port_last = kinds::kDefaultNodePortLast;
  int node_monitor_grace = 50;  // nodeMonitorGracePeriod: seconds until a remote node without heartbeats is not ready
  static constexpr int kPodsInAnyRange = 250;
  int max_pods = 110;  // maxPods: up to 1000; more than 250 need as many addresses in podCIDR
  // Shutdown of the machine: the total time for the termination of all pods, and the part of it that is reserved for pods of the
  // critical priority classes. A pod's own grace period applies if it is shorter. Source: kubelet's configuration.
  int shutdown_grace_period = 120;               // shutdownGracePeriod: "2m"
  int shutdown_grace_period_critical_pods = 20;  // shutdownGracePeriodCriticalPods: "20s"
  int64_t pod_pids_limit = 4096;                 // podPidsLimit: processes and threads per pod; 0 = no limit
  bool deny_service_external_ips = false;        // denyServiceExternalIPs: true = Services may not get new externalIPs
  std::string scheduler_config_file;             // schedulerConfigFile: a KubeSchedulerConfiguration; "" = Kubernetes' defaults

  // storeMaxSize: megabytes, or "256Mi": limit for all objects together, as etcd's quota-backend-bytes; 0 = an eighth of the
  // machine's memory, between 64 and 2048
  int store_max_size = 0;
  bool events_on_disk = false;  // eventsOnDisk: false = events are kept in memory only, to spare the SD card

  // Volumes for claims.
  std::vector<std::string> volume_dirs;  // volumeDirs: directories for claims, possibly on several disks; [] = stateDir/volumes
  bool storage_classes = true;  // storageClasses: false = the classes "directory" and "local-path" are not created at the start

  // Images.
  std::vector<std::string> insecure_registries;             // insecureRegistries: host[:port]
  std::map<std::string, std::vector<std::string>> mirrors;  // mirrors: registry → URLs
  std::string images_dir;  // imagesDir: a directory from which archives of images are imported, at once when they come; "" = none
  // Unused images are removed when the disk is full to imageGCHighThresholdPercent, until it is down to
  // imageGCLowThresholdPercent: those that registries have given, the longest unused first, and none within imageMinimumGCAge of
  // its last use. Imported ones stay. Source: kubelet's configuration.
  int image_gc_high_percent = 85;  // imageGCHighThresholdPercent: percent of the disk; 100 = never
  int image_gc_low_percent = 80;   // imageGCLowThresholdPercent: less than the other
  int image_gc_least_age = 120;    // imageMinimumGCAge: "2m"
  // runPresentImagesOffline: true = where an image is to be pulled at each start (imagePullPolicy Always, or the tag latest) and
  // its registry cannot be reached, the image that is present runs; false = as in Kubernetes, the pod waits for the registry
  bool run_present_images_offline = false;
  // imagePullCredentialsVerificationPolicy: which pods may use a present image without a check of their pull secrets at its
  // registry. NeverVerify: all pods. NeverVerifyPreloadedImages: all pods for imported images; for pulled images, pods whose
  // secrets are known to be accepted. NeverVerifyAllowlistedImages: as before, but of the imported images only those on the list.
  // AlwaysVerify: no pods.
  std::string image_verification = "NeverVerifyPreloadedImages";
  // preloadedImagesVerificationAllowlist: repositories without tag or digest; "registry.example/team/*" matches all below it
  std::vector<std::string> image_verification_allowlist;

  LogLevel log_level = LogLevel::info;  // logLevel: error, warning, notice, info, debug

  bool operator==(const Config&) const = default;
};

// The names of all settings, sorted.
std::vector<std::string> setting_names();

// Reads `path` over the vendor's file, if that exists. A missing file gives the defaults. Errors: invalid, with the file, the
// line and the field.
Result<Config> read_config(const std::string& path, const std::string& vendor_path = "/usr/lib/coracle/config.yaml");

// An error about a setting, whose text begins with its name, after the file, which may be the vendor's, and the line that has it;
// if that one has its default, those of another one that the text names. Blocks on the disk.
Error at_setting(const Config& config, Error error);

// Applies the YAML text to `config`. Errors: invalid, with the line and the field: "line 3: port: must be …".
Result<void> apply_config(Config& config, std::string_view yaml_text);

}  // namespace coracle
