// SPDX-License-Identifier: Apache-2.0
// See direct_launch.h.
#include "runtime/container/direct_launch.h"

#include <sched.h>
#include <sys/socket.h>

#include <cerrno>
#include <span>
#include <string_view>
#include <utility>

#include "runtime/base/text.h"
#include "runtime/launch/launcher.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"

namespace coracle::runtime {
namespace {

// The child's program, as built. Source: launch/launcher.cc.
constexpr unsigned char kLauncher[] = {
#include "runtime/launch/launcher_bytes.inc"
};
std::string_view launcher() { return {reinterpret_cast<const char*>(kLauncher), sizeof kLauncher}; }

// Reads one Report from a report socket, with its descriptor. Nothing at end of file.
Result<std::optional<std::pair<launch::Report, Fd>>> read_report(const Fd& socket) {
  launch::Report report{};
  auto received = sys::receive_message(socket, std::as_writable_bytes(std::span(&report, 1)));
  // It ended before it read all that it was sent. The kernel tells that once; what it said follows.
  if (!received && received.error().err() == ECONNRESET)
    received = sys::receive_message(socket, std::as_writable_bytes(std::span(&report, 1)));
  sys::Message message = TRY(std::move(received));
  if (message.size != sizeof report) return std::optional<std::pair<launch::Report, Fd>>();
  Fd fd = message.fds.empty() ? Fd() : std::move(message.fds[0]);
  return std::optional<std::pair<launch::Report, Fd>>(std::in_place, report, std::move(fd));
}

// The output of a hook, from the file that it was written to.
std::string read_said(const Fd& file) {
  constexpr size_t kSaidMax = 64 << 10;
  auto text = sys::read_from_start(file, kSaidMax);
  return text ? std::string(trim(*text)) : "";  // the failure is reported without it
}

}  // namespace

Result<DirectLaunch> DirectLaunch::begin(const LaunchSpec& spec) {
  const Prepared& prepared = *spec.prepared;
  if (prepared.pid_namespace) TRY(sys::join_namespace(prepared.pid_namespace, CLONE_NEWPID).wrap("linux.namespaces: pid"));
  Fd program = TRY(sys::make_program("coracle-oci", launcher()));
  auto [near, far] = TRY(sys::make_socketpair(SOCK_SEQPACKET));
  sys::SpawnSpec start;
  start.program = &program;
  start.name = "coracle-oci";
  start.cgroup = spec.cgroup;
  start.namespaces = prepared.clone_flags;
  start.beside = &far;
  sys::Spawned spawned = TRY(sys::spawn(start));
  DirectLaunch out;
  out.is_silent_ = !prepared.has_reports;
  out.pid_ = spawned.pid;
  out.pidfd_ = std::move(spawned.pidfd);
  out.report_ = std::move(near);
  far.reset();
  auto told = out.tell(spec);
  if (!told) {
    out.end();
    return told.take_error();
  }
  return out;
}

Result<void> DirectLaunch::tell(const LaunchSpec& spec) {
  std::vector<int> fds = spec.prepared->in_order(spec.cgroup, nullptr, nullptr);
  if (fds.size() > launch::kFdsMax) return Error(Code::too_large, "mounts: too many");
  auto add = [&](const Fd* fd) {
    if (!fd) return -1;
    fds.push_back(fd->get());
    return int(fds.size() - 1);
  };
  launch::Begin begin{uint32_t(fds.size()), spec.has_terminal, -1, -1, -1};
  begin.target = add(spec.target);
  begin.start = add(spec.start);
  begin.time_namespace = add(spec.time_namespace);
  return sys::send_message(report_, std::as_bytes(std::span(&begin, 1)), fds).wrap("the container's process is gone");
}

Result<void> DirectLaunch::say_go() {
  return sys::write_all(report_, std::string_view(&launch::kGo, 1)).wrap("the container's process is gone");
}

Result<DirectLaunch::News> DirectLaunch::next() {
  News out;
  // Otherwise the report before the exec would wake us, and exec again, on a processor that the container could use.
  if (std::exchange(is_silent_, false)) TRY(sys::wait_hung_up(report_));
  auto report = TRY(read_report(report_));
  if (!report) {  // exec has closed it, or the process has ended
    if (is_executing_) return out;
    out.kind = News::Kind::failure;
    out.failure = {ECHILD, launch::Stage::died, -1};
    return out;
  }
  switch (report->first.note) {
    case launch::Note::failure:
      out.kind = News::Kind::failure;
      out.failure = report->first.failure;
      out.said = std::move(said_);
      break;
    case launch::Note::held: out.kind = News::Kind::held; break;
    case launch::Note::gate: out.kind = News::Kind::gate; break;
    case launch::Note::executing: is_executing_ = true; return next();
    case launch::Note::said: said_ = read_said(report->second); return next();
    case launch::Note::terminal:
    case launch::Note::listener:
      out.kind = report->first.note == launch::Note::terminal ? News::Kind::terminal : News::Kind::listener;
      out.fd = std::move(report->second);
      break;
  }
  return out;
}

void DirectLaunch::end() {
  auto killed = sys::send_signal(pidfd_, 9);
  if (!killed && killed.error().code() != Code::not_found) return;  // waiting could block for ever
  (void)sys::wait_readable(pidfd_, std::nullopt);
  sys::reap(pidfd_);
}

Result<Started> start_held(const Fd& directory, const std::string& socket) {
  auto connected = sys::connect_unix(directory, socket);
  if (!connected) return Error(Code::conflict, "nobody waits to be started");
  TRY(sys::wait_hung_up(*connected));  // all it says before is for the result
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
    if (report->first.note == launch::Note::said) out.said = read_said(report->second);
    if (report->first.note != launch::Note::failure) continue;
    out.failure = report->first.failure;
    return out;
  }
}

}  // namespace coracle::runtime
