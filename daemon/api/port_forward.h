// SPDX-License-Identifier: Apache-2.0
// The two transports of port-forward. The functions return when the client has disconnected.
#pragma once

#include <vector>

#include "daemon/api/byte_link.h"
#include "daemon/api/call.h"

namespace coracle::api {

struct ForwardRequest {
  Key pod;
  std::string uid;              // of the pod
  std::vector<uint16_t> ports;  // for a WebSocket with channels; each SPDY stream has its own port
};

void forward_streams(PodStreams& streams, ByteLink& link, const ForwardRequest& request);  // port_forward_spdy.cc
void forward_channels(PodStreams& streams, Connection& connection, WebSocket& socket,
                      const ForwardRequest& request);  // …_websocket.cc

}  // namespace coracle::api
