// SPDX-License-Identifier: Apache-2.0
// Status: converts an Error to a Kubernetes Status for a client, and back. One table has Code ↔ HTTP status ↔ reason. The
// functions below create errors that clients compare by text, so that the text is the same everywhere.
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

int http_status(const Error& error);             // 404
std::string_view reason_of(const Error& error);  // "NotFound"; details().reason takes precedence
// A details().reason that is omitted from the Status, as where Kubernetes returns an error of its storage.
constexpr std::string_view kReasonUnknown = "Unknown";

// The error as a v1 Status. Its `retryAfterSeconds` must also be sent as the header Retry-After.
json::value to_status(const Error& error);
// The response to a deletion and other successful actions: {"status":"Success"}, with details if `name` is given.
json::value success_status(const Kind* kind = nullptr, std::string_view name = {}, std::string_view uid = {});

// The Error for a server's failure response. `body` is a Status; other text is quoted and shortened. `retry_after_seconds` is the
// header's value, 0 if absent.
Error error_from_status(int http, std::string_view body, int retry_after_seconds = 0);
Error error_from_status(const json::value& status);  // for a Status object: a watch's ERROR event

// Errors with details (group, kind, name) in Kubernetes' wording.
Error not_found(const Kind& kind, std::string_view name);       // pods "x" not found
Error already_exists(const Kind& kind, std::string_view name);  // pods "x" already exists
Error conflict(const Kind& kind, std::string_view name, std::string_view why);
Error stale_conflict(const Kind& kind, std::string_view name);  // conflict: the object has been modified; please ...
Error forbidden(const Kind& kind, std::string_view name, std::string_view why);     // pods "x" is forbidden: why
Error invalid(const Kind& kind, std::string_view name, std::vector<Cause> causes);  // Pod "x" is invalid: field: why
Error invalid_field(std::string field, std::string message, std::string reason = "FieldValueInvalid");  // without an object
Error bad_request(std::string_view why);
Error expired(std::string_view why);  // 410 Expired
Error internal_error(std::string_view why);
Error storage_error(std::string_view why);  // 500 without a reason

// A cause with its text: required("spec.containers"), invalid_value("spec.replicas", "-1", "must be ...").
Cause required(std::string field, std::string_view detail = {});
Cause invalid_value(std::string field, std::string_view value_as_json, std::string_view detail);
Cause not_supported(std::string field, std::string_view value_as_json, const std::vector<std::string>& supported);
Cause forbidden_field(std::string field, std::string_view detail);
Cause duplicate(std::string field, std::string_view value_as_json);
Cause too_long(std::string field, size_t bytes_max);

}  // namespace coracle
