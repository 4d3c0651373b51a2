// SPDX-License-Identifier: Apache-2.0
// Owners of objects that libnl returns by pointer. For the files that call libnl.
#pragma once

#include <netlink/msg.h>

#include <memory>

namespace coracle::sys {

template <typename T, void (*kFree)(T*)>
struct Freed {
  void operator()(T* pointer) const { kFree(pointer); }
};
using MessageHandle = std::unique_ptr<nl_msg, Freed<nl_msg, nlmsg_free>>;

}  // namespace coracle::sys
