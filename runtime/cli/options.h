// SPDX-License-Identifier: Apache-2.0
// What the command line said. One struct for all commands: each looks at its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace coracle::cli {

struct Options {
  // of every command
  std::string root;  // where containers' state is kept; "" = found
  std::string log, log_format = "text";
  std::string cgroup_manager;  // "cgroupfs", "systemd", "disabled"; "" = cgroupfs
  bool systemd_cgroup = false, debug = false;

  std::string id, bundle = ".", pid_file, console_socket;
  bool no_pivot = false, no_new_keyring = false, detach = false, keep = false;
  uint32_t preserve_fds = 0, listen_fds = 0;  // listen_fds: of LISTEN_FDS, when LISTEN_PID is this process

  std::string signal = "SIGTERM";
  bool all = false, force = false, quiet = false, rootless = false;
  std::string format = "table";
  int interval_seconds = 5;
  bool stats = false;

  // exec
  std::string process, cwd, user, apparmor, process_label, cgroup;
  std::vector<std::string> env, capabilities, command;
  std::vector<uint32_t> additional_gids;
  bool terminal = false, no_new_privileges = false, ignore_paused = false;

  // update: as numbers of config.json
  std::string resources;                                    // a file, "-" = standard input
  std::vector<std::pair<std::string, std::string>> limits;  // "memory.limit" → "1048576"
};

}  // namespace coracle::cli
