// SPDX-License-Identifier: Apache-2.0
// coracle-pause: the parent of every process of a pod. It launches what the daemon has planned, reaps exited processes, keeps
// their exit codes and times until they are forgotten, and writes the log files. It runs without a daemon: a client of its socket
// can read the complete state. It exits on request (SIGTERM, `end`) and kills every process of the pod.
//
// Started with: 0, 1, 2 = /dev/null, 3 = its socket, bound but not listening.
#include "runtime/pause/pod.h"

namespace coracle::pause {

using namespace launch;

Pod pod;

namespace {

constexpr int kListener = 3;
constexpr uint64_t kAllSignals = ~0ull;
constexpr uint64_t signal_bit(int signal) { return 1ull << (signal - 1); }

[[noreturn]] void give_up(int code) { k_exit(code); }

void prepare() {
  // Processes of the pod must not trace pause, whatever privileges their user has.
  if (k_prctl(PR_SET_DUMPABLE, 0) < 0) give_up(2);
  k_prctl(PR_SET_NAME, reinterpret_cast<unsigned long>("coracle-pause"));
  if (k_sigprocmask_set(kAllSignals) < 0) give_up(3);
  forget_signal_actions();  // all signals are blocked here, so none arrives
  k_umask(022);
  for (Connection& connection : pod.connections) connection.fd = -1;
  pod.shared_init = -1;
  pod.listener = kListener;
  pod.null = 0;
  pod.epoll = k_epoll_create();
  pod.signals = k_signalfd(signal_bit(kSigchld) | signal_bit(kSigterm));
  pod.self_pidfd = k_pidfd_open(k_getpid());
  if (pod.epoll < 0 || pod.signals < 0 || pod.self_pidfd < 0) give_up(4);
  if (k_listen(pod.listener, kConnectionsMax) < 0) give_up(5);
  if (watch(pod.listener, EPOLLIN, key_of(Source::listener, 0)) < 0) give_up(6);
  if (watch(pod.signals, EPOLLIN, key_of(Source::signals, 0)) < 0) give_up(7);
}

void read_signals() {
  signalfd_siginfo info;
  while (k_read(pod.signals, &info, sizeof info) == sizeof info)
    if (info.ssi_signo == kSigterm) end_everything();
  reap();
}

void handle(const epoll_event& event) {
  const int index = int(uint32_t(event.data));
  switch (Source(event.data >> 32)) {
    case Source::listener: return accept_connection();
    case Source::signals: return read_signals();
    case Source::connection:
      if (event.events & EPOLLOUT) flush_states(index);
      if (event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) serve(index);
      return;
    case Source::report: return read_report(index);
    case Source::out: return read_stream(index, 0);
    case Source::err: return read_stream(index, 1);
    case Source::attach: return resume_streams(index);
  }
}

}  // namespace
}  // namespace coracle::pause

extern "C" [[noreturn]] void coracle_main(const long*) {
  using namespace coracle::pause;
  using namespace coracle::launch;
  prepare();
  epoll_event events[16];
  while (true) {
    int count = k_epoll_wait(pod.epoll, events, 16);
    for (int i = 0; i < count; ++i) handle(events[i]);
  }
}
