// SPDX-License-Identifier: Apache-2.0
// Error ↔ Kubernetes Status. See status.h.
#include "store/object/status.h"

#include <set>

#include "runtime/base/text.h"

namespace coracle {
namespace {

struct Row {
  Code code;
  int http;
  std::string_view reason;
};

// The first row of a code is used to send it. To read a Status, the reason is looked up first, then the HTTP status.
constexpr Row kRows[] = {
    {Code::invalid, 422, "Invalid"},
    {Code::bad_request, 400, "BadRequest"},
    {Code::unauthorized, 401, "Unauthorized"},
    {Code::forbidden, 403, "Forbidden"},
    {Code::not_found, 404, "NotFound"},
    {Code::method_not_allowed, 405, "MethodNotAllowed"},
    {Code::not_acceptable, 406, "NotAcceptable"},
    {Code::conflict, 409, "Conflict"},
    {Code::already_exists, 409, "AlreadyExists"},
    {Code::gone, 410, "Expired"},
    {Code::gone, 410, "Gone"},
    {Code::too_large, 413, "RequestEntityTooLarge"},
    {Code::unsupported, 415, "UnsupportedMediaType"},
    {Code::too_many_requests, 429, "TooManyRequests"},
    {Code::internal, 500, "InternalError"},
    {Code::unavailable, 503, "ServiceUnavailable"},
    {Code::timeout, 504, "Timeout"},
    {Code::timeout, 500, "ServerTimeout"},
    {Code::cancelled, 503, "ServiceUnavailable"},
};

constexpr size_t kForeignBodyMax = 512;  // bytes of a non-Status response that an error quotes

const Row& row_of(Code code) {
  for (const Row& row : kRows)
    if (row.code == code) return row;
  return row_of(Code::internal);
}

Code code_from(int http, std::string_view reason) {
  for (const Row& row : kRows)
    if (!reason.empty() && row.reason == reason && row.code != Code::cancelled) return row.code;
  for (const Row& row : kRows)
    if (row.http == http) return row.code;
  if (http >= 400 && http < 500) return Code::bad_request;
  return http == 502 ? Code::unavailable : Code::internal;
}

ErrorDetails subject(const Kind& kind, std::string_view name) {
  ErrorDetails details;
  details.group = kind.group;
  details.kind = kind.resource;
  details.name = name;
  return details;
}

std::string named(const Kind& kind, std::string_view name) { return kind.qualified_resource() + " " + quoted(name); }

// An error may quote a client's text; the response must still be valid JSON.
void put(json::object& into, std::string_view name, const std::string& text) {
  if (!text.empty()) into[name] = as_utf8(text);
}

json::value details_json(const ErrorDetails& details) {
  json::object out;
  put(out, "name", details.name);
  put(out, "group", details.group);
  put(out, "kind", details.kind);
  put(out, "uid", details.uid);
  if (!details.causes.empty()) {
    json::array& causes = out["causes"].emplace_array();
    for (const Cause& cause : details.causes) {
      json::object& item = causes.emplace_back(json::object()).get_object();
      put(item, "reason", cause.reason);
      put(item, "message", cause.message);
      put(item, "field", cause.field);
    }
  }
  if (details.retry_after_seconds > 0) out["retryAfterSeconds"] = details.retry_after_seconds;
  return out;
}

ErrorDetails details_from(const json::value& status) {
  ErrorDetails details;
  details.name = get_string(status, "details.name");
  details.group = get_string(status, "details.group");
  details.kind = get_string(status, "details.kind");
  details.uid = get_string(status, "details.uid");
  for (const json::value& cause : get_array(status, "details.causes")) {
    details.causes.push_back({std::string(get_string(cause, "reason")), std::string(get_string(cause, "message")),
                              std::string(get_string(cause, "field"))});
  }
  details.retry_after_seconds = int(get_int(status, "details.retryAfterSeconds"));
  details.reason = get_string(status, "reason");
  details.continue_token = get_string(status, "metadata.continue");
  return details;
}

}  // namespace

int http_status(const Error& error) {
  bool has_own = error.details() && error.details()->http_status;
  return has_own ? error.details()->http_status : row_of(error.code()).http;
}

std::string_view reason_of(const Error& error) {
  if (error.details() && !error.details()->reason.empty()) return error.details()->reason;
  return row_of(error.code()).reason;
}

json::value to_status(const Error& error) {
  json::object status;
  status["kind"] = "Status";
  status["apiVersion"] = "v1";
  status["metadata"].emplace_object();
  status["status"] = "Failure";
  status["message"] = as_utf8(error.text());
  if (reason_of(error) != kReasonUnknown) status["reason"] = reason_of(error);
  const ErrorDetails* details = error.details();
  json::value shown = details ? details_json(*details) : json::value(json::object_kind);
  // Empty details are those of go-restful's responses, and of paths that nobody may read.
  bool shows_empty = error.code() == Code::not_found || error.code() == Code::forbidden;
  bool empty_too = error.code() == Code::method_not_allowed || (details && shows_empty);
  if (details) put(status["metadata"].get_object(), "continue", details->continue_token);
  if (empty_too || !shown.get_object().empty()) status["details"] = std::move(shown);
  status["code"] = http_status(error);
  return status;
}

json::value success_status(const Kind* kind, std::string_view name, std::string_view uid) {
  json::object status;
  status["kind"] = "Status";
  status["apiVersion"] = "v1";
  status["metadata"].emplace_object();
  status["status"] = "Success";
  if (kind && !name.empty()) {
    ErrorDetails details = subject(*kind, name);
    details.uid = uid;
    status["details"] = details_json(details);
  }
  return status;
}

Error error_from_status(const json::value& status) {
  std::string_view reason = get_string(status, "reason");
  Code code = code_from(int(get_int(status, "code", 500)), reason);
  std::string message(get_string(status, "message"));
  if (message.empty()) message = reason.empty() ? "the server gave no reason" : std::string(reason);
  return Error(code, std::move(message)).with(details_from(status));
}

Error error_from_status(int http, std::string_view body, int retry_after_seconds) {
  auto parsed = parse_json(body);
  if (parsed && get_string(*parsed, "kind") == "Status") {
    Error error = error_from_status(*parsed);
    if (retry_after_seconds == 0 || error.details()->retry_after_seconds > 0) return error;
    ErrorDetails details = *error.details();
    details.retry_after_seconds = retry_after_seconds;
    return std::move(error).with(std::move(details));
  }
  std::string text = "the server answered " + std::to_string(http);
  std::string_view shown = trim(body.substr(0, kForeignBodyMax));
  if (!shown.empty()) text += ": " + std::string(shown);
  ErrorDetails details;
  details.retry_after_seconds = retry_after_seconds;
  return Error(code_from(http, {}), std::move(text)).with(std::move(details));
}

Error not_found(const Kind& kind, std::string_view name) {
  return Error(Code::not_found, named(kind, name) + " not found").with(subject(kind, name));
}

Error already_exists(const Kind& kind, std::string_view name) {
  return Error(Code::already_exists, named(kind, name) + " already exists").with(subject(kind, name));
}

Error conflict(const Kind& kind, std::string_view name, std::string_view why) {
  return Error(Code::conflict, "Operation cannot be fulfilled on " + named(kind, name) + ": " + std::string(why))
      .with(subject(kind, name));
}

Error stale_conflict(const Kind& kind, std::string_view name) {
  return conflict(kind, name, "the object has been modified; please apply your changes to the latest version and try again");
}

Error forbidden(const Kind& kind, std::string_view name, std::string_view why) {
  std::string what = name.empty() ? kind.qualified_resource() : named(kind, name);
  return Error(Code::forbidden, what + " is forbidden: " + std::string(why)).with(subject(kind, name));
}

Error invalid(const Kind& kind, std::string_view name, std::vector<Cause> causes) {
  std::vector<std::string> lines;
  std::set<std::string> said;  // equal ones are told once, as in Go's aggregate errors
  for (const Cause& cause : causes) {
    std::string line = cause.field.empty() ? cause.message : cause.field + ": " + cause.message;
    if (said.insert(line).second) lines.push_back(std::move(line));
  }
  std::string text = join(lines, ", ");
  if (lines.size() > 1) text = "[" + text + "]";
  std::string qualified = std::string(kind.kind) + (kind.group.empty() ? "" : "." + std::string(kind.group));
  ErrorDetails details = subject(kind, name);
  details.kind = kind.kind;  // Kubernetes uses the kind here, the resource elsewhere
  details.causes = std::move(causes);
  return Error(Code::invalid, qualified + " " + quoted(name) + " is invalid: " + text).with(std::move(details));
}

Error invalid_field(std::string field, std::string message, std::string reason) {
  ErrorDetails details;
  details.causes.push_back({std::move(reason), message, field});
  return Error(Code::invalid, field + ": " + message).with(std::move(details));
}

Error bad_request(std::string_view why) { return Error(Code::bad_request, std::string(why)); }
Error expired(std::string_view why) { return Error(Code::gone, std::string(why)); }

Error internal_error(std::string_view why) {
  ErrorDetails details;
  details.causes.push_back({"", std::string(why), ""});
  return Error(Code::internal, "Internal error occurred: " + std::string(why)).with(std::move(details));
}

Error storage_error(std::string_view why) {
  ErrorDetails details;
  details.reason = kReasonUnknown;
  return Error(Code::internal, std::string(why)).with(std::move(details));
}

Cause required(std::string field, std::string_view detail) {
  std::string message = "Required value";
  if (!detail.empty()) message += ": " + std::string(detail);
  return {"FieldValueRequired", std::move(message), std::move(field)};
}

Cause invalid_value(std::string field, std::string_view value, std::string_view detail) {
  std::string message = "Invalid value: " + std::string(value);
  if (!detail.empty()) message.append(": ").append(detail);
  return {"FieldValueInvalid", std::move(message), std::move(field)};
}

Cause not_supported(std::string field, std::string_view value, const std::vector<std::string>& supported) {
  std::vector<std::string> named;
  for (const std::string& one : supported) named.push_back(quoted(one));
  std::string message = "Unsupported value: " + std::string(value);
  if (!named.empty()) message += ": supported values: " + join(named, ", ");
  return {"FieldValueNotSupported", std::move(message), std::move(field)};
}

Cause forbidden_field(std::string field, std::string_view detail) {
  return {"FieldValueForbidden", "Forbidden: " + std::string(detail), std::move(field)};
}

Cause duplicate(std::string field, std::string_view value) {
  return {"FieldValueDuplicate", "Duplicate value: " + std::string(value), std::move(field)};
}

Cause too_long(std::string field, size_t bytes_max) {
  return {"FieldValueTooLong", "Too long: may not be more than " + std::to_string(bytes_max) + " bytes", std::move(field)};
}

}  // namespace coracle
