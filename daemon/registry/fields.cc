// SPDX-License-Identifier: Apache-2.0
// See fields.h. The selectable fields of each kind are in the schema text.
#include "daemon/registry/fields.h"

#include "runtime/base/text.h"
#include "store/object/object.h"
#include "store/object/selector.h"
#include "store/object/status.h"
#include "store/schema/catalog.h"
#include "store/schema/views.h"

namespace coracle::registry {
namespace {

// For fields other than metadata. Null: the kind does not support the field.
const schema::Selectable* selectable_of(const schema::KindInfo& info, std::string_view name) {
  for (const schema::Selectable& field : info.traits.selectable)
    if (field.name == name) return &field;
  return nullptr;
}

// A kind without selectable fields of its own supports metadata.namespace, even if it is cluster-scoped.
bool is_supported(const schema::KindInfo& info, std::string_view name) {
  if (name == "metadata.name") return true;
  if (name == "metadata.namespace") return info.kind.namespaced || info.traits.selectable.empty();
  return selectable_of(info, name);
}

Error unsupported_field(const schema::KindInfo& info, std::string_view name) {
  if (info.traits.selectable.empty())
    return bad_request(quoted(name) + " is not a known field selector: only \"metadata.name\", \"metadata.namespace\"");
  std::string_view own = info.traits.selectable_refusal;
  std::string text(own.empty() ? "field label not supported: %" : own);
  return bad_request(text.replace(text.find('%'), 1, name));
}

std::string text_of(const json::value* value) {
  if (!value || value->is_null()) return {};
  if (const json::string* text = value->if_string()) return {text->data(), text->size()};
  if (const json::array* list = value->if_array()) {  // status.podIPs: the first one counts
    return list->empty() ? std::string() : std::string(view::PodIP((*list)[0]).ip());
  }
  return to_text(*value);
}

// `info` is the requested version; the object and the paths are of the stored version.
std::string look_up(const schema::KindInfo& info, const Object& object, std::string_view name) {
  if (name == "metadata.name") return object.name();
  if (name == "metadata.namespace") return object.ns();
  const schema::Selectable* field = selectable_of(info, name);
  std::string text = text_of(find(object.json(), field->path));
  if (text.empty() && !field->other_path.empty()) text = text_of(find(object.json(), field->other_path));
  return text.empty() ? std::string(field->otherwise) : text;
}

}  // namespace

Result<Filter> make_filter(const schema::KindPtr& kind, const std::string& labels, const std::string& fields) {
  LabelSelector by_label = TRY(LabelSelector::parse(labels));
  FieldSelector by_field = TRY(FieldSelector::parse(fields));
  for (const auto& term : by_field.terms())
    if (!is_supported(*kind, term.field)) return unsupported_field(*kind, term.field);
  if (by_label.empty() && by_field.empty()) return Filter();
  return Filter([kind, by_label = std::move(by_label), by_field = std::move(by_field)](const Object& object) {
    bool fits = by_field.empty() || by_field.matches([&](std::string_view field) { return look_up(*kind, object, field); });
    return fits && (by_label.empty() || by_label.matches(object));
  });
}

std::string name_demanded(const std::string& fields) {
  auto selector = FieldSelector::parse(fields);
  if (!selector) return {};
  return std::string(selector->required("metadata.name").value_or(""));
}

}  // namespace coracle::registry
