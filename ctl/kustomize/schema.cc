// SPDX-License-Identifier: Apache-2.0
// See schema.h.
#include "ctl/kustomize/schema.h"

#include <algorithm>

#include "runtime/base/text.h"
#include "store/object/yaml.h"

namespace coracle::kustomize {
namespace {

// Lists that merge today and were not there, or did not merge, in Kubernetes 1.21.
constexpr std::string_view kNewerLists[] = {"schedulingGates", "resourceClaims",           "matchConditions",
                                            "variables",       "x-kubernetes-validations", "resourceClaimStatuses",
                                            "hostIPs",         "allocatedResourcesStatus"};

bool contains_word(std::string_view list, std::string_view word) {
  std::vector<std::string_view> words = split(list, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

Schema Schema::field(std::string_view name) const {
  if (json_) {
    const json::value* found = find_keys(*json_, {"properties", name});
    if (!found) found = find_keys(*json_, {"additionalProperties"});
    return found && found->is_object() ? file_->at(found) : Schema();
  }
  Schema out;
  if (field_ && field_->shape == schema::Shape::map) {
    if (field_->form == schema::Form::object) out.type_ = &field_->type();
    return out;
  }
  const schema::Field* found = type_ ? type_->field(name) : nullptr;
  if (!found) return out;
  out.owner_is_ephemeral_ = type_->name() == "EphemeralContainer";
  if (found->shape != schema::Shape::one) out.field_ = found;
  else if (found->form == schema::Form::object) out.type_ = &found->type();
  return out;
}

Schema Schema::elements() const {
  if (json_) {
    const json::value* items = find_keys(*json_, {"items"});
    return items ? file_->at(items) : Schema();
  }
  Schema out;
  if (field_ && field_->shape == schema::Shape::list && field_->form == schema::Form::object) out.type_ = &field_->type();
  return out;
}

bool Schema::merges() const {
  if (json_) {
    const json::value* strategy = find_keys(*json_, {"x-kubernetes-patch-strategy"});
    return strategy && strategy->is_string() && contains_word(strategy->get_string(), "merge");
  }
  if (!field_ || field_->shape != schema::Shape::list || !field_->merges) return false;
  if (owner_is_ephemeral_ && field_->name() == "ports") return false;
  return std::find(std::begin(kNewerLists), std::end(kNewerLists), field_->name()) == std::end(kNewerLists);
}

std::vector<std::string> Schema::keys() const {
  std::vector<std::string> out;
  if (json_) {
    if (const json::value* list = find_keys(*json_, {"x-kubernetes-list-map-keys"}); list && list->is_array()) {
      for (const auto& key : list->get_array())
        if (key.is_string()) out.emplace_back(key.get_string());
      return out;
    }
    const json::value* key = find_keys(*json_, {"x-kubernetes-patch-merge-key"});
    if (key && key->is_string()) out.emplace_back(key->get_string());
    return out;
  }
  if (!field_) return out;
  if (field_->list == schema::ListKind::map)
    for (std::string_view key : field_->list_keys()) out.emplace_back(key);
  if (out.empty() && !field_->merge_key().empty()) out.emplace_back(field_->merge_key());
  return out;
}

Result<std::shared_ptr<const OpenApi>> OpenApi::read(std::string_view text) {
  auto out = std::make_shared<OpenApi>();
  if (trim(text).starts_with('{')) {
    out->document_ = TRY(parse_json(text));
  } else {
    std::vector<json::value> documents = TRY(parse_yaml(text));
    if (!documents.empty()) out->document_ = std::move(documents[0]);
  }
  if (!get_object(out->document_, "definitions").size()) return Error(Code::invalid, "an OpenAPI document needs definitions");
  out->from_file_ = true;
  return std::shared_ptr<const OpenApi>(std::move(out));
}

Schema OpenApi::at(const json::value* value) const {
  for (int hops = 0; hops < 20; ++hops) {
    std::string_view reference = get_string(*value, "$ref");
    constexpr std::string_view kStart = "#/definitions/";
    if (!reference.starts_with(kStart)) break;
    value = find_keys(document_, {"definitions", reference.substr(kStart.size())});
    if (!value) return {};
  }
  Schema out;
  out.json_ = value;
  out.file_ = this;
  return out;
}

Schema OpenApi::of(const Gvk& gvk) const {
  if (from_file_) {
    for (const auto& member : get_object(document_, "definitions")) {
      const json::value* types = find_keys(member.value(), {"x-kubernetes-group-version-kind"});
      if (!types || !types->is_array()) continue;
      for (const auto& type : types->get_array())
        if (get_string(type, "group") == gvk.group && get_string(type, "version") == gvk.version &&
            get_string(type, "kind") == gvk.kind)
          return at(&member.value());
    }
    return {};
  }
  Schema out;
  if (!gvk.is_known()) return out;
  out.type_ = schema::root_type(gvk.api_version(), gvk.kind);
  if (!out.type_ && !gvk.group.empty()) out.type_ = schema::root_type(gvk.group + "/v1", gvk.kind);  // older versions
  return out;
}

}  // namespace coracle::kustomize
