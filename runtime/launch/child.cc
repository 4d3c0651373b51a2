// SPDX-License-Identifier: Apache-2.0
// The steps of the child. See child.h.
#include "runtime/launch/child.h"

#include "runtime/launch/kernel.h"
#include "runtime/launch/loopback.h"
#include "runtime/launch/message.h"
#include "runtime/launch/sysctl.h"

namespace coracle::launch {
namespace {

void map_plan(Child& child) noexcept {
  const int fd = child.launch->fds[kFdPlan];
  struct statx about;
  if (int rc = k_statx(fd, "", kAtEmptyPath, &about); rc < 0) fail(child, Stage::plan, -rc);
  if (about.stx_size < sizeof(Plan) || about.stx_size > UINT32_MAX) fail(child, Stage::plan, kEproto);
  void* mapped = k_mmap(about.stx_size, kProtRead | kProtWrite, fd);
  if (failed(mapped)) fail(child, Stage::plan, int(-reinterpret_cast<long>(mapped)));
  child.plan = static_cast<char*>(mapped);
  const Plan& plan = child.header();
  if (plan.magic != kPlanMagic || plan.version != kPlanVersion || plan.size != about.stx_size) fail(child, Stage::plan, kEproto);
}

// Before anything else: what it makes and takes from here on is the container's. Source: cgroup-v1/cgroups.rst, "tasks".
void join_cgroups(const Child& child) noexcept {
  if (!child.has(kPlanV1)) return;
  const Range tasks = child.header().v1_tasks;
  for (uint32_t i = 0; i < tasks.count; ++i) {
    int fd = request_fd(child, child.items<int32_t>(tasks)[i], Stage::cgroup, int(i));
    must(child, Stage::cgroup, int(k_write(fd, "0", 1)), int(i));  // 0: who writes
  }
}

// If the launcher closes its end it has exited, and the child exits too.
void wait_for_go(const Child& child) noexcept {
  char go = 0;
  if (k_read(child.report, &go, sizeof go) != long(sizeof go)) k_exit(1);
}

// Since Linux 6.2 an affinity outlives the change of cgroups. The kernel leaves out the processors that they do not have, also
// when they change. Source: sched_setaffinity(2); runc, crun.
void forget_affinity(const Child& child) noexcept {
  constexpr size_t kProcessorsMax = 8192;  // NR_CPUS of the largest machines
  if (!child.has(kPlanAllProcessors)) return;
  uint64_t all[kProcessorsMax / 64];
  for (uint64_t& some : all) some = ~uint64_t(0);
  (void)k_sched_setaffinity(sizeof all, all);  // it is not confinement: the cgroups are
}

void enter_namespaces(Child& child) noexcept {
  const Plan& plan = child.header();
  if (child.launch->time_namespace >= 0)
    must(child, Stage::join, k_setns(child.launch->time_namespace, CLONE_NEWTIME), int(plan.joins.count));
  const JoinStep* joins = child.items<JoinStep>(plan.joins);
  for (uint32_t i = 0; i < plan.joins.count; ++i) {
    int fd = request_fd(child, joins[i].fd, Stage::join, int(i));
    must(child, Stage::join, k_setns(fd, int(joins[i].type)), int(i));
  }
  if (plan.unshare) must(child, Stage::unshare, k_unshare(int(plan.unshare)));
}

void name_host(const Child& child) noexcept {
  const Plan& plan = child.header();
  if (const char* name = child.text(plan.hostname)) must(child, Stage::hostname, k_sethostname(name, length(name)), 0);
  if (const char* name = child.text(plan.domainname)) must(child, Stage::hostname, k_setdomainname(name, length(name)), 1);
}

void write_sysctls(const Child& child) noexcept {
  const Plan& plan = child.header();
  const SysctlStep* steps = child.items<SysctlStep>(plan.sysctls);
  for (uint32_t i = 0; i < plan.sysctls.count; ++i) {
    int dir = must(child, Stage::sysctl, k_openat2(child.proc, "sys", O_PATH | O_DIRECTORY, 0, RESOLVE_NO_XDEV), int(i));
    must(child, Stage::sysctl, write_sysctl(dir, child.text(steps[i].path), child.text(steps[i].value), plan.fs_uid), int(i));
    k_close(dir);
  }
}

[[noreturn]] void end_by_signal(int signal) { k_exit(128 + signal); }
void never() {}

// The first process of a pid namespace receives only signals for which it has a handler. A container that waits to be started
// must end on a signal like any other process, so it installs handlers for all signals that would end it. exec resets them.
void end_like_others() noexcept {
  constexpr uint64_t kHarmless = 1ull << (17 - 1) | 1ull << (18 - 1) | 1ull << (20 - 1) | 1ull << (21 - 1) | 1ull << (22 - 1) |
                                 1ull << (23 - 1) | 1ull << (28 - 1);  // SIGCHLD … SIGWINCH
  constexpr unsigned long kSaRestorer = 0x04000000;
  SignalAction action{end_by_signal, kSaRestorer, never, {}};
  for (int signal = 1; signal <= 31; ++signal)
    if (!(kHarmless >> (signal - 1) & 1)) (void)k_sigaction(signal, &action);  // fails for SIGKILL and SIGSTOP
}

// The client of the start socket decides when to continue.
void wait_if_held(Child& child) noexcept {
  if (!child.has(kPlanHold)) return;
  check_program(child);
  end_like_others();
  tell(child, Note::held, -1, Stage::request);
  k_close(child.report);  // the launcher's work is done
  child.report = must(child, Stage::start, k_accept_blocking(child.launch->start));
}

void enter_container(Child& child) noexcept {
  constexpr int kAll = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWCGROUP | CLONE_NEWTIME;
  const uint32_t wanted = child.header().target_namespaces;
  const int kinds = wanted ? int(wanted) : kAll;
  int rc = k_setns(child.launch->target, kinds);
  if (rc == -kEinval) rc = k_setns(child.launch->target, kinds & ~CLONE_NEWTIME);  // for a kernel without time namespaces
  must(child, Stage::join, rc);
  child.root = must(child, Stage::root, k_openat(-100 /* AT_FDCWD */, "/", O_PATH | O_DIRECTORY));
}

void make_container(Child& child) noexcept {
  enter_namespaces(child);
  if (child.has(kPlanLoopback)) must(child, Stage::network, bring_loopback_up());
  name_host(child);
  if (child.has(kPlanJoinedMounts)) {
    child.root = must(child, Stage::root, k_openat(-100 /* AT_FDCWD */, "/", O_PATH | O_DIRECTORY));
  } else {
    make_file_system(child);
  }
}

void finish_root(Child& child) noexcept {
  make_working_directory(child);
  restrict_file_system(child);
  if (child.has(kPlanGate)) {
    tell(child, Note::gate, -1, Stage::gate);
    wait_for_go(child);
  }
  run_create_hooks(child);
  enter_root(child);
  keep_propagation(child);  // before limits, which may forbid another process
}

// Descriptors that did not fit into the request. Each child is a separate process with its own copy.
int carried[kCarriedMax];
int carried_count = 0;
Rights<int(kFdsMax)> carried_rights;

void take_carried(const Child& child, int carrier, Stage stage, int at) noexcept {
  char nothing;
  while (true) {
    Received received = receive_message(carrier, &nothing, sizeof nothing, carried_rights, kMsgDontwait);
    if (received.size <= 0) return;  // all messages were sent before the launch
    if (received.is_cut || carried_count + received.count > int(kCarriedMax)) fail(child, stage, kEproto, at);
    for (int i = 0; i < received.count; ++i) carried[carried_count++] = carried_rights.fds[i];
  }
}

}  // namespace

void forget_signal_actions() noexcept {
  const SignalAction standard{};
  for (int signal = 1; signal <= kSignals; ++signal) (void)k_sigaction(signal, &standard);  // fails for SIGKILL and SIGSTOP
}

void fail(const Child& child, Stage stage, int err, int index) noexcept {
  Report report{Note::failure, {err, stage, index}};
  (void)k_write(child.report, &report, sizeof report);  // the launcher also sees exit code 127
  k_exit(127);
}

int request_fd(const Child& child, int index, Stage stage, int at) noexcept {
  const Launch& launch = *child.launch;
  const int own = launch.fds_count - (child.has(kPlanCarries) ? 1 : 0);
  if (index >= 0 && index < own) return launch.fds[index];
  if (index < own || !child.has(kPlanCarries)) fail(child, stage, kEbadf, at);
  if (carried_count == 0) take_carried(child, launch.fds[own], stage, at);
  if (index - own >= carried_count) fail(child, stage, kEbadf, at);
  return carried[index - own];
}

void tell(const Child& child, Note note, int fd, Stage stage) noexcept {
  Report report{note, {}};
  if (fd < 0) {
    must(child, stage, int(k_write(child.report, &report, sizeof report)));
    return;
  }
  must(child, stage, int(send_message(child.report, &report, sizeof report, &fd, 1, 0)));
}

void run_child(const Launch& launch) noexcept {
  Child child{&launch, nullptr, launch.report, -1, -1, -1};
  k_sigprocmask_set(0);  // do not inherit the launcher's mask
  map_plan(child);
  join_cgroups(child);
  if (child.has(kPlanWait)) wait_for_go(child);
  forget_affinity(child);
  must(child, Stage::session, k_setsid());
  if (child.has(kPlanExec)) {
    have_proc(child);  // before joining the container's namespaces, where it may be masked
    set_labels(child);
    leave_proc(child);  // which may be the host's: nobody in there is to find it with us
    enter_container(child);
  } else {
    make_container(child);
    have_proc(child);
  }
  write_sysctls(child);
  open_terminal(child);
  if (!child.enters()) finish_root(child);
  take_streams(child);
  if (!child.has(kPlanExec)) set_labels(child);
  set_limits(child);
  join_user_namespace(child);
  confine(child);
  wait_if_held(child);
  run_start_hooks(child);
  if (child.has(kPlanHostTree)) tell(child, Note::executing, -1, Stage::exec);
  execute(child);
}

}  // namespace coracle::launch
