// SPDX-License-Identifier: Apache-2.0
// What all of Kubernetes' WebSocket streams share: each message begins with a channel number, and version 5 of the protocol adds
// a message that closes one channel.
// Source: Kubernetes remotecommand and port-forward over WebSocket.
#pragma once

#include <cstdint>
#include <string_view>

namespace coracle::ctl {

constexpr std::string_view kChannelProtocol = "v5.channel.k8s.io";
constexpr uint8_t kCloseChannel = 255;  // the payload is the number of the channel to close

}  // namespace coracle::ctl
