// SPDX-License-Identifier: Apache-2.0
// OpenAPI documents for kubectl explain and apply. The schema generates them on request. They are not cached, because they are
// large and clients cache them by hash. Source: Kubernetes "OpenAPI v2/v3 endpoints".
#include "store/schema/openapi.h"

#include <algorithm>

#include "daemon/api/handlers.h"
#include "runtime/base/text.h"

namespace coracle::api {
namespace {

constexpr std::string_view kV3 = "/openapi/v3";

bool accepts_protobuf(const Head& head) {
  for (std::string_view field : head.headers.all("Accept"))
    for (const MediaType& type : parse_accept(field)) {
      if (type.type == "application/json" || type.type == "*/*") return false;
      if (type.type.starts_with("application/com.github.proto-openapi.spec.v2")) return true;
    }
  return false;
}

void send(Call& call, std::string_view type, const std::string& etag,
          std::string (*make)(const schema::Catalog&, std::string_view), std::string_view argument, bool for_ever) {
  Answer& answer = call.answer();
  answer.headers = {{"Etag", etag}, {"Vary", "Accept"}, {"Cache-Control", for_ever ? "public, immutable" : "no-cache, private"}};
  if (for_ever) answer.headers.emplace_back("Expires", "Thu, 31 Dec 2099 23:59:59 GMT");
  bool same = call.head().headers.get("If-None-Match") == etag;
  answer.status = same ? 304 : 200;
  answer.content_type = type;
  if (!same) answer.body = make(*call.catalog, argument);
}

void serve_index(Call& call) {
  json::object paths;
  for (const std::string& path : schema::openapi_v3_paths(*call.catalog))
    paths[path] =
        json::object{{"serverRelativeURL", std::string(kV3) + "/" + path + "?hash=" + schema::openapi_hash(*call.catalog)}};
  answer_value(call, json::object{{"paths", std::move(paths)}});
}

}  // namespace

void serve_openapi(Call& call) {
  const std::string& path = call.route.path;
  std::string etag = "\"" + schema::openapi_hash(*call.catalog) + "\"";
  if (path == "/openapi/v2") {
    bool protobuf = accepts_protobuf(call.head());
    auto make = protobuf ? +[](const schema::Catalog& catalog, std::string_view) { return schema::openapi_v2_protobuf(catalog); }
                         : +[](const schema::Catalog& catalog, std::string_view) { return schema::openapi_v2(catalog); };
    return send(call, protobuf ? schema::kOpenApiV2MediaType : "application/json", etag, make, {}, false);
  }
  if (path == kV3) return serve_index(call);
  if (!path.starts_with(std::string(kV3) + "/")) return answer_page_not_found(call);
  std::string document = path.substr(kV3.size() + 1);
  auto all = schema::openapi_v3_paths(*call.catalog);
  if (std::find(all.begin(), all.end(), document) == all.end()) return answer_page_not_found(call);
  std::string_view hash = call.query().get("hash");
  if (!hash.empty() && hash != schema::openapi_hash(*call.catalog)) {
    call.answer().status = 301;
    call.answer().headers = {{"Location", path + "?hash=" + schema::openapi_hash(*call.catalog)}};
    return;
  }
  send(
      call, "application/json", etag,
      [](const schema::Catalog& catalog, std::string_view name) { return schema::openapi_v3(catalog, name); }, document,
      !hash.empty());
}

}  // namespace coracle::api
