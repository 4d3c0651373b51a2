// SPDX-License-Identifier: Apache-2.0
// GET /pods/x/log: a container's log, once or followed, over HTTP, or as WebSocket messages with one line each.
//   node (PodStreams::logs) ──bytes──▶ chunks or messages ──▶ client
// Source: Kubernetes API reference, "read log of the specified Pod".
#include <functional>
#include <optional>

#include "daemon/api/handlers.h"
#include "daemon/api/options.h"
#include "daemon/api/pods.h"
#include "daemon/api/websocket.h"
#include "runtime/base/text.h"
#include "store/object/object.h"
#include "store/object/status.h"
#include "store/schema/views.h"

namespace coracle::api {
namespace {

constexpr size_t kTogetherMax = 16 << 10;  // bytes of lines that are sent together

Error invalid_log(std::string field, std::string_view value, std::string_view why) {
  return invalid({"", "v1", "PodLogOptions", {}}, "", {invalid_value(std::move(field), value, why)});
}

Result<std::optional<int64_t>> number(const Query& query, std::string_view name, int64_t least) {
  std::string_view text = query.get(name);
  if (text.empty()) return std::nullopt;
  auto value = parse_number<int64_t>(text);
  if (!value) return bad_request(unparsable("ParseInt", text, false));
  if (*value < least) return invalid_log(std::string(name), text, "must be greater than or equal to " + std::to_string(least));
  return value;
}

// Source: Kubernetes validation, PodLogOptions.stream
Result<std::string> read_stream(const Query& query) {
  std::string_view asked = query.get("stream");
  if (asked.empty() || asked == "All") return std::string();
  bool known = asked == "Stdout" || asked == "Stderr";
  std::vector<Cause> causes;
  if (!known) causes.push_back(not_supported("stream", quoted(asked), {"All", "Stderr", "Stdout"}));
  if (known && !query.get("tailLines").empty())
    causes.push_back(forbidden_field("tailLines", "`tailLines` and specific `stream` are mutually exclusive for now"));
  if (!causes.empty()) return invalid({"", "v1", "PodLogOptions", {}}, "", std::move(causes));
  return to_lower(asked);
}

Result<LogRequest> read_log_request(Call& call, const Object& pod) {
  const Query& query = call.query();
  LogRequest request;
  request.pod = call.key();
  request.container = TRY(choose_container(pod, query.get("container")));
  request.follow = query.flag("follow"), request.previous = query.flag("previous"), request.timestamps = query.flag("timestamps");
  request.stream = TRY(read_stream(query));
  request.tail_lines = TRY(number(query, "tailLines", 0));
  request.limit_bytes = TRY(number(query, "limitBytes", 1));
  auto since_seconds = TRY(number(query, "sinceSeconds", 1));
  if (since_seconds) request.since = call.context.clock.now() - bounded_seconds(*since_seconds);
  if (std::string_view time = query.get("sinceTime"); !time.empty()) {
    if (since_seconds)
      return invalid_log("sinceSeconds", std::to_string(*since_seconds),
                         "at most one of `sinceTime` or `sinceSeconds` may be specified");
    auto since = parse_time(time);
    if (!since) return bad_request(since.error().text());
    request.since = *since;
  }
  if (request.follow && request.previous) return bad_request("only one of follow or previous may be specified");
  return request;
}

class LogOutput {  // opened by the first byte, so that an earlier error gets a proper status
 public:
  explicit LogOutput(Call& call) : call_(call), left_(call.exchange.notice_peer()) {}

  // Writes a line. "" means that there is nothing more for now, and flushes; until then, lines are collected.
  bool write(std::string_view line) {
    if (left_.stop_requested() && !still_there()) return false;
    if (!open()) return false;
    if (!socket_) waiting_ += line;
    else if (!line.empty()) waiting_ += encode_frame(kBinary, line);
    return (!line.empty() && waiting_.size() < kTogetherMax) || flush();
  }
  void end() {
    if (!open() || !flush()) return;
    if (socket_) socket_->close();
    else chunks_->end();
  }

 private:
  bool flush() {
    std::string bytes = std::exchange(waiting_, {});
    if (socket_) return bytes.empty() || socket_->send_encoded(bytes);
    return (bytes.empty() || chunks_->write(bytes)) && chunks_->flush();
  }
  bool open() {
    if (socket_ || chunks_) return true;
    if (asks_for_websocket(call_.head())) {
      auto accepted = WebSocket::accept(call_.exchange, {"", "binary.k8s.io"});
      if (accepted) socket_.emplace(*std::move(accepted));
      return accepted.ok();
    }
    chunks_.emplace(call_.exchange, "text/plain", common_headers(call_));
    return true;
  }
  bool still_there() {
    Connection& connection = call_.exchange.connection;
    if (connection.peer_gone() || (connection.has_buffered_input() && !socket_)) return false;
    left_ = call_.exchange.notice_peer();
    return true;
  }

  Call& call_;
  std::stop_token left_;
  std::optional<WebSocket> socket_;
  std::optional<ChunkedAnswer> chunks_;
  std::string waiting_;
};

Result<void> send_log(Call& call) {
  ObjectPtr pod = TRY(call.context.registry.get(kPod, call.key()));
  LogRequest request = TRY(read_log_request(call, *pod));
  LogOutput output(call);
  bool is_anywhere = !view::Pod(*pod).spec().node_name().empty();
  // As in Kubernetes: a client that reads the logs of several pods gets those of the others.
  if (!is_anywhere) return output.end(), Result<void>();
  TRY(call.context.streams.logs(request, [&](std::string_view bytes) { return output.write(bytes); }));
  output.end();
  return {};
}

}  // namespace

Result<std::string> choose_container(const Object& pod, std::string_view asked) {
  std::vector<std::string> choices;
  view::PodSpec spec = view::Pod(pod).spec();
  for (view::Container container : spec.containers()) choices.emplace_back(container.name());
  std::vector<std::string> all = choices;
  for (view::Container container : spec.init_containers()) all.emplace_back(container.name());
  for (view::EphemeralContainer container : spec.ephemeral_containers()) all.emplace_back(container.name());
  if (!asked.empty()) {
    for (const auto& name : all)
      if (name == asked) return name;
    return bad_request("container " + std::string(asked) + " is not valid for pod " + pod.name());
  }
  if (choices.size() == 1) return choices.front();
  return bad_request("a container name must be specified for pod " + pod.name() + ", choose one of: [" + join(choices, " ") +
                     "]");
}

void serve_log(Call& call) { answer_with(call, send_log(call)); }

}  // namespace coracle::api
