// SPDX-License-Identifier: Apache-2.0
// Connections of daemons: one request is answered before the next is read. A subscriber receives the state of every process, then
// each change. pause never waits for a daemon that does not read: unsent states are marked and sent later, so the daemon receives
// the latest state of each process but not every intermediate one.
#include "runtime/launch/message.h"
#include "runtime/pause/pod.h"

namespace coracle::pause {

using namespace launch;

namespace {

Incoming incoming;  // one request at a time
Rights<int(kFdsMax)> rights;

bool is_ours(int fd) {
  PeerCredentials peer{};
  int size = sizeof peer;
  return k_getsockopt(fd, kSolSocket, kSoPeercred, &peer, &size) == 0 && peer.uid == k_geteuid();
}

// False: no message at the moment, or the peer has disconnected (`is_gone`).
bool receive(int fd, bool& is_gone) {
  Received received = receive_message(fd, &incoming.request, sizeof incoming.request, rights, kMsgDontwait);
  const long n = received.size;
  is_gone = n == 0 || (n < 0 && n != -kEagain && n != -kEintr);
  incoming.fds_count = received.count;
  if (n <= 0) return false;
  for (int i = 0; i < received.count; ++i) incoming.fds[i] = rights.fds[i];
  bool is_whole = n == sizeof incoming.request && !received.is_cut && incoming.request.version == kProtocolVersion;
  incoming.request.id[kIdMax - 1] = incoming.request.target[kIdMax - 1] = 0;
  incoming.request.log_name[kLogNameMax - 1] = 0;
  if (!is_whole) incoming.request.kind = Kind::reply;  // not a valid request: answered with EPROTO
  return true;
}

Failure forget(const char* id) {
  int slot = find_slot(id);
  if (slot < 0) return kNoFailure;  // no error if it is unknown
  if (pod.slots[slot].status != Status::ended) {
    if (!pod.slots[slot].is_exec) return {kEbusy, Stage::slot, -1};
    pod.slots[slot].is_orphan = true;  // freed when it ends
    return kNoFailure;
  }
  free_slot(slot);
  return kNoFailure;
}

void subscribe(int connection) {
  Connection& to = pod.connections[connection];
  to.is_subscribed = to.owes_synced = true;
  for (int i = 0; i < pod.slots_used; ++i)
    if (pod.slots[i].status != Status::free) to.unsent[i / 64] |= 1ull << (i % 64);
  flush_states(connection);
}

// Handles a request. `is_answered_later`: the reply to a launch is sent when its result is known.
Failure dispatch(int connection, bool& is_answered_later) {
  const Request& request = incoming.request;
  is_answered_later = false;
  if (!pod.is_set_up && request.kind != Kind::setup && request.kind != Kind::end) return {kEproto, Stage::request, -1};
  switch (request.kind) {
    case Kind::setup: return set_up(incoming);
    case Kind::launch: is_answered_later = true; return launch(connection, incoming);
    case Kind::exec: is_answered_later = true; return exec(connection, incoming);
    case Kind::attach: is_answered_later = true; return attach(connection, incoming);
    case Kind::forget: return forget(request.id);
    case Kind::subscribe:
      subscribe(connection);
      is_answered_later = true;
      return kNoFailure;
    case Kind::end: end_everything(); return kNoFailure;
    default: return {kEproto, Stage::request, -1};
  }
}

}  // namespace

void accept_connection() {
  int fd = k_accept(pod.listener);
  if (fd < 0) return;
  if (!is_ours(fd)) {
    k_close(fd);
    return;
  }
  for (int i = 0; i < kConnectionsMax; ++i) {
    Connection& connection = pod.connections[i];
    if (connection.fd >= 0) continue;
    if (watch(fd, EPOLLIN, key_of(Source::connection, i)) < 0) break;
    connection = Connection{};
    connection.fd = fd;
    return;
  }
  k_close(fd);
}

void serve(int index) {
  Connection& connection = pod.connections[index];
  if (connection.fd < 0) return;
  bool is_gone = false;
  if (!receive(connection.fd, is_gone)) {
    if (is_gone) close_connection(index);
    return;
  }
  bool is_answered_later;
  Failure failure = dispatch(index, is_answered_later);
  // Handlers have removed the descriptors that they keep.
  for (int i = 0; i < incoming.fds_count; ++i) close_if_open(incoming.fds[i]);
  if (failure.err != 0 || !is_answered_later)
    reply(index, Reply{Kind::reply, failure.err, uint32_t(failure.stage), failure.index, 0}, nullptr, 0);
}

void close_connection(int index) {
  Connection& connection = pod.connections[index];
  unwatch(connection.fd);
  for (Slot& slot : pod.slots) {
    if (slot.status == Status::free) continue;
    if (slot.requester == index) slot.requester = -1;
    if (!slot.is_exec || slot.owner != index) continue;
    slot.is_orphan = true;
    slot.owner = -1;
    if (slot.status == Status::ended) free_slot(int(&slot - pod.slots));
  }
}

void reply(int index, const Reply& answer, const int* fds, int count) {
  if (index < 0 || pod.connections[index].fd < 0) return;
  // A daemon that does not read its replies violates the protocol and is disconnected.
  if (send_message(pod.connections[index].fd, &answer, sizeof answer, fds, count, kMsgDontwait) < 0) close_connection(index);
}

void tell_subscribers(int slot) {
  for (int i = 0; i < kConnectionsMax; ++i) {
    Connection& connection = pod.connections[i];
    if (connection.fd < 0 || !connection.is_subscribed) continue;
    connection.unsent[slot / 64] |= 1ull << (slot % 64);
    if (!connection.is_blocked) flush_states(i);
  }
}

void flush_states(int index) {
  Connection& connection = pod.connections[index];
  if (connection.fd < 0) return;
  long rc = 0;
  for (int i = 0; i < pod.slots_used && rc >= 0; ++i) {
    uint64_t bit = 1ull << (i % 64);
    const Slot& slot = pod.slots[i];
    if (!(connection.unsent[i / 64] & bit)) continue;
    if (slot.status != Status::free || slot.has_failure) {
      State state{};
      state.kind = Kind::state;
      state.status = slot.status;
      state.is_exec = slot.is_exec;
      state.wait_status = slot.wait_status;
      state.started_ns = slot.started_ns;
      state.finished_ns = slot.finished_ns;
      state.log_bytes_lost = slot.log_bytes_lost;
      copy_text(state.id, slot.id, sizeof state.id);
      rc = send_message(connection.fd, &state, sizeof state, &slot.pidfd, slot.pidfd >= 0 ? 1 : 0, kMsgDontwait);
    }
    if (rc >= 0) connection.unsent[i / 64] &= ~bit;
  }
  if (rc >= 0 && connection.owes_synced) {
    State state{};
    state.kind = Kind::synced;
    rc = send_message(connection.fd, &state, sizeof state, nullptr, 0, kMsgDontwait);
    if (rc >= 0) connection.owes_synced = false;
  }
  if (rc < 0 && rc != -kEagain) return close_connection(index);
  bool is_blocked = rc == -kEagain;
  if (is_blocked != connection.is_blocked)
    rewatch(connection.fd, EPOLLIN | (is_blocked ? EPOLLOUT : 0), key_of(Source::connection, index));
  connection.is_blocked = is_blocked;
}

}  // namespace coracle::pause
