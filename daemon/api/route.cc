// SPDX-License-Identifier: Apache-2.0
// See route.h.
#include "daemon/api/route.h"

#include <algorithm>

#include "runtime/base/text.h"

namespace coracle::api {
namespace {

constexpr size_t kSegmentsMax = 64;

Result<std::string> read_segment(std::string_view raw) {
  auto segment = percent_decode(raw);
  if (!segment) return Error(Code::bad_request, "broken percent-encoding in the path");
  if (segment->find('/') != std::string::npos || segment->find('\0') != std::string::npos)
    return Error(Code::bad_request, "a path segment may hold neither a slash nor a NUL");
  return segment;
}

// The part after the version: [watch] [namespaces/<ns>] <resource> [<name> [<subresource> [rest]]]
void read_resource(const std::vector<std::string>& segments, size_t at, Route& route) {
  auto segment = [&](size_t i) { return i < segments.size() ? std::string_view(segments[i]) : std::string_view(); };
  if (segment(at) == "watch") route.watch_prefix = true, at++;
  // namespaces/<ns>/<resource>; but namespaces/<ns>/status and finalize are subresources of the namespace.
  bool own = segment(at + 2) == "status" || segment(at + 2) == "finalize";
  if (segment(at) == "namespaces" && at + 2 < segments.size() && !own) route.ns = segment(at + 1), at += 2;
  route.what = Route::What::resource;
  route.resource = segment(at);
  route.name = segment(at + 1);
  route.subresource = segment(at + 2);
  for (size_t i = at + 3; i < segments.size(); i++) (route.rest += '/') += segments[i];
}

// The route of the segments, as far as they match.
Route route_of_segments(const std::vector<std::string>& segments) {
  Route route;
  route.path = join(segments, "/").insert(0, 1, '/');
  if (segments.empty()) return route;
  bool core = segments[0] == "api";
  if (!core && segments[0] != "apis") return route;
  size_t count = segments.size();
  if (count == 1) return route.what = core ? Route::What::api_versions : Route::What::group_list, route;
  if (!core) route.group = segments[1];
  if (!core && count == 2) return route.what = Route::What::group, route;
  size_t at = core ? 1 : 2;
  route.version = segments[at];
  if (count == at + 1) return route.what = Route::What::resource_list, route;
  read_resource(segments, at + 1, route);
  return route;
}

}  // namespace

Result<Route> read_route(std::string_view path) {
  constexpr size_t kUsual = 8;  // "/apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE/NAME/SUBRESOURCE"
  std::vector<std::string> segments;
  segments.reserve(kUsual);
  for (std::string_view left = path; !left.empty();) {
    size_t end = std::min(left.find('/'), left.size());
    std::string_view raw = left.substr(0, end);
    left.remove_prefix(std::min(end + 1, left.size()));
    if (raw.empty()) continue;  // "//" and a trailing slash
    std::string segment = TRY(read_segment(raw));
    segments.push_back(std::move(segment));
    if (segments.size() > kSegmentsMax) return Error(Code::bad_request, "the path has too many segments");
    if (segments.back() != "proxy") continue;
    Route route = route_of_segments(segments);
    if (!route.is_proxy()) continue;
    route.rest = path.substr(size_t(raw.data() - path.data()) + raw.size());
    if (!percent_decode(route.rest)) return Error(Code::bad_request, "broken percent-encoding in the path");
    route.path += route.rest;
    return route;
  }
  return route_of_segments(segments);
}

bool asks_for_watch(const Route& route, const Head& head) {
  return route.what == Route::What::resource && head.method == "GET" && route.subresource.empty() &&
         (route.watch_prefix || head.query.flag("watch"));
}

std::string Route::verb(const Head& head) const {
  if (what != What::resource) {
    std::string verb(to_lower(head.method));
    return verb == "head" ? "get" : verb;
  }
  if (head.method == "OPTIONS") return "";
  if (head.method == "POST") return "create";
  if (head.method == "PUT") return "update";
  if (head.method == "PATCH") return "patch";
  if (head.method == "DELETE") return name.empty() ? "deletecollection" : "delete";
  if (asks_for_watch(*this, head)) return "watch";
  return name.empty() ? "list" : "get";
}

}  // namespace coracle::api
