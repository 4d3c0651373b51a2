// SPDX-License-Identifier: Apache-2.0
// See light_watchers.h. libcurl makes the connections; the data is read as bytes.
#include "tests/bench/light_watchers.h"

#include <curl/curl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

namespace coracle {
namespace {

constexpr int kNapMs = 100;  // delay until the end is noticed
constexpr size_t kTextMax = 64;

Error broken(CURLcode code) { return Error(Code::unavailable, curl_easy_strerror(code)); }

curl_blob blob_of(const std::string& text) { return {const_cast<char*>(text.data()), text.size(), CURL_BLOB_COPY}; }

}  // namespace

struct LightWatchers::Watch {
  CURL* easy = curl_easy_init();
  curl_socket_t socket = CURL_SOCKET_BAD;
  std::string tail;  // last bytes read: the word may be split
  ~Watch() { curl_easy_cleanup(easy); }

  Result<void> connect(const ServerAccess& access, const std::string& path) {
    curl_easy_setopt(easy, CURLOPT_URL, access.server.c_str());
    curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    curl_blob ca = blob_of(access.ca_pem), certificate = blob_of(access.client_certificate_pem),
              key = blob_of(access.client_key_pem);
    curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &ca);
    curl_easy_setopt(easy, CURLOPT_SSLCERT_BLOB, &certificate);
    curl_easy_setopt(easy, CURLOPT_SSLKEY_BLOB, &key);
    if (CURLcode code = curl_easy_perform(easy); code != CURLE_OK) return broken(code);
    curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &socket);
    std::string head = "GET " + path + " HTTP/1.1\r\nHost: server\r\nAccept: application/json\r\n\r\n";
    size_t sent = 0;
    CURLcode code = curl_easy_send(easy, head.data(), head.size(), &sent);
    if (code != CURLE_OK) return broken(code);
    if (sent != head.size()) return Error(Code::unavailable, "the request could not be sent whole");
    return {};
  }
};

LightWatchers::LightWatchers() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

LightWatchers::~LightWatchers() {
  reader_ = {};
  ::close(epoll_);
}

Result<std::unique_ptr<LightWatchers>> LightWatchers::make(const ServerAccess& access, const std::string& path, int count,
                                                           std::string word, std::function<void(int, std::string_view)> seen) {
  std::unique_ptr<LightWatchers> all(new LightWatchers());
  all->word_ = std::move(word);
  all->seen_ = std::move(seen);
  for (int i = 0; i < count; ++i) {
    auto watch = std::make_unique<Watch>();
    TRY(watch->connect(access, path));
    epoll_event wanted{.events = EPOLLIN, .data = {.u32 = uint32_t(i)}};
    ::epoll_ctl(all->epoll_, EPOLL_CTL_ADD, watch->socket, &wanted);
    all->watches_.push_back(std::move(watch));
  }
  all->reader_ = std::jthread([watchers = all.get()](std::stop_token stop) { watchers->read_all(stop); });
  return all;
}

void LightWatchers::read_all(std::stop_token stop) {
  std::array<epoll_event, 64> ready;
  while (!stop.stop_requested()) {
    int count = ::epoll_wait(epoll_, ready.data(), int(ready.size()), kNapMs);
    for (int i = 0; i < count; ++i) {
      auto taken = take(int(ready[size_t(i)].data.u32));
      if (taken) continue;
      std::printf("not ok - a watch ended: %s\n", taken.error().text().c_str());
      std::exit(1);
    }
  }
}

Result<void> LightWatchers::take(int number) {
  Watch& watch = *watches_[size_t(number)];
  std::array<char, 16384> piece;
  for (;;) {
    size_t got = 0;
    CURLcode code = curl_easy_recv(watch.easy, piece.data(), piece.size(), &got);
    if (code == CURLE_AGAIN) return {};
    if (code != CURLE_OK) return broken(code);
    if (got == 0) return Error(Code::unavailable, "the server has closed the connection");
    watch.tail.append(piece.data(), got);
    size_t from = 0;
    for (size_t at; (at = watch.tail.find(word_, from)) != std::string::npos;) {
      size_t begin = at + word_.size(), end = watch.tail.find('"', begin);
      if (end == std::string::npos) break;
      seen_(number, std::string_view(watch.tail).substr(begin, end - begin));
      from = end;
    }
    size_t keep = std::min(watch.tail.size() - from, word_.size() + kTextMax);
    watch.tail.erase(0, watch.tail.size() - keep);
  }
}

}  // namespace coracle
