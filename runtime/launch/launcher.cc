// SPDX-License-Identifier: Apache-2.0
// The child as a program by itself, for who does not stay (coracle-oci): executed from memory that nobody can write to, so
// that a container which gets hold of it through /proc/PID/exe has nothing (CVE-2019-5736), and with nothing of its
// launcher's in its own memory. It is told what to do over the socket whose number is its argument.
#include "runtime/launch/launcher.h"

#include "runtime/launch/child.h"
#include "runtime/launch/kernel.h"
#include "runtime/launch/message.h"

namespace coracle::launch {
namespace {

int number(const char* digits) {
  int out = 0;
  for (; *digits >= '0' && *digits <= '9'; ++digits) out = out * 10 + *digits - '0';
  return out;
}

[[noreturn]] void give_up(int report, int err, Stage stage) {
  Report out{Note::failure, {err, stage, -1}};
  (void)k_write(report, &out, sizeof out);  // it also sees us gone
  k_exit(127);
}

[[noreturn]] void launch(int report) {
  Begin begin{};
  Rights<int(kFdsMax) + kOwnFds> rights{};
  Received received = receive_message(report, &begin, sizeof begin, rights, 0);
  if (received.size < 0) give_up(report, int(-received.size), Stage::request);
  if (received.size != sizeof begin) k_exit(1);  // who started us is gone: nobody to go on for
  if (received.is_cut || begin.fds_count > unsigned(received.count)) give_up(report, kEproto, Stage::request);
  auto own = [&](int at) { return at < 0 || at >= received.count ? -1 : rights.fds[at]; };
  Launch out{rights.fds, int(begin.fds_count), report, {0, 1, 2}, own(begin.target), own(begin.start), own(begin.time_namespace)};
  if (begin.has_terminal) out.stdio[0] = out.stdio[1] = out.stdio[2] = -1;
  run_child(out);
}

}  // namespace
}  // namespace coracle::launch

extern "C" [[noreturn]] void coracle_main(const long* stack) {
  using namespace coracle::launch;
  // Not dumpable: the container that we enter may have our user, and its processes are not to look into us before we are
  // one of them.
  if (stack[0] < 2) k_exit(2);
  const int report = number(reinterpret_cast<const char*>(stack[2]));
  if (int rc = k_fcntl(report, 2 /* F_SETFD */, FD_CLOEXEC); rc < 0) give_up(report, -rc, Stage::request);  // exec closes it
  if (int rc = k_prctl(PR_SET_DUMPABLE, 0); rc < 0) give_up(report, -rc, Stage::request);
  k_prctl(PR_SET_NAME, reinterpret_cast<unsigned long>("coracle-oci"));
  forget_signal_actions();
  launch(report);
}
