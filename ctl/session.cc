// SPDX-License-Identifier: Apache-2.0
// See session.h. Requests go over store/client/http; kinds come from the schema's catalog.
#include "ctl/session.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "ctl/about.h"
#include "ctl/command.h"
#include "ctl/discovery.h"
#include "ctl/escape.h"
#include "ctl/manifest_files.h"
#include "ctl/parse_error.h"
#include "ctl/preferences.h"
#include "ctl/wait.h"
#include "runtime/base/guarded.h"
#include "runtime/base/text.h"
#include "store/client/download.h"
#include "store/client/http.h"
#include "store/client/in_cluster.h"
#include "store/client/proxy.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/status.h"
#include "store/object/yaml.h"
#include "store/schema/decode.h"

namespace coracle::ctl {

namespace {

constexpr size_t kWarningsMax = 10'000;      // of one run of the program
constexpr size_t kShownBodyBytesMax = 1024;  // with -v=8

// What is asked of one object must not reach all of its kind, nor another path. Source: client-go rest/request.go, Name().
Result<void> check_path(std::string_view path) {
  for (std::string_view part : split(path.substr(std::min<size_t>(path.size(), 1)), '/')) {
    if (part.empty()) return Error(Code::bad_request, "resource name may not be empty");
    if (part == "." || part == "..")
      return Error(Code::bad_request,
                   "invalid resource name " + coracle::quoted(part) + ": [may not be '" + std::string(part) + "']");
  }
  return {};
}

struct ApiPlace {  // "/apis/batch/v1/namespaces/default/cronjobs/a" in parts
  std::string_view group, version, resource, name;
  size_t version_at = 0;  // where it stands in the path
  std::string key() const { return std::string(group) + "/" + std::string(version) + "/" + std::string(resource); }
};

// Nothing: the path is not of a resource.
std::optional<ApiPlace> api_place_of(std::string_view path) {
  std::vector<std::string_view> parts = split(path, '/');  // the first is empty
  const bool is_core = parts.size() > 1 && parts[1] == "api";
  const size_t head = is_core ? 3 : 4;
  if (parts.size() <= head || (!is_core && parts[1] != "apis")) return std::nullopt;
  size_t at = head;
  if (parts[at] == "namespaces" && parts.size() > at + 2) at += 2;
  ApiPlace place{.group = is_core ? std::string_view() : parts[2], .version = parts[head - 1], .resource = parts[at]};
  if (parts.size() > at + 1) place.name = parts[at + 1];
  place.version_at = size_t(place.version.data() - path.data());
  return place;
}

// A version of a kind may lack what another one has, and a server drops what it does not know: what says no more than metadata
// is the same in all.
bool means_same_in_all_versions(const Request& request) {
  if (request.path_as_typed) return false;
  if (request.method == "GET" || request.method == "DELETE") return true;
  if (request.method != "PATCH" || request.content_type.find("merge-patch") == std::string::npos) return false;
  auto body = parse_json(request.body);
  const json::object* patch = body ? body->if_object() : nullptr;
  return patch && patch->size() == 1 && patch->contains("metadata");
}

bool is_page_not_found(const HttpAnswer& answer) { return answer.status == 404 && trim(answer.body) == "404 page not found"; }

// The server has no such path. Where it has, but lacks the object, its Status names the kind. kube-apiserver answers in both
// ways, according to which part of it is asked.
bool lacks_path(const HttpAnswer& answer) {
  if (answer.status != 404) return false;
  if (is_page_not_found(answer)) return true;
  auto parsed = parse_json(answer.body);
  view::Status status(parsed ? &*parsed : nullptr);
  return status.message() == "the server could not find the requested resource" && status.details().kind().empty();
}

// Source: apimachinery pkg/api/errors, NewGenericServerResponse.
Error path_is_lacking(const Request& request) {
  std::string text = "the server could not find the requested resource";
  if (auto place = api_place_of(request.path); place && !request.path_as_typed) {
    text += " (" + to_lower(request.method) + " " + std::string(place->resource);
    if (!place->group.empty()) text.append(".").append(place->group);
    if (!place->name.empty()) text.append(" ").append(place->name);
    text += ")";
  }
  return Error(Code::not_found, std::move(text)).with({});
}

}  // namespace

struct Session::State {
  std::unique_ptr<Http> http;
  std::chrono::milliseconds timeout{0};
  int verbosity = 0;
  bool ns_given = false;
  DryRun dry_run = DryRun::none;
  Guarded<std::set<std::string>> warned;  // several streams may run at a time
  // "batch/v1/cronjobs": "v1beta1", of what the server has in another version; "" where it has it in none.
  Guarded<std::map<std::string, std::string>> other_versions;
  std::optional<bool> checks_fields;  // unknown as yet

  Result<HttpRequest> http_request(const Request& request) const {
    if (!request.path_as_typed) TRY(check_path(request.path));
    bool writes = request.method != "GET", told = false;
    if (writes && dry_run == DryRun::client)
      return Error(Code::internal, "--dry-run=client: " + request.method + " " + request.path + " was not sent, it would write");
    HttpRequest sent{.method = request.method, .path = request.path, .query = request.query, .body = request.body};
    sent.content_type = request.content_type;
    sent.accept = request.accept;
    sent.timeout = timeout;
    if (auto place = api_place_of(sent.path); place && is_moved(*place) && means_same_in_all_versions(request))
      move(sent, *place);
    for (const auto& [name, value] : sent.query) told = told || name == "dryRun";
    if (writes && dry_run == DryRun::server && !told) sent.query.emplace_back("dryRun", "All");
    // As Go writes them: what is told, and what servers note, is in kubectl's order.
    std::ranges::stable_sort(sent.query, {}, [](const auto& one) -> const std::string& { return one.first; });
    if (verbosity == 7 || verbosity == 8) tell("\"Request\" " + verb_and_url(sent) + "\n");
    if (verbosity >= 8 && !sent.body.empty()) tell("Request Body: " + shown_body(sent.body) + "\n");
    return sent;
  }
  bool is_moved(const ApiPlace& place) const {
    return !place.group.empty() && other_versions.with([&](const auto& all) {
      auto other = all.find(place.key());
      return other != all.end() && !other->second.empty();
    });
  }
  void move(HttpRequest& sent, const ApiPlace& place) const {
    const std::string other = other_versions.with([&](const auto& all) { return all.at(place.key()); });
    const size_t at = place.version_at, size = place.version.size();
    sent.path.replace(at, size, other);
  }
  // As kubectl: 8 shows the beginning of a body, 10 all of it. What Secrets hold is in it: nobody is shown it unasked.
  std::string shown_body(const std::string& body) const {
    return verbosity >= 10 ? body : shortened_text(body, kShownBodyBytesMax);
  }
  std::string verb_and_url(const HttpRequest& sent) const {
    return "verb=" + coracle::quoted(sent.method) +
           " url=" + coracle::quoted(without_user(http->access().server) + sent.path + query_text(sent.query));
  }
  // Says with which status a request was answered that was sent at `started`; "" for none. Source: client-go
  // transport/round_trippers.go.
  void tell_response(const HttpRequest& sent, std::chrono::steady_clock::time_point started, const std::string& status) const {
    if (verbosity < 6) return;
    auto span = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - started);
    bool is_told_already = verbosity == 7 || verbosity == 8;
    tell("\"Response\" " + (is_told_already ? "" : verb_and_url(sent) + " ") + "status=" + coracle::quoted(status) +
         " milliseconds=" + std::to_string(span.count()) + "\n");
  }
  // Sends by `send`, which calls its argument when the answer of a stream begins, and says what became of it.
  template <typename Send>
  Result<HttpAnswer> ask(const HttpRequest& sent, const Send& send) const {
    auto started = std::chrono::steady_clock::now();
    bool told = false;
    const std::function<void()> begun = [&] {
      if (!std::exchange(told, true)) tell_response(sent, started, "200 OK");
    };
    Result<HttpAnswer> answer = send(begun);
    if (!told) tell_response(sent, started, answer ? std::to_string(answer->status) + " " + answer->reason : "");
    return answer;
  }
  static std::string query_text(const Query& query) {
    std::string text;
    for (const auto& [name, value] : query)
      text += (text.empty() ? "?" : "&") + percent_encode(name) + "=" + percent_encode(value);
    return text;
  }
  // What the answer means; its warnings are said at once, and each once.
  Result<std::string> judge(const Request& request, HttpAnswer answer) {
    for (const auto& warning : answer.warnings)
      if (warned.with([&](auto& all) { return all.size() < kWarningsMax && all.insert(warning).second; }))
        std::fprintf(stderr, "Warning: %s\n", visible_line(warning).c_str());
    if (verbosity >= 8 && !answer.body.empty()) tell("Response Body: " + shown_body(answer.body) + "\n");
    if (answer.status >= 200 && answer.status < 300) return std::move(answer.body);
    if (is_page_not_found(answer)) return path_is_lacking(request);
    return error_from_status(answer.status, answer.body, answer.retry_after_seconds);
  }
};

namespace {

Result<ServerAccess> read_access(const GlobalFlags& flags) {
  KubeconfigChoice choice = TRY(kubeconfig_choice(flags));
  auto paths = find_kubeconfigs(flags.kubeconfig);
  if (!paths && flags.server.empty()) {
    auto pod = in_cluster_kubeconfig();
    if (pod) return read_in_cluster(*pod, choice);
    return paths.take_error();
  }
  auto access = read_kubeconfigs(paths ? *paths : std::vector<std::string>(), choice);
  if (!access && paths && access.error().err() == EACCES)
    return Error(Code::forbidden, "you may not read " + join(*paths, ":") +
                                      ": use sudo coraclectl, or let root give you a copy as ~/.kube/config");
  std::error_code ignored;
  if (!access && !flags.kubeconfig.empty() && !std::filesystem::exists(flags.kubeconfig, ignored))
    return Error(Code::not_found, "stat " + flags.kubeconfig + ": no such file or directory");
  return access;
}

Result<std::chrono::milliseconds> request_timeout_of(const GlobalFlags& flags) {
  auto timeout = parse_timeout(flags.request_timeout);
  if (timeout) return timeout;
  return Error(Code::bad_request,
               "Invalid timeout value. Timeout must be a single integer in seconds, or an "
               "integer followed by a corresponding time unit (e.g. 1s | 2m | 3h)");
}

}  // namespace

Result<KubeconfigChoice> kubeconfig_choice(const GlobalFlags& flags) {
  KubeconfigChoice choice{flags.context, flags.cluster, flags.user, flags.ns};
  choice.server = flags.server, choice.tls_server_name = flags.tls_server_name;
  choice.certificate_authority = flags.certificate_authority;
  if (flags.insecure_skip_tls_verify) choice.insecure = true;
  choice.client_certificate = flags.client_certificate, choice.client_key = flags.client_key;
  choice.token = flags.token, choice.username = flags.username, choice.password = flags.password;
  choice.impersonate = {flags.as, flags.as_uid, flags.as_groups, {}};
  for (const auto& pair : flags.as_user_extra) {
    size_t equals = pair.find('=');
    if (equals == pair.npos || equals == 0)
      return Error(Code::bad_request, "--as-user-extra: expected KEY=VALUE, is " + coracle::quoted(pair));
    choice.impersonate.extra.emplace_back(to_lower(pair.substr(0, equals)), pair.substr(equals + 1));
  }
  return choice;
}

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::open(const GlobalFlags& flags) {
  auto timeout = TRY(request_timeout_of(flags));
  ServerAccess access = TRY(read_access(flags));
  if (access.exec) TRY(check_plugin_policy(flags.plugin_policy, flags.plugin_allowlist, access.exec->command));
  if (flags.over_network) access.local_socket.clear();
  if (access.proxy_url.empty()) access.proxy_url = proxy_for(access.server, ProxyEnvironment::read());
  auto state = std::make_unique<State>();
  state->timeout = timeout;
  state->verbosity = flags.verbosity;
  state->ns_given = !flags.ns.empty();
  state->http = TRY(Http::make(std::move(access)));
  return std::unique_ptr<Session>(new Session(std::move(state)));
}

const std::string& Session::ns() const { return state_->http->access().ns; }
bool Session::ns_given() const { return state_->ns_given; }
size_t Session::warnings() const {
  return state_->warned.with([](const auto& all) { return all.size(); });
}
void Session::set_dry_run(DryRun dry_run) { state_->dry_run = dry_run; }

json::object Session::delete_options() const {
  json::object options{{"kind", "DeleteOptions"}, {"apiVersion", "v1"}};
  if (state_->dry_run == DryRun::server) options["dryRun"] = json::array{"All"};
  return options;
}

const std::string& Session::server() const { return state_->http->access().server; }
std::string Session::user_name() const { return state_->http->access().user; }

std::string Session::path(const schema::KindInfo& kind, std::string_view ns) const {
  std::string path = kind.kind.group.empty() ? "/api/" : "/apis/" + std::string(kind.kind.group) + "/";
  path += kind.kind.version;
  if (kind.kind.namespaced && !ns.empty()) path += "/namespaces/" + percent_encode(ns);
  return path.append("/").append(kind.kind.resource);
}

std::string Session::path(const schema::KindInfo& kind, std::string_view ns, std::string_view name,
                          std::string_view subresource) const {
  std::string path = this->path(kind, ns) + "/" + percent_encode(name);
  if (!subresource.empty()) path.append("/").append(subresource);
  return path;
}

Result<std::string> Session::text(const Request& request) {
  HttpRequest sent = TRY(state_->http_request(request));
  HttpAnswer answer = TRY(state_->ask(sent, [&](const auto&) { return state_->http->send(sent); }));
  if (lacks_path(answer) && find_version(request)) return text(request);
  return state_->judge(request, std::move(answer));
}

bool Session::find_version(const Request& request) {
  auto place = api_place_of(request.path);
  if (!place || place->group.empty() || !means_same_in_all_versions(request)) return false;
  const std::string key = place->key();
  if (state_->other_versions.with([&](const auto& all) { return all.contains(key); })) return false;
  auto other = other_version(*this, std::string(place->group), place->version, place->resource);
  state_->other_versions.with([&](auto& all) { all[key] = other ? *other : std::string(); });
  return bool(other);
}

bool Session::server_checks_fields() {
  constexpr int kMinorWithValidation = 25;  // from Kubernetes 1.25 on, KEP-2885
  if (state_->checks_fields) return *state_->checks_fields;
  auto version = json({.path = "/version"});
  std::optional<int> minor = version ? minor_of(*version) : std::nullopt;
  if (minor) return *(state_->checks_fields = *minor >= kMinorWithValidation);
  // One that does not say which it is, such as what somebody built: the new form of the types' document came a little earlier.
  auto types = json({.path = "/openapi/v3"});
  return *(state_->checks_fields = types || types.error().code() != Code::not_found);
}

Result<json::value> Session::json(const Request& request) {
  std::string body = TRY(text(request));
  return parse_json(body).wrap("the server's answer");
}

Result<void> Session::stream(const Request& request, const std::function<bool(std::string_view)>& sink) {
  HttpRequest sent = TRY(state_->http_request(request));
  HttpAnswer answer = TRY(state_->ask(sent, [&](const auto& begun) { return state_->http->stream(sent, sink, {}, begun); }));
  TRY(state_->judge(request, std::move(answer)));
  return {};
}

Result<void> Session::watch(const Request& request, const std::function<bool(std::string_view)>& sink) {
  HttpRequest sent = TRY(state_->http_request(request));
  bool has_begun = false;
  auto answer = state_->ask(sent, [&](const auto& begun) {
    const std::function<void()> note = [&] { has_begun = true, begun(); };
    return state_->http->stream(sent, sink, {}, note);
  });
  if (!answer && has_begun && answer.error().code() == Code::timeout) return {};
  HttpAnswer whole = TRY(std::move(answer));
  TRY(state_->judge(request, std::move(whole)));
  return {};
}

Result<void> Session::upload(const Request& request, const std::function<size_t(char*, size_t)>& source,
                             const std::function<bool(std::string_view)>& sink) {
  HttpRequest sent = TRY(state_->http_request(request));
  HttpAnswer answer = TRY(state_->ask(sent, [&](const auto&) { return state_->http->upload(sent, source, sink); }));
  TRY(state_->judge(request, std::move(answer)));
  return {};
}

namespace {

class HttpSocket : public Session::Socket {
 public:
  explicit HttpSocket(std::unique_ptr<Http::Connection> connection) : connection_(std::move(connection)) {}
  int fd() const override { return connection_->fd(); }
  Result<std::string> read() override { return connection_->read(); }
  bool has_more() const override { return connection_->has_more(); }
  Result<void> write(std::string_view bytes) override { return connection_->write(bytes); }
  Result<size_t> write_some(std::string_view bytes) override { return connection_->write_some(bytes); }

 private:
  std::unique_ptr<Http::Connection> connection_;
};

// Letters to insert, drop, change or swap with the next one, to get from one word to the other.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = std::exchange(above, row);
  }
  return above[b.size()];
}

Result<const schema::KindInfo*> kind_named(std::string_view word) {
  if (const schema::KindInfo* kind = schema::catalog().by_name(word)) return kind;
  std::vector<std::string> known;
  for (const auto& kind : schema::catalog().kinds()) {
    known.emplace_back(kind.kind.resource);
    known.emplace_back(kind.singular);
  }
  std::string close = suggestion(word, known);
  const size_t dot = std::min(word.find('.'), word.size());
  std::string_view group = word.substr(std::min(dot + 1, word.size()));
  return Error(Code::bad_request, "the server doesn't have a resource type " + coracle::quoted(word.substr(0, dot)) +
                                      (group.empty() ? "" : " in group " + coracle::quoted(group)) +
                                      (close.empty() ? "" : "; did you mean " + coracle::quoted(close) + "?"));
}

// What all objects have has the shape that all commands rely on. An empty "annotations:", as charts leave behind, stays as it is:
// a server takes it for none, and in a patch it says that there are to be none.
Result<void> check_metadata(json::value& object, const std::string& source) {
  auto wrong = [&](const char* path) { return Error(Code::invalid, source + ": " + path + ": must be an object"); };
  json::value* metadata = object.get_object().if_contains("metadata");
  if (!metadata) return {};
  if (metadata->is_null()) return object.get_object().erase("metadata"), Result<void>();
  if (!metadata->is_object()) return wrong("metadata");
  for (auto [field, path] : {std::pair{"labels", "metadata.labels"}, std::pair{"annotations", "metadata.annotations"}})
    if (json::value* map = metadata->get_object().if_contains(field); map && !map->is_null() && !map->is_object())
      return wrong(path);
  return {};
}

// What kubectl's validation says of a document that does not name its apiVersion and its kind; "" where it takes an empty text
// for a name. Source: kubectl pkg/validation, getObjectKind.
std::string fault_of_type(const json::value& object) {
  const json::object* members = object.if_object();
  if (!members) return "invalid object to validate";
  std::vector<std::string> faults;
  for (const char* field : {"apiVersion", "kind"}) {
    const json::value* value = members->if_contains(field);
    if (!value || value->is_null()) faults.push_back(std::string(field) + " not set");
    else if (!value->is_string()) faults.push_back(std::string(field) + " isn't string type");
  }
  return faults.size() == 1 ? faults.front() : faults.empty() ? "" : "[" + join(faults, ", ") + "]";
}

// A document is an object that names its apiVersion and its kind. Source: cli-runtime pkg/resource/visitor.go.
Result<void> check_type(const json::value& object, const std::string& source, bool validates) {
  const bool has_version = !api_version_in(object).empty(), has_kind = !kind_in(object).empty();
  if (has_version && has_kind) return {};
  if (const std::string fault = validates ? fault_of_type(object) : ""; !fault.empty())
    return Error(Code::invalid, "error validating " + coracle::quoted(source) + ": error validating data: " + fault +
                                    "; if you choose to ignore these errors, turn validation off with --validate=false");
  if (!object.is_object()) return Error(Code::invalid, source + ": expected an object with apiVersion and kind");
  return Error(Code::invalid, source + ": Object '" + (has_version ? "Kind" : "apiVersion") +
                                  "' is missing: every object names its apiVersion and kind");
}

// The objects of a document: its own, or a List's. Errors: invalid.
Result<void> read_document(json::value parsed, const std::string& source, std::vector<Document>& documents,
                           std::vector<Error>* wrong, bool validates) {
  std::vector<json::value> objects;
  std::string_view kind = kind_in(parsed);
  const json::object* members = parsed.if_object();
  const json::value* items = members ? members->if_contains("items") : nullptr;
  if (kind.ends_with("List") && items && items->is_array()) {
    std::string_view of = kind.substr(0, kind.size() - std::string_view("List").size());
    for (const auto& item : items->get_array()) {
      objects.push_back(item);
      if (of.empty() || !item.is_object() || item.get_object().contains("kind")) continue;
      objects.back().get_object()["apiVersion"] = api_version_in(parsed);  // as servers answer lists
      objects.back().get_object()["kind"] = of;
    }
  } else {
    objects.push_back(std::move(parsed));
  }
  for (auto& object : objects) {
    auto complete = [&]() -> Result<const schema::KindInfo*> {
      TRY(check_type(object, source, validates));
      TRY(check_metadata(object, source));
      if (const schema::KindInfo* kind = kind_of(object)) return kind;
      return Error(Code::invalid, "resource mapping not found for name: " + coracle::quoted(metadata_of(object).name()) +
                                      " namespace: " + coracle::quoted(metadata_of(object).namespace_()) + " from " +
                                      coracle::quoted(source) + ": no matches for kind " + coracle::quoted(kind_in(object)) +
                                      " in version " + coracle::quoted(api_version_in(object)) +
                                      "\nensure CRDs are installed first");
    };
    auto kind = complete();
    if (kind) documents.push_back({std::move(object), *kind, source});
    else if (wrong) wrong->push_back(kind.take_error());
    else return kind.take_error();
  }
  return {};
}

// The parts of a text between its lines "---", which no YAML document can have within, each with the number of lines before it.
std::vector<std::pair<std::string_view, size_t>> parts_of(std::string_view text) {
  std::vector<std::pair<std::string_view, size_t>> parts;
  size_t start = 0, line = 0, first = 0;
  for (size_t at = 0; at < text.size(); ++line) {
    std::string_view here = text.substr(at);
    if (at > start && here.starts_with("---") && (here.size() == 3 || here.find_first_of(" \t\r\n") == 3)) {
      parts.emplace_back(text.substr(start, at - start), first);
      start = at, first = line;
    }
    size_t end = here.find('\n');
    at = end == here.npos ? text.size() : at + end + 1;
  }
  parts.emplace_back(text.substr(start), first);
  return parts;
}

// JSON values that stand one after the other, as `jq` writes them, each with the number of lines before it. None: it is something
// else.
std::vector<std::pair<std::string_view, size_t>> json_values_of(std::string_view text) {
  std::vector<std::pair<std::string_view, size_t>> values;
  size_t start = 0, line = 0, first = 0, depth = 0;
  bool quoted = false;
  for (size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    line += c == '\n';
    if (quoted) {
      if (c == '\\') ++at;
      else quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (depth++ == 0) start = at, first = line;
    } else if ((c == '}' || c == ']') && depth > 0) {
      if (--depth == 0) values.emplace_back(text.substr(start, at + 1 - start), first);
    }
    bool between = depth == 0 && c != '}' && c != ']' && !std::isspace(uint8_t(c));
    if (between) return {};
  }
  return depth == 0 ? values : decltype(values)();
}

// Files that were put together keep their marks, and a document may begin with one.
std::string without_inner_marks(std::string text) {
  constexpr std::string_view kMark = "\n\xef\xbb\xbf";
  for (size_t at = 0; (at = text.find(kMark, at)) != text.npos; ++at) text.erase(at + 1, kMark.size() - 1);
  return text;
}

Result<void> read_source(const std::string& name, const std::string& whole, std::vector<Document>& documents,
                         std::vector<Error>* wrong, bool validates) {
  const std::string text = without_inner_marks(whole);
  bool is_first = true;  // what follows the first document is read as YAML, if it is no JSON
  auto read = [&](const std::string& some) -> Result<void> {
    std::vector<size_t> lines;
    std::vector<std::string> duplicates;
    auto values = parse_yaml(some, &lines, &duplicates);
    if (!values) return parse_error(values.take_error(), name, is_first ? std::string_view(text) : std::string_view());
    std::vector<json::value> parsed = std::move(*values);
    for (const std::string& path : duplicates)
      std::fprintf(stderr, "Warning: %s\n", visible_line(name + ": " + schema::duplicate_warning(path)).c_str());
    for (size_t i = 0; i < parsed.size(); ++i)
      TRY(read_document(std::move(parsed[i]), name + ":" + std::to_string(lines[i]), documents, wrong, validates));
    return {};
  };
  auto read_part = [&](std::string_view part, size_t lines_before) {
    std::string padded(lines_before, '\n');  // lines count from the start of the file
    return read(padded.append(part));
  };
  auto parts = json_values_of(without_byte_order_mark(text));
  if (parts.size() < 2) {
    auto done = read(text);
    if (done || !wrong) return done;
    parts = parts_of(text);  // what cannot be read is one of the documents: the others can be
  }
  for (const auto& [part, line] : parts) {
    auto done = read_part(part, line);
    is_first = false;
    if (!done && !wrong) return done;
    if (!done) wrong->push_back(done.take_error());
  }
  return {};
}

std::string shown_source(const std::string& source) {
  if (source == "-") return "standard input";
  return is_url(source) ? without_user(source) : source;
}

}  // namespace

Result<std::unique_ptr<Session::Socket>> Session::upgrade(const Request& request, std::string_view protocol) {
  HttpRequest sent = TRY(state_->http_request(request));
  auto started = std::chrono::steady_clock::now();
  auto connection = state_->http->upgrade(sent, protocol);
  bool is_refused = !connection && connection.error().details();  // by the server
  state_->tell_response(sent, started,
                        connection   ? "101 Switching Protocols"
                        : is_refused ? std::to_string(http_status(connection.error()))
                                     : "");
  if (!connection) return connection.take_error();
  return std::unique_ptr<Socket>(std::make_unique<HttpSocket>(*std::move(connection)));
}

Result<std::unique_ptr<Session::Socket>> Session::connect() {
  auto connection = TRY(state_->http->connect());
  return std::unique_ptr<Socket>(std::make_unique<HttpSocket>(std::move(connection)));
}

Result<std::vector<std::string>> Session::identity() { return state_->http->identity(); }

std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  size_t closest = std::max<size_t>(1, word.size() / 3) + 1;
  for (const auto& candidate : known)
    if (size_t far = distance(word, candidate); far < closest) closest = far, best = candidate;
  return best;
}

Result<std::vector<Named>> parse_named(const std::vector<std::string>& args, std::vector<Error>* unknown) {
  std::vector<Named> named;
  if (args.empty()) return Error(Code::bad_request, "you must specify a resource: KIND NAME or KIND/NAME");
  // The kind, or null where nobody knows it and `unknown` was told.
  auto known = [&](std::string_view word) -> Result<const schema::KindInfo*> {
    auto kind = kind_named(word);
    if (kind || !unknown) return kind;
    unknown->push_back(kind.take_error());
    return nullptr;
  };
  if (args.front().find('/') != std::string::npos) {
    for (const auto& arg : args) {
      size_t slash = arg.find('/');
      if (slash != arg.npos && arg.find('/', slash + 1) != arg.npos)
        return Error(Code::bad_request, "arguments in resource/name form may not have more than one slash");
      if (slash == arg.npos || slash == 0 || slash + 1 == arg.size())
        return Error(Code::bad_request,
                     "arguments in resource/name form must have a single resource and name, got " + coracle::quoted(arg));
      const schema::KindInfo* kind = TRY(known(std::string_view(arg).substr(0, slash)));
      if (kind) named.push_back({kind, arg.substr(slash + 1)});
    }
    return named;
  }
  for (size_t i = 1; i < args.size(); ++i) {  // said of the arguments, so said once for all kinds
    if (args[i].empty()) return Error(Code::bad_request, "resource name may not be empty");
    if (args[i].find('/') != std::string::npos)
      return Error(Code::bad_request,
                   "there is no need to specify a resource type as a separate argument when passing arguments in "
                   "resource/name form, got " +
                       coracle::quoted(args[i]));
  }
  for (std::string_view word : split(args.front(), ',')) {
    std::vector<const schema::KindInfo*> kinds =
        word == "all" ? schema::catalog().by_category("all") : std::vector<const schema::KindInfo*>();
    if (kinds.empty()) {
      const schema::KindInfo* kind = TRY(known(word));
      if (!kind) continue;
      kinds.push_back(kind);
    }
    for (const auto* kind : kinds) {
      if (args.size() == 1) named.push_back({kind, {}});
      for (size_t i = 1; i < args.size(); ++i) named.push_back({kind, args[i]});
    }
  }
  return named;
}

Result<std::string> settle_namespace(const Session& session, Document& document) {
  std::string ns(metadata_of(document.object).namespace_());
  if (!document.kind->kind.namespaced) return std::string();
  if (ns.empty()) make(document.object, "metadata.namespace") = ns = session.ns();
  else if (session.ns_given() && ns != session.ns())
    return Error(Code::bad_request, "the namespace from the provided object " + coracle::quoted(ns) +
                                        " does not match the namespace " + coracle::quoted(session.ns()) +
                                        ". You must pass '--namespace=" + ns + "' to perform this operation.");
  return ns;
}

Result<std::vector<Document>> read_documents(const std::vector<std::string>& files, bool recursive, std::vector<Error>* wrong,
                                             bool validates) {
  // A path that is not there stops all before anything is done: who names it is somewhere else than he thinks.
  std::vector<std::string> sources = TRY(manifest_sources(files, recursive));
  std::vector<Document> documents;
  for (const auto& source : sources) {
    auto text = read_manifest(source);
    if (!text && !wrong) return text.take_error();
    if (!text) wrong->push_back(text.take_error());
    else TRY(read_source(shown_source(source), *text, documents, wrong, validates));
  }
  return documents;
}

Result<std::vector<Document>> documents_of(std::vector<json::value> objects, const std::string& source,
                                           std::vector<Error>* wrong) {
  std::vector<Document> documents;
  for (json::value& object : objects) {
    TRY(read_document(std::move(object), source, documents, wrong, false));
  }
  return documents;
}

std::string message_name(const schema::KindInfo& kind, std::string_view name) {
  std::string text(kind.singular);
  if (!kind.kind.group.empty()) text.append(".").append(kind.kind.group);
  return text.append("/").append(name);
}

const schema::KindInfo* kind_of(const json::value& object) {
  return schema::catalog().by_kind(api_version_in(object), kind_in(object));
}

}  // namespace coracle::ctl
