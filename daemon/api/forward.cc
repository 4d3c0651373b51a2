// SPDX-License-Identifier: Apache-2.0
// See forward.h.
#include "daemon/api/forward.h"

#include <array>

#include "runtime/base/text.h"
#include "runtime/base/thread.h"
#include "store/object/status.h"

namespace coracle::api {

Result<uint16_t> read_port(std::string_view text) {
  auto port = parse_number<uint16_t>(text);
  if (!port) return bad_request("unable to parse " + quoted(text) + " as a port");
  if (*port == 0) return bad_request("port " + quoted(text) + " must be > 0");
  return *port;
}

Forward::Forward(PodStreams& streams, Key pod, std::string pod_uid, uint16_t port, ForwardEnds ends)
    : streams_(streams),
      pod_(std::move(pod)),
      pod_uid_(std::move(pod_uid)),
      port_(port),
      ends_(std::move(ends)),
      thread_(start_thread("streams", [this] { run(); })) {}

Forward::~Forward() {
  stop_.request_stop();
  wake_.signal();
  ends_.stop_reading();
}

void Forward::run() {
  auto done = carry();
  std::string why;
  if (!done)
    why = "error forwarding port " + std::to_string(port_) + " to pod " + pod_.name + ", uid " + pod_uid_ + ": " +
          done.error().text();
  ends_.closed(why);
  over_ = true;
}

Result<void> Forward::carry() {
  Fd socket = TRY(streams_.connect(pod_, port_, stop_.get_token()));
  std::jthread outward = start_thread("streams", [&] { carry_out(socket); });
  carry_in(socket);
  return {};
}

void Forward::carry_in(const Fd& socket) {
  for (std::string bytes; !(bytes = ends_.read()).empty();) {
    progress_.with([](Progress& progress) { progress.heard++; });
    progress_.notify();
    if (!sys::send_all(socket, bytes, wake_.fd())) break;  // the pod has closed its receiving side
  }
  ends_.stop_reading();
  sys::shut_down_writing(socket);
  progress_.with([](Progress& progress) { progress.client_ended = true; });
  progress_.notify();
}

void Forward::carry_out(const Fd& socket) {
  std::array<char, 16 << 10> buffer;
  for (;;) {
    auto count = sys::receive(socket, buffer.data(), buffer.size(), wake_.fd());
    if (!count || *count == 0) break;  // a reset connection has ended too
    if (ends_.write({buffer.data(), *count})) continue;
    sys::shut_down(socket);  // closes the pod's connection, because the client is gone
    break;
  }
  ends_.finish();
  if (!ends_.hears_half_closes) wait_for_last_word();
}

void Forward::wait_for_last_word() {
  for (uint64_t heard = 0;;) {
    auto said = [&](const Progress& progress) { return progress.client_ended || progress.heard != heard; };
    heard = progress_.with([](const Progress& progress) { return progress.heard; });
    Progress now = progress_.wait_until(stop_.get_token(), std::chrono::steady_clock::now() + kLastWord, said,
                                        [](const Progress& progress) { return progress; });
    if (now.client_ended) return;
    if (now.heard == heard) return ends_.stop_reading();
  }
}

}  // namespace coracle::api
