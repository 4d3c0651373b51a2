// SPDX-License-Identifier: Apache-2.0
// Small HTTP servers on this machine for the tests of pulls: each connection is one request and one response, plain or over TLS.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace coracle::image::test {

inline int bind_to(const std::string& host, uint16_t& port, bool is_shared) {  // a free port
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int shared = is_shared;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &shared, sizeof shared);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  EXPECT_EQ(::inet_pton(AF_INET, host.c_str(), &address.sin_addr), 1) << host;
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  port = ntohs(address.sin_port);
  return fd;
}

inline int listen_on(const std::string& host, uint16_t& port) {
  int fd = bind_to(host, port, false);
  EXPECT_EQ(::listen(fd, 64), 0);
  return fd;
}

inline int connect_to(uint16_t port) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  ::close(fd);
  return -1;
}

// Serves each connection on its own thread until it is destroyed.
class Server {
 public:
  explicit Server(std::function<void(int)> serve, std::string address = "127.0.0.1")
      : serve_(std::move(serve)), address_(std::move(address)), listener_(listen_on(address_, port_)) {
    thread_ = std::jthread([this](std::stop_token stop) {
      std::vector<std::jthread> connections;
      while (!stop.stop_requested()) {
        pollfd waiting{listener_, POLLIN, 0};
        if (::poll(&waiting, 1, 50) <= 0) continue;
        int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0) continue;
        connections.emplace_back([this, fd] {
          serve_(fd);
          ::close(fd);
        });
      }
    });
  }
  ~Server() {
    thread_ = {};
    ::close(listener_);
  }
  uint16_t port() const { return port_; }
  std::string host() const { return address_ + ":" + std::to_string(port_); }

 private:
  std::function<void(int)> serve_;
  std::string address_;
  uint16_t port_ = 0;
  int listener_;
  std::jthread thread_;
};

// Reads one request's head and sends a response that ends the connection: sufficient for a token server or a redirect.
inline std::string read_head(int fd) {
  std::string head;
  char c;
  timeval timeout{60, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  while (head.size() < 16384 && head.find("\r\n\r\n") == head.npos && ::read(fd, &c, 1) == 1) {
    head += c;
    if (head[0] == 0x16) break;  // a TLS handshake, which this server does not support
  }
  return head;
}
inline void answer(int fd, const std::string& status, const std::string& headers, const std::string& body) {
  std::string text = "HTTP/1.1 " + status + "\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
                     headers + "\r\n" + body;
  (void)!::write(fd, text.data(), text.size());
}

// A certificate for 127.0.0.1 that is its own authority, in FILE.pem with FILE.key. False: there is no openssl.
inline bool make_certificate(const std::string& file) {
  return ::system(("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout " + file + ".key -out " +
                   file + ".pem -days 30 -subj /CN=own -addext subjectAltName=IP:127.0.0.1 2>/dev/null")
                      .c_str()) == 0;
}

// Answers each request with the bytes that `respond` makes of its head, whole or not, and closes the connection.
class Responder {
 public:
  using Respond = std::function<std::string(const std::string& head)>;
  struct Tls {
    std::string certificate;     // as for make_certificate; "": plain HTTP
    std::string clients_signer;  // a file in PEM: clients may show certificates that it signed; "": they are not asked for one
  };
  explicit Responder(Respond respond, const Tls& tls = {})
      : respond_(std::move(respond)), tls_(context_of(tls)), is_tls_(!tls.certificate.empty()), server_([this](int fd) {
          if (tls_) serve_tls(fd);
          else
            send_all(respond_(read_head(fd)), [fd](const char* at, size_t size) { return ::send(fd, at, size, MSG_NOSIGNAL); });
        }) {}
  std::string host() const { return server_.host(); }
  std::string url() const { return (is_tls_ ? "https://" : "http://") + host(); }
  int clients_certificates() const { return clients_certificates_; }  // so many requests came with one

 private:
  using Context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;

  static Context context_of(const Tls& tls) {
    Context context(nullptr, SSL_CTX_free);
    if (tls.certificate.empty()) return context;
    context.reset(SSL_CTX_new(TLS_server_method()));
    EXPECT_EQ(SSL_CTX_use_certificate_chain_file(context.get(), (tls.certificate + ".pem").c_str()), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey_file(context.get(), (tls.certificate + ".key").c_str(), SSL_FILETYPE_PEM), 1);
    if (!tls.clients_signer.empty()) {
      EXPECT_EQ(SSL_CTX_load_verify_locations(context.get(), tls.clients_signer.c_str(), nullptr), 1);
      SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    }
    return context;
  }

  template <typename Send>
  static void send_all(const std::string& text, const Send& send) {
    for (size_t sent = 0; sent < text.size();) {
      const auto count = send(text.data() + sent, std::min<size_t>(text.size() - sent, 1 << 20));
      if (count <= 0) return;
      sent += size_t(count);
    }
  }

  void serve_tls(int fd) {
    timeval timeout{60, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    const std::unique_ptr<SSL, decltype(&SSL_free)> stream(SSL_new(tls_.get()), SSL_free);
    SSL_set_fd(stream.get(), fd);
    if (SSL_accept(stream.get()) != 1) return;
    std::string head;
    for (char c; head.size() < 16384 && head.find("\r\n\r\n") == head.npos && SSL_read(stream.get(), &c, 1) == 1;) head += c;
    if (head.empty()) return;
    if (X509* shown = SSL_get1_peer_certificate(stream.get())) {
      ++clients_certificates_;
      X509_free(shown);
    }
    send_all(respond_(head), [&](const char* at, size_t size) { return SSL_write(stream.get(), at, int(size)); });
    SSL_shutdown(stream.get());
  }

  const Respond respond_;
  const Context tls_;
  const bool is_tls_;
  std::atomic<int> clients_certificates_{0};
  Server server_;
};

inline std::string response(const std::string& status, const std::string& headers, const std::string& body) {
  return "HTTP/1.1 " + status + "\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + headers +
         "\r\n" + body;
}

}  // namespace coracle::image::test
