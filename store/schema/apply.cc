// SPDX-License-Identifier: Apache-2.0
// See apply.h. The sets are field_set's; here is who holds them.
//   apply:  applied fields ▸ conflicts with other holders ▸ live laid over with applied ▸ what is left out goes ▸ entry
//   update: what changed or went leaves the other holders ▸ what changed joins the writer's entry
#include "store/schema/apply.h"

#include <algorithm>
#include <tuple>

#include "runtime/base/text.h"
#include "store/schema/convert.h"
#include "store/schema/field_set.h"

namespace coracle::schema {
namespace {

constexpr size_t kUpdateEntriesMax = 10;
constexpr std::string_view kAncient = "ancient-changes";

struct Entry {
  std::string manager, operation, api_version, time, subresource;
  json::object fields;

  // Who applies is one, in whichever version; who updates is another one in each.
  bool applies(const Manager& who) const { return manager == who.name && operation == "Apply" && subresource == who.subresource; }
  bool updates(const Manager& who, std::string_view version) const {
    return manager == who.name && operation == "Update" && subresource == who.subresource && api_version == version;
  }
};

// A body may say itself who holds what, as when client-side apply hands its fields over. Nonsense is as good as nothing.
bool tells_holders(const json::value& object) {
  const json::array& list = get_array(object, "metadata.managedFields");
  return !list.empty() && std::all_of(list.begin(), list.end(), [](const json::value& entry) {
    std::string_view operation = get_string(entry, "operation");
    const json::value* fields = find(entry, "fieldsV1");
    return (operation == "Apply" || operation == "Update") && !get_string(entry, "apiVersion").empty() &&
           get_string(entry, "fieldsType") == "FieldsV1" && fields && fields->is_object();
  });
}

// `storage`: where they are to go.
std::vector<Entry> entries_of(const json::value& object, json::storage_ptr storage) {
  std::vector<Entry> entries;
  for (const json::value& value : get_array(object, "metadata.managedFields")) {
    entries.push_back({std::string(get_string(value, "manager")), std::string(get_string(value, "operation")),
                       std::string(get_string(value, "apiVersion")), std::string(get_string(value, "time")),
                       std::string(get_string(value, "subresource")), json::object(get_object(value, "fieldsV1"), storage)});
  }
  return entries;
}

void write_entries(json::value& object, std::vector<Entry> entries) {
  std::erase_if(entries, [](const Entry& entry) { return entry.fields.empty(); });  // who holds nothing is no holder
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.operation, a.time, a.manager, a.api_version, a.subresource) <
           std::tie(b.operation, b.time, b.manager, b.api_version, b.subresource);
  });
  json::array list(object.storage());
  for (Entry& entry : entries) {
    json::object value(object.storage());
    if (!entry.manager.empty()) value["manager"] = entry.manager;
    value["operation"] = entry.operation;
    value["apiVersion"] = entry.api_version;
    if (!entry.time.empty()) value["time"] = entry.time;
    value["fieldsType"] = "FieldsV1";
    value["fieldsV1"] = in_order(std::move(entry.fields));
    if (!entry.subresource.empty()) value["subresource"] = entry.subresource;
    list.push_back(std::move(value));
  }
  json::value& metadata = make(object, "metadata");
  if (!metadata.is_object()) metadata.emplace_object();
  if (list.empty()) drop(metadata.get_object(), "managedFields");
  else metadata.get_object()["managedFields"] = std::move(list);
}

bool is_member(const json::object& node) { return node.empty() || node.contains("."); }

// What is applied with another value than is live, and is held by `theirs`.
void find_conflicts(const Place& place, const json::object& theirs, const json::value& live, const json::value& applied,
                    const std::string& path, std::vector<std::string>& conflicts, json::object& taken) {
  for (const Child& child : children_of(place, applied)) {
    const json::value* held = theirs.if_contains(child.element);
    if (!held || !held->is_object()) continue;
    std::string at = path + step_of(child.element);
    const json::value* current = child_at(place, live, child.element);
    if (child.place.kind != Place::Kind::leaf && child.value->is_structured() &&
        !children_of(child.place, *child.value).empty()) {
      static const json::value absent;
      json::object inner;
      find_conflicts(child.place, held->get_object(), current ? *current : absent, *child.value, at, conflicts, inner);
      if (!inner.empty()) taken[child.element] = std::move(inner);
    } else if (is_member(held->get_object()) && (!current || *current != *child.value)) {
      conflicts.push_back(at);
      taken[child.element].emplace_object();
    }
  }
}

std::string name_of(const Entry& holder) {
  std::string name = coracle::quoted(holder.manager);
  if (!holder.subresource.empty()) name += " with subresource " + coracle::quoted(holder.subresource);
  if (holder.operation == "Update") name += " using " + holder.api_version + (holder.time.empty() ? "" : " at " + holder.time);
  return name;
}

// Source: apimachinery, managedfields/internal/conflict.go.
Error conflict_error(std::vector<std::pair<const Entry*, std::vector<std::string>>> found) {
  std::sort(found.begin(), found.end(), [](auto& a, auto& b) { return a.first->manager < b.first->manager; });
  ErrorDetails details;
  std::string list;
  for (const auto& [entry, paths] : found) {
    list += (list.empty() ? "conflicts with " : "\nconflicts with ") + name_of(*entry) + ":";
    for (const std::string& path : paths) {
      details.causes.push_back({"FieldManagerConflict", "conflict with " + name_of(*entry), path});
      list += "\n- " + path;
    }
  }
  size_t count = details.causes.size();
  if (count == 1) list = details.causes[0].message + ": " + details.causes[0].field;
  std::string text = "Apply failed with " + std::to_string(count) + (count == 1 ? " conflict: " : " conflicts: ") + list;
  return Error(Code::conflict, std::move(text)).with(std::move(details));
}

// What an apply to this subresource is about: status is its own, and little of the object itself.
json::value without_reset(const KindInfo& kind, const json::value& applied, const Manager& manager) {
  json::value out = applied;
  if (!kind.subresource("status")) return out;
  if (manager.subresource.empty()) drop(out.get_object(), "status");
  if (manager.subresource != "status") return out;
  json::object status;
  json::object metadata;
  std::vector<std::string_view> names = manager.beside_status;
  names.insert(names.end(), {"uid", "resourceVersion"});  // these are conditions
  for (std::string_view name : names) {
    if (const json::value* given = find_keys(applied, {"metadata", name})) metadata[name] = *given;
  }
  if (!metadata.empty()) status["metadata"] = std::move(metadata);
  if (const json::value* given = applied.get_object().if_contains("status")) status["status"] = *given;
  return status;
}

// Old updates of many writers become one entry.
void cap_updates(std::vector<Entry>& entries) {
  auto updates = [&] { return std::count_if(entries.begin(), entries.end(), [](auto& e) { return e.operation == "Update"; }); };
  while (size_t(updates()) > kUpdateEntriesMax) {
    std::vector<Entry*> sorted;
    for (Entry& entry : entries) {
      if (entry.operation == "Update") sorted.push_back(&entry);
    }
    std::stable_sort(sorted.begin(), sorted.end(), [](Entry* a, Entry* b) { return a->time < b->time; });
    sorted[1]->fields = union_of(std::move(sorted[1]->fields), sorted[0]->fields);
    sorted[1]->manager = kAncient;
    entries.erase(entries.begin() + (sorted[0] - entries.data()));
  }
}

// The set in another version: what of `value`, written there, would be the same fields. Conversions may add what an object
// must have; that claims more, never less.
json::object translated(const json::object& fields, const KindInfo& from, const KindInfo& to, const json::value& value) {
  if (&from == &to) return fields;
  json::value held = only(Place::of(from.type()), convert(to, from, value), fields);
  json::object set = fields_of(Place::of(to.type()), convert(from, to, std::move(held)), Dots::no);
  strip_unowned(set);
  return set;
}

// Entries of versions that are served no more name fields that nobody knows: they go.
void drop_unknown_versions(const KindInfo& kind, std::vector<Entry>& entries) {
  std::erase_if(entries, [&](const Entry& entry) { return !version_of(kind, entry.api_version); });
}

// What `kubectl apply` set while it merged on the client's side, and what is as it set it: its own to change when it applies on
// the server's side. Source: apimachinery managedfields, lastappliedmanager.go.
json::object applied_by_client(const Place& root, const json::value& live, const std::string& version) {
  const json::value* text = find_keys(live, {"metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"});
  if (!text || !text->is_string()) return {};
  auto last = parse_json(std::string_view(text->get_string()));
  if (!last || !last->is_object() || get_string(*last, "apiVersion") != version) return {};
  json::object unchanged = difference_of(fields_of(root, *last, Dots::no), changed_fields(root, *last, live));
  return difference_of(unchanged, removed_fields(root, *last, live));
}

}  // namespace

Result<json::value> server_side_apply(const KindInfo& kind, const json::value& live, const json::value& configuration,
                                      const Manager& manager, WallTime now) {
  if (!configuration.is_object()) return Error(Code::bad_request, "the applied configuration must be an object");
  if (!get_array(configuration, "metadata.managedFields").empty()) {
    return Error(Code::bad_request, "metadata.managedFields must be nil");
  }
  json::value applied = without_reset(kind, configuration, manager);
  Place root = Place::of(kind.type());
  std::string version = kind.kind.api_version();
  json::object mine = fields_of(root, applied, Dots::no);
  strip_unowned(mine);
  json::value merged = live.is_object() ? laid_over(root, live, applied) : applied;

  std::vector<Entry> entries = entries_of(live, merged.storage());
  drop_unknown_versions(kind, entries);
  auto own = std::find_if(entries.begin(), entries.end(), [&](auto& entry) { return entry.applies(manager); });
  std::vector<std::pair<const Entry*, std::vector<std::string>>> conflicts;
  std::vector<json::object> others;
  json::object contested;
  for (auto entry = entries.begin(); entry != entries.end(); ++entry) {
    if (entry == own) continue;
    const KindInfo& theirs = *version_of(kind, entry->api_version);
    std::vector<std::string> paths;
    json::object taken;
    if (&theirs == &kind) {
      find_conflicts(root, entry->fields, live, applied, "", paths, taken);
    } else {
      find_conflicts(Place::of(theirs.type()), entry->fields, convert(kind, theirs, live), convert(kind, theirs, merged), "",
                     paths, taken);
    }
    if (manager.force && !taken.empty()) entry->fields = difference_of(entry->fields, taken);
    contested = union_of(std::move(contested), taken);
    if (!paths.empty()) conflicts.emplace_back(&*entry, std::move(paths));
    others.push_back(translated(entry->fields, theirs, kind, merged));
  }
  if (!conflicts.empty() && !manager.force) {
    bool only_its_own = manager.name == "kubectl" && difference_of(contested, applied_by_client(root, live, version)).empty();
    if (!only_its_own) return conflict_error(conflicts);
    return server_side_apply(kind, live, configuration, {manager.name, manager.subresource, true, manager.beside_status}, now);
  }

  if (own != entries.end()) {
    std::vector<const json::object*> held;
    for (const json::object& other : others) held.push_back(&other);
    json::object said = mine;
    if (!said.contains("f:metadata")) said["f:metadata"].emplace_object();  // an object keeps its name, whatever else of it goes
    prune(root, merged, translated(own->fields, *version_of(kind, own->api_version), kind, merged), said, held);
  }
  if (own == entries.end()) {
    entries.push_back({manager.name, "Apply", version, format_time(now), manager.subresource, std::move(mine)});
  } else if (own->fields != mine || own->api_version != version) {
    own->fields = std::move(mine);
    own->api_version = version;
    own->time = format_time(now);
  }
  write_entries(merged, std::move(entries));
  return merged;
}

void track_update(const KindInfo& kind, const json::value& old, json::value& object, const Manager& manager, WallTime now) {
  if (!object.is_object()) return;
  const json::value* given = find(object, "metadata.managedFields");
  bool reset = given && given->is_array() && (given->get_array().empty() || given->get_array()[0] == json::object());
  if (reset) {
    write_entries(object, {});
    return;
  }
  Place root = Place::of(kind.type());
  std::string version = kind.kind.api_version();
  json::object changed = old.is_object() ? changed_fields(root, old, object) : fields_of(root, object, Dots::yes);
  json::object removed = removed_fields(root, old, object);
  strip_unowned(changed);
  strip_unowned(removed);

  std::vector<Entry> entries = entries_of(manager.subresource.empty() && tells_holders(object) ? object : old, object.storage());
  drop_unknown_versions(kind, entries);
  json::object lost = entries.empty() ? json::object(object.storage()) : union_of(removed, changed);
  auto own = entries.end();
  for (auto entry = entries.begin(); entry != entries.end(); ++entry) {
    if (const KindInfo& theirs = *version_of(kind, entry->api_version); &theirs != &kind) {
      Place place = Place::of(theirs.type());
      json::value was = convert(kind, theirs, old), is = convert(kind, theirs, object);
      entry->fields = difference_of(entry->fields, union_of(removed_fields(place, was, is), changed_fields(place, was, is)));
      continue;
    }
    bool is_own = entry->updates(manager, version);
    if (is_own) own = entry;
    entry->fields = difference_of(entry->fields, is_own ? removed : lost);
  }
  if (!changed.empty() && own != entries.end()) {
    own->fields = union_of(std::move(own->fields), changed);
    own->time = format_time(now);
  } else if (!changed.empty()) {
    entries.push_back({manager.name, "Update", version, format_time(now), manager.subresource, std::move(changed)});
  }
  cap_updates(entries);
  write_entries(object, std::move(entries));
}

}  // namespace coracle::schema
