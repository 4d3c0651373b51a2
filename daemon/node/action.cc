// SPDX-License-Identifier: Apache-2.0
// See action.h.
#include "daemon/node/action.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "daemon/node/files.h"
#include "daemon/node/probe/connection.h"
#include "daemon/node/probe/grpc_health.h"
#include "daemon/node/probe/http_get.h"
#include "runtime/base/text.h"
#include "runtime/base/thread.h"

namespace coracle::node {

namespace {

constexpr size_t kOutputMax = 10 << 10;  // bytes of a command's output or of a response in events
constexpr int kRedirectsMax = 10;
constexpr const char* kUserAgent = "kube-probe/1.36";

CallContext context_for(std::chrono::seconds timeout, const std::stop_token& stop) {
  return {std::chrono::steady_clock::now() + timeout, stop};
}

bool is_redirect(int status) { return (status >= 301 && status <= 303) || status == 307 || status == 308; }

std::optional<uint16_t> port_of(const json::value* named, const ActionTarget& target) {
  return named ? port_number(*named, target.container) : std::nullopt;
}

ActionResult http_probe(view::HTTPGetAction action, const ActionTarget& target, const AddressLookup& lookup,
                        std::chrono::seconds timeout, std::stop_token stop) {
  auto port = port_of(action.port(), target);
  if (!port) return {false, "the container has no such port"};
  Url url{to_lower(action.scheme()) == "https", std::string(action.host()), *port, encoded_path(action.path())};
  if (url.host.empty()) url.host = target.address;
  HttpHeaders headers;
  bool own_agent = false, own_accept = false;
  for (view::HTTPHeader header : action.http_headers()) {
    headers.emplace_back(header.name(), header.value());
    own_agent |= to_lower(headers.back().first) == "user-agent";
    own_accept |= to_lower(headers.back().first) == "accept";
  }
  if (!own_agent) headers.emplace_back("User-Agent", kUserAgent);
  if (!own_accept) headers.emplace_back("Accept", "*/*");
  const CallContext context = context_for(timeout, stop);
  for (int redirects = 0; redirects <= kRedirectsMax; ++redirects) {
    auto reply = http_get(url, headers, lookup, context);
    if (!reply) return {false, "Get \"" + url.text() + "\": " + reply.error().text()};
    const ActionResult odd{true, "Probe terminated redirects, Response body: " + as_utf8(reply->body)};
    if (reply->status < 200 || reply->status >= 400)
      return {false, "HTTP probe failed with statuscode: " + std::to_string(reply->status)};
    if (reply->status < 300) return {true, ""};
    if (!is_redirect(reply->status) || reply->location.empty()) return odd;
    auto next = resolve(url, reply->location);
    if (!next) return {false, "Get \"" + url.text() + "\": malformed Location " + coracle::quoted(reply->location)};
    // A redirect to another host is not followed: its response would not be about this container.
    if (next->host != url.host) return odd;
    url = *std::move(next);
  }
  return {false, "stopped after " + std::to_string(kRedirectsMax) + " redirects"};
}

ActionResult tcp_connect(view::TCPSocketAction action, const ActionTarget& target, const AddressLookup& lookup,
                         std::chrono::seconds timeout, std::stop_token stop) {
  auto port = port_of(action.port(), target);
  if (!port) return {false, "the container has no such port"};
  std::string host(action.host());
  if (host.empty()) host = target.address;
  auto connection = Connection::open(host, *port, lookup, context_for(timeout, stop));
  if (connection) return {true, ""};
  return {false, connection.error().text()};
}

ActionResult grpc_check(view::GRPCAction action, const ActionTarget& target, const AddressLookup& lookup,
                        std::chrono::seconds timeout, std::stop_token stop) {
  uint16_t port = uint16_t(action.port());
  auto serving = is_serving(target.address, port, action.service(), lookup, context_for(timeout, stop));
  if (!serving) return {false, serving.error().text()};
  return {*serving, *serving ? "" : "service unhealthy (responded with something other than \"SERVING\")"};
}

// Like the kubelet, this reports success if the grace period ends first.
ActionResult sleep_action(view::SleepAction action, std::chrono::seconds timeout, std::stop_token stop) {
  const auto wanted = bounded_seconds(std::max<int64_t>(action.seconds(), 0));
  std::mutex mutex;
  std::condition_variable_any woken;
  std::unique_lock lock(mutex);
  woken.wait_for(lock, stop, std::min<std::chrono::seconds>(wanted, timeout), [] { return false; });
  return {true, ""};
}

// Requests a stop after the timeout, unless it is destroyed before.
class Timeout {
 public:
  Timeout(std::chrono::seconds span, std::stop_token outer)
      : thread_(start_thread("exec-timer", [this, span, outer](std::stop_token done) {
          std::mutex mutex;
          std::condition_variable_any woken;
          std::unique_lock lock(mutex);
          std::stop_callback on_outer(outer, [this] { source_.request_stop(); });
          woken.wait_for(lock, done, span, [] { return false; });
          if (!done.stop_requested()) over_ = true, source_.request_stop();
        })) {}
  std::stop_token token() const { return source_.get_token(); }
  bool over() const { return over_; }

 private:
  std::stop_source source_;
  std::atomic<bool> over_{false};
  std::jthread thread_;
};

}  // namespace

std::optional<uint16_t> port_number(const json::value& port, const json::value* container) {
  if (port.is_int64())
    return port.get_int64() > 0 && port.get_int64() <= 65535 ? std::optional(uint16_t(port.get_int64())) : std::nullopt;
  if (!port.is_string()) return std::nullopt;
  std::string_view name = port.get_string();
  if (auto number = parse_number<uint16_t>(name)) return number;
  if (container)
    for (view::ContainerPort candidate : view::Container(*container).ports())
      if (candidate.name() == name) return uint16_t(candidate.container_port());
  return std::nullopt;
}

ActionResult Actions::run(const json::value& handler, const ActionTarget& target, std::chrono::seconds timeout,
                          std::stop_token stop) const {
  const AddressLookup lookup = [&](const std::string& host, uint16_t port, const CallContext& context) {
    return resolver_->find(target.sandbox_id, host, port, context);
  };
  view::Probe probe(handler);
  view::LifecycleHandler hook(handler);
  if (probe.has_exec()) return exec(probe.exec(), target, timeout, stop);
  if (probe.has_http_get()) return http_probe(probe.http_get(), target, lookup, timeout, stop);
  if (probe.has_tcp_socket()) return tcp_connect(probe.tcp_socket(), target, lookup, timeout, stop);
  if (probe.has_grpc()) return grpc_check(probe.grpc(), target, lookup, timeout, stop);
  if (hook.has_sleep()) return sleep_action(hook.sleep(), timeout, stop);
  return {false, "missing probe handler"};
}

ActionResult Actions::exec(view::ExecAction command, const ActionTarget& target, std::chrono::seconds timeout,
                           std::stop_token stop) const {
  runtime::ExecSpec spec;
  for (std::string_view word : command.command()) spec.args.emplace_back(word);
  auto started = runtime_.exec(target.sandbox_id, target.container_id, spec);
  if (!started) return {false, started.error().text()};
  std::unique_ptr<runtime::Exec> process = *std::move(started);
  Fd out = process->take_stdout(), err = process->take_stderr();
  Timeout timer(timeout, stop);
  std::string output;
  auto keep = [&](std::string_view bytes) {
    output.append(bytes.substr(0, kOutputMax - std::min(kOutputMax, output.size())));
    return true;
  };
  files::pump_both(out, err, keep, timer.token());
  auto code = process->wait(timer.token());
  std::string command_text = join(spec.args, " ");
  if (!code && timer.over())
    return {false,
            "command timed out: " + coracle::quoted(command_text) + " timed out after " + std::to_string(timeout.count()) + "s"};
  if (!code) return {false, code.error().text()};
  if (*code == 0) return {true, ""};
  return {false, output.empty() ? "command " + coracle::quoted(command_text) + " exited with " + std::to_string(*code)
                                : as_utf8(output)};
}

}  // namespace coracle::node
