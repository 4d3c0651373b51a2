// SPDX-License-Identifier: Apache-2.0
// Namespace: deletes the content of a namespace that is being deleted, pods first, then finalizes it.
//   deletionTimestamp ──▶ delete pods ──none left──▶ delete everything else ──none left──▶ PUT /finalize
// While something remains (a finalizer, a pod's grace period), the conditions show what. Source: Kubernetes Namespace; ordered
// namespace deletion.
#include <algorithm>

#include "daemon/controller/controller.h"
#include "daemon/controller/job/job.h"
#include "daemon/controller/shared/common.h"
#include "daemon/controller/shared/elapsed.h"
#include "store/schema/catalog.h"

namespace coracle::controller {
namespace {

// Content may disappear soon or be held for days, so the interval of checks grows with the time.
constexpr std::chrono::seconds kLookAgain{2}, kLookAgainMost{60};
constexpr int kShareOfWait = 4;

struct Remaining {
  std::map<std::string, size_t> by_resource;  // "pods." → 2, "deployments.apps"
  std::map<std::string, size_t> by_finalizer;
  bool pods = false;  // the rest is deleted after the pods
  std::string failure;
};

// It has ended and is kept only for its Job's accounting, which ends when the Job is deleted.
bool waits_for_job(const Object& pod) {
  view::Range<std::string_view> finalizers = view::Pod(pod).metadata().finalizers();
  return is_terminal(view::Pod(pod)) && finalizers.size() == 1 && finalizers[0] == kJobTracking;
}

std::string list_of(const std::map<std::string, size_t>& counts, std::string_view separator) {
  std::string out;
  for (const auto& [what, count] : counts)
    out.append(out.empty() ? "" : ", ")
        .append(what)
        .append(separator)
        .append(std::to_string(count))
        .append(" resource instances");
  return out;
}

void content_conditions(json::array& conditions, const Remaining& remaining, WallTime now) {
  auto set = [&](std::string type, bool is, std::string reason, std::string message) {
    view::NamespaceCondition present(find_condition(conditions, type));
    std::string_view status = is ? "True" : "False";
    if (present.status() == status && present.message() == message) return;
    set_condition(conditions, {std::move(type), std::string(status), std::move(reason), std::move(message)}, now);
  };
  set("NamespaceDeletionDiscoveryFailure", false, "ResourcesDiscovered", "All resources successfully discovered");
  set("NamespaceDeletionGroupVersionParsingFailure", false, "ParsedGroupVersions", "All legacy kube types successfully parsed");
  if (remaining.failure.empty())
    set("NamespaceDeletionContentFailure", false, "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization");
  else set("NamespaceDeletionContentFailure", true, "ContentDeletionFailed", remaining.failure);
  if (remaining.by_resource.empty())
    set("NamespaceContentRemaining", false, "ContentRemoved", "All content successfully removed");
  else
    set("NamespaceContentRemaining", true, "SomeResourcesRemain",
        "Some resources are remaining: " + list_of(remaining.by_resource, " has "));
  if (remaining.by_finalizer.empty())
    set("NamespaceFinalizersRemaining", false, "ContentHasNoFinalizers", "All content-preserving finalizers finished");
  else
    set("NamespaceFinalizersRemaining", true, "SomeFinalizersRemain",
        "Some content in the namespace has finalizers remaining: " + list_of(remaining.by_finalizer, " in "));
}

class NamespaceController : public Controller {
 public:
  explicit NamespaceController(const Context& context)
      : client_(context.client),
        catalogs_(context.catalogs),
        clock_(context.clock),
        namespaces_(context.informers.of(kNamespace)),
        elapsed_(context.clock) {}

  std::string_view name() const override { return "namespace"; }

  void subscribe(const Enqueue& enqueue) override {
    namespaces_.on_change([=, this](const Informer::Change& change) {
      if (!change.after) elapsed_.forget(change.before->uid());
      if (change.after && change.after->deleting()) enqueue.now(change.after->key());
    });
  }

  Result<Outcome> reconcile(const Key& key) override {
    ObjectPtr object = namespaces_.get(key);
    if (!object || !object->deleting() || view::Namespace(*object).spec().finalizers().empty()) return Outcome{};
    ObjectPtr live = TRY(still_there(*object));  // a new namespace with the same name must not be emptied
    if (!live) return Outcome{};
    Remaining remaining;
    TRY(empty_kind(kPod, key.name, remaining));
    if (!remaining.pods) {  // pods terminate before the objects that they use are deleted (KEP-5080)
      const schema::CatalogPtr catalog = catalogs_.now();
      for (const schema::KindInfo& info : catalog->kinds())
        if (is_content(info)) empty_if_possible(info.kind, key.name, remaining);
    }
    TRY(write_conditions(*object, remaining));
    if (!remaining.by_resource.empty() || !remaining.failure.empty()) return Outcome{pause(*object)};
    TRY(finalize(*object));
    return Outcome{};
  }

 private:
  std::chrono::nanoseconds pause(const Object& object) const {
    auto since = parse_time(view::Namespace(object).metadata().deletion_timestamp());
    if (!since) return kLookAgain;
    return std::clamp<std::chrono::nanoseconds>(elapsed_.since(object.uid(), "end", *since) / kShareOfWait, kLookAgain,
                                                kLookAgainMost);
  }

  static bool is_content(const schema::KindInfo& info) {
    return info.is_stored() && info.kind.namespaced && info.has_verb("list") && info.has_verb("delete") && !(info.kind == kPod);
  }

  // A failure with one kind must not stop the others.
  void empty_if_possible(const Kind& kind, const std::string& ns, Remaining& remaining) {
    auto done = empty_kind(kind, ns, remaining);
    if (!done) remaining.failure = "Failed to delete all resource types: " + done.error().text();
  }

  Result<void> empty_kind(const Kind& kind, const std::string& ns, Remaining& remaining) {
    ObjectList found = TRY(client_.list(kind, {.ns = ns}).wrap("list " + kind.qualified_resource()));
    if (found.items.empty()) return {};
    for (const ObjectPtr& object : found.items) {
      if (object->deleting()) continue;
      auto removed = client_.remove(kind, object->key(), {.propagation = "Background"});
      bool gone = removed || removed.error().code() == Code::not_found || removed.error().code() == Code::conflict;
      if (!gone) return removed.take_error().wrap("delete " + object->key().text());
    }
    ObjectList left = TRY(client_.list(kind, {.ns = ns}).wrap("list " + kind.qualified_resource()));
    if (!left.items.empty())
      remaining.by_resource[std::string(kind.resource) + "." + std::string(kind.group)] += left.items.size();
    for (const ObjectPtr& object : left.items) remaining.pods |= kind == kPod && !waits_for_job(*object);
    for (const ObjectPtr& object : left.items)
      for (std::string_view finalizer : metadata_of(*object).finalizers()) ++remaining.by_finalizer[std::string(finalizer)];
    return {};
  }

  Result<void> write_conditions(const Object& object, const Remaining& remaining) {
    json::object status = view::Namespace(object).status().members();
    json::array conditions = view::Namespace(object).status().conditions().raw();
    content_conditions(conditions, remaining, clock_.now());
    status["conditions"] = std::move(conditions);
    status["phase"] = "Terminating";
    auto written = write_status(client_, object, std::move(status));
    // The conditions are not essential; the next sync writes them.
    if (!written && written.error().code() != Code::conflict && written.error().code() != Code::not_found)
      return written.take_error();
    return {};
  }

  // The namespace in the store; null if it is deleted or was recreated.
  Result<ObjectPtr> still_there(const Object& ns) {
    auto live = client_.get(kNamespace, ns.key());
    bool gone = live ? (*live)->uid() != ns.uid() : live.error().code() == Code::not_found;
    return gone ? Result<ObjectPtr>(ObjectPtr()) : live;
  }

  Result<void> finalize(const Object& ns) {
    ObjectPtr live = TRY(still_there(ns));
    if (!live) return {};
    json::value body = live->json();
    json::array& finalizers = make(body, "spec.finalizers").emplace_array();
    for (std::string_view finalizer : view::Namespace(*live).spec().finalizers())
      if (finalizer != "kubernetes") finalizers.emplace_back(finalizer);
    auto done = client_.update(kNamespace, body, {.subresource = "finalize"});
    if (!done && done.error().code() != Code::not_found) return done.take_error().wrap("finalize namespace");
    return {};
  }

  Client& client_;
  const schema::CatalogSource& catalogs_;
  const Clock& clock_;
  Informer& namespaces_;
  Elapsed elapsed_;
};

}  // namespace

std::unique_ptr<Controller> make_namespace_controller(const Context& context) {
  return std::make_unique<NamespaceController>(context);
}

}  // namespace coracle::controller
