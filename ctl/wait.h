// SPDX-License-Identifier: Apache-2.0
// Waiting for objects, by watches: until one is gone, until a condition holds. Nothing polls.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "ctl/session.h"

namespace coracle::ctl {

// "30s", "1m30s", "2h", "0" as Go writes durations; a bare number is seconds. Errors: invalid.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);

// Calls `look` with the object now (null when it is absent) and after each change, until it returns true. `timeout` 0: no
// limit. Errors: timeout; the server's.
Result<void> wait_until(Session& session, const schema::KindInfo& kind, const std::string& ns, const std::string& name,
                        std::chrono::milliseconds timeout, const std::function<Result<bool>(const json::value* object)>& look);

// Until the object, or that very one (`uid` not ""), is gone.
Result<void> wait_gone(Session& session, const schema::KindInfo& kind, const std::string& ns, const std::string& name,
                       const std::string& uid, std::chrono::milliseconds timeout);

}  // namespace coracle::ctl
