// SPDX-License-Identifier: Apache-2.0
// pods/x/proxy, services/x/proxy, nodes/x/proxy, for all methods: finds the target and forwards the request (relay.h). A node
// proxy without a port means the kubelet. This daemon is node agent and API server in one, so it has no kubelet port; it serves
// some of the kubelet's paths itself and responds 404 to the others.
//   /healthz, /healthz/<check>   the daemon's health, as /healthz: "ok"
//   /pods                        the pods that are bound to this node
//   /metrics                     the daemon's metrics
//   /logs/<path>                 the machine's logs: system_logs.h
// Not available are data that it does not collect (/stats/summary, /metrics/cadvisor) and features that it lacks (/configz).
// Source: Kubernetes API reference, "connect … Proxy"; kubelet server, "Kubelet authorization".
#include "daemon/api/handlers.h"
#include "daemon/api/proxy/relay.h"
#include "daemon/api/proxy/system_logs.h"
#include "runtime/base/text.h"
#include "store/object/object.h"
#include "store/object/status.h"
#include "store/schema/views.h"

namespace coracle::api {
namespace {

bool is_own_agent(const Call& call) {
  if (!(call.kind() == kNode)) return false;
  auto asked = split_name(call.route.name);
  return asked && asked->name == call.context.config.node_name && (asked->port.empty() || asked->port == kAgentPort);
}

void answer_pods(Call& call) {
  engine::ListOptions options;
  options.matches = [node = call.context.config.node_name](const Object& pod) {
    return view::Pod(pod).spec().node_name() == node;
  };
  auto page = call.context.registry.engine().list_at_rest(kPod, options);
  if (!page) return answer_error(call, page.error());
  const schema::KindInfo* asked = std::exchange(call.info, call.catalog->find(kPod));
  answer_list(call, *page);
  call.info = asked;
}

Result<void> ask_own_agent(Call& call) {
  TRY(call.context.registry.get(kNode, {"", call.context.config.node_name}));
  std::string path = clean_path(call.route.rest);
  bool reads = call.head().method == "GET" || call.head().method == "HEAD";
  if (!reads) return Error(Code::method_not_allowed, "the server does not allow this method on the requested resource");
  if (path == "/pods" || path == "/pods/") return answer_pods(call), Result<void>();
  if (path == "/metrics") return serve_metrics(call), Result<void>();
  if (path == "/healthz" || path.starts_with("/healthz/")) {
    call.route.path = path;
    return serve_health(call), Result<void>();
  }
  if (path == "/logs") return answer_with_slash(call), Result<void>();
  if (path.starts_with("/logs/")) {
    auto plain = percent_decode(path.substr(std::string_view("/logs").size()));
    if (!plain) return bad_request(plain.error().text());
    return serve_system_logs(call, call.context.config.system_logs, *plain);
  }
  return Error(Code::not_found, "the node agent of this server does not serve " + quoted(path)).with(ErrorDetails{});
}

// Source: kubernetes issue 4958.
bool wants_slash(const Call& call) {
  bool reads = call.head().method == "GET" || call.head().method == "HEAD";
  return call.route.rest.empty() && reads && !asks_for_upgrade(call.head());
}

Result<void> proxy(Call& call) {
  if (call.query().has("dryRun")) return bad_request("dryRun is not supported");
  bool own = is_own_agent(call);
  if (own && !wants_slash(call)) return ask_own_agent(call);
  Target target;
  if (!own) target = TRY(find_target(call.context.registry, call.kind(), call.route.ns, call.route.name));
  if (wants_slash(call)) return answer_with_slash(call), Result<void>();
  const std::string &path = call.head().path, &rest = call.route.rest;
  ProxiedRequest proxied{path.substr(0, path.size() - rest.size()), rest, target.host, call.exchange.connection.peer().address};
  return relay(call.exchange, target, proxied, common_headers(call));
}

}  // namespace

void serve_proxy(Call& call) { answer_with(call, proxy(call)); }

}  // namespace coracle::api
