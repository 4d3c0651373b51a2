// SPDX-License-Identifier: Apache-2.0
// See apply_set.h.
#include "ctl/apply_set.h"

#include <cstdlib>

#include "ctl/about.h"
#include "ctl/print.h"
#include "runtime/base/sha256.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"

namespace coracle::ctl {
namespace {

constexpr const char* kSetTool = "kubectl";  // whose sets ours are
constexpr const char* kSetManager = "kubectl-applyset";
constexpr const char* kSetIdLabel = "applyset.kubernetes.io/id";
constexpr const char* kSetMemberLabel = "applyset.kubernetes.io/part-of";
constexpr const char* kSetToolingAnnotation = "applyset.kubernetes.io/tooling";
constexpr const char* kSetKindsAnnotation = "applyset.kubernetes.io/contains-group-kinds";
constexpr const char* kSetResourcesAnnotation = "applyset.kubernetes.io/contains-group-resources";  // as of kubectl 1.27
constexpr const char* kSetNamespacesAnnotation = "applyset.kubernetes.io/additional-namespaces";

std::string group_kind_text(std::string_view group, std::string_view kind) {
  return std::string(kind) + (group.empty() ? "" : ".") + std::string(group);
}

// "apps/v1", and "/v1" of the core.
std::string go_group_version(const schema::KindInfo& kind) {
  return std::string(kind.kind.group) + "/" + std::string(kind.kind.version);
}

// The preferred version of the kind "Deployment.apps".
const schema::KindInfo* kind_in_set(std::string_view text) {
  const size_t dot = std::min(text.find('.'), text.size());
  std::string_view kind = text.substr(0, dot), group = text.substr(std::min(dot + 1, text.size()));
  for (const schema::KindInfo& info : schema::catalog().kinds())
    if (info.kind.kind == kind && info.kind.group == group) return &info;
  return nullptr;
}

// "widgets.example.com" as Go writes a resource of which no version is known.
std::string go_resource(std::string_view text) {
  const size_t dot = std::min(text.find('.'), text.size());
  return std::string(text.substr(std::min(dot + 1, text.size()))) + "/, Resource=" + std::string(text.substr(0, dot));
}

std::string_view text_in(const json::object& map, std::string_view key) {
  const json::value* value = map.if_contains(key);
  return value && value->is_string() ? std::string_view(value->get_string()) : std::string_view();
}

}  // namespace

bool ApplySet::is_enabled() {
  const char* value = std::getenv("KUBECTL_APPLYSET");
  return value && to_lower(value) == "true";
}

Result<ApplySet> ApplySet::named(const Session& session, const std::string& reference) {
  auto wrong = [&](const std::string& why) {
    return Error(Code::bad_request, "invalid parent reference " + coracle::quoted(reference) + ": " + why);
  };
  const size_t slash = reference.find('/');
  std::string resource = slash == reference.npos ? "secrets" : reference.substr(0, slash);
  std::string name = slash == reference.npos ? reference : reference.substr(slash + 1);
  if (name.empty()) return wrong("name cannot be blank");
  const schema::KindInfo* kind = schema::catalog().by_name(resource);
  if (!kind) return wrong("no matches for " + go_resource(resource));
  ApplySet set(*kind, std::move(name));
  if (kind->kind.namespaced && session.ns_given()) set.ns_ = session.ns();
  return set;
}

std::vector<Error> ApplySet::faults() const {
  std::vector<Error> faults;
  if (kind_->kind.namespaced && ns_.empty())
    faults.emplace_back(Code::bad_request, "namespace is required to use namespace-scoped ApplySet");
  if (!(kind_->kind == kSecret) && !(kind_->kind == kConfigMap))
    faults.emplace_back(Code::bad_request,
                        "resource " +
                            coracle::quoted(go_group_version(*kind_) + ", Resource=" + std::string(kind_->kind.resource)) +
                            " is not permitted as an ApplySet parent");
  return faults;
}

std::string ApplySet::id() const {
  const Sha256 digest = sha256_of(name_ + "." + ns_ + "." + std::string(kind_->kind.kind) + "." + std::string(kind_->kind.group));
  return "applyset-" + base64url_encode(as_text(digest)) + "-v1";
}

std::string ApplySet::shown() const {
  return std::string(kind_->kind.resource) + "." + std::string(kind_->kind.group) + "/" + name_;
}

Result<void> ApplySet::add(const schema::KindInfo& kind, const std::string& ns, json::value& object) {
  json::value& labels = make(object, "metadata.labels");
  if (!labels.is_object()) labels.emplace_object();
  if (labels.get_object().contains(kSetMemberLabel))
    return Error(Code::bad_request, "ApplySet label " + coracle::quoted(kSetMemberLabel) + " already set in input data");
  labels.get_object()[kSetMemberLabel] = id();
  applied_.kinds.emplace(group_kind_text(kind.kind.group, kind.kind.kind), &kind);
  if (kind.kind.namespaced && !ns.empty()) applied_.namespaces.insert(ns);
  return {};
}

Result<void> ApplySet::read_parent(const json::value& parent) {
  const std::string shown_name = coracle::quoted(shown());
  auto wrong = [](std::string why) { return Error(Code::conflict, std::move(why)); };
  const json::object &labels = metadata_of(parent).labels(), &annotations = metadata_of(parent).annotations();
  if (!annotations.contains(kSetToolingAnnotation))
    return wrong("ApplySet parent object " + shown_name + " already exists and is missing required annotation " +
                 coracle::quoted(kSetToolingAnnotation));
  std::string_view tool = text_in(annotations, kSetToolingAnnotation);
  tool = tool.substr(0, tool.rfind('/'));  // all of it where no version follows
  if (tool != kSetTool)
    return wrong("ApplySet parent object " + shown_name + " already exists and is managed by tooling " + coracle::quoted(tool) +
                 " instead of " + coracle::quoted(kSetTool));
  if (!labels.contains(kSetIdLabel))
    return wrong("ApplySet parent object " + shown_name + " exists and does not have required label " + kSetIdLabel);
  if (std::string_view found = text_in(labels, kSetIdLabel); found != id())
    return wrong("ApplySet parent object " + shown_name + " exists and has incorrect value for label " +
                 coracle::quoted(kSetIdLabel) + " (got: " + std::string(found) + ", want: " + id() + ")");
  const std::string parsing = "parsing ApplySet annotation on " + shown_name + ": ";
  const bool has_kinds = annotations.contains(kSetKindsAnnotation);
  std::string_view members = text_in(annotations, has_kinds ? kSetKindsAnnotation : kSetResourcesAnnotation);
  if (!has_kinds && members.empty())
    return wrong(parsing + "kubectl requires the " + coracle::quoted(kSetKindsAnnotation) +
                 " annotation to be set on all ApplySet parent objects");
  for (std::string_view text : members.empty() ? std::vector<std::string_view>() : split(members, ',')) {
    const schema::KindInfo* kind = has_kinds ? kind_in_set(text) : schema::catalog().by_name(text);
    if (!kind && !has_kinds)
      return wrong(parsing + "invalid group resource in " + coracle::quoted(kSetResourcesAnnotation) +
                   " annotation: no matches for " + go_resource(text));
    if (!kind) {
      const size_t dot = std::min(text.find('.'), text.size());
      return wrong(parsing + "could not find mapping for kind in " + coracle::quoted(kSetKindsAnnotation) +
                   " annotation: no matches for kind " + coracle::quoted(text.substr(0, dot)) + " in group " +
                   coracle::quoted(text.substr(std::min(dot + 1, text.size()))));
    }
    before_.kinds.emplace(group_kind_text(kind->kind.group, kind->kind.kind), kind);
  }
  if (std::string_view places = text_in(annotations, kSetNamespacesAnnotation); !places.empty())
    for (std::string_view ns : split(places, ',')) before_.namespaces.emplace(ns);
  if (kind_->kind.namespaced) before_.namespaces.insert(ns_);
  return {};
}

json::value ApplySet::parent_with(const Content& content) const {
  std::vector<std::string> kinds, namespaces;
  for (const auto& [name, kind] : content.kinds) kinds.push_back(name);
  for (const std::string& ns : content.namespaces)
    if (ns != ns_) namespaces.push_back(ns);
  json::object annotations, labels, metadata{{"name", name_}};
  annotations[kSetToolingAnnotation] = std::string(kSetTool) + "/" + kGitVersion;
  annotations[kSetKindsAnnotation] = join(kinds, ",");
  annotations[kSetNamespacesAnnotation] = join(namespaces, ",");
  labels[kSetIdLabel] = id();
  if (!ns_.empty()) metadata["namespace"] = ns_;
  metadata["labels"] = std::move(labels);
  metadata["annotations"] = std::move(annotations);
  return json::object{{"kind", kind_->kind.kind}, {"apiVersion", kind_->kind.api_version()}, {"metadata", std::move(metadata)}};
}

Result<void> ApplySet::send_parent(Session& session, const json::value& parent, const std::string& field_validation,
                                   bool force) const {
  TRY(session.json(
      {.method = "PATCH",
       .path = session.path(*kind_, ns_, name_),
       .query = {{"fieldManager", kSetManager}, {"fieldValidation", field_validation}, {"force", force ? "true" : "false"}},
       .body = to_text(parent),
       .content_type = "application/apply-patch+yaml"}));
  return {};
}

Result<void> ApplySet::write_parent(Session& session, const Content& content, DryRun dry_run,
                                    const std::string& field_validation) const {
  if (dry_run == DryRun::client) return {};
  const json::value parent = parent_with(content);
  auto sent = send_parent(session, parent, field_validation, false);
  if (!sent && sent.error().code() == Code::conflict) {
    tell("WARNING: failed to update ApplySet: " + sent.error().text() + "\nApplySet field manager " + kSetManager +
         " should own these fields. Retrying with conflicts forced.\n");
    sent = send_parent(session, parent, field_validation, true);
  }
  if (sent) return {};
  return Error(sent.error().code(), "failed to update ApplySet: " + sent.error().text());
}

Result<void> ApplySet::begin(Session& session, DryRun dry_run, const std::string& field_validation) {
  auto parent = session.json({.path = session.path(*kind_, ns_, name_)});
  if (parent) TRY(read_parent(*parent));
  else if (parent.error().code() != Code::not_found)
    return Error(parent.error().code(),
                 "failed to fetch ApplySet parent object " + coracle::quoted(shown()) + ": " + parent.error().text());
  Content both = before_;
  both.kinds.insert(applied_.kinds.begin(), applied_.kinds.end());
  both.namespaces.insert(applied_.namespaces.begin(), applied_.namespaces.end());
  return write_parent(session, both, dry_run, field_validation);
}

Result<std::vector<Prunable>> ApplySet::prunable(Session& session, const std::set<std::string>& visited) const {
  static const std::set<std::string> kNowhere = {""};  // the place of what has no namespace
  const Query members = {{"labelSelector", std::string(kSetMemberLabel) + "=" + id()}};
  std::vector<Prunable> found;
  for (const auto& [name, kind] : before_.kinds) {
    for (const std::string& ns : kind->kind.namespaced ? before_.namespaces : kNowhere) {
      if (kind->kind.namespaced && ns.empty())  // this would be all namespaces
        return Error(Code::invalid, "unexpectedly encountered empty namespace during prune of namespace-scoped resource " + name);
      auto list = session.json({.path = session.path(*kind, ns), .query = members});
      if (!list)
        return Error(list.error().code(), "listing " + go_group_version(*kind) + ", Kind=" + std::string(kind->kind.kind) +
                                              " objects for pruning: " + list.error().text());
      for (const json::value& item : items_of(*list)) {
        if (visited.contains(std::string(metadata_of(item).uid()))) continue;
        json::value object = item;
        name_kind(object, *kind);  // a list's items need not say it
        found.push_back({resource_of(*kind), std::move(object)});
      }
    }
  }
  return found;
}

Result<void> ApplySet::finish(Session& session, DryRun dry_run, const std::string& field_validation) const {
  auto written = write_parent(session, applied_, dry_run, field_validation);
  return std::move(written).wrap("apply and prune succeeded, but ApplySet update failed");
}

std::string pruning_of_member(const Prunable& object) {
  std::string ns(metadata_of(object.object).namespace_());
  return "pruning " + group_kind_text(object.resource.group, object.resource.kind) + " " + ns + (ns.empty() ? "" : "/") +
         std::string(metadata_of(object.object).name());
}

}  // namespace coracle::ctl
