// SPDX-License-Identifier: Apache-2.0
// See connection.h. The socket is non-blocking; wait() blocks until the socket is ready, the deadline, or a stop.
#include "daemon/node/probe/connection.h"

#include <netdb.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"

namespace coracle::node {
namespace {

constexpr size_t kPiece = 16 << 10;

SSL_CTX* client_context() {
  static const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  return context.get();
}

}  // namespace

std::string host_and_port(const std::string& host, uint16_t port) {
  bool bare = host.find(':') != host.npos && host.front() != '[';
  return (bare ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<Connection> Connection::open(const std::string& host, uint16_t port, const AddressLookup& lookup, CallContext context) {
  auto connection = dial(host, port, lookup, std::move(context));
  if (connection || connection.error().code() == Code::cancelled) return connection;
  return std::move(connection).wrap("dial tcp " + host_and_port(host, port));
}

Result<Connection> Connection::dial(const std::string& host, uint16_t port, const AddressLookup& lookup, CallContext context) {
  Addresses addresses = TRY(lookup(host, port, context));
  std::optional<Error> last;
  for (const addrinfo* at = addresses.get(); at; at = at->ai_next) {
    Connection connection(context);
    connection.socket_ = Fd(::socket(at->ai_family, at->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, at->ai_protocol));
    if (!connection.socket_) return Error::from_errno("socket");
    if (::connect(connection.socket_.get(), at->ai_addr, at->ai_addrlen) == 0) return connection;
    int err = errno;
    if (err == EINPROGRESS) {
      auto waited = connection.wait(POLLOUT);
      if (!waited && waited.error().code() == Code::timeout) return Error(Code::timeout, "i/o timeout");
      if (!waited) return waited.take_error();
      socklen_t size = sizeof err;
      (void)::getsockopt(connection.socket_.get(), SOL_SOCKET, SO_ERROR, &err, &size);  // cannot fail on a socket
      if (err == 0) return connection;
    }
    Error failed = Error::from_errno(err, "connect");
    last = Error(failed.code(), to_lower(failed.text()));
  }
  return last ? *std::move(last) : Error(Code::unavailable, "no address");
}

Result<void> Connection::wait(short events) {
  Fd wakeup = TRY(sys::make_eventfd());
  std::stop_callback on_stop(context_.stop, [&] {
    const uint64_t one = 1;
    (void)!::write(wakeup.get(), &one, sizeof one);  // cannot block: it is written only once
  });
  auto left = std::chrono::ceil<std::chrono::milliseconds>(context_.deadline - std::chrono::steady_clock::now());
  pollfd fds[] = {{socket_.get(), events, 0}, {wakeup.get(), POLLIN, 0}};
  int ready = ::poll(fds, 2, int(std::max<int64_t>(left.count(), 0)));
  if (fds[1].revents) return Error(Code::cancelled, "cancelled");
  if (ready == 0) return Error(Code::timeout, "timed out");
  if (ready < 0 && errno != EINTR) return Error::from_errno("wait");
  return {};
}

// After an SSL call that did not succeed: waits for what OpenSSL needs, or returns the error.
Result<void> Connection::after(int outcome, const char* doing) {
  switch (SSL_get_error(tls_.get(), outcome)) {
    case SSL_ERROR_WANT_READ: return wait(POLLIN);
    case SSL_ERROR_WANT_WRITE: return wait(POLLOUT);
    default: break;
  }
  unsigned long number = ERR_get_error();
  const char* reason = number ? ERR_reason_error_string(number) : nullptr;
  ERR_clear_error();
  return Error(Code::unavailable, std::string(doing) + ": " + (reason ? reason : "the connection was closed"));
}

Result<void> Connection::secure(const std::string& host) {
  tls_.reset(SSL_new(client_context()));
  if (!tls_ || SSL_set_fd(tls_.get(), socket_.get()) != 1) return Error(Code::internal, "TLS does not start");
  SSL_set_verify(tls_.get(), SSL_VERIFY_NONE, nullptr);
  bool named = host.find_first_not_of("0123456789.:[]") != host.npos;
  if (named) (void)SSL_set_tlsext_host_name(tls_.get(), host.c_str());  // SNI: without it the server uses its default certificate
  for (int outcome; (outcome = SSL_connect(tls_.get())) != 1;) TRY(after(outcome, "TLS"));
  return {};
}

Result<void> Connection::write(std::string_view bytes) {
  while (!bytes.empty()) {
    if (tls_) {
      int count = SSL_write(tls_.get(), bytes.data(), int(bytes.size()));
      if (count > 0) bytes.remove_prefix(size_t(count));
      else TRY(after(count, "write"));
      continue;
    }
    ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0) bytes.remove_prefix(size_t(count));
    else if (errno == EAGAIN) TRY(wait(POLLOUT));
    else return Error::from_errno("write");
  }
  return {};
}

Result<std::string_view> Connection::read() {
  buffer_.resize(kPiece);
  for (;;) {
    if (tls_) {
      int count = SSL_read(tls_.get(), buffer_.data(), int(buffer_.size()));
      if (count > 0) return std::string_view(buffer_.data(), size_t(count));
      if (SSL_get_error(tls_.get(), count) == SSL_ERROR_ZERO_RETURN) return std::string_view();
      TRY(after(count, "read"));
      continue;
    }
    ssize_t count = ::recv(socket_.get(), buffer_.data(), buffer_.size(), 0);
    if (count >= 0) return std::string_view(buffer_.data(), size_t(count));
    if (errno != EAGAIN) return Error::from_errno("read");
    TRY(wait(POLLIN));
  }
}

}  // namespace coracle::node
