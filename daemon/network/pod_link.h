// SPDX-License-Identifier: Apache-2.0
// Names and MAC addresses of the two ends of a pod's veth. All of them are derived from the pod's address. Pure.
#pragma once

#include <string>

#include "daemon/network/address.h"

namespace coracle::network {

std::string hex_of(Ipv4 address);       // "0af40005"
std::string link_name(Ipv4 pod);        // of the machine's end: "coracle0af40005"
std::string pod_mac(Ipv4 address);      // of the pod's end: "0a:58:0a:f4:00:05"
std::string machine_mac(Ipv4 address);  // of the machine's end

}  // namespace coracle::network
