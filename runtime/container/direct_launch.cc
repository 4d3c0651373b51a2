// SPDX-License-Identifier: Apache-2.0
// See direct_launch.h.
#include "runtime/container/direct_launch.h"

#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <span>

#include "runtime/launch/child.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"

namespace coracle::runtime {
namespace {

struct ChildStart {
  launch::Launch launch;
  int near;  // ours; as long as the child holds it, it would not notice that we are gone
};

void begin(void* argument) noexcept {
  auto start = static_cast<ChildStart*>(argument);
  ::close(start->near);
  launch::run_child(start->launch);
}

// One Report off a report socket, with the descriptor beside it. Nothing at its end.
Result<std::optional<std::pair<launch::Report, Fd>>> read_report(const Fd& socket) {
  launch::Report report{};
  auto message = TRY(sys::receive_message(socket, std::as_writable_bytes(std::span(&report, 1))));
  if (message.size != sizeof report) return std::optional<std::pair<launch::Report, Fd>>();
  Fd fd = message.fds.empty() ? Fd() : std::move(message.fds[0]);
  return std::optional<std::pair<launch::Report, Fd>>(std::in_place, report, std::move(fd));
}

}  // namespace

Result<Birth> Birth::clone_child(const BirthSpec& spec) {
  const Prepared& prepared = *spec.prepared;
  if (prepared.pid_namespace)
    TRY(sys::join_namespace(prepared.pid_namespace, CLONE_NEWPID).wrap("linux.namespaces: pid"));
  auto [near, far] = TRY(sys::make_socketpair(SOCK_SEQPACKET));
  const std::vector<int> fds = prepared.in_order(spec.cgroup, nullptr, nullptr);
  ChildStart start{{fds.data(), int(fds.size()), far.get(), {0, 1, 2}, -1, -1}, near.get()};
  if (spec.has_terminal)
    for (int& fd : start.launch.stdio) fd = -1;
  if (spec.target) start.launch.target = spec.target->get();
  if (spec.start) start.launch.start = spec.start->get();
  sys::Spawned cloned = TRY(sys::clone_process({prepared.clone_flags, spec.cgroup, begin, &start}));
  Birth out;
  out.pid_ = cloned.pid;
  out.pidfd_ = std::move(cloned.pidfd);
  out.report_ = std::move(near);
  return out;
}

Result<void> Birth::say_go() {
  launch::Go go{pid_};
  return sys::write_all(report_, std::string_view(reinterpret_cast<const char*>(&go), sizeof go)).wrap("the container's process is gone");
}

Result<Birth::News> Birth::next() {
  News out;
  auto report = TRY(read_report(report_));
  if (!report) {  // exec has closed it, or the process is gone
    if (is_executing_) return out;
    out.kind = News::Kind::failure;
    out.failure = {ECHILD, launch::Stage::died, -1};
    return out;
  }
  switch (report->first.note) {
    case launch::Note::failure:
      out.kind = News::Kind::failure;
      out.failure = report->first.failure;
      break;
    case launch::Note::held: out.kind = News::Kind::held; break;
    case launch::Note::gate: out.kind = News::Kind::gate; break;
    case launch::Note::executing: is_executing_ = true; return next();
    case launch::Note::terminal:
    case launch::Note::listener:
      out.kind = report->first.note == launch::Note::terminal ? News::Kind::terminal : News::Kind::listener;
      out.fd = std::move(report->second);
      break;
  }
  return out;
}

void Birth::end() {
  (void)sys::send_signal(pidfd_, 9);  // it may be gone
  (void)sys::wait_readable(pidfd_, std::nullopt);
  sys::reap(pidfd_);
}

Result<Started> start_held(const Fd& directory, const std::string& socket) {
  auto connected = sys::connect_unix(directory, socket);
  if (!connected) return Error(Code::conflict, "nobody waits to be started");
  bool is_executing = false;
  Started out;
  while (true) {
    auto report = TRY(read_report(*connected));
    if (!report) {
      out.has_executed = is_executing;
      if (!is_executing) out.failure = {ECHILD, launch::Stage::died, -1};
      return out;
    }
    is_executing |= report->first.note == launch::Note::executing;
    if (report->first.note != launch::Note::failure) continue;
    out.failure = report->first.failure;
    return out;
  }
}

}  // namespace coracle::runtime
