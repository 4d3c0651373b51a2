// SPDX-License-Identifier: Apache-2.0
// See files.h.
#include "daemon/node/files.h"

#include <poll.h>
#include <sys/inotify.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/sys/file.h"

namespace coracle::node::files {

namespace {

constexpr size_t kChunk = 4096;           // a pipe that is ready accepts that many bytes (PIPE_BUF) without blocking
constexpr size_t kDrainedMax = 64 << 10;  // what a pipe holds

void add_devices(const Fd& directory, const std::string& path, std::vector<oci::Device>& found, int depth) {
  auto entries = sys::list(directory);
  if (!entries) return;
  for (const auto& entry : *entries) {
    auto info = sys::stat_at(directory, entry.name);
    if (!info) continue;
    if (S_ISDIR(info->st_mode)) {
      // Every container gets its own of these.
      bool own = entry.name == "pts" || entry.name == "shm" || entry.name == "fd" || entry.name == "mqueue";
      if (own || depth > 4) continue;
      auto inside = sys::open_at(directory, entry.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
      if (inside) add_devices(*inside, path + "/" + entry.name, found, depth + 1);
    } else if ((S_ISCHR(info->st_mode) || S_ISBLK(info->st_mode)) && entry.name != "console") {
      found.push_back(device(path + "/" + entry.name, *info));
    }
  }
}

// Blocks until `fd` is ready for `events` (then sets `ready`) or the table of mounts has changed (then sets `mounted`), until the
// timeout, or until `wake` is signalled; returns false for the last one.
bool wait_ready(const Fd& fd, short events, const Fd& wake, int timeout_ms, bool* ready, const Fd* mounts = nullptr,
                bool* mounted = nullptr) {
  pollfd watched[3] = {{fd.get(), events, 0}, {wake.get(), POLLIN, 0}, {mounts ? mounts->get() : -1, POLLPRI, 0}};
  int count;
  do {
    count = ::poll(watched, 3, timeout_ms);
  } while (count < 0 && errno == EINTR);
  *ready = count > 0 && watched[0].revents != 0;
  if (mounted) *mounted = count > 0 && watched[2].revents != 0;
  return count >= 0 && watched[1].revents == 0;
}

using Identity = std::pair<dev_t, ino_t>;

Result<Identity> identity_of(const Fd& directory) {
  struct stat about = TRY(sys::stat(directory));
  return Identity{about.st_dev, about.st_ino};
}

Fd make_wake() { return sys::make_eventfd().value_or(Fd()); }

auto wake_on_stop(std::stop_token stop, const Fd& wake) {
  return std::stop_callback(std::move(stop), [&wake] { sys::signal_eventfd(wake); });
}

}  // namespace

Result<void> rewrite_file(const std::string& path, std::string_view text, unsigned mode) {
  auto there = sys::read_file(path);
  if (there && *there == text) return {};
  Fd fd = TRY(sys::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode));
  TRY(sys::change_mode(fd, mode));
  return sys::write_all(fd, text);
}

Result<void> set_mode(const std::string& path, unsigned mode) {
  Fd fd = TRY(sys::open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  return sys::change_mode(fd, mode);
}

Result<void> set_owner(const std::string& path, std::optional<uint32_t> uid, std::optional<uint32_t> gid) {
  Fd fd = TRY(sys::open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  return sys::change_owner(fd, uid.value_or(uint32_t(-1)), gid.value_or(uint32_t(-1)));
}

std::vector<std::string> list(const std::string& directory) {
  std::vector<std::string> names;
  auto entries = sys::list(directory);
  if (entries)
    for (auto& entry : *entries) names.push_back(std::move(entry.name));
  return names;
}

oci::Device device(std::string path, const struct stat& info) {
  return {.path = std::move(path),
          .type = S_ISCHR(info.st_mode) ? "c" : "b",
          .major = major(info.st_rdev),
          .minor = minor(info.st_rdev),
          .file_mode = info.st_mode & 07777,
          .uid = info.st_uid,
          .gid = info.st_gid};
}

std::vector<oci::Device> devices(const std::string& directory) {
  std::vector<oci::Device> found;
  auto fd = sys::open_directory(directory);
  if (fd) add_devices(*fd, directory, found, 0);
  return found;
}

Result<DirectoryWatch> DirectoryWatch::make() {
  DirectoryWatch watch;
  watch.wake_ = TRY(sys::make_eventfd());
  return watch;
}

Result<DirectoryWatch> DirectoryWatch::open(const std::string& directory) {
  DirectoryWatch watch = TRY(make());
  TRY(watch.follow(directory));
  return watch;
}

// A watch of a removed directory ends by itself; one of a directory that was moved away or covered only tells more than is asked.
Result<void> DirectoryWatch::follow(const std::string& directory) {
  constexpr uint32_t kEvents = IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF |
                               IN_MOVE_SELF | IN_ONLYDIR;
  name_ = directory;
  Fd opened = TRY(sys::open_directory(directory));
  const auto now = TRY(identity_of(opened));
  if (now == watched_) return {};
  if (!inotify_) inotify_ = TRY(sys::make_inotify());
  // By the descriptor: the name may lead elsewhere already, which the next call finds.
  number_ = TRY(sys::watch_path(inotify_, "/proc/self/fd/" + std::to_string(opened.get()), kEvents));
  watched_ = now;
  return {};
}

bool DirectoryWatch::is_there() const {
  auto opened = sys::open_directory(name_);
  auto now = opened ? identity_of(*opened) : Result<Identity>(opened.take_error());
  return now && *now == watched_;
}

bool DirectoryWatch::wait(std::stop_token stop, std::optional<std::chrono::milliseconds> longest, const Fd* mounts) {
  using Clock = std::chrono::steady_clock;
  auto wake = wake_on_stop(stop, wake_);
  const auto until = longest ? std::optional(Clock::now() + *longest) : std::nullopt;
  for (;;) {
    const auto left = until ? std::chrono::ceil<std::chrono::milliseconds>(*until - Clock::now()).count() : -1;
    bool ready = false, mounted = false;
    bool woken = !wait_ready(inotify_, POLLIN, wake_, until ? int(std::max<int64_t>(left, 0)) : -1, &ready, mounts, &mounted);
    if (woken) sys::drain_eventfd(wake_);
    if (ready)
      sys::drain_inotify(inotify_, [this](int watch, uint32_t events, std::string_view) {
        if (watch == number_ && (events & IN_IGNORED)) watched_ = {0, 0};  // the next one may get its inode number
      });
    if (ready || woken) return !stop.stop_requested();
    if (!mounted) return false;
    if (!is_there()) return true;
  }
}

void DirectoryWatch::wake() { sys::signal_eventfd(wake_); }

void pump(const Fd& fd, const std::function<bool(std::string_view)>& out, std::stop_token stop) {
  Fd wake_fd = make_wake();
  auto wake = wake_on_stop(stop, wake_fd);
  char buffer[16384];
  bool ready = false;
  while (wait_ready(fd, POLLIN, wake_fd, -1, &ready)) {
    ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return;  // end of file; a closed terminal gives EIO
    if (!out({buffer, size_t(got)})) return;
  }
}

void drain(const Fd& fd, const std::function<bool(std::string_view)>& out) {
  char buffer[16384];
  for (size_t left = kDrainedMax; left > 0;) {
    pollfd watched{fd.get(), POLLIN, 0};
    const int count = ::poll(&watched, 1, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    ssize_t got = ::read(fd.get(), buffer, std::min(left, sizeof buffer));
    if (got <= 0 || !out({buffer, size_t(got)})) return;
    left -= size_t(got);
  }
}

void pump_both(const Fd& out, const Fd& err, const std::function<bool(std::string_view)>& take, std::stop_token stop) {
  Fd wake_fd = make_wake();
  auto wake = wake_on_stop(stop, wake_fd);
  pollfd watched[3] = {{wake_fd.get(), POLLIN, 0}, {out.get(), POLLIN, 0}, {err.get(), POLLIN, 0}};  // poll ignores -1
  char buffer[kChunk];
  while (watched[1].fd >= 0 || watched[2].fd >= 0) {
    int count = ::poll(watched, 3, -1);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 || watched[0].revents != 0) return;
    for (pollfd* source : {&watched[1], &watched[2]}) {
      if (source->fd < 0 || source->revents == 0) continue;
      ssize_t got = ::read(source->fd, buffer, sizeof buffer);
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (got <= 0) source->fd = -1;
      else if (!take({buffer, size_t(got)})) return;
    }
  }
}

Result<void> write_all(const Fd& fd, std::string_view bytes, std::stop_token stop) {
  Fd wake_fd = make_wake();
  auto wake = wake_on_stop(stop, wake_fd);
  bool ready = false;
  while (!bytes.empty()) {
    if (!wait_ready(fd, POLLOUT, wake_fd, -1, &ready)) return Error(Code::cancelled, "writing was cancelled");
    ssize_t written = ::write(fd.get(), bytes.data(), std::min(bytes.size(), kChunk));
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (written < 0) return Error::from_errno("write to the process").as(Code::unavailable);
    bytes.remove_prefix(size_t(written));
  }
  return {};
}

}  // namespace coracle::node::files
