// SPDX-License-Identifier: Apache-2.0
// What Kubernetes' WebSocket streams have in common: each message begins with its channel, and version 5 tells a channel's end.
// Source: Kubernetes remotecommand and port-forward over WebSocket.
#pragma once

#include <cstdint>
#include <string_view>

namespace coracle::ctl {

constexpr std::string_view kChannelProtocol = "v5.channel.k8s.io";
constexpr uint8_t kCloseChannel = 255;  // its message: the channel that has ended

}  // namespace coracle::ctl
