// SPDX-License-Identifier: Apache-2.0
// See apply.h. field_set.h computes the sets; this file computes their managers.
//   apply:  applied fields ▸ conflicts with other managers ▸ merge applied into live ▸ remove omitted fields ▸ entry
//   update: remove changed and deleted fields from other managers ▸ add changed fields to the writer's entry
#include "store/schema/apply.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <memory_resource>
#include <set>
#include <tuple>

#include "runtime/base/text.h"
#include "store/object/markup.h"
#include "store/schema/convert.h"
#include "store/schema/decode.h"
#include "store/schema/field_set.h"
#include "store/schema/validate/texts.h"

namespace coracle::schema {
namespace {

constexpr size_t kUpdateEntriesMax = 10;
constexpr size_t kEntryMembers = 7;  // of ManagedFieldsEntry
constexpr size_t kConflictsNamedMax = 1000;
constexpr std::string_view kAncient = "ancient-changes", kBeforeFirstApply = "before-first-apply";
constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

struct Entry {
  std::string manager, operation, api_version, time, subresource;
  json::object fields;

  // An applier has one entry for all versions; an updater has one per version.
  bool applies(const Manager& who) const { return manager == who.name && operation == "Apply" && subresource == who.subresource; }
  bool updates(const Manager& who, std::string_view version) const {
    return manager == who.name && operation == "Update" && subresource == who.subresource && api_version == version;
  }
};

// A body may set managedFields itself, for example when client-side apply migrates its fields. An invalid value counts as absent.
bool tells_holders(const json::value& object) {
  const json::array& list = get_array(object, "metadata.managedFields");
  return !list.empty() && std::all_of(list.begin(), list.end(), [](const json::value& entry) {
    std::string_view operation = get_string(entry, "operation");
    const json::value* fields = find(entry, "fieldsV1");
    return (operation == "Apply" || operation == "Update") && !get_string(entry, "apiVersion").empty() &&
           get_string(entry, "fieldsType") == "FieldsV1" &&
           (!fields || (fields->is_object() && is_field_set(fields->get_object())));  // no fields: the entry is dropped
  });
}

// `storage`: the memory resource of the result. Of two entries with one holder, which a body may have, the later one counts.
std::vector<Entry> entries_of(const json::value& object, json::storage_ptr storage) {
  std::vector<Entry> entries;
  using Holder = std::tuple<std::string_view, std::string_view, std::string_view, std::string_view>;  // in `object`
  std::array<std::byte, 1024> block;
  std::pmr::monotonic_buffer_resource notes(block.data(), block.size());
  std::pmr::map<Holder, size_t> known(&notes);
  const json::array& list = get_array(object, "metadata.managedFields");
  entries.reserve(list.size() + 1);
  for (const json::value& value : list) {
    Entry entry{std::string(get_string(value, "manager")),     std::string(get_string(value, "operation")),
                std::string(get_string(value, "apiVersion")),  std::string(get_string(value, "time")),
                std::string(get_string(value, "subresource")), json::object(get_object(value, "fieldsV1"), storage)};
    std::string_view version = entry.operation == "Apply" ? std::string_view() : get_string(value, "apiVersion");
    Holder holder{get_string(value, "manager"), get_string(value, "operation"), version, get_string(value, "subresource")};
    auto [found, fresh] = known.try_emplace(holder, entries.size());
    if (fresh) entries.push_back(std::move(entry));
    else entries[found->second] = std::move(entry);
  }
  return entries;
}

void write_entries(json::value& object, std::vector<Entry> entries) {
  std::erase_if(entries, [](const Entry& entry) { return entry.fields.empty(); });  // an entry without fields is dropped
  auto is_before = [](const Entry& a, const Entry& b) {
    return std::tie(a.operation, a.time, a.manager, a.api_version, a.subresource) <
           std::tie(b.operation, b.time, b.manager, b.api_version, b.subresource);
  };
  if (!std::ranges::is_sorted(entries, is_before)) std::ranges::stable_sort(entries, is_before);
  json::array list(object.storage());
  list.reserve(entries.size());
  for (Entry& entry : entries) {
    json::object value(object.storage());
    value.reserve(kEntryMembers);
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

// An empty object, map or list that is laid over a live one leaves it as it is.
bool adds_nothing(IndexedValue& applied, IndexedValue* live) {
  return live && applied.place().kind != Place::Kind::leaf && applied.value().kind() == live->value().kind() &&
         applied.value().is_structured() && !applied.has_children();
}

// Fields that are applied with another value than the live one and are owned by `theirs`. `live`: nullptr if absent. `path`: of
// the value; nullptr: the whole object.
void find_conflicts(const json::object& theirs, IndexedValue* live, IndexedValue& applied, const ElementPath* path,
                    std::vector<std::string>& conflicts, json::object& taken) {
  for (const auto& pair : theirs) {
    std::string_view element = pair.key();
    IndexedValue* child = pair.value().is_object() ? applied.child(element) : nullptr;
    if (!child) continue;
    const json::object& held = pair.value().get_object();
    IndexedValue* current = live ? live->child(element) : nullptr;
    const ElementPath at{path, {}, element};
    if (child->place().kind != Place::Kind::leaf && child->value().is_structured() && child->has_children()) {
      json::object inner(taken.storage());
      find_conflicts(held, current, *child, &at, conflicts, inner);
      if (!inner.empty()) taken[element] = std::move(inner);
    } else if (is_member(held) && !child->equals(current) && !adds_nothing(*child, current)) {
      conflicts.push_back(at.text());
      taken[element].emplace_object();
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
  size_t count = 0;
  for (const auto& [entry, paths] : found) {
    if (count < kConflictsNamedMax) list += (list.empty() ? "conflicts with " : "\nconflicts with ") + name_of(*entry) + ":";
    for (const std::string& path : paths) {
      if (++count > kConflictsNamedMax) continue;
      details.causes.push_back({"FieldManagerConflict", "conflict with " + name_of(*entry), path});
      list += "\n- " + path;
    }
  }
  if (count > kConflictsNamedMax) list += "\nand " + std::to_string(count - kConflictsNamedMax) + " more";
  if (count == 1) list = details.causes[0].message + ": " + details.causes[0].field;
  std::string text = "Apply failed with " + std::to_string(count) + (count == 1 ? " conflict: " : " conflicts: ") + list;
  return Error(Code::conflict, std::move(text)).with(std::move(details));
}

// Whether a part of the configuration is reset: without_reset() then differs from it.
bool has_reset(const KindInfo& kind, const json::value& applied, const Manager& manager) {
  if (!kind.subresource("status")) return false;
  return manager.subresource == "status" || (manager.subresource.empty() && applied.get_object().contains("status"));
}

// The part of the configuration that an apply to this subresource may set: for status, the status and a few metadata fields.
json::value without_reset(const KindInfo& kind, const json::value& applied, const Manager& manager) {
  json::value out = applied;
  if (!kind.subresource("status")) return out;
  if (manager.subresource.empty()) drop(out.get_object(), "status");
  if (manager.subresource != "status") return out;
  json::object status(applied.storage());
  json::object metadata(applied.storage());
  std::vector<std::string_view> names = manager.beside_status;
  names.insert(names.end(), {"uid", "resourceVersion"});  // these are preconditions
  for (std::string_view name : names) {
    if (const json::value* given = find_keys(applied, {"metadata", name})) metadata[name] = *given;
  }
  if (!metadata.empty()) status["metadata"] = std::move(metadata);
  if (const json::value* given = applied.get_object().if_contains("status")) status["status"] = *given;
  return status;
}

// What an object without entries holds when it is applied for the first time: it may be meant, so whoever applies another value
// is told. The time is set once it is written. Source: apimachinery managedfields, skipnonapplied.go.
Entry before_first_apply(const KindInfo& kind, const json::value& live, const Manager& manager) {
  json::value part = without_reset(kind, live, manager);
  if (manager.subresource == "scale") {
    const json::value* replicas = find_keys(live, {"spec", "replicas"});
    part = replicas ? json::object{{"spec", json::object{{"replicas", *replicas}}}} : json::object();
  }
  return {std::string(kBeforeFirstApply),     "Update", kind.kind.api_version(), "", manager.subresource,
          written_fields(kind, nullptr, part)};
}

// Merges old Update entries if there are many: those of one version into one entry, as each names the fields of its version.
// Source: apimachinery managedfields, capmanagers.go.
void cap_updates(std::vector<Entry>& entries) {
  std::vector<size_t> updates;
  for (size_t i = 0; i < entries.size(); ++i)
    if (entries[i].operation == "Update") updates.push_back(i);
  if (updates.size() <= kUpdateEntriesMax) return;
  std::stable_sort(updates.begin(), updates.end(), [&](size_t a, size_t b) {
    bool newer_a = entries[a].manager != kAncient, newer_b = entries[b].manager != kAncient;
    return std::tie(entries[a].time, newer_a) < std::tie(entries[b].time, newer_b);
  });
  size_t surplus = updates.size() - kUpdateEntriesMax;
  std::map<std::string, size_t> oldest;  // the entry that takes the others, by version
  for (size_t i : updates)  // where the clock has gone back, it is not the first by time: there must not be two of them
    if (entries[i].manager == kAncient && entries[i].subresource.empty()) oldest.try_emplace(entries[i].api_version, i);
  std::set<size_t> gone;
  for (size_t i : updates) {
    if (gone.size() == surplus) break;
    auto [found, fresh] = oldest.try_emplace(entries[i].api_version, i);
    if (fresh || found->second == i) continue;
    Entry& kept = entries[found->second];
    kept.fields = union_of(std::move(kept.fields), entries[i].fields);
    kept.manager = kAncient;
    kept.subresource.clear();
    kept.time = std::max(kept.time, entries[i].time);
    gone.insert(i);
  }
  std::vector<Entry> rest;
  for (size_t i = 0; i < entries.size(); ++i)
    if (!gone.contains(i)) rest.push_back(std::move(entries[i]));
  entries = std::move(rest);
}

// An object in one version of its kind, for entries that were written in that version.
struct Version {
  json::value live, applied;  // in that version
  IndexedValue indexed_live, indexed_applied;

  Version(const KindInfo& from, const KindInfo& to, const json::value& live_in, const json::value& applied_in,
          std::pmr::monotonic_buffer_resource& notes)
      : live(convert(from, to, live_in)),
        applied(convert(from, to, applied_in)),
        indexed_live(Place::of(to.type()), live, notes),
        indexed_applied(Place::of(to.type()), applied, notes) {}
  Version(const Version&) = delete;
};

// Objects are converted once per version, not once per entry.
class Versions {
 public:
  Versions(const KindInfo& kind, const json::value& live, const json::value& applied, std::pmr::monotonic_buffer_resource& notes)
      : kind_(kind), live_(live), applied_(applied), notes_(notes) {}
  Version& of(const KindInfo& kind) {
    std::unique_ptr<Version>& made = made_[&kind];
    if (!made) made = std::make_unique<Version>(kind_, kind, live_, applied_, notes_);
    return *made;
  }

 private:
  const KindInfo& kind_;
  const json::value &live_, &applied_;
  std::pmr::monotonic_buffer_resource& notes_;
  std::map<const KindInfo*, std::unique_ptr<Version>> made_;
};

// Items of `set` of which `fields` holds no more than parts are no members of it either. Where the versions differ in their
// paths, they stay members.
void leave_parts(json::object& set, const json::object& fields) {
  for (auto& pair : set) {
    json::object* node = pair.value().if_object();
    const json::value* there = fields.if_contains(pair.key());
    const json::object* held = there ? there->if_object() : nullptr;
    if (!node || !held || held->empty()) continue;
    if (!held->contains(".")) drop(*node, ".");
    leave_parts(*node, *held);
  }
}

// Converts a set to another version: the fields of `value` (written in version `from`) that correspond. Conversions may add
// required fields; then the result is larger, never smaller.
json::object translated(const json::object& fields, const KindInfo& from, const KindInfo& to, IndexedValue& value) {
  if (&from == &to) return fields;
  json::object set = fields_of(Place::of(to.type()), convert(from, to, only(value, fields)), Dots::no);
  strip_unowned(set);
  leave_parts(set, fields);
  return set;
}

// The fields of `before` that `after`, which need not be canonical, does not have, in version `to`.
Result<json::object> removed_in(const KindInfo& to, const KindInfo& from, const json::value& before, const json::value& after) {
  if (&from == &to) return removed_fields(Place::of(to.type()), before, after);
  Decoded canonical = TRY(decode(from.type(), after));
  return removed_fields(Place::of(to.type()), convert(from, to, before), convert(from, to, std::move(canonical.value)));
}

// Drops entries of versions that are no longer served.
void drop_unknown_versions(const KindInfo& kind, std::vector<Entry>& entries) {
  std::erase_if(entries, [&](const Entry& entry) { return !kind.version(entry.api_version); });
}

// The fields that client-side `kubectl apply` has set and that still have those values: a server-side apply may change them.
// Source: apimachinery managedfields, lastappliedmanager.go.
json::object applied_by_client(const Place& root, const json::value& live, const std::string& version) {
  const json::value* text = find_keys(live, {"metadata", "annotations", kLastApplied});
  if (!text || !text->is_string()) return {};
  auto last = parse_json(std::string_view(text->get_string()));
  if (!last || !last->is_object() || get_string(*last, "apiVersion") != version) return {};
  json::object unchanged = difference_of(fields_of(root, *last, Dots::no), changed_fields(root, *last, live));
  return difference_of(unchanged, removed_fields(root, *last, live));
}

// Updates the annotation for a later client-side apply, which deletes what the annotation has and the file lacks. Source:
// apimachinery managedfields, lastappliedupdater.go.
void update_last_applied(json::value& object, const json::value& configuration) {
  const json::value* present = find_keys(object, {"metadata", "annotations", kLastApplied});
  if (!present || !present->is_string() || present->get_string().empty()) return;
  json::value applied = configuration;
  if (json::value* annotations = const_cast<json::value*>(find(applied, "metadata.annotations"));
      annotations && annotations->is_object())
    drop(annotations->get_object(), kLastApplied);
  std::string text = to_sorted_text(applied) + "\n";
  escape_markup(text);
  json::object& annotations = make(object, "metadata.annotations").get_object();
  annotations[kLastApplied] = text;
  size_t bytes = 0;
  for (const auto& pair : annotations)
    bytes += pair.key().size() + (pair.value().is_string() ? pair.value().get_string().size() : 0);
  if (bytes > kAnnotationsBytesMax) drop(annotations, kLastApplied);
}

}  // namespace

Error untyped_patch(const KindInfo& kind, const json::value& configuration, std::string_view why) {
  std::string object(get_string(configuration, "metadata.namespace"));
  object.append("/").append(get_string(configuration, "metadata.name")).append("; ").append(kind.kind.group).append("/");
  object.append(kind.kind.version).append(", Kind=").append(kind.kind.kind);
  return Error(Code::bad_request, "failed to create typed patch object (" + object + "): " + std::string(why));
}

Result<json::value> server_side_apply(const KindInfo& kind, const json::value& live, const json::value& configuration,
                                      const Manager& manager, WallTime now, json::storage_ptr memory) {
  if (!configuration.is_object()) return Error(Code::bad_request, "the applied configuration must be an object");
  const std::string version = kind.kind.api_version();
  if (std::string_view sent = get_string(configuration, "apiVersion"); !sent.empty() && sent != version)
    return Error(Code::bad_request, "Incorrect version specified in apply patch. Specified patch version: " + std::string(sent) +
                                        ", expected: " + version);
  const json::value* entries_sent = find(configuration, "metadata.managedFields");
  if (entries_sent && !entries_sent->is_null()) return Error(Code::bad_request, "metadata.managedFields must be nil");
  std::array<std::byte, 8 << 10> block;
  std::pmr::monotonic_buffer_resource notes(block.data(), block.size());
  unsigned char sets_block[4 << 10];
  json::monotonic_resource sets(sets_block);  // of field sets that only this function needs
  json::value reset(configuration.storage());
  const bool resets = has_reset(kind, configuration, manager);
  if (resets) reset = without_reset(kind, configuration, manager);
  const json::value& applied = resets ? reset : configuration;
  Place root = Place::of(kind.type());
  if (std::string duplicate = find_duplicate(root, applied); !duplicate.empty()) return untyped_patch(kind, applied, duplicate);
  json::object mine = fields_of(root, applied, Dots::no);
  strip_unowned(mine);
  json::value merged = live.is_object() ? laid_over(root, json::value(live, memory), applied) : json::value(applied, memory);

  std::vector<Entry> entries = entries_of(live, merged.storage());
  if (entries.empty() && live.is_object()) entries.push_back(before_first_apply(kind, live, manager));
  drop_unknown_versions(kind, entries);
  auto own = std::find_if(entries.begin(), entries.end(), [&](auto& entry) { return entry.applies(manager); });
  std::vector<std::pair<const Entry*, std::vector<std::string>>> conflicts;
  json::object others(&sets), contested(&sets);              // fields of other entries; those that this one takes over
  std::map<const KindInfo*, json::object> others_elsewhere;  // of entries in other versions
  IndexedValue live_here(root, live, notes), applied_here(root, applied, notes);
  bool spans_versions =
      std::any_of(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.api_version != version; });
  json::value canonical;  // conversions need canonical input
  if (spans_versions) {
    Decoded decoded = TRY(decode(kind.type(), merged));
    canonical = std::move(decoded.value);
  }
  Versions elsewhere(kind, live, canonical, notes);
  for (auto entry = entries.begin(); entry != entries.end(); ++entry) {
    if (entry == own) continue;
    const KindInfo& theirs = *kind.version(entry->api_version);
    std::vector<std::string> paths;
    json::object taken(&sets);
    if (&theirs == &kind) {
      find_conflicts(entry->fields, &live_here, applied_here, nullptr, paths, taken);
    } else {
      Version& there = elsewhere.of(theirs);
      find_conflicts(entry->fields, &there.indexed_live, there.indexed_applied, nullptr, paths, taken);
    }
    if (manager.force) subtract(entry->fields, taken);
    contested = union_of(std::move(contested), taken);
    if (!paths.empty()) conflicts.emplace_back(&*entry, std::move(paths));
    json::object& held = &theirs == &kind ? others : others_elsewhere[&theirs];
    held = union_of(std::move(held), entry->fields);
  }
  // All fields of a version at once, because each conversion converts the whole object.
  for (const auto& [theirs, fields] : others_elsewhere)
    others = union_of(std::move(others), translated(fields, *theirs, kind, elsewhere.of(*theirs).indexed_applied));
  if (!conflicts.empty() && !manager.force) {
    if (manager.name != "kubectl") return conflict_error(std::move(conflicts));
    const json::object of_client = applied_by_client(root, live, version);
    if (!difference_of(contested, of_client).empty()) {
      for (auto& [entry, paths] : conflicts) {  // what the client itself has applied before is none
        if (entry->api_version != version) continue;
        json::object taken;
        paths.clear();
        find_conflicts(difference_of(entry->fields, of_client), &live_here, applied_here, nullptr, paths, taken);
      }
      std::erase_if(conflicts, [](const auto& found) { return found.second.empty(); });
      return conflict_error(std::move(conflicts));
    }
    return server_side_apply(kind, live, configuration, {manager.name, manager.subresource, true, manager.beside_status}, now,
                             std::move(memory));
  }

  if (own != entries.end()) {
    json::object said = mine;
    if (!said.contains("f:metadata")) said["f:metadata"].emplace_object();  // an object always keeps its name
    const KindInfo& mine_then = *kind.version(own->api_version);
    json::object held = &mine_then == &kind ? std::move(own->fields)
                                            : translated(own->fields, mine_then, kind, elsewhere.of(mine_then).indexed_applied);
    if (prune(root, merged, held, said, others)) {
      std::map<const KindInfo*, json::object> gone;  // by version, with what others hold in an item
      for (auto entry = entries.begin(); entry != entries.end(); ++entry) {
        if (entry == own) continue;
        const KindInfo& theirs = *kind.version(entry->api_version);
        auto [there, fresh] = gone.try_emplace(&theirs);
        if (fresh) there->second = TRY(removed_in(theirs, kind, live, merged));
        entry->fields = difference_of(entry->fields, there->second);
      }
    }
    if (&mine_then == &kind) own->fields = std::move(held);
  }
  for (Entry& entry : entries)
    if (entry.time.empty() && entry.manager == kBeforeFirstApply) entry.time = format_time(now);
  // The time is of the last change of the object: whoever applies what is there already has none. Source: apimachinery
  // managedfields, managedfieldsupdater.go.
  const bool changes = !same_json(merged, live);
  if (own == entries.end()) {
    entries.push_back({manager.name, "Apply", version, changes ? format_time(now) : "", manager.subresource, std::move(mine)});
  } else {
    own->fields = std::move(mine);
    own->api_version = version;
    if (changes) own->time = format_time(now);
  }
  write_entries(merged, std::move(entries));
  // A Scale has no annotations: applying one does not affect the annotation.
  if (manager.name == "kubectl" && manager.subresource != "scale") update_last_applied(merged, configuration);
  return merged;
}

json::object written_fields(const KindInfo& kind, const json::value& old, const json::value& sent) {
  Place root = Place::of(kind.type());
  json::object written = old.is_object() ? changed_fields(root, old, sent) : fields_of(root, sent, Dots::yes);
  strip_unowned(written);
  return written;
}

void track_update(const KindInfo& kind, const json::value& old, json::value& object, const Manager& manager, WallTime now) {
  track_update(kind, old, object, written_fields(kind, old, object), manager, now);
}

void track_update(const KindInfo& kind, const json::value& old, json::value& object, json::object written, const Manager& manager,
                  WallTime now) {
  if (!object.is_object()) return;
  const json::value* given = find(object, "metadata.managedFields");
  const json::array* entries_given = given ? given->if_array() : nullptr;
  const json::object* only = entries_given && entries_given->size() == 1 ? entries_given->front().if_object() : nullptr;
  bool reset = entries_given && (entries_given->empty() || (only && only->empty()));
  const bool of_main = manager.subresource.empty();
  std::vector<Entry> entries;
  if (!(reset && of_main)) entries = entries_of(of_main && tells_holders(object) ? object : old, object.storage());
  if (entries.empty() && old.is_object() && (reset || !manager.begins_record)) {
    write_entries(object, {});
    return;
  }
  Place root = Place::of(kind.type());
  std::string version = kind.kind.api_version();
  json::object removed = removed_fields(root, old, object);
  strip_unowned(removed);
  drop_unknown_versions(kind, entries);
  auto is_own = [&](const Entry& entry) { return entry.updates(manager, version); };
  json::object lost(object.storage());  // for managers other than this one
  if (!std::ranges::all_of(entries, is_own)) lost = union_of(union_of(removed, written_fields(kind, old, object)), written);
  auto own = entries.end();
  std::map<const KindInfo*, json::object> lost_elsewhere;  // by version
  for (auto entry = entries.begin(); entry != entries.end(); ++entry) {
    if (const KindInfo& theirs = *kind.version(entry->api_version); &theirs != &kind) {
      auto [there, fresh] = lost_elsewhere.try_emplace(&theirs);
      if (fresh) {
        Place place = Place::of(theirs.type());
        json::value was = convert(kind, theirs, old), is = convert(kind, theirs, object);
        there->second = union_of(removed_fields(place, was, is), changed_fields(place, was, is));
      }
      subtract(entry->fields, there->second);
      continue;
    }
    if (is_own(*entry)) own = entry;
    subtract(entry->fields, entry == own ? removed : lost);
  }
  if (!written.empty() && own != entries.end()) {
    own->fields = union_of(std::move(own->fields), written);
    own->time = format_time(now);
  } else if (!written.empty()) {
    entries.push_back({manager.name, "Update", version, format_time(now), manager.subresource, std::move(written)});
  }
  cap_updates(entries);
  write_entries(object, std::move(entries));
}

namespace {

bool equal_but_for(std::initializer_list<std::string_view> left_out, const json::object& a, const json::object& b) {
  auto is_left_out = [&](std::string_view name) { return std::find(left_out.begin(), left_out.end(), name) != left_out.end(); };
  auto counted = [&](const json::object& object) {
    return std::count_if(object.begin(), object.end(), [&](const auto& field) { return !is_left_out(field.key()); });
  };
  return counted(a) == counted(b) && std::all_of(a.begin(), a.end(), [&](const auto& field) {
           const json::value* other = is_left_out(field.key()) ? &field.value() : b.if_contains(field.key());
           return other && same_json(*other, field.value());
         });
}

// Of entries of managedFields.
bool equal_but_for_times(const json::value& a, const json::value& b) {
  const json::array *left = a.if_array(), *right = b.if_array();
  if (!left || !right) return same_json(a, b);
  return std::ranges::equal(*left, *right, [](const json::value& one, const json::value& other) {
    bool objects = one.is_object() && other.is_object();
    return objects ? equal_but_for({"time"}, one.get_object(), other.get_object()) : same_json(one, other);
  });
}

}  // namespace

void keep_times_of_unchanged(const json::value& old, json::value& object) {
  const json::value* shown_before = find(old, "metadata");
  const json::object* metadata_before = shown_before ? shown_before->if_object() : nullptr;
  json::object* metadata = object.is_object() ? make(object, "metadata").if_object() : nullptr;
  if (!metadata || !metadata_before) return;
  const json::value* entries_before = metadata_before->if_contains("managedFields");
  json::value* entries = metadata->if_contains("managedFields");
  if (!entries || !entries_before || same_json(*entries, *entries_before)) return;
  if (equal_but_for_times(*entries, *entries_before) &&
      equal_but_for({"managedFields", "resourceVersion"}, *metadata, *metadata_before) &&
      equal_but_for({"metadata"}, object.get_object(), old.get_object()))
    *entries = *entries_before;
}

}  // namespace coracle::schema
