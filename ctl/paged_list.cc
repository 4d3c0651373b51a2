// SPDX-License-Identifier: Apache-2.0
// See paged_list.h.
#include "ctl/paged_list.h"

#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"

namespace coracle::ctl {

Result<json::value> paged_list(Session& session, Request request, int64_t chunk_size) {
  if (chunk_size < 0) return Error(Code::bad_request, "--chunk-size must not be negative");
  if (chunk_size == 0) return session.json(request);
  request.query.emplace_back("limit", std::to_string(chunk_size));
  json::array items;
  for (std::string token;;) {
    Request page = request;
    if (!token.empty()) page.query.emplace_back("continue", token);
    json::value answer = TRY(session.json(page));
    if (!answer.is_object()) return answer;
    for (const json::value& item : items_of(answer)) items.push_back(item);
    token = view::List(answer).metadata().continue_();
    if (!token.empty()) continue;
    answer.get_object()["items"] = std::move(items);
    return answer;
  }
}

Error about_list(Error error, const schema::KindInfo& kind, const std::string& labels, const std::string& fields) {
  if (!error.details() || (error.code() != Code::bad_request && error.code() != Code::not_found)) return error;
  std::string resource = kind.kind.api_version();
  if (kind.kind.group.empty()) resource.insert(0, "/");
  resource = quoted(resource.append(", Resource=").append(kind.kind.resource));
  if (labels.empty() && fields.empty()) return std::move(error).wrap("Unable to list " + resource);
  return std::move(error).wrap("Unable to find " + resource + " that match label selector " + quoted(labels) +
                               ", field selector " + quoted(fields));
}

}  // namespace coracle::ctl
