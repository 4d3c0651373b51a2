// SPDX-License-Identifier: Apache-2.0
// Handles exits: first the remaining output is written to the log, then the status is stored and published.
#include "runtime/pause/pod.h"

namespace coracle::pause {

using namespace launch;

namespace {

int slot_of(int pid) {
  for (int i = 0; i < pod.slots_used; ++i) {
    const Slot& slot = pod.slots[i];
    if (slot.status != Status::free && slot.status != Status::ended && slot.pid == pid) return i;
  }
  return -1;
}

void finish(int index, int wait_status) {
  Slot& slot = pod.slots[index];
  if (slot.status == Status::starting) read_report(index);  // its report may be unread
  if (slot.has_failure) {
    reply(slot.requester, Reply{Kind::reply, slot.failure.err, uint32_t(slot.failure.stage), slot.failure.index, 0}, nullptr, 0);
    free_slot(index);
    tell_subscribers(index);  // a daemon that connected during the start has no reply
    return;
  }
  slot.finished_ns = k_now();
  slot.wait_status = wait_status;
  drain_streams(index);
  slot.status = Status::ended;
  close_if_open(slot.pidfd);
  close_if_open(slot.stdin_end);
  if (slot.is_orphan) {
    free_slot(index);
  } else {
    tell_subscribers(index);
  }
}

bool is_anything_left() {
  for (const Slot& slot : pod.slots)
    if (slot.status != Status::free && slot.status != Status::ended) return true;
  return false;
}

}  // namespace

void reap() {
  int status, pid;
  while ((pid = k_wait4(-1, &status, kWnohang)) > 0) {
    if (pid == pod.shared_init_pid) close_if_open(pod.shared_init);
    int index = slot_of(pid);
    if (index >= 0) finish(index, status);  // otherwise an orphan that was reparented to pause
  }
  if (pod.is_ending && !is_anything_left()) k_exit(0);
}

}  // namespace coracle::pause
