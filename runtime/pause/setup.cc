// SPDX-License-Identifier: Apache-2.0
// Sets up the pod's namespaces, once. pause was cloned into new ones, or joins those that the pod's user namespace owns. Here it
// replaces the host's file system by an empty one, brings loopback up, sets the hostname and writes the sysctls.
//
//   /       an empty, small tmpfs of the pod
//   /r      where a child attaches its container's root, in its own copy of this tree
//   /shm    the tmpfs that the pod's containers share as /dev/shm
//   /null   the host's /dev/null, and
//   /empty  an empty directory: sources of masks
#include "runtime/launch/loopback.h"
#include "runtime/launch/sysctl.h"
#include "runtime/pause/pod.h"

namespace coracle::pause {

using namespace launch;

namespace {

constexpr size_t kSysctlsMax = 16384;

int attach_tree(int tree, int dir, const char* path) { return k_move_mount(tree, "", dir, path, MOVE_MOUNT_F_EMPTY_PATH); }

int leave_host_files(const int* fds) {
  constexpr int kCwd = -100;
  const int root = fds[kSetupRoot];
  int rc = k_mount_change("/", kMsPrivate | kMsRec);
  if (rc >= 0) rc = attach_tree(root, kCwd, "/");
  if (rc >= 0) rc = k_fchdir(root);
  if (rc >= 0) rc = attach_tree(fds[kSetupShm], root, "shm");
  if (rc >= 0) rc = attach_tree(fds[kSetupNull], root, "null");
  if (rc >= 0) rc = k_pivot_root(".", ".");
  if (rc >= 0) rc = k_umount2(".", kMntDetach);
  if (rc >= 0) rc = k_chdir("/");
  return rc;
}

// The pod's user namespace owns them. pause stays outside of it: a container's root has no privileges over pause, whatever it has
// in its user namespace.
Failure join_namespaces(const int* fds) {
  constexpr struct {
    int place, type;
  } kJoins[] = {{kSetupNetwork, CLONE_NEWNET}, {kSetupIpc, CLONE_NEWIPC}, {kSetupUts, CLONE_NEWUTS}};
  for (const auto& join : kJoins)
    if (int rc = k_setns(fds[join.place], join.type); rc < 0) return failure(Stage::join, rc);
  return kNoFailure;
}

// The descriptor contains "net/ipv4/ip_forward\0001\0" pairs. procfs shows beneath sys/net and sys/kernel the settings of the
// opener's namespaces: ours.
// `owner`: the host id of the pod's root.
Failure write_sysctls(int proc_sys, int list, unsigned owner) {
  char text[kSysctlsMax];
  long size = k_read(list, text, sizeof text);
  if (size < 0) return failure(Stage::sysctl, int(size));
  const char* at = text;
  const char* end = text + size;
  for (int index = 0; at < end; ++index) {
    const char* path = at;
    const char* value = path + length(path) + 1;
    if (value >= end) return failure(Stage::sysctl, -kEproto, index);
    at = value + length(value) + 1;
    if (int rc = write_sysctl(proc_sys, path, value, owner); rc < 0) return failure(Stage::sysctl, rc, index);
  }
  return kNoFailure;
}

// The first process of a pid namespace that the pod's containers share: it reaps their orphans, and has no privileges that a
// container could take over.
[[noreturn]] void run_shared_init() {
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2]{};
  constexpr unsigned kNobody = 65534;
  bool is_confined = k_close_range(3, ~0u, 0) >= 0 && k_setgroups(0, nullptr) >= 0 && k_setresgid(kNobody) >= 0 &&
                     k_setresuid(kNobody) >= 0 && k_capset(&head, none) >= 0 && k_prctl(PR_SET_NO_NEW_PRIVS, 1) >= 0;
  k_prctl(PR_SET_NAME, reinterpret_cast<unsigned long>("pause"));
  if (!is_confined) k_exit(1);
  while (true) {  // SIGCHLD is blocked, so none is lost between the two calls
    int status;
    while (k_wait4(-1, &status, kWnohang) > 0) {
    }
    wait_for_signal(kSigchld);
  }
}

int make_shared_init() {
  clone_args arguments{};
  int pidfd = -1;
  arguments.flags = CLONE_NEWPID | CLONE_PIDFD;
  arguments.pidfd = address(&pidfd);
  arguments.exit_signal = kSigchld;
  int pid = k_clone3(&arguments);
  if (pid == 0) run_shared_init();
  if (pid < 0) return pid;
  pod.shared_init = pidfd;
  pod.shared_init_pid = pid;
  return 0;
}

}  // namespace

Failure set_up(Incoming& incoming) {
  const Request& request = incoming.request;
  if (pod.is_set_up) return {kEexist, Stage::request, -1};
  const bool joins = request.flags & kJoinNamespaces;
  if (incoming.fds_count != (joins ? int(kSetupFdsWithJoins) : int(kSetupFds))) return {kEproto, Stage::request, -1};
  if (joins)
    if (Failure failed = join_namespaces(incoming.fds); failed.err) return failed;
  if (int rc = leave_host_files(incoming.fds); rc < 0) return failure(Stage::root, rc);
  if (!(request.flags & kHostNetwork))
    if (int rc = bring_loopback_up(); rc < 0) return failure(Stage::network, rc);
  if (!(request.flags & kHostUts) && request.log_name[0])
    if (int rc = k_sethostname(request.log_name, length(request.log_name)); rc < 0) return failure(Stage::hostname, rc);
  struct statx shm;  // its owner is the pod's root
  if (int rc = k_statx(incoming.fds[kSetupShm], "", kAtEmptyPath, &shm); rc < 0) return failure(Stage::root, rc);
  if (Failure failed = write_sysctls(incoming.fds[kSetupProcSys], incoming.fds[kSetupSysctls], shm.stx_uid); failed.err)
    return failed;
  if (request.flags & kSharedPidNamespace)
    if (int rc = make_shared_init(); rc < 0) return failure(Stage::clone, rc);
  pod.is_set_up = true;
  return kNoFailure;
}

}  // namespace coracle::pause
