// SPDX-License-Identifier: Apache-2.0
// See grpc_health.h. A minimal HTTP/2 client for a single request: it sends uncompressed headers and ignores those of the
// response. So it does not read grpc-status and does not need it: a response without SERVING is a failure in any case.
#include "daemon/node/probe/grpc_health.h"

namespace coracle::node {
namespace {

constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr size_t kFrameHead = 9;
constexpr size_t kFrameMax = 16 << 10;   // the default limit, which this client does not change
constexpr size_t kAnswerMax = 64 << 10;  // limit of all bytes from the server
constexpr size_t kServiceMax = 120;
constexpr char kStream = 1;

enum FrameType : uint8_t {
  kDataFrame = 0,
  kHeadersFrame = 1,
  kResetFrame = 3,
  kSettingsFrame = 4,
  kPingFrame = 6,
  kGoAwayFrame = 7
};
enum FrameFlag : uint8_t { kEndStream = 1, kAck = 1, kEndHeaders = 4, kPadded = 8 };

std::string frame(FrameType type, uint8_t flags, char stream, std::string_view payload) {
  std::string out{
      char(payload.size() >> 16), char(payload.size() >> 8), char(payload.size()), char(type), char(flags), 0, 0, 0, stream};
  return out.append(payload);
}

std::string header(std::string_view name, std::string_view value) {  // a literal header field without indexing and compression
  std::string out{0, char(name.size())};
  return out.append(name).append(1, char(value.size())).append(value);
}

std::string_view without_padding(uint8_t flags, std::string_view payload) {
  if (!(flags & kPadded) || payload.empty()) return payload;
  size_t padding = size_t(uint8_t(payload[0])) + 1;
  return payload.size() < padding ? std::string_view() : payload.substr(1, payload.size() - padding);
}

// Reads the stream's data to its end.
Result<std::string> read_answer(Connection& connection) {
  std::string arrived, data;
  for (size_t taken = 0; taken <= kAnswerMax;) {
    auto byte = [&](size_t i) { return size_t(uint8_t(arrived[i])); };
    size_t size = arrived.size() < kFrameHead ? 0 : byte(0) << 16 | byte(1) << 8 | byte(2);
    if (size > kFrameMax) return Error(Code::invalid, "the answer is no gRPC");
    if (arrived.size() < kFrameHead + size) {
      std::string_view more = TRY(connection.read());
      if (more.empty()) return Error(Code::unavailable, "the connection was closed");
      taken += more.size();
      arrived.append(more);
      continue;
    }
    uint8_t type = uint8_t(arrived[3]), flags = uint8_t(arrived[4]);
    std::string_view payload = std::string_view(arrived).substr(kFrameHead, size);
    // Write errors are ignored: a server may have closed after its last byte, and a lost connection is noticed by reading.
    if (type == kSettingsFrame && !(flags & kAck)) (void)connection.write(frame(kSettingsFrame, kAck, 0, ""));
    if (type == kPingFrame && !(flags & kAck)) (void)connection.write(frame(kPingFrame, kAck, 0, payload));
    if (type == kResetFrame || type == kGoAwayFrame) return Error(Code::unavailable, "the server refused the request");
    if (type == kDataFrame) data.append(without_padding(flags, payload));
    if ((type == kDataFrame || type == kHeadersFrame) && flags & kEndStream) return data;
    arrived.erase(0, kFrameHead + size);
  }
  return Error(Code::invalid, "the answer does not end");
}

}  // namespace

std::string health_request(const std::string& authority, std::string_view service) {
  service = service.substr(0, kServiceMax);
  std::string message;
  if (!service.empty()) message = std::string("\x0a", 1) + char(service.size()) + std::string(service);
  std::string body = std::string(4, '\0') + char(message.size()) + message;  // one byte of flags, four of length
  std::string headers = header(":method", "POST") + header(":scheme", "http") + header(":path", "/grpc.health.v1.Health/Check") +
                        header(":authority", authority) + header("content-type", "application/grpc") + header("te", "trailers") +
                        header("user-agent", "kube-probe/1.36");
  return kPreface + frame(kSettingsFrame, 0, 0, "") + frame(kHeadersFrame, kEndHeaders, kStream, headers) +
         frame(kDataFrame, kEndStream, kStream, body);
}

Result<bool> is_serving(const std::string& host, uint16_t port, std::string_view service, const AddressLookup& lookup,
                        const CallContext& context) {
  Connection connection = TRY(Connection::open(host, port, lookup, context));
  std::string authority = host_and_port(host, port), about = "health check of " + authority;
  TRY(connection.write(health_request(authority, service)).wrap(about));
  std::string answer = TRY(read_answer(connection).wrap(about));
  if (answer.empty()) return Error(Code::unsupported, "this server does not implement the grpc health protocol");
  static constexpr std::string_view kServing("\0\0\0\0\2\x08\1", 7);
  return answer == kServing;
}

}  // namespace coracle::node
