// SPDX-License-Identifier: Apache-2.0
// See probe.h.
#include "runtime/sys/probe.h"

#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "runtime/base/scope.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/file.h"
#include "runtime/sys/mount.h"
#include "runtime/sys/namespaces.h"
#include "runtime/sys/netns.h"
#include "runtime/sys/overlay.h"

namespace coracle::sys {
namespace {

constexpr const char* kProbeLink = "coracle-probe";

// One rtnetlink request, built by hand: this file is linked into a client without libnl.
class LinkRequest {
 public:
  explicit LinkRequest(const std::string& kind) {
    append(nlmsghdr{0, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, 1, 0});
    append(ifinfomsg{});
    attribute(IFLA_IFNAME, kProbeLink, std::strlen(kProbeLink) + 1);
    size_t info = bytes_.size();
    attribute(IFLA_LINKINFO, nullptr, 0);
    attribute(IFLA_INFO_KIND, kind.data(), kind.size());
    auto length = uint16_t(bytes_.size() - info);
    std::memcpy(bytes_.data() + info, &length, sizeof length);
    auto total = uint32_t(bytes_.size());
    std::memcpy(bytes_.data(), &total, sizeof total);
  }
  const std::vector<char>& bytes() const { return bytes_; }

 private:
  template <typename T>
  void append(const T& part) {
    const char* from = reinterpret_cast<const char*>(&part);
    bytes_.insert(bytes_.end(), from, from + sizeof part);
    pad();
  }
  void attribute(uint16_t type, const void* value, size_t size) {
    append(rtattr{uint16_t(RTA_LENGTH(size)), type});
    bytes_.insert(bytes_.end(), static_cast<const char*>(value), static_cast<const char*>(value) + size);
    pad();
  }
  void pad() { bytes_.resize(NLMSG_ALIGN(bytes_.size())); }
  std::vector<char> bytes_;
};

Result<void> make_link(const std::string& kind) {
  Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket) return Error::from_errno("netlink socket");
  LinkRequest request(kind);
  if (::send(socket.get(), request.bytes().data(), request.bytes().size(), 0) < 0)
    return Error::from_errno("make a link of kind " + kind);
  alignas(nlmsghdr) char answer[4096];
  ssize_t got = ::recv(socket.get(), answer, sizeof answer, 0);
  if (got < 0) return Error::from_errno("netlink answer");
  auto* head = reinterpret_cast<nlmsghdr*>(answer);
  if (!NLMSG_OK(head, size_t(got)) || head->nlmsg_type != NLMSG_ERROR)
    return Error(Code::internal, "netlink: an answer of another kind");
  int failed = reinterpret_cast<nlmsgerr*>(NLMSG_DATA(head))->error;
  if (failed != 0) return Error::from_errno(-failed, "make a link of kind " + kind);
  return {};
}

}  // namespace

Result<void> try_clone(uint64_t namespaces, const Fd* cgroup) {
  int pidfd = -1;
  clone_args arguments{};
  arguments.flags = CLONE_PIDFD | namespaces;
  arguments.pidfd = reinterpret_cast<uintptr_t>(&pidfd);
  arguments.exit_signal = SIGCHLD;
  if (cgroup) {
    arguments.flags |= CLONE_INTO_CGROUP;
    arguments.cgroup = uint64_t(cgroup->get());
  }
  long pid = ::syscall(SYS_clone3, &arguments, sizeof arguments);
  if (pid < 0) return Error::from_errno("clone3");
  if (pid == 0) ::_exit(0);  // a copy of this process: it exits at once
  Fd child(pidfd);
  siginfo_t ended{};
  while (::waitid(P_PID, id_t(pid), &ended, WEXITED) < 0)
    if (errno != EINTR) return Error::from_errno("wait for the probe's process");
  return {};
}

Result<void> try_mount_api() {
  Fd mount = TRY(new_file_system("tmpfs", {}, MOUNT_ATTR_NOSUID));
  return change_mount(mount, {.set = MOUNT_ATTR_RDONLY});
}

namespace {

Result<void> try_overlay_with(const std::string& directory, const Fd* id_map) {
  std::string place = directory + "/.coracle-probe-XXXXXX";
  if (!::mkdtemp(place.data())) return Error::from_errno("make a directory in " + directory);
  Scope remove([&] { (void)remove_tree(place); });
  for (const char* name : {"/lower", "/upper", "/work", "/staging"}) TRY(make_directories(place + name, 0700));
  Fd mount = TRY(mount_overlay({.lower = {place + "/lower"},
                                .upper = place + "/upper",
                                .work = place + "/work",
                                .staging = place + "/staging",
                                .id_map = id_map}));
  return {};
}

}  // namespace

Result<void> try_overlay(const std::string& directory) { return try_overlay_with(directory, nullptr); }

Result<void> try_own_users(const std::string& directory) {
  const std::vector<IdRange> somebody = {{0, 1 << 19, 1}};
  OwnedNamespaces made = TRY(make_user_namespace(somebody, somebody, CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS));
  return try_overlay_with(directory, &made.user);
}

Result<void> try_link(const std::string& kind) {
  Fd netns = TRY(new_netns());
  return in_netns(netns, [&] { return make_link(kind); });
}

Result<void> try_seccomp() {
  uint32_t action = SECCOMP_RET_ERRNO;
  if (::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) != 0) return Error::from_errno("seccomp");
  return {};
}

Result<void> try_device_filter() {
  Fd program = TRY(load_device_program(device_program({{.allow = true}})));
  return {};
}

Result<bool> clock_is_synchronised() {
  timex state{};  // modes 0: read-only
  int answer = ::adjtimex(&state);
  if (answer < 0) return Error::from_errno("adjtimex");
  return answer != TIME_ERROR && !(state.status & STA_UNSYNC);
}

}  // namespace coracle::sys
