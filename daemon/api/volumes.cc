// SPDX-License-Identifier: Apache-2.0
// /coracle/v1/volumes, for `coraclectl volume`: export and import of claims' volumes as archives (tar, compressed with zstd).
//   GET  /coracle/v1/volumes/export?namespace=NS&claim=NAME   the response is the archive
//                                                             &inUse=true: even while a pod may change the content
//   POST /coracle/v1/volumes/import?namespace=NS&claim=NAME   the body is the archive
//                                                             &replace=true: the present content is replaced
#include "daemon/api/archives.h"
#include "store/object/status.h"

namespace coracle::api {
namespace {

constexpr std::string_view kPath = "/coracle/v1/volumes";

Result<void> export_volume(Call& call, const Key& claim) {
  bool in_use = call.query().flag("inUse");
  return send_archive(call, "application/zstd", "an export of a volume",
                      [&](const Fd& archive) { return call.context.volumes.export_volume(claim, in_use, archive); });
}

Result<void> import_volume(Call& call, const Key& claim) {
  bool replace = call.query().flag("replace");
  json::value counted =
      TRY(receive_archive(call, [&](const Fd& archive) { return call.context.volumes.import_volume(claim, replace, archive); }));
  answer_value(call, counted);
  return {};
}

}  // namespace

void serve_volumes(Call& call) {
  const std::string &method = call.head().method, &path = call.route.path;
  const Key claim{std::string(call.query().get("namespace")), std::string(call.query().get("claim"))};
  const bool exports = path == std::string(kPath) + "/export", imports = path == std::string(kPath) + "/import";
  if (!exports && !imports) return answer_page_not_found(call);
  if (method != (exports ? "GET" : "POST"))
    return answer_error(call, Error(Code::method_not_allowed, "the server does not allow this method on the requested resource"));
  if (claim.ns.empty() || claim.name.empty())
    return answer_error(call, bad_request("?namespace= and ?claim= must name a persistentvolumeclaim"));
  answer_with(call, exports ? export_volume(call, claim) : import_volume(call, claim));
}

}  // namespace coracle::api
