// SPDX-License-Identifier: Apache-2.0
// See paged_list.h.
#include "ctl/paged_list.h"

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
    for (const json::value& item : get_array(answer, "items")) items.push_back(item);
    token = get_string(answer, "metadata.continue");
    if (!token.empty()) continue;
    answer.get_object()["items"] = std::move(items);
    return answer;
  }
}

}  // namespace coracle::ctl
