// SPDX-License-Identifier: Apache-2.0
// Remote. See remote.h.
#include "store/client/remote.h"

#include <algorithm>
#include <set>
#include <thread>

#include "runtime/base/guarded.h"
#include "runtime/base/text.h"
#include "runtime/base/thread.h"
#include "store/object/object.h"
#include "store/object/status.h"

namespace coracle {
namespace {

constexpr std::chrono::seconds kRequestTimeout{60};
constexpr int kRetriesMax = 5;
constexpr int kRetryAfterMaxSeconds = 10;
constexpr size_t kEventBytesMax = 16u << 20;

const char* content_type(PatchType type) {
  switch (type) {
    case PatchType::json: return "application/json-patch+json";
    case PatchType::merge: return "application/merge-patch+json";
    case PatchType::strategic: return "application/strategic-merge-patch+json";
    case PatchType::apply: return "application/apply-patch+yaml";
  }
  return "application/json";
}

HttpRequest request_of(const char* method, std::string path, std::string body = {}) {
  HttpRequest request;
  request.method = method;
  request.path = std::move(path);
  request.body = std::move(body);
  request.timeout = kRequestTimeout;
  return request;
}

// A server calls a patch with another object's uid invalid. For a Client it is a failed precondition.
bool is_about_uid(const Error& error) {
  return error.code() == Code::invalid && error.details() &&
         std::ranges::any_of(error.details()->causes, [](const Cause& cause) { return cause.field == "metadata.uid"; });
}

Error as_conflict(const Error& error) {
  ErrorDetails details = *error.details();
  details.reason.clear();
  return Error(Code::conflict, std::string(error.text())).with(std::move(details));
}

void ask(HttpRequest& request, const char* name, std::string_view value) {
  if (!value.empty()) request.query.emplace_back(name, value);
}

void ask(HttpRequest& request, const UpdateOptions& options) {
  ask(request, "fieldManager", options.field_manager);
  if (options.force) ask(request, "force", "true");
}

HttpRequest list_request(const Kind& kind, const std::string& ns, const std::string& labels, const std::string& fields) {
  HttpRequest request = request_of("GET", api_path(kind, ns));
  ask(request, "labelSelector", labels);
  ask(request, "fieldSelector", fields);
  return request;
}

json::value delete_options(const DeleteOptions& options) {
  json::object body{{"apiVersion", "v1"}, {"kind", "DeleteOptions"}};
  if (options.grace_period_seconds) body["gracePeriodSeconds"] = *options.grace_period_seconds;
  json::object preconditions;
  if (options.uid) preconditions["uid"] = *options.uid;
  if (options.revision) preconditions["resourceVersion"] = std::to_string(*options.revision);
  if (!preconditions.empty()) body["preconditions"] = std::move(preconditions);
  if (!options.propagation.empty()) body["propagationPolicy"] = options.propagation;
  return body;
}

Revision revision_of(const json::value& object) {
  return parse_number<Revision>(get_string(object, "metadata.resourceVersion")).value_or(0);
}

// Items of a list have no apiVersion and kind.
Result<ObjectPtr> item_of(const Kind& kind, const json::value& item) {
  if (!item.is_object() || item.get_object().contains("kind")) return Object::make(kind, item);
  json::object whole{{"apiVersion", kind.api_version()}, {"kind", kind.kind}};
  for (const auto& member : item.get_object()) whole.insert(member);
  return Object::make(kind, std::move(whole));
}

Error answer_error(const HttpAnswer& answer) { return error_from_status(answer.status, answer.body, answer.retry_after_seconds); }

bool is_good(const HttpAnswer& answer) { return answer.status >= 200 && answer.status < 300; }

// A watch: the thread lists the existing objects, then reads the event stream line by line, and resumes it at its last revision.
// (Servers can send the initial events themselves, but those before Kubernetes 1.32 cannot, and some ignore the request silently;
// every server can list.)
class RemoteWatch : public Watch {
 public:
  RemoteWatch(Remote& remote, const Kind& kind, WatchOptions options, WatchSink& sink)
      : remote_(remote), kind_(kind), options_(std::move(options)), sink_(sink), after_(options_.after) {}
  ~RemoteWatch() override {
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
  }

  // Returns when the server has started to respond or has refused.
  Result<void> start() {
    thread_ = start_thread("watch", [this](std::stop_token stop) { run(stop); });
    return begun_.wait(
        {}, [](const Begun& begun) { return begun.known; },
        [](Begun& begun) { return begun.refused ? Result<void>(*begun.refused) : Result<void>(); });
  }

 private:
  struct Begun {
    bool known = false;
    std::optional<Error> refused;
  };

  void run(std::stop_token stop) {
    std::optional<Error> end;
    if (after_ == 0) end = tell_what_is();
    while (!end && !stop.stop_requested()) end = follow(stop);  // nothing: the server's time limit has ended the stream
    if (!stop.stop_requested() && !refuse(*end)) sink_.on_end(*end);
  }

  std::optional<Error> tell_what_is() {
    auto list = remote_.list(kind_, {options_.ns, options_.label_selector, options_.field_selector, 0, ""});
    if (!list) return list.error();
    accept();
    for (const ObjectPtr& object : list->items) sink_.on_event({EventType::added, object, object->revision()});
    sink_.on_event({EventType::synced, nullptr, list->revision});
    after_ = list->revision;
    return std::nullopt;
  }

  // The start has failed while start() is still waiting.
  bool refuse(const Error& why) {
    bool waiting = begun_.with([&](Begun& begun) {
      if (begun.known) return false;
      begun.known = true;
      begun.refused = why;
      return true;
    });
    begun_.notify();
    return waiting;
  }
  void accept() {
    begun_.with([](Begun& begun) { begun.known = true; });
    begun_.notify();
  }

  HttpRequest request() const {
    HttpRequest request = list_request(kind_, options_.ns, options_.label_selector, options_.field_selector);
    request.timeout = {};
    ask(request, "watch", "true");
    ask(request, "allowWatchBookmarks", "true");
    ask(request, "resourceVersion", std::to_string(after_));
    return request;
  }

  // Reads one stream to its end. Nothing: it ended regularly.
  std::optional<Error> follow(std::stop_token stop) {
    line_.clear();
    failure_.reset();
    auto take_bytes = [&](std::string_view bytes) { return !stop.stop_requested() && take(bytes); };
    auto answer = remote_.http().stream(request(), take_bytes, stop, [this] { accept(); });
    if (failure_) return failure_;
    if (!answer) return answer.error();
    if (!is_good(*answer) && answer->status != 0) return answer_error(*answer);
    return std::nullopt;
  }

  bool take(std::string_view bytes) {
    while (!bytes.empty()) {
      size_t end = bytes.find('\n');
      line_.append(bytes.substr(0, end));
      if (line_.size() > kEventBytesMax) return fail(Error(Code::too_large, "an event of the watch is too large"));
      if (end == bytes.npos) return true;
      bytes.remove_prefix(end + 1);
      bool going_on = trim(line_).empty() || take_event(line_);
      line_.clear();
      if (!going_on) return false;
    }
    return true;
  }

  bool take_event(std::string_view line) {
    auto event = parse_json(line);
    if (!event) return fail(Error(Code::unavailable, "the watch's stream is damaged: " + event.error().text()));
    std::string_view type = get_string(*event, "type");
    const json::value* object = find(*event, "object");
    if (!object) return fail(Error(Code::unavailable, "the watch's stream is damaged: an event without object"));
    if (type == "ERROR") return fail(error_from_status(*object));
    Revision revision = revision_of(*object);
    if (type == "BOOKMARK") {
      sink_.on_event({EventType::bookmark, nullptr, revision});
    } else {
      auto made = Object::make(kind_, *object);
      if (!made) return fail(made.take_error().wrap("an event of the watch"));
      EventType kind = type == "ADDED" ? EventType::added : type == "DELETED" ? EventType::deleted : EventType::modified;
      sink_.on_event({kind, *made, revision});
    }
    after_ = std::max(after_, revision);
    return true;
  }
  bool fail(Error why) {
    failure_ = std::move(why);
    return false;
  }

  Remote& remote_;
  const Kind& kind_;
  const WatchOptions options_;
  WatchSink& sink_;
  Revision after_;  // everything up to this was delivered; 0: start with a list
  std::string line_;
  std::optional<Error> failure_;
  Guarded<Begun> begun_;
  std::jthread thread_;
};

}  // namespace

std::string api_path(const Kind& kind, std::string_view ns, std::string_view name, std::string_view subresource) {
  std::string path = kind.group.empty() ? "/api/" : "/apis/" + std::string(kind.group) + "/";
  path += kind.version;
  if (kind.namespaced && !ns.empty()) path += "/namespaces/" + percent_encode(ns);
  path.append("/").append(kind.resource);
  if (!name.empty()) path += "/" + percent_encode(name);
  if (!subresource.empty()) path.append("/").append(subresource);
  return path;
}

Remote::Remote(std::unique_ptr<Http> http) : http_(std::move(http)) {}
Remote::~Remote() = default;

Result<std::unique_ptr<Remote>> Remote::make(ServerAccess access) {
  std::unique_ptr<Http> http = TRY(Http::make(std::move(access)));
  return std::unique_ptr<Remote>(new Remote(std::move(http)));
}

Result<json::value> Remote::send(HttpRequest request) {
  for (int retries = 0;; retries++) {
    HttpAnswer answer = TRY(http_->send(request));
    if (is_good(answer)) return parse_json(answer.body).wrap("the server's answer");
    bool later = (answer.status == 429 || answer.status == 503) && answer.retry_after_seconds > 0;
    if (!later || retries == kRetriesMax) return answer_error(answer);
    Guarded<bool> nothing(false);  // only a stop request wakes it early
    auto when =
        std::chrono::steady_clock::now() + std::chrono::seconds(std::min(answer.retry_after_seconds, kRetryAfterMaxSeconds));
    nothing.wait_until(
        {}, when, [](bool) { return false; }, [](bool) {});
  }
}

Result<ObjectPtr> Remote::send_for_object(const Kind& kind, HttpRequest request) {
  json::value body = TRY(send(std::move(request)));
  return Object::make(kind, std::move(body)).wrap("the server's answer");
}

Result<ObjectPtr> Remote::get(const Kind& kind, const Key& key) {
  return send_for_object(kind, request_of("GET", api_path(kind, key.ns, key.name)));
}

Result<json::value> Remote::read(const Kind& kind, const Key& key, std::string_view subresource,
                                 const ReadParameters& parameters) {
  HttpRequest request = request_of("GET", api_path(kind, key.ns, key.name, subresource));
  for (const auto& [name, value] : parameters) request.query.emplace_back(name, value);
  auto answer = send(std::move(request));
  // If the API group is not served, the response is plain text.
  bool unserved =
      !answer && answer.error().code() == Code::not_found && answer.error().text().starts_with("the server answered 404");
  if (unserved) return Error(Code::not_found, "the server could not find the requested resource").with(ErrorDetails{});
  return answer;
}

Result<ObjectList> Remote::list(const Kind& kind, const ListOptions& options) {
  HttpRequest request = list_request(kind, options.ns, options.label_selector, options.field_selector);
  if (options.limit) ask(request, "limit", std::to_string(options.limit));
  ask(request, "continue", options.continue_token);
  json::value body = TRY(send(std::move(request)));
  const std::set<Key> only(options.only.begin(), options.only.end());  // the API has no parameter for it
  ObjectList list;
  list.revision = revision_of(body);
  list.continue_token = get_string(body, "metadata.continue");
  for (const json::value& item : get_array(body, "items")) {
    ObjectPtr object = TRY(item_of(kind, item).wrap("the server's answer"));
    bool is_wanted = only.empty() || only.contains(object->key());
    if (is_wanted) list.items.push_back(std::move(object));
  }
  return list;
}

Result<ObjectPtr> Remote::create(const Kind& kind, const json::value& body) {
  return send_for_object(kind, request_of("POST", api_path(kind, get_string(body, "metadata.namespace")), to_text(body)));
}

Result<ObjectPtr> Remote::update(const Kind& kind, const json::value& body, const UpdateOptions& options) {
  std::string path =
      api_path(kind, get_string(body, "metadata.namespace"), get_string(body, "metadata.name"), options.subresource);
  HttpRequest request = request_of("PUT", std::move(path), to_text(body));
  ask(request, options);
  return send_for_object(kind, std::move(request));
}

Result<ObjectPtr> Remote::patch(const Kind& kind, const Key& key, PatchType type, const json::value& patch,
                                const UpdateOptions& options) {
  HttpRequest request = request_of("PATCH", api_path(kind, key.ns, key.name, options.subresource), to_text(patch));
  request.content_type = content_type(type);
  ask(request, options);
  auto patched = send_for_object(kind, std::move(request));
  if (!patched && is_about_uid(patched.error())) return as_conflict(patched.error());
  return patched;
}

Result<void> Remote::remove(const Kind& kind, const Key& key, const DeleteOptions& options) {
  TRY(send(request_of("DELETE", api_path(kind, key.ns, key.name), to_text(delete_options(options)))));
  return {};
}

Result<json::value> Remote::create_subresource(const Kind& kind, const Key& key, std::string_view subresource,
                                               const json::value& body) {
  return send(request_of("POST", api_path(kind, key.ns, key.name, subresource), to_text(body)));
}

Result<std::unique_ptr<Watch>> Remote::watch(const Kind& kind, const WatchOptions& options, WatchSink& sink) {
  auto watch = std::make_unique<RemoteWatch>(*this, kind, options, sink);
  TRY(watch->start());
  return std::unique_ptr<Watch>(std::move(watch));
}

}  // namespace coracle
