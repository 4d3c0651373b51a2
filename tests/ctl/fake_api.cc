// SPDX-License-Identifier: Apache-2.0
// See fake_api.h.
#include "tests/ctl/fake_api.h"

#include <gtest/gtest.h>
#include <httplib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "ctl/command.h"
#include "runtime/base/guarded.h"
#include "runtime/base/text.h"
#include "store/object/patch.h"
#include "store/object/selector.h"
#include "store/object/status.h"
#include "store/schema/merge.h"

namespace coracle::ctl {
namespace {

struct ApiPath {  // "/apis/apps/v1/namespaces/default/deployments/web/scale" in parts
  std::string version, ns, resource, name, subresource;
};

ApiPath api_path_of(const std::string& path) {
  std::vector<std::string> parts;
  for (std::string_view part : split(std::string_view(path).substr(1), '/')) parts.emplace_back(part);
  ApiPath place;
  size_t at = parts[0] == "api" ? 2 : 3;
  for (size_t i = 1; i < at && i < parts.size(); ++i) place.version += (i > 1 ? "/" : "") + parts[i];
  if (parts.size() > at + 2 && parts[at] == "namespaces") place.ns = parts[at + 1], at += 2;
  if (parts.size() > at) place.resource = parts[at];
  if (parts.size() > at + 1) place.name = parts[at + 1];
  if (parts.size() > at + 2) place.subresource = parts[at + 2];
  return place;
}

std::string object_path(const std::string& path, const ApiPath& place) {  // without the subresource
  return place.subresource.empty() ? path : path.substr(0, path.size() - place.subresource.size() - 1);
}

bool has_all(const json::value& body, std::string_view field) {
  const json::array& values = get_array(body, field);
  return std::find(values.begin(), values.end(), json::value("All")) != values.end();
}

}  // namespace

struct FakeApi::State {
  struct Data {
    Objects objects;
    std::vector<Sent> writes, watches;
    std::string warning, watch_events;
    bool watches_stay = false, refuses_watches = false, makes_tables = true;
    std::set<std::string> forbidden, held, lacking;
    std::optional<Error> refusal;               // of writes
    std::map<std::string, Error> refused_once;  // by path
    struct LogRefusal {
      int times;
      Error error;
    };
    std::map<std::string, LogRefusal> log_refusals;  // by container
    int revision = 1000;
  };
  Guarded<Data> data;
  httplib::Server server;
  int port = 0;
  std::string directory, kubeconfig;
  std::jthread thread;

  using Answer = Result<json::value>;
  static Error not_there(const ApiPath& place) {
    return Error(Code::not_found, place.resource + " " + coracle::quoted(place.name) + " not found").with({.name = place.name});
  }
  static Answer read(Data& data, const httplib::Request& request, const ApiPath& place);
  static Answer write(Data& data, const Sent& sent, const ApiPath& place);
  static Answer patch(json::value object, const Sent& sent);
  void handle(const httplib::Request& request, httplib::Response& response);
};

FakeApi::State::Answer FakeApi::State::read(Data& data, const httplib::Request& request, const ApiPath& place) {
  if (auto found = data.objects.find(request.path); found != data.objects.end() && place.resource.empty()) return found->second;
  if (request.path == "/api/v1")
    return parse_json(R"({"resources":[{"name":"pods"},
                          {"name":"pods/eviction","group":"policy","version":"v1","kind":"Eviction"}]})");
  if (data.forbidden.contains(place.resource))
    return Error(Code::forbidden, place.resource + " is forbidden: User \"eve\" cannot read it").with({});
  if (data.refuses_watches && request.has_param("watch"))
    return Error(Code::forbidden, place.resource + " is forbidden: User \"eve\" cannot watch it").with({});
  if (auto refused = data.log_refusals.find(request.get_param_value("container"));
      place.subresource == "log" && refused != data.log_refusals.end() && refused->second.times-- > 0)
    return refused->second.error;
  if (place.subresource == "log") return json::value(place.name + " " + request.get_param_value("container"));
  if (!place.name.empty()) {
    auto found = data.objects.find(request.path);
    if (found == data.objects.end()) return not_there(place);
    return found->second;
  }
  json::array items;
  std::string only = request.get_param_value("fieldSelector");
  LabelSelector selector = TRY(LabelSelector::parse(request.get_param_value("labelSelector")));
  for (const auto& [path, object] : data.objects) {
    ApiPath other = api_path_of(path);
    if (other.version != place.version || other.resource != place.resource) continue;
    if (!place.ns.empty() && other.ns != place.ns) continue;
    if (only.starts_with("metadata.name=") && only != "metadata.name=" + other.name) continue;
    if (!selector.matches(get_object(object, "metadata.labels"))) continue;
    items.push_back(object);
  }
  if (!data.makes_tables || request.get_header_value("Accept").find("as=Table") == std::string::npos)
    return json::value(json::object{{"kind", "List"}, {"metadata", {{"resourceVersion", "1"}}}, {"items", std::move(items)}});
  json::array rows;
  for (const auto& item : items)
    rows.push_back(json::object{{"cells", json::array{get_string(item, "metadata.name")}}, {"object", item}});
  return json::value(json::object{{"kind", "Table"},
                                  {"metadata", {{"resourceVersion", "1"}}},
                                  {"columnDefinitions", json::array{json::object{{"name", "Name"}, {"format", "name"}}}},
                                  {"rows", std::move(rows)}});
}

FakeApi::State::Answer FakeApi::State::patch(json::value object, const Sent& sent) {
  if (sent.content_type.starts_with("application/json-patch")) {
    TRY(apply_json_patch(object, sent.body));
  } else if (sent.content_type.starts_with("application/strategic")) {
    const schema::KindInfo& kind = *kind_of(object);
    object = TRY(schema::strategic_merge(kind, std::move(object), sent.body));
  } else {
    apply_merge_patch(object, sent.body);
  }
  return object;
}

FakeApi::State::Answer FakeApi::State::write(Data& data, const Sent& sent, const ApiPath& place) {
  // A deletion's options are in the body, if it has one, as with Kubernetes' server.
  bool in_body = has_all(sent.body, "dryRun") || has_all(sent.body, "deleteOptions.dryRun");
  bool dry = sent.method == "DELETE" && sent.body.is_object() ? in_body : in_body || sent.says_dry_run();
  auto keep = [&](const std::string& path, json::value object) {
    make(object, "metadata.resourceVersion") = std::to_string(++data.revision);
    data.objects[path] = std::move(object);
  };
  std::string path = object_path(sent.path, place);
  auto found = data.objects.find(path);
  if (sent.method == "POST" && place.name.empty()) {
    std::string made = path + "/" + std::string(get_string(sent.body, "metadata.name"));
    if (data.objects.contains(made)) return Error(Code::already_exists, made + " already exists").with({});
    json::value object = sent.body;
    make(object, "metadata.uid") = "uid-" + made;
    if (!dry) keep(made, object);
    return object;
  }
  if (sent.method == "DELETE" && place.name.empty()) {  // a deletecollection
    if (!dry) std::erase_if(data.objects, [&](const auto& one) { return one.first.starts_with(path + "/"); });
    return success_status();
  }
  bool applies = sent.method == "PATCH" && sent.content_type.starts_with("application/apply");
  if (found == data.objects.end() && !applies) return not_there(place);
  json::value before = found == data.objects.end() ? json::value(json::object()) : found->second;
  if (sent.method == "DELETE" || place.subresource == "eviction") {
    if (!dry && !data.held.contains(path)) data.objects.erase(found);
    return success_status();
  }
  json::value after = sent.body;
  if (sent.method == "PATCH") after = TRY(patch(before, sent));
  if (!dry && after != before) keep(path, after);
  if (place.subresource == "scale")
    return json::value(json::object{{"kind", "Scale"}, {"spec", {{"replicas", get_int(after, "spec.replicas")}}}});
  return after;
}

void FakeApi::State::handle(const httplib::Request& request, httplib::Response& response) {
  ApiPath place = api_path_of(request.path);
  bool is_lacking = data.with([&](const Data& all) {
    return std::ranges::any_of(all.lacking, [&](const auto& prefix) { return request.path.starts_with(prefix); });
  });
  if (is_lacking) {
    response.status = 404;
    return response.set_content("404 page not found\n", "text/plain");
  }
  auto events = data.with([&](Data& all) -> std::string {
    if (!request.has_param("watch") || all.watch_events.empty()) return {};
    Sent& sent = all.watches.emplace_back(Sent{request.method, request.path, {}, {}, {}});
    for (const auto& [name, value] : request.params) sent.query[name] = value;
    return all.watch_events;
  });
  bool stay = data.with([](Data& all) { return all.watches_stay; });
  if (!events.empty() && stay)
    return response.set_chunked_content_provider("application/json", [events](size_t offset, httplib::DataSink& sink) {
      constexpr int kWaits = 250;
      if (offset == 0) return sink.write(events.data(), events.size());
      for (int i = 0; i < kWaits && sink.is_writable(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return false;
    });
  if (!events.empty()) return response.set_content(events, "application/json");
  Answer answer = data.with([&](Data& all) -> Answer {
    if (!all.warning.empty()) response.set_header("Warning", "299 - \"" + all.warning + "\"");
    if (request.method == "GET") return read(all, request, place);
    Sent sent{request.method, request.path, request.get_header_value("Content-Type"), {}, {}};
    for (const auto& [name, value] : request.params) sent.query[name] = value;
    if (!request.body.empty()) sent.body = parse_json(request.body).value_or(json::value());
    all.writes.push_back(sent);
    if (all.refusal) return *all.refusal;
    if (auto once = all.refused_once.extract(sent.path)) return once.mapped();
    return write(all, sent, place);
  });
  if (!answer) response.status = http_status(answer.error());
  response.set_content(to_text(answer ? *answer : to_status(answer.error())), "application/json");
}

FakeApi::FakeApi() : state_(std::make_unique<State>()) {
  auto handle = [state = state_.get()](const httplib::Request& request, httplib::Response& response) {
    state->handle(request, response);
  };
  state_->server.Get(".*", handle);
  state_->server.Post(".*", handle);
  state_->server.Put(".*", handle);
  state_->server.Patch(".*", handle);
  state_->server.Delete(".*", handle);
  state_->server.set_tcp_nodelay(true);
  state_->port = state_->server.bind_to_any_port("127.0.0.1");
  state_->thread = std::jthread([state = state_.get()] { state->server.listen_after_bind(); });
  while (!state_->server.is_running()) std::this_thread::yield();  // a stop before the server runs would be lost
  state_->directory = testing::TempDir() + "/fake-api-XXXXXX";
  EXPECT_TRUE(::mkdtemp(state_->directory.data()));
  state_->kubeconfig = state_->directory + "/kubeconfig";
  std::ofstream(state_->kubeconfig) << "{current-context: c, clusters: [{name: c, cluster: {server: 'http://127.0.0.1:"
                                    << state_->port
                                    << "'}}], contexts: [{name: c, context: {cluster: c, namespace: default}}]}\n";
}

FakeApi::~FakeApi() {
  state_->server.stop();
  std::filesystem::remove_all(state_->directory);
}

void FakeApi::put(const std::string& path, std::string_view object) {
  auto parsed = parse_json(object);
  ASSERT_TRUE(parsed) << object;
  state_->data.with([&](State::Data& data) { data.objects[path] = std::move(*parsed); });
}

void FakeApi::reset(Objects objects) {
  state_->data.with([&](State::Data& data) { data.objects = std::move(objects), data.writes.clear(); });
}

FakeApi::Objects FakeApi::objects() const {
  return state_->data.with([](const State::Data& data) { return data.objects; });
}

std::vector<FakeApi::Sent> FakeApi::take_writes() {
  return state_->data.with([](State::Data& data) { return std::exchange(data.writes, {}); });
}

void FakeApi::answer_watches(std::string events) {
  state_->data.with([&](State::Data& data) { data.watch_events = std::move(events); });
}

void FakeApi::keep_watches_open() {
  state_->data.with([](State::Data& data) { data.watches_stay = true; });
}

void FakeApi::forbid_watches() {
  state_->data.with([](State::Data& data) { data.refuses_watches = true; });
}

std::vector<FakeApi::Sent> FakeApi::take_watches() {
  return state_->data.with([](State::Data& data) { return std::exchange(data.watches, {}); });
}

void FakeApi::hold(const std::string& path) {
  state_->data.with([&](State::Data& data) { data.held.insert(path); });
}

void FakeApi::make_no_tables() {
  state_->data.with([](State::Data& data) { data.makes_tables = false; });
}

void FakeApi::lack(const std::string& prefix) {
  state_->data.with([&](State::Data& data) { data.lacking.insert(prefix); });
}

void FakeApi::warn(std::string text) {
  state_->data.with([&](State::Data& data) { data.warning = std::move(text); });
}

void FakeApi::forbid(const std::string& resource) {
  state_->data.with([&](State::Data& data) { data.forbidden.insert(resource); });
}

void FakeApi::refuse_writes(Error error) {
  state_->data.with([&](State::Data& data) { data.refusal = std::move(error); });
}

void FakeApi::refuse_once(const std::string& path, Error error) {
  state_->data.with([&](State::Data& data) { data.refused_once.insert_or_assign(path, std::move(error)); });
}

void FakeApi::refuse_logs(const std::string& container, int times, Error error) {
  state_->data.with([&](State::Data& data) {
    data.log_refusals.insert_or_assign(container, State::Data::LogRefusal{times, std::move(error)});
  });
}

std::string FakeApi::url() const { return "http://127.0.0.1:" + std::to_string(state_->port); }

FakeApi::Outcome FakeApi::run(const std::vector<std::string>& words) {
  CommandLine line("coraclectl", "a test's");
  GlobalFlags flags;
  Commands commands(line.root(), flags);
  add_commands(commands);
  const std::vector<std::string> own = commands.take_rest(words);
  std::vector<const char*> all = {"coraclectl"};
  for (const std::string& word : own) all.push_back(word.c_str());
  Outcome outcome{1, {}, {}};
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  auto parsed = line.parse(int(all.size()), all.data());
  if (flags.kubeconfig.empty()) flags.kubeconfig = state_->kubeconfig;
  commands.set_recorded(line.recorded(commands.rest()));
  if (!parsed) tell(parsed.error().text() + "\n");
  else if (!commands.chosen()) tell("no command\n");
  else if (auto done = commands.run(); done) outcome.code = *done;
  else print_failure(done.error());
  std::fflush(stderr);
  outcome.out = testing::internal::GetCapturedStdout();
  outcome.err = testing::internal::GetCapturedStderr();
  return outcome;
}

}  // namespace coracle::ctl
