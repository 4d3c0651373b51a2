// SPDX-License-Identifier: Apache-2.0
// The commands of coracle-oci, and their shared functions.
#pragma once

#include <chrono>
#include <optional>

#include "runtime/base/result.h"
#include "runtime/cli/notify.h"
#include "runtime/cli/options.h"
#include "runtime/cli/state.h"
#include "runtime/container/plan.h"
#include "runtime/container/seccomp_program.h"

namespace coracle::cli {

constexpr std::chrono::seconds kKillTimeout{15};

// life.cc
Result<int> start(const Options& options);
Result<int> kill(const Options& options);
Result<int> remove(const Options& options);
Result<int> pause(const Options& options);
Result<int> resume(const Options& options);
Result<int> update(const Options& options);
// exec.cc
Result<int> exec(const Options& options);
// inspect.cc
Result<int> state(const Options& options);
Result<int> list(const Options& options);
Result<int> ps(const Options& options);
Result<int> events(const Options& options);
Result<int> spec(const Options& options);
Result<int> features(const Options& options);
Result<int> checkpoint(const Options& options);  // always fails: not supported

// common.cc
Result<Containers> open_containers(const Options& options);
Result<cgroup::Manager> manager_of(const Options& options);
runtime::SandboxInfo sandbox_info_of(const oci::Spec& spec);
// An unprivileged caller enters the requested user namespace as its root. The namespace is removed from the specification, so
// that the container uses this one.
Result<void> leave_privilege_behind(oci::Spec& spec);
// Removes them with a warning, as the specification requires. Source: runtime-spec config.md "Linux Process".
void drop_unknown_capabilities(oci::Process& process);
// Warns of capabilities that are asked for and cannot be granted. `has_user_namespace`: of its own, where root has them all.
Result<void> tell_missing_capabilities(const oci::Process& process, runtime::LauncherInfo own, bool has_user_namespace);
// The compiled profile, cached below the root. Errors: with the field.
Result<runtime::SeccompPtr> load_seccomp(const Containers& containers, const json::value& profile, const oci::Process& process,
                                         const runtime::LauncherInfo& own);
Result<runtime::SeccompPtr> find_seccomp(const Containers& containers, const std::string& name);
// The number of sockets that were passed to this process by socket activation. Source: sd_listen_fds(3).
uint32_t activated_sockets();
Result<void> check_descriptors(const Options& options);  // that the descriptors from 3 on that are passed on are open
// Sets HOME from the container's passwd file if the process has none or an empty one. `root`: the container's root. HOME is "/"
// without a root or a file that we may read. Errors: unavailable and internal, with "HOME".
Result<void> set_home(oci::Process& process, Result<Fd> root);
// Sends the descriptor and the container's state to the seccomp agent. `pid`: the process with the filter. Source: runtime-spec
// config-linux.md "containerProcessState".
Result<void> send_listener(const oci::SeccompListener& listener, const json::object& state, int pid, const Fd& fd);
Result<void> send_pidfd(const std::string& path, const Fd& pidfd);  // to the listener at `path`; "": does nothing
Result<void> write_pid_file(const std::string& path, int pid);
Result<void> print(const std::string& text);  // to standard output, flushed
// Kills the remaining processes, removes cgroup and state, and runs the poststop hooks. `known`: the container's cgroup, which is
// taken from there; null: it is found by the state.
Result<void> destroy(const Containers& containers, Container& container, cgroup::Container* known = nullptr);
// The same for a container whose first process has ended, as the caller knows.
Result<void> destroy_ended(const Containers& containers, Container& container, cgroup::Container* known = nullptr);
Result<Fd> block_signals();  // all that can be forwarded; call before anything else is started
// Waits for a child of ours, forwards signals and connects its terminal, if any, to ours. Returns its exit code. `relay`: passes
// its readiness on; null: nobody waits for it.
Result<int> run_foreground(const Fd& pidfd, const Fd& signals, Fd terminal, const NotifyRelay* relay = nullptr);

}  // namespace coracle::cli
