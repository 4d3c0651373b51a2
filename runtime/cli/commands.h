// SPDX-License-Identifier: Apache-2.0
// The commands of coracle-oci, and what several of them need.
#pragma once

#include <chrono>
#include <optional>

#include "runtime/base/result.h"
#include "runtime/cli/options.h"
#include "runtime/cli/state.h"
#include "runtime/container/plan.h"
#include "runtime/container/seccomp_program.h"

namespace coracle::cli {

constexpr std::chrono::seconds kKillPatience{15};

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
Result<int> checkpoint(const Options& options);  // refuses

// common.cc
Result<Containers> open_containers(const Options& options);
Result<cgroup::Manager> manager_of(const Options& options);
runtime::SandboxFacts facts_of(const oci::Spec& spec);
// A caller without privileges becomes root of the user namespace that the container asks for, which then is no new one.
Result<void> leave_privilege_behind(oci::Spec& spec);
// The specification asks to warn of them and to go on. Source: runtime-spec config.md "Linux Process".
void drop_unknown_capabilities(oci::Process& process);
// The program of a profile, kept beneath the root. Errors: with the field.
Result<runtime::SeccompPtr> load_seccomp(const Containers& containers, const json::value& profile, const oci::Process& process,
                                         const runtime::OwnFacts& own);
Result<runtime::SeccompPtr> find_seccomp(const Containers& containers, const std::string& name);
// Sockets that were activated for this process. Source: sd_listen_fds(3).
uint32_t activated_sockets();
Result<void> check_descriptors(const Options& options);  // that 3 and on, which are handed on, are open
// HOME by the container's own passwd, where the process has none, or an empty one. `root`: of its file system; without it "/".
void set_home(oci::Process& process, const Result<Fd>& root);
// Who answers for system calls gets the descriptor, with the container's state. `pid`: the process whose they are.
// Source: runtime-spec config-linux.md "containerProcessState".
Result<void> send_listener(const oci::SeccompListener& listener, const json::object& state, int pid, const Fd& fd);
Result<void> send_pidfd(const std::string& path, const Fd& pidfd);  // to who listens there; "" = nobody does
Result<void> write_pid_file(const std::string& path, int pid);
Result<void> print(const std::string& text);  // to standard output, at once
// Kills what is left, removes cgroup and state, runs the poststop hooks.
Result<void> destroy(const Containers& containers, Container& container);
Result<Fd> block_signals();  // all that are handed on; before anything else is started
// Waits for a child of ours, handing signals on and joining its terminal, if it has one, with ours. Its exit code.
Result<int> stay_in_front(const Fd& pidfd, const Fd& signals, Fd terminal);

}  // namespace coracle::cli
