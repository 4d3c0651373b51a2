// SPDX-License-Identifier: Apache-2.0
// The child's table of contents. See child.h.
#include "runtime/launch/child.h"

#include "runtime/launch/kernel.h"

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
  if (plan.magic != kPlanMagic || plan.version != kPlanVersion || plan.size != about.stx_size)
    fail(child, Stage::plan, kEproto);
}

int plan_fd(const Child& child, int index, Stage stage, int at) noexcept {
  if (index < 0 || index >= child.launch->fds_count) fail(child, stage, kEbadf, at);
  return child.launch->fds[index];
}

void enter_namespaces(Child& child) noexcept {
  const Plan& plan = child.header();
  const JoinStep* joins = child.items<JoinStep>(plan.joins);
  for (uint32_t i = 0; i < plan.joins.count; ++i) {
    int fd = plan_fd(child, joins[i].fd, Stage::join, int(i));
    must(child, Stage::join, k_setns(fd, int(joins[i].type)), int(i));
  }
  if (plan.unshare) must(child, Stage::unshare, k_unshare(int(plan.unshare)));
}

void name_host(const Child& child) noexcept {
  const Plan& plan = child.header();
  if (const char* name = child.text(plan.hostname)) must(child, Stage::hostname, k_sethostname(name, length(name)));
  if (const char* name = child.text(plan.domainname)) must(child, Stage::hostname, k_setdomainname(name, length(name)));
}

void write_sysctls(const Child& child) noexcept {
  const Plan& plan = child.header();
  const SysctlStep* steps = child.items<SysctlStep>(plan.sysctls);
  for (uint32_t i = 0; i < plan.sysctls.count; ++i) {
    int dir =
        must(child, Stage::sysctl, k_openat2(child.proc, "sys", O_PATH | O_DIRECTORY, 0, RESOLVE_NO_XDEV), int(i));
    int fd = must(
        child, Stage::sysctl,
        k_openat2(dir, child.text(steps[i].path), O_WRONLY, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV),
        int(i));
    const char* value = child.text(steps[i].value);
    must(child, Stage::sysctl, int(k_write(fd, value, length(value))), int(i));
    k_close(fd);
    k_close(dir);
  }
}

// Lets the one who launched us decide when to go on. Pause closing its end means never.
void wait_if_held(const Child& child) noexcept {
  if (!(child.header().flags & kPlanHold)) return;
  Report report{Note::held, {}};
  must(child, Stage::request, int(k_write(child.launch->report, &report, sizeof report)));
  char go;
  if (k_read(child.launch->report, &go, 1) != 1) k_exit(1);
}

void enter_container(Child& child) noexcept {
  constexpr int kAll = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWCGROUP;
  must(child, Stage::join, k_setns(child.launch->target, kAll));
  child.root = must(child, Stage::root, k_openat(-100 /* AT_FDCWD */, "/", O_PATH | O_DIRECTORY));
}

}  // namespace

void fail(const Child& child, Stage stage, int err, int index) noexcept {
  Report report{Note::failure, {err, stage, index}};
  (void)k_write(child.launch->report, &report, sizeof report);  // pause also sees us exit 127
  k_exit(127);
}

void run_child(const Launch& launch) noexcept {
  Child child{&launch, nullptr, -1, -1, -1};
  k_sigprocmask_set(0);
  map_plan(child);
  must(child, Stage::session, k_setsid());
  if (child.header().flags & kPlanExec) {
    enter_container(child);
  } else {
    enter_namespaces(child);
    name_host(child);
    make_file_system(child);
  }
  have_proc(child);
  write_sysctls(child);
  open_terminal(child);
  if (!(child.header().flags & kPlanExec)) {
    make_working_directory(child);
    restrict_file_system(child);
    enter_root(child);
  }
  take_streams(child);
  confine(child);
  wait_if_held(child);
  execute(child);
}

}  // namespace coracle::launch
