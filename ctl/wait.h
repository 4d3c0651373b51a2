// SPDX-License-Identifier: Apache-2.0
// Waiting for objects, by watches: until one is gone, until a condition holds. Nothing polls.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "ctl/session.h"

namespace coracle::ctl {

// A span as Go writes it ("30s", "1m30s", "1.5h"), or a bare number of seconds; never negative. Errors: invalid.
Result<std::chrono::milliseconds> parse_timeout(std::string_view text);

// Calls `look` with the object now (null when it is absent) and after each change, until it returns true. `timeout` 0: no
// limit. Errors: timeout, "timed out waiting for the condition on pods/web"; the server's.
Result<void> wait_until(Session& session, const schema::KindInfo& kind, const std::string& ns, const std::string& name,
                        std::chrono::milliseconds timeout, const std::function<Result<bool>(const json::value* object)>& look);

// Until the object, or that very one (`uid` not ""), is gone.
Result<void> wait_gone(Session& session, const schema::KindInfo& kind, const std::string& ns, const std::string& name,
                       const std::string& uid, std::chrono::milliseconds timeout);

// What --for of `wait` asks for. Pure.
class Condition {
 public:
  // "delete", "create", "condition=TYPE[=STATUS]", "jsonpath={PATH}[=VALUE]". Errors: bad_request, or invalid for a path that
  // cannot be read, in kubectl's words.
  static Result<Condition> parse(const std::string& text);
  // Whether the object, null where there is none, is so. A condition that was observed for an older generation does not count.
  // Errors: bad_request where a path leads to several values, or to one that cannot be compared.
  Result<bool> holds(const json::value* object) const;
  bool of_deletion() const { return form_ == Form::deletion; }
  bool of_creation() const { return form_ == Form::creation; }

 private:
  enum class Form : uint8_t { deletion, creation, condition, path };
  Form form_ = Form::deletion;
  std::string name_, value_;  // a condition's type in lower case, or a path; the value wanted, "" of a path: any
};

}  // namespace coracle::ctl
