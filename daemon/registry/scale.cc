// SPDX-License-Identifier: Apache-2.0
// See scale.h.
#include "daemon/registry/scale.h"

#include "daemon/registry/metadata.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/object.h"
#include "store/object/selector.h"
#include "store/object/status.h"

namespace coracle::registry {

json::value scale_of(const Object& workload) {
  view::Deployment body(workload);  // every kind that is scaled has these fields
  view::LabelSelector given = body.spec().selector();
  bool by_map = workload.kind().resource == "replicationcontrollers";  // its selector is a map of labels
  Result<LabelSelector> selector = by_map ? LabelSelector::from_map(given.members()) : LabelSelector::from_json(given.pointer());
  json::object metadata{{"name", workload.name()},
                        {"namespace", workload.ns()},
                        {"uid", workload.uid()},
                        {"resourceVersion", std::to_string(workload.revision())},
                        {"creationTimestamp", body.metadata().creation_timestamp()}};
  json::object status{{"replicas", body.status().replicas()}};
  if (selector) status["selector"] = selector->text();
  json::object spec;
  if (int64_t replicas = body.spec().replicas()) spec["replicas"] = replicas;
  return json::object{{"kind", "Scale"},
                      {"apiVersion", "autoscaling/v1"},
                      {"metadata", std::move(metadata)},
                      {"spec", std::move(spec)},
                      {"status", std::move(status)}};
}

Result<json::value> apply_scale(const Object& workload, const json::value& scale) {
  static constexpr Kind kScale{"autoscaling", "v1", "Scale", "scales"};
  TRY(check_uid(workload.kind(), scale, workload));
  std::string_view revision = metadata_of(scale).resource_version();
  if (!revision.empty() && revision != "0" && revision != std::to_string(workload.revision()))
    return stale_conflict(workload.kind(), workload.name());
  int64_t count = view::Scale(scale).spec().replicas();
  if (count < 0)
    return invalid(kScale, workload.name(),
                   {invalid_value("spec.replicas", std::to_string(count), "must be greater than or equal to 0")});
  json::value body = changeable_copy(workload);
  make(body, "spec.replicas") = count;
  return body;
}

}  // namespace coracle::registry
