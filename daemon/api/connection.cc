// SPDX-License-Identifier: Apache-2.0
// See connection.h. Every SSL call is made with a lock held and does not block, except in linger(), where no other thread uses
// the connection; otherwise waiting is done without the lock. So a reading thread does not block writers.
#include "daemon/api/connection.h"

#include <fcntl.h>
#include <openssl/bio.h>
#include <sys/auxv.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

#include "daemon/auth/authentication.h"
#include "daemon/auth/openssl.h"

namespace coracle::api {
namespace {

constexpr size_t kReadChunk = 16 << 10;  // a TLS record
constexpr size_t kWriteChunk = 16 << 10;

// The socket blocks, but only linger() lets it.
void let_it_block(const Fd& socket) {
  const timeval most{0, std::chrono::microseconds(kLinger).count()};
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
  (void)::fcntl(socket.get(), F_SETFL, 0);
}

int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* chosen_size, const unsigned char* offered,
                    unsigned int offered_size, void*) {
  static constexpr unsigned char kHttp11[] = "\x08http/1.1";
  unsigned char* out = nullptr;
  int found = SSL_select_next_proto(&out, chosen_size, kHttp11, sizeof kHttp11 - 1, offered, offered_size);
  *chosen = out;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

// An invalid client certificate does not end the handshake: the request gets a 401 with an explanation instead.
int accept_for_now(int, X509_STORE_CTX*) { return 1; }

Result<void> use_certificates(SSL_CTX* context, std::string_view chain, std::string_view key, std::string_view client_ca) {
  openssl::Bio chain_bio = openssl::memory_bio(chain);
  openssl::Certificate leaf = openssl::read_certificate(chain_bio.get());
  if (!leaf || SSL_CTX_use_certificate(context, leaf.get()) != 1)
    return openssl::error("read the serving certificate", Code::invalid);
  while (openssl::Certificate next = openssl::read_certificate(chain_bio.get()))
    if (SSL_CTX_add1_chain_cert(context, next.get()) != 1) return openssl::error("read the certificate chain", Code::invalid);
  ERR_clear_error();  // the end of the chain is reported as an error
  openssl::PrivateKey private_key = openssl::parse_private_key(key);
  if (!private_key || SSL_CTX_use_PrivateKey(context, private_key.get()) != 1 || SSL_CTX_check_private_key(context) != 1)
    return openssl::error("read the serving key", Code::invalid);
  openssl::Certificate ca = openssl::parse_certificate(client_ca);
  if (!ca || X509_STORE_add_cert(SSL_CTX_get_cert_store(context), ca.get()) != 1 || SSL_CTX_add_client_CA(context, ca.get()) != 1)
    return openssl::error("read the client CA", Code::invalid);
  return {};
}

// Without AES instructions (Raspberry Pi before model 5), ChaCha20 takes a third of the time of AES.
bool encrypts_aes_itself() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
#elif defined(__aarch64__)
  constexpr unsigned long kAes = 1 << 3,
                          kPmull = 1 << 4;  // HWCAP_AES, HWCAP_PMULL. Source: Linux, Documentation/arch/arm64/elf_hwcaps.rst
  return (::getauxval(AT_HWCAP) & (kAes | kPmull)) == (kAes | kPmull);
#else
  return false;
#endif
}

// Prefers the ciphers that are cheapest for the server, as Go's servers do; all of them are safe. Source: RFC 9325 section 4.2
void choose_ciphers(SSL_CTX* context) {
  bool aes = encrypts_aes_itself();
  (void)SSL_CTX_set_ciphersuites(context, aes ? "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384"
                                              : "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384");
  (void)SSL_CTX_set_cipher_list(
      context, aes ? "ECDHE+AES128+AESGCM:ECDHE+CHACHA20:ECDHE+AESGCM" : "ECDHE+CHACHA20:ECDHE+AES128+AESGCM:ECDHE+AESGCM");
  SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE);
}

PeerCertificate certificate_of(const SSL* ssl) {
  PeerCertificate out;
  openssl::Certificate certificate(SSL_get1_peer_certificate(ssl));
  if (!certificate) return out;
  out.presented = true;
  out.valid = SSL_get_verify_result(ssl) == X509_V_OK;
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  auto names = openssl::name_entries(subject, NID_commonName);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  std::string fingerprint;
  if (X509_digest(certificate.get(), EVP_sha256(), digest, &size) == 1)
    for (unsigned i = 0; i < size; ++i)
      fingerprint += "0123456789abcdef"[digest[i] >> 4], fingerprint += "0123456789abcdef"[digest[i] & 15];
  out.user = auth::user_of_certificate(names.empty() ? std::string() : names.front(),
                                       openssl::name_entries(subject, NID_organizationName), fingerprint);
  return out;
}

sys::Timeout until(SteadyTime deadline) {
  if (deadline == SteadyTime::max()) return std::nullopt;
  auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return std::max(left, std::chrono::milliseconds(0));
}

}  // namespace

Result<void> TlsSettings::set(std::string_view chain, std::string_view key, std::string_view client_ca) {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_read_ahead(context.get(), 1);  // reads a record at once, not its header first
  choose_ciphers(context.get());
  SSL_CTX_set_alpn_select_cb(context.get(), choose_protocol, nullptr);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_CLIENT_ONCE, accept_for_now);
  TRY(use_certificates(context.get(), chain, key, client_ca));
  context_.with([&](auto& current) { current = std::move(context); });
  return {};
}

std::shared_ptr<SSL_CTX> TlsSettings::current() const {
  return context_.with([](const auto& current) { return current; });
}

// The socket as OpenSSL reads and writes it. OpenSSL's own BIO for sockets waits at every read or at none.
class Connection::SocketBio {
 public:
  static BIO* make(Connection& connection) {
    static BIO_METHOD* const kMethod = [] {
      BIO_METHOD* method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "connection");
      BIO_meth_set_read(method, read);
      BIO_meth_set_write(method, write);
      BIO_meth_set_ctrl(method, control);
      return method;
    }();
    BIO* bio = BIO_new(kMethod);
    BIO_set_data(bio, &connection);
    BIO_set_init(bio, 1);
    return bio;
  }

 private:
  static Connection& of(BIO* bio) { return *static_cast<Connection*>(BIO_get_data(bio)); }
  static int read(BIO* bio, char* to, int size) {
    BIO_clear_retry_flags(bio);
    auto count = of(bio).receive_bytes(to, size_t(size));
    if (!count) return -1;
    if (!*count) BIO_set_retry_read(bio);
    if (*count == 0u) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
    return *count ? int(**count) : -1;
  }
  static int write(BIO* bio, const char* bytes, int size) {
    BIO_clear_retry_flags(bio);
    auto count = sys::send_now(of(bio).socket_, {bytes, size_t(size)});
    if (count && !*count) BIO_set_retry_write(bio);
    return count && *count ? int(**count) : -1;
  }
  static long control(BIO* bio, int command, long, void*) {
    if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
    return command == BIO_CTRL_FLUSH;  // nothing is buffered here
  }
};

Connection::Connection(Fd socket, std::shared_ptr<SSL_CTX> context)
    : socket_(std::move(socket)),
      context_(std::move(context)),
      ssl_(SSL_new(context_.get()), SSL_free),
      peer_(sys::peer_endpoint(socket_)) {
  let_it_block(socket_);
  BIO* bio = SocketBio::make(*this);
  SSL_set_bio(ssl_.get(), bio, bio);
  SSL_set_accept_state(ssl_.get());
}

Connection::Connection(Fd socket, UserPtr user)
    : socket_(std::move(socket)), ssl_(nullptr, SSL_free), peer_{"127.0.0.1", 0}, peer_certificate_{true, true, std::move(user)} {
  let_it_block(socket_);
}

// Nothing: there is nothing at the moment. 0: the end of the stream.
Result<std::optional<size_t>> Connection::receive_bytes(char* to, size_t size) {
  // Once, since a peer that sends a byte now and then must not keep the thread.
  return std::exchange(lingers_, false) ? sys::receive_soon(socket_, to, size) : sys::receive_now(socket_, to, size);
}

Connection::Step Connection::outcome_of(int done) const {
  if (done > 0) return {.count = size_t(done)};
  const int why = SSL_get_error(ssl_.get(), done);
  return {.is_end = why == SSL_ERROR_ZERO_RETURN,
          .wants_input = why == SSL_ERROR_WANT_READ,
          .wants_output = why == SSL_ERROR_WANT_WRITE};
}

Connection::Step Connection::receive(char* to, size_t size) {
  if (!ssl_) {
    auto count = receive_bytes(to, size);
    if (!count) return {};
    return {.count = count->value_or(0), .is_end = *count == 0u, .wants_input = !*count};
  }
  std::lock_guard lock(ssl_mutex_);
  ERR_clear_error();
  return outcome_of(SSL_read(ssl_.get(), to, int(size)));
}

Connection::Step Connection::send(std::string_view bytes) {
  if (!ssl_) {
    auto count = sys::send_now(socket_, bytes);
    if (!count) return {};
    return {.count = count->value_or(0), .wants_output = !*count};
  }
  std::lock_guard lock(ssl_mutex_);
  ERR_clear_error();
  return outcome_of(SSL_write(ssl_.get(), bytes.data(), int(bytes.size())));
}

Result<void> Connection::handshake(Deadline deadline) {
  while (ssl_) {
    Step step;
    {
      std::lock_guard lock(ssl_mutex_);
      ERR_clear_error();
      step = outcome_of(SSL_do_handshake(ssl_.get()));
    }
    if (step.count > 0) {
      peer_certificate_ = certificate_of(ssl_.get());
      return {};
    }
    if (!step.waits()) {
      broken_ = true;
      return openssl::error("TLS handshake", Code::bad_request);
    }
    auto woken = sys::wait_ready(socket_.get(), step.wants_input, step.wants_output, -1, until(deadline));
    if (!woken.first.readable && !woken.first.writable && std::chrono::steady_clock::now() >= deadline)
      return Error(Code::timeout, "TLS handshake");  // may be continued
  }
  return {};
}

Result<size_t> Connection::fill(Deadline deadline) {
  std::array<char, kReadChunk> chunk;
  for (;;) {
    const Step step = receive(chunk.data(), chunk.size());
    if (step.count > 0) {
      in_.erase(0, std::exchange(in_used_, 0));
      in_.append(chunk.data(), step.count);
      return step.count;
    }
    if (step.is_end) return size_t(0);
    if (!step.waits()) {
      broken_ = true;
      return Error(Code::unavailable, "the peer went away");
    }
    if (deadline <= std::chrono::steady_clock::now()) return Error(Code::timeout, "nothing was received in time");
    (void)sys::wait_ready(socket_.get(), step.wants_input, step.wants_output, -1, until(deadline));
  }
}

bool Connection::has_buffered_input() const { return in_used_ < in_.size() || (ssl_ && SSL_has_pending(ssl_.get()) == 1); }

Result<size_t> Connection::read(char* to, size_t size) {
  if (in_used_ >= in_.size()) {
    size_t count = TRY(fill(read_deadline_));
    if (count == 0) return count;
  }
  size_t count = std::min(size, in_.size() - in_used_);
  std::copy_n(in_.data() + in_used_, count, to);
  in_used_ += count;
  searched_ = 0;
  return count;
}

Result<std::string_view> Connection::read_until(EndOf end_of, size_t bytes_max) {
  constexpr size_t kSplit = 2;  // "\n\r": an end may be split across two reads
  for (;;) {
    std::string_view arrived = std::string_view(in_).substr(in_used_);
    size_t end = end_of(arrived, searched_);
    if (end != std::string_view::npos) {
      in_used_ += end;
      searched_ = 0;
      return arrived.substr(0, end);
    }
    size_t there = arrived.size();
    searched_ = there - std::min(there, kSplit);
    if (there > bytes_max) return Error(Code::too_large, "the request head is too large");
    size_t count = TRY(fill(read_deadline_));
    if (count == 0) return Error(Code::unavailable, "the peer has closed");
  }
}

// In non-blocking mode, keeps what the peer does not accept.
bool Connection::write_through(std::string_view& bytes) {
  while (!bytes.empty()) {
    const Step step = send(bytes.substr(0, kWriteChunk));
    if (step.count > 0) {
      bytes.remove_prefix(step.count);
      continue;
    }
    if (step.waits() && !waits_) return false;
    if (step.waits() && before_wait_) {
      auto before = std::exchange(before_wait_, nullptr);
      if (!before()) return broken_ = true, false;
    }
    auto woken = step.waits() ? sys::wait_ready(socket_.get(), step.wants_input, step.wants_output, -1, write_timeout_)
                              : sys::WaitResult{};
    if (!woken.first.readable && !woken.first.writable) return broken_ = true, false;
  }
  return true;
}

bool Connection::write(std::string_view bytes) {
  std::lock_guard lock(write_mutex_);
  if (broken_) return false;
  if (!waits_) return out_.append(bytes), true;
  while (!bytes.empty()) {  // in whole records, because a small one costs as much as a large one
    size_t taken = std::min(bytes.size(), kWriteChunk - std::min(out_.size(), kWriteChunk));
    bool whole = taken == kWriteChunk;
    if (!whole) out_.append(bytes.substr(0, taken));
    if (whole || has_record_to_send()) {
      std::string_view record = whole ? bytes.substr(0, taken) : std::string_view(out_);
      if (!write_through(record)) return false;
      out_.clear();
    }
    bytes.remove_prefix(taken);
  }
  return true;
}

bool Connection::flush() {
  std::lock_guard lock(write_mutex_);
  if (broken_) return false;
  std::string_view left = out_;
  bool written = write_through(left);
  out_.erase(0, out_.size() - left.size());
  if (written && !keeps_buffers_) std::string().swap(out_);
  return written;
}

bool Connection::has_record_to_send() const { return out_.size() >= kWriteChunk; }

void Connection::expect(size_t bytes) {
  std::lock_guard lock(write_mutex_);
  out_.reserve(std::min(out_.size() + bytes, std::max(kWriteChunk, out_.size())));
}

void Connection::say_end() {
  if (!ssl_) return;
  std::lock_guard lock(ssl_mutex_);
  ERR_clear_error();
  (void)SSL_shutdown(ssl_.get());  // errors do not matter: the end of the stream has the same meaning
  ERR_clear_error();
}

void Connection::close() {
  if (!broken_) say_end();
  broken_ = true;
  sys::shut_down(socket_);
}

void Connection::finish() {
  std::string().swap(in_), in_used_ = searched_ = 0;
  if (broken_) return;
  say_end();
  sys::shut_down_writing(socket_);
}

bool Connection::peer_gone() {
  if (broken_) return true;
  auto count = fill(SteadyTime::min());
  if (!count) return count.error().code() != Code::timeout;
  return *count == 0;
}

bool Connection::linger() {
  lingers_ = true;
  bool gone = peer_gone();
  lingers_ = false;
  return gone;
}

void Connection::keep_buffers() {
  if (std::exchange(keeps_buffers_, true) || !ssl_) return;
  std::lock_guard lock(ssl_mutex_);
  SSL_clear_mode(ssl_.get(), SSL_MODE_RELEASE_BUFFERS);
}

void Connection::release_buffers() {
  if (in_used_ >= in_.size()) std::string().swap(in_), in_used_ = 0;
  std::lock_guard lock(write_mutex_);
  if (out_.empty()) std::string().swap(out_);
  if (!std::exchange(keeps_buffers_, false) || !ssl_) return;
  std::lock_guard also(ssl_mutex_);
  SSL_set_mode(ssl_.get(), SSL_MODE_RELEASE_BUFFERS);
  (void)SSL_free_buffers(ssl_.get());  // fails while they are in use; then they are freed with the next record
}

}  // namespace coracle::api
