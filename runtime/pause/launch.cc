// SPDX-License-Identifier: Apache-2.0
// Turns a request into a process: a slot, its streams, a clone in its cgroup and namespaces. The reply is sent after the child's
// report: a failure with its stage, or end of file on the report socket, which exec closes.
#include "runtime/launch/message.h"
#include "runtime/pause/pod.h"

namespace coracle::pause {

using namespace launch;

namespace {

constexpr int kNonblock = 04000;

int new_slot(const Request& request) {
  for (int i = 0; i < kSlotsMax; ++i) {
    Slot& slot = pod.slots[i];
    if (slot.status != Status::free) continue;
    slot = Slot{};
    slot.status = Status::starting;
    slot.pid = slot.pidfd = slot.report = slot.log = slot.log_directory = slot.stdin_end = slot.terminal = -1;
    slot.owner = slot.requester = -1;
    for (Stream& stream : slot.streams) stream.fd = -1;
    for (Attach& attach : slot.attaches) attach.ends[0] = attach.ends[1] = -1;
    slot.flags = request.flags;
    slot.log_files = request.log_files;
    slot.log_rotate_bytes = request.log_rotate_bytes;
    copy_text(slot.id, request.id, sizeof slot.id);
    copy_text(slot.log_name, request.log_name, sizeof slot.log_name);
    if (pod.slots_used <= i) pod.slots_used = i + 1;
    return i;
  }
  return -1;
}

// Our ends are stored in the slot, the child's ends in `far`. With a terminal there are none: its master arrives with the report.
int make_streams(Slot& slot, int far[3]) {
  far[0] = far[1] = far[2] = -1;
  if (slot.flags & kTerminal) return 0;
  int ends[2];
  if (slot.flags & kOpenStdin) {
    if (int rc = k_pipe2(ends, O_CLOEXEC); rc < 0) return rc;
    far[0] = ends[0];
    slot.stdin_end = ends[1];
  } else {
    far[0] = pod.null;
  }
  for (int i = 0; i < 2; ++i) {
    if (int rc = k_pipe2(ends, O_CLOEXEC); rc < 0) return rc;
    slot.streams[i].fd = ends[0];
    far[i + 1] = ends[1];
    (void)k_fcntl(ends[0], 4 /* F_SETFL */, kNonblock);  // cannot fail for a pipe
  }
  return 0;
}

// setns to a pid namespace applies to later children: it is entered before clone and left afterwards.
int enter_pid_namespace(int pidfd) { return k_setns(pidfd, CLONE_NEWPID); }

// On failure, `stage` is set to the failed stage.
int clone_child(Slot& slot, Launch& plan, uint64_t flags, int cgroup, int pid_namespace, Stage& stage) {
  int report[2];
  stage = Stage::clone;
  if (int rc = k_socketpair(report, kSockSeqpacket | kSockCloexec); rc < 0) return rc;
  if (pid_namespace >= 0) {
    stage = Stage::join;
    if (int rc = enter_pid_namespace(pid_namespace); rc < 0) {
      k_close(report[0]);
      k_close(report[1]);
      return rc;
    }
  }
  stage = Stage::clone;
  plan.report = report[1];
  int pidfd = -1;
  clone_args arguments{};
  arguments.flags = flags | CLONE_PIDFD | CLONE_INTO_CGROUP;
  arguments.pidfd = address(&pidfd);
  arguments.exit_signal = kSigchld;
  arguments.cgroup = uint64_t(cgroup);
  int pid = k_clone3(&arguments);
  if (pid == 0) run_child(plan);
  if (pid_namespace >= 0 && enter_pid_namespace(pod.self_pidfd) < 0) k_exit(9);  // later children would be in the wrong namespace
  k_close(report[1]);
  if (pid < 0) {
    k_close(report[0]);
    return pid;
  }
  slot.pid = pid;
  slot.pidfd = pidfd;
  slot.report = report[0];
  return 0;
}

// A stream that nobody reads would block the container when the pipe is full.
int watch_streams(int index) {
  Slot& slot = pod.slots[index];
  for (int i = 0; i < 2; ++i) {
    if (slot.streams[i].fd < 0) continue;
    if (int rc = watch(slot.streams[i].fd, EPOLLIN, key_of(i ? Source::err : Source::out, index)); rc < 0) return rc;
  }
  return 0;
}

Failure start(int index, int connection, Incoming& incoming, uint64_t flags, int pid_namespace, int target) {
  Slot& slot = pod.slots[index];
  int far[3];
  const bool inherits = slot.is_exec || slot.flags & kInheritStdio;
  int rc = 0;
  if (inherits) {
    for (int i = 0; i < 3; ++i) far[i] = slot.flags & kTerminal ? -1 : incoming.fds[kFdStdin + i];
  } else {
    rc = make_streams(slot, far);
  }
  if (rc >= 0 && slot.flags & kHasLog) {
    rc = open_log(slot, incoming.fds[kFdLogDirectory]);
    if (rc >= 0) incoming.fds[kFdLogDirectory] = -1;
  }
  Stage stage = slot.flags & kHasLog ? Stage::log : Stage::stdio;
  if (rc >= 0) {
    Launch plan{incoming.fds, incoming.fds_count, -1, {far[0], far[1], far[2]}, target, -1};
    rc = clone_child(slot, plan, flags, incoming.fds[kFdCgroup], pid_namespace, stage);
  }
  if (!inherits)
    for (int fd : far)
      if (fd >= 0 && fd != pod.null) k_close(fd);
  if (rc >= 0) {
    (void)k_fcntl(slot.report, 4 /* F_SETFL */, kNonblock);
    rc = watch(slot.report, EPOLLIN, key_of(Source::report, index));
    if (rc >= 0) rc = watch_streams(index);
  }
  if (rc < 0) {
    if (slot.pidfd >= 0) (void)k_pidfd_send_signal(slot.pidfd, kSigkill);
    free_slot(index);
    return failure(stage, rc);
  }
  slot.requester = connection;
  return kNoFailure;
}

Failure check(const Incoming& incoming) {
  if (pod.is_ending) return {kEbusy, Stage::request, -1};
  if (incoming.fds_count < kFdMore || !incoming.request.id[0]) return {kEproto, Stage::request, -1};
  if (find_slot(incoming.request.id) >= 0) return {kEexist, Stage::slot, -1};
  return kNoFailure;
}

// Sends the result of a launch: running or failed.
void answer(int index) {
  Slot& slot = pod.slots[index];
  if (slot.has_failure) {
    reply(slot.requester, Reply{Kind::reply, slot.failure.err, uint32_t(slot.failure.stage), slot.failure.index, 0}, nullptr, 0);
    slot.requester = -1;
    return;
  }
  slot.status = Status::running;
  slot.started_ns = k_now();
  int fds[2] = {slot.pidfd, slot.terminal};
  reply(slot.requester, Reply{Kind::reply, 0, 0, -1, slot.started_ns}, fds, slot.is_exec && slot.terminal >= 0 ? 2 : 1);
  slot.requester = -1;
  if (slot.is_exec) close_if_open(slot.terminal);  // the daemon has it now
  tell_subscribers(index);
}

void take_terminal(int index, int fd) {
  Slot& slot = pod.slots[index];
  slot.terminal = fd;
  if (slot.is_exec) return;
  (void)k_fcntl(fd, 4 /* F_SETFL */, kNonblock);
  slot.streams[0].fd = fd;
  watch_streams(index);
}

}  // namespace

int find_slot(const char* id) {
  for (int i = 0; i < pod.slots_used; ++i)
    if (pod.slots[i].status != Status::free && same(pod.slots[i].id, id)) return i;
  return -1;
}

void free_slot(int index) {
  Slot& slot = pod.slots[index];
  abandon_slow_clients(index);
  for (int i = 0; i < 2; ++i) close_stream(index, i);
  for (Attach& attach : slot.attaches)
    for (int& end : attach.ends) unwatch(end);
  unwatch(slot.terminal);
  close_if_open(slot.pidfd);
  unwatch(slot.report);
  close_if_open(slot.log);
  close_if_open(slot.log_directory);
  close_if_open(slot.stdin_end);
  slot.status = Status::free;
}

Failure launch(int connection, Incoming& incoming) {
  if (Failure bad = check(incoming); bad.err) return bad;
  uint64_t flags = CLONE_NEWNS;
  int pid_namespace = -1;
  if (incoming.request.flags & kTargetPidNamespace) {
    int target = find_slot(incoming.request.target);
    if (target < 0 || pod.slots[target].status != Status::running) return {kEsrch, Stage::target, -1};
    pid_namespace = pod.slots[target].pidfd;
  }
  int index = new_slot(incoming.request);
  if (index < 0) return {kEnfile, Stage::slot, -1};
  if (incoming.request.flags & kSharedPidNamespace) pid_namespace = pod.shared_init;
  if (incoming.request.flags & kNewPidNamespace) flags |= CLONE_NEWPID;
  return start(index, connection, incoming, flags, pid_namespace, -1);
}

Failure exec(int connection, Incoming& incoming) {
  if (Failure bad = check(incoming); bad.err) return bad;
  int target = find_slot(incoming.request.target);
  if (target < 0) return {kEnoent, Stage::target, -1};
  if (pod.slots[target].status != Status::running) return {kEsrch, Stage::target, -1};
  int index = new_slot(incoming.request);
  if (index < 0) return {kEnfile, Stage::slot, -1};
  pod.slots[index].is_exec = true;
  pod.slots[index].owner = connection;
  const int pidfd = pod.slots[target].pidfd;
  return start(index, connection, incoming, 0, pidfd, pidfd);
}

void read_report(int index) {
  Slot& slot = pod.slots[index];
  if (slot.status == Status::free || slot.report < 0) return;
  while (true) {
    Report report{};
    Rights<1> rights{};
    Received received = receive_message(slot.report, &report, sizeof report, rights, kMsgDontwait);
    if (received.size == -kEagain || received.size == -kEintr) return;
    if (received.size != sizeof report) break;
    if (report.note == Note::terminal && received.count > 0) take_terminal(index, rights.fds[0]);
    if (report.note == Note::failure) slot.has_failure = true, slot.failure = report.failure;
  }
  // End of file: exec has closed the child's end, or the child has exited.
  unwatch(slot.report);
  if (slot.has_failure) return;  // answered after reaping, so that nothing is left by then
  answer(index);
}

void end_everything() {
  pod.is_ending = true;
  for (Slot& slot : pod.slots)
    if (slot.status != Status::free && slot.status != Status::ended) (void)k_pidfd_send_signal(slot.pidfd, kSigkill);
  if (pod.shared_init >= 0) (void)k_pidfd_send_signal(pod.shared_init, kSigkill);
  reap();
}

}  // namespace coracle::pause
