// SPDX-License-Identifier: Apache-2.0
// FakeServer. See fake_server.h.
#include "tests/store/client/fake_server.h"

#include <httplib.h>

#include <atomic>
#include <deque>
#include <thread>

#include "runtime/base/guarded.h"
#include "runtime/base/text.h"
#include "store/object/object.h"
#include "store/object/status.h"

namespace coracle {
namespace {

struct Target {
  const Kind* kind = nullptr;
  Key key;
  std::string subresource;
};

// Parses "/api/v1/namespaces/a/pods/web/status" and similar paths.
Target target_of(const std::string& path) {
  std::vector<std::string> parts;
  for (std::string_view part : split(std::string_view(path).substr(1), '/')) parts.emplace_back(part);
  Target target;
  size_t at = parts[0] == "api" ? 2 : 3;
  if (parts.size() > at + 2 && parts[at] == "namespaces") {
    target.key.ns = parts[at + 1];
    at += 2;
  }
  if (parts.size() <= at) return target;
  for (const Kind* kind : {&kNamespace, &kPod, &kConfigMap, &kNode, &kDeployment, &kReplicaSet})
    if (kind->resource == parts[at]) target.kind = kind;
  if (parts.size() > at + 1) target.key.name = parts[at + 1];
  if (parts.size() > at + 2) target.subresource = parts[at + 2];
  return target;
}

class EventStream : public WatchSink {  // the lines of one watch on their way to the socket
 public:
  void on_event(const WatchEvent& event) override {
    static constexpr const char* kNames[] = {"ADDED", "MODIFIED", "DELETED"};
    if (event.object)
      push(R"({"type":")" + std::string(kNames[size_t(event.type)]) + R"(","object":)" + std::string(event.object->text()) +
           "}\n");
  }
  void on_end(const Error& why) override {
    push(R"({"type":"ERROR","object":)" + to_text(to_status(why)) + "}\n");
    finish();
  }
  void finish() {
    lines_.with([](Lines& lines) { lines.ended = true; });
    lines_.notify();
  }
  // Returns "" at the end.
  std::string take() {
    return lines_.wait(
        {}, [](const Lines& lines) { return lines.ended || !lines.text.empty(); },
        [](Lines& lines) { return std::exchange(lines.text, {}); });
  }

 private:
  struct Lines {
    std::string text;
    bool ended = false;
  };
  void push(const std::string& line) {
    lines_.with([&](Lines& lines) { lines.text += line; });
    lines_.notify();
  }
  Guarded<Lines> lines_;

 public:
  std::unique_ptr<Watch> watch;  // last member: the watch ends, and its delivery, before the lines are destroyed
};

PatchType patch_type(const std::string& content_type) {
  if (content_type.starts_with("application/json-patch")) return PatchType::json;
  if (content_type.starts_with("application/merge-patch")) return PatchType::merge;
  return content_type.starts_with("application/apply") ? PatchType::apply : PatchType::strategic;
}

}  // namespace

struct FakeServer::State {
  FakeClient objects;
  httplib::Server server;
  int port = 0;
  std::atomic<int> next_status = 0, next_retry = 0;
  Guarded<std::vector<std::weak_ptr<EventStream>>> streams;
  std::atomic<bool> ends = false;  // whoever begins to watch then is ended at once
  std::jthread thread;

  void answer(httplib::Response& response, const Error& error) {
    response.status = http_status(error);
    response.set_content(to_text(to_status(error)), "application/json");
  }
  void answer(httplib::Response& response, const Result<ObjectPtr>& result) {
    if (result) response.set_content(std::string((*result)->text()), "application/json");
    else answer(response, result.error());
  }
  void handle(const httplib::Request& request, httplib::Response& response);
  void list(const Target& target, const httplib::Request& request, httplib::Response& response);
  void watch(const Target& target, const httplib::Request& request, httplib::Response& response);
  void remove(const Target& target, const json::value& body, httplib::Response& response);
};

void FakeServer::State::handle(const httplib::Request& request, httplib::Response& response) {
  if (int status = next_status.exchange(0)) {
    response.status = status;
    response.set_header("Retry-After", std::to_string(next_retry.load()));
    return;
  }
  Target target = target_of(request.path);
  if (!target.kind) {  // a 404 as servers send it: not a Status
    response.status = 404;
    return response.set_content("404 page not found\n", "text/plain");
  }
  json::value body = request.body.empty() ? json::value() : parse_json(request.body).value_or(json::value());
  UpdateOptions options{target.subresource, request.get_param_value("fieldManager"), request.has_param("force")};
  if (request.method == "GET" && request.has_param("watch")) return watch(target, request, response);
  if (request.method == "GET" && target.key.name.empty()) return list(target, request, response);
  if (request.method == "GET" && !target.subresource.empty()) {
    auto part = objects.read(*target.kind, target.key, target.subresource);
    if (!part) return answer(response, part.error());
    return response.set_content(to_text(*part), "application/json");
  }
  if (request.method == "GET") return answer(response, objects.get(*target.kind, target.key));
  if (request.method == "PUT") return answer(response, objects.update(*target.kind, body, options));
  if (request.method == "DELETE") return remove(target, body, response);
  if (request.method == "PATCH")
    return answer(response,
                  objects.patch(*target.kind, target.key, patch_type(request.get_header_value("Content-Type")), body, options));
  if (target.subresource.empty()) return answer(response, objects.create(*target.kind, body));
  auto done = objects.create_subresource(*target.kind, target.key, target.subresource, body);
  if (!done) return answer(response, done.error());
  response.set_content(to_text(*done), "application/json");
}

void FakeServer::State::list(const Target& target, const httplib::Request& request, httplib::Response& response) {
  int64_t limit = parse_number<int64_t>(request.get_param_value("limit")).value_or(0);
  auto found = objects.list(*target.kind, {target.key.ns, request.get_param_value("labelSelector"),
                                           request.get_param_value("fieldSelector"), limit, request.get_param_value("continue")});
  if (!found) return answer(response, found.error());
  json::array items;
  for (const ObjectPtr& object : found->items) {
    json::value item = object->json();
    item.get_object().erase("apiVersion");
    item.get_object().erase("kind");
    items.push_back(std::move(item));
  }
  json::object metadata{{"resourceVersion", std::to_string(found->revision)}};
  if (!found->continue_token.empty()) metadata["continue"] = found->continue_token;
  response.set_content(to_text(json::object{{"apiVersion", target.kind->api_version()},
                                            {"kind", std::string(target.kind->kind) + "List"},
                                            {"metadata", metadata},
                                            {"items", items}}),
                       "application/json");
}

void FakeServer::State::watch(const Target& target, const httplib::Request& request, httplib::Response& response) {
  auto stream = std::make_shared<EventStream>();
  WatchOptions options{target.key.ns, request.get_param_value("labelSelector"), request.get_param_value("fieldSelector"),
                       parse_number<Revision>(request.get_param_value("resourceVersion")).value_or(0)};
  auto watch = objects.watch(*target.kind, options, *stream);
  if (!watch) return answer(response, watch.error());
  stream->watch = *std::move(watch);
  streams.with([&](auto& all) { all.push_back(stream); });
  if (ends) stream->finish();
  response.set_chunked_content_provider("application/json", [stream](size_t, httplib::DataSink& sink) {
    std::string text = stream->take();
    if (text.empty()) return sink.done(), true;
    return sink.write(text.data(), text.size());
  });
}

void FakeServer::State::remove(const Target& target, const json::value& body, httplib::Response& response) {
  DeleteOptions options;
  if (const json::value* grace = find(body, "gracePeriodSeconds")) options.grace_period_seconds = grace->to_number<int64_t>();
  if (const json::value* uid = find(body, "preconditions.uid")) options.uid = std::string(uid->get_string());
  if (const json::value* revision = find(body, "preconditions.resourceVersion"))
    options.revision = parse_number<Revision>(revision->get_string()).value_or(0);
  options.propagation = get_string(body, "propagationPolicy");
  auto done = objects.remove(*target.kind, target.key, options);
  if (!done) return answer(response, done.error());
  response.set_content(to_text(success_status()), "application/json");
}

FakeServer::FakeServer() : state_(std::make_unique<State>()) {
  auto handle = [state = state_.get()](const httplib::Request& request, httplib::Response& response) {
    state->handle(request, response);
  };
  state_->server.Get(".*", handle);
  state_->server.Post(".*", handle);
  state_->server.Put(".*", handle);
  state_->server.Patch(".*", handle);
  state_->server.Delete(".*", handle);
  state_->server.new_task_queue = [] { return new httplib::ThreadPool(16); };
  state_->server.set_tcp_nodelay(true);
  state_->port = state_->server.bind_to_any_port("127.0.0.1");
  state_->thread = std::jthread([state = state_.get()] { state->server.listen_after_bind(); });
  while (!state_->server.is_running()) std::this_thread::yield();  // a stop before the server runs would be lost
}

FakeServer::~FakeServer() {
  state_->ends = true;
  end_watches_cleanly();
  state_->server.stop();
}

std::string FakeServer::url() const { return "http://127.0.0.1:" + std::to_string(state_->port); }
FakeClient& FakeServer::objects() { return state_->objects; }

void FakeServer::answer_next(int status, int retry_after_seconds) {
  state_->next_retry = retry_after_seconds;
  state_->next_status = status;
}

void FakeServer::end_watches_cleanly() {
  auto streams = state_->streams.with([](auto& all) { return std::exchange(all, {}); });
  for (const auto& weak : streams)
    if (auto stream = weak.lock()) stream->finish();
}

}  // namespace coracle
