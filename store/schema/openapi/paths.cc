// SPDX-License-Identifier: Apache-2.0
// Operations of kinds. See build.h. Clients read two things: the kind of an operation, and its query parameters (kubectl checks
// that PATCH supports fieldValidation and dryRun before it uses them).
#include "runtime/base/text.h"
#include "store/schema/openapi/build.h"

namespace coracle::schema {
namespace {

struct Parameter {
  std::string_view name, type, doc;
};

constexpr Parameter kListParameters[] = {
    {"allowWatchBookmarks", "boolean", "Send bookmarks in a watch."},
    {"continue", "string", "Where the next part of a list goes on."},
    {"fieldSelector", "string", "Only objects whose fields are so."},
    {"labelSelector", "string", "Only objects whose labels are so."},
    {"limit", "integer", "At most so many objects at once."},
    {"resourceVersion", "string", "As of, or after, this version."},
    {"resourceVersionMatch", "string", "How resourceVersion is meant: Exact or NotOlderThan."},
    {"sendInitialEvents", "boolean", "Begin a watch with what there is."},
    {"timeoutSeconds", "integer", "End the call after so long."},
    {"watch", "boolean", "Stream changes instead of listing."}};
constexpr Parameter kWriteParameters[] = {
    {"dryRun", "string", "All: do everything but store the result."},
    {"fieldManager", "string", "Who owns the fields that are written."},
    {"fieldValidation", "string", "What to do about unknown and duplicate fields: Ignore, Warn or Strict."}};
constexpr Parameter kForceParameter = {"force", "boolean", "Take fields over from other managers; apply only."};
constexpr Parameter kDeleteParameters[] = {
    {"dryRun", "string", "All: do everything but store the result."},
    {"gracePeriodSeconds", "integer", "How long the object may take to end."},
    {"orphanDependents", "boolean", "Old form of propagationPolicy."},
    {"propagationPolicy", "string", "What becomes of dependents: Orphan, Background or Foreground."}};
constexpr std::string_view kMediaTypes[] = {"application/json", "application/yaml", "application/vnd.kubernetes.protobuf"};
constexpr std::string_view kPatchTypes[] = {"application/json-patch+json", "application/merge-patch+json",
                                            "application/strategic-merge-patch+json", "application/apply-patch+yaml"};

json::object parameter(const Parameter& one, std::string_view in, Dialect dialect) {
  json::object out{{"name", one.name}, {"in", in}, {"description", one.doc}};
  if (in == "path") out["required"] = true;
  if (dialect == Dialect::v2) out["type"] = one.type;
  else out["schema"] = json::object{{"type", one.type}};
  if (dialect == Dialect::v2) out["uniqueItems"] = true;
  return out;
}

json::array strings(std::span<const std::string_view> list) {
  json::array out;
  for (std::string_view one : list) out.emplace_back(one);
  return out;
}

struct Target {  // the object of an operation
  GroupVersion group_version;
  std::string_view kind;
  const Type* body;  // nullptr: no schema
};

class PathWriter {
 public:
  PathWriter(const KindInfo& kind, Dialect dialect) : kind_(kind), dialect_(dialect) {}

  json::object operation(const std::string& id, std::string_view method, std::string_view action, const Target& target,
                         const Type* answer) const {
    json::object out{{"operationId", id}, {"description", std::string(action) + " " + std::string(target.kind)}};
    json::array parameters;
    auto add = [&](std::span<const Parameter> list) {
      for (const Parameter& one : list) parameters.push_back(parameter(one, "query", dialect_));
    };
    bool writes = method == "post" || method == "put" || method == "patch";
    if (action == "list" || action == "deletecollection") add(kListParameters);
    if (writes) add(kWriteParameters);
    if (method == "patch") add({&kForceParameter, 1});
    if (method == "delete") add(kDeleteParameters);
    if (writes && target.body) add_body(out, parameters, method, *target.body);
    out["parameters"] = std::move(parameters);
    if (dialect_ == Dialect::v2) out["produces"] = strings(kMediaTypes);
    out["responses"] = responses(answer);
    out["x-kubernetes-action"] = action;
    out["x-kubernetes-group-version-kind"] =
        json::object{{"group", target.group_version.group}, {"kind", target.kind}, {"version", target.group_version.version}};
    return out;
  }

  json::array path_parameters(bool namespaced, bool named) const {
    json::array out;
    if (named) out.push_back(parameter({"name", "string", "Name of the object."}, "path", dialect_));
    if (namespaced) out.push_back(parameter({"namespace", "string", "Namespace of the object."}, "path", dialect_));
    return out;
  }

 private:
  json::object schema_of(const Type& type) const { return {{"$ref", openapi_reference(type.openapi_name(), dialect_)}}; }

  void add_body(json::object& operation, json::array& parameters, std::string_view method, const Type& body) const {
    bool patch = method == "patch";
    json::object schema = patch ? json::object{{"type", "object"}} : schema_of(body);
    std::span<const std::string_view> types = patch ? std::span<const std::string_view>(kPatchTypes) : kMediaTypes;
    if (dialect_ == Dialect::v2) {
      parameters.push_back(json::object{{"name", "body"}, {"in", "body"}, {"required", true}, {"schema", std::move(schema)}});
      operation["consumes"] = strings(types);
      return;
    }
    json::object content;
    for (std::string_view type : types) content[type] = json::object{{"schema", schema}};
    operation["requestBody"] = json::object{{"content", std::move(content)}, {"required", true}};
  }

  json::object responses(const Type* answer) const {
    json::object ok{{"description", "OK"}};
    if (answer && dialect_ == Dialect::v2) ok["schema"] = schema_of(*answer);
    if (answer && dialect_ == Dialect::v3) {
      json::object content;
      for (std::string_view type : kMediaTypes) content[type] = json::object{{"schema", schema_of(*answer)}};
      ok["content"] = std::move(content);
    }
    return {{"200", std::move(ok)}, {"401", json::object{{"description", "Unauthorized"}}}};
  }

  const KindInfo& kind_;
  Dialect dialect_;
};

std::string camel(std::string_view text) {
  std::string out;
  bool up = true;
  for (char c : text) {
    if (!std::isalnum(uint8_t(c))) up = true;
    else out += up ? char(std::toupper(uint8_t(c))) : c, up = false;
  }
  return out;
}

}  // namespace

void add_openapi_paths(const KindInfo& info, Dialect dialect, json::object& paths) {
  PathWriter writer(info, dialect);
  const Kind& kind = info.kind;
  const Package& package = info.type().package();
  std::string base = "/" + openapi_path(package);
  std::string scope = kind.namespaced ? "/namespaces/{namespace}/" : "/";
  std::string collection = base + scope + std::string(kind.resource);
  std::string group = camel(kind.group.empty() ? "core" : kind.group.substr(0, kind.group.find('.'))) + camel(kind.version);
  std::string id = group + (kind.namespaced ? "Namespaced" : "") + std::string(kind.kind);
  Target own{{kind.group, kind.version}, kind.kind, &info.type()};
  const Type* status = root_type("v1", "Status");

  auto put = [&](json::object& item, std::string_view method, std::string_view verb, std::string_view action,
                 const std::string& name, const Type* answer) {
    if (info.has_verb(verb)) item[method] = writer.operation(name, method, action, own, answer);
  };
  json::object many{{"parameters", writer.path_parameters(kind.namespaced, false)}};
  put(many, "get", "list", "list", "list" + id, info.list_type());
  put(many, "post", "create", "post", "create" + id, &info.type());
  put(many, "delete", "deletecollection", "deletecollection", "deleteCollection" + id, status);
  paths[collection] = std::move(many);
  if (kind.namespaced && info.has_verb("list")) {
    json::object all{{"parameters", json::array()}};
    put(all, "get", "list", "list", "list" + group + std::string(kind.kind) + "ForAllNamespaces", info.list_type());
    paths[base + "/" + std::string(kind.resource)] = std::move(all);
  }
  if (!info.has_verb("get")) return;
  json::object one{{"parameters", writer.path_parameters(kind.namespaced, true)}};
  put(one, "get", "get", "get", "read" + id, &info.type());
  put(one, "put", "update", "put", "replace" + id, &info.type());
  put(one, "patch", "patch", "patch", "patch" + id, &info.type());
  put(one, "delete", "delete", "delete", "delete" + id, status);
  paths[collection + "/{name}"] = std::move(one);

  for (const Subresource& sub : info.subresources()) {
    const Type* body = sub.type();
    Target target{{sub.group, sub.version}, sub.kind, body};
    json::object item{{"parameters", writer.path_parameters(kind.namespaced, true)}};
    for (auto [verb, method, word] : {std::tuple{"get", "get", "read"}, std::tuple{"update", "put", "replace"},
                                      std::tuple{"patch", "patch", "patch"}, std::tuple{"create", "post", "create"}}) {
      if (!sub.has_verb(verb)) continue;
      item[method] = writer.operation(word + id + camel(sub.name), method, method, target, body);
    }
    paths[collection + "/{name}/" + std::string(sub.name)] = std::move(item);
  }
}

}  // namespace coracle::schema
