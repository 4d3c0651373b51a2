// SPDX-License-Identifier: Apache-2.0
// See options.h.
#include "daemon/api/options.h"

#include <algorithm>

#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/status.h"
#include "store/schema/decode.h"

namespace coracle::api {
namespace {

constexpr size_t kManagerBytesMax = 128;
constexpr std::chrono::seconds kRevisionTimeout{3};  // Source: apiserver cacher blockTimeout

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// As Go's strconv.ParseInt, which accepts a sign.
Result<std::optional<int64_t>> integer(const Query& query, std::string_view name) {
  if (!query.has(name)) return std::optional<int64_t>();
  std::string_view text = query.get(name), digits = text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  if (auto number = parse_number<int64_t>(digits)) return std::optional<int64_t>(*number);
  if (digits.starts_with('-')) digits.remove_prefix(1);
  return bad_request(unparsable("ParseInt", text, all_digits(digits)));
}

size_t rune_bytes(std::string_view text) {  // of the first rune, from its first byte
  auto lead = static_cast<unsigned char>(text[0]);
  size_t bytes = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  return std::min(bytes, text.size());
}

uint32_t code_point(std::string_view rune) {  // of well-formed UTF-8
  uint32_t point = static_cast<unsigned char>(rune[0]) & (rune.size() == 1 ? 0x7f : 0x7f >> rune.size());
  for (char byte : rune.substr(1)) point = point << 6 | (static_cast<unsigned char>(byte) & 0x3f);
  return point;
}

// Control and format characters, spaces but ASCII's, and private use. Unassigned ones count as printable.
bool is_printable(uint32_t point) {
  static constexpr std::pair<uint32_t, uint32_t> kNot[] = {
      {0x0, 0x1f},        {0x7f, 0xa0},       {0xad, 0xad},       {0x600, 0x605},     {0x61c, 0x61c},     {0x6dd, 0x6dd},
      {0x70f, 0x70f},     {0x1680, 0x1680},   {0x180e, 0x180e},   {0x2000, 0x200f},   {0x2028, 0x202f},   {0x205f, 0x206f},
      {0x3000, 0x3000},   {0xe000, 0xf8ff},   {0xfeff, 0xfeff},   {0xfff9, 0xfffb},   {0xfffe, 0xffff},   {0x110bd, 0x110bd},
      {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0001, 0xe007f}, {0xf0000, 0x10ffff}};
  return std::none_of(std::begin(kNot), std::end(kNot),
                      [&](const auto& range) { return point >= range.first && point <= range.second; });
}

struct Unprintable {
  size_t at;  // in bytes
  uint32_t code_point;
};

// The first character that Go does not consider printable. Invalid UTF-8 is: Go reads it as U+FFFD.
std::optional<Unprintable> first_unprintable(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    std::string_view rune = text.substr(at, rune_bytes(text.substr(at)));
    bool valid = is_utf8(rune);
    if (valid && !is_printable(code_point(rune))) return Unprintable{at, code_point(rune)};
    at += valid ? rune.size() : 1;
  }
  return std::nullopt;
}

void check_manager(std::string_view manager, std::vector<Cause>& causes) {
  if (manager.size() > kManagerBytesMax) causes.push_back(too_long("fieldManager", kManagerBytesMax));
  auto found = first_unprintable(manager);
  if (!found) return;
  char named[16];
  std::snprintf(named, sizeof named, "U+%04X", found->code_point);
  causes.push_back(invalid_value("fieldManager", quoted(as_utf8(manager)),
                                 "invalid character " + std::string(named) + " (at position " + std::to_string(found->at) + ")"));
}

void check_dry_run(const std::vector<std::string>& values, std::vector<Cause>& causes) {
  if (std::all_of(values.begin(), values.end(), [](const std::string& value) { return value == "All"; })) return;
  causes.push_back(not_supported("dryRun", to_text(json::value_from(values)), {"All"}));
}

// The field manager of an update without fieldManager: the client's name from User-Agent, as far as it is printable.
std::string default_manager(const Head& head) {
  std::string_view agent = head.headers.get("User-Agent");
  std::string name;
  for (char c : agent.substr(0, agent.find('/')))
    if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f && name.size() < kManagerBytesMax) name += c;
  while (!is_utf8(name)) name.pop_back();
  return name.empty() ? "unknown" : name;
}

void check_list(const ListParameters& list, std::vector<Cause>& causes) {
  static constexpr const char* kMatch = "resourceVersionMatch";
  if (!list.match.empty()) {
    if (list.revision.empty())
      causes.push_back(forbidden_field(kMatch, "resourceVersionMatch is forbidden unless resourceVersion is provided"));
    if (!list.options.continue_token.empty())
      causes.push_back(forbidden_field(kMatch, "resourceVersionMatch is forbidden when continue is provided"));
    if (list.match != "Exact" && list.match != "NotOlderThan")
      causes.push_back(not_supported(kMatch, quoted(list.match), {"Exact", "NotOlderThan", ""}));
    if (list.match == "Exact" && list.revision == "0")
      causes.push_back(forbidden_field(kMatch, "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""));
  }
  if (list.send_initial_events) causes.push_back(forbidden_field("sendInitialEvents", "sendInitialEvents is forbidden for list"));
}

void check_watch(const ListParameters& list, std::vector<Cause>& causes) {
  static constexpr const char* kMatch = "resourceVersionMatch";
  if (list.send_initial_events && list.match != "NotOlderThan")
    causes.push_back(forbidden_field(kMatch, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"));
  if (list.match.empty()) return;
  if (!list.send_initial_events)
    causes.push_back(forbidden_field(kMatch, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"));
  if (list.match != "NotOlderThan") causes.push_back(not_supported(kMatch, quoted(list.match), {"NotOlderThan"}));
  if (!list.options.continue_token.empty())
    causes.push_back(forbidden_field(kMatch, "resourceVersionMatch is forbidden when continue is provided"));
}

struct RawDeleteOptions {
  std::optional<int64_t> grace;
  std::optional<std::string> propagation;
  std::optional<bool> orphan;
  std::optional<std::string> uid, revision;
  std::vector<std::string> dry_run;
};

Result<RawDeleteOptions> from_query(const Query& query) {
  RawDeleteOptions raw;
  raw.grace = TRY(integer(query, "gracePeriodSeconds"));
  if (query.has("propagationPolicy")) raw.propagation = query.get("propagationPolicy");
  if (query.has("orphanDependents")) raw.orphan = query.flag("orphanDependents");
  if (std::string_view uid = query.get("uid"); !uid.empty()) raw.uid = uid;
  for (std::string_view value : query.all("dryRun")) raw.dry_run.emplace_back(value);
  return raw;
}

Result<RawDeleteOptions> from_body(const json::value& given) {
  if (!given.is_object()) return bad_request("decoded object cannot be converted to DeleteOptions");
  std::string_view kind = kind_in(given);
  if (!kind.empty() && kind != "DeleteOptions") return bad_request("decoded object cannot be converted to DeleteOptions");
  json::value body = given;
  body.get_object()["apiVersion"] = "v1";  // DeleteOptions of any group are accepted
  body.get_object()["kind"] = "DeleteOptions";
  schema::Decoded decoded = TRY(schema::decode(*schema::root_type("v1", "DeleteOptions"), std::move(body)));
  RawDeleteOptions raw;
  view::DeleteOptions options(decoded.value);
  view::Preconditions preconditions = options.preconditions();
  if (options.has_grace_period_seconds()) raw.grace = options.grace_period_seconds();
  if (options.has_propagation_policy()) raw.propagation = options.propagation_policy();
  if (options.has_orphan_dependents()) raw.orphan = options.orphan_dependents();
  if (preconditions.has_uid()) raw.uid = preconditions.uid();
  if (preconditions.has_resource_version()) raw.revision = preconditions.resource_version();
  for (std::string_view value : options.dry_run()) raw.dry_run.emplace_back(value);
  return raw;
}

Result<void> check_deletion(const RawDeleteOptions& raw) {
  std::vector<Cause> causes;
  if (raw.orphan && raw.propagation)
    causes.push_back(invalid_value("propagationPolicy", quoted(*raw.propagation),
                                   "orphanDependents and deletionPropagation cannot be both set"));
  bool known =
      !raw.propagation || *raw.propagation == "Foreground" || *raw.propagation == "Background" || *raw.propagation == "Orphan";
  if (!known)
    causes.push_back(not_supported("propagationPolicy", quoted(*raw.propagation), {"Foreground", "Background", "Orphan", "nil"}));
  check_dry_run(raw.dry_run, causes);
  if (causes.empty()) return {};
  return invalid_options("DeleteOptions", std::move(causes));
}

}  // namespace

Error invalid_options(std::string_view options, std::vector<Cause> causes) {
  return invalid({"meta.k8s.io", "v1", options, {}}, "", std::move(causes));
}

std::optional<Revision> parse_revision(std::string_view text) {
  return all_digits(text) ? parse_number<Revision>(text) : std::nullopt;
}

std::string unparsable(std::string_view go_function, std::string_view text, bool is_number) {
  return "strconv." + std::string(go_function) + ": parsing " + quoted(text) +
         (is_number ? ": value out of range" : ": invalid syntax");
}

Cause invalid_revision(std::string_view text) {
  return invalid_value("resourceVersion", quoted(text), unparsable("ParseUint", text, all_digits(text)));
}

Result<void> await_revision(const Call& call, Revision wanted) {
  const engine::Engine& engine = call.context.registry.engine();
  if (engine.await(wanted, std::chrono::steady_clock::now() + kRevisionTimeout)) return {};
  return engine::revision_too_large(wanted, engine.revision());
}

Result<ListParameters> read_list_parameters(const Call& call, bool watch) {
  const Query& query = call.query();
  ListParameters list;
  list.options.ns = call.route.ns;
  list.options.label_selector = query.get("labelSelector");
  list.options.field_selector = query.get("fieldSelector");
  list.options.continue_token = query.get("continue");
  auto limit = TRY(integer(query, "limit"));
  list.options.limit = std::max<int64_t>(limit.value_or(0), 0);
  list.timeout_seconds = TRY(integer(query, "timeoutSeconds"));
  list.revision = query.get("resourceVersion");
  list.match = query.get("resourceVersionMatch");
  if (query.has("sendInitialEvents")) list.send_initial_events = query.flag("sendInitialEvents");
  list.bookmarks = query.flag("allowWatchBookmarks");
  bool legacy = watch && !list.send_initial_events && list.match.empty() && (list.revision.empty() || list.revision == "0");
  if (legacy) list.send_initial_events = true, list.match = "NotOlderThan";

  std::vector<Cause> causes;
  if (watch) check_watch(list, causes);
  else check_list(list, causes);
  if (!causes.empty()) return invalid_options("ListOptions", std::move(causes));
  return list;
}

Result<registry::Writer> read_writer(Call& call, std::string_view options, std::vector<Cause> causes) {
  const Query& query = call.query();
  registry::Writer writer;
  writer.user = call.user.get();
  writer.warnings = &call.warnings;
  if (call.audit) writer.audit = &call.audit->annotations;
  writer.field_manager = query.get("fieldManager");
  check_manager(writer.field_manager, causes);
  writer.field_manager = as_utf8(writer.field_manager);
  std::vector<std::string> dry_run;
  for (std::string_view value : query.all("dryRun")) dry_run.emplace_back(value);
  check_dry_run(dry_run, causes);
  writer.dry_run = !dry_run.empty();
  std::string_view validation = query.get("fieldValidation");
  if (validation.empty() || validation == "Warn") writer.validation = registry::FieldValidation::warn;
  else if (validation == "Strict") writer.validation = registry::FieldValidation::strict;
  else if (validation != "Ignore")
    causes.push_back(not_supported("fieldValidation", quoted(validation), {"", "Ignore", "Strict", "Warn"}));
  if (!causes.empty()) return invalid_options(options, std::move(causes));
  if (writer.field_manager.empty()) writer.field_manager = default_manager(call.head());
  return writer;
}

Result<DeleteParameters> read_delete_parameters(Call& call) {
  RawDeleteOptions raw;
  std::optional<json::value> body = TRY(read_optional_value(call, schema::root_type("v1", "DeleteOptions")));
  if (body) {
    raw = TRY(from_body(*body));  // replaces the query's options, except dryRun, which counts in both places
    for (std::string_view value : call.query().all("dryRun")) raw.dry_run.emplace_back(value);
  } else {
    raw = TRY(from_query(call.query()));
  }
  TRY(check_deletion(raw));
  DeleteParameters parameters;
  parameters.options.grace_period_seconds = raw.grace;
  parameters.options.propagation = raw.propagation.value_or("");
  if (raw.orphan) parameters.options.propagation = *raw.orphan ? "Orphan" : "Background";
  parameters.options.uid = raw.uid;
  // An invalid revision matches no object.
  if (raw.revision) parameters.options.revision = parse_revision(*raw.revision).value_or(0);
  parameters.dry_run = !raw.dry_run.empty();
  parameters.accepts_later = raw.orphan && !*raw.orphan;
  return parameters;
}

}  // namespace coracle::api
