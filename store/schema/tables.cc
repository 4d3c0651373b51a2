// SPDX-License-Identifier: Apache-2.0
// The compiled schema: includes the output of generate/ and gives Type, Field, Catalog and kind_families() access to it.
#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "runtime/base/text.h"
#include "store/schema/catalog.h"
#include "store/schema/kind_family.h"
#include "store/schema/listed.h"

namespace coracle::schema {
namespace {

struct KindRow {
  Kind kind;
  std::string_view list_kind, singular, short_names, categories, verbs, names;
  uint16_t type, list_type;
  uint16_t first_subresource, subresource_count;
  uint16_t first_column, column_count;
  uint16_t stored;
  KindTraits traits;
};

// A test brings tables with one kind more.
#ifndef CORACLE_SCHEMA_TABLES
#define CORACLE_SCHEMA_TABLES "store/schema/tables.inc"
#define CORACLE_SCHEMA_FAMILIES "store/schema/families.inc"
#endif
#include CORACLE_SCHEMA_TABLES

std::vector<std::string_view> parts(std::string_view list) {
  if (list.empty()) return {};
  return split(list, ',');
}

bool belongs_to_every_group(const Type& type) { return type.package().name() == "meta"; }

}  // namespace

#include CORACLE_SCHEMA_FAMILIES

// Only the server calls these: the linker drops the rules from other programs.
std::span<const KindFamily* const> kind_families() { return kKindFamilies; }

const KindRules& rules_of(const KindInfo& info) {
  using Key = std::tuple<std::string_view, std::string_view, std::string_view>;  // resource, group, version
  static const std::map<Key, const KindRules*> all = [] {
    std::map<Key, const KindRules*> rules;
    for (const KindFamily* family : kind_families())
      for (const KindRules& of_kind : family->kinds) {
        auto [group, version] = split_api_version(of_kind.api_version);
        rules.emplace(Key(of_kind.resource, group, version), &of_kind);
      }
    return rules;
  }();
  static constexpr KindRules none;
  auto found = all.find(Key(info.kind.resource, info.kind.group, info.kind.version));
  return found == all.end() ? none : *found->second;
}

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

bool Subresource::has_verb(std::string_view verb) const { return is_listed(verbs, verb); }

const Type* Subresource::type() const { return type_ < 0 ? nullptr : &kTypes[type_]; }

bool KindInfo::has_verb(std::string_view verb) const { return is_listed(verbs, verb); }

const KindInfo* KindInfo::version(std::string_view api_version) const {
  const KindInfo* other = this;
  do
    if (other->kind.api_version() == api_version) return other;
  while ((other = other->next_version_) != this);
  return nullptr;
}

const Subresource* KindInfo::subresource(std::string_view name) const {
  for (const Subresource& sub : subresources()) {
    if (sub.name == name) return &sub;
  }
  return nullptr;
}

CatalogPtr built_in_catalog() {
  static const auto built_in = std::make_shared<const Catalog>();
  return built_in;
}

const Catalog& catalog() {
  static const CatalogPtr built_in = built_in_catalog();
  return *built_in;
}

namespace {

auto resource_key(const Kind& kind) { return std::tie(kind.resource, kind.group, kind.version); }
auto kind_key(const Kind& kind) { return std::tie(kind.kind, kind.group, kind.version); }

// `all` is sorted by the key of each element's kind.
template <typename Key>
const KindInfo* find_sorted(const std::vector<const KindInfo*>& all, Key (*key)(const Kind&), const Kind& wanted) {
  auto found = std::ranges::lower_bound(all, key(wanted), {}, [key](const KindInfo* info) { return key(info->kind); });
  return found != all.end() && key((*found)->kind) == key(wanted) ? *found : nullptr;
}

}  // namespace

Catalog::Catalog(const Serves& serves) {
  kinds_.reserve(std::size(kKinds));
  for (const KindRow& row : kKinds)
    kinds_.push_back({.kind = row.kind,
                      .list_kind = row.list_kind,
                      .singular = row.singular,
                      .short_names = row.short_names,
                      .categories = row.categories,
                      .verbs = row.verbs,
                      .names = row.names,
                      .traits = row.traits,
                      .type_ = &kTypes[row.type],
                      .list_type_ = row.list_kind.empty() ? nullptr : &kTypes[row.list_type],
                      .stored_ = kinds_.data() + row.stored,
                      .next_version_ = kinds_.data() + kinds_.size(),
                      .subresources_ = {kSubresources + row.first_subresource, row.subresource_count},
                      .columns_ = {kColumns + row.first_column, row.column_count}});
  for (KindInfo& info : kinds_)
    if (!info.is_stored()) {
      KindInfo& stored = kinds_[size_t(info.stored_ - kinds_.data())];
      info.next_version_ = std::exchange(stored.next_version_, &info);
    }
  for (const KindInfo& info : kinds_)
    if (!serves || serves(info.kind)) ordered_.push_back(&info);
  by_resource_ = by_kind_ = ordered_;
  std::ranges::sort(by_resource_, {}, [](const KindInfo* info) { return resource_key(info->kind); });
  std::ranges::sort(by_kind_, {}, [](const KindInfo* info) { return kind_key(info->kind); });
}

std::span<const Type> all_types() { return kTypes; }
std::span<const Package> all_packages() { return kPackages; }

const KindInfo* Catalog::by_resource(std::string_view group, std::string_view version, std::string_view resource) const {
  return find_sorted(by_resource_, resource_key, {group, version, {}, resource});
}

const KindInfo* Catalog::by_kind(std::string_view api_version, std::string_view kind) const {
  auto [group, version] = split_api_version(api_version);
  return find_sorted(by_kind_, kind_key, {group, version, kind, {}});
}

const KindInfo* Catalog::by_name(std::string_view name) const {
  std::string lower = to_lower(name);
  std::string_view word = lower, rest;
  if (size_t dot = lower.find('.'); dot != lower.npos) {
    word = std::string_view(lower).substr(0, dot);
    rest = std::string_view(lower).substr(dot + 1);
  }
  const KindInfo* of_longer_group = nullptr;
  for (const KindInfo& info : kinds()) {
    bool named = info.kind.resource == word || info.singular == word || is_listed(info.short_names, word) ||
                 to_lower(info.kind.kind) == word;
    if (!named) continue;
    std::string versioned = std::string(info.kind.version) + "." + std::string(info.kind.group);
    if (rest.empty() || rest == info.kind.group || rest == versioned) return &info;
    if (!of_longer_group && info.kind.group.starts_with(rest)) of_longer_group = &info;
  }
  return of_longer_group;
}

std::vector<const KindInfo*> Catalog::by_category(std::string_view category) const {
  std::vector<const KindInfo*> found;
  for (const KindInfo& info : kinds()) {
    if (info.is_stored() && is_listed(info.categories, category)) found.push_back(&info);
  }
  return found;
}

const KindInfo& Catalog::of(const Kind& kind) const {
  const KindInfo* info = find(kind);
  if (!info) bug("Catalog::of", "no such kind", std::source_location::current());
  return *info;
}

const Type* root_type(std::string_view api_version, std::string_view kind) {
  for (const Type& type : kTypes) {
    if (!type.root || type.name() != kind) continue;
    if (type.api_version() == api_version || belongs_to_every_group(type)) return &type;
  }
  return nullptr;
}

const Type* type_named(std::string_view openapi_name) {
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
