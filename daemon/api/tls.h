// SPDX-License-Identifier: Apache-2.0
// TLS over a non-blocking socket: buffered, with a deadline on every wait, and safe for one reader beside several writers
// (an exec reads and writes at once). OpenSSL is tuned for many idle connections: no session cache, no tickets, buffers
// given back when they are empty. Renewed certificates are swapped in under running connections.
//   socket ⇄ SSL ⇄ in_/out_ buffers ⇄ read/write
// Source: openssl SSL_CTX_set_mode(3), RFC 8446.
#pragma once

#include <openssl/ssl.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/guarded.h"
#include "runtime/base/result.h"
#include "runtime/sys/socket.h"

namespace coracle::api {

// What a client's certificate says, once it was verified against our CA.
struct PeerCertificate {
  bool presented = false, valid = false;
  std::string common_name;
  std::vector<std::string> organizations;
  std::string fingerprint;  // SHA-256, hex
};

constexpr std::chrono::seconds kWriteStall{30};

class TlsSettings {  // Thread-safe. What a new connection is opened with.
 public:
  // PEM texts. Errors: invalid when they are not what they should be, or do not belong together.
  Result<void> set(std::string_view certificate_chain, std::string_view key, std::string_view client_ca);
  std::shared_ptr<SSL_CTX> current() const;

 private:
  Guarded<std::shared_ptr<SSL_CTX>> context_;
};

class TlsConnection {
 public:
  using Deadline = SteadyTime;
  TlsConnection(Fd socket, std::shared_ptr<SSL_CTX> context);
  TlsConnection(const TlsConnection&) = delete;

  // Errors: timeout, unavailable (the peer went away), bad_request (it does not speak TLS, or not ours).
  Result<void> handshake(Deadline deadline);
  PeerCertificate peer_certificate() const;

  // Waits for at least one byte; 0 bytes at the end of the stream. Errors: timeout, unavailable.
  Result<size_t> read(char* to, size_t size);
  // Up to and including `end`, taken out of the stream. Errors: as read; too_large, after which it can be asked again for more.
  Result<std::string> read_until(std::string_view end, size_t bytes_max);
  void set_read_deadline(Deadline deadline) { read_deadline_ = deadline; }
  // Bytes that were received and not yet asked for: somebody must read them, no socket will report them again.
  bool has_buffered_input() const;

  // Buffered until flush() or a full buffer. False: the peer is gone, or has not taken a byte for its patience (kWriteStall).
  bool write(std::string_view bytes);
  bool flush();
  bool has_record_to_send() const;  // enough is buffered that it is time to flush
  // What `write` writes stays here as far as the peer does not take it at once; flush() then returns false on a connection that
  // is not broken(), and a later one goes on. Where nobody else writes meanwhile.
  bool without_waiting(const std::function<bool()>& write);
  // Where a peer that reads slowly is in its right: a person looks at the output. Before several threads write.
  void set_write_patience(std::chrono::milliseconds patience) { write_patience_ = patience; }
  // `before` is called by the next write that has to wait until the peer reads, once. False: it does not wait, and the connection
  // is broken. For one writer.
  void set_before_wait(std::function<bool()> before) { before_wait_ = std::move(before); }
  // Says goodbye (close_notify), without waiting for the answer, and ends both directions.
  void close();
  // The same for our direction alone: the peer reads the end. What it has sent is forgotten, what it sends stays in the socket.
  void finish();
  bool broken() const { return broken_; }

  // Does not wait: true when the peer has closed; what it sent instead is kept for the next read.
  bool peer_gone();

  const Fd& socket() const { return socket_; }
  const sys::Endpoint& peer() const { return peer_; }
  const sys::Endpoint& local() const { return local_; }
  // While it serves one short request after the other: its buffers are not given back after each. Before the first thread waits.
  void keep_buffers();
  void release_buffers();  // before it rests, or waits for long

 private:
  bool write_through(std::string_view& bytes);
  Result<size_t> fill(Deadline deadline);  // one read from SSL into in_

  Fd socket_;
  std::shared_ptr<SSL_CTX> context_;  // outlives a swap
  std::unique_ptr<SSL, void (*)(SSL*)> ssl_;
  sys::Endpoint peer_, local_;
  Deadline read_deadline_ = Deadline::max();
  std::chrono::milliseconds write_patience_ = kWriteStall;
  std::string in_;
  size_t in_used_ = 0;
  size_t searched_ = 0;     // bytes behind in_used_ that read_until has looked at
  std::mutex ssl_mutex_;    // around each SSL call; never held while waiting
  std::mutex write_mutex_;  // one record stream at a time
  std::string out_;
  std::function<bool()> before_wait_;
  bool waits_ = true, keeps_buffers_ = false;
  std::atomic<bool> broken_ = false;
};

}  // namespace coracle::api
