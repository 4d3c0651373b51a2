// SPDX-License-Identifier: Apache-2.0
// See tracer.h.
#include "tests/faults/tracer.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "tests/faults/calls.h"

namespace coracle::faults {
namespace {

constexpr long kOptions = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
                          PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
constexpr int kEventStop = 128;  // PTRACE_EVENT_STOP

long trace(int request, pid_t tid, unsigned long address = 0, unsigned long data = 0) {
  return ::ptrace(static_cast<__ptrace_request>(request), tid, address, data);
}

#if defined(__x86_64__)
void skip_call(pid_t tid) { trace(PTRACE_POKEUSER, tid, offsetof(user, regs.orig_rax), ~0ul); }
void set_answer(pid_t tid, long answer) { trace(PTRACE_POKEUSER, tid, offsetof(user, regs.rax), (unsigned long)answer); }
#elif defined(__aarch64__)
void skip_call(pid_t tid) {
  int none = -1;
  iovec place{&none, sizeof none};
  trace(PTRACE_SETREGSET, tid, 0x404 /* NT_ARM_SYSTEM_CALL */, (unsigned long)&place);
}
void set_answer(pid_t tid, long answer) {
  user_regs_struct registers;
  iovec place{&registers, sizeof registers};
  trace(PTRACE_GETREGSET, tid, NT_PRSTATUS, (unsigned long)&place);
  registers.regs[0] = (unsigned long)answer;
  trace(PTRACE_SETREGSET, tid, NT_PRSTATUS, (unsigned long)&place);
}
#elif defined(__arm__)
void skip_call(pid_t tid) { trace(23 /* PTRACE_SET_SYSCALL */, tid, 0, ~0ul); }
void set_answer(pid_t tid, long answer) { trace(PTRACE_POKEUSER, tid, 0 /* r0 */, (unsigned long)answer); }
#else
#error "how does this machine answer a system call?"
#endif

std::string comm_of(pid_t tid) {
  std::ifstream file("/proc/" + std::to_string(tid) + "/comm");
  std::string out;
  std::getline(file, out);
  return out;
}

bool is_thread_of(pid_t tid, pid_t other) {
  return ::access(("/proc/" + std::to_string(other) + "/task/" + std::to_string(tid)).c_str(), F_OK) == 0;
}

void nothing(int) {}

void set_timer(std::chrono::milliseconds each) {
  auto microseconds = std::chrono::microseconds(each).count();
  itimerval timer{{0, suseconds_t(microseconds)}, {0, suseconds_t(microseconds)}};
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

[[noreturn]] void become(const Command& command, int go) {
  ::setitimer(ITIMER_REAL, nullptr, nullptr);
  ::signal(SIGALRM, SIG_DFL);
  auto put = [](const std::string& path, int flags, int place) {
    if (path == "-") return;
    int fd = ::open(path.empty() ? "/dev/null" : path.c_str(), flags, 0600);
    if (fd < 0 || ::dup2(fd, place) < 0) ::_exit(126);
    if (fd != place) ::close(fd);
  };
  char byte;
  while (::read(go, &byte, 1) < 0 && errno == EINTR) {
  }
  ::close(go);
  put("", O_RDONLY, 0);
  put(command.out, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 1);
  put(command.err, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 2);
  std::vector<char*> argv;
  for (const std::string& word : command.argv) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  ::_exit(125);
}

}  // namespace

Tracer::Tracer(std::set<std::string> let_go) : let_go_(std::move(let_go)) {
  struct sigaction action {};
  action.sa_handler = nothing;  // without SA_RESTART, so that it interrupts a wait
  ::sigaction(SIGALRM, &action, nullptr);
}

Tracer::~Tracer() { ::setitimer(ITIMER_REAL, nullptr, nullptr); }

void Tracer::arm(const Fault& fault) {
  is_recording_ = false;
  has_struck_ = false;
  struck_ = {};
  kill_.reset();
  fault_ = std::make_shared<Fault>(fault);
}

void Tracer::arm(Kill kill) {
  is_recording_ = false;
  has_struck_ = false;
  struck_ = {};
  fault_.reset();
  counted_ = 0;
  kill_ = std::make_shared<Kill>(std::move(kill));
}

void Tracer::forget() {
  tasks_.clear();
  early_.clear();
  ended_.clear();
}

bool Tracer::wants_calls(const Process& process) const {
  if (process.is_driver) return false;
  if (is_recording_) return true;
  const std::string* of = fault_ ? &fault_->call.process : kill_ ? &kill_->process : nullptr;
  return of && !has_struck_ && process.name == *of;
}

void Tracer::go_on(pid_t tid, const Task& task, int signal) {
  const bool calls = task.strikes || wants_calls(*task.process);
  trace(calls ? PTRACE_SYSCALL : PTRACE_CONT, tid, 0, (unsigned long)signal);
}

Outcome Tracer::run(const Command& command) {
  int go[2];
  if (::pipe2(go, O_CLOEXEC) < 0) std::abort();
  const auto begun = std::chrono::steady_clock::now();
  pid_t pid = ::fork();
  if (pid < 0) std::abort();
  if (pid == 0) {
    ::close(go[1]);
    become(command, go[0]);
  }
  ::close(go[0]);
  ended_.erase(pid);
  if (command.is_traced) {
    if (trace(PTRACE_SEIZE, pid, 0, kOptions) < 0) std::perror("ptrace");
    Task task;
    task.process = std::make_shared<Process>();
    task.process->name = command.name;
    task.process->is_driver = !command.counts_itself;
    tasks_[pid] = task;
  }
  ::close(go[1]);
  Outcome out;
  bool ended = wait_until([&] { return ended_.count(pid) > 0; }, command.timeout);
  if (!ended) {
    out.hung = true;
    ::kill(pid, SIGKILL);
    (void)wait_until([&] { return ended_.count(pid) > 0; }, std::chrono::seconds(5));
  } else if (int status = ended_[pid]; WIFEXITED(status)) {
    out.exit_code = WEXITSTATUS(status);
  } else {
    out.signal = WTERMSIG(status);
  }
  out.took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begun);
  return out;
}

bool Tracer::serve(std::chrono::milliseconds timeout) {
  int status = 0;
  pid_t tid = ::waitpid(-1, &status, __WALL | WNOHANG);
  if (tid == 0) {
    set_timer(timeout);
    tid = ::waitpid(-1, &status, __WALL);
    set_timer(std::chrono::milliseconds(0));
  }
  if (tid < 0) {
    if (errno == ECHILD) ::usleep(useconds_t(std::chrono::microseconds(timeout).count()));
    return false;
  }
  if (WIFSTOPPED(status)) {
    on_stop(tid, status);
  } else {
    tasks_.erase(tid);
    ended_[tid] = status;
  }
  return true;
}

void Tracer::on_stop(pid_t tid, int status) {
  auto found = tasks_.find(tid);
  if (found == tasks_.end()) {
    early_.insert(tid);
    return;
  }
  Task& task = found->second;
  const int signal = WSTOPSIG(status), event = status >> 16;
  if (signal == (SIGTRAP | 0x80)) {
    on_call(tid, task);
  } else if (event == PTRACE_EVENT_EXEC) {
    return on_exec(tid, task);
  } else if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK || event == PTRACE_EVENT_CLONE) {
    on_new(tid, event);
  } else if (event == kEventStop) {
    if (signal != SIGTRAP) {  // a signal stopped it, and it stays stopped
      trace(PTRACE_LISTEN, tid);
      return;
    }
  } else if (event == 0) {
    return go_on(tid, task, signal);
  }
  go_on(tid, task);
}

void Tracer::on_exec(pid_t tid, Task& task) {
  const bool is_child = task.process->name.find('.') != std::string::npos;
  if (let_go_.count(comm_of(tid)) || (is_child && let_go_.count("*"))) {
    tasks_.erase(tid);
    trace(PTRACE_DETACH, tid);
    return;
  }
  task.process->is_counted = !task.process->is_driver;
  task.process->is_starting = true;
  go_on(tid, task);
}

void Tracer::on_new(pid_t parent, int event) {
  unsigned long message = 0;
  trace(PTRACE_GETEVENTMSG, parent, 0, (unsigned long)&message);
  const pid_t child = pid_t(message);
  Task task;
  Process& of = *tasks_[parent].process;
  if (event == PTRACE_EVENT_CLONE && is_thread_of(child, parent)) {
    task.process = tasks_[parent].process;
  } else {
    task.process = std::make_shared<Process>();
    task.process->name = of.name + "." + std::to_string(++of.children);
    task.process->is_counted = true;
    task.process->is_starting = false;  // a copy of a process that has started
    task.process->brk = of.brk;
  }
  tasks_[child] = task;
  if (early_.erase(child)) go_on(child, task);
}

void Tracer::on_call(pid_t tid, Task& task) {
  __ptrace_syscall_info info{};
  if (trace(PTRACE_GET_SYSCALL_INFO, tid, sizeof info, (unsigned long)&info) <= 0) return;
  Process& process = *task.process;
  if (info.op == PTRACE_SYSCALL_INFO_EXIT) {
    if (task.strikes) {
      task.strikes = false;
      // brk reports no errors: it returns the end of the heap, here unchanged.
      set_answer(tid, is_brk(fault_->call.number) ? long(process.brk) : -long(fault_->error));
    } else if (process.is_in_brk) {
      process.brk = uint64_t(info.exit.rval);
    }
    process.is_in_brk = false;
    return;
  }
  if (info.op != PTRACE_SYSCALL_INFO_ENTRY || !process.is_counted) return;
  Call call;
  call.process = process.name;
  call.number = int(info.entry.nr);
  call.occurrence = process.counts[call.number]++;
  process.is_in_brk = is_brk(call.number);
  uint64_t arguments[6];
  for (int i = 0; i < 6; ++i) arguments[i] = info.entry.args[i];
  if (is_recording_) {
    call.detail = detail_of(tid, call.number, arguments);
    process.is_starting = process.is_starting && belongs_to_startup(name_of_call(call.number), call.detail);
    call.is_startup = process.is_starting;
    calls_.push_back(call);
  }
  if (has_struck_ || is_recording_) return;
  if (kill_ && call.process == kill_->process && kill_->counts(tid, call.number, arguments) && counted_++ == kill_->nth) {
    call.detail = detail_of(tid, call.number, arguments);
    struck_ = call;
    has_struck_ = true;
    skip_call(tid);
    ::kill(tid, SIGKILL);
  }
  if (!fault_) return;
  if (call.process != fault_->call.process || call.number != fault_->call.number || call.occurrence != fault_->call.occurrence)
    return;
  call.detail = detail_of(tid, call.number, arguments);
  if (failing_of(name_of_call(call.number), call.detail).error == 0) return;  // not the recorded call, and it cannot fail
  struck_ = call;
  has_struck_ = task.strikes = true;
  if (!fault_->is_done) skip_call(tid);
}

}  // namespace coracle::faults
