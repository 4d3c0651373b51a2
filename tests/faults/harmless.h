// SPDX-License-Identifier: Apache-2.0
// The calls that may fail without failing the command, each with the reason. A failing call that is not listed and not reported
// is a bug. The container is checked in any case: it must be as requested.
#pragma once

#include <vector>

#include "tests/faults/verdict.h"

namespace coracle::faults {

inline const std::vector<Harmless> kHarmlessOfOci = {
    {"*", "close", "*", "a descriptor is gone, whatever close says"},
    {"*", "brk", "*", "the C library maps memory instead"},
    {"*", "munmap", "*", "memory goes with the process"},

    {"*", "newfstatat", "/proc/*", "how long a file is, is a guess at how much to read"},
    {"*", "newfstatat", "*/state.json", "the same"},
    {"*", "newfstatat", "*/config.json", "the same"},
    {"*", "newfstatat", "/memfd:seccomp*", "the same"},
    {"*", "newfstatat", "*/.seccomp/*", "the same"},
    {"*", "newfstatat", "*/cgroup.freeze", "the same"},
    {"ps", "newfstatat", "*/cgroup.procs", "the same"},
    {"*", "newfstatat", "/etc/passwd", "the same"},
    {"*", "newfstatat", "*.out", "the C library asks how to buffer its output"},

    {"*", "statfs", "/sys/fs/cgroup", "where cgroup2 is mounted, the table of mounts tells as well"},
    {"*", "statfs", "/sys/fs/cgroup/unified", "the same"},
    {"*", "openat", "*/cgroup.controllers", "a controller that is not switched on is missed when its limit is written"},
    {"*", "pread64", "*/cgroup.controllers", "the same"},
    {"*", "openat", "*/cgroup.subtree_control", "the same; exec goes into the container's cgroup itself, or says that it cannot"},
    {"*", "pread64", "*/cgroup.subtree_control", "the same"},
    {"create", "openat", "*/cgroup.type", "a process cannot be made in a cgroup that is no domain: clone3 refuses"},
    {"create", "pread64", "*/cgroup.type", "the same"},

    {"create.*", "chdir", "*/bundle", "a hook begins elsewhere where the container's root may not go to the bundle"},
    {"create.*", "chdir", "/tmp", "a directory that is closed to the user is entered with the launcher's privileges"},
    {"exec.*", "chdir", "/tmp", "the same"},
    {"*.*", "sched_setaffinity", "0 1024",
     "the launcher's affinity is kept: fewer processors than the cgroups have, never others. An affinity that is asked for has "
     "another size"},
    {"create", "uname", "*", "mounts are cloned at their turn, which older kernels do not need"},
    {"create", "openat", "*/.seccomp/*", "a program that cannot be read is made anew"},
    {"create", "read", "*/.seccomp/*", "the same"},
    {"create", "seccomp", "*", "libseccomp asks what this kernel can; the filter is loaded by the container's process"},
    {"*", "openat", "/sys/module/apparmor/parameters/enabled", "no profile is asked for"},
    {"*", "read", "/sys/module/apparmor/parameters/enabled", "the same"},
    {"*", "prlimit64", "7", "posix_spawn asks which numbers descriptors can have; ours are small"},
    {"*.*", "faccessat2", "/inmate", "exec says by itself what cannot be executed"},

    {"*.*", "prctl", "PR_SET_NAME", "a name for people"},
    {"exec.*", "openat", "/proc", "a procfs is mounted instead of the one in the host's tree"},
    {"exec.*", "fstatfs", "/proc", "the same"},
    {"exec", "fstatfs", "/proc", "the same: ours is not given to it"},
    {"exec", "openat", "/proc/self/oom_score_adj", "the same: ours may be read-only"},
    {"*.*", "openat2", "/*", "a working directory is made where it is missing; chdir says what is wrong with it"},

    {"create", "wait4", "*", "who held the namespaces has been killed, and is reaped with us at the latest"},
    {"exec", "wait4", "*", "the same"},
    {"create", "pidfd_send_signal", "*", "who holds the namespaces is killed by its number, which is ours"},
    {"exec", "pidfd_send_signal", "*", "the same"},
    {"*.*", "ppoll", "*", "wait4 waits for a hook as well; a holder of namespaces waits again"},
    {"delete", "openat", "/sys/fs/cgroup/*", "the same at the second try, when its processes have ended"},
    {"delete", "unlinkat", "*/box", "a cgroup is removed when its processes have ended, at the second try"},

    // Source: runtime-spec runtime.md "Lifecycle": errors of poststop hooks are only warned about.
    {"delete", "memfd_create", "input", "a late hook's failure is warned of"},
    {"delete", "write", "/memfd:input*", "the same"},
    {"delete", "lseek", "/memfd:input*", "the same"},
    {"delete", "memfd_create", "output", "the same"},
    {"delete", "lseek", "/memfd:output*", "the same"},
    {"delete", "pread64", "/memfd:output*", "the same"},
    {"delete", "access", "*/bundle", "the same: it begins elsewhere"},
    {"delete", "mmap", "*", "the same: the stack for it"},
    {"delete", "clone3", "*", "the same"},
    {"delete", "pidfd_open", "*", "the same"},
    {"delete", "poll", "*", "the same"},
    {"delete", "wait4", "*", "the same"},
    {"delete.*", "*", "*", "the same"},

    {"state", "openat", "/etc/passwd", "an owner without a name is shown by number"},
    {"state", "read", "/etc/passwd", "the same"},
    {"state", "*", "/usr/share/zoneinfo/*", "times are shown in UTC"},
    {"state", "*", "/etc/localtime", "the same"},
    {"list", "openat", "/etc/passwd", "an owner without a name is shown by number"},
    {"list", "read", "/etc/passwd", "the same"},
    {"list", "*", "/usr/share/zoneinfo/*", "times are shown in UTC"},
    {"list", "*", "/etc/localtime", "the same"},
};

// For coracle-pause (daemon.1; daemon.2 for a pod with a user namespace, which another process holds first) and the processes
// that it starts, when the daemon drives it.
inline const std::vector<Harmless> kHarmlessOfPods = {
    {"*", "close", "*", "a descriptor is gone, whatever close says"},
    {"daemon.[12]", "accept4", "*", "who has connected waits, and epoll says so again"},
    {"daemon.[12]", "epoll_pwait", "*", "it is asked again"},
    {"daemon.[12]", "epoll_ctl", "* 2 *", "what is closed is taken out by the kernel"},
    {"daemon.[12]", "recvmsg", "*", "the message waits, and epoll says so again"},
    {"daemon.*", "openat2", "/*", "a working directory is made where it is missing; chdir says what is wrong with it"},
    {"daemon.[12].*", "chdir", "/data", "a directory that is closed to the user is entered with the launcher's privileges"},
    {"daemon.[12].*", "sched_setaffinity", "0 1024",
     "the launcher's affinity is kept: fewer processors than the cgroups have, never others. An affinity that is asked for has "
     "another size"},
    {"daemon.1", "ppoll", "*", "a holder of namespaces waits again"},
    {"daemon.[12]", "read", "anon_inode:?signalfd?", "the signal stays pending, and epoll says so again"},
    {"daemon.[12].*", "fchown", "pipe:*", "the process has the pipe, whoever owns it; it cannot open it once more by its path"},
    {"daemon.[12]", "madvise", "*", "memory is given back later"},
    {"daemon.[12]", "prctl", "PR_SET_NAME", "a name for people"},
    {"daemon.[12]", "statx", "*.log", "how much the log holds already: it is rotated later"},
    {"daemon.[12]", "writev", "*.log", "what the disk does not take is lost, counted, and the next line begins a new one"},
    {"daemon.[12]", "write", "*.log", "the same"},
};

}  // namespace coracle::faults
