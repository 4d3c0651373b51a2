// SPDX-License-Identifier: Apache-2.0
// The parsed command line. All commands share this struct; each uses its own members.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace coracle::cli {

struct Options {
  // of all commands
  std::string root;  // directory of the containers' state; "": the default
  std::string log, log_format = "text";
  std::string log_level = "warning";  // "error", "warning", "debug": this and what is worse
  std::string cgroup_manager;         // "cgroupfs", "systemd", "disabled"; "": cgroupfs
  bool systemd_cgroup = false, debug = false;

  std::string id, bundle = ".", config, pid_file, console_socket, pidfd_socket;  // config "": the bundle's config.json
  bool no_pivot = false, no_new_keyring = false, detach = false, keep = false;
  uint32_t preserve_fds = 0, listen_fds = 0;  // listen_fds: LISTEN_FDS, if LISTEN_PID is this process

  std::string signal = "SIGTERM";
  bool all = false, force = false, regex = false, quiet = false, rootless = false;
  std::string format = "table";
  std::string interval = "5s";
  bool stats = false;

  // exec
  std::string process, cwd, user, apparmor, process_label;
  std::vector<std::string> env, capabilities, cgroups, command;
  std::vector<uint32_t> additional_gids;
  bool terminal = false, no_new_privileges = false, ignore_paused = false;

  // update: the fields of config.json
  std::string resources;                                            // a file; "-": standard input
  enum class LimitKind : uint8_t { number, bytes, text, resctrl };  // resctrl: refused, if it is not empty
  struct Limit {
    std::string field, value;  // "memory.limit", "64M"
    LimitKind kind = LimitKind::number;
    std::string flag;
  };
  std::vector<Limit> limits;
};

}  // namespace coracle::cli
