// SPDX-License-Identifier: Apache-2.0
// Get, list, create, update, patch and delete, for every kind alike: query parameters in, registry, answer out.
// Source: Kubernetes API concepts; apiserver endpoints/handlers.
#include <optional>

#include "daemon/api/handlers.h"
#include "daemon/registry/scale.h"
#include "runtime/base/text.h"
#include "store/object/status.h"
#include "store/object/yaml.h"
#include "store/schema/decode.h"

namespace coracle::api {
namespace {

constexpr size_t kManagerBytesMax = 128;

Error invalid_options(std::string_view options, std::vector<Cause> causes) {
  return invalid({"meta.k8s.io", "v1", options, {}}, "", std::move(causes));
}

// ---- reading ----

Result<std::optional<Revision>> revision_parameter(const Call& call) {
  std::string_view text = call.query().get("resourceVersion");
  if (text.empty()) return std::nullopt;
  auto revision = parse_number<Revision>(text);
  if (!revision) return invalid_options("ListOptions", {invalid_value("resourceVersion", quoted(text), "must be a number")});
  return revision;
}

Result<void> not_from_the_future(const Call& call, Revision wanted) {
  Revision current = call.house.registry.engine().revision();
  if (wanted <= current) return {};
  ErrorDetails details;
  details.retry_after_seconds = 1;
  details.causes.push_back({"ResourceVersionTooLarge", "Too large resource version", ""});
  return Error(Code::timeout, "Timeout: Too large resource version: " + std::to_string(wanted) + ", current: " + std::to_string(current))
      .with(std::move(details));
}

Result<void> get(Call& call) {
  auto revision = TRY(revision_parameter(call));
  TRY(not_from_the_future(call, revision.value_or(0)));
  ObjectPtr object = TRY(call.house.registry.get(call.kind(), call.key()));
  if (call.route.subresource == "scale") return answer_value(call, registry::scale_of(*object)), Result<void>();
  answer_object(call, object);
  return {};
}

Result<registry::ListRequest> list_request(Call& call) {
  registry::ListRequest request;
  request.options = TRY(list_options(call));
  auto revision = TRY(revision_parameter(call));
  std::string_view match = call.query().get("resourceVersionMatch");
  bool continued = !request.options.continue_token.empty();
  if (call.query().flag("sendInitialEvents"))
    return invalid_options("ListOptions", {forbidden_field("sendInitialEvents", "sendInitialEvents is forbidden for list")});
  if (!match.empty() && match != "Exact" && match != "NotOlderThan")
    return invalid_options("ListOptions", {not_supported("resourceVersionMatch", quoted(match), {"Exact", "NotOlderThan", ""})});
  if (!match.empty() && continued)
    return invalid_options("ListOptions", {forbidden_field("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided")});
  if (!match.empty() && !revision)
    return invalid_options("ListOptions", {forbidden_field("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided")});
  if (match == "Exact" && *revision == 0)
    return invalid_options("ListOptions", {forbidden_field("resourceVersionMatch", "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"")});
  if (continued && revision.value_or(0) != 0)
    return bad_request("specifying resource version is not allowed when using continue");
  bool exact = match == "Exact" || (match.empty() && request.options.limit > 0 && revision.value_or(0) != 0);
  TRY(not_from_the_future(call, revision.value_or(0)));
  if (exact) request.exactly = *revision;
  return request;
}

Result<void> list(Call& call) {
  registry::ListRequest request = TRY(list_request(call));
  engine::ListPage page = TRY(call.house.registry.list(call.kind(), request));
  answer_list(call, page);
  return {};
}

// ---- writing ----

std::string default_manager(const Head& head) {
  std::string_view agent = head.headers.get("User-Agent");
  std::string_view name = agent.substr(0, std::min(agent.find('/'), kManagerBytesMax));
  return name.empty() ? "unknown" : std::string(name);
}

Result<registry::Writer> read_writer(Call& call, std::string_view options) {
  registry::Writer writer;
  writer.warnings = &call.warnings;
  for (std::string_view value : call.query().all("dryRun")) {
    if (value != "All") return invalid_options(options, {not_supported("dryRun", quoted(value), {"All"})});
    writer.dry_run = true;
  }
  std::string_view validation = call.query().get("fieldValidation");
  if (validation.empty() || validation == "Warn") writer.validation = registry::FieldValidation::warn;
  else if (validation == "Strict") writer.validation = registry::FieldValidation::strict;
  else if (validation != "Ignore")
    return invalid_options(options, {not_supported("fieldValidation", quoted(validation), {"", "Ignore", "Strict", "Warn"})});
  writer.field_manager = call.query().get("fieldManager");
  if (writer.field_manager.size() > kManagerBytesMax) return invalid_options(options, {too_long("fieldManager", kManagerBytesMax)});
  if (writer.field_manager.empty()) writer.field_manager = default_manager(call.head());
  return writer;
}

Result<void> create(Call& call) {
  registry::Writer writer = TRY(read_writer(call, "CreateOptions"));
  if (!call.route.subresource.empty()) {
    const schema::Subresource* sub = call.info->subresource(call.route.subresource);
    const schema::Type* type = sub->type < 0 ? nullptr : &schema::catalog().types()[size_t(sub->type)];
    json::value body = TRY(read_value(call, type));
    json::value answer = TRY(call.house.registry.act(call.kind(), call.key(), call.route.subresource, std::move(body), writer));
    return answer_value(call, answer, 201), Result<void>();
  }
  bool placed = !call.kind().namespaced || !call.route.ns.empty();
  if (!placed || !call.route.name.empty())
    return Error(Code::method_not_allowed, "the server does not allow this method on the requested resource");
  json::value body = TRY(read_value(call, &call.info->type(), &writer.duplicates));
  registry::Written written = TRY(call.house.registry.create(call.kind(), {call.route.ns, ""}, std::move(body), writer));
  answer_object(call, written.object, 201);
  return {};
}

void answer_written(Call& call, const registry::Written& written) {
  if (call.route.subresource == "scale") return answer_value(call, registry::scale_of(*written.object));
  answer_object(call, written.object, written.created ? 201 : 200);
}

Result<void> update(Call& call) {
  registry::Writer writer = TRY(read_writer(call, "UpdateOptions"));
  const schema::Type* type = &call.info->type();
  if (call.route.subresource == "scale") type = schema::catalog().root("autoscaling/v1", "Scale");
  json::value body = TRY(read_value(call, type, &writer.duplicates));
  registry::Written written = TRY(call.house.registry.update(call.kind(), call.key(), call.route.subresource, std::move(body), writer));
  answer_written(call, written);
  return {};
}

Result<PatchType> patch_type(std::string_view content_type) {
  std::string type = to_lower(trim(content_type.substr(0, content_type.find(';'))));
  if (type == "application/json-patch+json") return PatchType::json;
  if (type == "application/merge-patch+json") return PatchType::merge;
  if (type == "application/strategic-merge-patch+json") return PatchType::strategic;
  if (type == "application/apply-patch+yaml") return PatchType::apply;
  return Error(Code::unsupported,
               "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, "
               "application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml");
}

Result<json::value> read_patch(Call& call, PatchType type, std::vector<std::string>* duplicates) {
  std::string body = TRY(call.exchange.read_body());
  if (type != PatchType::apply || trim(body).starts_with("{")) return parse_json(body, duplicates);
  auto documents = TRY(parse_yaml(body));
  if (documents.size() != 1) return bad_request("an apply patch must be one YAML document");
  return std::move(documents.front());
}

Result<void> patch(Call& call) {
  PatchType type = TRY(patch_type(call.head().headers.get("Content-Type")));
  registry::Writer writer = TRY(read_writer(call, "PatchOptions"));
  bool applies = type == PatchType::apply, force = call.query().flag("force");
  if (call.query().has("force") && !applies)
    return invalid_options("PatchOptions", {forbidden_field("force", "may not be specified for non-apply patch")});
  if (applies && call.query().get("fieldManager").empty())
    return invalid_options("PatchOptions", {required("fieldManager", "is required for apply patch")});
  json::value patch = TRY(read_patch(call, type, &writer.duplicates));
  if (type == PatchType::json ? !patch.is_array() : !patch.is_object())
    return bad_request(type == PatchType::json ? "a JSON patch must be an array of operations" : "the patch must be an object");
  registry::Written written =
      TRY(call.house.registry.patch(call.kind(), call.key(), call.route.subresource, type, patch, force, writer));
  answer_written(call, written);
  return {};
}

// ---- deleting ----

Result<json::value> read_delete_body(Call& call) {
  if (!call.head().has_body()) return json::value(json::object());
  auto body = read_value(call, schema::catalog().root("v1", "DeleteOptions"));
  if (body) return body;
  bool empty = body.error().code() == Code::bad_request && body.error().text() == "the request body is empty";
  return empty ? Result<json::value>(json::value(json::object())) : Result<json::value>(body.take_error());
}

Result<DeleteOptions> delete_options(Call& call, bool& dry_run) {
  json::value body = TRY(read_delete_body(call));
  DeleteOptions options;
  if (!body.is_object()) return bad_request("DeleteOptions must be an object");
  std::string_view grace = call.query().get("gracePeriodSeconds");
  if (const json::value* seconds = find(body, "gracePeriodSeconds"); seconds && !seconds->is_null()) {
    options.grace_period_seconds = get_int(body, "gracePeriodSeconds");
  } else if (!grace.empty()) {
    options.grace_period_seconds = parse_number<int64_t>(grace);
    if (!options.grace_period_seconds)
      return invalid_options("DeleteOptions", {invalid_value("gracePeriodSeconds", quoted(grace), "must be a number")});
  }
  options.propagation = get_string(body, "propagationPolicy");
  if (options.propagation.empty()) options.propagation = call.query().get("propagationPolicy");
  const json::value* orphan = find(body, "orphanDependents");
  bool orphan_said = (orphan && orphan->is_bool()) || call.query().has("orphanDependents");
  if (orphan_said && !options.propagation.empty())
    return invalid_options("DeleteOptions", {invalid_value("propagationPolicy", coracle::quoted(options.propagation), "orphanDependents and deletionPropagation cannot be both set")});
  if (orphan_said) options.propagation = (orphan ? orphan->is_bool() && orphan->get_bool() : call.query().flag("orphanDependents")) ? "Orphan" : "Background";
  options.uid = get_string(body, "preconditions.uid");
  if (std::string_view revision = get_string(body, "preconditions.resourceVersion"); !revision.empty())
    options.revision = parse_number<Revision>(revision).value_or(Revision(-1));
  for (const json::value& value : get_array(body, "dryRun")) {
    if (value != "All") return invalid_options("DeleteOptions", {not_supported("dryRun", to_text(value), {"All"})});
    dry_run = true;
  }
  return options;
}

Result<void> remove(Call& call) {
  registry::Writer writer = TRY(read_writer(call, "DeleteOptions"));
  DeleteOptions options = TRY(delete_options(call, writer.dry_run));
  registry::Removed removed = TRY(call.house.registry.remove(call.kind(), call.key(), options, writer));
  bool shows_object = !removed.gone || call.kind() == kPod;
  if (shows_object) answer_object(call, removed.object);
  else answer_value(call, success_status(&call.kind(), removed.object->name(), removed.object->uid()));
  return {};
}

Result<void> remove_all(Call& call) {
  registry::Writer writer = TRY(read_writer(call, "DeleteOptions"));
  ListOptions which = TRY(list_options(call));
  DeleteOptions options = TRY(delete_options(call, writer.dry_run));
  auto removed = TRY(call.house.registry.remove_all(call.kind(), which, options, writer));
  engine::ListPage page;
  page.items = std::move(removed);
  page.revision = call.house.registry.engine().revision();
  answer_list(call, page);
  return {};
}

}  // namespace

Result<ListOptions> list_options(const Call& call) {
  ListOptions options;
  options.ns = call.route.ns;
  options.label_selector = call.query().get("labelSelector");
  options.field_selector = call.query().get("fieldSelector");
  options.continue_token = call.query().get("continue");
  if (std::string_view limit = call.query().get("limit"); !limit.empty()) {
    auto count = parse_number<int64_t>(limit);
    if (!count || *count < 0) return invalid_options("ListOptions", {invalid_value("limit", quoted(limit), "must be a number, not negative")});
    options.limit = *count;
  }
  return options;
}

void serve_resource(Call& call) {
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
