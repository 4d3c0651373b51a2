// SPDX-License-Identifier: Apache-2.0
// doctor: examines the machine and reports problems with advice. It has two halves, so that each verdict can be tested without
// the machine that it is about:
//   read_machine_info (doctor_machine.cc: files, probes, measurements, the API) ──MachineInfo──▶ examine (doctor_checks.cc: pure)
//   ──▶ findings
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "runtime/base/units.h"

namespace coracle::ctl {

enum class Level : uint8_t { ok, warn, fail, skip };  // skip: could not be examined
const char* level_name(Level level);                  // "OK", "WARN", "FAIL", "SKIP"

struct Finding {
  Level level = Level::ok;
  std::string check;    // "memory"
  std::string message;  // the result, one line
  std::string advice;   // what to do, one step per line; "" if nothing
};

// The result of a probe.
struct ProbeResult {
  enum Outcome : uint8_t { not_tried, works, fails } outcome = not_tried;
  std::string why;  // the reason of a failure, or why the probe was not made
};

struct Settings {  // the settings of config.yaml that doctor needs; the defaults are the daemon's
  std::string file = "/etc/coracle/config.yaml";
  std::string state_dir = "/var/lib/coracle", pod_cidr = "10.244.0.0/24", cluster_dns = "10.96.0.10";
  std::string pause_program = "/usr/libexec/coracle/coracle-pause", image_program = "/usr/libexec/coracle/coracle-image",
              node_name;
  uint16_t port = 6443;
  std::vector<std::string> volume_dirs;  // empty: below state_dir
};

struct CgroupInfo {
  std::string mounted_at;               // mount point of cgroup v2; "" if it is not mounted
  std::string controllers;              // of the v2 root: "cpuset cpu io memory pids"
  std::string v1_controllers;           // controllers that v1 hierarchies hold, comma-separated
  std::string kernel_cmdline;           // /proc/cmdline
  std::string pi_cmdline_path;          // the cmdline.txt that a Raspberry Pi's firmware reads; "" if there is none
  std::string pi_cmdline;               // the text of that file
  std::set<std::string> boot_settings;  // those of kBootSettings that this machine has
};

// Where a boot loader's line for the kernel is set, and how that takes effect; the first one that exists counts.
struct BootSetting {
  const char* file;   // says that it is this one
  const char* place;  // where the line is
  const char* apply;  // a command, before the reboot; "": none
};
inline constexpr BootSetting kBootSettings[] = {
    // Debian on a Raspberry Pi: its package makes cmdline.txt anew with each kernel.
    {"/etc/default/raspi-firmware", "the single line of /etc/default/raspi-extra-cmdline", "sudo update-initramfs -u"},
    {"/etc/default/grub", "GRUB_CMDLINE_LINUX in /etc/default/grub", "sudo update-grub"},
    {"/boot/armbianEnv.txt", "extraargs= in /boot/armbianEnv.txt", ""},
    {"/etc/default/u-boot", "U_BOOT_PARAMETERS in /etc/default/u-boot", "sudo u-boot-update"},
    {"/boot/extlinux/extlinux.conf", "each line append of /boot/extlinux/extlinux.conf", ""},
    {"/etc/kernel/cmdline", "the line of /etc/kernel/cmdline", "sudo update-initramfs -u"},  // systemd-boot
};

struct Feature {  // a kernel feature
  std::string name, needed_for;
  std::string module;  // the module that provides it; "" if it can only be built in
  ProbeResult probe_result;
  bool required = true;
};

struct StorageInfo {
  std::string path;         // the data directory, or its nearest existing parent
  std::string file_system;  // "ext4", "nfs", …; the number as "0x1234" if unknown
  std::string device;       // "/dev/mmcblk0p2"
  Bytes total, available;
  uint64_t inodes = 0, inodes_free = 0;
  std::vector<double> sync_ms;  // milliseconds of each fdatasync of 4 KiB
  ProbeResult measured, overlay, own_users, quotas;
};

struct VolumeDirInfo {  // one of volumeDirs
  enum State : uint8_t { absent, unmarked, marked };
  State state = absent;  // marked: volumes were created on its disk, and the disk is mounted
  std::string path;
  std::string error;  // why it cannot be looked at; "" if it can
  ProbeResult quotas;
};

struct ClockInfo {
  WallTime now, built;  // built: when this program was compiled
  std::optional<bool> synchronised;
  bool has_battery_clock = false;
};

struct Swap {
  std::string name;  // "/dev/zram0", "/var/swap"
  Bytes size;
};

struct MemoryInfo {
  Bytes total, available;
  std::vector<Swap> swaps;
};

struct FirewallInfo {
  ProbeResult rules_read;                       // of nftables
  json::value ruleset;                          // {"nftables": [...]}
  bool legacy = false;                          // iptables' old tables are in use
  std::string legacy_forward;                   // "-P FORWARD DROP\n-A FORWARD …", "" = not read
  std::set<std::string> managers;               // "ufw", "firewalld", "docker"
  std::optional<int> forwarding, reverse_path;  // net.ipv4.ip_forward, rp_filter of all
};

struct Listener {
  std::string protocol;  // "tcp", "udp"
  std::string address;   // "0.0.0.0", "::", "10.96.0.10"
  uint16_t port = 0;
  std::string program;  // "" = unknown
};

struct StoreInfo {
  ProbeResult checked;  // by the daemon, now
  std::vector<std::string> findings;
  Bytes used, most;  // what all objects take, and may take; 0: not known
};

struct DaemonInfo {
  bool installed = false;
  std::vector<std::string> missing;  // of the programs it starts
  bool running = false;
  bool with_systemd = false;  // systemd is PID 1 here
  ProbeResult ready;
  std::string server;
  json::array conditions;  // of the node
  std::string node;
};

struct MachineInfo {
  bool root = false;
  Settings settings;
  std::string settings_error;  // why config.yaml cannot be read; "" if it can
  std::string kernel, model, architecture;
  int kernel_major = 0, kernel_minor = 0;
  CgroupInfo cgroup;
  std::vector<Feature> features;
  StorageInfo disk;
  std::vector<VolumeDirInfo> volume_dirs;
  ClockInfo clock;
  MemoryInfo memory;
  FirewallInfo firewall;
  std::optional<std::vector<std::string>> nameservers;  // from /etc/resolv.conf
  std::vector<Listener> listeners;
  std::set<std::string> programs;  // names of the running programs
  std::string host_name;
  DaemonInfo daemon;
  StoreInfo store;
};

// Collects everything that examine() needs. Blocks; takes some seconds on a slow disk. Leaves no files behind.
class Commands;
MachineInfo read_machine_info(Commands& commands, const std::string& config_file);

// The findings, most fundamental first. Pure.
std::vector<Finding> examine(const MachineInfo& info);

// False if a finding has the level FAIL: then the exit code is 1.
bool healthy(const std::vector<Finding>& findings);
std::string print_findings(const std::vector<Finding>& findings);
json::value findings_json(const std::vector<Finding>& findings);

// ---- parts of examine, for their tests ----

// How to enable the memory controller on a Raspberry Pi: the exact change of its cmdline.txt.
std::string raspberry_advice(const CgroupInfo& cgroup);
// How to change the kernel's command line with this machine's boot loader: "add X to PLACE, then: COMMAND && sudo reboot".
// `change`: "add X to" or "take X out of".
std::string boot_line_advice(const CgroupInfo& cgroup, const std::string& change);
// Base chains at `hook` whose policy is drop and which have no rule that accepts the pods by address or interface. `ruleset` is
// the output of `nft -j list ruleset`. Returns names such as "ip filter FORWARD".
std::vector<std::string> blocking_chains(const json::value& ruleset, std::string_view hook, std::string_view pod_cidr);

// ---- parts of read_machine_info, for their tests ----

Result<Settings> parse_settings(std::string_view yaml_text, Settings defaults);
std::vector<std::string> parse_nameservers(std::string_view resolv_conf);
std::vector<Swap> parse_swaps(std::string_view proc_swaps);
// The listening sockets in /proc/net/{tcp,udp}{,6}, each with its inode.
std::vector<std::pair<Listener, uint64_t>> parse_listeners(std::string_view proc_net, std::string_view protocol, bool ipv6);
// The device and the file system type of the mount that holds `path`, from mountinfo: "/dev/mmcblk0p2", "ext4".
std::pair<std::string, std::string> device_of(std::string_view mountinfo, std::string_view path);

}  // namespace coracle::ctl
