// SPDX-License-Identifier: Apache-2.0
// Status: how an Error is told to a Kubernetes client, and read back from one. One table holds Code ↔ HTTP status ↔
// reason; the makers below word the errors that clients compare by text, so that every room words them alike.
//   Error ──to_status──▶ {"kind":"Status",...} ──HTTP──▶ error_from_status ──▶ Error with the same code and details
// Source: apimachinery meta/v1 Status, api/errors; apiserver handlers/responsewriters.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "store/object/kind.h"

namespace coracle {

int http_status(const Error& error);
std::string_view reason_of(const Error& error);  // "NotFound"; details().reason wins
// As details().reason: the Status tells none, as where Kubernetes answers with an error of its storage.
constexpr std::string_view kReasonUnknown = "Unknown";

// The failure as a v1 Status. `retryAfterSeconds` in it must also be sent as the header Retry-After.
json::value to_status(const Error& error);
// The answer to a deletion and other actions that succeed: {"status":"Success"}, details where `name` is given.
json::value success_status(const Kind* kind = nullptr, std::string_view name = {}, std::string_view uid = {});

// What a server's failed answer means. `body` is a Status, or anything else (then it is quoted, cut short).
// `retry_after_seconds` is the header's, 0 where there was none.
Error error_from_status(int http, std::string_view body, int retry_after_seconds = 0);
Error error_from_status(const json::value& status);  // of a Status object: a watch's ERROR event

// Makers. Each carries details (group, kind, name) and Kubernetes' wording.
Error not_found(const Kind& kind, std::string_view name);       // pods "x" not found
Error already_exists(const Kind& kind, std::string_view name);  // pods "x" already exists
Error conflict(const Kind& kind, std::string_view name, std::string_view why);
Error stale_conflict(const Kind& kind, std::string_view name);  // conflict: the object has been modified; please ...
Error forbidden(const Kind& kind, std::string_view name, std::string_view why);     // pods "x" is forbidden: why
Error invalid(const Kind& kind, std::string_view name, std::vector<Cause> causes);  // Pod "x" is invalid: field: why
Error invalid_field(std::string field, std::string message, std::string reason = "FieldValueInvalid");  // of no object yet
Error bad_request(std::string_view why);
Error expired(std::string_view why);  // 410 Expired
Error internal_error(std::string_view why);
Error storage_error(std::string_view why);  // 500 without a reason

// One finding as text and cause: required("spec.containers"), invalid_value("spec.replicas", "-1", "must be ...").
Cause required(std::string field, std::string_view detail = {});
Cause invalid_value(std::string field, std::string_view value_as_json, std::string_view detail);
Cause not_supported(std::string field, std::string_view value_as_json, const std::vector<std::string>& supported);
Cause forbidden_field(std::string field, std::string_view detail);
Cause duplicate(std::string field, std::string_view value_as_json);
Cause too_long(std::string field, size_t bytes_max);

}  // namespace coracle
