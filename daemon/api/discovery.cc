// SPDX-License-Identifier: Apache-2.0
// API discovery: the served groups, versions and resources from the catalog, as legacy documents and as the aggregated one.
// Source: Kubernetes API concepts ("API discovery"); apiserver endpoints/discovery, discovery/aggregated.
#include <algorithm>
#include <array>

#include "daemon/api/handlers.h"
#include "runtime/base/sha256.h"
#include "runtime/base/text.h"
#include "store/object/status.h"

namespace coracle::api {
namespace {

using schema::KindInfo;
using schema::Subresource;

json::array words(std::string_view commas) {
  json::array out;
  for (std::string_view word : split(commas, ','))
    if (!word.empty()) out.emplace_back(word);
  return out;
}

struct Version {
  std::string_view group, version;
  bool operator==(const Version&) const = default;
  std::string text() const { return group.empty() ? std::string(version) : std::string(group) + "/" + std::string(version); }
};

// The order of groups in which clients look for a kind that several groups have. Other groups follow. Source: kube-aggregator's
// API service priorities.
size_t rank_of(std::string_view group) {
  static constexpr std::string_view kOrder[] = {"",
                                                "apiregistration.k8s.io",
                                                "apps",
                                                "events.k8s.io",
                                                "authentication.k8s.io",
                                                "authorization.k8s.io",
                                                "autoscaling",
                                                "batch",
                                                "certificates.k8s.io",
                                                "networking.k8s.io",
                                                "policy",
                                                "rbac.authorization.k8s.io",
                                                "storage.k8s.io",
                                                "admissionregistration.k8s.io",
                                                "apiextensions.k8s.io",
                                                "scheduling.k8s.io",
                                                "coordination.k8s.io",
                                                "node.k8s.io",
                                                "discovery.k8s.io",
                                                "resource.k8s.io",
                                                "flowcontrol.apiserver.k8s.io"};
  return size_t(std::find(std::begin(kOrder), std::end(kOrder), group) - std::begin(kOrder));
}

// Orders v2 before v1 before v1beta1 before v1alpha1: {maturity, major, minor}; larger is better.
std::array<int, 3> maturity_of(std::string_view version) {
  size_t digits = version.find_first_not_of("0123456789", 1);
  int major = parse_number<int>(version.substr(1, digits == version.npos ? digits : digits - 1)).value_or(0);
  if (digits == version.npos) return {2, major, 0};
  bool beta = version.substr(digits).starts_with("beta");
  return {beta ? 1 : 0, major, parse_number<int>(version.substr(std::min(version.size(), digits + (beta ? 4 : 5)))).value_or(0)};
}

std::vector<Version> versions(const schema::Catalog& catalog) {  // in discovery order
  std::vector<Version> out;
  for (const KindInfo& info : catalog.kinds()) {
    Version version{info.kind.group, info.kind.version};
    if (std::find(out.begin(), out.end(), version) == out.end()) out.push_back(version);
  }
  std::stable_sort(out.begin(), out.end(), [](const Version& a, const Version& b) {
    if (a.group != b.group) return rank_of(a.group) < rank_of(b.group);
    return maturity_of(a.version) > maturity_of(b.version);
  });
  return out;
}

std::vector<const KindInfo*> kinds_of(const schema::Catalog& catalog, const Version& version) {  // sorted by name
  std::vector<const KindInfo*> out;
  for (const KindInfo& info : catalog.kinds())
    if (info.kind.group == version.group && info.kind.version == version.version) out.push_back(&info);
  std::sort(out.begin(), out.end(), [](auto* a, auto* b) { return a->kind.resource < b->kind.resource; });
  return out;
}

std::string storage_hash(const Kind& kind) {
  std::string text = std::string(kind.group) + "/" + std::string(kind.version) + "/" + std::string(kind.kind);
  return base64_encode(as_text(sha256_of(text)).substr(0, 8));
}

bool of_other_group(const KindInfo& info, const Subresource& sub) {
  return !sub.version.empty() && (sub.group != info.kind.group || sub.version != info.kind.version);
}

// ---- legacy ----

void list_resource(json::array& into, const KindInfo& info) {
  const Kind& kind = info.kind;
  json::object entry{{"name", kind.resource},
                     {"singularName", info.singular},
                     {"namespaced", kind.namespaced},
                     {"kind", kind.kind},
                     {"verbs", words(info.verbs)}};
  if (!info.short_names.empty()) entry["shortNames"] = words(info.short_names);
  if (!info.categories.empty()) entry["categories"] = words(info.categories);
  if (info.has_verb("get")) entry["storageVersionHash"] = storage_hash(info.stored().kind);
  into.push_back(std::move(entry));
  std::vector<const Subresource*> subs;
  for (const Subresource& sub : info.subresources()) subs.push_back(&sub);
  std::sort(subs.begin(), subs.end(), [](auto* a, auto* b) { return a->name < b->name; });
  for (const Subresource* sub : subs) {
    json::object item{{"name", std::string(kind.resource) + "/" + std::string(sub->name)},
                      {"singularName", ""},
                      {"namespaced", kind.namespaced}};
    if (of_other_group(info, *sub)) item["group"] = sub->group, item["version"] = sub->version;
    item["kind"] = sub->kind;
    item["verbs"] = words(sub->verbs);
    into.push_back(std::move(item));
  }
}

json::value resource_list(const schema::Catalog& catalog, const Version& version) {
  json::array resources;
  for (const KindInfo* info : kinds_of(catalog, version)) list_resource(resources, *info);
  return json::object{
      {"kind", "APIResourceList"}, {"apiVersion", "v1"}, {"groupVersion", version.text()}, {"resources", std::move(resources)}};
}

json::object group_entry(const schema::Catalog& catalog, std::string_view group) {
  json::array all;
  for (const Version& version : versions(catalog))
    if (version.group == group) all.push_back(json::object{{"groupVersion", version.text()}, {"version", version.version}});
  json::value preferred = all.front();
  return {{"name", group}, {"versions", std::move(all)}, {"preferredVersion", std::move(preferred)}};
}

std::vector<std::string_view> groups(const schema::Catalog& catalog) {
  std::vector<std::string_view> out;
  for (const Version& version : versions(catalog))
    if (!version.group.empty() && std::find(out.begin(), out.end(), version.group) == out.end()) out.push_back(version.group);
  return out;
}

json::value group_list(const schema::Catalog& catalog) {
  json::array all;
  for (std::string_view group : groups(catalog)) all.push_back(group_entry(catalog, group));
  return json::object{{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", std::move(all)}};
}

json::value api_versions(const Call& call) {
  auto bound = call.context.bound();
  std::string address = bound.empty() ? std::string() : bound.back().text();
  json::object by_client{{"clientCIDR", "0.0.0.0/0"}, {"serverAddress", address}};
  return json::object{{"kind", "APIVersions"},
                      {"versions", json::array{"v1"}},
                      {"serverAddressByClientCIDRs", json::array{std::move(by_client)}}};
}

// ---- aggregated ----

json::object response_kind(std::string_view group, std::string_view version, std::string_view kind) {
  return {{"group", group}, {"version", version}, {"kind", kind}};
}

json::object aggregated_resource(const KindInfo& info) {
  json::object entry{{"resource", info.kind.resource},
                     {"responseKind", response_kind("", "", info.kind.kind)},
                     {"scope", info.kind.namespaced ? "Namespaced" : "Cluster"},
                     {"singularResource", info.singular},
                     {"verbs", words(info.verbs)}};
  if (!info.short_names.empty()) entry["shortNames"] = words(info.short_names);
  if (!info.categories.empty()) entry["categories"] = words(info.categories);
  json::array subs;
  for (const Subresource& sub : info.subresources()) {
    bool other = of_other_group(info, sub);
    subs.push_back(json::object{{"subresource", sub.name},
                                {"responseKind", response_kind(other ? sub.group : "", other ? sub.version : "", sub.kind)},
                                {"verbs", words(sub.verbs)}});
  }
  if (!subs.empty()) entry["subresources"] = std::move(subs);
  return entry;
}

json::value aggregated(const schema::Catalog& catalog, bool core) {
  json::array items;
  auto add = [&](std::string_view group) {
    json::array all;
    for (const Version& version : versions(catalog)) {
      if (version.group != group) continue;
      json::array resources;
      for (const KindInfo* info : kinds_of(catalog, version)) resources.push_back(aggregated_resource(*info));
      all.push_back(json::object{{"version", version.version}, {"resources", std::move(resources)}, {"freshness", "Current"}});
    }
    json::object metadata;
    if (!group.empty()) metadata["name"] = group;
    items.push_back(json::object{{"metadata", std::move(metadata)}, {"versions", std::move(all)}});
  };
  if (core) add("");
  else
    for (std::string_view group : groups(catalog)) add(group);
  return json::object{{"kind", "APIGroupDiscoveryList"},
                      {"apiVersion", "apidiscovery.k8s.io/v2"},
                      {"metadata", json::object()},
                      {"items", std::move(items)}};
}

// Whether the client prefers the aggregated form. v2beta1 is not served any more.
bool prefers_aggregated(const Head& head) {
  for (const MediaType& type : accepted_by(head)) {
    bool discovery = type.parameter("as") == "APIGroupDiscoveryList" && type.parameter("g") == "apidiscovery.k8s.io" &&
                     type.parameter("v") == "v2";
    if (type.type == "application/json" && discovery) return true;
    if (type.parameter("as").empty()) return false;
  }
  return false;
}

std::string etag_of(std::string_view text) {
  unsigned char digest[SHA512_DIGEST_LENGTH];
  SHA512(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  std::string digits = hex({reinterpret_cast<char*>(digest), sizeof digest});
  for (char& c : digits) c = c >= 'a' && c <= 'f' ? char(c - 32) : c;
  return "\"" + digits + "\"";
}

void serve_aggregated(Call& call, bool core) {
  std::string text = to_text(aggregated(*call.catalog, core)) + "\n", etag = etag_of(text);
  bool same = call.head().headers.get("If-None-Match") == etag;
  Answer& answer = call.answer();
  answer.status = same ? 304 : 200;
  answer.content_type = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
  if (!same) answer.body = std::move(text);
  call.cache_control = "public";
  answer.headers = common_headers(call);
  for (const Header& header : {Header{"Etag", etag}, Header{"Vary", "Accept"}}) answer.headers.push_back(header);
}

void serve_root(Call& call) {
  json::array paths;
  for (std::string_view path : {"/.well-known/openid-configuration", "/api", "/api/v1", "/apis"}) paths.emplace_back(path);
  for (std::string_view group : groups(*call.catalog)) paths.emplace_back("/apis/" + std::string(group));
  for (const Version& version : versions(*call.catalog))
    if (!version.group.empty()) paths.emplace_back("/apis/" + version.text());
  for (std::string_view path :
       {"/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/openid/v1/jwks", "/readyz", "/version"})
    paths.emplace_back(path);
  answer_value(call, json::object{{"paths", std::move(paths)}});
}

}  // namespace

void serve_discovery(Call& call) {
  const Route& route = call.route;
  bool core = route.what == Route::What::api_versions;
  if (core || route.what == Route::What::group_list) {
    if (prefers_aggregated(call.head())) return serve_aggregated(call, core);
    return answer_value(call, core ? api_versions(call) : group_list(*call.catalog));
  }
  if (route.what == Route::What::group) {
    auto all = groups(*call.catalog);
    if (std::find(all.begin(), all.end(), route.group) == all.end()) return answer_page_not_found(call);
    json::object group = group_entry(*call.catalog, route.group);
    json::object out{{"kind", "APIGroup"}, {"apiVersion", "v1"}};
    for (auto& [key, value] : group) out[key] = std::move(value);
    return answer_value(call, std::move(out));
  }
  if (route.what == Route::What::resource_list) {
    auto all = versions(*call.catalog);
    Version version{route.group, route.version};
    if (std::find(all.begin(), all.end(), version) == all.end()) return answer_page_not_found(call);
    return answer_value(call, resource_list(*call.catalog, version));
  }
  serve_root(call);
}

}  // namespace coracle::api
