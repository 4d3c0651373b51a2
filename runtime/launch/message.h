// SPDX-License-Identifier: Apache-2.0
// Messages of one struct and descriptors over a Unix socket: between the child, coracle-pause and the launcher. Source: unix(7)
// SCM_RIGHTS, cmsg(3).
#pragma once

#include "runtime/launch/kernel.h"

namespace coracle::launch {

template <int N>
struct Rights {  // a buffer for N descriptors
  ControlHeader head;
  int fds[N];
};

struct Received {
  long size;    // bytes of the struct; 0: the peer has closed the socket; or a negative errno
  int count;    // number of descriptors, which are close-on-exec
  bool is_cut;  // the message was truncated
};

template <int N>
inline Received receive_message(int socket, void* to, size_t size, Rights<N>& rights, int flags) noexcept {
  iovec part{to, size};
  MessageHeader message{};
  message.parts = &part;
  message.parts_count = 1;
  message.control = &rights;
  message.control_length = sizeof rights;
  Received out{};
  out.size = k_recvmsg(socket, &message, flags | kMsgCmsgCloexec);
  out.is_cut = message.flags & (kMsgTrunc | kMsgCtrunc);
  const bool has_rights = out.size > 0 && message.control_length >= sizeof rights.head && rights.head.level == kSolSocket &&
                          rights.head.type == kScmRights;
  if (has_rights) out.count = int((rights.head.length - sizeof rights.head) / sizeof(int));
  return out;
}

// Returns the kernel's result.
inline long send_message(int socket, const void* bytes, size_t size, const int* fds, int count, int flags) noexcept {
  Rights<4> rights{};
  iovec part{const_cast<void*>(bytes), size};
  MessageHeader message{};
  message.parts = &part;
  message.parts_count = 1;
  if (count > 0) {
    rights.head = {sizeof rights.head + size_t(count) * sizeof(int), kSolSocket, kScmRights};
    for (int i = 0; i < count; ++i) rights.fds[i] = fds[i];
    message.control = &rights;
    message.control_length = (rights.head.length + 7) / 8 * 8;
  }
  return k_sendmsg(socket, &message, flags | kMsgNosignal);
}

}  // namespace coracle::launch
