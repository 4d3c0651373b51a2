// SPDX-License-Identifier: Apache-2.0
// Hooks that run in the container's namespaces. createContainer hooks run before the root is entered, in the bundle, so their
// paths are the host's. startContainer hooks run last, as confined as the container's process. They run one after the other, each
// with the container's state as standard input. The first failure ends the container, and the hook's output becomes part of the
// error. Source: runtime-spec config.md "POSIX-platform Hooks".
#include "runtime/launch/child.h"
#include "runtime/launch/kernel.h"

namespace coracle::launch {
namespace {

size_t write_number(char* to, unsigned value) noexcept {
  char digits[12];
  size_t n = 0, used = 0;
  do {
    digits[n++] = char('0' + value % 10);
  } while (value /= 10);
  while (n) to[used++] = digits[--n];
  return used;
}

// The state in a memfd: a hook that does not read it blocks nothing.
int state_file(const Child& child, Stage stage, int at) noexcept {
  const Plan& plan = child.header();
  const char* head = child.text(stage == Stage::create_hook ? plan.create_state : plan.start_state);
  const char* tail = child.text(plan.state_tail);
  int fd = must(child, stage, k_memfd("coracle-state"), at);
  char digits[12];
  size_t n = write_number(digits, unsigned(k_getpid()));  // as the container sees it, whose namespaces the hook runs in
  must(child, stage, int(k_write(fd, head, length(head))), at);
  must(child, stage, int(k_write(fd, digits, n)), at);
  must(child, stage, int(k_write(fd, tail, length(tail))), at);
  must(child, stage, int(k_seek_start(fd)), at);
  return fd;
}

[[noreturn]] void become_hook(const Child& child, const HookStep& step, int state, int said, Stage stage, int at) noexcept {
  must(child, stage, k_dup3(state, 0, 0), at);
  for (int fd = 1; fd <= 2; ++fd) must(child, stage, k_dup3(said, fd, 0), at);
  if (const char* bundle = child.text(child.header().bundle); bundle && stage == Stage::create_hook)
    (void)k_chdir(bundle);  // the container's root may lack access
  must(child, stage, k_close_range(3, ~0u, CLOSE_RANGE_CLOEXEC), at);
  if (stage == Stage::start_hook) load_last_seccomp(child);
  must(child, stage, k_execve(child.text(step.path), point_at_text(child, step.argv), point_at_text(child, step.env)), at);
  k_exit(127);
}

int clone_for_hook(int* pidfd) noexcept {
  clone_args arguments{};
  arguments.flags = CLONE_PIDFD;
  arguments.pidfd = reinterpret_cast<uint64_t>(pidfd);
  arguments.exit_signal = kSigchld;
  int pid = k_clone3(&arguments);
  return pid == -kEnosys || pid == -kEperm ? k_clone_old(CLONE_PIDFD | unsigned(kSigchld), pidfd) : pid;
}

// Waits for a process to end; kills it after the timeout. False: it was killed.
bool wait_within(int pidfd, uint32_t seconds) noexcept {
  timespec left{long(seconds), 0};
  PollFd watched{pidfd, kPollIn, 0};
  int ready;
  do {
    ready = k_poll(&watched, 1, seconds ? &left : nullptr);
  } while (ready == -kEintr);
  if (ready != 0) return true;
  (void)k_pidfd_send_signal(pidfd, kSigkill);  // it may have ended
  return false;
}

void run_hook(const Child& child, const HookStep& step, Stage stage, int at) noexcept {
  int state = state_file(child, stage, at);
  int said = must(child, stage, k_memfd("coracle-hook"), at);
  int pidfd = -1;
  int pid = must(child, stage, clone_for_hook(&pidfd), at);
  if (pid == 0) become_hook(child, step, state, said, stage, at);
  k_close(state);
  bool in_time = wait_within(pidfd, step.timeout_seconds);
  int status = 0;
  must(child, stage, k_wait4(pid, &status, 0), at);
  k_close(pidfd);
  if (!in_time || status != 0) tell(child, Note::said, said, stage);
  k_close(said);
  if (!in_time) fail(child, stage, kEtimedout, at);
  if (int signal = status & 0x7f) fail(child, stage, -128 - signal, at);
  if (int code = status >> 8 & 0xff) fail(child, stage, -code, at);
}

}  // namespace

void run_hooks(const Child& child, Range hooks, Stage stage) noexcept {
  const HookStep* steps = child.items<HookStep>(hooks);
  for (uint32_t i = 0; i < hooks.count; ++i) run_hook(child, steps[i], stage, int(i));
}

}  // namespace coracle::launch
