// SPDX-License-Identifier: Apache-2.0
// The contents of a pod's /etc/hosts and /etc/resolv.conf. Pure. Source: Kubernetes DNS for Services and Pods, hostAliases;
// kubelet's managed hosts file; resolv.conf(5).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/node/config.h"
#include "runtime/base/json.h"

namespace coracle::node {

struct ResolvConf {
  std::vector<std::string> nameservers, searches, options;
  static ResolvConf parse(std::string_view text);
  std::string text() const;
};

// resolv.conf according to dnsPolicy and dnsConfig. `host` is the machine's own resolv.conf.
ResolvConf make_resolv_conf(const json::value& pod, const ResolvConf& host, const PodNetworkHooks& network);

// `host` is the machine's own /etc/hosts, used for pods with hostNetwork.
std::string make_hosts_file(const json::value& pod, const std::vector<std::string>& ips, std::string_view host,
                            std::string_view cluster_domain);

}  // namespace coracle::node
