// SPDX-License-Identifier: Apache-2.0
// The state of one coracle-pause: the processes it launched, the connections it serves. All of it is static; what is
// not used is never touched and costs no memory. One thread, one epoll loop (main.cc), one handler per kind of
// descriptor:
//   socket.cc   connections: requests in, replies and states out
//   launch.cc   a request becomes a clone, its report becomes the reply
//   log.cc      what a container writes becomes CRI log lines
//   setup.cc    the pod's own namespaces, once
//   reap.cc     exits
#pragma once

#include "runtime/launch/child.h"
#include "runtime/launch/kernel.h"
#include "runtime/pause/protocol.h"

namespace coracle::pause {

constexpr int kConnectionsMax = 16;
constexpr int kAttachesMax = 32;    // per process; containerd and CRI-O have no such limit
constexpr size_t kLineMax = 16384;  // a longer line is written in parts; containerd's and CRI-O's own
constexpr size_t kReadMax = 32768;

enum class Source : uint32_t { listener, signals, connection, report, out, err, attach };

struct Stream {
  int fd;           // the near end of what the process writes; -1 = ended
  uint32_t held;    // bytes of an unfinished line, in its line buffer
  bool is_waiting;  // for somebody attached to read
};

struct Attach {
  int ends[2];  // stdout, stderr; -1 = none
};

struct Slot {
  Status status;
  bool is_exec, is_orphan;  // orphan: the daemon that asked is gone, nobody will forget it
  bool has_failure, has_ended;
  int pid, pidfd, report, log, log_directory, stdin_end, terminal;
  int requester;  // connection that waits for the reply; -1 = none
  int owner;      // connection an exec belongs to
  int wait_status;
  uint32_t flags, log_files;
  uint64_t log_rotate_bytes, log_bytes, log_bytes_lost;
  uint64_t started_ns, finished_ns;
  launch::Failure failure;
  Stream streams[2];
  Attach attaches[kAttachesMax];
  bool is_log_torn;  // the last write stopped in the middle of a line
  char id[kIdMax];
  char log_name[kLogNameMax];
};

struct Connection {
  int fd;
  bool is_subscribed, owes_synced, is_blocked;
  uint64_t unsent[kSlotsMax / 64];  // slots whose state this subscriber has not seen
};

struct Pod {
  int epoll, listener, signals, self_pidfd, null;
  int shared_init;  // pidfd of the shared process namespace's first process; -1 = none
  int shared_init_pid;
  bool is_set_up, is_ending;
  int slots_used;  // so many of the first ones have ever been in use: beyond, nobody looks
  Slot slots[kSlotsMax];
  Connection connections[kConnectionsMax];
};

extern Pod pod;

constexpr launch::Failure kNoFailure{0, launch::Stage::none, -1};
// `rc`: a negative errno.
inline launch::Failure failure(launch::Stage stage, int rc, int index = -1) { return {-rc, stage, index}; }

// socket.cc
void accept_connection();
void serve(int connection);
void close_connection(int connection);
void reply(int connection, const Reply& answer, const int* fds, int count);
void tell_subscribers(int slot);
void flush_states(int connection);

// launch.cc
struct Incoming {
  Request request;
  int fds[launch::kFdsMax];
  int fds_count;
};
launch::Failure launch(int connection, Incoming& incoming);
launch::Failure exec(int connection, Incoming& incoming);
void read_report(int slot);
int find_slot(const char* id);
void free_slot(int slot);
void end_everything();

// log.cc
int open_log(Slot& slot, int directory);
void read_stream(int slot, int which);  // what is there now
void drain_streams(int slot);           // to the end, until nothing is there, or until an attached client can take no more
void abandon_slow_clients(int slot);    // closes those, and drains what they kept back into the log
void close_stream(int slot, int which);
launch::Failure attach(int connection, Incoming& incoming);
void resume_streams(int slot);  // somebody attached can read again, or is gone

// setup.cc
launch::Failure set_up(Incoming& incoming);

// reap.cc
void reap();

// epoll
inline uint64_t key_of(Source source, int index) { return uint64_t(source) << 32 | uint32_t(index); }
inline int watch(int fd, uint32_t events, uint64_t key) {
  epoll_event event{};
  event.events = events;
  event.data = key;
  return launch::k_epoll_ctl(pod.epoll, EPOLL_CTL_ADD, fd, &event);
}
inline void rewatch(int fd, uint32_t events, uint64_t key) {
  epoll_event event{};
  event.events = events;
  event.data = key;
  (void)launch::k_epoll_ctl(pod.epoll, EPOLL_CTL_MOD, fd, &event);  // it is in the set, or is being closed
}
inline void close_if_open(int& fd) {
  if (fd >= 0) launch::k_close(fd);
  fd = -1;
}
// The same for one that is watched. Closing alone does not end that: a child on its way to exec holds a copy of ours.
inline void unwatch(int& fd) {
  if (fd >= 0) (void)launch::k_epoll_ctl(pod.epoll, EPOLL_CTL_DEL, fd, nullptr);  // not in the set is as good
  close_if_open(fd);
}

}  // namespace coracle::pause
