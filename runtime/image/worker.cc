// SPDX-License-Identifier: Apache-2.0
// See worker.h.
#include "runtime/image/worker.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

#include "runtime/sys/file.h"
#include "runtime/sys/process.h"

namespace coracle::image {
namespace {

constexpr uint64_t kApart = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC;

Result<void> converse(Wire& wire, const JobEvents& events) {
  for (;;) {
    std::optional<json::value> message = TRY(wire.receive());
    if (!message) return Error(Code::internal, "coracle-image ended before its work was done");
    std::optional<Result<void>> outcome = TRY(hear(*message, events));
    if (outcome) return *std::move(outcome);
    if (wants_leave(*message)) TRY(wire.send({{"go", true}}));
  }
}

class Worker {  // a process; the destructor kills it
 public:
  // Errors: those of starting the process. `environment`: with proxy settings; null: none.
  static Result<std::unique_ptr<Worker>> start(const Fd& program, uint64_t namespaces, const char* const* environment) {
    auto [ours, theirs] = TRY(sys::make_socketpair(SOCK_STREAM));
    sys::SpawnSpec start{.program = &program, .name = "coracle-image", .namespaces = namespaces, .fd3 = &theirs};
    start.environment = environment;
    sys::Spawned process = TRY(sys::spawn(start).wrap("start coracle-image"));
    return std::unique_ptr<Worker>(
        new Worker(std::move(process), std::move(ours)));  // the child's end is closed, so that its exit is noticed
  }
  ~Worker() {
    kill();
    (void)sys::wait_readable(process_.pidfd, std::nullopt);
    sys::reap(process_.pidfd);
  }
  Wire& wire() { return wire_; }
  void kill() { (void)sys::send_signal(process_.pidfd, SIGKILL); }  // no error if it has ended
  Result<void> order(const Job& job, const std::vector<const Fd*>& files) {
    TRY(wire_.send_files(files));
    return wire_.send(job.to_json());
  }

 private:
  Worker(sys::Spawned process, Fd socket) : process_(std::move(process)), wire_(std::move(socket)) {}
  sys::Spawned process_;
  Wire wire_;
};

// Jobs that need no network.
Result<void> run_local(const Fd& program, const Job& job, const std::vector<const Fd*>& files, const JobEvents& events,
                       std::stop_token stop) {
  std::unique_ptr<Worker> worker = TRY(Worker::start(program, kApart | CLONE_NEWNET, nullptr));
  std::stop_callback cancel(stop, [&] { worker->kill(); });
  TRY(worker->order(job, files));
  return converse(worker->wire(), events);
}

Result<void> run_pull(const Fd& program, const Job& job, const JobEvents& events, std::stop_token stop) {
  std::unique_ptr<Worker> unpacks = TRY(Worker::start(program, kApart | CLONE_NEWNET, nullptr));
  std::unique_ptr<Worker> downloads = TRY(Worker::start(program, kApart, environ));
  std::stop_callback cancel(stop, [&] {
    downloads->kill();
    unpacks->kill();
  });
  {
    auto [to_unpack, to_download] = TRY(sys::make_socketpair(SOCK_SEQPACKET));
    Job layers;
    layers.kind = JobKind::unpack;
    layers.store = job.store;
    layers.staging = job.staging;
    TRY(unpacks->order(layers, {&to_unpack}));
    TRY(downloads->order(job, {&to_download}));
  }                                    // each process has its own end now and notices the other's exit
  TRY(converse(unpacks->wire(), {}));  // waits until it is ready
  return converse(downloads->wire(), events);
}

}  // namespace

Result<void> run_job(const std::string& program, const Job& job, const std::vector<const Fd*>& files, const JobEvents& events,
                     std::stop_token stop) {
  Fd file = TRY(sys::open(program, O_PATH).wrap("coracle-image"));
  auto done = job.kind == JobKind::pull ? run_pull(file, job, events, stop) : run_local(file, job, files, events, stop);
  if (!done && stop.stop_requested()) return Error(Code::cancelled, "cancelled");
  return done;
}

}  // namespace coracle::image
