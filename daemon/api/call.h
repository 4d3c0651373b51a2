// SPDX-License-Identifier: Apache-2.0
// Call: one request on its way through the room, and the ways to answer it. Whatever the client asked to read (JSON, YAML,
// protobuf; the object, a Table of it, its metadata) is made here; stored text goes out as it is when JSON was asked for.
#pragma once

#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/access/audit_log.h"
#include "daemon/api/http.h"
#include "daemon/api/metrics.h"
#include "daemon/api/negotiate.h"
#include "daemon/api/route.h"
#include "daemon/api/server.h"
#include "daemon/api/user.h"
#include "daemon/backup/keeper.h"
#include "daemon/fairness/fairness.h"
#include "store/schema/catalog.h"
#include "store/schema/table.h"

namespace coracle::api {

struct House {  // what handlers work with
  registry::Registry& registry;
  PodStreams& streams;
  NodeImages& images;
  NodeVolumes& volumes;
  const Config& config;
  const Clock& clock;
  access::Tokens* tokens = nullptr;
  const access::Authorizer* authorizer = nullptr;
  const std::string* ca = nullptr;
  backup::Keeper* keeper = nullptr;  // of the store's file; null: nobody keeps it
  std::function<Front::Counts()> counts;
  std::function<std::vector<sys::Endpoint>()> bound;
  fairness::Fairness& fairness;
  RequestMetrics metrics = {};
  std::atomic<int> reading = 0, writing = 0;  // short requests that run now
};

struct Call {
  Exchange& exchange;
  House& house;
  Route route;
  User user;
  schema::CatalogPtr catalog;              // as it was when the request came
  const schema::KindInfo* info = nullptr;  // of the resource
  std::vector<std::string> warnings;
  std::optional<fairness::Classified> flow;  // where fairness put it
  std::string audit_id;                      // the header Audit-ID
  access::AuditRecord* audit = nullptr;      // where this call is written down, nullptr: nowhere

  const Head& head() const { return exchange.head; }
  Answer& answer() { return exchange.answer; }
  const Query& query() const { return exchange.head.query; }
  Key key() const { return {route.ns, route.name}; }
  const Kind& kind() const { return info->kind; }
};

using Header = std::pair<std::string, std::string>;
// Which flow schema and priority level took the request, by their uids.
std::vector<Header> flow_headers(const Call& call);
// Cache-Control, Audit-ID, warnings and the above: what goes with every answer.
std::vector<Header> common_headers(const Call& call);

void answer_error(Call& call, const Error& error);
void answer_error(Exchange& exchange, const Error& error);  // before anything is known of the request
void answer_text(Call& call, int status, std::string text);
void answer_page_not_found(Call& call);  // 404, as text: no path of the API
void answer_with_slash(Call& call);      // 301: without it a page's relative links lead nowhere
// A value with apiVersion and kind, in the encoding that was asked for.
void answer_value(Call& call, const json::value& value, int status = 200);
bool is_plain(const Wanted& wanted);  // the stored text as it is
void answer_object(Call& call, const ObjectPtr& object, int status = 200);
// In the representation that was asked for (lists.cc). Looks into one object after the other.
void answer_list(Call& call, const engine::RestingPage& page);
void set_answer(Call& call, int status, std::string_view type, std::string body);
void finish_answer(Call& call, int status, std::string_view type);  // the body, or its pieces, are there already
// Runs a handler that may fail, and answers for it.
void answer_with(Call& call, Result<void> outcome);

// "*core.PodList": how the answer of a Kubernetes server calls what it has.
std::string go_type(const schema::KindInfo& info, std::string_view suffix);
// Of a Table or a partial form, in the version of meta.k8s.io that was asked for.
void set_version(json::object& representation, const Wanted& wanted);

// ?includeObject=, which counts for Tables only. Errors: bad_request.
Result<schema::IncludeObject> include_object(const Query& query, const Wanted& wanted);
// `value` as the client wants to read it (not a Table or partial form). Errors: not_acceptable, internal.
Result<std::string> encode(const json::value& value, const Wanted& wanted);
// One object in its representation. Errors: not_acceptable.
Result<std::string> represent(const schema::KindInfo& info, const ObjectPtr& object, const Wanted& wanted,
                              const schema::TableOptions& table, WallTime now);

// The request body as text: without the byte order mark that some editors write. Errors: as Exchange::read_body.
Result<std::string> read_text(Call& call);
// The request body as one JSON value. `duplicates`: keys that stood there twice. Errors: bad_request, unsupported, too_large.
Result<json::value> read_value(Call& call, const schema::Type* expected, std::vector<std::string>* duplicates = nullptr);
// The same where a body may be absent.
Result<std::optional<json::value>> read_optional_value(Call& call, const schema::Type* expected);

}  // namespace coracle::api
