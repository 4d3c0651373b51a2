// SPDX-License-Identifier: Apache-2.0
// See light_clients.h. libcurl makes the connections; of a response only the end is determined. Two threads, for a machine with
// two cores.
#include "tests/bench/light_clients.h"

#include <curl/curl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace coracle {
namespace {

constexpr int kAskers = 2, kNapMilliseconds = 1000;

curl_blob blob(const std::string& text) { return {const_cast<char*>(text.data()), text.size(), CURL_BLOB_COPY}; }

Error lost(CURLcode code) { return Error(Code::unavailable, curl_easy_strerror(code)); }

class Connection {
 public:
  Connection() = default;
  Connection(const Connection&) = delete;
  ~Connection() { curl_easy_cleanup(easy_); }

  Result<void> connect(const ServerAccess& access, const std::string& path) {
    curl_easy_setopt(easy_, CURLOPT_URL, access.server.c_str());
    curl_easy_setopt(easy_, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(easy_, CURLOPT_NOPROXY, "*");
    curl_blob ca = blob(access.ca_pem), certificate = blob(access.client_certificate_pem), key = blob(access.client_key_pem);
    curl_easy_setopt(easy_, CURLOPT_CAINFO_BLOB, &ca);
    request_ = "GET " + path + " HTTP/1.1\r\nHost: server\r\nAccept: application/json\r\n";
    if (access.token.empty()) {
      curl_easy_setopt(easy_, CURLOPT_SSLCERT_BLOB, &certificate);
      curl_easy_setopt(easy_, CURLOPT_SSLKEY_BLOB, &key);
    } else {
      request_ += "Authorization: Bearer " + access.token + "\r\n";
    }
    request_ += "\r\n";
    if (CURLcode code = curl_easy_perform(easy_); code != CURLE_OK) return lost(code);
    curl_easy_getinfo(easy_, CURLINFO_ACTIVESOCKET, &socket_);
    return {};
  }

  Result<void> ask() {
    size_t sent = 0;
    if (CURLcode code = curl_easy_send(easy_, request_.data(), request_.size(), &sent); code != CURLE_OK) return lost(code);
    if (sent != request_.size()) return Error(Code::unavailable, "the request could not be sent whole");
    return {};
  }

  // Reads available data. Returns whether the response is complete.
  Result<bool> read() {
    std::array<char, 16384> piece;
    for (;;) {
      size_t got = 0;
      CURLcode code = curl_easy_recv(easy_, piece.data(), piece.size(), &got);
      if (code == CURLE_AGAIN) return false;
      if (code != CURLE_OK) return lost(code);
      if (got == 0) return Error(Code::unavailable, "the server has closed the connection");
      answer_.append(piece.data(), got);
      size_t whole = TRY(size_of_answer());
      if (whole == 0 || answer_.size() < whole) continue;
      std::swap(answer_, whole_);
      answer_.clear();
      return true;
    }
  }
  const std::string& whole() const { return whole_; }  // the last response
  curl_socket_t socket() const { return socket_; }

 private:
  Result<size_t> size_of_answer() const {  // 0: not yet known
    constexpr std::string_view kLength = "Content-Length: ";
    size_t end = answer_.find("\r\n\r\n");
    if (end == std::string::npos) return size_t(0);
    if (!answer_.starts_with("HTTP/1.1 200 "))
      return Error(Code::unavailable, "answered " + answer_.substr(0, answer_.find('\r')));
    size_t at = answer_.find(kLength);
    if (at > end && answer_.find("Transfer-Encoding: chunked") < end)
      return answer_.ends_with("\r\n0\r\n\r\n") ? answer_.size() : size_t(0);
    if (at > end) return Error(Code::unavailable, "the answer does not say how long it is");
    return end + 4 + std::strtoull(answer_.c_str() + at + kLength.size(), nullptr, 10);
  }

  CURL* easy_ = curl_easy_init();
  curl_socket_t socket_ = CURL_SOCKET_BAD;
  std::string request_, answer_, whole_;
};

class Asker {  // one thread and its connections
 public:
  Asker() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}
  Asker(const Asker&) = delete;
  ~Asker() { ::close(epoll_); }

  Result<void> add(const ServerAccess& access, const std::string& path) {
    auto connection = std::make_unique<Connection>();
    TRY(connection->connect(access, path));
    epoll_event wanted{.events = EPOLLIN, .data = {.ptr = connection.get()}};
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, connection->socket(), &wanted);
    connections_.push_back(std::move(connection));
    return {};
  }

  Result<void> ask_until(std::chrono::steady_clock::time_point end) {
    for (const auto& connection : connections_) TRY(connection->ask());
    std::array<epoll_event, 64> ready;
    while (std::chrono::steady_clock::now() < end) {
      int count = ::epoll_wait(epoll_, ready.data(), int(ready.size()), kNapMilliseconds);
      for (int i = 0; i < count; ++i) {
        auto& connection = *static_cast<Connection*>(ready[size_t(i)].data.ptr);
        bool whole = TRY(connection.read());
        if (!whole) continue;
        answers++;
        TRY(connection.ask());
      }
    }
    return {};
  }

  uint64_t answers = 0;
  std::optional<Error> failed;

 private:
  int epoll_;
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace

Result<double> answers_per_second(const ServerAccess& access, const std::string& path, int connections,
                                  std::chrono::milliseconds span) {
  std::array<Asker, kAskers> askers;
  for (int i = 0; i < connections; ++i) TRY(askers[size_t(i % kAskers)].add(access, path));
  auto begun = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> threads;
    for (Asker& asker : askers)
      threads.emplace_back([&asker, end = begun + span] {
        auto done = asker.ask_until(end);
        if (!done) asker.failed = done.take_error();
      });
  }
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  uint64_t answers = 0;
  for (Asker& asker : askers) {
    if (asker.failed) return *asker.failed;
    answers += asker.answers;
  }
  return double(answers) / took.count();
}

Result<std::string> answer_bytes(const ServerAccess& access, const std::string& path) {
  Connection connection;
  TRY(connection.connect(access, path));
  TRY(connection.ask());
  for (bool whole = false; !whole;) {
    pollfd readable{connection.socket(), POLLIN, 0};
    if (::poll(&readable, 1, kNapMilliseconds * 10) <= 0) return Error(Code::timeout, "no whole answer");
    whole = TRY(connection.read());
  }
  return connection.whole();
}

struct StalledClients::All {
  std::vector<std::unique_ptr<Connection>> connections;
};

StalledClients::StalledClients(std::unique_ptr<All> all) : all_(std::move(all)) {}
StalledClients::StalledClients(StalledClients&&) noexcept = default;
StalledClients::~StalledClients() = default;

Result<StalledClients> StalledClients::make(const ServerAccess& access, const std::string& path, int count) {
  auto all = std::make_unique<All>();
  for (int i = 0; i < count; ++i) {
    auto connection = std::make_unique<Connection>();
    TRY(connection->connect(access, path));
    TRY(connection->ask());
    all->connections.push_back(std::move(connection));
  }
  return StalledClients(std::move(all));
}

}  // namespace coracle
