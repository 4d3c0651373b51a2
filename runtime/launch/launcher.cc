// SPDX-License-Identifier: Apache-2.0
// The child as a program by itself, for who does not stay (coracle-oci): executed from memory that nobody can write to, so
// that a container which gets hold of it through /proc/PID/exe has nothing (CVE-2019-5736), and with nothing of its
// launcher's in its own memory. It is told what to do over the socket whose number is its argument.
#include "runtime/launch/launcher.h"

#include "runtime/launch/child.h"
#include "runtime/launch/kernel.h"

namespace coracle::launch {
namespace {

int fds[kFdsMax + kOwnFds];

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
  struct {
    ControlHeader head;
    int fds[kFdsMax + kOwnFds];
  } rights{};
  iovec part{&begin, sizeof begin};
  MessageHeader message{};
  message.parts = &part;
  message.parts_count = 1;
  message.control = &rights;
  message.control_length = sizeof rights;
  const long size = k_recvmsg(report, &message, kMsgCmsgCloexec);
  if (size < 0) give_up(report, int(-size), Stage::request);
  if (size != sizeof begin) k_exit(1);  // who started us is gone: nobody to go on for
  const int count = int((rights.head.length - sizeof rights.head) / sizeof(int));
  if (message.flags & kMsgCtrunc || begin.fds_count > unsigned(count)) give_up(report, kEproto, Stage::request);
  for (int i = 0; i < count; ++i) fds[i] = rights.fds[i];
  auto own = [&](int at) { return at < 0 || at >= count ? -1 : fds[at]; };
  const int stream = begin.has_terminal ? -1 : 0;
  Launch out{fds, int(begin.fds_count), report, {stream, stream, stream}, own(begin.target), own(begin.start),
             own(begin.time_namespace)};
  for (int i = 0; !begin.has_terminal && i < 3; ++i) out.stdio[i] = i;
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
  launch(report);
}
