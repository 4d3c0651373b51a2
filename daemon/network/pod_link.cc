// SPDX-License-Identifier: Apache-2.0
// See pod_link.h.
#include "daemon/network/pod_link.h"

#include <cstdio>

#include "daemon/network/proxy.h"

namespace coracle::network {
namespace {

constexpr int kPodSide = 0x58, kMachineSide = 0x59;

// Locally administered. It depends on the address only, so that neighbour entries of peers stay valid. `side` distinguishes the
// two ends of a veth.
std::string mac_of(Ipv4 address, int side) {
  char text[18];
  std::snprintf(text, sizeof text, "0a:%02x:%02x:%02x:%02x:%02x", side, address.value >> 24, address.value >> 16 & 0xff,
                address.value >> 8 & 0xff, address.value & 0xff);
  return text;
}

}  // namespace

std::string hex_of(Ipv4 address) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", address.value);
  return text;
}

std::string link_name(Ipv4 pod) { return kLinkPrefix + hex_of(pod); }
std::string pod_mac(Ipv4 address) { return mac_of(address, kPodSide); }
std::string machine_mac(Ipv4 address) { return mac_of(address, kMachineSide); }

}  // namespace coracle::network
