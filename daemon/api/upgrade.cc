// SPDX-License-Identifier: Apache-2.0
// See upgrade.h.
#include "daemon/api/upgrade.h"

#include <algorithm>

#include "daemon/auth/authorizer.h"
#include "runtime/base/text.h"
#include "store/object/status.h"

namespace coracle::api {
namespace {

constexpr std::string_view kVersionHeader = "X-Stream-Protocol-Version";

std::string listed(const std::vector<std::string_view>& words) {
  std::string out;
  for (std::string_view word : words) out += (out.empty() ? "" : " ") + std::string(word);
  return "[" + out + "]";
}

}  // namespace

Result<void> may_open(Call& call) {
  auth::Attributes asked = attributes_of(call.route, call.head());
  if (asked.verb == "create" || !call.context.authorizer) return {};
  asked.verb = "create";
  auth::Decision decision = call.context.authorizer->authorize(*call.user, asked);
  if (!decision.allowed) return auth::denial(*call.user, asked, decision.reason);
  return {};
}

bool asks_for_spdy(const Head& head) {
  return header_has_token(head.headers.get("Connection"), "upgrade") && header_has_token(head.headers.get("Upgrade"), "SPDY/3.1");
}

Result<std::optional<std::string>> accept_spdy(Call& call, const std::vector<std::string_view>& ours) {
  std::vector<std::string_view> theirs;
  for (std::string_view field : call.head().headers.all(kVersionHeader))
    for (std::string_view name : split(field, ','))
      if (!trim(name).empty()) theirs.push_back(trim(name));
  if (theirs.empty()) return bad_request("unable to upgrade: " + std::string(kVersionHeader) + " is required");
  auto chosen = std::find_first_of(theirs.begin(), theirs.end(), ours.begin(), ours.end());
  if (chosen == theirs.end()) {
    for (std::string_view name : ours) call.answer().headers.emplace_back("X-Accepted-Stream-Protocol-Versions", name);
    answer_text(call, 403,
                "unable to upgrade: unable to negotiate protocol: client supports " + listed(theirs) + ", server accepts " +
                    listed(ours) + "\n");
    return std::nullopt;
  }
  std::string version(*chosen);
  std::string head =
      begin_head(101, {{"Connection", "Upgrade"}, {"Upgrade", "SPDY/3.1"}, {std::string(kVersionHeader), version}});
  Connection& connection = call.exchange.take_over(101);
  if (!connection.write(head + "\r\n") || !connection.flush()) return Error(Code::unavailable, "the client went away");
  connection.set_read_deadline(SteadyTime::max());
  return version;
}

}  // namespace coracle::api
