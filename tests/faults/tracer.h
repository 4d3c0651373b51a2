// SPDX-License-Identifier: Apache-2.0
// Runs programs with all that they start, knows each system call of theirs, and has one of them fail, or the process end before
// it: by ptrace, so that it does not matter how a program is built, linked or started (clone3, vfork, execveat of a descriptor).
// A process is named by how it came to be ("create", its second child "create.2"), a call by its process, its number and how many
// of its kind the process made before: that is the same in the next run, where process ids and addresses are not.
//   run a command, recording ─▶ calls ─▶ for each: arm a fault, run again, see what came of it
// Processes that execute a program of a given name (what runs in the containers) are let go: what they do is not the
// runtime's. Source: ptrace(2).
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
  int number = 0;           // of the system call
  int occurrence = 0;       // the how many'th of this number in this process, from 0
  std::string detail;       // for people and for tables: paths, what descriptors are
  bool is_startup = false;  // of the loader and the C library: nothing of ours has been done yet
};

struct Fault {
  Call call;
  int error = 0;
  bool is_done = false;  // the call is carried out and its answer is false: close
};

// A process that is killed before its `nth` call, from 0, of those that count.
struct Kill {
  std::string process;
  int nth = 0;
  std::function<bool(pid_t tid, int number, const uint64_t arguments[6])> counts;
};

struct Command {
  std::string name;
  std::vector<std::string> argv;
  std::string out, err;  // files that its output goes to; "-": where ours goes
  std::chrono::milliseconds timeout{30'000};
  bool is_traced = true;
  bool counts_itself = true;  // else only what it starts
};

struct Outcome {
  int exit_code = -1;  // -1: it was killed
  int signal = 0;
  bool hung = false;
  std::chrono::milliseconds took{};
};

class Tracer {
 public:
  // `let_go`: what /proc/PID/comm says after an exec; "*": all that the first process starts.
  explicit Tracer(std::set<std::string> let_go);
  ~Tracer();

  void record() { is_recording_ = true, calls_.clear(), fault_.reset(), kill_.reset(), has_struck_ = false; }
  void arm(const Fault& fault);
  void arm(Kill kill);
  int counted() const { return counted_; }  // calls that counted, up to the one before which the process was killed
  const std::vector<Call>& calls() const { return calls_; }
  bool has_struck() const { return has_struck_; }
  const Call& struck() const { return struck_; }

  Outcome run(const Command& command);
  // Goes on serving those that are traced, until `done` or the time is over. Whether `done`.
  template <typename Done>
  bool wait_until(Done done, std::chrono::milliseconds timeout) {
    auto end = std::chrono::steady_clock::now() + timeout;
    while (!done()) {
      if (std::chrono::steady_clock::now() > end) return false;
      serve(std::chrono::milliseconds(2));
    }
    return true;
  }
  // A new scenario begins: names of processes are free again.
  void forget();

 private:
  struct Process {
    std::string name;
    bool is_counted = false;  // of the first: from its exec on
    bool is_driver = false;   // it never is, but what it starts is
    bool is_in_brk = false;
    bool is_starting = true;  // see Call::is_startup
    int children = 0;
    std::map<int, int> counts;
    uint64_t brk = 0;
  };
  struct Task {
    std::shared_ptr<Process> process;
    bool strikes = false;  // the fault waits for the call's end
  };

  bool serve(std::chrono::milliseconds timeout);  // one stop or end; false: none came
  void on_stop(pid_t tid, int status);
  void on_exec(pid_t tid, Task& task);
  void on_new(pid_t parent, int event);
  void on_call(pid_t tid, Task& task);
  void go_on(pid_t tid, const Task& task, int signal = 0);
  bool wants_calls(const Process& process) const;

  std::set<std::string> let_go_;
  std::map<pid_t, Task> tasks_;
  std::set<pid_t> early_;  // stopped before their parent told of them
  std::map<pid_t, int> ended_;
  std::vector<Call> calls_;
  std::shared_ptr<Fault> fault_;
  std::shared_ptr<Kill> kill_;
  int counted_ = 0;
  Call struck_;
  bool is_recording_ = false, has_struck_ = false;
};

}  // namespace coracle::faults
