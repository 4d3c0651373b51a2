// SPDX-License-Identifier: Apache-2.0
// Runs programs with all their child processes, sees each of their system calls, and lets one of them fail, or kills the process
// before it: with ptrace, so that it does not matter how a program is built, linked or started (clone3, vfork, execveat of a
// descriptor). A process is named by its origin ("create", its second child "create.2"), a call by its process, its number and
// the count of earlier calls with that number: this is stable across runs, unlike process ids and addresses.
//   run a command, recording ─▶ calls ─▶ for each: arm a fault, run again, check the result
// Processes that execute a given program (the one in the containers) are detached: their calls are not the runtime's. Source:
// ptrace(2).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace coracle::faults {

struct Call {
  std::string process;
  int number = 0;           // number of the system call
  int occurrence = 0;       // index among the calls with this number in this process, from 0
  std::string detail;       // for people and tables: paths, kinds of descriptors
  bool is_startup = false;  // made by the loader or the C library, before any of our code
};

struct Fault {
  Call call;
  int error = 0;
  bool is_done = false;  // the call is executed and its result falsified: close
};

// Kills the process before its `nth` counted call, from 0.
struct Kill {
  std::string process;
  int nth = 0;
  std::function<bool(pid_t tid, int number, const uint64_t arguments[6])> counts;
};

struct Command {
  std::string name;
  std::vector<std::string> argv;
  std::string out, err;  // files for its output; "-": our own output
  std::chrono::milliseconds timeout{30'000};
  bool is_traced = true;
  bool counts_itself = true;  // otherwise only its children count
};

struct Outcome {
  int exit_code = -1;  // -1: it was killed
  int signal = 0;
  bool hung = false;
  std::chrono::milliseconds took{};
};

class Tracer {
 public:
  // `let_go`: the names in /proc/PID/comm after an exec at which a process is detached; "*": all children of the first process.
  explicit Tracer(std::set<std::string> let_go);
  ~Tracer();

  void record() { is_recording_ = true, calls_.clear(), fault_.reset(), kill_.reset(), has_struck_ = false; }
  void arm(const Fault& fault);
  void arm(Kill kill);
  int counted() const { return counted_; }  // counted calls, up to the one before which the process was killed
  const std::vector<Call>& calls() const { return calls_; }
  bool has_struck() const { return has_struck_; }
  const Call& struck() const { return struck_; }

  Outcome run(const Command& command);
  // Serves the traced processes until `done` or the timeout. Returns whether `done`.
  template <typename Done>
  bool wait_until(Done done, std::chrono::milliseconds timeout) {
    auto end = std::chrono::steady_clock::now() + timeout;
    while (!done()) {
      if (std::chrono::steady_clock::now() > end) return false;
      serve(std::chrono::milliseconds(2));
    }
    return true;
  }
  // Starts a new scenario: the names of processes can be reused.
  void forget();

 private:
  struct Process {
    std::string name;
    bool is_counted = false;  // for the first process: after its exec
    bool is_driver = false;   // it never counts, but its children do
    bool is_in_brk = false;
    bool is_starting = true;  // see Call::is_startup
    int children = 0;
    std::map<int, int> counts;
    uint64_t brk = 0;
  };
  struct Task {
    std::shared_ptr<Process> process;
    bool strikes = false;  // the fault takes effect at the call's end
  };

  bool serve(std::chrono::milliseconds timeout);  // handles one stop or exit; false: none occurred
  void on_stop(pid_t tid, int status);
  void on_exec(pid_t tid, Task& task);
  void on_new(pid_t parent, int event);
  void on_call(pid_t tid, Task& task);
  void go_on(pid_t tid, const Task& task, int signal = 0);
  bool wants_calls(const Process& process) const;

  std::set<std::string> let_go_;
  std::map<pid_t, Task> tasks_;
  std::set<pid_t> early_;  // stopped before their parent's event arrived
  std::map<pid_t, int> ended_;
  std::vector<Call> calls_;
  std::shared_ptr<Fault> fault_;
  std::shared_ptr<Kill> kill_;
  int counted_ = 0;
  Call struck_;
  bool is_recording_ = false, has_struck_ = false;
};

}  // namespace coracle::faults
