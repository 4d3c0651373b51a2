// SPDX-License-Identifier: Apache-2.0
// Implements the interfaces of daemon/stream/stream.h for the API server: logs, exec, port connections, images and volumes.
#include <algorithm>
#include <atomic>
#include <thread>

#include "daemon/node/agent.h"
#include "daemon/node/record.h"
#include "daemon/node/stream/log_reader.h"
#include "daemon/node/stream/loopback.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/base/thread.h"
#include "store/kinds/pod/pod_state.h"
#include "store/object/status.h"

namespace coracle::node {

namespace {

constexpr const char* kByHand = "by hand";           // source of the credentials of `image pull`
constexpr std::chrono::seconds kConnectTimeout{10};  // for a server with a full accept queue
// How long an attached process is heard after the end of its client's input: until it is silent for so long, and no longer than
// the second.
constexpr std::chrono::milliseconds kSilence{200}, kLastWordsMax{2000};

// A running exec: two threads copy its output to the client, and the caller's thread copies the input to it.
class Session : public ExecSession {
 public:
  Session(std::unique_ptr<runtime::Exec> process, bool terminal, bool stdin_wanted, ExecOutput& out)
      : process_(std::move(process)), terminal_(terminal) {
    Fd output = process_->take_stdout(), errors = process_->take_stderr();
    if (stdin_wanted || terminal) input_ = process_->take_stdin();
    auto to_stdout = [this, &out](auto bytes) { return note(out.write_stdout(bytes)); };
    // Attach gets a copy of the terminal's output, as the log does: a second reader of the terminal would take parts of it.
    auto to_stderr = [this, &out](auto bytes) { return note(out.write_stderr(bytes)); };
    if (output) start_pump([this, fd = std::move(output), to_stdout] { pass_on(fd, to_stdout); });
    else if (terminal) start_pump([this, to_stdout] { pass_on(input_, to_stdout); });
    if (errors && !terminal) start_pump([this, fd = std::move(errors), to_stderr] { pass_on(fd, to_stderr); });
  }
  ~Session() override {
    stop_.request_stop();
    process_.reset();  // kills an exec's process
  }
  Result<void> write_stdin(std::string_view bytes) override {
    if (!input_) return Error(Code::unavailable, "the process has no standard input");
    return files::write_all(input_, bytes, stop_.get_token());
  }
  void close_stdin() override {
    constexpr char kEndOfTransmission = 4;  // end of input on a terminal
    if (terminal_) (void)files::write_all(input_, {&kEndOfTransmission, 1}, stop_.get_token());
    else input_.reset();
  }
  void resize(uint16_t width, uint16_t height) override { (void)process_->resize(width, height); }  // an error is harmless
  Result<int> wait() override {
    auto code = process_->wait(stop_.get_token());
    pumps_.clear();  // joins the threads: all output was delivered, or the client is gone
    return code;
  }
  void hang_up() override { stop_.request_stop(); }  // the process is killed with the session

 protected:
  // Ends the session as hang_up() does, after what the process has written already.
  void leave() {
    has_left_ = true;
    stop_.request_stop();
  }
  bool has_left() const { return has_left_; }
  // Blocks until the process has been silent for kSilence, all its output has ended, or the session is hung up.
  void await_silence() {
    using std::chrono::steady_clock;
    auto end = steady_clock::now() + kLastWordsMax;
    for (bool spoke = true; spoke && steady_clock::now() < end;) {
      size_t before = heard_.with([](const Heard& heard) { return heard.pieces; });
      auto moves = [&](const Heard& heard) { return heard.pieces != before || heard.pumps == 0; };
      spoke = heard_.wait_until(stop_.get_token(), std::min(end, steady_clock::now() + kSilence), moves,
                                [&](const Heard& heard) { return heard.pieces != before && heard.pumps > 0; });
    }
  }

 private:
  struct Heard {
    size_t pieces = 0;  // of output, passed on
    int pumps = 0;      // that may bring more
  };
  template <typename F>
  void pass_on(const Fd& fd, const F& out) {
    files::pump(fd, out, stop_.get_token());
    if (has_left_) files::drain(fd, out);  // on a busy machine this thread may be late
  }
  bool note(bool taken) {
    heard_.with([](Heard& heard) { ++heard.pieces; });
    heard_.notify();
    return taken;
  }
  template <typename F>
  void start_pump(F&& pump) {
    heard_.with([](Heard& heard) { ++heard.pumps; });
    pumps_.push_back(start_thread("streams", [this, pump = std::forward<F>(pump)]() mutable {
      pump();
      heard_.with([](Heard& heard) { --heard.pumps; });
      heard_.notify();
    }));
  }
  std::unique_ptr<runtime::Exec> process_;
  const bool terminal_;
  Fd input_;
  std::stop_source stop_;
  std::atomic<bool> has_left_ = false;
  Guarded<Heard> heard_;
  std::vector<std::jthread> pumps_;  // last: they use the members above
};

// An attach session. It ends successfully with the container's process or with the client's input; the result of the process is
// in the pod's status. Only with stdinOnce it stays after the end of input to read the rest of the output; else it stays for what
// the process answers at once. Source: containerd's and CRI-O's attach; Kubernetes core/v1 Container.stdinOnce.
class AttachSession : public Session {
 public:
  AttachSession(std::unique_ptr<runtime::Exec> process, const json::value& container, bool stdin_wanted, ExecOutput& out)
      : Session(std::move(process), view::Container(container).tty() && stdin_wanted, stdin_wanted, out),
        stays_(view::Container(container).stdin_once() && !view::Container(container).tty()) {}
  void close_stdin() override {
    if (stays_) return Session::close_stdin();
    await_silence();
    leave();
  }
  Result<int> wait() override {
    auto code = Session::wait();
    return code || has_left() ? Result<int>(0) : code;
  }

 private:
  const bool stays_;
};

std::string names_of(view::Range<view::Container> containers) {
  std::vector<std::string> names;
  for (view::Container container : containers) names.emplace_back(container.name());
  return "[" + join(names, " ") + "]";
}

json::object progress_json(const runtime::PullProgress& progress) {
  return {{"done", progress.done.count},
          {"total", progress.total.count},
          {"layersDone", progress.layers_done},
          {"layersTotal", progress.layers_total}};
}

json::array texts(const std::vector<std::string>& list) {
  json::array array;
  for (const auto& text : list) array.push_back(json::value(text));
  return array;
}

json::object image_json(const runtime::Image& image) {
  json::object config{
      {"entrypoint", texts(image.config.entrypoint)}, {"cmd", texts(image.config.cmd)}, {"env", texts(image.config.env)},
      {"workingDir", image.config.working_dir},       {"user", image.config.user},      {"stopSignal", image.config.stop_signal}};
  return {{"id", image.id},
          {"references", texts(image.references)},
          {"digests", texts(image.digests)},
          {"sizeBytes", image.size.count},
          {"created", format_time(image.created)},
          {"platform", image.platform},
          {"otherMachine", image.other_machine},
          {"config", std::move(config)}};
}

// "registry.example:5000/team/x:1" → "registry.example:5000". Source: docker's reference grammar.
std::string registry_of(const std::string& reference) {
  std::string first = reference.substr(0, reference.find('/'));
  bool is_host = first.size() < reference.size() && (first.find_first_of(".:") != first.npos || first == "localhost");
  return is_host ? first : "docker.io";
}

// The error for a container without a log: it is waiting, or its log was removed.
Error no_log(const json::value& shown, const std::string& container, const std::string& pod, bool previous) {
  view::ContainerStatus status(status_of(shown, container));
  if (previous)
    return bad_request("previous terminated container " + coracle::quoted(container) + " in pod " + coracle::quoted(pod) +
                       " not found");
  std::string reason(status ? status.state().waiting().reason() : "ContainerCreating");
  const char* why = reason.find("Image") != reason.npos ? "trying and failing to pull image" : nullptr;
  std::string text = "container " + coracle::quoted(container) + " in pod " + coracle::quoted(pod) + " is waiting to start: ";
  return bad_request(text + (why ? why : reason.empty() ? "ContainerCreating" : reason));
}

}  // namespace

Result<Agent::StreamTarget> Agent::stream_target(const Key& key) const {
  ObjectPtr shown = seams_.pods.get(key);
  if (!shown) return not_found(kPod, key.name);
  std::string mirror(shown->annotation(kMirrorAnnotation));
  if (mirror.empty()) return StreamTarget{shown, shown, shown->uid()};
  auto pod = table_.get(mirror);
  return StreamTarget{pod && pod->object ? pod->object : shown, shown, mirror};
}

Result<std::string> Agent::stream_container(const StreamTarget& target, const std::string& wanted) const {
  const json::value& pod = target.shown->json();
  if (!wanted.empty()) {
    if (!find_container(pod, wanted)) return bad_request("container " + wanted + " is not valid for pod " + target.shown->name());
    return wanted;
  }
  view::PodSpec spec = view::Pod(pod).spec();
  if (spec.containers().size() == 1) return std::string(spec.containers()[0].name());
  std::string text =
      "a container name must be specified for pod " + target.shown->name() + ", choose one of: " + names_of(spec.containers());
  if (!spec.init_containers().empty()) text += " or one of the init containers: " + names_of(spec.init_containers());
  return bad_request(text);
}

Result<void> Agent::logs(const LogRequest& request, const std::function<bool(std::string_view)>& out) {
  StreamTarget target = TRY(stream_target(request.pod));
  std::string container = TRY(stream_container(target, request.container));
  PodPaths paths = TRY(paths_of(config_, target.pod->key(), target.uid));
  auto newest = [&]() -> std::pair<int, bool> {  // attempt, running
    std::pair<int, bool> found{-1, false};
    auto sandbox = seams_.runtime.sandbox(target.uid);
    if (sandbox)
      for (const auto& state : sandbox->containers)
        if (ContainerMark mark = ContainerMark::from_text(state.metadata); mark.name == container && mark.attempt >= found.first)
          found = {mark.attempt, state.running && sandbox->alive};
    view::ContainerStatus status(status_of(target.shown->json(), container));
    if (!status.container_id().empty()) found.first = std::max(found.first, int(status.restart_count()));
    return found;
  };
  auto [attempt, running] = newest();
  if (request.previous) --attempt;
  std::string path = paths.log(container, attempt);
  LogOptions options{request.timestamps, request.tail_lines, request.limit_bytes, request.since, request.stream};
  if (attempt < 0) return no_log(target.shown->json(), container, request.pod.name, request.previous);
  if (!request.follow || request.previous || !running) {
    auto read = read_log(path, options, out);
    if (!read && read.error().code() == Code::not_found)
      return no_log(target.shown->json(), container, request.pod.name, request.previous);
    return read;
  }
  auto watch = TRY(files::DirectoryWatch::open(paths.logs + "/" + container).wrap("follow the log"));
  auto place = followers_.with([&](Followers& followers) { return followers.by_uid.emplace(target.uid, &watch); });
  Scope leave([&] { followers_.with([&](Followers& followers) { followers.by_uid.erase(place); }); });
  auto still = [&, attempt = attempt] {
    auto [now, runs] = newest();
    return runs && now == attempt;
  };
  return follow_log(path, options, out, watch, still, stop_.get_token());
}

Result<std::unique_ptr<ExecSession>> Agent::exec(const ExecRequest& request, ExecOutput& out) {
  StreamTarget target = TRY(stream_target(request.pod));
  std::string container = TRY(stream_container(target, request.container));
  auto sandbox = seams_.runtime.sandbox(target.uid);
  std::string id;
  if (sandbox && sandbox->alive)
    for (const auto& state : sandbox->containers)
      if (state.running && ContainerMark::from_text(state.metadata).name == container) id = state.id;
  if (id.empty()) {
    auto phase = view::Pod(*target.shown).status().phase();
    if (is_terminal_phase(phase))
      return bad_request("cannot exec into a container in a completed pod; current phase is " + std::string(phase));
    return Error(Code::internal, "unable to upgrade connection: container not found (" + coracle::quoted(container) + ")");
  }
  if (request.command.empty()) {
    std::unique_ptr<runtime::Exec> process = TRY(seams_.runtime.attach(target.uid, id, request.use_stdin));
    auto ref = find_container(target.pod->json(), container);
    return std::unique_ptr<ExecSession>(
        std::make_unique<AttachSession>(std::move(process), ref ? *ref->spec : json::value(), request.use_stdin, out));
  }
  runtime::ExecSpec spec{.args = request.command, .terminal = request.tty, .use_stdin = request.use_stdin};
  std::unique_ptr<runtime::Exec> process = TRY(seams_.runtime.exec(target.uid, id, spec));
  return std::unique_ptr<ExecSession>(std::make_unique<Session>(std::move(process), request.tty, request.use_stdin, out));
}

Result<Fd> Agent::connect(const Key& pod, uint16_t port, std::stop_token stop) {
  StreamTarget target = TRY(stream_target(pod));
  auto sandbox = seams_.runtime.sandbox(target.uid);
  if (!sandbox || !sandbox->alive)
    return Error(Code::unavailable, "pod not found (" + coracle::quoted(pod.name + "_" + pod.ns) + "): it does not run");
  Fd network = TRY(seams_.runtime.network_namespace(target.uid));
  return connect_loopback(network, port, {std::chrono::steady_clock::now() + kConnectTimeout, stop});
}

// ---- images ----

json::value Agent::list() {
  json::array images;
  for (const auto& image : seams_.runtime.images().list()) images.push_back(image_json(image));
  return images;
}

Result<json::value> Agent::pull(const std::string& reference, const std::string& user, const std::string& password,
                                const std::function<void(const json::value&)>& progress) {
  auto tell = [&](const runtime::PullProgress& now) {
    if (progress) progress(progress_json(now));
  };
  std::vector<runtime::Credentials> credentials;
  if (!user.empty())
    credentials.push_back({.registry = registry_of(reference), .username = user, .password = password, .source = kByHand});
  runtime::Image image = TRY(seams_.runtime.images().pull(reference, credentials, tell, stop_.get_token()));
  images_changed();
  return json::value(image_json(image));
}

Result<json::value> Agent::import(const Fd& archive, const std::string& name) {
  auto images = TRY(seams_.runtime.images().import(archive, name));
  json::array list;
  for (const auto& image : images) list.push_back(image_json(image));
  images_changed();
  return json::value(std::move(list));
}

Result<json::value> Agent::remove(const std::string& reference) {
  runtime::Removal removal = TRY(seams_.runtime.images().remove(reference));
  node_object_.touch();
  return json::value(
      json::object{{"image", image_json(removal.image)}, {"deleted", removal.deleted}, {"users", texts(removal.users)}});
}

Result<json::value> Agent::tag(const std::string& reference, const std::string& name) {
  runtime::Image image = TRY(seams_.runtime.images().tag(reference, name));
  images_changed();
  return json::value(image_json(image));
}

Result<void> Agent::write_archive(const std::vector<std::string>& references, const Fd& archive) {
  return seams_.runtime.images().write_archive(references, archive);
}

Result<json::value> Agent::prune(bool all) {
  auto removed = TRY(seams_.runtime.images().prune(all));
  json::array list;
  for (const auto& image : removed) list.push_back(image_json(image));
  node_object_.touch();
  return json::value(std::move(list));
}

// ---- volumes ----

Result<void> Agent::export_volume(const Key& claim, bool while_in_use, const Fd& archive) {
  if (!archives_) return Error(Code::unsupported, "this node has no volumes of claims");
  return archives_->write(claim, while_in_use, archive, stop_.get_token());
}

Result<json::value> Agent::import_volume(const Key& claim, bool replace, const Fd& archive) {
  if (!archives_) return Error(Code::unsupported, "this node has no volumes of claims");
  runtime::TreeCount count = TRY(archives_->read(claim, replace, archive, stop_.get_token()));
  return json::value(json::object{{"entries", count.entries}, {"bytes", count.bytes.count}});
}

}  // namespace coracle::node
