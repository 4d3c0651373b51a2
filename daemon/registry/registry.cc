// SPDX-License-Identifier: Apache-2.0
// The write pipeline. Each verb is a sequence of steps; rules of a kind come from the catalog and the strategy. Reads are in
// reads.cc, a pod's binding in binding.cc, its eviction in eviction.cc.
#include "daemon/registry/registry.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "daemon/registry/deletion.h"
#include "daemon/registry/heartbeat.h"
#include "daemon/registry/identity.h"
#include "daemon/registry/metadata.h"
#include "daemon/registry/scale.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/object.h"
#include "store/object/patch.h"
#include "store/object/status.h"
#include "store/schema/apply.h"
#include "store/schema/convert.h"
#include "store/schema/decode.h"
#include "store/schema/default.h"
#include "store/schema/listed.h"
#include "store/schema/merge.h"
#include "store/schema/validate.h"

namespace coracle::registry {
namespace {

constexpr int kNameAttempts = 8;  // Source: apiserver registry/store.go
constexpr int kConflictAttempts = 64;
constexpr size_t kRepeatedOwnersNamedMax = 10;
constexpr Kind kTokenRequest{"authentication.k8s.io", "v1", "TokenRequest", "tokenrequests"};
constexpr int64_t kTokenSecondsMin = 600, kTokenSecondsMax = int64_t(1) << 32;

bool has_status(const schema::KindInfo& info) { return info.subresource("status") != nullptr; }

json::value take_status(json::value& object) {
  json::value* status = object.get_object().if_contains("status");
  json::value taken = status ? std::move(*status) : json::value();
  object.get_object().erase("status");
  return taken;
}

// State that can be observed again need not be synced to the disk before it is visible.
engine::Durability durability_of(const schema::KindInfo& stored, std::string_view subresource, const Writer& writer) {
  const std::string_view trait = stored.traits.durability;
  const bool of_status = subresource == "status", of_component = writer.internal;
  if (trait == "lazy" || (trait == "remeasured" && of_status && of_component)) return engine::Durability::lazy;
  bool is_seen_again = (of_status && (of_component || trait == "observed")) || (writer.is_repeated && of_component);
  if (trait == "soft" || is_seen_again || (trait == "derived" && of_component)) return engine::Durability::soft;
  return engine::Durability::durable;
}

Error nameless(std::string_view on_url) {
  return bad_request("the name of the object (" + std::string(on_url) +
                     " based on URL) was undeterminable: name must be provided");
}

// The error for a patch whose result is not a valid object of its kind. Unlike Kubernetes' message it does not include the
// object, because messages are logged and objects contain secrets. Source: apiserver, endpoints/handlers/patch.go.
Error unreadable_patch(const Error& why) {
  std::string_view words = why.text();
  size_t prefix = words.find(" cannot be handled as a ");
  if (prefix != words.npos) prefix = words.find(": ", prefix);
  if (prefix != words.npos) words.remove_prefix(prefix + 2);
  return invalid(Kind{}, "", {{"FieldValueInvalid", "Invalid value: " + std::string(words), "patch"}});
}

// The engine's errors with Kubernetes' texts.
Error reworded(const Kind& kind, const Key& key, Error error) {
  if (error.code() == Code::already_exists) return already_exists(kind, key.name);
  if (error.code() == Code::conflict) return stale_conflict(kind, key.name);
  if (error.code() == Code::not_found) return not_found(kind, key.name);
  return error;
}

constexpr std::string_view kQuotaChanged = "QuotaChanged";  // reason of the cause that marks the error

// A quota was deleted, created anew or got other scopes after admission read it: the write must be admitted again.
Error quota_changed(const Kind& kind, const Key& key) {
  Error error = conflict(kind, key.name, "quota changed, try again");
  ErrorDetails details = *error.details();
  details.causes.push_back({std::string(kQuotaChanged), "a resource quota changed while the request was admitted", ""});
  return Error(Code::conflict, error.text()).with(std::move(details));
}

bool quota_was_replaced(const Error& error) {
  if (error.code() != Code::conflict || !error.details()) return false;
  return std::ranges::any_of(error.details()->causes, [](const Cause& cause) { return cause.reason == kQuotaChanged; });
}

// Whether the engine's error is about a charge, and not about the object `key` that is written with it.
bool is_about_charge(const Error& error, const Kind& kind, const Key& key) {
  bool outdated = error.code() == Code::conflict || error.code() == Code::not_found;
  if (!outdated || !error.details()) return false;
  const ErrorDetails& about = *error.details();
  bool of_quota = about.group == kResourceQuota.group && about.kind == kResourceQuota.resource;
  return of_quota && !(kind == kResourceQuota && about.name == key.name);
}

Result<void> check(const schema::KindInfo& info, const json::value& object, std::vector<Cause> causes) {
  if (causes.empty()) return {};
  return invalid(info.kind, metadata_of(object).name(), std::move(causes));
}

// `document` is changed in place, in its own memory.
Result<json::value> patched_by(const schema::Type& type, json::value document, PatchType how, const json::value& patch) {
  switch (how) {
    case PatchType::json: TRY(apply_json_patch(document, patch)); return document;
    case PatchType::merge: apply_merge_patch(document, patch); return document;
    case PatchType::strategic: return schema::strategic_merge(type, std::move(document), patch);
    case PatchType::apply: break;
  }
  return bad_request("this patch type cannot be used here");
}

// A JSON patch that does not apply to this object gets a general message.
Error unpatchable(Error why) {
  bool inapplicable = why.code() == Code::invalid && !why.details();
  if (!inapplicable) return why;
  return Error(Code::invalid, "the server rejected our request due to an error in our request").with(ErrorDetails{});
}

// The error of a create whose name is taken. For an object with a generateName, it says that the name was generated, even if the
// client has given it. Source: registry/store.go, create; registry/rest/create.go, CheckGeneratedNameError.
Error name_taken(const Kind& kind, std::string_view name, bool is_generated, const Result<ObjectPtr>& there) {
  Error error = already_exists(kind, name);
  ErrorDetails details = *error.details();
  std::string text = error.text();
  if (is_generated) {
    text += ", the server was not able to generate a unique name for the object";
    details.retry_after_seconds = 1;
  }
  if (there && (*there)->deleting()) text.insert(0, "object is being deleted: ");
  return Error(Code::already_exists, std::move(text)).with(std::move(details));
}

// The error for an update without resourceVersion, for kinds that require it. Source: registry/store.go, Update.
Error version_demanded(const Kind& kind, std::string_view name) {
  Kind named = kind;
  named.kind = kind.resource;
  return invalid(named, name, {invalid_value("metadata.resourceVersion", "0", "must be specified for an update")});
}

// A patch for another object is invalid, where an update is a conflict. Components get the conflict (store/client/client.h).
// Source: registry/rest/update.go, where the precondition of a patch is none.
Result<void> check_patched_uid(const Kind& kind, const json::value& patched, const Object& old) {
  std::string_view uid = metadata_of(patched).uid();
  if (uid.empty() || uid == old.uid()) return {};
  return invalid(kind, old.name(), {invalid_value("metadata.uid", quoted(uid), "field is immutable")});
}

// Removes duplicate owner references and warns the client. `by_patch`: Kubernetes looks at what a patch results in later than at
// a body, and says so. Source: endpoints/handlers/rest.go, dedupOwnerReferencesAndAddWarning.
void drop_repeated_owners(json::value& object, bool by_patch, const Writer& writer) {
  json::value* owners = make_metadata(object).if_contains("ownerReferences");
  if (!owners || !owners->is_array()) return;
  json::array kept(owners->storage());
  std::set<std::string> seen;
  std::vector<std::string> repeated;
  for (json::value& owner : owners->get_array()) {
    bool known = !seen.insert(to_text(owner)).second;  // canonical: equal owners have the same text
    if (!known) kept.push_back(std::move(owner));
    else if (repeated.size() < kRepeatedOwnersNamedMax)
      repeated.push_back(shortened_path(std::string(view::OwnerReference(owner).uid())));
  }
  *owners = std::move(kept);
  if (repeated.empty()) return;
  if (writer.warnings)
    writer.warnings->push_back(
        ".metadata.ownerReferences contains duplicate entries" +
        std::string(by_patch ? " after mutating admission happens" : "") +
        "; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; "
        "duplicate UID(s) observed: " +
        join(repeated, ", "));
}

// For retry loops: discards the warnings of failed attempts.
class Warnings {
 public:
  explicit Warnings(const Writer& writer) : warnings_(writer.warnings), before_(warnings_ ? warnings_->size() : 0) {}
  void begin_again() const {
    if (warnings_) warnings_->resize(before_);
  }

 private:
  std::vector<std::string>* warnings_;
  size_t before_;
};

Result<json::value> decode_body(const schema::KindInfo& info, json::value body, const Writer& writer, bool by_patch = false) {
  schema::Decoded decoded = TRY(schema::decode(info.type(), std::move(body)));
  TRY(tell_unknown(info.type(), decoded, writer));
  drop_repeated_owners(decoded.value, by_patch, writer);
  return std::move(decoded.value);
}

// The type of a subresource's body: a Scale, a Binding, an Eviction.
const schema::Type& part_type(const schema::KindInfo& info, std::string_view subresource) {
  return *info.subresource(subresource)->type();
}

// Decodes the body of a subresource of the object `key`. Errors: bad_request if it is of another kind or for another object.
Result<json::value> decode_part(const schema::Type& type, const Key& key, json::value body, const Writer& writer) {
  schema::GroupVersion version = schema::split_api_version(type.api_version());
  TRY(settle_place({version.group, version.version, type.name(), {}}, body, key));
  schema::Decoded decoded = TRY(schema::decode(type, std::move(body)));
  TRY(tell_unknown(type, decoded, writer));
  return std::move(decoded.value);
}

Result<json::value> decode_action(const schema::KindInfo& info, const Key& key, std::string_view subresource, json::value body,
                                  const Writer& writer) {
  if (subresource == "eviction" && view::Eviction(body).api_version() == "policy/v1beta1")  // kubectl until 1.21 sends that
    body.get_object()["apiVersion"] = "policy/v1";
  std::string_view name = metadata_of(body).name();
  bool another = !name.empty() && name != key.name;
  if (another && subresource == "token")
    return invalid(kTokenRequest, key.name,
                   {invalid_value("metadata.name", quoted(name), "must match the service account name if specified")});
  if (another && subresource == "binding") return bad_request("name in URL does not match name in Binding object");
  if (another && subresource == "eviction")
    return bad_request("name in URL does not match name in Eviction object: " + quoted(key.name) + " vs " + quoted(name));
  const schema::Subresource* part = info.subresource(subresource);
  if (!part || !part->type()) return body;
  return decode_part(part_type(info, subresource), key, std::move(body), writer);
}

// As Go's YAML reader reports duplicate keys.
std::string yaml_error(const std::vector<std::string>& lines) { return "yaml: unmarshal errors:\n  " + join(lines, "\n  "); }

// An applied configuration says its own type. Source: apimachinery managedfields, versioncheck.go.
Result<void> check_applied_type(std::string_view api_version, std::string_view kind, const json::value& patch) {
  if (api_version_in(patch) == api_version && kind_in(patch) == kind) return {};
  schema::GroupVersion said = schema::split_api_version(api_version_in(patch));
  return bad_request("invalid object type: " + std::string(said.group) + "/" + std::string(said.version) +
                     ", Kind=" + std::string(kind_in(patch)));
}

// Checks the applied configuration for unknown fields: nobody could own them, and the merge would drop them, whatever the
// validation. Other errors are found in the result of the merge. Source: structured-merge-diff, typed/validate.go;
// endpoints/handlers/patch.go, applyPatcher.
Result<void> check_applied(const schema::KindInfo& info, const json::value& patch, const Writer& writer) {
  constexpr std::string_view kHead = "unknown field \"";
  if (auto decoded = schema::decode(info.type(), patch); decoded && !decoded->warnings.empty()) {
    std::vector<std::string> lines;
    for (std::string_view warning : decoded->warnings) {
      warning.remove_prefix(kHead.size()), warning.remove_suffix(1);
      lines.push_back("." + std::string(warning) + ": field not declared in schema");
    }
    return schema::untyped_patch(info, patch, lines.size() == 1 ? lines[0] : "errors:\n  " + join(lines, "\n  "));
  }
  const std::vector<std::string>& duplicates = writer.duplicates.warnings;
  if (duplicates.empty() || writer.validation == FieldValidation::ignore) return {};
  if (writer.validation == FieldValidation::strict)
    return bad_request("error strict decoding YAML: error converting YAML to JSON: " + yaml_error(duplicates));
  if (writer.warnings) writer.warnings->insert(writer.warnings->end(), duplicates.begin(), duplicates.end());
  return {};
}

// The warnings about a JSON object in the order of its text: a key that is there twice is told before what follows it. Only
// the first ones. Source: sigs.k8s.io/json, kubernetes_patch.go, saveStrictError.
std::vector<std::string> told_by_place(const schema::Decoded& decoded, const Duplicates& duplicates) {
  std::vector<std::pair<const JsonPlace*, const std::string*>> found;
  for (size_t i = 0; i < duplicates.warnings.size(); ++i)
    if (!schema::is_of_unknown(duplicates.warnings[i], decoded.warnings))
      found.emplace_back(&duplicates.places[i], &duplicates.warnings[i]);
  for (size_t i = 0; i < decoded.warnings.size(); ++i) found.emplace_back(&decoded.places[i], &decoded.warnings[i]);
  std::ranges::stable_sort(found, [](const auto& a, const auto& b) { return *a.first < *b.first; });
  std::vector<std::string> out;
  if (found.size() > schema::kFieldWarningsMax) found.resize(schema::kFieldWarningsMax);
  for (const auto& [place, warning] : found) out.push_back(*warning);
  return out;
}

// The warnings in Kubernetes' order.
std::vector<std::string> told_in_order(const schema::Decoded& decoded, const Writer& writer) {
  if (writer.duplicates.form == Duplicates::Form::json) return told_by_place(decoded, writer.duplicates);
  std::vector<std::string> told = writer.duplicates.warnings;
  const bool is_strict_yaml = writer.duplicates.form == Duplicates::Form::yaml && writer.validation == FieldValidation::strict;
  if (is_strict_yaml && !told.empty()) told = {yaml_error(told)};
  told.insert(told.end(), decoded.warnings.begin(), decoded.warnings.end());
  return told;
}

void take_field(json::object& object, const json::object& from, std::string_view field) {
  if (const json::value* value = from.if_contains(field)) object[field] = *value;
  else object.erase(field);
}

// The old pod with the resources and resize policies from `body`, and with a list of other containers, which validation refuses.
// Source: registry/core/pod strategy, dropNonResizeUpdates.
json::value with_amounts_of(const json::value& body, const json::value& pod) {
  json::value out(pod, body.storage());
  take_field(make(out, "spec").get_object(), view::Pod(body).spec().members(), "resources");
  for (auto [path, list] : {std::pair("spec.containers", &view::PodSpec::containers),
                            std::pair("spec.initContainers", &view::PodSpec::init_containers)}) {
    auto wanted = (view::Pod(body).spec().*list)(), olds = (view::Pod(pod).spec().*list)();
    bool same = wanted.size() == olds.size();
    for (size_t i = 0; same && i < olds.size(); ++i) same = wanted[i].name() == olds[i].name();
    if (!same) {
      make(out, path) = get_array(body, path);
      continue;
    }
    for (size_t i = 0; i < olds.size(); ++i)
      for (std::string_view field : {"resources", "resizePolicy"})
        take_field(make(out, path).get_array()[i].get_object(), wanted[i].members(), field);
  }
  return out;
}

// Converts an object of version `info` to the stored version. It gets the defaults of both versions.
json::value as_stored(const schema::KindInfo& info, json::value object) {
  if (info.is_stored()) return object;
  schema::apply_defaults(info, object);
  return schema::convert(info, info.stored(), std::move(object));
}

// Updates managedFields for a write in version `info`. `old` (null on create) and `object` are of the stored version; `written`
// is of the version `info`.
void record_update(const schema::KindInfo& info, const json::value& old, json::value& object, json::object written,
                   const schema::Manager& manager, WallTime now) {
  if (info.is_stored()) return schema::track_update(info, old, object, std::move(written), manager, now);
  json::value before = old.is_object() ? schema::convert(info.stored(), info, old) : old;
  json::value after = schema::convert(info.stored(), info, object);
  schema::track_update(info, before, after, std::move(written), manager, now);
  if (metadata_of(after).has_managed_fields()) make_metadata(object)["managedFields"] = metadata_of(after).managed_fields().raw();
  else make_metadata(object).erase("managedFields");
}

// Whether the write is exempt from the store's size limit: writes of components must not fail because of stored user data, nor
// nodes' reports about themselves. Objects created from a user's template are not exempt.
bool is_beyond_limit(const schema::KindInfo& stored, bool creates, const Writer& writer) {
  if (writer.internal) return !(creates && stored.traits.from_template);
  bool node = writer.user && writer.user->in("system:nodes");
  return node && !creates && (stored.kind == kNode || stored.kind == kLease);
}

// The fields that a create in version `info` sets. Writers of the main resource do not own the status.
json::object created_fields(const schema::KindInfo& info, json::value& body) {
  json::value status = has_status(info) ? take_status(body) : json::value();
  json::object written = schema::written_fields(info, nullptr, body);
  if (!status.is_null()) body.get_object()["status"] = std::move(status);
  return written;
}

constexpr std::string_view kBesideStatus[] = {"labels", "annotations", "finalizers", "ownerReferences"};

// Components create objects without a record: what one of them is said to hold may be the first.
schema::Manager manager_of(const Writer& writer, std::string_view subresource, bool force) {
  return {writer.field_manager, std::string(subresource), force, {}, writer.internal};
}

// Whether a status update also updates that part of the metadata. Most kinds do.
bool status_takes(const schema::KindInfo& stored, std::string_view field) {
  std::string_view kept = stored.traits.status_keeps;
  return kept != "all" && !schema::is_listed(kept, field);
}

// Equality with the order of members: both are written as the same text.
bool same_text(const json::value& a, const json::value& b) {
  if (const json::object* left = a.if_object(), *right = b.if_object(); left && right)
    return std::ranges::equal(*left, *right, [](const auto& one, const auto& other) {
      return one.key() == other.key() && same_text(one.value(), other.value());
    });
  if (const json::array* left = a.if_array(), *right = b.if_array(); left && right)
    return std::ranges::equal(*left, *right, same_text);
  return a == b;
}

// Gives `object` the members of `before`, except those for which `keeps(name)`: these stay as they are, also if they are absent.
// Only what differs is copied; of a patched object that is next to nothing.
template <typename F>
void restore(json::object& object, const json::object& before, F&& keeps) {
  for (const auto& member : before) {
    if (keeps(member.key())) continue;
    json::value& now = object[member.key()];
    if (!same_text(now, member.value())) now = member.value();
  }
  auto is_new = [&](const auto& member) { return !keeps(member.key()) && !before.contains(member.key()); };
  if (std::ranges::any_of(object, is_new)) erase_members_if(object, is_new);
}

// What a status update has to say of `body`, with room for the rest: a component's has no spec, which may have megabytes.
json::value status_part(json::value body, const Object& old) {
  const json::object& before = old.json().get_object();
  const json::value *now = body.get_object().if_contains("spec"), *then = before.if_contains("spec");
  if (!then || (now && same_text(*now, *then))) return body;
  json::value part(json::object_kind, body_memory(old.text()));
  for (std::string_view name : {"metadata", "status"})
    if (const json::value* value = body.get_object().if_contains(name)) part.get_object()[name] = *value;
  return part;
}

schema::Manager applier_of(const schema::KindInfo& stored, const Writer& writer, std::string_view subresource, bool force) {
  schema::Manager manager = manager_of(writer, subresource, force);
  std::copy_if(std::begin(kBesideStatus), std::end(kBesideStatus), std::back_inserter(manager.beside_status),
               [&](std::string_view field) { return status_takes(stored, field); });
  return manager;
}

}  // namespace

Result<void> tell_unknown(const schema::Type& type, const schema::Decoded& decoded, const Writer& writer) {
  if (writer.validation == FieldValidation::ignore) return {};
  std::vector<std::string> found = told_in_order(decoded, writer);
  if (writer.validation == FieldValidation::strict && !found.empty()) return schema::strict_error(type, found);
  if (writer.warnings)
    for (std::string& warning : found) writer.warnings->push_back(std::move(warning));
  return {};
}

Registry::Registry(engine::Engine& engine, const schema::CatalogSource& catalogs, kinds::Ranges ranges, const Clock& clock,
                   admission::Settings admission)
    : engine_(engine),
      catalogs_(catalogs),
      services_(engine),
      definitions_(engine),
      ranges_(std::move(ranges)),
      clock_(clock),
      admission_(
          engine, [] { return random_suffix(); }, admission) {}

const User& internal_user() {
  static const User user{"system:apiserver", "", {"system:masters", "system:authenticated"}, {}};
  return user;
}

// managedFields resolve conflicts between users; components do not need them.
Writer internal_writer(std::string field_manager) {
  Writer writer;
  writer.field_manager = std::move(field_manager);
  writer.internal = true;
  return writer;
}

// ---- create ----

admission::Request Registry::request_for(admission::Operation operation, const schema::KindInfo& info, const Key& key,
                                         std::string_view subresource, const Writer& writer) const {
  admission::Request request{
      operation, info, info.kind, key, subresource, nullptr, nullptr, writer.user ? *writer.user : internal_user(), clock_.now()};
  request.dry_run = writer.dry_run;
  request.warnings = writer.warnings;
  request.audit = writer.audit;
  return request;
}

// Commits the object and the quota charges together or not at all. Errors: the engine's; forbidden if a quota is used up by now;
// quota_changed.
Result<ObjectPtr> Registry::commit(engine::Write write, std::vector<engine::Write> charges, engine::Durability durability) {
  if (charges.empty()) return engine_.write(std::move(write), durability);
  const Kind& kind = *write.kind;
  const Key key = write.key;
  charges.push_back(std::move(write));
  auto stored = engine_.write_all(std::move(charges), durability);
  if (stored) return std::move(stored->back());
  if (is_about_charge(stored.error(), kind, key)) return quota_changed(kind, key);
  return stored.take_error();
}

Result<Written> Registry::create(const Kind& kind, const Key& place, json::value body, const Writer& writer) {
  const schema::KindPtr served = TRY(catalogs_.find(kind));
  const schema::KindInfo& info = *served;
  TRY(settle_place(info.kind, body, place));
  bool generated = metadata_of(body).name().empty() && !metadata_of(body).generate_name().empty();
  json::value decoded = TRY(decode_body(info, std::move(body), writer));
  bool once = !generated && engine_.count(kResourceQuota) == 0;  // there is no reason for a retry
  if (once) return create_once(info, place, std::move(decoded), writer);
  Warnings warnings(writer);
  for (int attempt = 1, names = 1;; attempt++) {
    warnings.begin_again();
    if (generated) make_metadata(decoded)["name"] = generate_name(metadata_of(decoded).generate_name());
    auto made = create_once(info, place, decoded, writer);
    if (made || attempt == kConflictAttempts) return made;
    bool taken = generated && made.error().code() == Code::already_exists;
    if (!taken && !quota_was_replaced(made.error())) return made;
    if (taken && names++ == kNameAttempts) return made;
  }
}

Result<Written> Registry::create_once(const schema::KindInfo& info, const Key& place, json::value body, const Writer& writer) {
  const schema::KindInfo& stored = info.stored();
  const kinds::Strategy& strategy = kinds::strategy_of(stored.kind);
  bool records = !writer.field_manager.empty();
  json::object written = records ? created_fields(info, body) : json::object();
  json::value object = as_stored(info, std::move(body));
  WallTime now = clock_.now();
  if (has_status(info) && !stored.traits.keeps_first_status) object.get_object().erase("status");
  TRY(begin_life(object, stored.traits.counts_generations, now));
  // As the client has sent it: nobody owns fields from defaults, admission and allocation.
  if (records) record_update(info, nullptr, object, std::move(written), manager_of(writer, {}, false), now);
  if (strategy.prepare_create) strategy.prepare_create(object);
  if (strategy.record_user) strategy.record_user(object, writer.user);
  schema::apply_defaults(stored, object);
  admission::Request request =
      request_for(admission::Operation::create, stored, {place.ns, std::string(metadata_of(object).name())}, {}, writer);
  request.object = &object;
  TRY(admission_.admit(request));
  schema::apply_defaults(stored, object);  // for what admission has added
  std::unique_ptr<kinds::Hold> hold;       // until the commit
  if (strategy.allocate_create)
    TRY(strategy.allocate_create(object, {services_, definitions_, ranges_, now, writer.dry_run, hold}));
  make_metadata(object)["resourceVersion"] = "0";  // reserves its place: the engine fills it in, and a later write compares equal
  // Puts added fields in their canonical place.
  schema::Decoded canonical = TRY(schema::decode(stored.type(), std::move(object)));
  object = std::move(canonical.value);
  if (guard_ && writer.user) TRY(guard_->check({info.kind, {}, nullptr, object, *writer.user}));
  TRY(check(info, object, schema::validate_create(info, object)));
  std::vector<engine::Write> charges;
  request.charges = &charges;
  TRY(admission_.validate(request));

  Key key{place.ns, std::string(metadata_of(object).name())};
  const bool is_generated = !metadata_of(object).generate_name().empty();
  if (writer.dry_run) {
    if (auto there = engine_.get(stored.kind, key)) return name_taken(info.kind, key.name, is_generated, there);
    make_metadata(object).erase("resourceVersion");
    ObjectPtr imagined = TRY(Object::make(stored.kind, std::move(object)));
    return Written{schema::shown_as(info, std::move(imagined)), true};
  }
  engine::Write write{&stored.kind, key, std::move(object), Revision(0), is_beyond_limit(stored, true, writer)};
  write.sheds_managed_fields = records;
  auto made = commit(std::move(write), std::move(charges), durability_of(stored, {}, writer));
  if (!made && quota_was_replaced(made.error())) return made.take_error();
  if (!made && made.error().code() == Code::already_exists)
    return name_taken(info.kind, key.name, is_generated, engine_.get(stored.kind, key));
  if (!made) return reworded(info.kind, key, made.take_error());
  return Written{schema::shown_as(info, *std::move(made)), true};
}

// ---- update and patch ----

Result<Written> Registry::update(const Kind& kind, const Key& key, std::string_view subresource, json::value body,
                                 const Writer& writer) {
  const schema::KindPtr served = TRY(catalogs_.find(kind));
  const schema::KindInfo& info = *served;
  Target target{info, kinds::strategy_of(info.stored().kind), key, subresource};
  if (metadata_of(body).name().empty()) return nameless(key.name);
  if (subresource == "scale") {
    json::value scale = TRY(decode_part(part_type(info, subresource), key, std::move(body), writer));
    return modify(
        target, [&](const Object& old) { return apply_scale(old, scale); }, given_revision(scale).empty(), writer);
  }
  TRY(settle_place(info.kind, body, key));
  std::string revision = given_revision(body);
  json::value decoded = TRY(decode_body(info, std::move(body), writer));
  bool blind = revision.empty() && !writer.internal;
  auto changed = modify(
      target,
      [&](const Object& old) -> Result<json::value> {
        if (blind && info.traits.update_needs_revision) return version_demanded(info.kind, key.name);
        if (!revision.empty() && revision != std::to_string(old.revision())) return stale_conflict(info.kind, key.name);
        return keep_split(target, decoded, old);
      },
      revision.empty(), writer);
  bool absent = !changed && changed.error().code() == Code::not_found;
  if (!absent || !info.traits.created_by_update || !subresource.empty()) return changed;
  TRY(check_create(info.kind, key, writer));
  if (std::string uid(metadata_of(decoded).uid()); !uid.empty())  // it means an object that is gone
    return conflict(info.kind, key.name, "Precondition failed: UID in precondition: " + uid + ", UID in object meta: ");
  make_metadata(decoded).erase("resourceVersion");
  Writer creator = writer;
  creator.validation = FieldValidation::ignore;  // unknown fields were reported already
  return create(kind, key, std::move(decoded), creator);
}

Result<Written> Registry::patch(const Kind& kind, const Key& key, std::string_view subresource, PatchType type,
                                const json::value& patch, bool force, const Writer& writer) {
  const schema::KindPtr served = TRY(catalogs_.find(kind));
  const schema::KindInfo& info = *served;
  Target target{info, kinds::strategy_of(info.stored().kind), key, subresource};
  if (subresource == "scale") return patch_scale(target, type, patch, force, writer);
  bool applies = type == PatchType::apply;
  Writer recorder = writer;
  if (applies) {
    TRY(check_applied_type(info.kind.api_version(), info.kind.kind, patch));
    TRY(check_applied(info, patch, writer));
    recorder.validation = FieldValidation::ignore;
    recorder.field_manager.clear();  // apply records the field ownership itself
  }
  std::string revision = given_revision(patch);
  auto changed = modify(
      target,
      [&](const Object& old) -> Result<json::value> {
        auto patched =
            applies ? schema::server_side_apply(info, old.json(), patch, applier_of(info.stored(), writer, subresource, force),
                                                clock_.now(), body_memory(old.text()))
                    : patched_by(info.type(), changeable_copy(old), type, patch);
        if (!patched) return unpatchable(patched.take_error());
        json::value body = *std::move(patched);
        if (metadata_of(body).name().empty()) return nameless(key.name);
        TRY(settle_place(info.kind, body, key));
        std::string demanded = given_revision(body);
        if (!demanded.empty() && demanded != std::to_string(old.revision())) return stale_conflict(info.kind, key.name);
        auto decoded = decode_body(info, std::move(body), recorder, true);
        if (!decoded && applies) return decoded.take_error();
        if (!decoded) return unreadable_patch(decoded.error());
        if (!writer.internal) TRY(check_patched_uid(info.kind, *decoded, old));
        if (!applies) return keep_split(target, *std::move(decoded), old);
        // Said also where there are none any more: an update that says nothing of them keeps the old ones.
        json::array managers = metadata_of(*decoded).managed_fields().raw();
        json::value applied = TRY(keep_split(target, *std::move(decoded), old));
        make_metadata(applied)["managedFields"] = std::move(managers);
        return applied;
      },
      revision.empty(), recorder);
  bool absent = !changed && changed.error().code() == Code::not_found;
  if (!absent || !applies || !subresource.empty()) return changed;
  TRY(check_create(info.kind, key, writer));
  if (!metadata_of(patch).uid().empty())
    return conflict(info.kind, key.name,
                    "uid mismatch: the provided object specified uid " + std::string(metadata_of(patch).uid()) +
                        ", and no existing object was found");
  if (metadata_of(patch).name().empty()) return nameless(key.name);
  json::value fresh =
      TRY(schema::server_side_apply(info, nullptr, patch, manager_of(writer, {}, force), clock_.now(), patch.storage()));
  return create(kind, key, std::move(fresh), recorder);
}

// For updates and applies that create an object.
Result<void> Registry::check_create(const Kind& kind, const Key& key, const Writer& writer) const {
  if (!guard_ || !writer.user) return {};
  return guard_->check_create(kind, key, *writer.user);
}

Result<Written> Registry::patch_scale(const Target& target, PatchType type, const json::value& patch, bool force,
                                      const Writer& writer) {
  const schema::Type& part = part_type(target.info, target.subresource);
  bool retry = given_revision(patch).empty();
  if (type == PatchType::apply) {
    TRY(check_applied_type(part.api_version(), part.name(), patch));
    json::value scale = TRY(decode_part(part, target.key, patch, writer));
    Writer recorder = writer;
    recorder.field_manager.clear();  // apply records the field ownership itself
    return modify(
        target,
        [&](const Object& old) -> Result<json::value> {
          TRY(apply_scale(old, scale));
          json::object spec;  // of the patch: in the decoded object, a missing value looks like 0
          if (const json::value* number = view::Scale(patch).spec().members().if_contains("replicas")) spec["replicas"] = *number;
          schema::Manager manager = manager_of(writer, target.subresource, force);
          return schema::server_side_apply(target.info, old.json(), json::object{{"spec", std::move(spec)}}, manager,
                                           clock_.now(), body_memory(old.text()));
        },
        retry, recorder);
  }
  return modify(
      target,
      [&](const Object& old) -> Result<json::value> {
        auto patched = patched_by(part, scale_of(old), type, patch);
        if (!patched) return unpatchable(patched.take_error());
        if (metadata_of(*patched).name().empty()) return nameless(target.key.name);
        json::value scale = TRY(decode_part(part, target.key, *std::move(patched), writer));
        return apply_scale(old, scale);
      },
      retry, writer);
}

// Combines the halves of an object: updates of the main resource keep the old status, updates of the status keep the old spec.
// The result has the memory of `body`, so that the written half is moved, and nothing of the old object is kept.
Result<json::value> Registry::keep_split(const Target& target, json::value body, const Object& old) const {
  TRY(check_uid(target.info.kind, body, old));  // before its metadata are replaced
  const json::value& before = old.json();
  if (target.subresource == "status" || target.subresource == "approval") {
    const bool has_managed_fields = metadata_of(body).has_managed_fields();
    json::value whole = status_part(std::move(body), old);
    restore(whole.get_object(), before.get_object(),
            [](std::string_view name) { return name == "metadata" || name == "status"; });
    restore(make_metadata(whole), metadata_of(before).members(), [&](std::string_view name) {
      if (name == "managedFields") return has_managed_fields;
      return std::ranges::find(kBesideStatus, name) != std::end(kBesideStatus) && status_takes(target.stored(), name);
    });
    if (target.strategy.divide_status) target.strategy.divide_status(whole, before, target.subresource, clock_.now());
    return whole;
  }
  if (target.subresource == "finalize") {
    json::value out(before, body.storage());
    if (view::NamespaceSpec spec = view::Namespace(body).spec(); spec.has_finalizers())
      make(out, "spec.finalizers") = spec.finalizers().raw();
    else if (out.get_object().contains("spec")) make(out, "spec").get_object().erase("finalizers");
    return out;
  }
  if (target.subresource == "ephemeralcontainers") {
    json::value out(before, body.storage());
    const json::array& added = view::Pod(body).spec().ephemeral_containers().raw();
    if (!added.empty()) make(out, "spec.ephemeralContainers") = added;
    else make(out, "spec").get_object().erase("ephemeralContainers");
    return out;
  }
  if (target.subresource == "resize") return with_amounts_of(body, before);
  if (has_status(target.info)) {
    restore(body.get_object(), before.get_object(), [](std::string_view name) { return name != "status"; });
  }
  if (target.strategy.prepare_update && target.info.is_stored()) target.strategy.prepare_update(body, before);
  return body;
}

Result<Written> Registry::modify(const Target& target, const Change& change, bool retry, const Writer& writer) {
  Warnings warnings(writer);
  for (int attempt = 1;; attempt++) {
    warnings.begin_again();
    auto found = engine_.get(target.stored().kind, target.key);
    if (!found) return reworded(target.info.kind, target.key, found.take_error());
    ObjectPtr old = *std::move(found);
    auto written = modify_once(target, old, change, writer);
    if (!written && attempt < kConflictAttempts && quota_was_replaced(written.error())) continue;
    bool again = !written && written.error().code() == Code::conflict && retry && attempt < kConflictAttempts;
    if (!again) return written;
    auto now = engine_.get(target.stored().kind, target.key);
    if (now && (*now)->revision() == old->revision()) return written;  // no concurrent write: the change itself is rejected
  }
}

Result<Written> Registry::modify_once(const Target& target, const ObjectPtr& before, const Change& change, const Writer& writer) {
  const schema::KindInfo& stored = target.stored();
  const Object& old = *before;
  ObjectPtr shown = schema::shown_as(target.info, before);
  json::value object = TRY(change(*shown));
  bool records = !writer.field_manager.empty();
  json::object written = records ? schema::written_fields(target.info, shown->json(), object) : json::object();
  object = as_stored(target.info, std::move(object));
  WallTime now = clock_.now();
  bool main_resource = target.subresource.empty() || target.subresource == "scale" || target.subresource == "resize" ||
                       target.subresource == "ephemeralcontainers";
  if (target.subresource.empty() && !target.info.is_stored() && target.strategy.prepare_update)
    target.strategy.prepare_update(object, old.json());
  TRY(continue_life(target.info.kind, object, old));
  if (target.subresource == "status" && target.strategy.prepare_status) target.strategy.prepare_status(object, old.json(), now);
  schema::apply_defaults(stored, object);
  if (records)
    record_update(target.info, old.json(), object, std::move(written), manager_of(writer, target.subresource, false), now);
  // A binding was admitted as a binding; the resulting change of the pod is the server's own.
  bool admits = target.subresource != "binding";
  admission::Request request = request_for(admission::Operation::update, stored, target.key, target.subresource, writer);
  request.object = &object;
  request.old = &old;
  if (admits) TRY(admission_.admit(request));
  std::unique_ptr<kinds::Hold> hold;  // until the commit
  if (main_resource && target.strategy.allocate_update)
    TRY(target.strategy.allocate_update(object, old, {services_, definitions_, ranges_, now, writer.dry_run, hold}));
  schema::Decoded canonical = TRY(schema::decode(stored.type(), std::move(object)));
  object = std::move(canonical.value);
  bool counts = stored.traits.counts_generations && main_resource;
  if (counts && spec_changed(object, old.json())) count_generation(object, old.json());
  if (guard_ && writer.user) TRY(guard_->check({target.kind(), target.subresource, &old.json(), object, *writer.user}));
  std::string_view looked_at = target.subresource == "scale" ? std::string_view() : target.subresource;
  TRY(check(target.info, object, schema::validate_update(target.info, object, old.json(), looked_at)));
  std::vector<engine::Write> charges;
  request.charges = &charges;
  if (admits) TRY(admission_.validate(request));
  schema::keep_times_of_unchanged(old.json(), object);

  if (writer.dry_run) {
    ObjectPtr imagined = TRY(Object::make(stored.kind, std::move(object)));
    return Written{schema::shown_as(target.info, std::move(imagined)), false};
  }
  // A user who changes nothing confirms all of the object, and not only its heartbeat.
  const bool is_beat = is_heartbeat(stored, old.json(), object) && (writer.internal || !same_json(object, old.json()));
  const auto durability = is_beat ? engine::Durability::passing : durability_of(stored, target.subresource, writer);
  const bool goes = may_go(object, stored.traits);
  engine::Write write{&stored.kind, target.key, std::move(object), old.revision(), is_beyond_limit(stored, false, writer)};
  write.sheds_managed_fields = records;
  auto done = goes ? engine_.remove(stored.kind, target.key, old.revision(), durability)
                   : commit(std::move(write), std::move(charges), durability);
  if (!done && quota_was_replaced(done.error())) return done.take_error();
  if (!done) return reworded(target.info.kind, target.key, done.take_error());
  return Written{schema::shown_as(target.info, *std::move(done)), false};
}

// ---- remove ----

Result<Removed> Registry::remove(const Kind& kind, const Key& key, const DeleteOptions& options, const Writer& writer) {
  const schema::KindPtr served = TRY(catalogs_.find(kind));
  const schema::KindInfo& asked = *served;
  const schema::KindInfo& info = asked.stored();
  const kinds::Strategy& strategy = kinds::strategy_of(info.kind);
  auto shown = [&](ObjectPtr object, bool gone) { return Removed{schema::shown_as(asked, std::move(object)), gone}; };
  for (int attempt = 1;; attempt++) {
    auto found = engine_.get(info.kind, key);
    if (!found) return reworded(asked.kind, key, found.take_error());
    ObjectPtr old = *std::move(found);
    if (strategy.check_delete) TRY(strategy.check_delete(*old));
    DeletionPlan plan = TRY(plan_deletion(*old, options, info.traits, clock_.now()));
    const bool is_pending = plan.verb == DeletionPlan::Do::pending;
    const bool is_under_way = is_pending || plan.verb == DeletionPlan::Do::nothing;
    if (is_under_way && writer.internal) return shown(old, false);
    // The engine writes nothing, but what began the deletion may not be on the disk yet.
    if (is_under_way) plan.body = old->json();
    // After the preconditions: whoever means another object is not told what may be done to this one.
    admission::Request request = request_for(admission::Operation::remove, info, key, {}, writer);
    request.old = old.get();
    if (!is_pending) {
      TRY(admission_.admit(request));
      TRY(admission_.validate(request));
    }
    bool gone = plan.verb == DeletionPlan::Do::remove;
    if (writer.dry_run && (gone || is_under_way)) return shown(old, gone);
    if (!gone && !is_under_way) {
      schema::Decoded canonical = TRY(schema::decode(info.type(), std::move(plan.body)));
      plan.body = std::move(canonical.value);
    }
    if (writer.dry_run) {  // as if it waited for its termination
      ObjectPtr imagined = TRY(Object::make(info.kind, std::move(plan.body)));
      return shown(std::move(imagined), false);
    }
    auto durability = durability_of(info, {}, writer);
    auto done = gone ? engine_.remove(info.kind, key, old->revision(), durability)
                     : engine_.write({&info.kind, key, std::move(plan.body), old->revision(), true}, durability);
    if (done) return shown(*std::move(done), gone);
    if (done.error().code() != Code::conflict || attempt == kConflictAttempts)
      return reworded(asked.kind, key, done.take_error());
  }
}

Result<engine::RestingPage> Registry::remove_all(const Kind& kind, const ListRequest& which, const DeleteOptions& options,
                                                 const Writer& writer) {
  engine::RestingPage page = TRY(list_at_rest(kind, which));
  for (const RestingPtr& object : page.items) {
    DeleteOptions exactly = options;
    if (!exactly.uid) exactly.uid = object->uid();
    auto removed = remove(kind, Key(object->key()), exactly, writer);
    if (removed || removed.error().code() == Code::not_found) continue;
    // A new object with the same name.
    bool another = removed.error().code() == Code::conflict && !options.uid && !options.revision;
    if (!another) return removed.take_error();
  }
  return page;
}

// ---- subresources ----

Result<json::value> Registry::create_subresource(const Kind& kind, const Key& key, std::string_view subresource, json::value body,
                                                 const Writer& writer) {
  const schema::KindPtr served = TRY(catalogs_.find(kind));
  body = TRY(decode_action(*served, key, subresource, std::move(body), writer));
  admission::Request request = request_for(admission::Operation::create, served->stored(), key, subresource, writer);
  request.object = &body;
  TRY(admission_.admit(request));
  TRY(admission_.validate(request));
  if (kind == kPod && subresource == "binding") return bind(key, body, writer);
  if (kind == kPod && subresource == "eviction") return evict(key, std::move(body), writer);
  if (kind == kServiceAccount && subresource == "token") return issue_token(key, std::move(body), writer);
  return Error(Code::method_not_allowed, "the server does not allow this method on the requested resource");
}

Result<json::value> Registry::issue_token(const Key& key, json::value body, const Writer& writer) {
  if (!token_issuer_) return Error(Code::unavailable, "no token can be issued: there is no signing key");
  ObjectPtr account = TRY(get(kServiceAccount, key));
  if (std::string uid(metadata_of(body).uid()); !uid.empty() && uid != account->uid()) {
    Kind named = kTokenRequest;
    named.resource = kTokenRequest.kind;  // Kubernetes' message has the kind here
    return conflict(
        named, key.name,
        "the UID in the token request (" + uid + ") does not match the UID of the service account (" + account->uid() + ")");
  }
  schema::apply_constant_defaults(*schema::root_type(kTokenRequest.api_version(), kTokenRequest.kind), body);
  if (!view::TokenRequest(body).spec().has_expiration_seconds()) make(body, "spec.expirationSeconds") = 3600;
  int64_t seconds = view::TokenRequest(body).spec().expiration_seconds();
  if (seconds < kTokenSecondsMin)
    return invalid(
        kTokenRequest, key.name,
        {invalid_value("spec.expirationSeconds", std::to_string(seconds), "may not specify a duration less than 10 minutes")});
  if (seconds > kTokenSecondsMax)
    return invalid(kTokenRequest, key.name,
                   {invalid_value("spec.expirationSeconds", std::to_string(seconds),
                                  "may not specify a duration larger than 2^32 seconds")});
  make_metadata(body)["creationTimestamp"] = format_time(clock_.now());
  make_metadata(body)["uid"] = account->uid();
  json::value issued = TRY(token_issuer_->issue(*account, std::move(body)));
  if (writer.dry_run) make(issued, "status.token") = "";  // a dry run returns no credential
  return issued;
}

}  // namespace coracle::registry
