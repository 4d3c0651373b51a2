// SPDX-License-Identifier: Apache-2.0
// See validate.h. One walk over value and type: the checks of the tables, then the type's rule, then the children. Status, which
// the server writes, and the object's metadata, which has its own check, are skipped.
#include "store/schema/validate.h"

#include <algorithm>
#include <set>
#include <utility>

#include "store/object/patch.h"
#include "store/schema/kind_family.h"
#include "store/schema/listed.h"

namespace coracle::schema {
namespace {

using ValidationRules = std::vector<const NamedValidationRule*>;  // by index of the type; nullptr: none

ValidationRules collect_validation_rules() {
  ValidationRules rules(all_types().size(), nullptr);
  for_each_rule(&KindFamily::validation,
                [&](const NamedValidationRule& named) { rules[type_named(named.type)->index()] = &named; });
  return rules;
}

const ValidationRules& validation_rules() {
  static const ValidationRules collected = collect_validation_rules();
  return collected;
}

bool is_missing(const Field& field, const json::value* value) {
  if (!value || value->is_null()) {
    bool number =
        field.shape == Shape::one && (field.form == Form::int32 || field.form == Form::int64 || field.form == Form::boolean);
    return !number;
  }
  if (field.may_be_empty) return false;
  if (const json::string* text = value->if_string()) return text->empty();
  if (const json::array* list = value->if_array()) return list->empty();
  return false;
}

void check_value(const Field& field, const json::value& value, const std::string& path, Findings& out) {
  if (!field.closed || field.ruled || !value.is_string() || value.get_string().empty()) return;
  std::vector<std::string_view> known = field.values();
  std::string_view text = value.get_string();
  if (std::find(known.begin(), known.end(), text) == known.end()) out.not_supported(path, text, {known.begin(), known.end()});
}

// A part of an earlier state of the object, which may be absent. What is equal in it has the causes that it had. Each comparison
// reads all that is below, and a type may contain itself: further down, everything is looked at instead.
class Before {
 public:
  Before() = default;
  explicit Before(const json::value& whole) : value_(&whole) {}
  Before member(std::string_view name) const {
    const json::object* object = value_ ? value_->if_object() : nullptr;
    return object ? Before(object->if_contains(name), levels_ + 1) : Before();
  }
  Before item(size_t i) const {
    const json::array* items = value_ ? value_->if_array() : nullptr;
    return items && i < items->size() ? Before(&(*items)[i], levels_ + 1) : Before();
  }
  bool is(const json::value& now) const { return value_ && json_equal(now, *value_); }

 private:
  static constexpr int kComparedLevels = 24;  // more than twice as many as a workload has down to a container's variables
  Before(const json::value* value, int levels) : value_(levels <= kComparedLevels ? value : nullptr), levels_(levels) {}

  const json::value* value_ = nullptr;  // nullptr: absent
  int levels_ = 0;                      // from the whole
};

void check(const Type& type, const json::value& value, const std::string& path, Findings& out, Before before = {});

void check_field(const Field& field, const json::value& value, const std::string& path, Findings& out, Before before) {
  auto one = [&](const json::value& part, const std::string& at, Before then) {
    check_value(field, part, at, out);
    if (field.form == Form::object) check(field.type(), part, at, out, then);
  };
  if (field.shape == Shape::one) return one(value, path, before);
  if (const json::array* items = value.if_array()) {
    std::string at = path;
    for (size_t i = 0; i < items->size(); ++i) {
      const Before then = before.item(i);
      if (then.is((*items)[i])) continue;
      at.resize(path.size());  // in the same memory: there may be very many
      at.append("[").append(std::to_string(i)).append("]");
      one((*items)[i], at, then);
    }
  } else if (const json::object* entries = value.if_object()) {
    for (const auto& pair : *entries) {
      const Before then = before.member(pair.key());
      if (!then.is(pair.value())) one(pair.value(), entry(path, pair.key()), then);
    }
  }
}

void check(const Type& type, const json::value& value, const std::string& path, Findings& out, Before before) {
  if (type.either) {
    if (const Field* field = type.alternative(value)) check_field(*field, value, path, out, before);
    return;
  }
  const json::object* object = value.if_object();
  if (!object) return;
  const NamedValidationRule* named = validation_rules()[type.index()];
  for (const Field& field : type.fields()) {
    bool needed = field.required && !field.ruled, worth_a_look = field.form == Form::object || (field.closed && !field.ruled);
    if (!needed && !worth_a_look) continue;
    if (path.empty() && (field.name() == "metadata" || field.name() == "status")) continue;
    const json::value* found = object->if_contains(field.name());
    if (needed && is_missing(field, found)) out.required(sub(path, field.name()));
    if (!found || !worth_a_look || (named && is_listed(named->unwalked, field.name()))) continue;
    const Before then = before.member(field.name());
    if (!then.is(*found)) check_field(field, *found, sub(path, field.name()), out, then);
  }
  if (named) named->rule(value, path, out);
}

// The rules that depend on no earlier state, for an object that is there. It keeps its name.
void check_standing(const KindInfo& kind, const json::value& object, Findings& out) {
  check_metadata(out, kind.stored(), object, &object);
  check(kind.stored().type(), object, "", out);
  if (CreateRule rule = rules_of(kind.stored()).create) rule(object, out);
  if (CreateRule rule = kind.is_stored() ? nullptr : rules_of(kind).create) rule(object, out);
}

// Without the causes that the old object has as well: it was stored when the rules were looser, and must still be scaled,
// labelled and deleted. Rules about changes are not asked about the old object, so their causes stay. A full list stays too,
// because it may lack a new cause.
std::vector<Cause> without_old_causes(std::vector<Cause> causes, const KindInfo& kind, const json::value& old) {
  if (causes.empty() || causes.size() >= kCausesMax) return causes;
  Findings before(&old);
  check_standing(kind, old, before);
  std::set<std::pair<std::string, std::string>> known;
  for (Cause& cause : before.take()) known.emplace(std::move(cause.field), std::move(cause.message));
  std::erase_if(causes, [&](const Cause& cause) { return known.contains({cause.field, cause.message}); });
  return causes;
}

}  // namespace

std::vector<Cause> validate_create(const KindInfo& kind, const json::value& object) {
  Findings out;
  check_metadata(out, kind.stored(), object, nullptr);
  check(kind.stored().type(), object, "", out);
  if (CreateRule rule = rules_of(kind.stored()).create) rule(object, out);
  if (CreateRule rule = kind.is_stored() ? nullptr : rules_of(kind).create) rule(object, out);
  return out.take();
}

std::vector<Cause> validate_update(const KindInfo& kind, const json::value& object, const json::value& old,
                                   std::string_view subresource) {
  Findings out(&old);
  check_metadata_update(out, object, old);
  check_metadata(out, kind.stored(), object, &old);
  const KindRules& rules = rules_of(kind.stored());
  if (subresource == "status") {
    if (rules.status) rules.status(object, old, out);
    return without_old_causes(out.take(), kind, old);
  }
  check(kind.stored().type(), object, "", out, Before(old));  // what is equal has no new causes: see without_old_causes
  if (UpdateRule rule = kind.is_stored() ? nullptr : rules_of(kind).update) rule(object, old, subresource, out);
  if (rules.update) rules.update(object, old, subresource, out);
  return without_old_causes(out.take(), kind, old);
}

}  // namespace coracle::schema
