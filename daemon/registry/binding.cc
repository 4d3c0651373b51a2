// SPDX-License-Identifier: Apache-2.0
// The binding of a pod to its node. A pod is bound once, and not while it is being deleted. Source: Kubernetes
// pkg/registry/core/pod/storage/storage.go (BindingREST).
#include "daemon/registry/metadata.h"
#include "daemon/registry/registry.h"
#include "store/kinds/meta/conditions.h"
#include "store/object/object.h"
#include "store/object/status.h"
#include "store/schema/views.h"

namespace coracle::registry {

Result<json::value> Registry::bind(const Key& key, const json::value& body, const Writer& writer) {
  view::Binding binding(body);
  std::string node(binding.target().name()), uid(binding.metadata().uid()), revision = given_revision(body);
  std::string_view target_kind = binding.target().kind();
  if (node.empty()) return invalid({"", "v1", "Binding", "bindings"}, key.name, {required("target.name")});
  if (!target_kind.empty() && target_kind != "Node" && target_kind != "Minion")
    return invalid({"", "v1", "Binding", "bindings"}, key.name,
                   {not_supported("target.kind", "\"" + std::string(target_kind) + "\"", {"Node", "<empty>"})});
  const schema::KindPtr served = TRY(catalogs_.find(kPod));
  const schema::KindInfo& info = *served;
  auto bound = modify(
      {info, kinds::strategy_of(kPod), key, "binding"},
      [&](const Object& pod) -> Result<json::value> {
        if (!uid.empty() && uid != pod.uid())
          return conflict(kPod, key.name,
                          "Precondition failed: UID in precondition: " + uid + ", UID in object meta: " + pod.uid());
        if (!revision.empty() && revision != std::to_string(pod.revision())) return stale_conflict(kPod, key.name);
        if (pod.deleting())
          return conflict(kPod, key.name, "pod " + key.name + " is being deleted, cannot be assigned to a host");
        std::string has(view::Pod(pod).spec().node_name());
        if (!has.empty()) return conflict(kPod, key.name, "pod " + key.name + " is already assigned to node \"" + has + "\"");
        json::value out = changeable_copy(pod);
        make(out, "spec.nodeName") = node;
        json::object scheduled{{"type", "PodScheduled"},
                               {"status", "True"},
                               {"lastTransitionTime", format_time(clock_.now())},
                               {"observedGeneration", view::Pod(pod).metadata().generation()}};
        make_condition(make_array(out, "status.conditions"), "PodScheduled") = std::move(scheduled);
        for (const auto& [name, value] : binding.metadata().annotations()) make_object(out, "metadata.annotations")[name] = value;
        return out;
      },
      revision.empty(), writer);
  if (!bound) return bound.take_error();
  json::value answer = success_status();
  answer.get_object()["code"] = 201;
  return answer;
}

}  // namespace coracle::registry
