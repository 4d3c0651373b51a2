// SPDX-License-Identifier: Apache-2.0
// See route.h.
#include "daemon/api/route.h"

#include <algorithm>
#include <array>
#include <list>

#include "runtime/base/text.h"

namespace coracle::api {
namespace {

// The decoded segments of a path. Few are encoded; the others are parts of the path itself.
class Segments {
 public:
  // Errors: as read_route.
  Result<void> add(std::string_view raw) {
    if (raw.find('%') != raw.npos) {
      auto decoded = percent_decode(raw);
      if (!decoded) return Error(Code::bad_request, "broken percent-encoding in the path");
      raw = decoded_.emplace_back(*std::move(decoded));
    }
    if (raw.find('/') != raw.npos || raw.find('\0') != raw.npos)
      return Error(Code::bad_request, "a path segment may hold neither a slash nor a NUL");
    if (count_ == kMax) return Error(Code::bad_request, "the path has too many segments");
    all_[count_++] = raw;
    return {};
  }
  size_t count() const { return count_; }
  std::string_view operator[](size_t i) const { return i < count_ ? all_[i] : std::string_view(); }
  std::string path() const {
    std::string out;
    for (size_t i = 0; i < count_; i++) (out += '/') += all_[i];
    return count_ == 0 ? "/" : out;
  }

 private:
  static constexpr size_t kMax = 64;
  std::array<std::string_view, kMax> all_;
  size_t count_ = 0;
  std::list<std::string> decoded_;
};

// The part after the version: [watch] [namespaces/<ns>] <resource> [<name> [<subresource> [rest]]]
void read_resource(const Segments& segments, size_t at, Route& route) {
  if (segments[at] == "watch") route.watch_prefix = true, at++;
  // namespaces/<ns>/<resource>; but namespaces/<ns>/status and finalize are subresources of the namespace.
  bool own = segments[at + 2] == "status" || segments[at + 2] == "finalize";
  if (segments[at] == "namespaces" && at + 2 < segments.count() && !own) route.ns = segments[at + 1], at += 2;
  route.what = Route::What::resource;
  route.resource = segments[at];
  route.name = segments[at + 1];
  route.subresource = segments[at + 2];
  for (size_t i = at + 3; i < segments.count(); i++) (route.rest += '/') += segments[i];
}

// The route of the segments, as far as they match.
Route route_of_segments(const Segments& segments) {
  Route route;
  route.path = segments.path();
  size_t count = segments.count();
  bool core = segments[0] == "api";
  if (!core && segments[0] != "apis") return route;
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
  Segments segments;
  for (std::string_view left = path; !left.empty();) {
    size_t end = std::min(left.find('/'), left.size());
    std::string_view raw = left.substr(0, end);
    left.remove_prefix(std::min(end + 1, left.size()));
    if (raw.empty()) continue;  // "//" and a trailing slash
    TRY(segments.add(raw));
    if (segments[segments.count() - 1] != "proxy") continue;
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
