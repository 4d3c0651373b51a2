// SPDX-License-Identifier: Apache-2.0
// The child as a separate program, for a launcher that exits (coracle-oci). It is executed from a sealed memfd, so that a
// container that opens it through /proc/PID/exe cannot modify it (CVE-2019-5736). Its memory contains nothing of the launcher.
// Its argument is the number of the socket with its instructions.
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
  (void)k_write(report, &out, sizeof out);  // the launcher also sees end of file
  k_exit(127);
}

[[noreturn]] void launch(int report) {
  Begin begin{};
  Rights<int(kFdsMax) + kOwnFds> rights{};
  Received received = receive_message(report, &begin, sizeof begin, rights, 0);
  if (received.size < 0) give_up(report, int(-received.size), Stage::request);
  if (received.size != sizeof begin) k_exit(1);  // the launcher is gone: exit
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
  // Not dumpable: processes of the container that we join may have our user, and must not access our memory before we are
  // confined like them.
  if (stack[0] < 2) k_exit(2);
  const int report = number(reinterpret_cast<const char*>(stack[2]));
  if (int rc = k_fcntl(report, 2 /* F_SETFD */, FD_CLOEXEC); rc < 0) give_up(report, -rc, Stage::request);  // exec closes it
  if (int rc = k_prctl(PR_SET_DUMPABLE, 0); rc < 0) give_up(report, -rc, Stage::request);
  k_prctl(PR_SET_NAME, reinterpret_cast<unsigned long>("coracle-oci"));
  forget_signal_actions();
  launch(report);
}
