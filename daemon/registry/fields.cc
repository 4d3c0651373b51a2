// SPDX-License-Identifier: Apache-2.0
// See fields.h: one table of what each kind can be selected by.
#include "daemon/registry/fields.h"

#include <algorithm>
#include <vector>

#include "runtime/base/text.h"
#include "store/object/object.h"
#include "store/object/selector.h"
#include "store/object/status.h"
#include "store/schema/catalog.h"

namespace coracle::registry {
namespace {

// A kind with selectable fields of its own. The others have metadata.name and metadata.namespace, and another refusal.
struct SelectableKind {
  std::string_view resource;             // with its group where another one has the same; that one goes first
  std::string_view refusal;              // with the field's name for %, quoted for "%"
  bool by_namespace;                     // metadata.namespace too
  std::vector<std::string_view> fields;  // path in the object; "name=path" where they differ
};

constexpr std::string_view kPlainRefusal = "field label not supported: %";

const std::vector<SelectableKind>& selectable_kinds() {
  static const std::vector<SelectableKind> table = {
      {"pods",
       kPlainRefusal,
       true,
       {"spec.nodeName", "spec.host=spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
        "spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName"}},
      {"nodes", kPlainRefusal, false, {"spec.unschedulable"}},
      {"events.events.k8s.io",
       kPlainRefusal,
       true,
       {"regarding.kind=involvedObject.kind", "regarding.namespace=involvedObject.namespace",
        "regarding.name=involvedObject.name", "regarding.uid=involvedObject.uid",
        "regarding.apiVersion=involvedObject.apiVersion", "regarding.resourceVersion=involvedObject.resourceVersion",
        "regarding.fieldPath=involvedObject.fieldPath", "reason", "reportingController=reportingComponent", "type"}},
      {"events",
       kPlainRefusal,
       true,
       {"involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
        "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason", "reportingComponent",
        "source=source.component", "type"}},
      {"secrets", kPlainRefusal, true, {"type"}},
      {"namespaces", kPlainRefusal, false, {"status.phase"}},
      {"services", kPlainRefusal, true, {"spec.clusterIP", "spec.type"}},
      {"replicasets", kPlainRefusal, true, {"status.replicas"}},
      {"replicationcontrollers", kPlainRefusal, true, {"status.replicas"}},
      {"jobs", "field label \"%\" not supported for batchv1.Job", true, {"status.successful=status.succeeded"}},
      {"certificatesigningrequests", kPlainRefusal, false, {"spec.signerName"}},
      {"resourceslices",
       "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: %",
       false,
       {"spec.nodeName", "spec.driver"}},
  };
  return table;
}

const SelectableKind* selectable_kind_of(const Kind& kind) {
  for (const SelectableKind& row : selectable_kinds())
    if (row.resource == kind.resource || row.resource == kind.qualified_resource()) return &row;
  return nullptr;
}

// The path that a field's name stands for; "" when the kind does not support it.
std::string_view path_of(const Kind& kind, std::string_view field) {
  const SelectableKind* row = selectable_kind_of(kind);
  if (field == "metadata.name" || (field == "metadata.namespace" && (!row || row->by_namespace))) return field;
  if (!row) return {};
  for (std::string_view entry : row->fields) {
    size_t equals = entry.find('=');
    if (entry.substr(0, equals) == field) return equals == std::string_view::npos ? entry : entry.substr(equals + 1);
  }
  return {};
}

Error unsupported_field(const Kind& kind, std::string_view field) {
  const SelectableKind* row = selectable_kind_of(kind);
  if (!row) return bad_request(quoted(field) + " is not a known field selector: only \"metadata.name\", \"metadata.namespace\"");
  std::string text(row->refusal);
  return bad_request(text.replace(text.find('%'), 1, field));
}

std::string text_of(const json::value* value) {
  if (!value || value->is_null()) return {};
  if (const json::string* text = value->if_string()) return {text->data(), text->size()};
  if (const json::array* list = value->if_array()) {  // status.podIPs: the first counts
    return list->empty() ? std::string() : std::string(get_string((*list)[0], "ip"));
  }
  return to_text(*value);
}

// `kind` is as it was asked for; objects are as they are stored, and so are the paths.
std::string look_up(const Kind& kind, const Object& object, std::string_view field) {
  if (field == "metadata.name") return object.name();
  if (field == "metadata.namespace") return object.ns();
  std::string_view path = path_of(kind, field);
  std::string text = text_of(find(object.json(), path));
  if (text.empty() && (field == "spec.unschedulable" || field == "spec.hostNetwork")) return "false";
  if (text.empty() && field == "status.successful") return "0";
  if (text.empty() && field == "source") return text_of(find(object.json(), "reportingComponent"));
  if (text.empty() && field == "status.replicas") return "0";
  return text;
}

}  // namespace

Result<Filter> make_filter(const Kind& kind, const std::string& labels, const std::string& fields) {
  LabelSelector by_label = TRY(LabelSelector::parse(labels));
  FieldSelector by_field = TRY(FieldSelector::parse(fields));
  for (const auto& term : by_field.terms())
    if (path_of(kind, term.field).empty()) return unsupported_field(kind, term.field);
  if (by_label.empty() && by_field.empty()) return Filter();
  return Filter([&kind = schema::catalog().of(kind).kind, by_label = std::move(by_label),
                 by_field = std::move(by_field)](const Object& object) {
    bool fits = by_field.empty() || by_field.matches([&](std::string_view field) { return look_up(kind, object, field); });
    return fits && (by_label.empty() || by_label.matches(object));
  });
}

std::string name_demanded(const std::string& fields) {
  auto selector = FieldSelector::parse(fields);
  if (!selector) return {};
  return std::string(selector->required("metadata.name").value_or(""));
}

}  // namespace coracle::registry
