// SPDX-License-Identifier: Apache-2.0
// Selects the handler of a call.
#include <algorithm>

#include "daemon/api/handlers.h"
#include "store/object/status.h"

namespace coracle::api {
namespace {

// For a served group and version a 404 is a Status, otherwise plain text.
bool serves_version(const schema::Catalog& catalog, const Route& route) {
  auto kinds = catalog.kinds();
  return std::any_of(kinds.begin(), kinds.end(), [&](const schema::KindInfo& info) {
    return info.kind.group == route.group && info.kind.version == route.version;
  });
}
void no_such_resource(Call& call) {
  if (!serves_version(*call.catalog, call.route)) return answer_page_not_found(call);
  answer_error(call, Error(Code::not_found, "the server could not find the requested resource").with(ErrorDetails{}));
}
void not_allowed(Call& call) {
  answer_error(call, Error(Code::method_not_allowed, "the server does not allow this method on the requested resource"));
}

bool below(const std::string& path, std::string_view prefix) {
  return path == prefix || (path.size() > prefix.size() && path.starts_with(prefix) && path[prefix.size()] == '/');
}

void dispatch_other(Call& call) {
  const std::string& path = call.route.path;
  bool reads = call.head().method == "GET" || call.head().method == "HEAD";
  bool ours = below(path, "/coracle/v1/images") || below(path, "/coracle/v1/volumes") || below(path, "/coracle/v1/store");
  if (ours && !reads && call.query().has("dryRun"))  // dry run is not supported there
    return answer_error(call, bad_request("dryRun: " + path + " has no dry run"));
  if (below(path, "/coracle/v1/images")) return serve_images(call);
  if (below(path, "/coracle/v1/volumes")) return serve_volumes(call);
  if (below(path, "/coracle/v1/store")) return serve_store(call);
  if (!reads) return not_allowed(call);
  if (below(path, "/livez") || below(path, "/readyz") || below(path, "/healthz")) return serve_health(call);
  if (path == "/coracle/v1/placement") return serve_placement(call);
  if (path == "/version") return serve_version(call);
  if (path == "/metrics") return serve_metrics(call);
  if (below(path, "/openapi/v2") || below(path, "/openapi/v3")) return serve_openapi(call);
  if (path == "/.well-known/openid-configuration" || path == "/openid/v1/jwks") return serve_oidc(call);
  if (path == "/") return serve_discovery(call);
  answer_page_not_found(call);
}

void dispatch_resource(Call& call) {
  Route& route = call.route;
  call.info = call.catalog->by_resource(route.group, route.version, route.resource);
  if (!call.info) return no_such_resource(call);
  if (!call.kind().namespaced && !route.ns.empty()) return no_such_resource(call);
  bool named_nowhere = call.kind().namespaced && route.ns.empty() && !route.name.empty();
  if (named_nowhere) return no_such_resource(call);
  if (call.info->traits.review) return serve_review(call);

  if (!route.subresource.empty()) {
    const schema::Subresource* sub = call.info->subresource(route.subresource);
    if (sub && route.is_proxy()) return serve_proxy(call);  // for all methods
    if (!sub || !route.rest.empty()) return no_such_resource(call);
    std::string verb = route.verb(call.head());
    if (!sub->has_verb(verb)) return not_allowed(call);
    if (route.subresource == "log") return serve_log(call);
    if (route.subresource == "exec" || route.subresource == "attach") return serve_exec(call);
    if (route.subresource == "portforward") return serve_port_forward(call);
    return serve_resource(call);
  }
  std::string verb = route.verb(call.head());
  if (!call.info->has_verb(verb)) return not_allowed(call);
  bool writes_nameless = route.name.empty() && (verb == "update" || verb == "patch");
  bool empties_every_namespace = verb == "deletecollection" && call.kind().namespaced && route.ns.empty();
  if (writes_nameless || empties_every_namespace) return not_allowed(call);
  if (verb == "watch") return serve_watch(call);
  serve_resource(call);
}

}  // namespace

void dispatch(Call& call) {
  if (call.head().method == "OPTIONS" && !call.route.is_proxy()) return not_allowed(call);
  if (call.route.what == Route::What::resource) return dispatch_resource(call);
  if (call.route.what == Route::What::other) return dispatch_other(call);
  if (call.head().method != "GET" && call.head().method != "HEAD") return not_allowed(call);
  serve_discovery(call);
}

}  // namespace coracle::api
