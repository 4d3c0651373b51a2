// SPDX-License-Identifier: Apache-2.0
// A client that sends exact bytes and returns the exact response: for input that real clients do not send.
#pragma once

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "daemon/api/certificates.h"
#include "runtime/base/json.h"
#include "runtime/base/text.h"

namespace coracle::api {

struct RawAnswer {
  int status = 0;
  std::string head, body;
  std::string header(std::string_view name) const {
    std::string wanted = "\r\n" + to_lower(name) + ": ", all = to_lower(head);
    size_t at = all.find(wanted);
    if (at == std::string::npos) return {};
    at += wanted.size();
    return head.substr(at, head.find("\r\n", at) - at);
  }
  json::value json() const {
    auto value = parse_json(body);
    EXPECT_TRUE(value) << body;
    return value ? *value : json::value();
  }
};

class RawClient {
 public:
  explicit RawClient(uint16_t port, const KeyPair* identity = nullptr)
      : context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free) {
    if (identity) use(*identity);
    std::string where = "127.0.0.1:" + std::to_string(port);
    bio_.reset(BIO_new_ssl_connect(context_.get()));
    BIO_set_conn_hostname(bio_.get(), where.c_str());
    BIO_set_conn_mode(bio_.get(), BIO_SOCK_NODELAY);  // as Go's clients do; otherwise the first request waits for the end of the
                                                      // handshake
    connected = BIO_do_connect(bio_.get()) == 1 && BIO_do_handshake(bio_.get()) == 1;
  }
  bool connected = false;

  bool send(std::string_view bytes) { return BIO_write(bio_.get(), bytes.data(), int(bytes.size())) == int(bytes.size()); }

  // "" at the end of the stream.
  std::string receive_some() {
    char buffer[16384];
    int count = BIO_read(bio_.get(), buffer, sizeof buffer);
    return count > 0 ? std::string(buffer, size_t(count)) : std::string();
  }
  std::string receive_until(std::string_view end) {
    while (pending_.find(end) == std::string::npos) {
      std::string some = receive_some();
      if (some.empty()) return std::exchange(pending_, {});
      pending_ += some;
    }
    size_t size = pending_.find(end) + end.size();
    std::string out = pending_.substr(0, size);
    pending_.erase(0, size);
    return out;
  }
  std::string receive_exactly(size_t size) {
    while (pending_.size() < size) {
      std::string some = receive_some();
      if (some.empty()) break;
      pending_ += some;
    }
    std::string out = pending_.substr(0, size);
    pending_.erase(0, out.size());
    return out;
  }
  RawAnswer receive_head() {
    RawAnswer answer;
    answer.head = receive_until("\r\n\r\n");
    if (answer.head.size() > 12) answer.status = std::atoi(answer.head.c_str() + 9);
    return answer;
  }
  std::string receive_chunk() {  // "" for the last chunk
    size_t size = std::strtoul(receive_until("\r\n").c_str(), nullptr, 16);
    std::string chunk = receive_exactly(size);
    receive_exactly(2);
    return chunk;
  }
  RawAnswer receive() {
    RawAnswer answer = receive_head();
    if (std::string length = answer.header("Content-Length"); !length.empty()) answer.body = receive_exactly(std::stoul(length));
    else if (answer.header("Transfer-Encoding") == "chunked")
      for (std::string chunk; !(chunk = receive_chunk()).empty();) answer.body += chunk;
    return answer;
  }
  bool at_end() { return pending_.empty() && receive_some().empty(); }
  void close() { bio_.reset(); }
  int descriptor() const { return int(BIO_get_fd(bio_.get(), nullptr)); }

  RawAnswer ask(const std::string& method, const std::string& target, const std::string& body = {},
                const std::string& headers = {}) {
    std::string text = method + " " + target + " HTTP/1.1\r\nHost: x\r\n" + headers;
    if (!body.empty()) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    send(text + "\r\n" + body);
    return receive();
  }
  RawAnswer get(const std::string& target, const std::string& headers = {}) { return ask("GET", target, {}, headers); }

 private:
  void use(const KeyPair& identity) {
    std::unique_ptr<BIO, decltype(&BIO_free)> certificate(
        BIO_new_mem_buf(identity.certificate.data(), int(identity.certificate.size())), BIO_free);
    std::unique_ptr<BIO, decltype(&BIO_free)> key(BIO_new_mem_buf(identity.key.data(), int(identity.key.size())), BIO_free);
    X509* parsed = PEM_read_bio_X509(certificate.get(), nullptr, nullptr, nullptr);
    EVP_PKEY* parsed_key = PEM_read_bio_PrivateKey(key.get(), nullptr, nullptr, nullptr);
    EXPECT_EQ(SSL_CTX_use_certificate(context_.get(), parsed), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey(context_.get(), parsed_key), 1);
    X509_free(parsed);
    EVP_PKEY_free(parsed_key);
  }
  struct BioFree {
    void operator()(BIO* bio) const { BIO_free_all(bio); }
  };
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<BIO, BioFree> bio_;
  std::string pending_;
};

}  // namespace coracle::api
