// SPDX-License-Identifier: Apache-2.0
// The child drops what the container must not have, then becomes the container's program. Every failure is fatal. Source: OCI
// runtime-spec config.md (process); capabilities(7), seccomp(2), credentials(7), user_namespaces(7).
#include "runtime/launch/child.h"
#include "runtime/launch/kernel.h"

namespace coracle::launch {
namespace {

void set_number(char* to, int value) noexcept {
  char digits[12];
  int n = 0;
  unsigned rest = value < 0 ? 0u - unsigned(value) : unsigned(value);
  do {
    digits[n++] = char('0' + rest % 10);
  } while (rest /= 10);
  if (value < 0) *to++ = '-';
  while (n) *to++ = digits[--n];
  *to = 0;
}

void set_oom_score(const Child& child) noexcept {
  if (!(child.header().flags & kPlanSetOomScore)) return;
  char text[16];
  set_number(text, child.header().oom_score_adj);
  write_proc(child, "self/oom_score_adj", text, Stage::oom, -1);
}

// Takes effect at the next exec; must be written before capabilities and seccomp forbid it.
void set_security_labels(const Child& child) noexcept {
  if (const char* profile = child.text(child.header().apparmor))
    write_proc(child, "self/attr/apparmor/exec", profile, Stage::lsm, 0);
  if (const char* label = child.text(child.header().selinux)) write_proc(child, "self/attr/exec", label, Stage::lsm, 1);
}

void set_resource_limits(const Child& child) noexcept {
  const RlimitStep* steps = child.items<RlimitStep>(child.header().rlimits);
  for (uint32_t i = 0; i < child.header().rlimits.count; ++i) {
    Limit limit{steps[i].soft, steps[i].hard};
    must(child, Stage::rlimit, k_prlimit(steps[i].resource, &limit), int(i));
  }
}

void set_scheduling(const Child& child) noexcept {
  const Plan& plan = child.header();
  if (plan.scheduler.count) must(child, Stage::scheduler, k_sched_setattr(child.items<char>(plan.scheduler)));
  if (plan.affinity.count)
    must(child, Stage::affinity, k_sched_setaffinity(plan.affinity.count * 8, child.items<uint64_t>(plan.affinity)));
  if (plan.io_priority >= 0) must(child, Stage::io_priority, k_ioprio_set(plan.io_priority));
  if (plan.personality >= 0) must(child, Stage::personality, k_personality(long(plan.personality)));
  if (plan.memory_mode >= 0)
    must(child, Stage::memory_policy,
         k_set_mempolicy(plan.memory_mode, child.items<uint64_t>(plan.memory_nodes), plan.memory_nodes.count * 64 + 1));
}

// The container must not have access to the keys of the launcher's session.
void leave_keyring(const Child& child) noexcept {
  const char* name = child.text(child.header().keyring);
  if (!name) return;
  int rc = k_join_keyring(name);
  if (rc != -kEnosys) must(child, Stage::keyring, rc);  // ENOSYS: a kernel without keyrings
}

bool has_listener(const Plan& plan) noexcept { return plan.seccomp_flags & SECCOMP_FILTER_FLAG_NEW_LISTENER; }

void load_seccomp(const Child& child) noexcept {
  const Plan& plan = child.header();
  if (plan.seccomp.count == 0) return;
  sock_fprog program{uint16_t(plan.seccomp.count), child.items<sock_filter>(plan.seccomp)};
  int listener = must(child, Stage::seccomp, k_seccomp(plan.seccomp_flags, &program));
  if (!has_listener(plan)) return;
  tell(child, Note::listener, listener, Stage::seccomp);
  k_close(listener);
}

void drop_bounding_set(const Child& child) noexcept {
  for (unsigned cap = 0; cap < 64; ++cap) {
    if (child.header().bounding >> cap & 1) continue;
    int rc = k_prctl(PR_CAPBSET_DROP, cap);
    if (rc == -kEinval) break;  // beyond the kernel's last capability
    must(child, Stage::capabilities, rc, int(cap));
  }
}

void become_user(const Child& child) noexcept {
  const Plan& plan = child.header();
  if (!child.has(kPlanKeepGroups)) must(child, Stage::groups, k_setgroups(plan.groups.count, child.items<uint32_t>(plan.groups)));
  must(child, Stage::user, k_setresgid(plan.gid));
  must(child, Stage::user, k_setresuid(plan.uid));
}

void set_capabilities(const Child& child) noexcept {
  const Plan& plan = child.header();
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2];
  for (int i = 0; i < 2; ++i) {
    data[i].effective = uint32_t(plan.effective >> (32 * i));
    data[i].permitted = uint32_t(plan.permitted >> (32 * i));
    data[i].inheritable = uint32_t(plan.inheritable >> (32 * i));
  }
  must(child, Stage::capabilities, k_capset(&head, data));
  must(child, Stage::capabilities, k_prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL));
  for (unsigned cap = 0; cap < 64; ++cap)
    if (plan.ambient >> cap & 1) must(child, Stage::capabilities, k_prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap), int(cap));
}

// Afterwards the working directory is guaranteed to be inside the root: a directory outside (reached through an open descriptor)
// has no path here. Source: CVE-2024-21626.
// A directory that is closed to the user is entered with the launcher's privileges, as with runc and crun: images have such ones.
void change_directory(const Child& child) noexcept {
  const char* path = child.text(child.header().cwd);
  int rc = k_chdir(path);
  if (rc == -kEaccess && child.has(kPlanCapabilities)) {  // set_capabilities() takes them away
    raise_effective(child);
    rc = k_chdir(path);
  }
  must(child, Stage::working_directory, rc);
  char where[4096];
  long n = k_getcwd(where, sizeof where);
  if (n == -kErange) return;  // too long, but it has a path
  must(child, Stage::working_directory, int(n));
  if (where[0] != '/') fail(child, Stage::working_directory, kEnoent);
}

// Closes what was needed so far instead of marking it close-on-exec. An open directory of the host is reachable as
// /proc/self/fd/N/.. when a path is resolved, both for the working directory and for the program. Source: CVE-2024-21626. It also
// releases the launcher's locks before waiting for start.
void close_descriptors(const Child& child) noexcept {
  const int start = child.launch->start < 0 ? child.report : child.launch->start;  // both are close-on-exec sockets
  const unsigned first = 3 + child.header().kept_fds;
  const unsigned low = unsigned(start < child.report ? start : child.report);
  const unsigned high = unsigned(start < child.report ? child.report : start);
  if (low > first) must(child, Stage::stdio, k_close_range(first, low - 1, 0));
  if (high > low + 1) must(child, Stage::stdio, k_close_range(low + 1, high - 1, 0));
  must(child, Stage::stdio, k_close_range(high + 1, ~0u, 0));
}

bool has_program(const Child& child) noexcept { return child.header().argv.count > 1; }

}  // namespace

void raise_effective(const Child& child) noexcept {
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  must(child, Stage::capabilities, k_capget(&head, data));
  for (__user_cap_data_struct& half : data) half.effective = half.permitted;
  must(child, Stage::capabilities, k_capset(&head, data));
}

// The last slot stays 0. Where pointers are shorter than slots they move to the front: each is written over slots that are read.
char* const* point_at_text(const Child& child, Range vector) noexcept {
  uint64_t* slots = child.items<uint64_t>(vector);
  char** pointers = reinterpret_cast<char**>(slots);
  for (uint32_t i = 0; i < vector.count; ++i) {
    const uint64_t offset = slots[i];
    pointers[i] = i + 1 < vector.count ? child.plan + offset : nullptr;
  }
  return pointers;
}

void set_labels(const Child& child) noexcept {
  set_oom_score(child);
  set_security_labels(child);
}

void set_limits(const Child& child) noexcept {
  set_resource_limits(child);
  set_scheduling(child);
  leave_keyring(child);
}

void join_user_namespace(const Child& child) noexcept {
  const Plan& plan = child.header();
  if (plan.flags & kPlanJoinTargetUser) must(child, Stage::user_namespace, k_setns(child.launch->target, CLONE_NEWUSER));
  if (plan.user_fd < 0) return;
  must(child, Stage::user_namespace, k_setns(request_fd(child, plan.user_fd, Stage::user_namespace, -1), CLONE_NEWUSER));
  if (child.has(kPlanUnshareMounts) && !child.owns_mounts) must(child, Stage::user_namespace, k_unshare(CLONE_NEWNS));
}

void confine(const Child& child) noexcept {
  const Plan& plan = child.header();
  const bool has_privileges_to_drop = plan.flags & kPlanCapabilities;
  close_descriptors(child);
  if (plan.flags & kPlanSetUmask) k_umask(plan.umask);
  if (has_privileges_to_drop) drop_bounding_set(child);
  must(child, Stage::capabilities, k_prctl(PR_SET_KEEPCAPS, has_privileges_to_drop));
  become_user(child);
  change_directory(child);
  // Loading the filter needs no_new_privs or CAP_SYS_ADMIN, which is dropped next.
  if (plan.seccomp.count && !child.has(kPlanNoNewPrivileges)) {
    raise_effective(child);
    load_seccomp(child);
  }
  if (has_privileges_to_drop) set_capabilities(child);
  must(child, Stage::capabilities, k_prctl(PR_SET_KEEPCAPS, 0));
  if (plan.flags & kPlanDieWithPause) must(child, Stage::session, k_prctl(PR_SET_PDEATHSIG, kSigkill));
  if (!child.has(kPlanNoNewPrivileges)) return;
  must(child, Stage::no_new_privileges, k_prctl(PR_SET_NO_NEW_PRIVS, 1));
  // The launcher waits for the listener, so that filter is loaded now; others are loaded last: see load_last_seccomp().
  if (has_listener(plan)) load_seccomp(child);
}

void load_last_seccomp(const Child& child) noexcept {
  if (child.has(kPlanNoNewPrivileges) && !has_listener(child.header())) load_seccomp(child);
}

void check_program(const Child& child) noexcept {
  if (!has_program(child)) return;
  constexpr int kMayExecute = 1;
  const uint32_t* programs = child.items<uint32_t>(child.header().programs);
  int err = kEnoent;
  for (uint32_t i = 0; i < child.header().programs.count; ++i) {
    int rc = k_faccessat(child.text(programs[i]), kMayExecute);
    if (rc == 0) return;
    if (rc == -kEaccess) err = kEaccess;
    if (rc != -kEnoent && rc != -kEnotdir && rc != -kEaccess) return;  // exec reports the error
  }
  fail(child, Stage::exec, err);
}

void execute(const Child& child) noexcept {
  if (!has_program(child)) k_exit(0);
  const Plan& plan = child.header();
  char* const* argv = point_at_text(child, plan.argv);
  char* const* env = point_at_text(child, plan.env);
  load_last_seccomp(child);
  const uint32_t* programs = child.items<uint32_t>(plan.programs);
  int err = kEnoent;
  for (uint32_t i = 0; i < plan.programs.count; ++i) {
    int rc = k_execve(child.text(programs[i]), argv, env);
    if (rc == -kEaccess) err = kEaccess;  // as execvp: remember it, but try later directories
    if (rc != -kEnoent && rc != -kEnotdir && rc != -kEaccess) fail(child, Stage::exec, -rc);
  }
  fail(child, Stage::exec, err);
}

}  // namespace coracle::launch
