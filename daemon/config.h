// SPDX-License-Identifier: Apache-2.0
// The daemon's configuration: /etc/coracle/config.yaml over the vendor's /usr/lib/coracle/config.yaml over the defaults
// written here. Every field has a default that works on one machine without a network; unknown fields are errors that
// name the field, so that a typing mistake does not pass for a setting.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/base/log.h"
#include "runtime/base/result.h"

namespace coracle {

inline constexpr const char *kLogDir = "/var/log/pods", *kLogLinksDir = "/var/log/containers";

struct Config {
  std::string path;  // the file that it was read from, if it is there; no setting

  // Who this node is.
  std::string node_name;     // nodeName: "" = the host's name, lower case, at the first start
  std::string node_address;  // nodeAddress: "" = the address of the default route, else the first global one, else 127.0.0.1

  // The API.
  std::vector<std::string> listen;   // listen: addresses beside loopback; empty = the node's address
  uint16_t port = 6443;              // port: 0 picks a free one
  std::vector<std::string> tls_san;  // tlsSANs: further names of the serving certificate
  std::string token_auth_file;       // tokenAuthFile: lines of token,user,uid,"group,..."; "" = none
  std::string audit_policy_file;  // auditPolicyFile: an audit.k8s.io/v1 Policy; "" = nothing is written down, to spare the card
  std::string audit_log_path = "/var/log/coracle/audit.log";  // auditLogPath
  int audit_log_max_size = 10;                                // auditLogMaxSize: megabytes of one file, or "10Mi"
  int audit_log_max_backup = 2;                               // auditLogMaxBackup: full files that are kept

  // Where things are.
  std::string state_dir = "/var/lib/coracle";                        // stateDir: 0700
  std::string run_dir = "/run/coracle";                              // runDir
  std::string config_dir = "/etc/coracle";                           // configDir: admin.kubeconfig is written here
  std::string manifests_dir = "/etc/coracle/manifests";              // manifestsDir: static pods
  std::string log_dir = kLogDir;                                     // logDir: the containers' logs
  std::string log_links_dir;                                         // logLinksDir: links to them, as log collectors look for
                                                                     // them; "" = /var/log/containers, if logDir is as above
  std::string pause_program = "/usr/libexec/coracle/coracle-pause";  // pauseProgram
  std::string image_program = "/usr/libexec/coracle/coracle-image";  // imageProgram
  std::string cgroup_root;                                           // cgroupRoot: "" = found

  // The cluster of one.
  std::string pod_cidr = "10.244.0.0/24";                    // podCIDR: the first address is the gateway
  std::string service_cidr = "10.96.0.0/16";                 // serviceCIDR
  std::string cluster_dns = "10.96.0.10";                    // clusterDNS: inside serviceCIDR
  std::string cluster_domain = "cluster.local";              // clusterDomain
  uint16_t node_port_first = 30000, node_port_last = 32767;  // nodePortRange: "30000-32767"
  int node_monitor_grace = 50;  // nodeMonitorGracePeriod: seconds until another machine's silent node is not ready
  int max_pods = 110;           // maxPods
  // When the machine ends: how long pods may take to end, all in all, and which part of that is kept for those of the critical
  // priority classes. A pod's own grace period holds where it is shorter. Source: kubelet's configuration.
  int shutdown_grace_period = 120;               // shutdownGracePeriod: "2m"
  int shutdown_grace_period_critical_pods = 20;  // shutdownGracePeriodCriticalPods: "20s"
  int64_t pod_pids_limit = 4096;                 // podPidsLimit: processes and threads of one pod; 0 = no limit
  bool deny_service_external_ips = false;  // denyServiceExternalIPs: true = no Service may name externalIPs that it has not yet
  std::string scheduler_config_file;       // schedulerConfigFile: a KubeSchedulerConfiguration; "" = Kubernetes' defaults

  // storeMaxSize: megabytes, or "256Mi", that all objects may take together, as etcd's quota-backend-bytes; 0 = an eighth of the
  // machine's memory, no less than 64 and no more than 2048
  int store_max_size = 0;
  bool events_on_disk = false;  // eventsOnDisk: false = events go with the daemon, and the card is spared

  // Volumes of claims.
  std::vector<std::string>
      volume_dirs;              // volumeDirs: where they are made, each perhaps on a disk of its own; [] = stateDir/volumes
  bool storage_classes = true;  // storageClasses: false = the classes "directory" and "local-path" are not made at the start

  // Images.
  std::vector<std::string> insecure_registries;             // insecureRegistries: host[:port]
  std::map<std::string, std::vector<std::string>> mirrors;  // mirrors: registry → URLs
  // imagePullCredentialsVerificationPolicy: whose pods may use an image that is here already without its registry being asked.
  // NeverVerify: anybody's; NeverVerifyPreloadedImages: of imported images anybody's, of pulled ones those whose secrets are
  // known to be good for it; NeverVerifyAllowlistedImages: only imported images that the list names are anybody's; AlwaysVerify.
  std::string image_verification = "NeverVerifyPreloadedImages";
  // preloadedImagesVerificationAllowlist: repositories without tag or digest; "registry.example/team/*" is all below it
  std::vector<std::string> image_verification_allowlist;

  LogLevel log_level = LogLevel::info;  // logLevel: error, warning, notice, info, debug
};

// Reads `path`, over the vendor preset where there is one. A missing file is the defaults.
// Errors: invalid, naming file, line or field.
Result<Config> read_config(const std::string& path, const std::string& vendor_path = "/usr/lib/coracle/config.yaml");

// Lays the YAML text over `config`. Errors: invalid, naming the field.
Result<void> apply_config(Config& config, std::string_view yaml_text);

}  // namespace coracle
