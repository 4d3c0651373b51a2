// SPDX-License-Identifier: Apache-2.0
// See call.h.
#include "daemon/api/call.h"

#include <algorithm>
#include <array>
#include <set>

#include "daemon/api/recode.h"
#include "runtime/base/go_json.h"
#include "runtime/base/text.h"
#include "store/object/object.h"
#include "store/object/status.h"
#include "store/object/yaml.h"
#include "store/schema/decode.h"
#include "store/schema/protobuf.h"

namespace coracle::api {
namespace {

constexpr size_t kGzipFrom = 128 << 10;  // Source: apiserver responsewriters
constexpr size_t kWarningRunesMax = 4096, kWarningCut = 256;

bool begins_rune(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

size_t runes_of(std::string_view text) { return size_t(std::count_if(text.begin(), text.end(), begins_rune)); }

std::string_view cut_to(std::string_view text, size_t runes) {
  size_t at = 0;
  for (size_t seen = 0; at < text.size(); at++)
    if (begins_rune(text[at]) && seen++ == runes) break;
  return text.substr(0, at);
}

// A quoted string in a header must not contain control characters or invalid UTF-8.
bool can_be_said(std::string_view text) {
  auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  return !text.empty() && is_utf8(text) && std::none_of(text.begin(), text.end(), control);
}

std::string warning_header(std::string_view text) {
  std::string out = "299 - \"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

// Each warning once. If they exceed the limit together, each is truncated, and the rest beyond the limit is left out.
std::vector<Header> warning_headers(const std::vector<std::string>& warnings) {
  std::vector<std::string_view> said;
  std::set<std::string_view> known;
  size_t total = 0, written = 0;
  for (const std::string& warning : warnings) {
    if (said.size() == kWarningRunesMax) break;  // each one has at least one rune, so no more can be written
    if (!can_be_said(warning) || !known.insert(warning).second) continue;
    said.push_back(warning);
    total += runes_of(warning);
  }
  std::vector<Header> headers;
  for (std::string_view warning : said) {
    if (written >= kWarningRunesMax) break;
    if (total > kWarningRunesMax) warning = cut_to(warning, kWarningCut);
    written += runes_of(warning);
    headers.emplace_back("Warning", warning_header(warning));
  }
  return headers;
}

void set_object_text(Answer& answer, const ObjectPtr& object) {
  answer.pieces = {object->text(), "\n"};
  answer.holds = object;
}

size_t size_of(const Answer& answer) {
  size_t bytes = answer.body.size();
  for (std::string_view piece : answer.pieces) bytes += piece.size();
  return bytes;
}

std::string joined(const Answer& answer) {
  std::string text;
  text.reserve(size_of(answer));
  text = answer.body;
  for (std::string_view piece : answer.pieces) text += piece;
  return text;
}

// Compresses a large response for remote clients; for local ones that would cost more than it saves.
void compress(Call& call) {
  Answer& answer = call.answer();
  bool wanted =
      header_has_token(call.head().headers.get("Accept-Encoding"), "gzip") && !call.exchange.connection.peer().loopback();
  if (!wanted || size_of(answer) <= kGzipFrom) return;
  Packer packer(Coding::gzip);
  if (!packer.works()) return;
  std::string smaller;
  packer.add(answer.body, smaller);
  for (std::string_view piece : answer.pieces) packer.add(piece, smaller);
  packer.end(smaller);
  answer.body = std::move(smaller);
  answer.pieces.clear();
  answer.holds.reset();
  answer.headers.emplace_back("Content-Encoding", "gzip");
  answer.headers.emplace_back("Vary", "Accept-Encoding");
}

// Calls `visit` with name and value of each.
template <typename F>
void visit_flow_headers(const Call& call, F&& visit) {
  if (!call.flow || call.flow->schema().empty()) return;
  visit("X-Kubernetes-Pf-Flowschema-Uid", call.flow->schema_uid());
  visit("X-Kubernetes-Pf-Prioritylevel-Uid", call.flow->level_uid());
}

template <typename F>
void visit_common_headers(const Call& call, F&& visit) {
  visit("Audit-ID", call.audit_id);
  visit("Cache-Control", call.cache_control);
  visit_flow_headers(call, visit);
  for (const Header& warning : warning_headers(call.warnings)) visit(warning.first, warning.second);
}

// As lines, without a string for each name and value, because every response has these headers.
void add_common_lines(const Call& call, std::string& to) {
  constexpr size_t kUsual = 256;  // bytes
  to.reserve(to.size() + kUsual);
  visit_common_headers(
      call, [&](std::string_view name, std::string_view value) { to.append(name).append(": ").append(value).append("\r\n"); });
}

auto add_to(std::vector<Header>& headers) {
  return [&headers](std::string_view name, std::string_view value) { headers.emplace_back(name, value); };
}

// The JSON of an answer in another form; nothing: it has none.
Result<json::value> read_back(std::string_view text, std::string_view type) {
  if (type.find("json") != type.npos) return parse_json(text);
  if (type.starts_with("application/vnd.kubernetes.protobuf")) return schema::from_protobuf(text, nullptr);
  if (type != "application/yaml") return Error(Code::unsupported, "it has no JSON form");
  std::vector<json::value> documents = TRY(parse_yaml(text));
  if (documents.size() != 1) return Error(Code::unsupported, "it is no single document");
  return std::move(documents.front());
}

// Records the response as the audit level requires: the object, or at least what a Status says. `said`: the response as JSON, if
// that is at hand; a stored text needs no parsing. Source: apiserver audit/request.go, LogResponseObject
void record_response(Call& call, const json::value* said) {
  if (!call.audit) return;
  auth::AuditRecord& record = *call.audit;
  if (said) return auth::record_response(record, *said);
  if (!auth::wants_response(record)) return;
  const std::string_view type = call.answer().content_type;
  std::string text = joined(call.answer());
  if (text.ends_with('\n')) text.pop_back();
  bool is_line = type == "application/json" && text.find('\n') == text.npos;
  if (is_line) return auth::record_response_text(record, std::move(text));
  auto value = read_back(text, type);
  if (value) auth::record_response(record, *value);
}

}  // namespace

void finish_answer(Call& call, int status, std::string_view type, const json::value* said) {
  Answer& answer = call.answer();
  answer.status = status;
  answer.content_type = type;
  add_common_lines(call, answer.lines);
  record_response(call, said);
  compress(call);
}

void set_answer(Call& call, int status, std::string_view type, std::string body, const json::value* said) {
  call.answer().body = std::move(body);
  finish_answer(call, status, type, said);
}

void answer_with_slash(Call& call) {
  const Head& head = call.head();
  Answer& answer = call.answer();
  answer.status = 301;
  answer.headers = common_headers(call);
  answer.headers.emplace_back("Location", head.path + "/" + (head.query_text.empty() ? "" : "?" + head.query_text));
}

void set_version(json::object& representation, const Wanted& wanted) {
  if (wanted.version != "v1") representation["apiVersion"] = "meta.k8s.io/" + wanted.version;
}

std::string go_type(const schema::KindInfo& info, std::string_view suffix) {
  std::string_view group = info.kind.group.substr(0, info.kind.group.find('.'));
  return "*" + std::string(group.empty() ? "core" : group) + "." + std::string(info.kind.kind) + std::string(suffix);
}

bool is_plain(const Wanted& wanted) { return wanted.as == As::itself && wanted.encoding == Encoding::json && !wanted.pretty; }

std::vector<Header> common_headers(const Call& call) {
  std::vector<Header> out;
  visit_common_headers(call, add_to(out));
  return out;
}

Result<std::string> encode(const json::value& value, const Wanted& wanted) {
  switch (wanted.encoding) {
    case Encoding::json: return (wanted.pretty ? to_pretty(value, 2) : to_text(value)) + "\n";
    case Encoding::yaml: return to_yaml(value);
    case Encoding::protobuf: return schema::to_protobuf(value);
  }
  return internal_error("unknown encoding");
}

void answer_error(Call& call, const Error& error) {
  auto wanted = negotiate(call.head(), Offer::object);
  json::value status = to_status(error);
  int code = http_status(error);
  if (error.code() == Code::timeout && call.exchange.body_was_late())
    status.get_object()["code"] = code = 408;  // the client was too slow
  if (error.details() && error.details()->retry_after_seconds > 0)
    call.answer().headers.emplace_back("Retry-After", std::to_string(error.details()->retry_after_seconds));
  if (error.code() == Code::unauthorized) call.answer().headers.emplace_back("WWW-Authenticate", "Bearer realm=\"coracle\"");
  Wanted as = wanted ? *wanted : Wanted{};
  auto text = encode(status, as);
  if (!text) as = Wanted{}, text = encode(status, as);
  set_answer(call, code, as.media_type(), *std::move(text), &status);
}

void answer_error(Exchange& exchange, const Error& error) {
  exchange.answer.status = http_status(error);
  exchange.answer.content_type = "application/json";
  if (error.details() && error.details()->retry_after_seconds > 0)
    exchange.answer.headers.emplace_back("Retry-After", std::to_string(error.details()->retry_after_seconds));
  exchange.answer.body = to_text(to_status(error)) + "\n";
}

void answer_text(Call& call, int status, std::string text) {
  set_answer(call, status, "text/plain; charset=utf-8", std::move(text));
  call.answer().headers.emplace_back("X-Content-Type-Options", "nosniff");
}

void answer_page_not_found(Call& call) { answer_text(call, 404, "404 page not found\n"); }

void answer_with(Call& call, Result<void> outcome) {
  if (!outcome && !call.exchange.taken()) answer_error(call, outcome.error());
}

void answer_value(Call& call, const json::value& value, int status) {
  auto all = negotiate_all(call.head(), Offer::value);
  if (!all) return answer_error(call, all.error());
  auto wanted = all->begin();
  auto text = encode(value, *wanted);
  while (!text && text.error().code() == Code::not_acceptable && std::next(wanted) != all->end())
    text = encode(value, *++wanted);  // it has no protobuf form
  if (!text) return answer_error(call, text.error());
  set_answer(call, status, wanted->media_type(), *std::move(text), &value);
}

Result<schema::IncludeObject> include_object(const Query& query, const Wanted& wanted) {
  std::string_view include = query.get("includeObject");
  if (wanted.as != As::table || include.empty() || include == "Metadata") return schema::IncludeObject::metadata;
  if (include == "None") return schema::IncludeObject::none;
  if (include == "Object") return schema::IncludeObject::object;
  return bad_request("Unable to convert to Table as requested: includeObject: Invalid value: " + quoted(include) +
                     ": must be 'Metadata', 'Object', 'None', or empty");
}

Result<std::string> represent(const schema::KindInfo& info, const ObjectPtr& object, const Wanted& wanted,
                              const schema::TableOptions& table, WallTime now) {
  switch (wanted.as) {
    case As::itself:
      if (is_plain(wanted)) return std::string(object->text()) + "\n";
      return encode(object->json(), wanted);
    case As::table: {
      json::value value = schema::to_table(info, std::span(&object, 1), table, now);
      set_version(value.get_object(), wanted);
      return encode(value, wanted);
    }
    case As::partial: {
      json::value value = schema::partial_metadata(object->json());
      set_version(value.get_object(), wanted);
      return encode(value, wanted);
    }
    case As::partial_list: break;
  }
  return Error(Code::not_acceptable,
               "you requested PartialObjectMetadataList, but the requested object is not a list (" + go_type(info, "") + ")");
}

void answer_object(Call& call, const ObjectPtr& object, int status) {
  auto wanted = negotiate(call.head(), Offer::object);
  if (!wanted) return answer_error(call, wanted.error());
  if (is_plain(*wanted)) return set_object_text(call.answer(), object), finish_answer(call, status, wanted->media_type());
  auto include = include_object(call.query(), *wanted);
  if (!include) return answer_error(call, include.error());
  schema::TableOptions table{*include, true, std::to_string(object->revision()), {}};
  auto text = represent(*call.info, object, *wanted, table, call.context.clock.now());
  if (!text) return answer_error(call, text.error());
  set_answer(call, status, wanted->media_type(), *std::move(text), wanted->as == As::itself ? &object->json() : nullptr);
}

namespace {

// `duplicates`: nullptr for options, which do not report duplicate keys.
Result<json::value> parse_body(std::string_view body, Encoding encoding, const schema::Type* expected,
                               registry::Duplicates* duplicates, json::storage_ptr storage) {
  if (encoding == Encoding::protobuf) return schema::from_protobuf(body, expected);
  std::vector<DuplicateKey> keys;
  if (encoding == Encoding::json) {
    auto value = parse_json_as_go(body, kBodyBytesMax, duplicates ? &keys : nullptr, std::move(storage));
    if (duplicates) note_duplicates(*duplicates, std::move(keys));
    return value;
  }
  if (trim(without_byte_order_mark(body)).starts_with("{")) {  // usually JSON, or YAML in flow style
    auto value = parse_json(body, duplicates ? &keys : nullptr);
    if (value) {
      if (duplicates) note_duplicates_in_yaml(*duplicates, body, std::move(keys));
      store_whole_numbers_as_integers(*value);
      return value;
    }
  }
  std::vector<std::string> paths;
  auto documents = parse_yaml(body, nullptr, &paths);
  if (duplicates) note_duplicates_in_yaml(*duplicates, body, !paths.empty());
  if (!documents) return bad_request(documents.error().text());  // includes excessive depth and aliases
  if (documents->size() != 1) return bad_request("the body must be one YAML document, not " + std::to_string(documents->size()));
  return std::move(documents->front());
}

// In Kubernetes' words, which clients know, with this server's reason. Source: apiserver, endpoints/handlers/rest.go.
Error unrecognized(const schema::Type& expected, Encoding encoding, const Error& why) {
  std::string_view head = encoding == Encoding::json ? "couldn't get version/kind; json parse error: " : "";
  return bad_request("the object provided is unrecognized (must be of type " + std::string(expected.name()) +
                     "): " + std::string(head) + why.text());
}

}  // namespace

Result<std::string> read_text(Call& call) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // UTF-8's; no protobuf body begins with it
  std::string body = TRY(call.exchange.read_body());
  if (body.starts_with(kByteOrderMark)) body.erase(0, kByteOrderMark.size());
  return body;
}

void note_duplicates(registry::Duplicates& duplicates, std::vector<DuplicateKey> keys) {
  for (DuplicateKey& key : keys) {
    std::string warning = schema::duplicate_warning(key.path);
    if (std::ranges::find(duplicates.warnings, warning) != duplicates.warnings.end()) continue;  // it is there three times
    duplicates.warnings.push_back(std::move(warning));
    duplicates.places.push_back(std::move(key.place));
  }
}

void note_duplicates_in_yaml(registry::Duplicates& duplicates, std::string_view text, std::vector<DuplicateKey> keys) {
  note_duplicates_in_yaml(duplicates, text, !keys.empty());
  if (duplicates.warnings.empty()) note_duplicates(duplicates, std::move(keys));  // JSON that is no YAML
}

void note_duplicates_in_yaml(registry::Duplicates& duplicates, std::string_view text, bool any) {
  if (any) duplicates.warnings = duplicate_keys_by_line(text);
  if (!duplicates.warnings.empty()) duplicates.form = registry::Duplicates::Form::yaml;
}

Result<json::value> read_value(Call& call, const schema::Type* expected, registry::Duplicates* duplicates) {
  Encoding encoding = TRY(body_encoding(call.head().headers.get("Content-Type")));
  std::string body = TRY(read_text(call));
  auto value = trim(body).empty() ? bad_request("the request body is empty")
                                  : parse_body(body, encoding, expected, duplicates, body_memory(body));
  if (!value && expected && value.error().code() == Code::bad_request) return unrecognized(*expected, encoding, value.error());
  if (value && call.audit) auth::record_request(*call.audit, *value);
  return value;
}

Result<std::optional<json::value>> read_optional_value(Call& call, const schema::Type* expected) {
  if (!call.head().has_body()) return std::optional<json::value>();
  std::string body = TRY(read_text(call));
  if (body.empty()) return std::optional<json::value>();
  Encoding encoding = TRY(body_encoding(call.head().headers.get("Content-Type")));
  json::value value = TRY(parse_body(body, encoding, expected, nullptr, arena_for(body)));  // options are not stored as objects
  if (call.audit) auth::record_request(*call.audit, value);
  return std::optional<json::value>(std::move(value));
}

}  // namespace coracle::api
