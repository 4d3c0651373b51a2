// SPDX-License-Identifier: Apache-2.0
// Get, list, create, update, patch and delete for all kinds: parses the query, calls the registry, writes the response. Source:
// Kubernetes API concepts; apiserver endpoints/handlers.
#include <algorithm>
#include <optional>

#include "daemon/api/handlers.h"
#include "daemon/api/options.h"
#include "daemon/registry/scale.h"
#include "runtime/base/go_json.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/object.h"
#include "store/object/status.h"
#include "store/object/yaml.h"
#include "store/schema/decode.h"

namespace coracle::api {
namespace {

// ---- reads ----

Result<void> get(Call& call) {
  if (call.route.subresource.empty() && call.query().flag("export"))
    return bad_request("the export parameter, deprecated since v1.14, is no longer supported");
  std::string_view text = call.query().get("resourceVersion");
  auto revision = text.empty() ? std::optional<Revision>(0) : parse_revision(text);
  if (!revision) return storage_error("resourceVersion: " + invalid_revision(text).message);
  TRY(await_revision(call, *revision));
  if (call.route.subresource == "scale") {
    json::value scale = TRY(call.context.registry.scale(call.kind(), call.key()));
    return answer_scale(call, scale);
  }
  ObjectPtr object = TRY(call.context.registry.get(call.kind(), call.key()));
  answer_object(call, object);
  return {};
}

Result<registry::ListRequest> list_request(Call& call) {
  ListParameters list = TRY(read_list_parameters(call, false));
  registry::ListRequest request;
  request.options = std::move(list.options);
  bool any = list.revision.empty() || list.revision == "0", continued = !request.options.continue_token.empty();
  if (continued && !any) {
    TRY(registry::check_continue_token(call.kind(), request.options.continue_token));  // the token's fault is told first
    return bad_request("specifying resource version is not allowed when using continue");
  }
  if (any) return request;
  auto revision = parse_revision(list.revision);
  if (!revision) return bad_request("invalid resource version: resourceVersion: " + invalid_revision(list.revision).message);
  TRY(await_revision(call, *revision));
  bool exact = list.match == "Exact" || (list.match.empty() && request.options.limit > 0);
  if (exact) request.exactly = *revision;
  return request;
}

// A list at revision 0 is whole, whatever its limit, except for events, which Kubernetes does not cache. Source: apiserver
// storage/cacher, computeListLimit; kubernetes pkg/kubeapiserver, DefaultWatchCacheSizes.
bool ignores_limit(const Call& call) {
  if (call.info->stored().kind == kEvent) return false;
  return call.query().get("resourceVersion") == "0" && call.query().get("continue").empty();
}

Result<void> list(Call& call) {
  registry::ListRequest request = TRY(list_request(call));
  if (ignores_limit(call)) request.options.limit = 0;
  engine::RestingPage page = TRY(call.context.registry.list_at_rest(call.kind(), request));
  answer_list(call, page);
  return {};
}

// ---- writes ----

Result<void> create(Call& call) {
  registry::Writer writer = TRY(read_writer(call, "CreateOptions"));
  if (!call.route.subresource.empty()) {
    const schema::Subresource* sub = call.info->subresource(call.route.subresource);
    const schema::Type* type = sub->type();
    json::value body = TRY(read_value(call, type, &writer.duplicates));
    json::value answer =
        TRY(call.context.registry.create_subresource(call.kind(), call.key(), call.route.subresource, std::move(body), writer));
    return answer_value(call, answer, 201), Result<void>();
  }
  bool placed = !call.kind().namespaced || !call.route.ns.empty();
  if (!placed || !call.route.name.empty())
    return Error(Code::method_not_allowed, "the server does not allow this method on the requested resource");
  json::value body = TRY(read_value(call, &call.info->type(), &writer.duplicates));
  if (call.kind().resource == "bindings") {  // the older form of a binding: the body names the pod
    std::string pod(metadata_of(body).name());
    json::value answer =
        TRY(call.context.registry.create_subresource(kPod, {call.route.ns, pod}, "binding", std::move(body), writer));
    return answer_value(call, answer, 201), Result<void>();
  }
  registry::Written written = TRY(call.context.registry.create(call.kind(), {call.route.ns, ""}, std::move(body), writer));
  answer_object(call, written.object, 201);
  return {};
}

Result<void> answer_written(Call& call, const registry::Written& written) {
  if (call.route.subresource == "scale") return answer_scale(call, registry::scale_of(*written.object));
  answer_object(call, written.object, written.created ? 201 : 200);
  return {};
}

Result<void> update(Call& call) {
  registry::Writer writer = TRY(read_writer(call, "UpdateOptions"));
  const schema::Type* type = &call.info->type();
  if (call.route.subresource == "scale") type = schema::root_type("autoscaling/v1", "Scale");
  json::value body = TRY(read_value(call, type, &writer.duplicates));
  registry::Written written =
      TRY(call.context.registry.update(call.kind(), call.key(), call.route.subresource, std::move(body), writer));
  return answer_written(call, written);
}

Result<PatchType> patch_type(std::string_view content_type) {
  static constexpr std::pair<std::string_view, PatchType> kTypes[] = {
      {"application/json-patch+json", PatchType::json},
      {"application/merge-patch+json", PatchType::merge},
      {"application/strategic-merge-patch+json", PatchType::strategic},
      {"application/apply-patch+yaml", PatchType::apply}};
  std::string_view given = trim(content_type.substr(0, content_type.find(';')));
  for (const auto& [name, type] : kTypes)
    if (equals_ignore_case(given, name)) return type;
  return Error(Code::unsupported,
               "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, "
               "application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml");
}

// Adds members of the operations of a JSON patch that are none to the warnings, in the order of the text; one that is repeated is
// only unknown. Source: endpoints/handlers/patch.go, applyJSPatch.
void note_unknown_members(registry::Duplicates& duplicates, const json::value& patch) {
  std::vector<JsonPlace> places;
  std::vector<std::string> unknown;
  const json::array* operations = patch.if_array();
  for (uint32_t i = 0; operations && i < operations->size(); i++) {
    if (!(*operations)[i].is_object()) continue;
    uint32_t at = 0;
    for (const auto& member : (*operations)[i].get_object()) {
      std::string_view name = member.key();
      uint32_t position = at++;
      bool known = name == "op" || name == "path" || name == "from" || name == "value";
      if (known || unknown.size() >= schema::kFieldWarningsMax) continue;
      std::string path = shortened_path("[" + std::to_string(i) + "]." + std::string(name));
      unknown.push_back("unknown field " + quoted(path));
      places.push_back({i, position});
    }
  }
  std::vector<std::pair<JsonPlace, std::string>> found;
  for (size_t i = 0; i < duplicates.warnings.size(); i++)
    if (!schema::is_of_unknown(duplicates.warnings[i], unknown))
      found.emplace_back(std::move(duplicates.places[i]), std::move(duplicates.warnings[i]));
  for (size_t i = 0; i < unknown.size(); i++) found.emplace_back(std::move(places[i]), std::move(unknown[i]));
  std::ranges::stable_sort(found, {}, &std::pair<JsonPlace, std::string>::first);
  if (found.size() > schema::kFieldWarningsMax) found.resize(schema::kFieldWarningsMax);
  duplicates.warnings.clear(), duplicates.places.clear();
  for (auto& [place, warning] : found) {
    duplicates.warnings.push_back("json patch " + warning);
    duplicates.places.push_back(std::move(place));
  }
}

Result<json::value> read_patch(Call& call, PatchType type, registry::Duplicates& duplicates) {
  std::string body = TRY(read_text(call));
  std::vector<DuplicateKey> keys;
  // Strategic and apply patches go through Go's interface{} in Kubernetes, where 1e3 is the integer 1000. Elsewhere JSON is
  // decoded at once, and an integer field refuses 1e3. Source: apimachinery pkg/runtime/converter.go; sigs.k8s.io/yaml.
  if (type != PatchType::apply) {
    json::value patch = TRY(parse_json_as_go(body, kBodyBytesMax, &keys, arena_for(body)));
    duplicates.form = registry::Duplicates::Form::patch;
    note_duplicates(duplicates, std::move(keys));
    if (type == PatchType::json) note_unknown_members(duplicates, patch);
    if (type == PatchType::strategic) store_whole_numbers_as_integers(patch);
    return patch;
  }
  if (trim(without_byte_order_mark(body)).starts_with("{")) {
    auto value = parse_json(body, &keys, body_memory(body));  // it may become an object
    if (value) {
      note_duplicates_in_yaml(duplicates, body, std::move(keys));
      store_whole_numbers_as_integers(*value);
      return value;
    }
  }
  std::vector<std::string> paths;
  auto documents = parse_yaml(body, nullptr, &paths);
  note_duplicates_in_yaml(duplicates, body, !paths.empty());
  if (!documents) return bad_request("error decoding YAML: " + documents.error().text());
  if (documents->size() != 1) return bad_request("an apply patch must be one YAML document");
  return std::move(documents->front());
}

Result<void> patch(Call& call) {
  PatchType type = TRY(patch_type(call.head().headers.get("Content-Type")));
  bool applies = type == PatchType::apply, force = call.query().flag("force");
  std::vector<Cause> causes;
  if (call.query().has("force") && !applies)
    causes.push_back(forbidden_field("force", "may not be specified for non-apply patch"));
  if (applies && call.query().get("fieldManager").empty())
    causes.push_back(required("fieldManager", "is required for apply patch"));
  registry::Writer writer = TRY(read_writer(call, "PatchOptions", std::move(causes)));
  json::value patch = TRY(read_patch(call, type, writer.duplicates));
  if (call.audit) auth::record_patch(*call.audit, patch);
  if (type == PatchType::json ? !patch.is_array() : !patch.is_object())
    return bad_request(type == PatchType::json ? "a JSON patch must be an array of operations" : "the patch must be an object");
  registry::Written written =
      TRY(call.context.registry.patch(call.kind(), call.key(), call.route.subresource, type, patch, force, writer));
  return answer_written(call, written);
}

// ---- deletions ----

registry::Writer deleter(Call& call, const DeleteParameters& parameters) {
  registry::Writer writer;
  writer.user = call.user.get();
  writer.warnings = &call.warnings;
  writer.dry_run = parameters.dry_run;
  return writer;
}

Result<void> remove(Call& call) {
  DeleteParameters parameters = TRY(read_delete_parameters(call));
  registry::Removed removed =
      TRY(call.context.registry.remove(call.kind(), call.key(), parameters.options, deleter(call, parameters)));
  bool shows_object = !removed.gone || call.info->traits.returns_deleted;
  if (shows_object) answer_object(call, removed.object, !removed.gone && parameters.accepts_later ? 202 : 200);
  else answer_value(call, success_status(&call.kind(), removed.object->name(), removed.object->uid()));
  return {};
}

Result<void> remove_all(Call& call) {
  registry::ListRequest which = TRY(list_request(call));  // with its limit in all cases: nobody deletes more than was said
  DeleteParameters parameters = TRY(read_delete_parameters(call));
  engine::RestingPage page =
      TRY(call.context.registry.remove_all(call.kind(), which, parameters.options, deleter(call, parameters)));
  answer_list(call, page);
  return {};
}

}  // namespace

void serve_resource(Call& call) {
  auto readable = negotiate(call.head(), Offer::object);  // checked before anything is written
  if (!readable) return answer_error(call, readable.error());
  std::string verb = call.route.verb(call.head());
  if (verb == "get") return answer_with(call, get(call));
  if (verb == "list") return answer_with(call, list(call));
  if (verb == "create") return answer_with(call, create(call));
  if (verb == "update") return answer_with(call, update(call));
  if (verb == "patch") return answer_with(call, patch(call));
  if (verb == "delete") return answer_with(call, remove(call));
  answer_with(call, remove_all(call));
}

}  // namespace coracle::api
