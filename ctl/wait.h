// SPDX-License-Identifier: Apache-2.0
// Waits for an object to be deleted or to meet a condition. It uses watches and does not poll.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "ctl/session.h"

namespace coracle::ctl {

// Parses a Go duration ("30s", "1m30s", "1.5h") or a number of seconds. Errors: invalid, also for a negative one.
Result<std::chrono::milliseconds> parse_timeout(std::string_view text);

// As Go writes it: "0s", "250ms", "1.5s", "1m30s", "1h0m0s".
std::string duration_text(std::chrono::milliseconds span);

// Calls `look` with the object (null if it is absent), now and after each change, until it returns true. `timeout` 0 is no limit.
// Errors: timeout, "timed out waiting for the condition on pods/web"; the server's.
Result<void> wait_until(Session& session, const schema::KindInfo& kind, const std::string& ns, const std::string& name,
                        std::chrono::milliseconds timeout, const std::function<Result<bool>(const json::value* object)>& look);

// Waits until there is an object of the kind with these labels. Errors: timeout; the server's.
Result<void> wait_for_any(Session& session, const schema::KindInfo& kind, const std::string& ns, const std::string& labels,
                          std::chrono::milliseconds timeout);

// Waits until the object is gone. With a `uid`, an object of the same name with another uid counts as gone.
Result<void> wait_gone(Session& session, const schema::KindInfo& kind, const std::string& ns, const std::string& name,
                       const std::string& uid, std::chrono::milliseconds timeout);

// The value of `wait --for`. Pure.
class Condition {
 public:
  // Parses "delete", "create", "condition=TYPE[=STATUS]" or "jsonpath={PATH}[=VALUE]". Errors: bad_request, or invalid for a
  // malformed path, worded as kubectl's.
  static Result<Condition> parse(const std::string& text);
  // True if the object (null if absent) meets the condition. A status condition of an older generation does not count. Errors:
  // bad_request if a path selects several values or one that cannot be compared.
  Result<bool> holds(const json::value* object) const;
  bool of_deletion() const { return form_ == Form::deletion; }
  bool of_creation() const { return form_ == Form::creation; }

 private:
  enum class Form : uint8_t { deletion, creation, condition, path };
  Form form_ = Form::deletion;
  std::string name_, value_;  // a condition type in lower case, or a path; the value to wait for ("" with a path: any value)
};

}  // namespace coracle::ctl
