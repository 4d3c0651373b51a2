// SPDX-License-Identifier: Apache-2.0
// /coracle/v1/placement, for `coraclectl why pod`: where a pod could be scheduled now, and why not elsewhere. The response
// contains data of nodes, so this path needs its own permission.
//   GET /coracle/v1/placement?namespace=NS&pod=NAME   the response is that of Scheduler::explain
#include "daemon/api/handlers.h"
#include "store/object/status.h"

namespace coracle::api {
namespace {

Result<json::value> explain(const Call& call) {
  std::string ns(call.query().get("namespace")), name(call.query().get("pod"));
  if (ns.empty() || name.empty()) return bad_request("the query must name namespace and pod");
  ObjectPtr pod = TRY(call.context.registry.get(kPod, {ns, name}));
  if (!call.context.config.placement) return Error(Code::unavailable, "this daemon has no scheduler");
  return call.context.config.placement(*pod);
}

}  // namespace

void serve_placement(Call& call) {
  auto explained = explain(call);
  if (!explained) return answer_error(call, explained.error());
  answer_value(call, *explained);
}

}  // namespace coracle::api
