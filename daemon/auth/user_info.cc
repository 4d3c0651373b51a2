// SPDX-License-Identifier: Apache-2.0
// See user_info.h.
#include "daemon/auth/user_info.h"

namespace coracle::auth {

json::object user_info(const User& user) {
  json::object out, extra;
  if (!user.name.empty()) out["username"] = user.name;
  if (!user.uid.empty()) out["uid"] = user.uid;
  if (!user.groups.empty()) out["groups"] = array_of(user.groups);
  for (const auto& [key, values] : user.extra) extra[key] = array_of(values);
  if (!extra.empty()) out["extra"] = std::move(extra);
  return out;
}

}  // namespace coracle::auth
