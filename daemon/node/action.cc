// SPDX-License-Identifier: Apache-2.0
// One try of a probe or hook: see action.h. libcurl speaks HTTP, TLS and TCP.
#include "daemon/node/action.h"

#include <curl/curl.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "daemon/node/files.h"
#include "runtime/base/text.h"

namespace coracle::node {

namespace {

constexpr size_t kOutputMax = 10 << 10;  // of a command or an answer, as events show it
constexpr int kRedirectsMax = 10;
constexpr const char* kUserAgent = "kube-probe/1.36";

struct CloseCurl {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
};
using Curl = std::unique_ptr<CURL, CloseCurl>;

struct Answer {
  std::string body, grpc_status;
  std::stop_token stop;
};

size_t take_body(char* bytes, size_t, size_t count, void* to) {
  auto& answer = *static_cast<Answer*>(to);
  answer.body.append(bytes, std::min(count, kOutputMax - std::min(kOutputMax, answer.body.size())));
  return count;
}

size_t take_header(char* bytes, size_t, size_t count, void* to) {
  std::string_view line(bytes, count);
  constexpr std::string_view kName = "grpc-status:";
  if (to_lower(line.substr(0, kName.size())) == kName) static_cast<Answer*>(to)->grpc_status = trim(line.substr(kName.size()));
  return count;
}

int stop_asked(void* answer, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Answer*>(answer)->stop.stop_requested() ? 1 : 0;
}

// A request to a pod: straight to its address, whoever its certificate names, and no further than its own host.
Curl make_request(Answer& answer, std::chrono::seconds timeout) {
  Curl curl(curl_easy_init());
  CURL* c = curl.get();
  curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(c, CURLOPT_PROXY, "");
  curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, long(std::chrono::milliseconds(timeout).count()));
  curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 0L);
  curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 0L);
  curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(c, CURLOPT_WRITEDATA, &answer);
  curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(c, CURLOPT_HEADERDATA, &answer);
  curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, stop_asked);
  curl_easy_setopt(c, CURLOPT_XFERINFODATA, &answer);
  return curl;
}

struct Headers {
  curl_slist* list = nullptr;
  Headers() = default;
  Headers(const Headers&) = delete;
  Headers& operator=(const Headers&) = delete;
  ~Headers() { curl_slist_free_all(list); }
  void add(const std::string& line) { list = curl_slist_append(list, line.c_str()); }
};

std::string bracketed(const std::string& host) { return host.find(':') != host.npos && host.front() != '[' ? "[" + host + "]" : host; }

std::string url_part(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  std::string got;
  if (curl_url_get(url, part, &text, CURLU_DEFAULT_PORT) == CURLUE_OK && text) got = text;
  curl_free(text);
  return got;
}

std::string host_of(const std::string& url) {
  std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> parsed(curl_url(), curl_url_cleanup);
  if (curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) return "";
  return url_part(parsed.get(), CURLUPART_HOST);
}

ActionResult http_get(const json::value& action, const ActionTarget& target, std::chrono::seconds timeout, std::stop_token stop) {
  static const json::value nothing;
  const json::value* named = find(action, "port");
  auto port = port_number(named ? *named : nothing, target.container);
  if (!port) return {false, "the container has no such port"};
  std::string host(get_string(action, "host")), scheme = to_lower(get_string(action, "scheme")), path(get_string(action, "path"));
  if (host.empty()) host = target.address;
  if (path.empty() || path.front() != '/') path = "/" + path;
  std::string url = (scheme == "https" ? "https://" : "http://") + bracketed(host) + ":" + std::to_string(*port) + path;
  Answer answer{.stop = stop};
  Curl curl = make_request(answer, timeout);
  Headers headers;
  bool own_agent = false, own_accept = false;
  for (const auto& header : get_array(action, "httpHeaders")) {
    std::string name(get_string(header, "name")), value(get_string(header, "value"));
    own_agent |= to_lower(name) == "user-agent";
    own_accept |= to_lower(name) == "accept";
    headers.add(value.empty() ? name + ";" : name + ": " + value);
  }
  if (!own_agent) headers.add(std::string("User-Agent: ") + kUserAgent);
  if (!own_accept) headers.add("Accept: */*");
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.list);
  for (int redirects = 0; redirects <= kRedirectsMax; ++redirects) {
    answer.body.clear();
    curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
    CURLcode code = curl_easy_perform(curl.get());
    if (code != CURLE_OK) return {false, "Get \"" + url + "\": " + curl_easy_strerror(code)};
    long status = 0;
    const char* next = nullptr;
    curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(curl.get(), CURLINFO_REDIRECT_URL, &next);
    if (status < 200 || status >= 400) return {false, "HTTP probe failed with statuscode: " + std::to_string(status)};
    // Another host's answer says nothing about this container, and is not asked for.
    if (!next || host_of(next) != host_of(url)) return {true, ""};
    url = next;
  }
  return {false, "stopped after " + std::to_string(kRedirectsMax) + " redirects"};
}

ActionResult tcp_connect(const json::value& action, const ActionTarget& target, std::chrono::seconds timeout, std::stop_token stop) {
  static const json::value nothing;
  const json::value* named = find(action, "port");
  auto port = port_number(named ? *named : nothing, target.container);
  if (!port) return {false, "the container has no such port"};
  std::string host(get_string(action, "host"));
  if (host.empty()) host = target.address;
  Answer answer{.stop = stop};
  Curl curl = make_request(answer, timeout);
  std::string url = "http://" + bracketed(host) + ":" + std::to_string(*port);
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_CONNECT_ONLY, 1L);
  CURLcode code = curl_easy_perform(curl.get());
  if (code == CURLE_OK) return {true, ""};
  return {false, "dial tcp " + bracketed(host) + ":" + std::to_string(*port) + ": " + curl_easy_strerror(code)};
}

// grpc.health.v1.Health/Check over HTTP/2 without TLS: a message of one string field, an answer of one enum field.
ActionResult grpc_check(const json::value& action, const ActionTarget& target, std::chrono::seconds timeout, std::stop_token stop) {
  std::string service(get_string(action, "service").substr(0, 127)), message;
  if (!service.empty()) message = std::string("\x0a", 1) + char(service.size()) + service;
  std::string frame = std::string(4, '\0') + '\0' + message;
  frame[4] = char(message.size());  // one byte of flags, four of length
  Answer answer{.stop = stop};
  Curl curl = make_request(answer, timeout);
  Headers headers;
  headers.add("Content-Type: application/grpc");
  headers.add("TE: trailers");
  headers.add(std::string("User-Agent: ") + kUserAgent);
  std::string url = "http://" + bracketed(target.address) + ":" + std::to_string(get_int(action, "port")) + "/grpc.health.v1.Health/Check";
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_HTTP_VERSION, long(CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE));
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.list);
  curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, frame.data());
  curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE, long(frame.size()));
  CURLcode code = curl_easy_perform(curl.get());
  if (code != CURLE_OK) return {false, std::string("timeout or failure to connect service \"") + url + "\": " + curl_easy_strerror(code)};
  if (!answer.grpc_status.empty() && answer.grpc_status != "0") return {false, "error: this server does not implement the grpc health protocol, or failed: grpc-status " + answer.grpc_status};
  constexpr size_t kFrameHead = 5;
  constexpr char kServing = 1, kStatusTag = 0x08;
  bool serving = answer.body.size() == kFrameHead + 2 && answer.body[kFrameHead] == kStatusTag && answer.body[kFrameHead + 1] == kServing;
  return {serving, serving ? "" : "service unhealthy (responded with something other than \"SERVING\")"};
}

ActionResult sleep_action(const json::value& action, std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any woken;
  std::unique_lock lock(mutex);
  woken.wait_for(lock, stop, std::chrono::seconds(std::max<int64_t>(get_int(action, "seconds"), 0)), [] { return false; });
  return {true, ""};
}

// Asks for a stop when its time is over, unless it is destroyed before.
class Timeout {
 public:
  Timeout(std::chrono::seconds span, std::stop_token outer)
      : thread_([this, span, outer](std::stop_token done) {
          std::mutex mutex;
          std::condition_variable_any woken;
          std::unique_lock lock(mutex);
          std::stop_callback on_outer(outer, [this] { source_.request_stop(); });
          woken.wait_for(lock, done, span, [] { return false; });
          if (!done.stop_requested()) over_ = true, source_.request_stop();
        }) {}
  std::stop_token token() const { return source_.get_token(); }
  bool over() const { return over_; }

 private:
  std::stop_source source_;
  std::atomic<bool> over_{false};
  std::jthread thread_;
};

}  // namespace

std::optional<uint16_t> port_number(const json::value& port, const json::value* container) {
  if (port.is_int64()) return port.get_int64() > 0 && port.get_int64() <= 65535 ? std::optional(uint16_t(port.get_int64())) : std::nullopt;
  if (!port.is_string()) return std::nullopt;
  std::string_view name = port.get_string();
  if (auto number = parse_number<uint16_t>(name)) return number;
  if (container)
    for (const auto& candidate : get_array(*container, "ports"))
      if (get_string(candidate, "name") == name) return uint16_t(get_int(candidate, "containerPort"));
  return std::nullopt;
}

ActionResult Actions::run(const json::value& handler, const ActionTarget& target, std::chrono::seconds timeout, std::stop_token stop) const {
  if (const auto* command = find(handler, "exec")) return exec(*command, target, timeout, stop);
  if (const auto* action = find(handler, "httpGet")) return http_get(*action, target, timeout, stop);
  if (const auto* action = find(handler, "tcpSocket")) return tcp_connect(*action, target, timeout, stop);
  if (const auto* action = find(handler, "grpc")) return grpc_check(*action, target, timeout, stop);
  if (const auto* action = find(handler, "sleep")) return sleep_action(*action, stop);
  return {false, "missing probe handler"};
}

ActionResult Actions::exec(const json::value& command, const ActionTarget& target, std::chrono::seconds timeout, std::stop_token stop) const {
  runtime::ExecSpec spec;
  for (const auto& word : get_array(command, "command"))
    if (word.is_string()) spec.args.emplace_back(word.get_string());
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
  if (!code && timer.over()) return {false, "command timed out: " + coracle::quoted(command_text) + " timed out after " + std::to_string(timeout.count()) + "s"};
  if (!code) return {false, code.error().text()};
  if (*code == 0) return {true, ""};
  return {false, output.empty() ? "command " + coracle::quoted(command_text) + " exited with " + std::to_string(*code) : output};
}

}  // namespace coracle::node
