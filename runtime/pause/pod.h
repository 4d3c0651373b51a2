// SPDX-License-Identifier: Apache-2.0
// The state of one coracle-pause: its processes and connections. All of it is static; pages that are never used cost no memory.
// It has one thread, one epoll loop (main.cc) and one handler per kind of descriptor:
//   socket.cc   connections: requests in, replies and states out
//   launch.cc   turns a request into a clone and its report into the reply
//   log.cc      writes a container's output as CRI log lines
//   setup.cc    sets up the pod's namespaces, once
//   reap.cc     handles exits
#pragma once

#include "runtime/launch/child.h"
#include "runtime/launch/kernel.h"
#include "runtime/pause/protocol.h"

namespace coracle::pause {

constexpr int kConnectionsMax = 16;
constexpr int kAttachesMax = 32;    // per process; containerd and CRI-O have no limit
constexpr size_t kLineMax = 16384;  // longer lines are split; the same limit as containerd's and CRI-O's
constexpr size_t kReadMax = 32768;

enum class Source : uint32_t { listener, signals, connection, report, out, err, attach };

struct Stream {
  int fd;           // our end of the process's output; -1: closed
  uint32_t held;    // bytes of an unfinished line in its line buffer
  bool is_waiting;  // until an attached client reads
};

struct Attach {
  int ends[2];  // stdout, stderr; -1: none
};

struct Slot {
  Status status;
  bool is_exec, is_orphan;  // orphan: the daemon that started it has disconnected, and nobody will send forget
  bool has_failure, has_ended;
  int pid, pidfd, report, log, log_directory, stdin_end, terminal;
  int requester;  // the connection that waits for the reply; -1: none
  int owner;      // the connection of an exec
  int wait_status;
  uint32_t flags, log_files;
  uint64_t log_rotate_bytes, log_bytes, log_bytes_lost;
  uint64_t started_ns, finished_ns;
  launch::Failure failure;
  Stream streams[2];
  Attach attaches[kAttachesMax];
  bool is_log_torn;  // the last write ended in the middle of a line
  char id[kIdMax];
  char log_name[kLogNameMax];
};

struct Connection {
  int fd;
  bool is_subscribed, owes_synced, is_blocked;
  uint64_t unsent[kSlotsMax / 64];  // slots whose state the subscriber has not received
};

struct Pod {
  int epoll, listener, signals, self_pidfd, null;
  int shared_init;  // pidfd of the first process of the shared pid namespace; -1: none
  int shared_init_pid;
  bool is_set_up, is_ending;
  int slots_used;  // slots beyond this number have never been used, and loops end there
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
void read_stream(int slot, int which);  // available output
void drain_streams(int slot);           // until end of file, until nothing is available, or until an attached client is too slow
void abandon_slow_clients(int slot);    // disconnects them and writes the output that waited for them to the log
void close_stream(int slot, int which);
launch::Failure attach(int connection, Incoming& incoming);
void resume_streams(int slot);  // an attached client can read again, or has closed

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
// The same for a watched descriptor. Closing alone does not remove it from the epoll set while a child before exec holds a copy.
inline void unwatch(int& fd) {
  if (fd >= 0) (void)launch::k_epoll_ctl(pod.epoll, EPOLL_CTL_DEL, fd, nullptr);  // not in the set is as good
  close_if_open(fd);
}

}  // namespace coracle::pause
