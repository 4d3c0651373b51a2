// SPDX-License-Identifier: Apache-2.0
// CustomResourceDefinitions: names are accepted if no other definition of the group has them (definition_names.h). The defined
// kinds are not served: Established stays False. Source: apiextensions-apiserver, pkg/controller/status.
#include <algorithm>

#include "runtime/base/text.h"
#include "store/kinds/custom_resource/server/definition_names.h"
#include "store/kinds/meta/conditions.h"
#include "store/kinds/strategy.h"
#include "store/object/object.h"
#include "store/schema/catalog.h"
#include "store/schema/members.h"
#include "store/schema/views.h"

namespace coracle::kinds {
namespace {

json::object condition_of(std::string_view type, std::string_view status, std::string_view reason, std::string_view message,
                          WallTime now) {
  return {{"type", type}, {"status", status}, {"lastTransitionTime", format_time(now)}, {"reason", reason}, {"message", message}};
}

// The transition time stays while the status is unchanged.
void set_condition(json::value& object, json::object condition) {
  json::array& list = make_array(object, "status.conditions");
  const std::string type(condition["type"].get_string());
  view::Condition before(find_condition(list, type));
  if (before && before.status() == std::string_view(condition["status"].get_string()))
    condition["lastTransitionTime"] = before.last_transition_time();
  make_condition(list, type) = std::move(condition);
}

class Naming {
 public:
  Naming(json::value& object, const DefinitionNames::TakenByOthers& taken) : object_(object), taken_(taken) {}

  void take_resource(std::string_view field, std::string_view reason) {
    take(
        field, [this](std::string_view name) { return taken_.has_resource(name); }, reason);
  }

  void take_kind(std::string_view field, std::string_view reason) {
    take(
        field, [this](std::string_view name) { return taken_.has_kind(name); }, reason);
  }

  void take_short_names() {
    std::vector<std::string> refused;
    for (std::string_view name : wanted_names().short_names())
      if (taken_.has_resource(name)) refused.push_back(coracle::quoted(name) + " is already in use");
    if (refused.size() > 1) return refuse("ShortNamesConflict", "[" + join(refused, ", ") + "]");
    if (!refused.empty()) return refuse("ShortNamesConflict", refused[0]);
    copy("shortNames");
  }

  void copy(std::string_view field) {
    json::object& names = make_object(object_, "status.acceptedNames");
    const json::value* wanted = wanted_names().members().if_contains(field);
    if (wanted) names[field] = *wanted;
    else names.erase(field);
  }

  bool accepted() const { return reason_.empty(); }
  const std::string& reason() const { return reason_; }
  const std::string& message() const { return message_; }

 private:
  view::CustomResourceDefinitionNames wanted_names() const { return view::CustomResourceDefinition(object_).spec().names(); }

  template <typename F>
  void take(std::string_view field, F&& is_used, std::string_view reason) {
    std::string wanted(schema::text_at(wanted_names().members(), field));
    const json::object& present = view::CustomResourceDefinition(object_).status().accepted_names().members();
    if (wanted == schema::text_at(present, field)) return;
    if (is_used(wanted)) return refuse(reason, coracle::quoted(wanted) + " is already in use");
    make(object_, "status.acceptedNames").as_object()[field] = wanted;
  }

  void refuse(std::string_view reason, std::string message) {
    reason_ = reason;
    message_ = std::move(message);
  }

  json::value& object_;
  const DefinitionNames::TakenByOthers& taken_;
  std::string reason_, message_;
};

void settle_names(json::value& object, const DefinitionNames::TakenByOthers& taken, WallTime now) {
  if (!view::CustomResourceDefinition(object).status().accepted_names()) make(object, "status.acceptedNames").emplace_object();
  Naming naming(object, taken);
  naming.take_resource("plural", "PluralConflict");
  naming.take_resource("singular", "SingularConflict");
  naming.take_short_names();
  naming.take_kind("kind", "KindConflict");
  naming.take_kind("listKind", "ListKindConflict");
  naming.copy("categories");
  // Names without a conflict are not accepted either: a client that waits for that must not conclude that the kind is served.
  constexpr std::string_view kReason = "NotServed", kWords = "this server stores definitions, but does not serve their kinds yet";
  bool good = naming.accepted();
  set_condition(object, condition_of("NamesAccepted", "False", good ? kReason : std::string_view(naming.reason()),
                                     good ? kWords : std::string_view(naming.message()), now));
  set_condition(object, condition_of("Established", "False", good ? kReason : "NotAccepted",
                                     good ? kWords : "not all names are accepted", now));
}

// Adds the present storage version to status.storedVersions.
void note_stored_version(json::value& object) {
  for (view::CustomResourceDefinitionVersion version : view::CustomResourceDefinition(object).spec().versions()) {
    if (!version.storage()) continue;
    std::string name(version.name());
    json::array& stored = make_array(object, "status.storedVersions");
    bool known = std::any_of(stored.begin(), stored.end(), [&](const json::value& one) { return one == json::value(name); });
    if (!known) stored.emplace_back(name);
    return;
  }
}

Result<void> accept_names(json::value& object, const Allocation& allocation) {
  note_stored_version(object);
  auto choose = [&](const DefinitionNames::TakenByOthers& others) { settle_names(object, others, allocation.now); };
  allocation.hold = TRY(allocation.definitions.reserve(object, !allocation.dry_run, choose));
  return {};
}

Result<void> accept_changed_names(json::value& object, const Object&, const Allocation& allocation) {
  return accept_names(object, allocation);
}

}  // namespace

extern const StrategyFamily custom_resource_strategies;
const StrategyFamily custom_resource_strategies{
    {{.kind = &kCustomResourceDefinition, .allocate_create = accept_names, .allocate_update = accept_changed_names}}};

}  // namespace coracle::kinds
