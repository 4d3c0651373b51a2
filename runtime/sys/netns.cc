// SPDX-License-Identifier: Apache-2.0
// See netns.h.
#include "runtime/sys/netns.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <optional>
#include <thread>

#include "runtime/base/thread.h"

namespace coracle::sys {

Result<Fd> current_netns() { return open_netns("/proc/thread-self/ns/net"); }

Result<Fd> open_netns(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return Error::from_errno("open network namespace " + path);
  struct statfs about;
  if (::fstatfs(fd.get(), &about) < 0) return Error::from_errno("fstatfs " + path);
  if (about.f_type != NSFS_MAGIC) return Error(Code::invalid, path + " is not a namespace");
  return fd;
}

Result<Fd> new_netns() {
  std::optional<Result<Fd>> made;
  start_thread("netns", [&] {
    if (::unshare(CLONE_NEWNET) < 0) {
      made = Error::from_errno("unshare network namespace");
    } else {
      made = current_netns();
    }
  }).join();
  return std::move(*made);
}

Result<void> in_netns(const Fd& netns, const std::function<Result<void>()>& work) {
  std::optional<Result<void>> done;
  start_thread("netns", [&] {
    if (::setns(netns.get(), CLONE_NEWNET) < 0) {
      done = Error::from_errno("enter network namespace");
    } else {
      done = work();
    }
  }).join();
  return std::move(*done);
}

namespace {

bool is_ours(const Fd& netns) {
  struct stat there, here;
  auto current = current_netns();
  if (!current || ::fstat(netns.get(), &there) < 0 || ::fstat(current->get(), &here) < 0) return false;
  return there.st_dev == here.st_dev && there.st_ino == here.st_ino;
}

}  // namespace

Result<Fd> socket_in_netns(const Fd& netns, int domain, int type, int protocol) {
  Fd made;
  auto make = [&]() -> Result<void> {
    made = Fd(::socket(domain, type | SOCK_CLOEXEC, protocol));
    if (!made) return Error::from_errno("socket");
    return {};
  };
  TRY(is_ours(netns) ? make() : in_netns(netns, make));
  return made;
}

}  // namespace coracle::sys
