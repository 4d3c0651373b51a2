// SPDX-License-Identifier: Apache-2.0
// proxy: an HTTP server on this machine that passes requests on to the API server with our credentials, and serves a directory
// beside it. Each client has a thread, and each request a connection to the server, over which bytes go both ways until the
// server ends it: so watches, uploads and upgraded protocols need nothing more. Source: kubectl proxy.
#include "ctl/proxy.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <list>
#include <thread>

#include "ctl/command.h"
#include "ctl/send_buffer.h"
#include "ctl/wait.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"
#include "runtime/base/thread.h"
#include "runtime/sys/file.h"
#include "runtime/sys/socket.h"

namespace coracle::ctl {
namespace {

constexpr size_t kClientsMax = 256;             // others wait to be accepted
constexpr size_t kHeadBytesMax = 1 << 20;       // of a request or an answer, as Go's server
constexpr size_t kPendingBytesMax = 256 << 10;  // that wait for a side to read
constexpr size_t kDrainBytesMax = 8 << 20;      // that a client sends after its answer
constexpr size_t kBlockBytes = 16384;
constexpr int kHeadTimeoutMs = 60'000;  // for a client to send a request
constexpr int kSendTimeoutMs = 60'000;  // for a client to read an answer of ours
constexpr int kDefaultPort = 8001;

struct ProxyFlags {
  std::string www, www_prefix = "/static/", api_prefix = "/", address = "127.0.0.1", unix_socket, keepalive = "0s";
  std::string accept_paths = "^.*", reject_paths = "^/api/.*/pods/.*/exec,^/api/.*/pods/.*/attach", reject_methods = "^$";
  std::string accept_hosts = R"(^localhost$,^127\.0\.0\.1$,^\[::1\]$)";
  int port = kDefaultPort;
  bool disable_filter = false, append_server_path = false;
};

// What all clients share.
struct ProxyContext {
  Session& session;
  ProxyRules rules;
  std::string directory;    // of static files; "": none
  std::string server_host;  // "10.0.0.1:6443"
  std::string server_path;  // before each path, or ""
  std::chrono::seconds keepalive{0};
};

// One request after its head was read: bytes of the client to the server, and back.
class ProxyRelay {
 public:
  ProxyRelay(Session::Socket& server, const Fd& client, ProxyRequest& request, const std::string& head, std::string ahead)
      : server_(server), to_server_(server), client_(client), request_(request), ahead_(std::move(ahead)) {
    to_server_.append(head);
  }

  // Errors: of the server's side, before anything was answered.
  Result<void> run() {
    TRY(take_body(std::exchange(ahead_, {})));
    while (!over_) {
      bool reads_client = !to_server_.full(), reads_server = !server_left_ && to_client_.size() < kPendingBytesMax;
      short server_events = short(to_server_.events() & (reads_server ? ~0 : ~POLLIN));
      short client_events = short((reads_client ? POLLIN : 0) | (to_client_.empty() ? 0 : POLLOUT));
      pollfd waits[] = {{server_left_ ? -1 : server_.fd(), server_events, 0}, {client_.get(), client_events, 0}};
      if (::poll(waits, 2, reads_server && server_.has_more() ? 0 : -1) < 0 && errno != EINTR) return Error::from_errno("poll");
      if (waits[0].revents & POLLOUT) to_server_.flush();
      if (reads_server && (waits[0].revents & ~POLLOUT || server_.has_more())) TRY(read_server());
      if (to_server_.fault() && !server_left_) TRY(read_the_rest());
      if (reads_client && waits[1].revents & ~POLLOUT) TRY(read_client());
      else if (waits[1].revents & (POLLERR | POLLHUP)) over_ = true;
      write_client();
    }
    return {};
  }

  bool answered() const { return answered_; }

 private:
  // Bytes from the client. Those behind the request's body go nowhere, unless the protocol has changed: they could be a request
  // that nobody has looked at.
  Result<void> take_body(std::string_view bytes) {
    if (upgraded_) return to_server_.append(bytes), Result<void>();
    size_t used = TRY(request_.body.take(bytes));
    to_server_.append(bytes.substr(0, used));
    if (request_.upgrades && used < bytes.size()) early_.append(bytes.substr(used));
    if (early_.size() > kPendingBytesMax) return Error(Code::too_large, "too much before the protocol changed");
    return {};
  }

  Result<void> read_client() {
    char buffer[kBlockBytes];
    ssize_t got = ::recv(client_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (got <= 0) return over_ = true, Result<void>();  // as Go: a client that has left wants no answer
    return take_body(std::string_view(buffer, size_t(got)));
  }

  // False: there is nothing at the moment.
  Result<bool> read_server() {
    auto bytes = server_.read();
    if (!bytes) {
      TRY(leave(bytes.error()));
      return false;
    }
    if (bytes->empty()) return false;
    if (answered_) return to_client_.append(*bytes), true;
    head_.append(*bytes);
    for (size_t end; !answered_ && (end = head_.find("\r\n\r\n")) != head_.npos;) {
      AnswerHead answer = TRY(head_for_client(std::string_view(head_).substr(0, end + 2)));
      head_.erase(0, end + 4);
      to_client_ += answer.text;
      upgraded_ = answer.status == 101;
      answered_ = upgraded_ || answer.status >= 200;
    }
    if (upgraded_) to_server_.append(std::exchange(early_, {}));
    if (answered_) to_client_ += std::exchange(head_, {});
    else if (head_.size() > kHeadBytesMax) return Error(Code::too_large, "the server's answer has too long a head");
    return true;
  }

  // The server takes nothing more. What it sent before it left, such as a refusal of the body, has arrived.
  Result<void> read_the_rest() {
    while (!server_left_) {
      bool more = TRY(read_server());
      if (!more && !server_left_) TRY(leave(*to_server_.fault()));
    }
    return {};
  }

  // Errors: `why`, if the server has not answered.
  Result<void> leave(const Error& why) {
    server_left_ = true;
    if (!answered_) return why;
    return {};
  }

  void write_client() {
    while (!to_client_.empty()) {
      ssize_t sent = ::send(client_.get(), to_client_.data(), to_client_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) return void(over_ = over_ || errno != EAGAIN);
      to_client_.erase(0, size_t(sent));
    }
    over_ = over_ || server_left_;
  }

  Session::Socket& server_;
  SendBuffer to_server_;
  const Fd& client_;
  ProxyRequest& request_;
  std::string to_client_, ahead_;
  std::string head_;   // of the answer, as far as it has come
  std::string early_;  // bytes of the protocol that the client expects
  bool answered_ = false, upgraded_ = false, server_left_ = false, over_ = false;
};

class ProxyClient {
 public:
  ProxyClient(const ProxyContext& context, Fd socket) : context_(context), socket_(std::move(socket)) {}

  void run() {
    std::string bytes;
    size_t end;
    while ((end = bytes.find("\r\n\r\n")) == bytes.npos) {
      if (bytes.size() > kHeadBytesMax) return answer(error_answer(431, "Request Header Fields Too Large"));
      if (!receive(bytes)) return;
    }
    auto request = parse_proxy_request(std::string_view(bytes).substr(0, end + 2));
    if (!request) return answer(error_answer(400, "400 Bad Request: " + request.error().text()));
    Route where = route(*request, context_.rules);
    switch (where.to) {
      case Route::To::api: return serve_api(*request, where.target, bytes.substr(end + 4));
      case Route::To::file: return serve_file(*request, where.target);
      case Route::To::redirect: return answer(redirect_answer(where.target));
      case Route::To::forbidden: return answer(error_answer(403, "Forbidden"));
      case Route::To::not_found: return answer(error_answer(404, "404 page not found"));
    }
  }

 private:
  bool receive(std::string& bytes) {  // false: the client has left, or sends nothing
    char buffer[kBlockBytes];
    for (;;) {
      pollfd wait{socket_.get(), POLLIN, 0};
      int ready = ::poll(&wait, 1, kHeadTimeoutMs);
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) return false;
      ssize_t got = ::recv(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (got > 0) bytes.append(buffer, size_t(got));
      return got > 0;
    }
  }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent > 0) bytes.remove_prefix(size_t(sent));
      if (sent >= 0 || errno == EINTR) continue;
      pollfd wait{socket_.get(), POLLOUT, 0};
      if (errno != EAGAIN || ::poll(&wait, 1, kSendTimeoutMs) <= 0) return false;
    }
    return true;
  }

  void answer(const std::string& text) {
    if (send(text)) hang_up();
  }

  // Closing at once would reset the connection if the client still sends, and it would lose the answer.
  void hang_up() {
    (void)::shutdown(socket_.get(), SHUT_WR);
    std::string rest;
    for (size_t all = 0; all < kDrainBytesMax && receive(rest); all += std::exchange(rest, {}).size()) {
    }
  }

  void serve_file(const ProxyRequest& request, const std::string& path) {
    FileAnswer found = file_answer(request, context_.directory, path);
    if (!send(found.head)) return;
    if (request.method == "HEAD" || found.path.empty()) return answer(request.method == "HEAD" ? "" : found.body);
    auto file = sys::open(found.path, O_RDONLY);
    if (!file || ::lseek(file->get(), off_t(found.from), SEEK_SET) < 0) return;
    char buffer[kBlockBytes];
    for (uint64_t left = found.size; left > 0;) {
      auto got = sys::read_some(*file, {buffer, size_t(std::min<uint64_t>(left, sizeof buffer))});
      if (!got || *got == 0 || !send({buffer, *got})) return;
      left -= *got;
    }
    answer("");
  }

  void serve_api(ProxyRequest& request, const std::string& target, std::string ahead) {
    bool answered = false;
    auto done = pass_on(request, target, std::move(ahead), answered);
    if (done) return hang_up();
    tell("Error while proxying request: " + done.error().text() + "\n");
    if (!answered) answer(error_answer(500, done.error().text()));
  }

  Result<void> pass_on(ProxyRequest& request, const std::string& target, std::string ahead, bool& answered) {
    std::vector<std::string> identity = TRY(context_.session.identity());
    auto server = TRY(context_.session.connect());
    if (context_.keepalive.count() > 0) {
      int seconds = int(context_.keepalive.count());
      for (int option : {TCP_KEEPIDLE, TCP_KEEPINTVL})
        (void)::setsockopt(server->fd(), IPPROTO_TCP, option, &seconds, sizeof seconds);
    }
    std::string head = head_for_server(request, context_.server_path + target, context_.server_host, identity,
                                       sys::peer_endpoint(socket_).address);
    ProxyRelay relay(*server, socket_, request, head, std::move(ahead));
    auto done = relay.run();
    answered = relay.answered();
    return done;
  }

  const ProxyContext& context_;
  const Fd socket_;
};

class ProxyServer {
 public:
  explicit ProxyServer(ProxyContext context) : context_(std::move(context)) {}

  [[nodiscard]] Result<int> run(const Fd& listener) {
    for (;;) {
      std::erase_if(running_, [](const Running& one) { return one.over.load(); });
      pollfd waits[] = {{changed_.fd(), POLLIN, 0}, {running_.size() < kClientsMax ? listener.get() : -1, POLLIN, 0}};
      if (::poll(waits, 2, -1) < 0 && errno != EINTR) return Error::from_errno("poll");
      changed_.clear();
      if (waits[1].revents) accept(listener);
    }
  }

 private:
  struct Running {
    std::atomic<bool> over = false;
    std::jthread thread;
  };

  void accept(const Fd& listener) {
    Fd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;  // the client has already disconnected
    Running& one = running_.emplace_back();
    one.thread = start_thread("proxy", [this, &one, shared = std::make_shared<Fd>(std::move(socket))] {
      ProxyClient(context_, std::move(*shared)).run();
      one.over = true;
      changed_.signal();
    });
  }

  const ProxyContext context_;
  sys::Wakeup changed_;
  std::list<Running> running_;
};

// A socket that only we may open. A socket that was there is replaced, another file is not.
Result<Fd> listen_unix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return Error(Code::invalid, "listen unix " + path + ": bind: invalid argument");
  path.copy(address.sun_path, path.size());
  std::error_code failed;
  if (std::filesystem::is_socket(path, failed)) std::filesystem::remove(path, failed);
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return Error::from_errno("listen unix " + path);
  mode_t before = ::umask(0077);
  int bound = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), error = errno;
  ::umask(before);
  if (bound != 0) return Error::from_errno(error, "listen unix " + path + ": bind");
  if (::listen(socket.get(), SOMAXCONN) != 0) return Error::from_errno("listen unix " + path);
  return socket;
}

Result<Fd> listen_on(const ProxyFlags& flags) {
  if (!flags.unix_socket.empty()) return listen_unix(flags.unix_socket);
  std::string address = flags.address == "localhost" ? "127.0.0.1" : flags.address;
  if (address.starts_with('[') && address.ends_with(']')) address = address.substr(1, address.size() - 2);
  if (flags.port < 0 || flags.port > 65535) return Error(Code::bad_request, "--port: invalid port " + std::to_string(flags.port));
  return sys::listen_tcp(address, uint16_t(flags.port)).wrap("listen tcp " + flags.address + ":" + std::to_string(flags.port));
}

void warn_of_proxy(const std::string& text) { tell("Warning: " + text + "\n"); }

Result<ProxyRules> rules_of(const ProxyFlags& flags) {
  ProxyRules rules;
  auto ended = [](std::string prefix) { return prefix.ends_with('/') ? prefix : prefix + "/"; };
  rules.api_prefix = ended(flags.api_prefix), rules.static_prefix = ended(flags.www_prefix);
  for (const auto& [flag, prefix] :
       {std::pair("--api-prefix", &rules.api_prefix), std::pair("--www-prefix", &rules.static_prefix)})
    if (!prefix->starts_with('/')) return Error(Code::bad_request, std::string(flag) + ": must begin with /");
  rules.serves_files = !flags.www.empty();
  rules.filters = !flags.disable_filter;
  if (flags.disable_filter) {
    if (flags.unix_socket.empty())
      warn_of_proxy("Request filter disabled, your proxy is vulnerable to XSRF attacks, please be cautious");
    return rules;
  }
  if (flags.reject_paths.empty() || flags.reject_methods.empty())
    warn_of_proxy("Request filter has been relaxed, your proxy may be vulnerable to attacks, please be cautious");
  rules.accept_paths = TRY(Patterns::parse(flags.accept_paths).wrap("--accept-paths"));
  rules.reject_paths = TRY(Patterns::parse(flags.reject_paths).wrap("--reject-paths"));
  rules.accept_hosts = TRY(Patterns::parse(flags.accept_hosts).wrap("--accept-hosts"));
  rules.reject_methods = TRY(Patterns::parse(flags.reject_methods).wrap("--reject-methods"));
  return rules;
}

Result<int> run_proxy(Commands& commands, const ProxyFlags& flags) {
  if (flags.port != kDefaultPort && !flags.unix_socket.empty())
    return Error(Code::bad_request, "cannot set --unix-socket and --port at the same time");
  auto keepalive = TRY(parse_timeout(flags.keepalive).wrap("--keepalive"));
  Session* session = TRY(commands.session());
  ProxyRules rules = TRY(rules_of(flags));
  ProxyContext context{*session, std::move(rules), flags.www, "", "", {}};
  context.keepalive = std::chrono::ceil<std::chrono::seconds>(keepalive);
  std::string rest = session->server().substr(session->server().find("://") + 3);
  size_t slash = std::min(rest.find('/'), rest.size());
  context.server_host = rest.substr(0, slash);
  std::string path = rest.substr(slash);
  while (path.ends_with('/')) path.pop_back();
  if (flags.append_server_path) context.server_path = path;
  else if (!path.empty())
    warn_of_proxy("Your kube context contains a server path " + path +
                  ", use --append-server-path to automatically append the path to each request");
  std::error_code failed;
  if (!flags.www.empty() && !std::filesystem::exists(flags.www, failed))
    warn_of_proxy("Failed to stat static file directory " + flags.www + ": stat " + flags.www + ": no such file or directory");
  else if (!flags.www.empty() && !std::filesystem::is_directory(flags.www, failed))
    warn_of_proxy("Static file directory " + flags.www + " is not a directory");
  Fd listener = TRY(listen_on(flags));
  out("Starting to serve on " + (flags.unix_socket.empty() ? sys::local_endpoint(listener).text() : flags.unix_socket) + "\n");
  return ProxyServer(std::move(context)).run(listener);
}

}  // namespace

void add_proxy(Commands& commands) {
  auto flags = std::make_shared<ProxyFlags>();
  Command proxy = commands.add("proxy", "Serve the API on this machine without credentials, and a directory beside it");
  commands.ignore_words(proxy);
  proxy.add_option("-p,--port", flags->port, "the port; 0: any free one, which is printed");
  proxy.add_option("--address", flags->address, "the address to listen on");
  proxy.add_option("-u,--unix-socket", flags->unix_socket, "listen on this socket instead, a file's path");
  proxy.add_option("--api-prefix", flags->api_prefix, "where the API's paths begin");
  proxy.add_option("-w,--www", flags->www, "a directory to serve, too");
  proxy.add_option("-P,--www-prefix", flags->www_prefix, "where its paths begin");
  proxy.add_option("--accept-hosts", flags->accept_hosts, "expressions: hosts that requests may name");
  proxy.add_option("--accept-paths", flags->accept_paths, "expressions: paths of the API that requests may have");
  proxy.add_option("--reject-paths", flags->reject_paths, "expressions: paths that they may not have, even so");
  proxy.add_option("--reject-methods", flags->reject_methods, "expressions: methods that they may not have, as POST,PUT,PATCH");
  proxy.add_flag("--disable-filter", flags->disable_filter, "let every request pass: web pages in a browser can use that");
  proxy.add_flag("--append-server-path", flags->append_server_path, "put the path of the server's URL before each path");
  proxy.add_option("--keepalive", flags->keepalive, "how often to look whether an idle connection lives; 0s: the default")
      .as_duration();
  commands.on(proxy, [&commands, flags] { return run_proxy(commands, *flags); });
}

}  // namespace coracle::ctl
