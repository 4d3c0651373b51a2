// SPDX-License-Identifier: Apache-2.0
// Validation of what all objects share: names, namespaces, labels, annotations, owners, finalizers. Source: Kubernetes "Object
// Names and IDs", "Labels and Selectors", "Annotations", "Finalizers".
#include "store/schema/metadata.h"

#include <algorithm>
#include <set>

#include "runtime/base/text.h"
#include "store/object/selector.h"
#include "store/schema/validate/findings.h"
#include "store/schema/validate/syntax.h"
#include "store/schema/validate/texts.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

std::vector<std::string> name_problems(const KindInfo& kind, std::string_view name) {
  if (kind.names == "label") return dns_label_problems(name);
  if (kind.names == "1035") return dns_1035_problems(name);
  if (kind.names == "ip") return ip_problems(name, true);
  if (kind.names == "path") return path_segment_problems(name);
  return dns_subdomain_problems(name);
}

// "v1" or "apps/v1".
bool names_version(std::string_view api_version) {
  std::string_view version = api_version.substr(api_version.find('/') + 1);  // the whole text if there is no slash
  return !version.empty() && version.find('/') == version.npos;
}

// The paths do not say which of the owners, and neither do those of finalizers. Source: apimachinery 1.36,
// api/validation/objectmeta.go.
void check_owners(Findings& out, view::ObjectMeta metadata) {
  const std::string list = "metadata.ownerReferences";
  std::string controller;  // the first one
  for (view::OwnerReference owner : metadata.owner_references()) {
    if (!names_version(owner.api_version()))
      out.invalid(sub(list, "apiVersion"), owner.api_version(), "version must not be empty");
    if (owner.kind().empty()) out.invalid(sub(list, "kind"), "", "must not be empty");
    if (owner.name().empty()) out.invalid(sub(list, "name"), "", "must not be empty");
    if (owner.uid().empty()) out.invalid(sub(list, "uid"), "", "must not be empty");
    if (owner.api_version() == "v1" && owner.kind() == "Event")
      out.invalid_json(list, owner.raw(), "/v1, Kind=Event is disallowed from being an owner");
    if (!owner.controller() || out.full()) continue;
    // Shortened, because all of the causes repeat the first one.
    std::string name =
        std::string(owner.kind().substr(0, kKeyShownMax)) + "/" + std::string(owner.name().substr(0, kKeyShownMax));
    if (controller.empty()) {
      controller = std::move(name);
      continue;
    }
    out.invalid_json(
        list, metadata.owner_references().raw(),
        "Only one reference can have Controller set to true. Found \"true\" in references for " + controller + " and " + name);
  }
}

// Groups whose objects may have finalizers without a domain. Source: their validation in Kubernetes only uses apimachinery's.
bool takes_plain_finalizers(const Kind& kind) {
  return kind.group == "apiextensions.k8s.io" || kind.group == "apiregistration.k8s.io" ||
         kind.group == "admissionregistration.k8s.io";
}

// `known`: the finalizers that existed before.
void check_finalizers(Findings& out, const Kind& kind, view::ObjectMeta metadata, const std::set<std::string_view>& known) {
  static constexpr std::string_view kStandard[] = {"kubernetes", "orphan", "foregroundDeletion"};
  const std::string list = "metadata.finalizers";
  bool orphans = false, waits = false;
  for (std::string_view finalizer : metadata.finalizers()) {
    out.invalid_all(list, finalizer, qualified_name_problems(finalizer));
    orphans |= finalizer == "orphan", waits |= finalizer == "foregroundDeletion";
  }
  if (orphans && waits)
    out.invalid_json(list, metadata.finalizers().raw(), "finalizer orphan and foregroundDeletion cannot be both set");
  if (takes_plain_finalizers(kind)) return;
  for (size_t i = 0; i < metadata.finalizers().size(); ++i) {
    std::string_view finalizer = metadata.finalizers()[i];
    bool plain = finalizer.find('/') == finalizer.npos && std::ranges::find(kStandard, finalizer) == std::end(kStandard);
    if (plain && !known.contains(finalizer))
      out.invalid(item(list, i), finalizer, "name is neither a standard finalizer name nor is it fully qualified");
  }
}

void check_name(Findings& out, const KindInfo& kind, view::ObjectMeta metadata) {
  if (!metadata.generate_name().empty()) {
    std::string prefix(metadata.generate_name());
    // A suffix will be appended. Source: apimachinery 1.36, api/validation/generic.go, maskTrailingDash.
    if (kind.names != "path" && prefix.size() > 1 && prefix.ends_with('-')) prefix.replace(prefix.size() - 2, 2, "a");
    out.invalid_all("metadata.generateName", metadata.generate_name(), name_problems(kind, prefix));
  }
  if (metadata.name().empty()) out.required("metadata.name", "name or generateName is required");
  else out.invalid_all("metadata.name", metadata.name(), name_problems(kind, metadata.name()));
}

}  // namespace

void check_annotations(Findings& out, const std::string& path, const json::object& annotations) {
  for (const auto& pair : annotations) out.invalid_all(path, pair.key(), qualified_name_problems(to_lower(pair.key())));
  if (bytes_of(annotations) > kAnnotationsBytesMax) out.too_long(path, kAnnotationsBytesMax);
}

void check_metadata(Findings& out, const KindInfo& kind, const json::value& object, const json::value* old) {
  view::ObjectMeta metadata = metadata_of(object);
  if (!old) check_name(out, kind, metadata);
  if (kind.kind.namespaced && metadata.namespace_().empty()) out.required("metadata.namespace");
  if (kind.kind.namespaced && !metadata.namespace_().empty()) {
    out.invalid_all("metadata.namespace", metadata.namespace_(), dns_label_problems(metadata.namespace_()));
  }
  if (!kind.kind.namespaced && !metadata.namespace_().empty()) out.forbidden("metadata.namespace", "not allowed on this type");
  if (metadata.generation() < 0) out.not_negative("metadata.generation", metadata.generation());
  // What an update leaves as it was has no new causes. (`old` is the object itself where the causes of an old one are collected.)
  const view::ObjectMeta before = old && old != &object ? metadata_of(*old) : view::ObjectMeta();
  if (!before || !same_json(metadata.labels(), before.labels())) check_labels(out, "metadata.labels", metadata.labels());
  if (!before || !same_json(metadata.annotations(), before.annotations()))
    check_annotations(out, "metadata.annotations", metadata.annotations());
  check_owners(out, metadata);
  std::set<std::string_view> known;
  if (old)
    for (std::string_view finalizer : metadata_of(*old).finalizers()) known.insert(finalizer);
  check_finalizers(out, kind.kind, metadata, known);
}

void check_metadata_update(Findings& out, const json::value& object, const json::value& old) {
  view::ObjectMeta now = metadata_of(object), before = metadata_of(old);
  if (!before.deletion_timestamp().empty()) {
    std::set<std::string_view> added;
    for (std::string_view finalizer : now.finalizers()) added.insert(finalizer);
    for (std::string_view finalizer : before.finalizers()) added.erase(finalizer);
    std::vector<std::string> names;
    for (std::string_view finalizer : added) names.push_back(quoted(finalizer));
    if (!names.empty())
      out.forbidden("metadata.finalizers",
                    "no new finalizers can be added if the object is being deleted, found new finalizers []string{" +
                        join(names, ", ") + "}");
  }
  if (now.generation() < before.generation()) {
    out.invalid("metadata.generation", now.generation(), "must not be decremented");
  }
  for (std::string_view path : {"metadata.name", "metadata.namespace", "metadata.uid", "metadata.creationTimestamp",
                                "metadata.deletionTimestamp", "metadata.deletionGracePeriodSeconds"}) {
    check_immutable(out, path, find(object, path), find(old, path));
  }
}

}  // namespace coracle::schema
