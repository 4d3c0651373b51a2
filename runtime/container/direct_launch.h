// SPDX-License-Identifier: Apache-2.0
// Launching a process without coracle-pause: an embedded small program executes the plan and then the container's program, so
// that the caller's parent (an engine's monitor) becomes its parent when the runtime exits. It does for one process what
// coracle-pause does for pods.
//
//   begin ─▶ DirectLaunch ──say_go──▶ waits ─▶ next(): gate · terminal · listener · held · failure · executed
//
// Source: clone3(2), pid_namespaces(7); launch/launcher.h and launch/child.h for the child's side.
#pragma once

#include <chrono>
#include <optional>

#include "runtime/container/prepare.h"

namespace coracle::runtime {

struct LaunchSpec {
  const Prepared* prepared = nullptr;
  const Fd* cgroup = nullptr;          // started in it; null: our own
  const Fd* start = nullptr;           // a listening socket: the process is held until somebody connects
  const Fd* target = nullptr;          // exec: pidfd of the container's first process
  const Fd* time_namespace = nullptr;  // the time namespace to join; null: our own
  bool has_terminal = false;           // otherwise it inherits our 0, 1 and 2
};

class DirectLaunch {
 public:
  // Starts the child and blocks until its program has started. Errors: those of clone3 and setns, and nothing of the child is
  // left; forbidden for vm.memfd_noexec. A pid namespace that was joined stays joined for our later children.
  static Result<DirectLaunch> begin(const LaunchSpec& spec);

  int pid() const { return pid_; }
  const Fd& pidfd() const { return pidfd_; }
  Result<void> say_go();

  struct News {
    enum class Kind { failure, held, terminal, gate, listener, executed } kind = Kind::executed;
    launch::Failure failure{};
    std::string said;  // of a failed hook: its output, truncated after 64 KiB
    Fd fd;             // terminal, listener
  };
  // Blocks until the child sends a report. executed: it has become the program. If it dies before that, that is a failure.
  Result<News> next();
  // SIGKILL; waits until it has ended. Also the first process of a pid namespace leaves nothing behind.
  void end();

 private:
  Result<void> tell(const LaunchSpec& spec);
  int pid_ = 0;
  bool is_silent_ = false;  // until its end, nothing on the report socket asks for an answer
  bool is_executing_ = false;
  std::string said_;
  Fd pidfd_, report_;
};

// Counterpart of `start`: releases a held process. Blocks until it has executed its program. Errors: conflict if none is held.
struct Started {
  bool has_executed = false;
  launch::Failure failure{};
  std::string said;  // as in News
};
Result<Started> start_held(const Fd& directory, const std::string& socket);

}  // namespace coracle::runtime
