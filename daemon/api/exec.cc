// SPDX-License-Identifier: Apache-2.0
// exec and attach: reads the request and selects the transport. See exec.h.
#include "daemon/api/exec.h"

#include "daemon/api/handlers.h"
#include "daemon/api/pods.h"
#include "daemon/api/upgrade.h"
#include "store/kinds/pod/pod_state.h"
#include "store/object/object.h"
#include "store/object/status.h"

namespace coracle::api {
namespace {

Result<ExecRequest> read_exec_request(Call& call) {
  const Query& query = call.query();
  bool attach = call.route.subresource == "attach";
  ExecRequest request;
  request.pod = call.key();
  ObjectPtr pod = TRY(call.context.registry.get(kPod, request.pod));
  std::string_view asked = query.get("container");
  view::PodSpec spec = view::Pod(*pod).spec();
  if (asked.empty() && !spec.containers().empty()) asked = spec.containers()[0].name();
  request.container = TRY(choose_container(*pod, asked));
  request.tty = query.flag("tty");
  request.use_stdin = query.flag("stdin"), request.use_stdout = query.flag("stdout");
  request.use_stderr = query.flag("stderr") && !request.tty;
  for (std::string_view word : query.all("command")) request.command.emplace_back(word);
  if (attach) request.command.clear();
  if (!attach && request.command.empty()) return bad_request("you must specify at least one command for the container");
  if (!request.use_stdin && !request.use_stdout && !request.use_stderr)
    return bad_request("you must specify at least 1 of stdin, stdout, stderr");
  std::string_view phase = view::Pod(*pod).status().phase();
  if (is_terminal_phase(phase))
    return bad_request("cannot exec into a container in a completed pod; current phase is " + std::string(phase));
  if (spec.node_name().empty()) return bad_request("pod " + pod->name() + " does not have a host assigned");
  return request;
}

Result<void> exec(Call& call) {
  if (call.query().has("dryRun")) return bad_request("dryRun is not supported");
  TRY(may_open(call));
  ExecRequest request = TRY(read_exec_request(call));
  if (asks_for_websocket(call.head())) {
    WebSocket socket = TRY(WebSocket::accept(call.exchange, {"v5.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io",
                                                             "channel.k8s.io", "base64.channel.k8s.io", ""}));
    run_exec(call, socket, request);
    return {};
  }
  if (!asks_for_spdy(call.head())) return bad_request("Upgrade request required");
  auto protocol = TRY(accept_spdy(call, {"v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"}));
  if (protocol) run_exec(call, *protocol == "channel.k8s.io" ? 1 : (*protocol)[1] - '0', request);
  return {};
}

}  // namespace

void serve_exec(Call& call) { answer_with(call, exec(call)); }

}  // namespace coracle::api
