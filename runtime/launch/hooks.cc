// SPDX-License-Identifier: Apache-2.0
// Hooks that run in the container's namespaces, and the processes beside the container's that a user namespace needs for that.
// createContainer hooks run before the root is entered, in the bundle, so their paths are the host's; with a user namespace they
// are its root. startContainer hooks run last, as confined as the container's process. They run one after the other, each with
// the container's state as standard input. The first failure ends the container, and the hook's output becomes part of the error.
// Source: runtime-spec config.md "POSIX-platform Hooks".
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
int state_file(const Child& child, int pid, Stage stage, int at) noexcept {
  const Plan& plan = child.header();
  const char* head = child.text(stage == Stage::create_hook ? plan.create_state : plan.start_state);
  const char* tail = child.text(plan.state_tail);
  int fd = must(child, stage, k_memfd("coracle-state"), at);
  char digits[12];
  size_t n = write_number(digits, unsigned(pid));
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
  arguments.pidfd = address(pidfd);
  arguments.exit_signal = kSigchld;
  int pid = k_clone3(&arguments);
  return pid == -kEnosys || pid == -kEperm ? k_clone_old(CLONE_PIDFD | unsigned(kSigchld), pidfd) : pid;
}

// Waits for a process to end; kills it after the timeout. False: it was killed.
bool wait_within(int pidfd, uint32_t seconds) noexcept {
  __kernel_timespec left{seconds, 0};
  PollFd watched{pidfd, kPollIn, 0};
  int ready;
  do {
    ready = k_poll(&watched, 1, seconds ? &left : nullptr);
  } while (ready == -kEintr);
  if (ready != 0) return true;
  (void)k_pidfd_send_signal(pidfd, kSigkill);  // it may have ended
  return false;
}

// `pid`: of the container's process, as the container sees it, whose namespaces the hook runs in.
void run_hook(const Child& child, const HookStep& step, int pid, Stage stage, int at) noexcept {
  int state = state_file(child, pid, stage, at);
  int said = must(child, stage, k_memfd("coracle-hook"), at);
  int pidfd = -1;
  int hook = must(child, stage, clone_for_hook(&pidfd), at);
  if (hook == 0) become_hook(child, step, state, said, stage, at);
  k_close(state);
  bool in_time = wait_within(pidfd, step.timeout_seconds);
  int status = 0;
  must(child, stage, k_wait4(hook, &status, 0), at);
  k_close(pidfd);
  if (!in_time || status != 0) tell(child, Note::said, said, stage);
  k_close(said);
  if (!in_time) fail(child, stage, kEtimedout, at);
  if (int signal = status & 0x7f) fail(child, stage, -128 - signal, at);
  if (int code = status >> 8 & 0xff) fail(child, stage, -code, at);
}

void run_hooks(const Child& child, Range hooks, int pid, Stage stage) noexcept {
  const HookStep* steps = child.items<HookStep>(hooks);
  for (uint32_t i = 0; i < hooks.count; ++i) run_hook(child, steps[i], pid, stage, int(i));
}

// The root where it stands in this process's tree.
const char* root_place(const Child& child) noexcept {
  const char* place = child.text(child.header().root_path);
  return place ? place : "/";
}

bool is_told(int socket) noexcept {
  char go = 0;
  return k_read(socket, &go, sizeof go) == long(sizeof go);
}

void let_go(const Child& child, int socket) noexcept { must(child, Stage::create_hook, int(k_write(socket, &kGo, sizeof kGo))); }

// Enters the mounts of a process that waits in the user namespace.
void enter_mounts_of(Child& child, int pidfd) noexcept {
  must(child, Stage::user_namespace, k_setns(pidfd, CLONE_NEWNS));
  child.owns_mounts = true;
}

// Waits for the process to end. It has reported why, if it failed.
void wait_for_help(const Child& child, int pid, int pidfd) noexcept {
  int status = 0;
  must(child, Stage::user_namespace, k_wait4(pid, &status, 0));
  k_close(pidfd);
  if (status != 0) k_exit(127);
}

// Becomes root of the container's user namespace, with mounts that belong to it.
//   this process                      the container's
//   joins, unshares, "ready"   ──▶    enters its mount namespace, while there is somebody to enter
//   runs the hooks             ◀──    "go"
[[noreturn]] void be_hooks_parent(const Child& child, int user, int pid, int socket) noexcept {
  must(child, Stage::user_namespace, k_setns(user, CLONE_NEWUSER));
  if (child.has(kPlanUnshareMounts)) {
    must(child, Stage::user_namespace, k_unshare(CLONE_NEWNS));
    // All its mounts are locked now. pivot_root needs one that is not: the root is bound on itself. Only the host's user may
    // reach its path, so this comes before the change of users.
    int tree = must(child, Stage::root, k_open_tree(-100, root_place(child), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | kAtRecursive));
    must(child, Stage::root, k_move_mount(tree, "", -100, root_place(child), MOVE_MOUNT_F_EMPTY_PATH));
    k_close(tree);
  }
  if (!child.has(kPlanKeepGroups)) must(child, Stage::user_namespace, k_setgroups(0, nullptr));
  must(child, Stage::user_namespace, k_setresgid(0));
  must(child, Stage::user_namespace, k_setresuid(0));
  let_go(child, socket);
  if (!is_told(socket)) k_exit(127);
  run_hooks(child, child.header().create_hooks, pid, Stage::create_hook);
  k_exit(0);
}

}  // namespace

void run_start_hooks(const Child& child) noexcept { run_hooks(child, child.header().start_hooks, k_getpid(), Stage::start_hook); }

void run_create_hooks(Child& child) noexcept {
  const Plan& plan = child.header();
  if (plan.create_hooks.count == 0) return;
  if (plan.user_fd < 0) return run_hooks(child, plan.create_hooks, k_getpid(), Stage::create_hook);
  // Another process is their parent: this one needs the launcher's privileges for later steps.
  make_file_systems_readonly(child);  // by descriptors, which belong to the present mount namespace
  const int user = request_fd(child, plan.user_fd, Stage::user_namespace, -1);
  int ends[2];
  must(child, Stage::create_hook, k_socketpair(ends, kSockSeqpacket | kSockCloexec));
  const int own = k_getpid();
  int pidfd = -1;
  int parent = must(child, Stage::create_hook, clone_for_hook(&pidfd));
  if (parent == 0) {
    k_close(ends[0]);
    be_hooks_parent(child, user, own, ends[1]);
  }
  k_close(ends[1]);
  if (is_told(ends[0])) {
    if (child.has(kPlanUnshareMounts)) {  // what hooks mount is the container's
      enter_mounts_of(child, pidfd);
      k_close(child.root);
      child.root = must(child, Stage::root, k_openat(-100, root_place(child), O_PATH | O_DIRECTORY));
    }
    let_go(child, ends[0]);
  }
  k_close(ends[0]);
  wait_for_help(child, parent, pidfd);
}

// The copy of the mounts that belongs to the user namespace is made by another process: who joins that namespace has no way back
// to the launcher's privileges.
void keep_propagation(Child& child) noexcept {
  const Plan& plan = child.header();
  if (plan.user_fd < 0 || !child.has(kPlanUnshareMounts) || !loses_propagation(child)) return;
  if (!child.owns_mounts) {
    const int user = request_fd(child, plan.user_fd, Stage::user_namespace, -1);
    int ends[2];
    must(child, Stage::user_namespace, k_socketpair(ends, kSockSeqpacket | kSockCloexec));
    int pidfd = -1;
    int helper = must(child, Stage::user_namespace, clone_for_hook(&pidfd));
    if (helper == 0) {
      k_close(ends[0]);
      must(child, Stage::user_namespace, k_setns(user, CLONE_NEWUSER));
      must(child, Stage::user_namespace, k_unshare(CLONE_NEWNS));
      let_go(child, ends[1]);
      (void)is_told(ends[1]);  // the end of the socket tells it, too
      k_exit(0);
    }
    k_close(ends[1]);
    if (is_told(ends[0])) enter_mounts_of(child, pidfd);
    k_close(ends[0]);
    wait_for_help(child, helper, pidfd);
  }
  restore_propagation(child);
}

}  // namespace coracle::launch
