// SPDX-License-Identifier: Apache-2.0
// See file.h: descriptors that are not files, Unix sockets, terminals.
#include <linux/memfd.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "runtime/base/text.h"
#include "runtime/sys/file.h"

namespace coracle::sys {
namespace {

Result<sockaddr_un> unix_address(const Fd& dir, const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::string path = fd_path(dir) + "/" + name;
  if (path.size() >= sizeof address.sun_path) return Error(Code::too_large, "socket name " + name + " is too long");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

int milliseconds(std::optional<std::chrono::milliseconds> timeout) {
  return timeout ? int(std::min<int64_t>(timeout->count(), INT32_MAX)) : -1;
}

}  // namespace

namespace {

// Older kernels do not support the flag and do not need it.
constexpr unsigned kMfdExec = 0x10;

Result<Fd> fill_memfd(Fd fd, std::string_view content, bool seal) {
  if (!fd) return Error::from_errno("memfd_create");
  TRY(write_all(fd, content).wrap("memfd"));
  if (::lseek(fd.get(), 0, SEEK_SET) < 0) return Error::from_errno("rewind memfd");
  constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  if (seal && ::fcntl(fd.get(), F_ADD_SEALS, kSeals) < 0) return Error::from_errno("seal memfd");
  return fd;
}

}  // namespace

Result<Fd> make_memfd(const std::string& name, std::string_view content, bool seal) {
  return fill_memfd(Fd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING)), content, seal);
}

Result<Fd> make_program(const std::string& name, std::string_view content) {
  Fd fd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING | kMfdExec));
  if (!fd && errno == EINVAL) fd = Fd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd && errno == EACCES)
    return Error(Code::forbidden,
                 "vm.memfd_noexec is 2: nothing may be executed from memory, and containers are started from it");
  return fill_memfd(std::move(fd), content, true);
}

Result<Pipe> make_pipe(bool nonblocking) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | (nonblocking ? O_NONBLOCK : 0)) < 0) return Error::from_errno("pipe");
  Pipe pipe;
  pipe.read = Fd(ends[0]);
  pipe.write = Fd(ends[1]);
  return pipe;
}

Result<Fd> make_eventfd() {
  Fd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd) return Error::from_errno("eventfd");
  return fd;
}

void signal_eventfd(const Fd& fd) {
  uint64_t one = 1;
  (void)!::write(fd.get(), &one, sizeof one);  // only fails if it is readable already
}

void drain_eventfd(const Fd& fd) {
  uint64_t count;
  (void)!::read(fd.get(), &count, sizeof count);  // only fails if there is nothing to drain
}

Result<Fd> make_inotify() {
  Fd fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!fd) return Error::from_errno("inotify");
  return fd;
}

Result<int> watch_path(const Fd& inotify, const std::string& path, uint32_t mask) {
  int watch = ::inotify_add_watch(inotify.get(), path.c_str(), mask);
  if (watch < 0) return Error::from_errno("watch " + path);
  return watch;
}

void drain_inotify(const Fd& inotify, const std::function<void(int, uint32_t, std::string_view)>& each) {
  alignas(inotify_event) char buffer[4096];
  while (true) {
    ssize_t n = ::read(inotify.get(), buffer, sizeof buffer);
    if (n <= 0) return;
    for (char* at = buffer; at < buffer + n;) {
      auto* event = reinterpret_cast<inotify_event*>(at);
      each(event->wd, event->mask, event->len ? std::string_view(event->name) : std::string_view());
      at += sizeof(inotify_event) + event->len;
    }
  }
}

Result<Fd> make_epoll() {
  Fd fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!fd) return Error::from_errno("epoll");
  return fd;
}

Result<void> epoll_add(const Fd& epoll, const Fd& fd, uint32_t events, uint64_t key) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd.get(), &event) < 0) return Error::from_errno("epoll add");
  return {};
}

Result<void> epoll_change(const Fd& epoll, const Fd& fd, uint32_t events, uint64_t key) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_MOD, fd.get(), &event) < 0) return Error::from_errno("epoll change");
  return {};
}

void epoll_remove(const Fd& epoll, const Fd& fd) {
  (void)::epoll_ctl(epoll.get(), EPOLL_CTL_DEL, fd.get(), nullptr);  // no error if it is not in the set
}

Result<std::vector<Ready>> epoll_wait(const Fd& epoll, std::optional<std::chrono::milliseconds> timeout) {
  epoll_event events[64];
  int n = ::epoll_wait(epoll.get(), events, 64, milliseconds(timeout));
  if (n < 0 && errno != EINTR) return Error::from_errno("epoll wait");
  std::vector<Ready> out;
  for (int i = 0; i < n; ++i) out.push_back({events[i].events, events[i].data.u64});
  return out;
}

namespace {

Result<bool> poll_one(const Fd& fd, short events, std::optional<std::chrono::milliseconds> timeout) {
  pollfd wait{fd.get(), events, 0};
  int n = ::poll(&wait, 1, milliseconds(timeout));
  if (n < 0 && errno == EINTR) return false;
  if (n < 0) return Error::from_errno("poll");
  return n > 0;
}

}  // namespace

Result<bool> wait_readable(const Fd& fd, std::optional<std::chrono::milliseconds> timeout) {
  return poll_one(fd, POLLIN, timeout);
}

Result<bool> wait_priority(const Fd& fd, std::optional<std::chrono::milliseconds> timeout) {
  return poll_one(fd, POLLPRI, timeout);
}

Result<void> wait_hung_up(const Fd& socket) {
  bool has_hung_up = false;
  while (!has_hung_up) has_hung_up = TRY(poll_one(socket, 0, std::nullopt));  // false: a signal
  return {};
}

Result<Fd> bind_unix(const Fd& dir, const std::string& name, mode_t mode) {
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) return Error::from_errno("unix socket");
  sockaddr_un address = TRY(unix_address(dir, name));
  // bind(2) takes the mode from the socket's inode: there is no moment with a wider mode.
  if (::fchmod(socket.get(), mode) < 0) return Error::from_errno("set mode of socket");
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) < 0)
    return Error::from_errno("bind socket " + name);
  return socket;
}

Result<void> listen_unix(const Fd& socket) {
  if (::listen(socket.get(), 1) < 0) return Error::from_errno("listen");
  return {};
}

Result<Fd> connect_unix(const Fd& dir, const std::string& name) {
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) return Error::from_errno("unix socket");
  sockaddr_un address = TRY(unix_address(dir, name));
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) < 0)
    return Error::from_errno("connect to " + name);
  return socket;
}

Result<Fd> bind_datagram(const Fd& dir, const std::string& name) {
  Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return Error::from_errno("unix socket");
  sockaddr_un address = TRY(unix_address(dir, name));
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) < 0)
    return Error::from_errno("bind socket " + name);
  if (::fchmodat(dir.get(), name.c_str(), 0777, 0) < 0) return Error::from_errno("set mode of socket " + name);
  return socket;
}

Result<Fd> connect_datagram(const std::string& address) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (address.empty() || address.size() >= sizeof to.sun_path) return Error(Code::invalid, "no socket " + quoted(address));
  std::memcpy(to.sun_path, address.data(), address.size());
  const bool is_name = address[0] == '@';
  if (is_name) to.sun_path[0] = 0;
  Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return Error::from_errno("unix socket");
  const size_t size = offsetof(sockaddr_un, sun_path) + address.size() + (is_name ? 0 : 1);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&to), socklen_t(size)) < 0)
    return Error::from_errno("connect to " + address);
  return socket;
}

Result<PeerCredentials> peer_credentials(const Fd& socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0) return Error::from_errno("peer credentials");
  return PeerCredentials{credentials.pid, credentials.uid, credentials.gid};
}

Result<void> send_message(const Fd& socket, std::span<const std::byte> bytes, std::span<const int> fds) {
  if (fds.size() > kFdsPerMessageMax) return Error(Code::too_large, "too many descriptors for one message");
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kFdsPerMessageMax * sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(head), fds.data(), fds.size_bytes());
  }
  ssize_t n;
  do {
    n = ::sendmsg(socket.get(), &message, MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  if (n < 0) return Error::from_errno("send message");
  return {};
}

Result<Message> receive_message(const Fd& socket, std::span<std::byte> buffer, bool nonblocking) {
  iovec part{buffer.data(), buffer.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kFdsPerMessageMax * sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t n;
  do {
    n = ::recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC | (nonblocking ? MSG_DONTWAIT : 0));
  } while (n < 0 && errno == EINTR);
  if (n < 0) return Error::from_errno("receive message");
  Message out;
  out.size = size_t(n);
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(head) + i * sizeof(int), sizeof fd);
      out.fds.emplace_back(fd);
    }
  }
  if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) return Error(Code::too_large, "message did not fit");
  return out;
}

Result<std::pair<Fd, Fd>> make_socketpair(int type) {
  int ends[2];
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) < 0) return Error::from_errno("socketpair");
  return std::pair<Fd, Fd>(Fd(ends[0]), Fd(ends[1]));
}

Result<void> set_window_size(const Fd& terminal, uint16_t width, uint16_t height) {
  winsize size{};
  size.ws_col = width;
  size.ws_row = height;
  if (::ioctl(terminal.get(), TIOCSWINSZ, &size) < 0) return Error::from_errno("set window size");
  return {};
}

}  // namespace coracle::sys
