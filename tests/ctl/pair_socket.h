// SPDX-License-Identifier: Apache-2.0
// A socket pair: the test is the server at the other end of a stream's socket.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <string_view>

#include "ctl/session.h"
#include "runtime/base/fd.h"

namespace coracle::ctl {

class PairSocket : public Session::Socket {
 public:
  explicit PairSocket(Fd fd) : fd_(std::move(fd)) {}
  int fd() const override { return fd_.get(); }
  Result<std::string> read() override {
    char buffer[4096];
    ssize_t got = ::recv(fd_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got > 0) return std::string(buffer, size_t(got));
    if (got < 0 && errno == EAGAIN) return std::string();
    return Error(Code::unavailable, "closed");
  }
  Result<void> write(std::string_view bytes) override {
    if (::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) != ssize_t(bytes.size()))
      return Error(Code::unavailable, "broken");
    return {};
  }
  Result<size_t> write_some(std::string_view bytes) override {
    ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return size_t(sent);
    if (errno == EAGAIN) return size_t(0);
    return Error(Code::unavailable, "broken");
  }

 private:
  Fd fd_;
};

// An unmasked frame from the server: a channel and its bytes.
inline std::string frame(uint8_t channel, std::string_view bytes) {
  std::string payload = std::string(1, char(channel)).append(bytes), head(1, char(0x82));
  if (payload.size() < 126) head += char(payload.size());
  else head.append(1, char(126)).append(1, char(payload.size() >> 8)).append(1, char(payload.size() & 255));
  return head + payload;
}

// The client's next frame, unmasked: channel and bytes. Less than 64 KiB.
inline std::string next_from_client(const Fd& server) {
  auto receive = [&](unsigned char* to, size_t size) { return ::recv(server.get(), to, size, MSG_WAITALL) == ssize_t(size); };
  unsigned char head[2], longer[2], mask[4];
  if (!receive(head, 2)) return "gone";
  EXPECT_EQ(head[0], 0x82);
  EXPECT_TRUE(head[1] & 0x80) << "clients mask";
  size_t size = head[1] & 0x7f;
  EXPECT_NE(size, 127u);
  if (size == 126 && receive(longer, 2)) size = size_t(longer[0]) << 8 | longer[1];
  EXPECT_TRUE(receive(mask, 4));
  std::string payload(size, '\0');
  EXPECT_TRUE(receive(reinterpret_cast<unsigned char*>(payload.data()), size));
  for (size_t i = 0; i < size; ++i) payload[i] = char(payload[i] ^ mask[i % 4]);
  return payload;
}

}  // namespace coracle::ctl
