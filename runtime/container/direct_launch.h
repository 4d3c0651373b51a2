// SPDX-License-Identifier: Apache-2.0
// Launching without coracle-pause: a small program that we carry along walks the plan and becomes the container's program, so
// that whoever started us (an engine's monitor) is its parent when we are gone. What coracle-pause does for pods, for one
// process.
//
//   begin ─▶ Birth ──say_go──▶ waits ─▶ next(): gate · terminal · listener · held · failure · executed
//
// Source: clone3(2), pid_namespaces(7); launch/launcher.h and launch/child.h for the other side.
#pragma once

#include <chrono>
#include <optional>

#include "runtime/container/prepare.h"

namespace coracle::runtime {

struct BirthSpec {
  const Prepared* prepared = nullptr;
  const Fd* cgroup = nullptr;          // born in it; null = ours
  const Fd* start = nullptr;           // a listening socket: held until somebody connects to it
  const Fd* target = nullptr;          // exec: pidfd of the container's first process
  const Fd* time_namespace = nullptr;  // to be in; null = ours
  bool has_terminal = false;           // else it inherits our 0, 1 and 2
};

class Birth {
 public:
  // Errors: what clone3 and setns said, and nothing of it is left; forbidden, vm.memfd_noexec. A process namespace that was
  // joined stays joined for children of ours. Blocks until the program has begun.
  static Result<Birth> begin(const BirthSpec& spec);

  int pid() const { return pid_; }
  const Fd& pidfd() const { return pidfd_; }
  Result<void> say_go();

  struct News {
    enum class Kind { failure, held, terminal, gate, listener, executed } kind = Kind::executed;
    launch::Failure failure{};
    std::string said;  // failure of a hook: what it wrote, its end left out beyond 64 KiB
    Fd fd;             // terminal, listener
  };
  // Blocks until the child says something. executed: it has become the program. Its death before that is a failure.
  Result<News> next();
  // SIGKILL, and waits until it is gone: nothing of it is left, also when it was the first of a process namespace.
  void end();

 private:
  Result<void> tell(const BirthSpec& spec);
  int pid_ = 0;
  bool is_executing_ = false;
  std::string said_;
  Fd pidfd_, report_;
};

// The other end of Birth's `start`: lets a held process go. Blocks until it has executed. Errors: conflict, nobody waits.
struct Started {
  bool has_executed = false;
  launch::Failure failure{};
  std::string said;  // as in News
};
Result<Started> start_held(const Fd& directory, const std::string& socket);

}  // namespace coracle::runtime
