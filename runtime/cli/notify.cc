// SPDX-License-Identifier: Apache-2.0
// See notify.h.
#include "runtime/cli/notify.h"

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <memory>
#include <span>
#include <string_view>

#include "runtime/base/text.h"
#include "runtime/cli/log.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"
#include "runtime/sys/terminal.h"

namespace coracle::cli {
namespace {

constexpr const char* kVariable = "NOTIFY_SOCKET";
constexpr const char* kDirectory = "notify";  // in the container's; the container sees only this one
constexpr const char* kSocket = "notify.sock";
constexpr const char* kInside = "/run/notify";
constexpr size_t kMessageMax = 4096;
constexpr std::chrono::seconds kBarrierTimeout{30};  // for a manager that does not know of barriers

bool is_ready(std::string_view message) {
  for (std::string_view line : split(message, '\n'))
    if (line == "READY=1") return true;
  return false;
}

Result<void> send(const Fd& socket, std::string_view text, std::span<const int> fds) {
  return sys::send_message(socket, std::as_bytes(std::span(text)), fds).wrap(kVariable);
}

// The manager may look up who has sent a message, so the sender has to be there until the message was processed.
Result<void> wait_for_barrier(const Fd& socket) {
  sys::Pipe pipe = TRY(sys::make_pipe());
  const int fds[] = {pipe.write.get()};
  TRY(send(socket, "BARRIER=1", fds));
  pipe.write.reset();
  const bool is_closed = TRY(sys::wait_readable(pipe.read, kBarrierTimeout));
  if (!is_closed) warn(std::string(kVariable) + ": the service manager does not answer a barrier");
  return {};
}

}  // namespace

Result<void> add_notify_socket(oci::Spec& spec, const Container& container) {
  if (sys::environment(kVariable).empty()) return {};
  TRY(sys::make_directory_at(container.directory(), kDirectory, 0755).wrap(kDirectory));
  oci::Mount mount;
  mount.destination = kInside;
  mount.type = "bind";
  Fd place = TRY(sys::open_at(container.directory(), kDirectory, O_PATH | O_DIRECTORY | O_NOFOLLOW).wrap(kDirectory));
  mount.source_fd = std::make_shared<const Fd>(std::move(place));
  mount.options = {"bind", "nosuid", "noexec", "nodev", "ro"};
  spec.mounts.push_back(std::move(mount));
  spec.process.env.push_back(std::string(kVariable) + "=" + kInside + "/" + kSocket);
  return {};
}

Result<std::optional<NotifyRelay>> NotifyRelay::open(const Container& container) {
  if (sys::environment(kVariable).empty()) return std::optional<NotifyRelay>();
  auto directory = sys::open_at(container.directory(), kDirectory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!directory && directory.error().code() == Code::not_found) return std::optional<NotifyRelay>();
  Fd place = TRY(std::move(directory));
  auto removed = sys::unlink_at(place, kSocket);  // of a start that failed
  if (!removed && removed.error().code() != Code::not_found) return removed.take_error();
  Fd socket = TRY(sys::bind_datagram(place, kSocket).wrap(kVariable));
  return std::optional<NotifyRelay>(NotifyRelay(std::move(socket)));
}

Result<Fd> NotifyRelay::send_ready(int main_pid) const {
  std::array<std::byte, kMessageMax> buffer;
  while (true) {
    auto message = sys::receive_message(socket_, buffer, true);  // the descriptors of a barrier are closed at once
    if (!message && message.error().code() == Code::too_large) continue;
    if (!message && (message.error().err() == EAGAIN || message.error().err() == EWOULDBLOCK)) return Fd();
    if (!message) return message.take_error().wrap(kVariable);
    if (!is_ready({reinterpret_cast<const char*>(buffer.data()), message->size})) continue;
    Fd manager = TRY(sys::connect_datagram(sys::environment(kVariable)).wrap(kVariable));
    TRY(send(manager, "MAINPID=" + std::to_string(main_pid) + "\nREADY=1\n", {}));
    return manager;
  }
}

Result<bool> NotifyRelay::pass_on(int main_pid) const {
  Fd manager = TRY(send_ready(main_pid));
  return bool(manager);
}

Result<void> NotifyRelay::wait(const Fd& process, int main_pid) const {
  while (true) {
    auto ready = TRY(sys::wait_any({process.get(), socket_.get(), -1, -1}));
    Fd manager = TRY(send_ready(main_pid));
    if (manager) return wait_for_barrier(manager);
    if (ready[0]) return {};
  }
}

}  // namespace coracle::cli
