// SPDX-License-Identifier: Apache-2.0
// See provisioner.h.
#include "daemon/volume/local/provisioner.h"

#include <algorithm>
#include <set>
#include <span>

#include "daemon/volume/match.h"
#include "runtime/base/log.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/conditions.h"
#include "store/object/finalizers.h"
#include "store/schema/views.h"

namespace coracle::volume {
namespace {

constexpr std::string_view kClaimKey = "claim/", kVolumeKey = "volume";
constexpr std::string_view kFinalizer = "external-provisioner.volume.kubernetes.io/finalizer";
constexpr std::string_view kNodePath = "nodePath";  // parameter of classes
constexpr const char* kByVolume = "volume";         // index of claims
constexpr const char* kByPlace = "place";           // index of volumes
constexpr const char* kForeign = "foreign";         // index of volumes: those that may name another's directory by another path
constexpr std::chrono::seconds kInUseAgain{1};
constexpr std::chrono::minutes kSharedAgain{1};
constexpr std::chrono::minutes kClearAgain{1};
constexpr std::chrono::seconds kDiskAgain{10};      // a disk that is not mounted tells nobody when it is
constexpr std::chrono::seconds kCopyToldAgain{30};  // interval of progress events of a copy
constexpr std::chrono::minutes kAttributesAgain{1};
constexpr std::chrono::minutes kFailureToldAgain{1};  // shortest time between two reasons in a claim's status

constexpr std::string_view kResizing = "ControllerResizeInProgress";
constexpr std::string_view kResizeConditions[] = {"Resizing", "FileSystemResizePending", "ControllerResizeError",
                                                  "NodeResizeError"};
constexpr std::string_view kModifying = "ModifyingVolume", kModifyError = "ModifyVolumeError";
constexpr std::string_view kModifyConditions[] = {kModifying, kModifyError};

// The conditions of other types.
json::array conditions_without(const Object& claim, std::span<const std::string_view> types) {
  json::array kept;
  for (const json::value& each : view::PersistentVolumeClaim(claim).status().conditions().raw())
    if (std::ranges::find(types, view::Condition(each).type()) == types.end()) kept.push_back(each);
  return kept;
}

// Sets the conditions of a claim's status; none: no member.
void set_conditions(json::value& claim, json::array conditions) {
  if (conditions.empty()) make(claim, "status").as_object().erase("conditions");
  else make(claim, "status.conditions") = std::move(conditions);
}

json::value condition_of(std::string_view type, const std::string& message, WallTime now) {
  json::object condition{{"type", type}, {"status", "True"}, {"lastTransitionTime", format_time(now)}};
  if (!message.empty()) condition["message"] = message;
  return condition;
}

Key key_of_claim(const Key& claim) { return {std::string(kClaimKey) + claim.ns, claim.name}; }
Key key_of_volume(std::string_view name) { return {std::string(kVolumeKey), std::string(name)}; }

std::string text_of(const Copied& count) {
  return std::to_string(count.entries) + " files and directories, " + std::to_string(count.bytes.count) + " bytes";
}

bool is_on(const Object& volume, std::string_view node) {
  for (view::NodeSelectorTerm term : view::PersistentVolume(volume).spec().node_affinity().required().node_selector_terms())
    for (view::NodeSelectorRequirement one : term.match_expressions())
      for (std::string_view value : one.values())
        if (one.key() == "kubernetes.io/hostname" && value == node) return true;
  return false;
}

// Its node affinity excludes the node by its name. What other labels ask for is not looked at: then it may be here.
bool is_elsewhere(const Object& volume, std::string_view node) {
  auto excludes = [&](view::NodeSelectorRequirement one, std::string_view key) {
    if (one.key() != key) return false;
    auto values = one.values();
    const bool is_named = std::any_of(values.begin(), values.end(), [&](std::string_view value) { return value == node; });
    return one.operator_() == "In" ? !is_named : one.operator_() == "NotIn" && is_named;
  };
  auto excluded = [&](view::NodeSelectorTerm term) {
    auto labels = term.match_expressions(), fields = term.match_fields();
    return std::any_of(labels.begin(), labels.end(), [&](auto one) { return excludes(one, "kubernetes.io/hostname"); }) ||
           std::any_of(fields.begin(), fields.end(), [&](auto one) { return excludes(one, "metadata.name"); });
  };
  auto terms = view::PersistentVolume(volume).spec().node_affinity().required().node_selector_terms();
  return !terms.empty() && std::all_of(terms.begin(), terms.end(), excluded);
}

std::string without_attributes(std::string_view attributes_class) {
  return "a directory has none of the attributes that the VolumeAttributesClass " + quoted(attributes_class) + " could set";
}

// Why a directory cannot be the volume of such a claim; "" if it can.
std::string unsupported(view::PersistentVolumeClaimSpec claim) {
  if (claim.volume_mode() == "Block") return "a directory is no block device";
  if (claim.has_selector()) return "claim Selector is not supported";
  if (!claim.volume_attributes_class_name().empty()) return without_attributes(claim.volume_attributes_class_name());
  if (!claim.has_data_source_ref()) return "";
  view::TypedObjectReference source = claim.data_source_ref();
  if (source.kind() != "PersistentVolumeClaim" || !source.api_group().empty())
    return "a directory is filled from a PersistentVolumeClaim, not from a " + std::string(source.kind());
  if (!source.namespace_().empty()) return "a directory is not filled from another namespace";
  return "";
}

std::string place_of(const Object& volume) {
  view::PersistentVolumeSpec spec = view::PersistentVolume(volume).spec();
  return std::string(spec.has_local() ? spec.local().path() : spec.host_path().path());
}

// The root that the class wants for its volumes; "": any.
std::string root_of(const Object& storage_class) {
  const json::value* path = view::StorageClass(storage_class).parameters().if_contains(kNodePath);
  std::string root = path && path->is_string() ? std::string(path->get_string()) : std::string();
  while (root.size() > 1 && root.ends_with('/')) root.pop_back();
  return root;
}

// It has a directory of this node, and its name and path are not those that the provisioner gives: it may be any directory.
bool is_foreign(const Object& volume) {
  constexpr std::string_view kOurName = "pvc-";
  std::string place = place_of(volume);
  std::string_view uid = volume.name();
  bool is_made = is_local_provisioner(volume.annotation(kProvisionedBy)) && uid.starts_with(kOurName) &&
                 place.ends_with("_" + std::string(uid.substr(kOurName.size())));
  return !place.empty() && !is_made;
}

// Its claim was deleted.
bool is_released(const Object& volume) {
  std::string_view phase = view::PersistentVolume(volume).status().phase();
  return phase == "Released" || phase == "Failed";
}

// No claim uses it any more, or the intended claim will never be bound.
bool is_over(const Object& volume) {
  bool deleted_unbound = volume.deleting() && view::PersistentVolume(volume).status().phase() != "Bound";
  return is_released(volume) || deleted_unbound;
}

std::string volume_name(const Object& claim) { return "pvc-" + claim.uid(); }

json::value volume_for(const Object& claim, const Object& storage_class, const std::string& node, const std::string& path) {
  view::PersistentVolumeClaimSpec wanted = view::PersistentVolumeClaim(claim).spec();
  view::StorageClass of(storage_class);
  json::array modes;
  for (std::string_view mode : wanted.access_modes()) modes.emplace_back(mode);
  json::value here = {{"key", "kubernetes.io/hostname"}, {"operator", "In"}, {"values", json::array{node}}};
  json::object spec{
      {"capacity", {{"storage", request_of(claim).text()}}},
      {"accessModes", std::move(modes)},
      {"persistentVolumeReclaimPolicy", of.reclaim_policy()},
      {"storageClassName", storage_class.name()},
      {"volumeMode", "Filesystem"},
      {"local", {{"path", path}}},
      {"nodeAffinity",
       {{"required", {{"nodeSelectorTerms", json::array{json::object{{"matchExpressions", json::array{std::move(here)}}}}}}}}},
      {"claimRef", claim_reference(claim)},
  };
  json::array options;
  for (std::string_view option : of.mount_options()) options.emplace_back(option);
  if (!options.empty()) spec["mountOptions"] = std::move(options);
  return {{"apiVersion", "v1"},
          {"kind", "PersistentVolume"},
          {"metadata",
           {{"name", volume_name(claim)},
            {"annotations", {{kProvisionedBy, of.provisioner()}}},
            {"finalizers", json::array{kFinalizer}}}},
          {"spec", std::move(spec)}};
}

}  // namespace

Provisioner::Provisioner(std::string node_name, ProvisionerSeams seams)
    : node_name_(std::move(node_name)), seams_(std::move(seams)) {
  seams_.claims.add_index(kByVolume, [](const Object& claim) {
    std::string name(view::PersistentVolumeClaim(claim).spec().volume_name());
    return name.empty() ? std::vector<std::string>() : std::vector{std::move(name)};
  });
  seams_.volumes.add_index(kByPlace, [](const Object& volume) {
    std::string place = place_of(volume);
    return place.empty() ? std::vector<std::string>() : std::vector{std::move(place)};
  });
  seams_.volumes.add_index(kForeign, [](const Object& volume) {
    return is_foreign(volume) ? std::vector<std::string>{kForeign} : std::vector<std::string>();
  });
}

// Whatever node a claim names when it is deleted, it may have named this one before: a crash may lose the scheduler's choice,
// but not the directory.
void Provisioner::on_claim(const Informer::Change& change) {
  const Key key = change.any().key();
  if (!change.after) left_something_.with([&](auto& claims) { claims.insert(key); });
  seams_.enqueue(key_of_claim(key));
}

void Provisioner::on_volume(const Informer::Change& change) const {
  if (!is_served(change.any())) return;
  if (change.after) return seams_.enqueue(key_of_volume(change.after->name()));
  view::ObjectReference claim = view::PersistentVolume(*change.before).spec().claim_ref();  // the claim may need another volume
  seams_.enqueue(key_of_claim({std::string(claim.namespace_()), std::string(claim.name())}));
}

void Provisioner::on_class(const Informer::Change& change) const {
  if (!change.after || !is_local_provisioner(view::StorageClass(*change.after).provisioner())) return;
  for (const ObjectPtr& claim : seams_.claims.list())
    if (!is_bound(*claim) && class_of(*claim) == change.after->name()) seams_.enqueue(key_of_claim(claim->key()));
}

bool Provisioner::is_key(const Key& key) { return key.ns.starts_with(kClaimKey) || key.ns == kVolumeKey; }

// Also those that k3s made on this node before: they are hostPath volumes in a directory of its own.
bool Provisioner::is_served(const Object& volume) const {
  return is_local_provisioner(volume.annotation(kProvisionedBy)) && is_on(volume, node_name_);
}

bool Provisioner::is_ours(const Object& volume) const {
  return is_served(volume) && view::PersistentVolume(volume).spec().has_local();
}

bool Provisioner::is_in_root(const Object& volume) const {
  const std::string place = place_of(volume);
  return std::ranges::find(seams_.directories.roots(), place.substr(0, place.rfind('/'))) != seams_.directories.roots().end();
}

bool Provisioner::may_provision(const Object& claim) const {
  if (!view::PersistentVolumeClaim(claim).spec().volume_name().empty()) return false;
  ObjectPtr storage_class = seams_.classes.get({"", class_of(claim)});
  return storage_class && is_local_provisioner(view::StorageClass(*storage_class).provisioner());
}

Result<Outcome> Provisioner::reconcile(const Key& key) {
  if (key.ns == kVolumeKey) return key.name.empty() ? reconcile_clearing() : reconcile_volume(key.name);
  return reconcile_claim({key.ns.substr(kClaimKey.size()), key.name});
}

// ---- claims ----

Result<Outcome> Provisioner::reconcile_claim(const Key& key) {
  // Asked before the claim is read: if that is there, what it leaves will be noted.
  const bool left_something = left_something_.with([&](auto& claims) { return claims.erase(key) > 0; });
  ObjectPtr claim = seams_.claims.get(key);
  if (left_something || !claim) clear();  // removes an unpublished directory
  if (!claim) {
    copies_.with([&](auto& copies) {
      if (auto found = copies.find(key); found != copies.end() && !found->second.runs) copies.erase(found);
    });
  }
  if (!claim || claim->deleting()) return Outcome{};
  std::string named(view::PersistentVolumeClaim(*claim).spec().volume_name());
  if (is_bound(*claim)) {
    ObjectPtr volume = seams_.volumes.get({"", named});
    if (!volume || !is_served(*volume)) return Outcome{};
    if (!is_reserved_for(*volume, *claim)) return Outcome{};  // two claims name it: it is the other one's
    auto expanded = expand(*claim, *volume);
    auto refused = refuse_attributes(expanded ? **expanded : *claim, *volume);
    if (!expanded) return expanded.take_error();
    return refused;
  }
  if (claim->annotation(kSelectedNode) != node_name_) return Outcome{};
  if (!may_provision(*claim)) return Outcome{};
  ObjectPtr storage_class = seams_.classes.get({"", class_of(*claim)});
  if (!storage_class) return Outcome{};
  auto done = provision(*claim, *storage_class);
  if (!done) {
    clear();  // a directory that was staged
    seams_.events.warning(
        *claim, "ProvisioningFailed",
        "failed to provision volume with StorageClass " + quoted(storage_class->name()) + ": " + done.error().text());
  }
  return std::move(done).wrap("provision a volume for " + key.text());
}

Result<Outcome> Provisioner::provision(const Object& claim, const Object& storage_class) {
  if (ObjectPtr there = seams_.volumes.get({"", volume_name(claim)})) {
    TRY(publish(*there));
    return Outcome{};
  }
  if (std::string why = unsupported(view::PersistentVolumeClaim(claim).spec()); !why.empty())
    return Error(Code::unsupported, why);
  const std::string root = root_of(storage_class);
  auto filled = fill(claim, root);
  if (!filled && filled.error().code() == Code::conflict) return Outcome{kInUseAgain};
  bool is_filled = TRY(std::move(filled));
  if (!is_filled) return Outcome{};
  auto placed = seams_.directories.make(claim.key(), claim.uid(), request_of(claim).bytes(), root);
  // Another node may have what this one lacks. A claim that has a source can be filled on this node alone. Without the scheduler,
  // nobody would select another one. If the node stays selected, the next attempt removes it.
  const bool may_move = waits_for_consumer(&storage_class) && !view::PersistentVolumeClaim(claim).spec().has_data_source_ref();
  if (!placed && may_move) (void)unselect_node(claim);
  Directories::Made made = TRY(std::move(placed));
  auto created = seams_.client.create(kPersistentVolume, volume_for(claim, storage_class, node_name_, made.path));
  if (!created && created.error().code() == Code::already_exists) return Outcome{};  // the cache will show it and trigger a retry
  ObjectPtr volume = TRY(std::move(created).wrap("create the volume"));
  TRY(publish(*volume));
  seams_.events.normal(claim, "ProvisioningSucceeded", "Successfully provisioned volume " + volume->name());
  tell_passed_over(claim, made.passed_over);
  tell_ignored(claim, storage_class, made.path);
  if (!made.unlimited.empty())
    seams_.events.warning(claim, "SizeNotEnforced",
                          "nothing holds the volume to its size on " + made.path + ": " + made.unlimited);
  return Outcome{};
}

void Provisioner::tell_passed_over(const Object& claim, const std::vector<std::string>& roots) const {
  for (const std::string& root : roots)
    seams_.events.warning(claim, "VolumeDirUnavailable", "the volume was made elsewhere: " + root);
}

// Somebody may look for the volume where a parameter of local-path-provisioner puts it there.
void Provisioner::tell_ignored(const Object& claim, const Object& storage_class, const std::string& path) const {
  std::vector<std::string> names;
  for (const auto& [name, value] : view::StorageClass(storage_class).parameters())
    if (name != kNodePath) names.emplace_back(name);
  if (names.empty()) return;
  std::ranges::sort(names);
  seams_.events.warning(
      claim, "ParametersIgnored",
      "the class " + storage_class.name() + " has parameters that mean nothing for " + path + ": " + join(names, ", "));
}

// ---- claims with a data source ----

// The source claim, if its volume can be copied.
Result<ObjectPtr> Provisioner::source_of(const Object& claim) const {
  std::string name(view::PersistentVolumeClaim(claim).spec().data_source_ref().name());
  ObjectPtr source = seams_.claims.get({std::string(claim.ns()), name});
  if (!source) return Error(Code::not_found, "error getting PVC " + name + " (namespace " + quoted(claim.ns()) + "): not found");
  if (!is_bound(*source)) return Error(Code::unavailable, "the PVC " + name + " that it is filled from is not bound");
  ObjectPtr volume = seams_.volumes.get({"", std::string(view::PersistentVolumeClaim(*source).spec().volume_name())});
  if (!volume || !is_ours(*volume))
    return Error(Code::unsupported,
                 "the volume of the PVC " + name + " that it is filled from is no directory that this node made");
  if (request_of(claim) < capacity_of(*volume))
    return Error(Code::invalid,
                 "error, new PVC request must be greater than or equal in size to the specified PVC data source, requested " +
                     request_of(claim).text() + " but source is " + capacity_of(*volume).text());
  return source;
}

// Returns whether the claim's directory may be created, because it starts empty or the copy is complete. Errors: conflict if the
// copy waits for pods that use its source.
Result<bool> Provisioner::fill(const Object& claim, const std::string& root) {
  if (!view::PersistentVolumeClaim(claim).spec().has_data_source_ref()) return true;
  const Key key = claim.key();
  const std::string uid(claim.uid());
  auto known = copies_.with([&](auto& copies) -> std::optional<Result<bool>> {
    auto found = copies.find(key);
    if (found == copies.end() || !found->second.waits.empty()) return std::nullopt;
    if (found->second.runs) return Result<bool>(false);
    if (found->second.uid != uid) return std::nullopt;  // of an earlier claim with the same name
    Result<void> done = std::move(found->second.result);
    copies.erase(found);
    return done ? Result<bool>(true) : Result<bool>(done.take_error());
  });
  if (known) return *std::move(known);
  ObjectPtr source = TRY(source_of(claim));
  if (seams_.in_use(source->key())) {
    std::string why =
        "waits until no pod uses the PVC " + std::string(source->name()) + ": a copy made meanwhile would not be consistent";
    bool told = copies_.with([&](auto& copies) {
      Copy& waiting = copies[key];
      waiting.runs = false;
      return std::exchange(waiting.waits, why) == why;
    });
    if (!told) seams_.events.normal(claim, "WaitForDataSource", why);
    return Error(Code::conflict, why);
  }
  auto staged = TRY(seams_.directories.stage_first(key, uid, request_of(claim).bytes(), root));
  if (!staged) return true;
  copies_.with([&](auto& copies) { copies[key] = {}; });
  tell_passed_over(claim, staged->passed_over);
  seams_.events.normal(claim, "CopyingData", "copying what the PVC " + std::string(source->name()) + " holds");
  copy(claim, *source, std::make_shared<Directories::Staged>(*std::move(staged)));
  return false;
}

void Provisioner::copy(const Object& claim, const Object& source, std::shared_ptr<Directories::Staged> staged) {
  auto disk_of = [&](std::string_view path) { return seams_.directories.disk_of(std::string(path.substr(0, path.rfind('/')))); };
  ObjectPtr from = seams_.volumes.get({"", std::string(view::PersistentVolumeClaim(source).spec().volume_name())});
  const std::string owner = (from ? disk_of(place_of(*from)) : std::string()) + " to " + disk_of(staged->path);
  auto task = [this, claim = claim.shared_from_this(), source = source.key(), staged](std::stop_token stop) {
    SteadyTime told = seams_.clock.steady();
    auto so_far = [&](const Copied& count) {
      if (seams_.clock.steady() - told < kCopyToldAgain) return;
      told = seams_.clock.steady();
      seams_.events.normal(*claim, "CopyingData", "copied so far: " + text_of(count));
    };
    auto copied = seams_.copy(source, staged->directory, so_far, stop);
    Result<void> done = copied ? seams_.directories.put_staged(staged->path) : Result<void>(copied.take_error());
    if (!done) (void)seams_.directories.unstage(staged->path), clear();
    if (done) seams_.events.normal(*claim, "CopiedData", "copied " + text_of(*copied));
    copies_.with([&](auto& copies) { copies[claim->key()] = {false, std::string(claim->uid()), std::move(done), ""}; });
    ObjectPtr now = seams_.claims.get(claim->key());
    if (!now || now->uid() != claim->uid()) left_something_.with([&](auto& claims) { claims.insert(claim->key()); });
    seams_.enqueue(key_of_claim(claim->key()));
  };
  seams_.copy_in_background(std::move(task), owner);
}

Result<void> Provisioner::publish(const Object& volume) { return seams_.directories.publish(place_of(volume)); }

// A bound claim may name a VolumeAttributesClass later, and take the name back. Source: kubernetes-csi/external-resizer,
// pkg/modifycontroller, whose driver answers InvalidArgument.
Result<Outcome> Provisioner::refuse_attributes(const Object& claim, const Object& volume) {
  view::PersistentVolumeClaim view(claim);
  const std::string wanted(view.spec().volume_attributes_class_name());
  if (wanted.empty()) {
    if (!find_condition(claim.json(), kModifying)) return Outcome{};
    json::value body = claim.json();
    set_conditions(body, conditions_without(claim, {&kModifying, 1}));
    TRY(write_status(body));
    seams_.events.normal(claim, "VolumeModifyCanceled", "Cancelled modify.");
    return Outcome{};
  }
  view::ModifyVolumeStatus last = view.status().modify_volume_status();
  const bool is_told = last.target_volume_attributes_class_name() == wanted;
  if (wanted == view.status().current_volume_attributes_class_name() || (is_told && last.status() == "Infeasible"))
    return Outcome{};
  auto known = seams_.client.get(kVolumeAttributesClass, {"", wanted});
  const bool is_missing = !known && known.error().code() == Code::not_found;
  if (!is_missing) TRY(std::move(known).wrap("read the VolumeAttributesClass " + quoted(wanted)));
  if (is_missing && is_told && last.status() == "Pending") return Outcome{kAttributesAgain};
  json::value body = claim.json();
  make(body, "status.modifyVolumeStatus") =
      json::object{{"targetVolumeAttributesClassName", wanted}, {"status", is_missing ? "Pending" : "Infeasible"}};
  if (is_missing) {
    TRY(write_status(body));
    seams_.events.warning(claim, "VolumeModifyFailed", "VAC " + quoted(wanted) + " does not exist.");
    return Outcome{kAttributesAgain};
  }
  const WallTime now = seams_.clock.now();
  const std::string why = without_attributes(wanted);
  json::value modifying = condition_of(kModifying, "Modifying volume to " + quoted(wanted) + " failed. Waiting for retry.", now);
  json::value error = condition_of(kModifyError, why, now);
  error.get_object()["reason"] = "InvalidArgument";
  json::array conditions = conditions_without(claim, kModifyConditions);
  for (json::value* each : {&modifying, &error}) {
    each->get_object()["lastProbeTime"] = format_time(now);
    conditions.push_back(std::move(*each));
  }
  set_conditions(body, std::move(conditions));
  TRY(write_status(body));
  seams_.events.warning(claim, "VolumeModifyFailed", "failed to modify volume " + quoted(volume.name()) + ": " + why);
  return Outcome{};
}

// Returns the claim as it is then. Source: kubernetes-csi/external-resizer; pkg/volume/util/resize_util.go. The quota is the size
// of the file system, so nothing is left for the node to do, and no FileSystemResizePending.
Result<ObjectPtr> Provisioner::expand(const Object& claim, const Object& volume) {
  const Quantity wanted = request_of(claim);
  const json::value* shown = view::PersistentVolumeClaim(claim).status().capacity().if_contains("storage");
  ObjectPtr now = claim.shared_from_this();
  if (!shown) return now;  // the binder has not written it yet
  if (capacity_of(volume) < wanted) {
    now = TRY(begin_expansion(claim, volume, wanted));
    const std::string path = place_of(volume);
    // Nothing holds a directory of k3s to a size.
    auto sized = is_ours(volume) ? seams_.directories.set_size(path, wanted.bytes()) : Directories::Made{path, ""};
    if (!sized) {
      seams_.events.warning(claim, "VolumeResizeFailed",
                            "resize volume " + quoted(volume.name()) + " by resizer " +
                                quoted(volume.annotation(kProvisionedBy)) + " failed: " + sized.error().text());
      TRY(note_failed_expansion(*now, sized.error()));
    }
    TRY(std::move(sized).wrap("resize " + path));
    TRY(seams_.client.patch(kPersistentVolume, volume.key(), PatchType::merge,
                            {{"spec", {{"capacity", {{"storage", wanted.text()}}}}}}));
  }
  auto present = Quantity::from_json(*shown);
  view::PersistentVolumeClaimStatus of_claim = view::PersistentVolumeClaim(*now).status();
  const bool has_begun = of_claim.allocated_resource_statuses().contains("storage");
  if (!present || (*present >= wanted && !has_begun)) return now;
  // The request may have been lowered after the volume had grown: what began comes to its end first.
  Quantity size = wanted;
  if (const json::value* begun = has_begun ? of_claim.allocated_resources().if_contains("storage") : nullptr)
    if (auto larger = Quantity::from_json(*begun); larger && *larger > size && *larger <= capacity_of(volume)) size = *larger;
  json::value body = now->json();
  if (*present < size) make(body, "status.capacity.storage") = size.text();
  set_conditions(body, conditions_without(*now, kResizeConditions));
  json::object& status = make(body, "status").as_object();
  if (json::value* states = status.if_contains("allocatedResourceStatuses"); states && states->is_object()) {
    states->get_object().erase("storage");
    if (states->get_object().empty()) status.erase("allocatedResourceStatuses");
  }
  now = TRY(write_status(body));
  seams_.events.normal(claim, "VolumeResizeSuccessful", "Resize volume succeeded");
  return now;
}

// Returns the claim with a status that names the new size. It has one already if an earlier attempt was interrupted or failed.
Result<ObjectPtr> Provisioner::begin_expansion(const Object& claim, const Object& volume, const Quantity& wanted) {
  view::PersistentVolumeClaimStatus status = view::PersistentVolumeClaim(claim).status();
  const json::value* state = status.allocated_resource_statuses().if_contains("storage");
  const json::value* size = status.allocated_resources().if_contains("storage");
  if (state && state->is_string() && state->get_string() == kResizing && size) {
    auto begun = Quantity::from_json(*size);
    if (begun && *begun == wanted) return claim.shared_from_this();
  }
  json::value body = claim.json();
  make(body, "status.allocatedResourceStatuses.storage") = kResizing;
  make(body, "status.allocatedResources.storage") = wanted.text();
  json::array conditions = conditions_without(claim, kResizeConditions);
  conditions.push_back(condition_of("Resizing", "", seams_.clock.now()));
  set_conditions(body, std::move(conditions));
  ObjectPtr written = TRY(write_status(body));
  seams_.events.normal(claim, "Resizing", "External resizer is resizing volume " + volume.name());
  return written;
}

Result<void> Provisioner::note_failed_expansion(const Object& claim, const Error& why) {
  constexpr std::string_view kFailed = "ControllerResizeError";
  const WallTime now = seams_.clock.now();
  json::value failed = condition_of(kFailed, "failed to expand pvc with " + why.text(), now);
  if (const json::value* told = find_condition(claim.json(), kFailed)) {
    // A change of the claim is a reason to try again: texts that are never the same must not make a loop of that.
    auto since = parse_time(view::Condition(*told).last_transition_time());
    const bool is_recent = since && *since <= now && now - *since < kFailureToldAgain;
    if (is_recent || view::Condition(*told).message() == view::Condition(failed).message()) return {};
  }
  json::array conditions = conditions_without(claim, {&kFailed, 1});
  conditions.push_back(std::move(failed));
  json::value body = claim.json();
  set_conditions(body, std::move(conditions));
  TRY(write_status(body));
  return {};
}

// Errors: conflict if it is not made from the newest claim.
Result<ObjectPtr> Provisioner::write_status(const json::value& claim) {
  return seams_.client.update(kPersistentVolumeClaim, claim, {.subresource = "status"}).wrap("write the status");
}

// ---- volumes ----

Result<Outcome> Provisioner::reconcile_volume(const std::string& name) {
  ObjectPtr volume = seams_.volumes.get({"", name});
  if (!volume || !is_served(*volume)) return Outcome{};
  const bool is_known = is_in_root(*volume);
  auto published = is_known ? publish(*volume) : Result<void>();
  if (!published && published.error().code() == Code::unavailable) return wait_for_disk(*volume, published.error());
  TRY(std::move(published));
  view::PersistentVolume view(*volume);
  if (!is_over(*volume)) return Outcome{};
  bool deletes = view.spec().persistent_volume_reclaim_policy() == "Delete";
  if (!deletes && !volume->deleting()) return Outcome{};
  if (deletes && !is_known) {
    seams_.events.warning(*volume, "VolumeFailedDelete",
                          place_of(*volume) +
                              " is in none of the directories for volumes: delete what it holds by hand, then set "
                              "the volume's reclaim policy to Retain and delete the volume");
    return Outcome{};  // only a change of the volume changes that
  }
  auto others = deletes ? others_at_place_of(*volume) : Result<std::string>("");
  if (!others || !others->empty()) {
    seams_.events.warning(*volume, "VolumeFailedDelete",
                          others ? "what it holds is also that of the PersistentVolume " + *others : others.error().text());
    return Outcome{kSharedAgain};
  }
  auto used = TRY(is_in_use(*volume));
  if (used) return Outcome{kInUseAgain};
  if (!volume->deleting()) {
    TRY(delete_object(*volume));
    return Outcome{};
  }
  auto aside = deletes ? seams_.directories.set_aside(place_of(*volume)) : Result<void>();
  if (!aside && aside.error().code() == Code::unavailable) return wait_for_disk(*volume, aside.error());
  if (!aside) seams_.events.warning(*volume, "VolumeFailedDelete", aside.error().text());
  TRY(std::move(aside));
  TRY(finish_deletion(*volume));
  if (deletes) clear();
  return Outcome{};
}

// Nothing on a disk that is away counts as deleted. The object stays, so that its data and its quota go when the disk returns.
Result<Outcome> Provisioner::wait_for_disk(const Object& volume, const Error& why) const {
  const bool is_deleted = is_over(volume) && view::PersistentVolume(volume).spec().persistent_volume_reclaim_policy() == "Delete";
  if (is_deleted) seams_.events.warning(volume, "VolumeFailedDelete", why.text());
  return Outcome{kDiskAgain};
}

// Reads the store instead of the caches, because the data is deleted for good.
Result<bool> Provisioner::is_in_use(const Object& volume) {
  auto present = seams_.client.get(kPersistentVolume, volume.key());
  if (!present && present.error().code() == Code::not_found) return true;  // the cache will show the deletion
  if (!present) return present.take_error();
  view::PersistentVolume view(**present);
  if ((*present)->uid() != volume.uid() || !is_over(**present)) return true;
  if (is_in_use_by_name(volume)) return true;
  Key key{std::string(view.spec().claim_ref().namespace_()), std::string(view.spec().claim_ref().name())};
  auto claim = seams_.client.get(kPersistentVolumeClaim, key);
  if (!claim && claim.error().code() != Code::not_found) return claim.take_error();
  if (!claim) return seams_.in_use(key);
  // Pods of the new claim use another volume.
  if ((*claim)->uid() != view.spec().claim_ref().uid()) return seams_.in_use_yet(key);
  if (seams_.in_use(key)) return true;
  std::string_view has = view::PersistentVolumeClaim(**claim).spec().volume_name();
  if (!has.empty() || is_released(**present)) return has.empty() || has == volume.name();
  TRY(unselect_node(**claim));
  return false;
}

// A user may have written another claim to the volume: pods of the earlier claim may still use it.
bool Provisioner::is_in_use_by_name(const Object& volume) const {
  return std::ranges::any_of(seams_.claims.by_index(kByVolume, volume.name()),
                             [&](const ObjectPtr& claim) { return seams_.in_use(claim->key()); });
}

// A user may have created another volume with the same directory, for example by copying this one, or with a part of it: its
// claim may use the data. Errors: it cannot be told.
Result<std::string> Provisioner::others_at_place_of(const Object& volume) const {
  const std::string place = place_of(volume);
  std::set<std::string> names;
  for (const ObjectPtr& other : seams_.volumes.by_index(kByPlace, place))
    if (!is_elsewhere(*other, node_name_)) names.insert(other->name());
  for (const ObjectPtr& other : seams_.volumes.by_index(kForeign, kForeign)) {
    if (is_elsewhere(*other, node_name_)) continue;
    bool is_there = TRY(seams_.directories.holds(place, place_of(*other), seams_.answers)
                            .wrap("it cannot be told whether the PersistentVolume " + other->name() + " is the same directory"));
    if (is_there) names.insert(other->name());
  }
  names.erase(volume.name());
  return join(std::vector<std::string>(names.begin(), names.end()), ", ");
}

// Removes the selected node, so that the claim's pod is scheduled again. The resourceVersion ensures that the claim was not bound
// since it was read. Source: kube-scheduler's volume binding, which treats the missing annotation as a failure;
// sig-storage-lib-external-provisioner.
Result<void> Provisioner::unselect_node(const Object& claim) {
  if (claim.annotation(kSelectedNode).empty()) return {};
  json::object metadata = precondition_metadata(claim);
  metadata["annotations"] = {{kSelectedNode, nullptr}};
  json::value patch = {{"metadata", std::move(metadata)}};
  auto written = seams_.client.patch(kPersistentVolumeClaim, claim.key(), PatchType::merge, patch, {.is_repeated = true});
  if (!written && written.error().code() != Code::not_found) return written.take_error().wrap("unselect the node");
  return {};
}

// A volume that is being deleted cannot be bound. The resourceVersion ensures that it has not changed since it was checked.
Result<void> Provisioner::delete_object(const Object& volume) {
  auto removed = seams_.client.remove(kPersistentVolume, volume.key(), {.uid = volume.uid(), .revision = volume.revision()});
  if (!removed && removed.error().code() != Code::not_found) return removed.take_error().wrap("remove " + volume.name());
  return {};
}

// The finalizer is removed last, so that an interrupted deletion is continued.
Result<void> Provisioner::finish_deletion(const Object& volume) {
  if (!has_finalizer(volume, kFinalizer)) return {};
  auto done = seams_.client.patch(kPersistentVolume, volume.key(), PatchType::merge, without_finalizer_patch(volume, kFinalizer));
  if (!done && done.error().code() != Code::not_found) return done.take_error().wrap("release " + volume.name());
  return {};
}

Result<Outcome> Provisioner::reconcile_clearing() {
  const SteadyTime now = seams_.clock.steady();
  std::vector<std::string> due;
  clears_again_at_.with([&](auto& all) {
    for (const auto& [root, at] : all)
      if (at <= now) due.push_back(root);
    for (const std::string& root : due) all.erase(root);
  });
  for (const std::string& root : due) clear(root);
  Outcome outcome;
  clears_again_at_.with([&](const auto& all) {
    for (const auto& [root, at] : all)
      if (!outcome.again || at - now < *outcome.again) outcome.again = at - now;
  });
  return outcome;
}

// Where nothing is left, no thread is needed. A disk that does not answer is left to one.
void Provisioner::start() {
  for (const std::string& root : seams_.directories.roots())
    if (!seams_.answers(root + "/") || seams_.directories.needs_clearing(root)) clear(root);
}

void Provisioner::clear() {
  for (const std::string& root : seams_.directories.roots()) clear(root);
}

void Provisioner::clear(const std::string& root) {
  auto waits = [&claims = seams_.claims, &volumes = seams_.volumes](const std::string& name) {
    std::vector<ObjectPtr> all = claims.list(), made = volumes.list();
    return std::ranges::any_of(all, [&](const auto& claim) { return directory_name(claim->key(), claim->uid()) == name; }) ||
           std::ranges::any_of(made, [&](const auto& volume) {
             return view::PersistentVolume(*volume).spec().local().path().ends_with("/" + name);
           });
  };
  auto task = [this, root, waits](std::stop_token stop) {
    auto cleared = seams_.directories.clear(root, waits, stop);
    if (!cleared && cleared.error().code() == Code::unavailable) {
      clears_again_at_.with([&](auto& all) { all[root] = seams_.clock.steady() + kClearAgain; });
      seams_.enqueue(key_of_volume(""));
    }
    if (!cleared && cleared.error().code() != Code::cancelled)
      log_warning("volume", "data of deleted volumes was not removed: " + cleared.error().text());
  };
  seams_.delete_in_background(std::move(task), seams_.directories.disk_of(root));
}

}  // namespace coracle::volume
