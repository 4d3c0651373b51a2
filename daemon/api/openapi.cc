// SPDX-License-Identifier: Apache-2.0
// OpenAPI documents for kubectl explain and apply. The schema generates them on request. They are not cached, because they are
// large and clients cache them by hash. Source: Kubernetes "OpenAPI v2/v3 endpoints".
#include "store/schema/openapi.h"

#include <algorithm>
#include <span>

#include "daemon/api/handlers.h"
#include "runtime/base/text.h"

namespace coracle::api {
namespace {

constexpr std::string_view kV3 = "/openapi/v3";

constexpr std::string_view kJson[] = {"application/json"};
constexpr std::string_view kJsonOrProtobuf[] = {"application/json", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
                                                schema::kOpenApiV2MediaType};

// The first of the offered types that the client accepts, in its order; "": none. Source: kube-openapi pkg/handler, handler3.
std::string_view chosen(const Head& head, std::span<const std::string_view> offered) {
  std::vector<MediaType> accepted = accepted_by(head);
  if (accepted.empty()) return offered.front();
  for (const MediaType& type : accepted)
    for (std::string_view one : offered)
      if (type.quality > 0 && (type.type == one || type.type == "*/*" || type.type == "application/*")) return one;
  return {};
}

// Whether the client has this version already. Source: RFC 9110 section 13.1.2; Go net/http ServeContent.
bool is_known(const Head& head, std::string_view etag) {
  for (std::string_view field : head.headers.all("If-None-Match"))
    while (!field.empty()) {
      std::string_view one = trim(take_part(field, ','));
      if (one.starts_with("W/")) one.remove_prefix(2);
      if (one == "*" || one == etag) return true;
    }
  return false;
}

void set_headers(Call& call, std::initializer_list<Header> more) {
  call.answer().headers = common_headers(call);
  call.answer().headers.insert(call.answer().headers.end(), more);
}

void send(Call& call, std::string_view type, const std::string& etag,
          std::string (*make)(const schema::Catalog&, std::string_view), std::string_view argument, bool for_ever) {
  Answer& answer = call.answer();
  if (for_ever) call.cache_control = "public, immutable";
  set_headers(call, {{"Etag", etag}, {"Vary", "Accept"}});
  if (for_ever) answer.headers.emplace_back("Expires", "Thu, 31 Dec 2099 23:59:59 GMT");
  bool same = is_known(call.head(), etag);
  answer.status = same ? 304 : 200;
  answer.content_type = type;
  if (!same) answer.body = make(*call.catalog, argument);
}

// The paths of all documents, with the hash as which they may be kept for ever.
std::string index_of(const schema::Catalog& catalog, std::string_view) {
  json::object paths;
  for (const std::string& path : schema::openapi_v3_paths(catalog))
    paths[path] = json::object{{"serverRelativeURL", std::string(kV3) + "/" + path + "?hash=" + schema::openapi_hash(catalog)}};
  return to_text(json::object{{"paths", std::move(paths)}});
}

void answer_not_acceptable(Call& call) {
  call.answer().status = 406;
  set_headers(call, {{"Vary", "Accept"}});
}

}  // namespace

void serve_openapi(Call& call) {
  const std::string& path = call.route.path;
  std::string etag = "\"" + schema::openapi_hash(*call.catalog) + "\"";
  if (path == "/openapi/v2") {
    std::string_view form = chosen(call.head(), kJsonOrProtobuf);
    if (form.empty()) return answer_not_acceptable(call);
    bool protobuf = form != kJson[0];
    auto make = protobuf ? +[](const schema::Catalog& catalog, std::string_view) { return schema::openapi_v2_protobuf(catalog); }
                         : +[](const schema::Catalog& catalog, std::string_view) { return schema::openapi_v2(catalog); };
    return send(call, protobuf ? schema::kOpenApiV2MediaType : "application/json", etag, make, {}, false);
  }
  if (path == kV3) return send(call, "application/json", etag, index_of, {}, false);
  if (!path.starts_with(std::string(kV3) + "/")) return answer_page_not_found(call);
  std::string document = path.substr(kV3.size() + 1);
  auto all = schema::openapi_v3_paths(*call.catalog);
  if (std::find(all.begin(), all.end(), document) == all.end()) return answer_page_not_found(call);
  if (chosen(call.head(), kJson).empty()) return answer_not_acceptable(call);
  std::string_view hash = call.query().get("hash");
  if (!hash.empty() && hash != schema::openapi_hash(*call.catalog)) {
    call.answer().status = 301;
    set_headers(call, {{"Location", path + "?hash=" + schema::openapi_hash(*call.catalog)}, {"Etag", etag}, {"Vary", "Accept"}});
    return;
  }
  send(
      call, "application/json", etag,
      [](const schema::Catalog& catalog, std::string_view name) { return schema::openapi_v3(catalog, name); }, document,
      !hash.empty());
}

}  // namespace coracle::api
