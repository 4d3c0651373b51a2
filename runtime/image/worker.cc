// SPDX-License-Identifier: Apache-2.0
// See worker.h.
#include "runtime/image/worker.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/scope.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"

namespace coracle::image {
namespace {

Result<void> converse(Wire& wire, const Job& job, const Fd* archive, const JobEvents& events) {
  TRY(wire.send_file(archive));
  TRY(wire.send(job.to_json()));
  for (;;) {
    std::optional<json::value> message = TRY(wire.receive());
    if (!message) return Error(Code::internal, "coracle-image ended before its work was done");
    std::optional<Result<void>> outcome = TRY(hear(*message, events));
    if (outcome) return *std::move(outcome);
    if (!find(*message, "progress")) TRY(wire.send({{"go", true}}));
  }
}

}  // namespace

Result<void> run_job(const std::string& program, const Job& job, const Fd* archive, const JobEvents& events,
                     std::stop_token stop) {
  Fd file = TRY(sys::open(program, O_PATH).wrap("coracle-image"));
  auto [ours, theirs] = TRY(sys::make_socketpair(SOCK_STREAM));
  sys::SpawnSpec start{.program = &file, .name = "coracle-image", .namespaces = CLONE_NEWNS, .fd3 = &theirs};
  start.environment = environ;  // where a proxy is asked for
  sys::Spawned worker = TRY(sys::spawn(start).wrap("start coracle-image"));
  theirs = Fd();  // so that its end is noticed
  Scope bury([&] {
    (void)sys::send_signal(worker.pidfd, SIGKILL);  // it may have ended
    (void)sys::wait_readable(worker.pidfd, std::nullopt);
    sys::reap(worker.pidfd);
  });
  std::stop_callback cancel(stop, [&] { (void)sys::send_signal(worker.pidfd, SIGKILL); });
  Wire wire(std::move(ours));
  auto done = converse(wire, job, archive, events);
  if (!done && stop.stop_requested()) return Error(Code::cancelled, "cancelled");
  return done;
}

}  // namespace coracle::image
