// SPDX-License-Identifier: Apache-2.0
// CustomResourceDefinitions: names are accepted one definition at a time, so that a group's resources and kinds are unique. The
// defined kinds are not served: Established stays False. Source: apiextensions-apiserver, pkg/controller/status.
#include <algorithm>
#include <set>

#include "runtime/base/text.h"
#include "store/kinds/strategy.h"
#include "store/object/object.h"
#include "store/schema/catalog.h"

namespace coracle::kinds {
namespace {

struct TakenNames {
  std::set<std::string, std::less<>> resources, kinds;
};

Result<TakenNames> taken_in(const json::value& definition, const Allocation& allocation) {
  TakenNames taken;
  engine::ListPage page = TRY(allocation.engine.list(kCustomResourceDefinition, {}));
  std::string_view group = get_string(definition, "spec.group"), name = get_string(definition, "metadata.name");
  for (const ObjectPtr& other : page.items) {
    const json::value& object = other->json();
    if (get_string(object, "spec.group") != group || other->name() == name) continue;
    for (const char* field : {"plural", "singular"})
      taken.resources.emplace(get_string(object, "status.acceptedNames." + std::string(field)));
    for (const json::value& one : get_array(object, "status.acceptedNames.shortNames")) {
      if (one.is_string()) taken.resources.emplace(one.get_string());
    }
    for (const char* field : {"kind", "listKind"})
      taken.kinds.emplace(get_string(object, "status.acceptedNames." + std::string(field)));
  }
  return taken;
}

json::object condition_of(std::string_view type, std::string_view status, std::string_view reason, std::string_view message,
                          WallTime now) {
  return {{"type", type}, {"status", status}, {"lastTransitionTime", format_time(now)}, {"reason", reason}, {"message", message}};
}

// The transition time stays while the status is unchanged.
void set_condition(json::value& object, json::object condition) {
  json::value& list = make(object, "status.conditions");
  if (!list.is_array()) list.emplace_array();
  for (json::value& old : list.get_array()) {
    if (get_string(old, "type") != std::string_view(condition["type"].get_string())) continue;
    if (get_string(old, "status") == std::string_view(condition["status"].get_string())) {
      condition["lastTransitionTime"] = get_string(old, "lastTransitionTime");
    }
    old = std::move(condition);
    return;
  }
  list.get_array().push_back(std::move(condition));
}

class Naming {
 public:
  Naming(json::value& object, const TakenNames& taken) : object_(object), taken_(taken) {}

  void take(std::string_view field, const std::set<std::string, std::less<>>& used, std::string_view reason) {
    std::string wanted(get_string(object_, "spec.names." + std::string(field)));
    if (wanted == get_string(object_, "status.acceptedNames." + std::string(field))) return;
    if (used.count(wanted)) return refuse(reason, coracle::quoted(wanted) + " is already in use");
    make(object_, "status.acceptedNames").as_object()[field] = wanted;
  }

  void take_short_names() {
    std::vector<std::string> refused;
    for (const json::value& name : get_array(object_, "spec.names.shortNames")) {
      if (name.is_string() && taken_.resources.count(std::string_view(name.get_string()))) {
        refused.push_back(coracle::quoted(std::string_view(name.get_string())) + " is already in use");
      }
    }
    if (refused.size() > 1) return refuse("ShortNamesConflict", "[" + join(refused, ", ") + "]");
    if (!refused.empty()) return refuse("ShortNamesConflict", refused[0]);
    copy("shortNames");
  }

  void copy(std::string_view field) {
    json::value& names = make(object_, "status.acceptedNames");
    if (!names.is_object()) names.emplace_object();
    const json::value* wanted = find(object_, "spec.names." + std::string(field));
    if (wanted) names.get_object()[field] = *wanted;
    else names.get_object().erase(field);
  }

  bool accepted() const { return reason_.empty(); }
  const std::string& reason() const { return reason_; }
  const std::string& message() const { return message_; }

 private:
  void refuse(std::string_view reason, std::string message) {
    reason_ = reason;
    message_ = std::move(message);
  }

  json::value& object_;
  const TakenNames& taken_;
  std::string reason_, message_;
};

Result<void> settle_names(json::value& object, const Allocation& allocation) {
  TakenNames taken = TRY(taken_in(object, allocation));
  if (!find(object, "status.acceptedNames") || !find(object, "status.acceptedNames")->is_object()) {
    make(object, "status.acceptedNames").emplace_object();
  }
  Naming naming(object, taken);
  naming.take("plural", taken.resources, "PluralConflict");
  naming.take("singular", taken.resources, "SingularConflict");
  naming.take_short_names();
  naming.take("kind", taken.kinds, "KindConflict");
  naming.take("listKind", taken.kinds, "ListKindConflict");
  naming.copy("categories");
  // Names without a conflict are not accepted either: a client that waits for that must not conclude that the kind is served.
  constexpr std::string_view kReason = "NotServed", kWords = "this server stores definitions, but does not serve their kinds yet";
  bool good = naming.accepted();
  set_condition(object, condition_of("NamesAccepted", "False", good ? kReason : std::string_view(naming.reason()),
                                     good ? kWords : std::string_view(naming.message()), allocation.now));
  set_condition(object, condition_of("Established", "False", good ? kReason : "NotAccepted",
                                     good ? kWords : "not all names are accepted", allocation.now));
  return {};
}

// Adds the present storage version to status.storedVersions.
void note_stored_version(json::value& object) {
  for (const json::value& version : get_array(object, "spec.versions")) {
    if (!get_bool(version, "storage")) continue;
    std::string name(get_string(version, "name"));
    json::value& stored = make(object, "status.storedVersions");
    if (!stored.is_array()) stored.emplace_array();
    const json::array& all = stored.get_array();
    bool known = std::any_of(all.begin(), all.end(), [&](const json::value& one) { return one == json::value(name); });
    if (!known) stored.get_array().emplace_back(name);
    return;
  }
}

Result<void> accept_names(json::value& object, const Allocation& allocation) {
  note_stored_version(object);
  return settle_names(object, allocation);
}

Result<void> accept_changed_names(json::value& object, const Object&, const Allocation& allocation) {
  return accept_names(object, allocation);
}

}  // namespace

extern const StrategyFamily custom_resource_strategies;
const StrategyFamily custom_resource_strategies{{{.kind = &kCustomResourceDefinition,
                                                  .one_at_a_time = true,  // two definitions may not get one name
                                                  .allocate_create = accept_names,
                                                  .allocate_update = accept_changed_names}}};

}  // namespace coracle::kinds
