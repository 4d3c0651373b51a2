// SPDX-License-Identifier: Apache-2.0
// See http.h. Over the network, each call uses one easy handle from a small pool; certificates are passed as blobs, without
// temporary files.
#include "store/client/http.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "runtime/base/guarded.h"
#include "runtime/base/random.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "store/client/byte_connection.h"
#include "store/client/curl.h"
#include "store/client/exchange.h"
#include "store/client/exec_credential.h"
#include "store/client/local_http.h"
#include "store/client/local_socket.h"
#include "store/object/status.h"

namespace coracle {
namespace {

constexpr int kUnauthorized = 401;
constexpr size_t kIdleHandlesMax = 4;
constexpr size_t kRefusalBytesMax = 1u << 20;  // of the body of a refused upgrade
constexpr long kConnectTimeoutMs = 10'000;
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

struct CurlExchange : Exchange {  // the state for libcurl's callbacks
  CURL* easy = nullptr;
  int status() const {
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    return int(status);
  }
};

size_t on_body(char* bytes, size_t size, size_t count, void* user) {
  auto& exchange = *static_cast<CurlExchange*>(user);
  return exchange.take_body({bytes, size * count}, exchange.status()) ? size * count : 0;
}

size_t on_header(char* bytes, size_t size, size_t count, void* user) {
  auto& exchange = *static_cast<CurlExchange*>(user);
  exchange.take_head_line({bytes, size * count}, exchange.status());
  return size * count;
}

size_t on_upload(char* buffer, size_t size, size_t count, void* user) {
  return (*static_cast<CurlExchange*>(user)->source)(buffer, size * count);
}

// curl_easy_perform that a stop request wakes; an idle stream needs no system calls.
CURLcode perform(CurlExchange& exchange) {
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

// Whether the local socket is that of this very server, for this very user. A token or a proxy means another way.
bool may_use_local_socket(const ServerAccess& access) {
  const bool is_plain = access.token.empty() && access.username.empty() && access.password.empty() && !access.exec &&
                        access.proxy_url.empty() && access.tls_server_name.empty() && !access.insecure;
  if (!is_plain || !access.local_socket.starts_with('/') || access.client_certificate_pem.empty()) return false;
  auto identity = sys::read_file(local_socket_identity_path(access.local_socket));
  return identity && *identity == local_socket_identity(access.server, access.ca_pem, access.client_certificate_pem);
}

}  // namespace

struct Http::State {
  explicit State(ServerAccess given) : access(std::move(given)), base(access.server) {
    bool certificate = !access.client_certificate_pem.empty() && !access.client_key_pem.empty();
    if (access.exec && access.token.empty() && access.username.empty() && !certificate) exec.emplace(*access.exec);
    else own = std::make_shared<const Credential>(Credential{access.token, {}, {}, std::nullopt});
    if (may_use_local_socket(access)) local.emplace(access.local_socket);
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
  std::optional<LocalHttp> local;
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

  // `detail`: the reason in words; libcurl has some if there are none.
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

  Result<std::unique_ptr<ByteConnection>> connect();

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

  static bool sends_body(const HttpRequest& request, const Exchange& exchange) {
    return !request.body.empty() || exchange.source || request.method == "POST" || request.method == "PUT" ||
           request.method == "PATCH";
  }
  // Errors: those of identity().
  Result<std::vector<std::string>> header_lines(const Credential& who, const HttpRequest& request,
                                                const Exchange& exchange) const {
    std::vector<std::string> lines = TRY(identity(who));
    lines.push_back("Accept: " + request.accept);
    lines.push_back("User-Agent: coracle/" CORACLE_VERSION);
    if (sends_body(request, exchange)) lines.push_back("Content-Type: " + request.content_type);
    return lines;
  }

  Result<HttpAnswer> run_as(const Credential& who, const HttpRequest& request, Exchange exchange) {
    const std::vector<std::string> lines = TRY(header_lines(who, request, exchange));
    if (local) {
      auto done = run_locally(lines, request, exchange);
      if (done && !*done) return done->take_error();
      if (done) return answer_of(std::move(exchange));
    }
    return run_over_network(who, lines, request, std::move(exchange));
  }

  // Nothing: the local socket is not there, or libcurl has to refuse the target.
  std::optional<Result<void>> run_locally(const std::vector<std::string>& lines, const HttpRequest& request, Exchange& exchange) {
    const std::string target = path_prefix(access.server) + target_of(request);
    const auto ends_target = [](unsigned char c) { return c <= ' ' || c == 0x7f; };
    if (!target.starts_with('/') || std::any_of(target.begin(), target.end(), ends_target)) return std::nullopt;
    std::string head = request.method + " " + target + " HTTP/1.1\r\nHost: " + host_and_port(access.server) + "\r\n";
    for (const auto& line : lines) head += line + "\r\n";
    if (exchange.source) head += "Transfer-Encoding: chunked\r\n";
    else if (sends_body(request, exchange)) head += "Content-Length: " + std::to_string(request.body.size()) + "\r\n";
    auto done = local->run({head + "\r\n", request.body, request.method == "HEAD", request.timeout}, exchange);
    if (!done || *done) return done;
    const CURLcode why = done->error().code() == Code::timeout ? CURLE_OPERATION_TIMEDOUT : CURLE_RECV_ERROR;
    return Result<void>(failure(why, done->error().text().c_str()));
  }

  static Result<HttpAnswer> answer_of(Exchange exchange) {
    if (exchange.too_large && !exchange.sink_ended) return Error(Code::too_large, "the server's answer is too large");
    return std::move(exchange.answer);
  }

  Result<HttpAnswer> run_over_network(const Credential& who, const std::vector<std::string>& lines, const HttpRequest& request,
                                      Exchange given) {
    Handle handle = TRY(take());
    CurlExchange exchange{std::move(given), handle.easy};
    std::string url = url_of(request);
    prepare(handle.easy, url, who);
    HeaderList headers;
    headers.add("Expect:");
    for (const auto& line : lines) headers.add(line);
    curl_easy_setopt(handle.easy, CURLOPT_HTTPHEADER, headers.list);
    curl_easy_setopt(handle.easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    if (exchange.source) {
      curl_easy_setopt(handle.easy, CURLOPT_UPLOAD, 1L);
      curl_easy_setopt(handle.easy, CURLOPT_READFUNCTION, on_upload);
      curl_easy_setopt(handle.easy, CURLOPT_READDATA, &exchange);
    } else if (sends_body(request, exchange)) {
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
    exchange.answer.status = exchange.status();
    const bool has_ended = exchange.sink_ended || exchange.too_large || exchange.stop.stop_requested();
    if (code != CURLE_OK && !has_ended) return failure(code, detail.data());
    if (!has_ended) give(std::move(handle));  // otherwise it is discarded with its connection
    return answer_of(std::move(exchange));
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

class CurlConnection : public ByteConnection {
 public:
  CurlConnection(Handle handle, int fd) : handle_(std::move(handle)), fd_(fd) {}
  int fd() const override { return fd_; }

  Result<size_t> write_some(std::string_view bytes) override {
    size_t sent = 0;
    CURLcode code = curl_easy_send(handle_.easy, bytes.data(), bytes.size(), &sent);
    if (code == CURLE_AGAIN) return size_t(0);
    if (code != CURLE_OK) return Error(Code::unavailable, std::string("the connection broke: ") + curl_easy_strerror(code));
    return sent;
  }

 protected:
  Result<size_t> receive_some(char* to, size_t size) override {
    size_t got = 0;
    CURLcode code = curl_easy_recv(handle_.easy, to, size, &got);
    if (code == CURLE_AGAIN) return size_t(0);
    if (code != CURLE_OK || got == 0) return Error(Code::unavailable, "the server closed the connection");
    return got;
  }

 private:
  Handle handle_;
  int fd_;
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

Result<std::unique_ptr<ByteConnection>> Http::State::connect() {
  if (local)
    if (auto connection = local->connect()) return connection;
  Handle handle = TRY(Handle::make());
  Who who = TRY(this->who());
  prepare(handle.easy, base, *who);
  curl_easy_setopt(handle.easy, CURLOPT_CONNECT_ONLY, 1L);
  curl_easy_setopt(handle.easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
  std::array<char, CURL_ERROR_SIZE> detail{};
  curl_easy_setopt(handle.easy, CURLOPT_ERRORBUFFER, detail.data());
  CURLcode code = curl_easy_perform(handle.easy);
  if (code != CURLE_OK) return failure(code, detail.data());
  curl_easy_setopt(handle.easy, CURLOPT_ERRORBUFFER, nullptr);
  curl_socket_t socket = CURL_SOCKET_BAD;
  curl_easy_getinfo(handle.easy, CURLINFO_ACTIVESOCKET, &socket);
  return std::unique_ptr<ByteConnection>(std::make_unique<CurlConnection>(std::move(handle), socket));
}

Result<std::unique_ptr<Http::Connection>> Http::connect() {
  auto connection = TRY(state_->connect());
  return std::unique_ptr<Connection>(std::move(connection));
}

Result<std::vector<std::string>> Http::identity() {
  State::Who who = TRY(state_->who());
  return state_->identity(*who);
}

Result<std::unique_ptr<Http::Connection>> Http::upgrade(const HttpRequest& request, std::string_view protocol) {
  State::Who who = TRY(state_->who());
  auto connection = TRY(state_->connect());
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
    return error_from_status(status, connection->read_rest(std::min(length, kRefusalBytesMax)));
  }
  if (header_of(answer, "sec-websocket-protocol") != protocol)
    return Error(Code::unsupported, "the server does not speak " + std::string(protocol));
  return std::unique_ptr<Connection>(std::move(connection));
}

}  // namespace coracle
