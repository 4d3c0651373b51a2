// SPDX-License-Identifier: Apache-2.0
// The compiled schema: includes what generate/ wrote and gives Type, Field and Catalog access to it.
#include <algorithm>

#include "runtime/base/text.h"
#include "store/schema/catalog.h"
#include "store/schema/listed.h"

namespace coracle::schema {
namespace {

#ifndef CORACLE_SCHEMA_TABLES
#define CORACLE_SCHEMA_TABLES "store/schema/tables.inc"  // a test brings tables with one kind more
#endif
#include CORACLE_SCHEMA_TABLES

std::vector<std::string_view> parts(std::string_view list) {
  if (list.empty()) return {};
  return split(list, ',');
}

bool belongs_to_every_group(const Type& type) { return type.package().name() == "meta"; }

}  // namespace

std::string_view Text::view() const { return {kPool + at, size}; }

std::vector<std::string_view> Field::values() const { return parts(values_.view()); }
std::vector<std::string_view> Field::list_keys() const { return parts(list_keys_.view()); }
const Type& Field::type() const { return kTypes[type_]; }

const Package& Type::package() const { return kPackages[package_]; }
std::string Type::openapi_name() const { return std::string(package().openapi()) + "." + std::string(name()); }
std::span<const Field> Type::fields() const { return {kFields + first_field, field_count}; }
uint16_t Type::index() const { return uint16_t(this - kTypes); }

const Field* Type::field(std::string_view json_name) const { return field_after(nullptr, json_name); }

const Field* Type::field_after(const Field* last, std::string_view json_name) const {
  const Field *first = fields().data(), *end = first + field_count, *begin = last ? last + 1 : first;
  auto is_named = [json_name](const Field& field) { return field.name() == json_name; };
  const Field* found = std::find_if(begin, end, is_named);
  if (found != end) return found;
  found = std::find_if(first, begin, is_named);
  return found == begin ? nullptr : found;
}

const Field* Type::alternative(const json::value& value) const {
  for (const Field& field : fields()) {
    bool fits = field.shape == Shape::list    ? value.is_array()
                : field.form == Form::object  ? value.is_object()
                : field.form == Form::boolean ? value.is_bool()
                                              : value.is_string();
    if (fits) return &field;
  }
  return nullptr;
}

std::span<const Selectable> KindFacts::selectable() const { return {kSelectable + first_selectable, selectable_count}; }

bool Subresource::has_verb(std::string_view verb) const { return is_listed(verbs, verb); }

const Type* Subresource::type() const { return type_ < 0 ? nullptr : &kTypes[type_]; }

const Type& KindInfo::type() const { return kTypes[type_]; }
const Type* KindInfo::list_type() const { return list_kind.empty() ? nullptr : &kTypes[list_type_]; }
const KindInfo& KindInfo::stored() const { return kKinds[stored_]; }
bool KindInfo::has_verb(std::string_view verb) const { return is_listed(verbs, verb); }
std::span<const Column> KindInfo::columns() const {
  if (!is_stored()) return stored().columns();
  return {kColumns + first_column, column_count};
}
const KindInfo* KindInfo::version(std::string_view api_version) const {
  for (const KindInfo& other : kKinds)
    if (&other.stored() == &stored() && other.kind.api_version() == api_version) return &other;
  return nullptr;
}

std::span<const Subresource> KindInfo::subresources() const { return {kSubresources + first_subresource, subresource_count}; }

const Subresource* KindInfo::subresource(std::string_view name) const {
  for (const Subresource& sub : subresources()) {
    if (sub.name == name) return &sub;
  }
  return nullptr;
}

const Catalog& catalog() {
  static constexpr Catalog instance;
  return instance;
}

std::span<const KindInfo> Catalog::kinds() const { return kKinds; }
std::span<const Type> Catalog::types() const { return kTypes; }
std::span<const Package> Catalog::packages() const { return kPackages; }

const KindInfo* Catalog::by_resource(std::string_view group, std::string_view version, std::string_view resource) const {
  for (const KindInfo& info : kKinds) {
    if (info.kind.resource == resource && info.kind.group == group && info.kind.version == version) return &info;
  }
  return nullptr;
}

const KindInfo* Catalog::by_kind(std::string_view api_version, std::string_view kind) const {
  auto [group, version] = split_api_version(api_version);
  for (const KindInfo& info : kKinds) {
    if (info.kind.kind == kind && info.kind.group == group && info.kind.version == version) return &info;
  }
  return nullptr;
}

const KindInfo* Catalog::by_name(std::string_view name) const {
  std::string lower = to_lower(name);
  std::string_view word = lower, rest;
  if (size_t dot = lower.find('.'); dot != lower.npos) {
    word = std::string_view(lower).substr(0, dot);
    rest = std::string_view(lower).substr(dot + 1);
  }
  for (const KindInfo& info : kKinds) {
    bool named = info.kind.resource == word || info.singular == word || is_listed(info.short_names, word) ||
                 to_lower(info.kind.kind) == word;
    if (!named) continue;
    std::string versioned = std::string(info.kind.version) + "." + std::string(info.kind.group);
    if (rest.empty() || rest == info.kind.group || rest == versioned) return &info;
  }
  return nullptr;
}

std::vector<const KindInfo*> Catalog::by_category(std::string_view category) const {
  std::vector<const KindInfo*> found;
  for (const KindInfo& info : kKinds) {
    if (info.is_stored() && is_listed(info.categories, category)) found.push_back(&info);
  }
  return found;
}

const KindInfo& Catalog::of(const Kind& kind) const {
  const KindInfo* info = by_resource(kind.group, kind.version, kind.resource);
  if (!info) bug("Catalog::of", "no such kind", std::source_location::current());
  return *info;
}

const Type* Catalog::root(std::string_view api_version, std::string_view kind) const {
  for (const Type& type : kTypes) {
    if (!type.root || type.name() != kind) continue;
    if (type.api_version() == api_version || belongs_to_every_group(type)) return &type;
  }
  return nullptr;
}

const Type* Catalog::type(std::string_view openapi_name) const {
  for (const Type& type : kTypes) {
    std::string_view prefix = type.package().openapi();
    if (openapi_name.size() == prefix.size() + 1 + type.name().size() && openapi_name.starts_with(prefix) &&
        openapi_name[prefix.size()] == '.' && openapi_name.ends_with(type.name())) {
      return &type;
    }
  }
  return nullptr;
}

GroupVersion split_api_version(std::string_view api_version) {
  size_t slash = api_version.find('/');
  if (slash == api_version.npos) return {"", api_version};
  return {api_version.substr(0, slash), api_version.substr(slash + 1)};
}

}  // namespace coracle::schema
