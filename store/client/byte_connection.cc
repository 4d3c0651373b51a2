// SPDX-License-Identifier: Apache-2.0
// See byte_connection.h.
#include "store/client/byte_connection.h"

#include <poll.h>

#include <utility>

namespace coracle {
namespace {

constexpr size_t kUpgradeHeadBytesMax = 64u << 10;
constexpr size_t kReadBytesMax = 256 << 10;
constexpr int kUpgradeTimeoutMs = 30'000, kRestTimeoutMs = 2'000;

}  // namespace

Result<std::string> ByteConnection::read() {
  std::string all = std::exchange(ahead_, {});
  char buffer[16384];
  for (;;) {  // TLS may buffer data that poll(2) does not report
    has_more_ = all.size() >= kReadBytesMax;
    if (has_more_) return all;
    auto got = receive_some(buffer, sizeof buffer);
    if (!got && all.empty()) return got.take_error();
    if (!got || *got == 0) return all;
    all.append(buffer, *got);
  }
}

Result<void> ByteConnection::write(std::string_view bytes) {
  while (!bytes.empty()) {
    size_t sent = TRY(write_some(bytes));
    bytes.remove_prefix(sent);
    pollfd wait{fd(), POLLOUT, 0};
    if (sent == 0) (void)::poll(&wait, 1, -1);  // sending again reports the error
  }
  return {};
}

Result<std::string> ByteConnection::read_head() {
  std::string head;
  for (;;) {
    size_t end = head.find("\r\n\r\n");
    if (end != head.npos) {
      ahead_ = head.substr(end + 4);
      return head.substr(0, end + 2);
    }
    if (head.size() > kUpgradeHeadBytesMax) return Error(Code::too_large, "the server's answer has too long a head");
    pollfd wait{fd(), POLLIN, 0};
    if (::poll(&wait, 1, kUpgradeTimeoutMs) == 0) return Error(Code::timeout, "the server did not answer the upgrade");
    head += TRY(read());
  }
}

std::string ByteConnection::read_rest(size_t length) {
  std::string body = std::exchange(ahead_, {});
  while (body.size() < length) {
    pollfd wait{fd(), POLLIN, 0};
    if (::poll(&wait, 1, kRestTimeoutMs) <= 0) break;
    auto more = read();
    if (!more) break;
    body += *more;
  }
  return body;
}

}  // namespace coracle
