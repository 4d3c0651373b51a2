// SPDX-License-Identifier: Apache-2.0
// Port-forward over WebSocket channels: one connection to each port in the request, with two channels each, which begin with the
// port number. Version 5 is an extension of coraclectl: message 255 closes one channel, as for exec. Without it, only the end of
// all connections is visible.
#include <deque>

#include "daemon/api/byte_queue.h"
#include "daemon/api/forward.h"
#include "daemon/api/port_forward.h"
#include "daemon/api/port_forward_pairs.h"
#include "daemon/api/upgrade.h"
#include "runtime/base/thread.h"

namespace coracle::api {
namespace {

class ForwardChannels {
 public:
  ForwardChannels(Connection& connection, WebSocket& socket)
      : connection_(connection),
        socket_(socket),
        protocol_(channel_protocol(socket.protocol()).value_or(ChannelProtocol{4, false})) {}

  bool write(uint8_t channel, std::string_view bytes) {
    return socket_.send(opcode_of(protocol_), encode_channel(protocol_, channel, bytes));
  }
  bool tells_ends() const { return protocol_.version >= 5; }
  ByteQueue& input(size_t index) { return inputs_[index]; }

  void begin(PodStreams& streams, const ForwardRequest& request) {
    open_.with([&](size_t& open) { open = request.ports.size(); });
    inputs_.resize(request.ports.size());
    for (size_t i = 0; i < request.ports.size(); i++)
      for (uint8_t channel : {data_channel(i), error_channel(i)}) write(channel, port_greeting(request.ports[i]));
    for (size_t i = 0; i < request.ports.size(); i++)
      running_.emplace_back(streams, request.pod, request.uid, request.ports[i], ends(i));
  }

  // Reads until the client disconnects or has answered the close frame.
  void receive() {
    while (wait_for_space()) {
      auto message = socket_.receive();
      if (!message || !*message) return;
      auto got = decode_channel(protocol_, (*message)->payload);
      if (!got) return socket_.close(1002, got.error().text());
      take(*got);
    }
  }

  // After the last connection has ended: sends a close frame and waits some time for the client to disconnect.
  void say_goodbye(std::stop_token left) {
    bool all = open_.wait(
        left, [](size_t open) { return open == 0; }, [](size_t open) { return open == 0; });
    if (!all) return;
    socket_.close();
    (void)open_.wait_until(
        left, std::chrono::steady_clock::now() + kGoodbye, [](size_t) { return false; }, [](size_t) { return 0; });
    sys::shut_down(connection_.socket());
  }

 private:
  ForwardEnds ends(size_t index) {
    ForwardEnds ends;
    ends.read = [this, index] {
      std::string bytes = input(index).take();
      taken_.signal();
      return bytes;
    };
    ends.stop_reading = [this, index] {
      input(index).abandon();
      taken_.signal();
    };
    ends.write = [this, index](std::string_view bytes) { return write(data_channel(index), bytes); };
    ends.finish = [this, index] {
      if (tells_ends()) write(kCloseChannel, std::string(1, char(data_channel(index))));
    };
    ends.closed = [this, index](std::string_view why) {
      if (!why.empty()) write(error_channel(index), why);
      open_.with([](size_t& open) { open--; });
      open_.notify();
    };
    ends.hears_half_closes = tells_ends();
    return ends;
  }

  void take(const ChannelBytes& got) {
    bool ends = got.channel == kCloseChannel && tells_ends() && got.bytes.size() == 1;
    uint8_t channel = ends ? uint8_t(got.bytes[0]) : got.channel;
    size_t index = channel / 2;
    if (channel != data_channel(index) || index >= inputs_.size()) return;  // only the server sends on error channels
    if (ends) input(index).end();
    else (void)input(index).put(got.bytes);  // false after the pod has closed its receiving side, which is fine
  }

  bool wait_for_space() {
    for (;;) {
      taken_.clear();
      size_t waiting = 0;
      for (const ByteQueue& input : inputs_) waiting += input.size();
      if (waiting < kBacklogMax) return true;
      if (sys::wait_gone(connection_.socket().get(), taken_.fd())) return false;
    }
  }

  Connection& connection_;
  WebSocket& socket_;
  const ChannelProtocol protocol_;
  sys::Wakeup taken_;
  std::deque<ByteQueue> inputs_;
  Guarded<size_t> open_{size_t(0)};  // number of open connections
  std::deque<Forward> running_;
};

}  // namespace

void forward_channels(PodStreams& streams, Connection& connection, WebSocket& socket, const ForwardRequest& request) {
  connection.set_write_timeout(kStreamTimeout);
  ForwardChannels channels(connection, socket);
  channels.begin(streams, request);
  std::jthread goodbye = start_thread("streams", [&](std::stop_token left) { channels.say_goodbye(left); });
  channels.receive();
  sys::shut_down(connection.socket());  // wakes blocked writers
}

}  // namespace coracle::api
