// SPDX-License-Identifier: Apache-2.0
// See nfs.h.
#include "daemon/nfs.h"

#include <algorithm>
#include <vector>

#include "runtime/base/text.h"
#include "runtime/sys/mount.h"
#include "runtime/sys/run.h"

namespace coracle {
namespace {

constexpr std::chrono::seconds kMountMax{30}, kAnswerMax{10}, kUnmountMax{2};
constexpr const char* kPath = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";  // mount.nfs starts rpc.statd with a script

std::string text_of(const node::NfsShare& share) {
  const bool is_ipv6 = share.server.find(':') != std::string::npos && !share.server.starts_with('[');
  return (is_ipv6 ? "[" + share.server + "]" : share.server) + ":" + share.path;
}

// Adds retry=0 unless the share sets it: the daemon retries itself, and by default mount.nfs retries silently for two minutes.
std::string options_of(const node::NfsShare& share) {
  std::vector<std::string> options = share.options;
  if (std::ranges::none_of(options, [](const std::string& option) { return option.starts_with("retry="); }))
    options.push_back("retry=0");
  return join(options, ",");
}

}  // namespace

Result<void> mount_nfs(const node::NfsShare& share, const std::string& directory, std::stop_token stop) {
  std::vector<std::string> there = TRY(sys::mounts_on(directory));
  if (!there.empty()) return {};
  if (share.server.starts_with('-')) return Error(Code::invalid, quoted(share.server) + " is no server's name");
  const std::string program = sys::find_program("mount.nfs"), guard = sys::find_program("setpriv");
  if (program.empty())
    return Error(Code::not_found, "this machine has no mount.nfs: install the package nfs-common (apt install nfs-common)");
  sys::RunSpec spec{.path = program,
                    .argv = {"mount.nfs", text_of(share), directory, "-o", options_of(share)},
                    .env = {kPath, "LC_ALL=C"},
                    .input = "",
                    .timeout = kMountMax,
                    .stop = std::move(stop)};
  if (!guard.empty()) {  // it ends when the daemon is killed; the next daemon mounts the share again
    spec.path = guard, spec.argv[0] = program;
    spec.argv.insert(spec.argv.begin(), {"setpriv", "--pdeathsig", "KILL"});
  }
  auto heard = sys::run_and_hear(spec);
  if (!heard && heard.error().code() == Code::timeout)
    return Error(Code::timeout,
                 "mount failed: " + share.server + " did not answer within " + std::to_string(kMountMax.count()) + " seconds");
  if (!heard) return heard.take_error();
  if (heard->exit_code == 0) return {};
  return Error(Code::unavailable,
               "mount failed: exit status " + std::to_string(heard->exit_code) + ": " + std::string(trim(heard->text)));
}

// The options prevent umount from accessing the mounted file system.
Result<void> unmount_nfs(const std::string& directory) {
  const std::string program = sys::find_program("umount");
  if (program.empty()) return sys::detach_mount(directory);
  auto heard = sys::run_and_hear({.path = program,
                                  .argv = {"umount", "--internal-only", "--lazy", "--no-canonicalize", directory},
                                  .env = {"LC_ALL=C"},
                                  .input = "",
                                  .timeout = kUnmountMax});
  if (!heard && heard.error().code() == Code::timeout) return {};  // it is detached already
  if (!heard) return heard.take_error();
  if (heard->exit_code == 0) return {};
  return Error(Code::unavailable, "unmount " + directory + ": " + std::string(trim(heard->text)));
}

Result<void> server_answers(const std::string& directory, std::stop_token stop) {
  auto heard = sys::run_and_hear({.path = sys::find_program("stat"),
                                  .argv = {"stat", "--file-system", "--format=", directory},
                                  .env = {"LC_ALL=C"},
                                  .input = "",
                                  .timeout = kAnswerMax,
                                  .stop = std::move(stop)});
  if (!heard && heard.error().code() == Code::timeout)
    return Error(Code::timeout, "its server does not answer; the pod goes on when it does");
  if (!heard) return heard.take_error();
  if (heard->exit_code == 0) return {};
  return Error(Code::unavailable, std::string(trim(heard->text)));
}

}  // namespace coracle
