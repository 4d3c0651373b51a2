// SPDX-License-Identifier: Apache-2.0
// See openapi.h. Documents are assembled from openapi/build.h; openapi/gnostic.cc writes gnostic's protobuf.
#include "store/schema/openapi.h"

#include "store/schema/openapi/build.h"

namespace coracle::schema {
namespace {

constexpr std::string_view kVersion = "v1.36.1";  // of the described Kubernetes API

bool is_served(const Catalog& catalog, const Package& package) {
  for (const KindInfo& info : catalog.kinds()) {
    if (&info.type().package() == &package) return true;
  }
  return false;
}

void add_types(const KindInfo& info, std::set<const Type*>& types) {
  types.insert(&info.type());
  if (info.list_type()) types.insert(info.list_type());
  for (const Subresource& sub : info.subresources()) {
    if (sub.type()) types.insert(sub.type());
  }
  for (std::string_view common : {"Status", "DeleteOptions"}) types.insert(root_type("v1", common));
}

uint64_t fnv1a(std::string_view text, uint64_t hash) {
  for (char c : text) hash = (hash ^ uint8_t(c)) * 0x100000001b3;
  return hash;
}

std::string hash_of_documents(const Catalog& catalog) {
  std::string text = openapi_v2(catalog);
  std::string hash;
  for (uint64_t part = 0; part < 4; ++part) {
    uint64_t value = fnv1a(text, 0xcbf29ce484222325 + part);
    for (int shift = 60; shift >= 0; shift -= 4) hash += "0123456789ABCDEF"[value >> shift & 15];
  }
  return hash;
}

}  // namespace

json::object openapi_head(Dialect dialect) {
  json::object out;
  if (dialect == Dialect::v2) out["swagger"] = "2.0";
  else out["openapi"] = "3.0.0";
  out["info"] = json::object{{"title", "Kubernetes"}, {"version", kVersion}};
  return out;
}

std::string openapi_path(const Package& package) {
  std::string version(package.version());
  return package.group().empty() ? "api/" + version : "apis/" + std::string(package.group()) + "/" + version;
}

std::vector<std::string> openapi_v3_paths(const Catalog& catalog) {
  std::vector<std::string> paths;
  for (const Package& package : all_packages()) {
    if (is_served(catalog, package)) paths.push_back(openapi_path(package));
  }
  return paths;
}

std::string openapi_v3(const Catalog& catalog, std::string_view path) {
  json::object paths;
  std::set<const Type*> types;
  for (const KindInfo& info : catalog.kinds()) {
    if (openapi_path(info.type().package()) != path) continue;
    add_openapi_paths(info, Dialect::v3, paths);
    add_types(info, types);
  }
  if (types.empty()) return {};
  json::object document = openapi_head(Dialect::v3);
  document["paths"] = std::move(paths);
  document["components"] = json::object{{"schemas", openapi_schemas(types, Dialect::v3)}};
  return to_text(document);
}

std::string openapi_v2(const Catalog& catalog) {
  json::object paths;
  std::set<const Type*> types;
  for (const KindInfo& info : catalog.kinds()) {
    add_openapi_paths(info, Dialect::v2, paths);
    add_types(info, types);
  }
  json::object document = openapi_head(Dialect::v2);
  document["paths"] = std::move(paths);
  document["definitions"] = openapi_schemas(types, Dialect::v2);
  return to_text(document);
}

const std::string& openapi_hash(const Catalog& catalog) {
  std::call_once(catalog.openapi_hashed_, [&] { catalog.openapi_hash_ = hash_of_documents(catalog); });
  return catalog.openapi_hash_;
}

}  // namespace coracle::schema
