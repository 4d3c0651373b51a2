// SPDX-License-Identifier: Apache-2.0
// Exec and attach over SPDY: the client opens one stream for each of error, stdin, stdout, stderr and resize that it has
// requested, identified by the header "streamtype". When all streams are open, the process starts.
//   SpdySession (the request's thread) ──streams──▶ conductor (a thread) ──▶ ExecRun
// Source: kubelet's remotecommand (httpstream.go): the streams of each version, and how it ends.
#include <map>
#include <optional>
#include <set>

#include "daemon/api/exec.h"
#include "daemon/api/exec_run.h"
#include "daemon/api/spdy_session.h"
#include "daemon/api/upgrade.h"
#include "runtime/base/thread.h"

namespace coracle::api {
namespace {

constexpr size_t kSizeTextMax = 4 << 10;

std::set<std::string, std::less<>> wanted_streams(int version, const ExecRequest& request) {
  std::set<std::string, std::less<>> names{"error"};
  if (request.use_stdin) names.insert("stdin");
  if (request.use_stdout) names.insert("stdout");
  if (request.use_stderr) names.insert("stderr");
  if (request.tty && version >= 3) names.insert("resize");
  return names;
}

class Streams {  // the requested streams that are open
 public:
  explicit Streams(std::set<std::string, std::less<>> wanted) : wanted_(std::move(wanted)) {}

  bool lacks(std::string_view name) const {
    return wanted_.contains(name) && state_.with([&](const State& state) { return !state.open.contains(std::string(name)); });
  }
  void add(const SpdyStreamPtr& stream) {
    state_.with([&](State& state) { state.open.emplace(stream->header("streamtype"), stream); });
    state_.notify();
  }
  void leave() {  // the client has disconnected
    state_.with([](State& state) { state.left = true; });
    state_.notify();
  }
  bool wait_for_all() {
    auto done = [&](const State& state) { return state.left || state.open.size() == wanted_.size(); };
    return state_.wait_until({}, std::chrono::steady_clock::now() + kStreamCreation, done,
                             [&](const State& state) { return !state.left && state.open.size() == wanted_.size(); });
  }
  void wait_until_left() {
    state_.wait(
        {}, [](const State& state) { return state.left; }, [](const State&) {});
  }
  SpdyStreamPtr find(const std::string& name) const {
    return state_.with([&](const State& state) {
      auto found = state.open.find(name);
      return found == state.open.end() ? nullptr : found->second;
    });
  }

 private:
  struct State {
    std::map<std::string, SpdyStreamPtr> open;
    bool left = false;
  };
  const std::set<std::string, std::less<>> wanted_;
  Guarded<State> state_;
};

class SpdyOutput : public ExecOutput {
 public:
  explicit SpdyOutput(const Streams& streams)
      : stdout_(streams.find("stdout")), stderr_(streams.find("stderr")), error_(streams.find("error")) {}
  bool write_stdout(std::string_view bytes) override { return !stdout_ || stdout_->write(bytes); }
  bool write_stderr(std::string_view bytes) override { return !stderr_ || stderr_->write(bytes); }
  void ended(const std::string& how) {
    for (const SpdyStreamPtr& stream : {stdout_, stderr_})
      if (stream) stream->finish();
    error_->write(how);
    error_->finish();
  }

 private:
  SpdyStreamPtr stdout_, stderr_, error_;
};

// Reads terminal sizes, with or without line breaks between them.
void read_sizes(SpdyStream& stream, ExecRun& run) {
  std::string text;
  for (std::string bytes; !(bytes = stream.read()).empty();) {
    text += bytes;
    for (size_t end; (end = text.find('}')) != text.npos; text.erase(0, end + 1)) (void)apply_size(run, text.substr(0, end + 1));
    if (text.size() > kSizeTextMax) return stream.stop_reading();
  }
}

// Runs from when all streams are open until the client has disconnected.
void conduct(Call& call, SpdySession& session, Streams& streams, int version, const ExecRequest& request) {
  const Fd& socket = call.exchange.connection.socket();
  if (!streams.wait_for_all()) {
    session.go_away();
    return sys::shut_down(socket);
  }
  SpdyStreamPtr input = streams.find("stdin"), sizes = streams.find("resize");
  SpdyOutput output(streams);
  auto read = [&]() -> std::optional<std::string> {
    std::string bytes = input->read();
    if (bytes.empty() && input->cut_off()) return std::nullopt;
    return bytes;
  };
  auto read_stdin = input ? std::function<std::optional<std::string>()>(read) : nullptr;
  auto ended = [&](const Result<int>& code) {
    output.ended(exec_end_text(version, code));
    if (input) input->finish();
    session.go_away();
  };
  ExecRun run(call.context.streams, request, {output, read_stdin, ended, socket});
  std::optional<std::jthread> sizer;
  if (sizes) sizer = start_thread("streams", [&] { read_sizes(*sizes, run); });
  streams.wait_until_left();
}

}  // namespace

void run_exec(Call& call, int version, const ExecRequest& request) {
  Streams streams(wanted_streams(version, request));
  PlainLink link(call.exchange.connection);
  SpdySession session(link, {[&](const SpdyStream& stream) { return streams.lacks(stream.header("streamtype")); },
                             [&](const SpdyStreamPtr& stream) { streams.add(stream); }});
  std::jthread conductor = start_thread("streams", [&] { conduct(call, session, streams, version, request); });
  (void)session.run();  // protocol errors were reported to the client
  streams.leave();
}

}  // namespace coracle::api
