// SPDX-License-Identifier: Apache-2.0
// The two ends of a pod's wire, by the pod's address: what they are called and which MAC addresses they have. All of it follows
// from the address, so that whoever knows one knows the others. Pure.
#pragma once

#include <string>

#include "daemon/network/address.h"

namespace coracle::network {

std::string hex_of(Ipv4 address);       // "0af40005"
std::string link_name(Ipv4 pod);        // of the machine's end: "coracle0af40005"
std::string pod_mac(Ipv4 address);      // of the pod's end: "0a:58:0a:f4:00:05"
std::string machine_mac(Ipv4 address);  // of the machine's end

}  // namespace coracle::network
