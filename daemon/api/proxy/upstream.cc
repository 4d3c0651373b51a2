// SPDX-License-Identifier: Apache-2.0
// See upstream.h.
#include "daemon/api/proxy/upstream.h"

#include <openssl/err.h>

#include <algorithm>
#include <cstring>

#include "runtime/base/clock.h"
#include "runtime/base/text.h"
#include "runtime/sys/inet.h"

namespace coracle::api {
namespace {

constexpr size_t kWriteChunk = 16 << 10;  // a TLS record

Error unavailable(const std::string& text) { return Error(Code::unavailable, text); }

// "connection refused": the error text in Go's format.
std::string words_of(const Error& error) { return to_lower(std::string_view(std::strerror(error.err()))); }

std::string tls_words() {
  unsigned long number = ERR_get_error();
  const char* reason = number ? ERR_reason_error_string(number) : nullptr;
  ERR_clear_error();
  return std::string("tls: ") + (reason ? reason : "handshake failure");
}

std::shared_ptr<SSL_CTX> client_settings() {
  static constexpr unsigned char kHttp11[] = "\x08http/1.1";
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);  // see Target::secure
  SSL_CTX_set_security_level(context.get(), 1);                 // the length of the target's key does not matter either
  (void)SSL_CTX_set_alpn_protos(context.get(), kHttp11, sizeof kHttp11 - 1);
  return context;
}

// False: timeout. Errors: cancelled.
Result<bool> wait(int fd, bool read, bool write, CancelCheck& cancel, SteadyTime until) {
  for (;;) {
    sys::Timeout left;
    if (until != SteadyTime::max()) {
      left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
      if (left->count() <= 0) return false;
    }
    sys::WaitResult woken = sys::wait_ready(fd, read, write, cancel.fd(), left);
    if (woken.second_readable && cancel.stirred()) return Error(Code::cancelled, "context canceled");
    if (woken.first.readable || woken.first.writable) return true;
  }
}

}  // namespace

Result<std::unique_ptr<Upstream>> Upstream::open(const Target& target, CancelCheck& cancel) {
  std::string dial = "dial tcp " + target.to.text() + ": ";
  auto socket = sys::connect_tcp(target.to.address, target.to.port);
  if (!socket) return unavailable(dial + "connect: " + words_of(socket.error()));
  auto until = std::chrono::steady_clock::now() + kDialTime;
  bool ready = TRY(wait(socket->get(), false, true, cancel, until));
  if (!ready) return unavailable(dial + "i/o timeout");
  if (auto done = sys::connected(*socket); !done) return unavailable(dial + "connect: " + words_of(done.error()));
  std::unique_ptr<Upstream> made(new Upstream(*std::move(socket)));
  if (target.secure) TRY(made->greet(cancel));
  return made;
}

Result<void> Upstream::greet(CancelCheck& cancel) {
  tls_.reset(SSL_new(client_settings().get()));  // holds a reference to its settings
  SSL_set_fd(tls_.get(), socket_.get());
  SSL_set_connect_state(tls_.get());
  auto until = std::chrono::steady_clock::now() + kGreetTime;
  for (;;) {
    ERR_clear_error();
    int done = SSL_do_handshake(tls_.get());
    if (done == 1) return {};
    Attempt attempt = TRY(after(done, "EOF"));
    if (attempt.count == 0) return unavailable("EOF");
    bool ready = TRY(wait(socket_.get(), attempt.wants_read, attempt.wants_write, cancel, until));
    if (!ready) return unavailable("net/http: TLS handshake timeout");
  }
}

// Interprets the result of an unsuccessful SSL call: it would block, end of stream (count 0), or an error.
Result<Upstream::Attempt> Upstream::after(int outcome, std::string_view cut) {
  int why = SSL_get_error(tls_.get(), outcome);
  if (why == SSL_ERROR_WANT_READ) return Attempt{-1, true, false};
  if (why == SSL_ERROR_WANT_WRITE) return Attempt{-1, false, true};
  if (why == SSL_ERROR_ZERO_RETURN) return Attempt{};
  bool cut_off = ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
  if (cut_off || (why == SSL_ERROR_SYSCALL && ERR_peek_error() == 0)) return ERR_clear_error(), unavailable(std::string(cut));
  return unavailable(tls_words());
}

Result<Upstream::Attempt> Upstream::try_read(char* into, size_t size) {
  if (tls_) {
    std::lock_guard lock(tls_mutex_);
    ERR_clear_error();
    int count = SSL_read(tls_.get(), into, int(size));
    if (count > 0) return Attempt{count};
    return after(count, "unexpected EOF");
  }
  auto count = sys::receive_some(socket_, {into, size});
  if (count) return Attempt{ssize_t(*count)};
  if (count.error().err() == EAGAIN || count.error().err() == EINTR) return Attempt{-1, true, false};
  return unavailable("read tcp: read: " + words_of(count.error()));
}

Result<Upstream::Attempt> Upstream::try_write(std::string_view bytes) {
  if (tls_) {
    std::lock_guard lock(tls_mutex_);
    ERR_clear_error();
    int count = SSL_write(tls_.get(), bytes.data(), int(std::min(bytes.size(), kWriteChunk)));
    if (count > 0) return Attempt{count};
    return after(count, "write: broken pipe");
  }
  auto count = sys::send_some(socket_, bytes);
  if (count) return Attempt{ssize_t(*count)};
  if (count.error().err() == EAGAIN || count.error().err() == EINTR) return Attempt{-1, false, true};
  return unavailable("write tcp: write: " + words_of(count.error()));
}

Result<size_t> Upstream::read(char* into, size_t size, CancelCheck& cancel) {
  for (;;) {
    Attempt attempt = TRY(try_read(into, size));
    if (attempt.count >= 0) return size_t(attempt.count);
    TRY(wait(socket_.get(), attempt.wants_read, attempt.wants_write, cancel, SteadyTime::max()));
  }
}

Result<void> Upstream::write(std::string_view bytes, const Fd& giver) {
  while (!bytes.empty()) {
    Attempt attempt = TRY(try_write(bytes));
    if (attempt.count == 0) return unavailable("write: broken pipe");
    if (attempt.count > 0) {
      bytes.remove_prefix(size_t(attempt.count));
      continue;
    }
    sys::WaitResult woken = sys::wait_ready(socket_.get(), attempt.wants_read, attempt.wants_write, giver.get(), std::nullopt,
                                            sys::SecondFor::leaving);
    if (woken.second_left) return Error(Code::cancelled, "context canceled");
  }
  return {};
}

}  // namespace coracle::api
