// SPDX-License-Identifier: Apache-2.0
// GET and POST /pods/x/portforward: reads the request and selects the transport. See port_forward.h.
//   POST, Upgrade: SPDY/3.1, portforward.k8s.io                  streams             kubectl before 1.31
//   GET, WebSocket, SPDY/3.1+portforward.k8s.io                  tunnelled streams   kubectl since then
//   GET, WebSocket, v4.channel.k8s.io, ?ports=80&ports=443       channels            browsers and libraries
// Source: KEP-4006; kubelet's portforward.
#include "daemon/api/port_forward.h"

#include "daemon/api/forward.h"
#include "daemon/api/handlers.h"
#include "daemon/api/port_forward_pairs.h"
#include "daemon/api/upgrade.h"
#include "runtime/base/text.h"
#include "store/kinds/pod/pod_state.h"
#include "store/object/object.h"
#include "store/object/status.h"

namespace coracle::api {
namespace {

constexpr std::string_view kProtocol = "portforward.k8s.io", kTunnel = "SPDY/3.1+portforward.k8s.io";

Result<ForwardRequest> read_forward_request(Call& call) {
  ForwardRequest request;
  request.pod = call.key();
  ObjectPtr pod = TRY(call.context.registry.get(kPod, request.pod));
  if (view::Pod(*pod).spec().node_name().empty()) return bad_request("pod " + pod->name() + " does not have a host assigned");
  if (is_terminal(view::Pod(*pod)))
    return Error(Code::internal, "unable to upgrade connection: pod not found (" + quoted(pod->name() + "_" + pod->ns()) + ")");
  request.uid = pod->uid();
  for (std::string_view field : call.query().all("ports"))
    for (std::string_view text : split(field, ',')) {
      uint16_t port = TRY(read_port(text));
      request.ports.push_back(port);
    }
  return request;
}

bool offers_tunnel(const Head& head) {
  for (std::string_view field : head.headers.all("Sec-WebSocket-Protocol"))
    for (std::string_view offered : split(field, ','))
      if (trim(offered) == kTunnel) return true;
  return false;
}

Result<void> over_websocket(Call& call, const ForwardRequest& request) {
  PodStreams& streams = call.context.streams;
  Connection& connection = call.exchange.connection;
  if (offers_tunnel(call.head())) {
    WebSocket socket = TRY(WebSocket::accept(call.exchange, {kTunnel}));
    TunnelLink link(connection, std::move(socket));
    forward_streams(streams, link, request);
    return {};
  }
  if (request.ports.empty()) return bad_request("query parameter \"port\" is required");
  if (request.ports.size() > kPortsMax)
    return bad_request("at most " + std::to_string(kPortsMax) + " ports may be forwarded by one connection");
  WebSocket socket =
      TRY(WebSocket::accept(call.exchange, {"v5.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io", ""}));
  forward_channels(streams, connection, socket, request);
  return {};
}

Result<void> port_forward(Call& call) {
  if (call.query().has("dryRun")) return bad_request("dryRun is not supported");
  TRY(may_open(call));
  ForwardRequest request = TRY(read_forward_request(call));
  if (asks_for_websocket(call.head())) return over_websocket(call, request);
  if (!asks_for_spdy(call.head())) return bad_request("Upgrade request required");
  auto protocol = TRY(accept_spdy(call, {kProtocol}));
  if (!protocol) return {};
  PlainLink link(call.exchange.connection);
  forward_streams(call.context.streams, link, request);
  return {};
}

}  // namespace

void serve_port_forward(Call& call) { answer_with(call, port_forward(call)); }

}  // namespace coracle::api
