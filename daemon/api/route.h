// SPDX-License-Identifier: Apache-2.0
// Parses the URL path of a request, without regular expressions. Pure.
//   /apis/apps/v1/namespaces/default/deployments/web/scale ──▶ resource apps/v1 deployments, default/web, scale
// It reads positions only; the catalog decides whether such a resource exists. Source: Kubernetes API concepts ("Resource URIs");
// apiserver endpoints/request/requestinfo.
#pragma once

#include <string>
#include <string_view>

#include "daemon/api/head.h"

namespace coracle::api {

struct Route {
  enum class What {
    other,          // health, version, openapi, …: identified by `path`
    api_versions,   // /api
    group_list,     // /apis
    group,          // /apis/<g>
    resource_list,  // /api/v1, /apis/<g>/<v>
    resource,
  };
  What what = What::other;
  std::string path;  // decoded, without a trailing slash
  std::string group, version, ns, resource, name, subresource;
  std::string rest;           // the path after the subresource; for a proxy subresource as it was sent
  bool watch_prefix = false;  // /api/v1/watch/…, the deprecated form

  // Whether the request is for a proxied server, which gets the rest of the path.
  bool is_proxy() const { return what == What::resource && group.empty() && subresource == "proxy"; }

  // The verb for authorization: get list watch create update patch delete deletecollection; "" for OPTIONS.
  std::string verb(const Head& head) const;
};

// Errors: bad_request for broken percent-encoding, or an encoded slash or NUL in a segment.
Result<Route> read_route(std::string_view path);

// Whether the query or the URL requests a watch.
bool asks_for_watch(const Route& route, const Head& head);

}  // namespace coracle::api
