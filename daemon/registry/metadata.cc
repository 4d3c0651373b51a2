// SPDX-License-Identifier: Apache-2.0
// See metadata.h.
#include "daemon/registry/metadata.h"

#include <algorithm>

#include "daemon/registry/identity.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/object.h"
#include "store/object/patch.h"
#include "store/object/status.h"

namespace coracle::registry {
namespace {

std::string text_at(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  const json::string* text = value ? value->if_string() : nullptr;
  return text ? std::string(text->data(), text->size()) : std::string();
}

Error wrong_version(std::string_view found, std::string_view expected) {
  return bad_request("the API version in the data (" + std::string(found) + ") does not match the expected API version (" +
                     std::string(expected) + ")");
}

}  // namespace

json::object& make_metadata(json::value& object) { return make_object(object, "metadata"); }

std::string given_revision(const json::value& body) {
  std::string_view given = metadata_of(body).resource_version();
  return given == "0" ? std::string() : std::string(given);
}

Result<void> settle_place(const Kind& kind, json::value& body, const Key& key) {
  if (!body.is_object()) return bad_request("the body must be a JSON object");
  json::object& object = body.get_object();
  for (std::string_view own : {"apiVersion", "kind"}) {
    const json::value* said = object.if_contains(own);
    if (said && !said->is_string() && !said->is_null())
      return bad_request("couldn't get version/kind; json parse error: " + std::string(own) + " must be a string");
  }
  std::string version = text_at(object, "apiVersion"), name_of_kind = text_at(object, "kind");
  if (!version.empty() && version != kind.api_version()) return wrong_version(version, kind.api_version());
  if (!name_of_kind.empty() && name_of_kind != kind.kind)
    return bad_request("the kind in the data (" + name_of_kind + ") does not match the expected kind (" + std::string(kind.kind) +
                       ")");
  object["apiVersion"] = kind.api_version();
  object["kind"] = kind.kind;

  const json::value* given = object.if_contains("metadata");
  if (given && !given->is_object() && !given->is_null())
    return bad_request(std::string(kind.kind) + " in version \"" + std::string(kind.version) + "\" cannot be handled as a " +
                       std::string(kind.kind) + ": metadata must be an object");
  json::object& metadata = make_metadata(body);
  std::string ns = text_at(metadata, "namespace"), name = text_at(metadata, "name");
  if (kind.namespaced && !ns.empty() && ns != key.ns)
    return bad_request("the namespace of the provided object does not match the namespace sent on the request");
  if (kind.namespaced) metadata["namespace"] = key.ns;
  else metadata.erase("namespace");
  if (!key.name.empty() && !name.empty() && name != key.name)
    return bad_request("the name of the object (" + name + ") does not match the name on the URL (" + key.name + ")");
  if (!key.name.empty()) metadata["name"] = key.name;
  return {};
}

Result<void> begin_life(json::value& object, bool counts_generations, WallTime now) {
  json::object& metadata = make_metadata(object);
  if (std::string given = text_at(metadata, "resourceVersion"); !given.empty() && given != "0")
    return bad_request("resourceVersion should not be set on objects to be created");
  for (std::string_view own : {"resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"})
    metadata.erase(own);
  metadata["uid"] = make_uid();
  metadata["creationTimestamp"] = format_time(now);
  if (counts_generations) metadata["generation"] = 1;
  return {};
}

Result<void> check_uid(const Kind& kind, const json::value& object, const Object& old) {
  std::string_view uid = metadata_of(object).uid();
  if (uid.empty() || uid == old.uid()) return {};
  return conflict(kind, old.name(),
                  "Precondition failed: UID in precondition: " + std::string(uid) + ", UID in object meta: " + old.uid());
}

Result<void> continue_life(const Kind& kind, json::value& object, const Object& old) {
  TRY(check_uid(kind, object, old));
  json::object& metadata = make_metadata(object);
  const json::object& before = metadata_of(old).members();
  for (std::string_view own : {"name", "namespace", "uid", "creationTimestamp", "generation", "selfLink"}) {
    const json::value *kept = before.if_contains(own), *sent = metadata.if_contains(own);
    if (!kept) metadata.erase(own);
    else if (!sent || !same_json(*sent, *kept)) metadata[own] = *kept;
  }
  // Another time or grace than the server's is refused by the validation. Source: apiserver, BeforeUpdate.
  if (const json::value* kept = before.if_contains("deletionTimestamp")) metadata["deletionTimestamp"] = *kept;
  if (const json::value* kept = before.if_contains("deletionGracePeriodSeconds"))
    if (json::value& grace = metadata["deletionGracePeriodSeconds"]; grace.is_null()) grace = *kept;
  metadata["resourceVersion"] = std::to_string(old.revision());
  if (!metadata.contains("managedFields"))
    if (const json::value* kept = before.if_contains("managedFields")) metadata["managedFields"] = *kept;
  return {};
}

bool spec_changed(const json::value& object, const json::value& old) {
  const json::object& now = object.get_object();
  const json::object& before = old.get_object();
  auto counts = [](std::string_view key) { return key != "metadata" && key != "status" && key != "apiVersion" && key != "kind"; };
  for (const auto& [key, value] : now) {
    const json::value* other = before.if_contains(key);
    if (counts(key) && (!other || !json_equal(value, *other))) return true;
  }
  for (const auto& [key, value] : before)
    if (counts(key) && !now.contains(key)) return true;
  return false;
}

void count_generation(json::value& object, const json::value& old) {
  make_metadata(object)["generation"] = metadata_of(old).generation() + 1;
}

bool has_finalizers(const json::value& object) { return !metadata_of(object).finalizers().empty(); }

bool remove_finalizer(json::value& object, std::string_view name) {
  json::object& metadata = make_metadata(object);
  json::value* found = metadata.if_contains("finalizers");
  if (!found || !found->is_array()) return false;
  json::array& all = found->get_array();
  auto at = std::find(all.begin(), all.end(), json::value(name));
  if (at == all.end()) return false;
  all.erase(at);
  if (all.empty()) metadata.erase("finalizers");
  return true;
}

void add_finalizer(json::value& object, std::string_view name) {
  json::value& finalizers = make_metadata(object)["finalizers"];
  if (!finalizers.is_array()) finalizers.emplace_array();
  json::array& all = finalizers.get_array();
  if (std::find(all.begin(), all.end(), json::value(name)) == all.end()) all.push_back(json::value(name));
}

}  // namespace coracle::registry
