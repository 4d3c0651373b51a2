// SPDX-License-Identifier: Apache-2.0
// A client's connection: TLS over a socket, or the plain local socket of this machine's root. Buffered, with a
// deadline for every wait, and safe for one reader and several concurrent writers (an exec reads and writes at once). OpenSSL is
// configured for many idle connections: no session cache, no tickets, empty buffers are freed. Renewed certificates apply to new
// connections.
//   socket ⇄ SSL ⇄ in_/out_ buffers ⇄ read/write
// Source: openssl SSL_CTX_set_mode(3), RFC 8446, unix(7).
#pragma once

#include <openssl/ssl.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/auth/recent_token.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/guarded.h"
#include "runtime/base/result.h"
#include "runtime/sys/socket.h"
#include "store/object/user.h"

namespace coracle::api {

// The client's certificate, verified against the cluster's CA. Over the local socket: the administrator's, as if it were valid.
struct PeerCertificate {
  bool presented = false, valid = false;
  UserPtr user;  // whom it names; null if it names nobody
};

constexpr std::chrono::seconds kWriteStall{30};
constexpr std::chrono::milliseconds kLinger{20};

class TlsSettings {  // Thread-safe. The settings of new connections.
 public:
  // PEM texts. Errors: invalid if one is malformed or key and certificate do not match.
  Result<void> set(std::string_view certificate_chain, std::string_view key, std::string_view client_ca);
  std::shared_ptr<SSL_CTX> current() const;

 private:
  Guarded<std::shared_ptr<SSL_CTX>> context_;
};

class Connection {
 public:
  using Deadline = SteadyTime;
  Connection(Fd socket, std::shared_ptr<SSL_CTX> context);
  Connection(Fd socket, UserPtr user);  // the local socket's: without TLS, of `user`
  Connection(const Connection&) = delete;

  // Errors: timeout, unavailable (the peer disconnected), bad_request (no TLS, or no common version). Without TLS there is none.
  Result<void> handshake(Deadline deadline);
  const PeerCertificate& peer_certificate() const { return peer_certificate_; }  // what the handshake brought

  auth::RecentToken& recent_token() { return recent_token_; }  // for the thread that serves its requests

  // Blocks for at least one byte; returns 0 at the end of the stream. Errors: timeout, unavailable.
  Result<size_t> read(char* to, size_t size);
  // Reads up to the position that `end_of` finds in what has arrived; it gets the position from which to search and returns npos
  // if there is none yet. The bytes are valid until the next call that reads or releases buffers. Errors: as read; too_large,
  // after which it may be called again with a higher limit.
  using EndOf = size_t (*)(std::string_view bytes, size_t from);
  Result<std::string_view> read_until(EndOf end_of, size_t bytes_max);
  void set_read_deadline(Deadline deadline) { read_deadline_ = deadline; }
  // Whether there are received bytes that were not read yet. The socket does not report them again.
  bool has_buffered_input() const;

  // Buffers until flush() or until the buffer is full. False: the peer is gone, or has accepted no byte for the write timeout
  // (kWriteStall).
  bool write(std::string_view bytes);
  bool flush();
  void expect(size_t bytes);        // makes room for so many bytes that are about to be written, up to a whole record
  bool has_record_to_send() const;  // enough is buffered for a flush
  // Runs `write` without blocking: bytes that the peer does not accept at once stay buffered. flush() then returns false although
  // the connection is not broken(), and a later flush continues. Only while no other thread writes.
  template <typename F>
  bool without_waiting(F&& write) {
    struct WaitAgain {
      bool& waits;
      ~WaitAgain() { waits = true; }
    } again{waits_ = false};
    return write();
  }
  // For peers that may read slowly because a person views the output. Call before several threads write.
  void set_write_timeout(std::chrono::milliseconds timeout) { write_timeout_ = timeout; }
  // `before` is called once, by the next write that must wait for the peer. If it returns false, the write fails and the
  // connection is broken. For one writer.
  void set_before_wait(std::function<bool()> before) { before_wait_ = std::move(before); }
  // Sends close_notify, does not wait for the reply, and closes both directions.
  void close();
  // Closes the sending direction only: the peer reads the end. Received bytes are discarded, later ones stay in the socket.
  void finish();
  bool broken() const { return broken_; }

  // Does not block. True if the peer has closed the connection; received data is kept for the next read.
  bool peer_gone();
  // The same, but blocks until something arrives, for at most kLinger. One system call, where poll(2) and a read would be two.
  // Only while no other thread uses the connection.
  bool linger();

  const Fd& socket() const { return socket_; }
  const sys::Endpoint& peer() const { return peer_; }  // of the local socket: 127.0.0.1 without a port
  // For a connection with many short requests: its buffers are not freed after each one. Call before the first thread waits.
  void keep_buffers();
  void release_buffers();  // call before the connection becomes idle or waits for long

 private:
  class SocketBio;
  struct Step {  // one attempt to move bytes
    size_t count = 0;
    bool is_end = false;  // the peer has closed its direction
    bool wants_input = false, wants_output = false;
    bool waits() const { return wants_input || wants_output; }
  };
  Step receive(char* to, size_t size);
  Result<std::optional<size_t>> receive_bytes(char* to, size_t size);
  Step send(std::string_view bytes);
  Step outcome_of(int done) const;  // of an SSL call, with ssl_mutex_ held
  void say_end();                   // close_notify
  bool write_through(std::string_view& bytes);
  Result<size_t> fill(Deadline deadline);  // one read into in_

  Fd socket_;
  std::shared_ptr<SSL_CTX> context_;          // kept when the settings change
  std::unique_ptr<SSL, void (*)(SSL*)> ssl_;  // null: a local connection
  sys::Endpoint peer_;
  PeerCertificate peer_certificate_;
  auth::RecentToken recent_token_;
  Deadline read_deadline_ = Deadline::max();
  std::chrono::milliseconds write_timeout_ = kWriteStall;
  std::string in_;
  size_t in_used_ = 0;
  size_t searched_ = 0;     // bytes after in_used_ that read_until has searched
  std::mutex ssl_mutex_;    // held around each SSL call; never held while waiting
  std::mutex write_mutex_;  // serializes the TLS records of several writers
  std::string out_;
  std::function<bool()> before_wait_;
  bool waits_ = true, keeps_buffers_ = false;
  bool lingers_ = false;  // the next receive blocks
  std::atomic<bool> broken_ = false;
};

}  // namespace coracle::api
