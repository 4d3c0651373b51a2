// SPDX-License-Identifier: Apache-2.0
// Call: one API request on its way through the server, and the functions that answer it. They produce the requested
// representation (JSON, YAML, protobuf; the object, a Table or its metadata). For JSON, the stored text is sent unchanged.
#pragma once

#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/api/http.h"
#include "daemon/api/metrics.h"
#include "daemon/api/negotiate.h"
#include "daemon/api/route.h"
#include "daemon/api/server.h"
#include "daemon/api/user.h"
#include "daemon/auth/audit_log.h"
#include "daemon/backup/store_maintenance.h"
#include "daemon/flowcontrol/flow_controller.h"
#include "store/schema/catalog.h"
#include "store/schema/table.h"

namespace coracle::api {

struct HandlerContext {  // dependencies of the handlers
  registry::Registry& registry;
  PodStreams& streams;
  NodeImages& images;
  NodeVolumes& volumes;
  const Config& config;
  const Clock& clock;
  auth::Tokens* tokens = nullptr;
  const auth::Authorizer* authorizer = nullptr;
  const std::string* ca = nullptr;
  std::function<HttpServer::Counts()> counts;
  std::function<std::vector<sys::Endpoint>()> bound;
  flowcontrol::FlowController& flow_controller;
  RequestMetrics metrics = {};
  std::atomic<int> reading = 0, writing = 0;  // short requests in progress
};

struct Call {
  Exchange& exchange;
  HandlerContext& context;
  Route route;
  UserPtr user;                            // before authentication, somebody without a name
  schema::CatalogPtr catalog;              // as of the time of the request
  const schema::KindInfo* info = nullptr;  // of the resource
  std::vector<std::string> warnings;
  std::optional<flowcontrol::Classified> flow;  // its flow schema and priority level
  std::string audit_id;                         // the header Audit-ID
  auth::AuditRecord* audit = nullptr;           // the audit record; nullptr: not audited
  std::string_view cache_control = "no-cache, private";

  const Head& head() const { return exchange.head; }
  Answer& answer() { return exchange.answer; }
  const Query& query() const { return exchange.head.query; }
  Key key() const { return {route.ns, route.name}; }
  const Kind& kind() const { return info->kind; }
};

using Header = std::pair<std::string, std::string>;
// The headers of every response: Cache-Control, Audit-ID, warnings, and the uids of its flow schema and priority level.
std::vector<Header> common_headers(const Call& call);

// Responds with the error as a Status, in the requested encoding.
void answer_error(Call& call, const Error& error);
void answer_error(Exchange& exchange, const Error& error);  // before the request is parsed
void answer_text(Call& call, int status, std::string text);
void answer_page_not_found(Call& call);  // 404 as text: not a path of the API
void answer_with_slash(Call& call);      // 301, because relative links in a page need the slash
// Responds with a value that has apiVersion and kind, in the requested encoding.
void answer_value(Call& call, const json::value& value, int status = 200);
bool is_plain(const Wanted& wanted);  // the stored text is sent unchanged
void answer_object(Call& call, const ObjectPtr& object, int status = 200);
// Responds with a list in the requested representation (lists.cc). Unpacks one object at a time.
void answer_list(Call& call, const engine::RestingPage& page);
// `said`: the response as JSON, for the audit, if it is at hand.
void set_answer(Call& call, int status, std::string_view type, std::string body, const json::value* said = nullptr);
// The same, with the body or the pieces that are set already.
void finish_answer(Call& call, int status, std::string_view type, const json::value* said = nullptr);
// Completes a handler that may have failed: responds with its error.
void answer_with(Call& call, Result<void> outcome);

// "*core.PodList": the Go type that a Kubernetes server names in its errors.
std::string go_type(const schema::KindInfo& info, std::string_view suffix);
// Sets apiVersion of a Table or partial object to the requested version of meta.k8s.io.
void set_version(json::object& representation, const Wanted& wanted);

// ?includeObject=, which applies to Tables only. Errors: bad_request.
Result<schema::IncludeObject> include_object(const Query& query, const Wanted& wanted);
// `value` in the requested encoding (not as a Table or partial object). Errors: not_acceptable, internal.
Result<std::string> encode(const json::value& value, const Wanted& wanted);
// One object in the requested representation. Errors: not_acceptable.
Result<std::string> represent(const schema::KindInfo& info, const ObjectPtr& object, const Wanted& wanted,
                              const schema::TableOptions& table, WallTime now);

// The request body as text, without a byte order mark. Errors: as Exchange::read_body.
Result<std::string> read_text(Call& call);
// The request body as one JSON value. `duplicates` receives the keys that occur twice. Errors: bad_request, unsupported,
// too_large.
Result<json::value> read_value(Call& call, const schema::Type* expected, registry::Duplicates* duplicates = nullptr);
// Sets the warnings about the keys that occur twice: in a JSON text; in JSON read as YAML; in a YAML text, where `any` says
// whether there are some.
void note_duplicates(registry::Duplicates& duplicates, std::vector<DuplicateKey> keys);
void note_duplicates_in_yaml(registry::Duplicates& duplicates, std::string_view text, std::vector<DuplicateKey> keys);
void note_duplicates_in_yaml(registry::Duplicates& duplicates, std::string_view text, bool any);
// The same for an optional body.
Result<std::optional<json::value>> read_optional_value(Call& call, const schema::Type* expected);

}  // namespace coracle::api
