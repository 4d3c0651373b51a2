// SPDX-License-Identifier: Apache-2.0
// See http.h. Each call uses one easy handle from a small pool; certificates are passed as blobs, without temporary files.
#include "store/client/http.h"

#include <poll.h>

#include <array>
#include <cctype>

#include "runtime/base/guarded.h"
#include "runtime/base/random.h"
#include "runtime/base/text.h"
#include "store/client/curl.h"
#include "store/client/exec_credential.h"
#include "store/object/status.h"

namespace coracle {
namespace {

constexpr int kUnauthorized = 401;
constexpr size_t kIdleHandlesMax = 4;
constexpr size_t kAnswerBytesMax = 512u << 20;  // of a response in memory
constexpr size_t kErrorBytesMax = 1u << 20;     // of a failed stream's body
constexpr size_t kUpgradeHeadBytesMax = 64u << 10;
constexpr size_t kReadBytesMax = 256 << 10;  // per read of an upgraded connection
constexpr long kConnectTimeoutMs = 10'000;
constexpr int kUpgradeTimeoutMs = 30'000;
constexpr int kQuietMs = 3'600'000;  // libcurl shortens it for its own deadlines

struct Handle {
  CURL* easy;
  // Errors: unavailable.
  static Result<Handle> make() {
    TRY(load_curl());
    CURL* easy = curl_easy_init();
    if (!easy) return Error(Code::unavailable, "libcurl cannot start");
    return Handle(easy);
  }
  explicit Handle(CURL* made) : easy(made) {}
  Handle(Handle&& other) noexcept : easy(std::exchange(other.easy, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(easy, other.easy);
    return *this;
  }
  ~Handle() {
    if (easy) curl_easy_cleanup(easy);
  }
};

struct HeaderList {
  curl_slist* list = nullptr;
  HeaderList() = default;
  HeaderList(const HeaderList&) = delete;
  ~HeaderList() { curl_slist_free_all(list); }
  void add(const std::string& line) { list = curl_slist_append(list, line.c_str()); }
};

struct Exchange {  // the state for libcurl's callbacks
  CURL* easy = nullptr;
  HttpAnswer answer;
  const std::function<bool(std::string_view)>* sink = nullptr;
  const std::function<size_t(char*, size_t)>* source = nullptr;
  const std::function<void()>* begun = nullptr;
  std::stop_token stop;
  bool sink_ended = false, too_large = false;
};

size_t on_body(char* bytes, size_t size, size_t count, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  size *= count;
  long status = 0;
  curl_easy_getinfo(exchange.easy, CURLINFO_RESPONSE_CODE, &status);
  if (exchange.sink && status >= 200 && status < 300) {
    if ((*exchange.sink)(std::string_view(bytes, size))) return size;
    exchange.sink_ended = true;
    return 0;
  }
  size_t limit = exchange.sink ? kErrorBytesMax : kAnswerBytesMax;
  if (exchange.answer.body.size() + size > limit) {
    exchange.too_large = true;
    return 0;
  }
  exchange.answer.body.append(bytes, size);
  return size;
}

// Extracts the text of `299 - "text"`, with \" and \\ inside.
std::string warning_text(std::string_view value) {
  size_t open = value.find('"');
  if (open == value.npos) return std::string(value);
  std::string text;
  for (size_t i = open + 1; i < value.size() && value[i] != '"'; ++i) {
    if (value[i] == '\\' && i + 1 < value.size()) ++i;
    text += value[i];
  }
  return text;
}

size_t on_header(char* bytes, size_t size, size_t count, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  auto& answer = exchange.answer;
  std::string_view line(bytes, size * count);
  if (trim(line).empty() && exchange.begun && *exchange.begun) {  // the headers are complete
    long status = 0;
    curl_easy_getinfo(exchange.easy, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 200 && status < 300) (*exchange.begun)();
  }
  if (line.starts_with("HTTP/")) {  // "HTTP/1.1 404 Not Found"
    size_t reason = line.find(' ', std::min(line.find(' '), line.size() - 1) + 1);
    answer.reason = reason == line.npos ? std::string_view() : trim(line.substr(reason));
    return line.size();
  }
  size_t colon = line.find(':');
  if (colon == line.npos) return line.size();
  std::string name = to_lower(line.substr(0, colon));
  std::string_view value = trim(line.substr(colon + 1));
  if (name == "content-type") answer.content_type = value;
  else if (name == "retry-after") answer.retry_after_seconds = parse_number<int>(value).value_or(0);
  else if (name == "warning") answer.warnings.push_back(warning_text(value));
  return line.size();
}

size_t on_upload(char* buffer, size_t size, size_t count, void* user) {
  return (*static_cast<Exchange*>(user)->source)(buffer, size * count);
}

// curl_easy_perform that a stop request wakes; an idle stream needs no system calls.
CURLcode perform(Exchange& exchange) {
  if (!exchange.stop.stop_possible()) return curl_easy_perform(exchange.easy);
  std::unique_ptr<CURLM, CURLMcode (*)(CURLM*)> multi(curl_multi_init(), curl_multi_cleanup);
  if (!multi || curl_multi_add_handle(multi.get(), exchange.easy) != CURLM_OK) return CURLE_FAILED_INIT;
  std::stop_callback wake(exchange.stop, [&] { curl_multi_wakeup(multi.get()); });
  CURLcode outcome = CURLE_ABORTED_BY_CALLBACK;
  for (int running = 1; running && !exchange.stop.stop_requested();) {
    if (curl_multi_perform(multi.get(), &running) != CURLM_OK) outcome = CURLE_FAILED_INIT, running = 0;
    int left = 0;
    if (const CURLMsg* message = curl_multi_info_read(multi.get(), &left)) outcome = message->data.result;
    if (running) curl_multi_poll(multi.get(), nullptr, 0, kQuietMs, nullptr);
  }
  curl_multi_remove_handle(multi.get(), exchange.easy);
  return outcome;
}

curl_blob blob_of(const std::string& text) { return {const_cast<char*>(text.data()), text.size(), CURL_BLOB_NOCOPY}; }

// Without the name and the password that may stand before it: errors have it.
std::string host_and_port(const std::string& server) {
  std::string_view rest(server);
  rest.remove_prefix(rest.find("://") + 3);
  rest = rest.substr(0, rest.find('/'));
  const size_t at = rest.rfind('@');
  return std::string(at == rest.npos ? rest : rest.substr(at + 1));
}

// A server may stand below a path: "/k8s/clusters/c-1" of "https://rancher/k8s/clusters/c-1".
std::string path_prefix(const std::string& server) {
  size_t slash = server.find('/', server.find("://") + 3);
  return slash == server.npos ? std::string() : server.substr(slash);
}

bool is_header_name_byte(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || std::string_view("!#$&'*+-.^_`|~").find(c) != std::string_view::npos;
}

// The key of an Impersonate-Extra header, as Kubernetes' server decodes it.
std::string header_key(const std::string& key) {
  std::string text;
  for (char c : key) text += is_header_name_byte(c) ? std::string(1, c) : percent_encode(std::string_view(&c, 1));
  return text;
}

// Go resolves names at a SOCKS proxy, which libcurl has another scheme for.
std::string proxy_of_curl(const std::string& url) {
  constexpr std::string_view kSocks = "socks5://";
  return url.starts_with(kSocks) ? "socks5h://" + url.substr(kSocks.size()) : url;
}

}  // namespace

struct Http::State {
  explicit State(ServerAccess given) : access(std::move(given)), base(access.server) {
    bool certificate = !access.client_certificate_pem.empty() && !access.client_key_pem.empty();
    if (access.exec && access.token.empty() && access.username.empty() && !certificate) exec.emplace(*access.exec);
    else own = std::make_shared<const Credential>(Credential{access.token, {}, {}, std::nullopt});
    if (access.tls_server_name.empty()) return;
    // libcurl compares the certificate with the URL's host: use that name in the URL, with the server's address.
    std::string address = host_and_port(access.server);
    base.replace(base.find(address), address.size(), access.tls_server_name);
    bool has_port = address.find(':', address.starts_with('[') ? address.find(']') : 0) != address.npos;
    connect_to_text = "::" + address + (has_port ? "" : access.server.starts_with("https") ? ":443" : ":80");
    connect_to.data = connect_to_text.data();
  }

  const ServerAccess access;
  std::string base;  // the prefix of URLs
  std::string connect_to_text;
  curl_slist connect_to{};  // one entry or none; libcurl only reads it
  std::optional<ExecCredential> exec;
  using Who = std::shared_ptr<const Credential>;
  Who own;  // without a plugin: the token; prepare() takes the certificate from `access`
  Guarded<std::vector<Handle>> idle;

  // Who we are, for one request.
  Result<Who> who() {
    if (exec) return exec->get();
    return own;
  }

  Result<Handle> take() {
    auto kept = idle.with([](auto& handles) -> std::optional<Handle> {
      if (handles.empty()) return std::nullopt;
      Handle handle = std::move(handles.back());
      handles.pop_back();
      return handle;
    });
    if (kept) return *std::move(kept);
    return Handle::make();
  }
  void give(Handle handle) {
    idle.with([&](auto& handles) {
      if (handles.size() < kIdleHandlesMax) handles.push_back(std::move(handle));
    });
  }

  void prepare(CURL* easy, const std::string& url, const Credential& credential) {
    curl_easy_reset(easy);
    curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);  // an idle watch notices a dead server
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeoutMs);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    if (access.proxy_url.empty()) curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    else
      curl_easy_setopt(easy, CURLOPT_PROXY, proxy_of_curl(access.proxy_url).c_str()), curl_easy_setopt(easy, CURLOPT_NOPROXY, "");
    if (connect_to.data) curl_easy_setopt(easy, CURLOPT_CONNECT_TO, &connect_to);
    if (access.insecure) {
      curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
      curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (!access.ca_pem.empty()) {
      curl_blob ca = blob_of(access.ca_pem);
      curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &ca);
      curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);
    }
    // A plugin runs where the kubeconfig has no certificate.
    const std::string& certificate_pem =
        access.client_certificate_pem.empty() ? credential.client_certificate_pem : access.client_certificate_pem;
    const std::string& key_pem = access.client_certificate_pem.empty() ? credential.client_key_pem : access.client_key_pem;
    if (!certificate_pem.empty()) {
      curl_blob certificate = blob_of(certificate_pem), key = blob_of(key_pem);
      curl_easy_setopt(easy, CURLOPT_SSLCERTTYPE, "PEM");
      curl_easy_setopt(easy, CURLOPT_SSLCERT_BLOB, &certificate);
      curl_easy_setopt(easy, CURLOPT_SSLKEYTYPE, "PEM");
      curl_easy_setopt(easy, CURLOPT_SSLKEY_BLOB, &key);
    }
  }

  std::string url_of(const HttpRequest& request) const { return base + target_of(request); }
  static std::string target_of(const HttpRequest& request) {
    std::string target = request.path;
    char separator = target.find('?') == target.npos ? '?' : '&';
    for (const auto& [name, value] : request.query) {
      target.append(1, separator).append(percent_encode(name)).append("=").append(percent_encode(value));
      separator = '&';
    }
    return target;
  }
  // The headers that say who we are and whom we act as: "Authorization: Bearer …". Errors: invalid, for a value that would be
  // more than one header.
  Result<std::vector<std::string>> identity(const Credential& credential) const {
    std::vector<std::string> lines;
    if (!credential.token.empty()) lines.push_back("Authorization: Bearer " + credential.token);
    else if (!access.username.empty() || !access.password.empty())
      lines.push_back("Authorization: Basic " + base64_encode(access.username + ":" + access.password));
    const Impersonation& as = access.impersonate;
    if (!as.user.empty()) lines.push_back("Impersonate-User: " + as.user);
    if (!as.uid.empty()) lines.push_back("Impersonate-Uid: " + as.uid);
    for (const auto& group : as.groups) lines.push_back("Impersonate-Group: " + group);
    for (const auto& [key, value] : as.extra) lines.push_back("Impersonate-Extra-" + header_key(key) + ": " + value);
    for (const auto& line : lines)
      if (line.find_first_of("\r\n") != line.npos)
        return Error(Code::invalid, "the value of " + line.substr(0, line.find(':')) + " has a line break in it");
    return lines;
  }

  Error failure(CURLcode code, const char* detail) const {
    std::string text = detail && *detail ? detail : curl_easy_strerror(code);
    std::string host = host_and_port(access.server);
    switch (code) {
      case CURLE_OPERATION_TIMEDOUT: return Error(Code::timeout, "the server " + host + " did not answer in time");
      case CURLE_COULDNT_CONNECT:
        return Error(Code::unavailable,
                     "the connection to the server " + host + " was refused - is coracled running? (systemctl status coracled)");
      case CURLE_COULDNT_RESOLVE_HOST: return Error(Code::unavailable, "the server's name " + host + " cannot be resolved");
      case CURLE_PEER_FAILED_VERIFICATION:
        return Error(Code::unavailable, "the server " + host + " is not the one the kubeconfig trusts: " + text);
      case CURLE_SSL_CERTPROBLEM: return Error(Code::invalid, "the kubeconfig's client certificate cannot be used: " + text);
      default: return Error(Code::unavailable, "request to " + host + " failed: " + text);
    }
  }

  // A credential of a plugin's that the server refuses may have been revoked: the request, of which nothing was done, is sent
  // once more with a new one.
  Result<HttpAnswer> run(const HttpRequest& request, const Exchange& exchange) {
    Who who = TRY(this->who());
    auto answer = run_as(*who, request, exchange);
    if (!exec || !answer || answer->status != kUnauthorized) return answer;
    exec->reject(who);
    Who fresh = TRY(this->who());
    bool another_certificate = fresh->client_certificate_pem != who->client_certificate_pem;
    if (another_certificate) idle.with([](auto& handles) { handles.clear(); });  // connections are as the old one
    if (exchange.source || (!another_certificate && fresh->token == who->token)) return answer;
    return run_as(*fresh, request, exchange);
  }

  Result<HttpAnswer> run_as(const Credential& who, const HttpRequest& request, Exchange exchange) {
    Handle handle = TRY(take());
    std::string url = url_of(request);
    prepare(handle.easy, url, who);
    exchange.easy = handle.easy;
    HeaderList headers;
    headers.add("Accept: " + request.accept);
    headers.add("Expect:");
    headers.add("User-Agent: coracle/" CORACLE_VERSION);
    std::vector<std::string> lines = TRY(identity(who));
    for (const auto& line : lines) headers.add(line);
    bool sends_body = !request.body.empty() || exchange.source || request.method == "POST" || request.method == "PUT" ||
                      request.method == "PATCH";
    if (sends_body) headers.add("Content-Type: " + request.content_type);
    curl_easy_setopt(handle.easy, CURLOPT_HTTPHEADER, headers.list);
    curl_easy_setopt(handle.easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    if (exchange.source) {
      curl_easy_setopt(handle.easy, CURLOPT_UPLOAD, 1L);
      curl_easy_setopt(handle.easy, CURLOPT_READFUNCTION, on_upload);
      curl_easy_setopt(handle.easy, CURLOPT_READDATA, &exchange);
    } else if (sends_body) {
      curl_easy_setopt(handle.easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(request.body.size()));
      curl_easy_setopt(handle.easy, CURLOPT_POSTFIELDS, request.body.data());
    }
    if (request.timeout.count() > 0) curl_easy_setopt(handle.easy, CURLOPT_TIMEOUT_MS, long(request.timeout.count()));
    std::array<char, CURL_ERROR_SIZE> detail{};
    curl_easy_setopt(handle.easy, CURLOPT_ERRORBUFFER, detail.data());
    curl_easy_setopt(handle.easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(handle.easy, CURLOPT_WRITEDATA, &exchange);
    curl_easy_setopt(handle.easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(handle.easy, CURLOPT_HEADERDATA, &exchange);
    CURLcode code = perform(exchange);
    long status = 0;
    curl_easy_getinfo(handle.easy, CURLINFO_RESPONSE_CODE, &status);
    exchange.answer.status = int(status);
    if (exchange.sink_ended) return std::move(exchange.answer);  // the handle is discarded with its connection
    if (exchange.too_large) return Error(Code::too_large, "the server's answer is too large");
    if (exchange.stop.stop_requested()) return std::move(exchange.answer);
    if (code != CURLE_OK) return failure(code, detail.data());
    give(std::move(handle));
    return std::move(exchange.answer);
  }
};

Http::Http(std::unique_ptr<State> state) : state_(std::move(state)) {}
Http::~Http() = default;
const ServerAccess& Http::access() const { return state_->access; }

Result<std::unique_ptr<Http>> Http::make(ServerAccess access) {
  if (access.client_certificate_pem.empty() != access.client_key_pem.empty())
    return Error(Code::invalid, "a client certificate and its key come together; one of them is missing");
  return std::unique_ptr<Http>(new Http(std::make_unique<State>(std::move(access))));
}

Result<HttpAnswer> Http::send(const HttpRequest& request) { return state_->run(request, {}); }

Result<HttpAnswer> Http::stream(const HttpRequest& request, const std::function<bool(std::string_view)>& sink,
                                std::stop_token stop, const std::function<void()>& begun) {
  Exchange exchange;
  exchange.sink = &sink;
  exchange.begun = &begun;
  exchange.stop = std::move(stop);
  return state_->run(request, std::move(exchange));
}

Result<HttpAnswer> Http::upload(const HttpRequest& request, const std::function<size_t(char*, size_t)>& source,
                                const std::function<bool(std::string_view)>& sink) {
  Exchange exchange;
  exchange.sink = &sink;
  exchange.source = &source;
  return state_->run(request, std::move(exchange));
}

namespace {

class CurlConnection : public Http::Connection {
 public:
  CurlConnection(Handle handle, int fd) : handle_(std::move(handle)), fd_(fd) {}
  int fd() const override { return fd_; }

  Result<std::string> read() override {
    std::string all = std::exchange(ahead_, {});
    char buffer[16384];
    for (;;) {  // TLS may buffer data that poll(2) does not report
      has_more_ = all.size() >= kReadBytesMax;
      if (has_more_) return all;
      size_t got = 0;
      CURLcode code = curl_easy_recv(handle_.easy, buffer, sizeof buffer, &got);
      if (code == CURLE_AGAIN) return all;
      if (code != CURLE_OK || got == 0) {
        if (!all.empty()) return all;
        return Error(Code::unavailable, "the server closed the connection");
      }
      all.append(buffer, got);
    }
  }

  bool has_more() const override { return has_more_; }

  Result<void> write(std::string_view bytes) override {
    while (!bytes.empty()) {
      size_t sent = TRY(write_some(bytes));
      bytes.remove_prefix(sent);
      pollfd wait{fd_, POLLOUT, 0};
      if (sent == 0) (void)::poll(&wait, 1, -1);  // sending again reports the error
    }
    return {};
  }

  Result<size_t> write_some(std::string_view bytes) override {
    size_t sent = 0;
    CURLcode code = curl_easy_send(handle_.easy, bytes.data(), bytes.size(), &sent);
    if (code == CURLE_AGAIN) return size_t(0);
    if (code != CURLE_OK) return Error(Code::unavailable, std::string("the connection broke: ") + curl_easy_strerror(code));
    return sent;
  }

  // The headers of the server's response; later bytes are kept for read().
  Result<std::string> read_head() {
    std::string head;
    for (;;) {
      size_t end = head.find("\r\n\r\n");
      if (end != head.npos) {
        ahead_ = head.substr(end + 4);
        return head.substr(0, end + 2);
      }
      if (head.size() > kUpgradeHeadBytesMax) return Error(Code::too_large, "the server's answer has too long a head");
      pollfd wait{fd_, POLLIN, 0};
      if (::poll(&wait, 1, kUpgradeTimeoutMs) == 0) return Error(Code::timeout, "the server did not answer the upgrade");
      head += TRY(read());
    }
  }
  // The available rest of the body after a refused upgrade.
  std::string read_rest(size_t length) {
    std::string body = std::exchange(ahead_, {});
    while (body.size() < length) {
      pollfd wait{fd_, POLLIN, 0};
      if (::poll(&wait, 1, 2000) <= 0) break;
      auto more = read();
      if (!more) break;
      body += *more;
    }
    return body;
  }

 private:
  Handle handle_;
  int fd_;
  std::string ahead_;
  bool has_more_ = false;
};

int status_of_head(std::string_view head) {
  size_t space = head.find(' ');
  return space == head.npos ? 0 : parse_number<int>(head.substr(space + 1, 3)).value_or(0);
}

std::string header_of(std::string_view head, std::string_view name) {
  for (std::string_view line : split(head, '\n')) {
    size_t colon = line.find(':');
    if (colon != line.npos && to_lower(line.substr(0, colon)) == name) return std::string(trim(line.substr(colon + 1)));
  }
  return {};
}

}  // namespace

namespace {

// Connects `handle`, which is prepared.
Result<std::unique_ptr<CurlConnection>> connect_only(Handle handle, const std::function<Error(CURLcode, const char*)>& failure) {
  curl_easy_setopt(handle.easy, CURLOPT_CONNECT_ONLY, 1L);
  curl_easy_setopt(handle.easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
  std::array<char, CURL_ERROR_SIZE> detail{};
  curl_easy_setopt(handle.easy, CURLOPT_ERRORBUFFER, detail.data());
  CURLcode code = curl_easy_perform(handle.easy);
  if (code != CURLE_OK) return failure(code, detail.data());
  curl_easy_setopt(handle.easy, CURLOPT_ERRORBUFFER, nullptr);
  curl_socket_t socket = CURL_SOCKET_BAD;
  curl_easy_getinfo(handle.easy, CURLINFO_ACTIVESOCKET, &socket);
  return std::make_unique<CurlConnection>(std::move(handle), socket);
}

}  // namespace

Result<std::unique_ptr<Http::Connection>> Http::connect() {
  Handle handle = TRY(Handle::make());
  State::Who who = TRY(state_->who());
  state_->prepare(handle.easy, state_->base, *who);
  auto failure = [&](CURLcode code, const char* detail) { return state_->failure(code, detail); };
  auto connection = TRY(connect_only(std::move(handle), failure));
  return std::unique_ptr<Connection>(std::move(connection));
}

Result<std::vector<std::string>> Http::identity() {
  State::Who who = TRY(state_->who());
  return state_->identity(*who);
}

Result<std::unique_ptr<Http::Connection>> Http::upgrade(const HttpRequest& request, std::string_view protocol) {
  Handle handle = TRY(Handle::make());
  State::Who who = TRY(state_->who());
  state_->prepare(handle.easy, state_->base, *who);
  auto failure = [&](CURLcode code, const char* detail) { return state_->failure(code, detail); };
  auto connection = TRY(connect_only(std::move(handle), failure));

  std::string nonce(16, '\0');
  fill_random({reinterpret_cast<uint8_t*>(nonce.data()), nonce.size()});
  std::string head =
      request.method + " " + path_prefix(state_->access.server) + State::target_of(request) +
      " HTTP/1.1\r\nHost: " + host_and_port(state_->access.server) +
      "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + base64_encode(nonce) +
      "\r\nSec-WebSocket-Protocol: " + std::string(protocol) + "\r\nUser-Agent: coracle/" CORACLE_VERSION "\r\n";
  std::vector<std::string> lines = TRY(state_->identity(*who));
  for (const auto& line : lines) head += line + "\r\n";
  TRY(connection->write(head + "\r\n"));
  std::string answer = TRY(connection->read_head());
  int status = status_of_head(answer);
  if (status != 101) {
    size_t length = parse_number<size_t>(header_of(answer, "content-length")).value_or(0);
    return error_from_status(status, connection->read_rest(std::min(length, kErrorBytesMax)));
  }
  if (header_of(answer, "sec-websocket-protocol") != protocol)
    return Error(Code::unsupported, "the server does not speak " + std::string(protocol));
  return std::unique_ptr<Connection>(std::move(connection));
}

}  // namespace coracle
