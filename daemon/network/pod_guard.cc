// SPDX-License-Identifier: Apache-2.0
// See pod_guard.h.
#include "daemon/network/pod_guard.h"

#include "daemon/network/firewall.h"
#include "daemon/network/pod_link.h"
#include "daemon/network/proxy.h"
#include "runtime/base/log.h"
#include "runtime/sys/netfilter.h"

namespace coracle::network {
namespace {

constexpr const char* kPods = "pods";  // the set: interface . MAC address . IP address
constexpr size_t kLinkNameBytes = 16;  // IFNAMSIZ

Ruleset guard_rules(const char* family, const std::string& hook, const std::string& sender, const std::vector<Ipv4>& pods) {
  Ruleset rules;
  rules.table = std::string(family) + " " + kPodTableName;
  Set& set = rules.sets[kPods] = {false, "type ifname . ether_addr . ipv4_addr;", {}};
  for (Ipv4 pod : pods) set.elements.emplace("\"" + link_name(pod) + "\" . " + pod_mac(pod) + " . " + pod.text(), "");
  rules.chains["guard"] = {hook,
                           {std::string("iifname \"") + kLinkPrefix + "*\" iifname . " + sender + " != @" + kPods + " drop"}};
  return rules;
}

std::string anew(const std::vector<Ipv4>& pods, bool with_arp) {
  std::string script = replace_script(pod_rules(pods));
  return with_arp ? script + replace_script(pod_arp_rules(pods)) : script;
}

}  // namespace

Ruleset pod_rules(const std::vector<Ipv4>& pods) {
  Ruleset rules = guard_rules("ip", "type filter hook prerouting priority -300; policy accept;", "ether saddr . ip saddr", pods);
  rules.chains["guard"].rules.push_back(std::string("iifname \"") + kLinkPrefix + "*\" ip daddr 127.0.0.0/8 drop");
  return rules;
}

Ruleset pod_arp_rules(const std::vector<Ipv4>& pods) {
  return guard_rules("arp", "type filter hook input priority 0; policy accept;", "arp saddr ether . arp saddr ip", pods);
}

std::string pod_entry(Ipv4 pod) {
  std::string entry = link_name(pod);
  entry.resize(kLinkNameBytes);
  const char address[4] = {char(pod.value >> 24), char(pod.value >> 16), char(pod.value >> 8), char(pod.value)};
  entry.append({0x0a, 0x58}).append(address, 4).append(2, '\0');
  return entry.append(address, 4);
}

Result<void> PodGuard::replace(const std::vector<Ipv4>& pods) {
  if (has_arp_) {
    Result<void> made = Firewall::run(anew(pods, true));
    if (made) return {};
    TRY(Firewall::run(anew(pods, false)));
    has_arp_ = false;
    log_warning("network", "this kernel cannot filter ARP: the pods' ARP is not checked", {{"why", made.error().text()}});
    return {};
  }
  return Firewall::run(anew(pods, false));
}

Result<void> PodGuard::admit(Ipv4 pod) const {
  const std::string entry = pod_entry(pod);
  std::vector<sys::SetElement> elements = {{sys::TableFamily::ip, kPodTableName, kPods, entry}};
  if (has_arp_) elements.push_back({sys::TableFamily::arp, kPodTableName, kPods, entry});
  return sys::add_set_elements(elements);
}

Result<void> PodGuard::remove() {
  TRY(Firewall::run(remove_script(pod_rules({}).table)));
  (void)Firewall::run(remove_script(pod_arp_rules({}).table));  // absent in a kernel that cannot filter ARP
  return {};
}

}  // namespace coracle::network
