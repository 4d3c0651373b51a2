// SPDX-License-Identifier: Apache-2.0
// The verdicts of doctor: a table of checks, each of which turns collected data into findings. See doctor.h. Pure.
#include <algorithm>
#include <array>
#include <cstdio>

#include "ctl/doctor.h"
#include "runtime/base/text.h"
#include "store/schema/views.h"

namespace coracle::ctl {
namespace {

using Findings = std::vector<Finding>;

// The kernel that introduced cgroup.kill, the newest feature that pods need.
constexpr int kKernelMajor = 5, kKernelMinor = 14;
constexpr int64_t kStoreTenthsMost = 8;  // tenths of the store's size limit
constexpr Bytes kDiskLeast = 200_MiB, kMemoryLeast = 100_MiB, kMemorySmall{int64_t(1) << 30};
constexpr double kSyncGood = 20, kSyncBearable = 100, kSyncStall = 500;  // milliseconds
constexpr int kYearSane = 2024;

void say(Findings& findings, Level level, std::string check, std::string message, std::string advice = {}) {
  findings.push_back({level, std::move(check), std::move(message), std::move(advice)});
}

bool has_word(std::string_view words, std::string_view word, char separator = ' ') {
  for (std::string_view each : split(words, separator))
    if (trim(each) == word) return true;
  return false;
}

std::string human(Bytes bytes) {
  char text[32];
  if (bytes.count >= int64_t(10) << 30) std::snprintf(text, sizeof text, "%lld GiB", static_cast<long long>(bytes.count >> 30));
  else if (bytes.count >= int64_t(1) << 30) std::snprintf(text, sizeof text, "%.1f GiB", double(bytes.count) / double(1 << 30));
  else std::snprintf(text, sizeof text, "%lld MiB", static_cast<long long>(bytes.count >> 20));
  return text;
}

std::string human_ms(double ms) {
  char text[32];
  std::snprintf(text, sizeof text, ms < 10 ? "%.1f ms" : "%.0f ms", ms);
  return text;
}

bool is_raspberry(const MachineInfo& info) { return info.model.starts_with("Raspberry Pi"); }

// ---- kernel ----

void check_settings(const MachineInfo& info, Findings& findings) {
  if (!info.settings_error.empty())
    say(findings, Level::fail, "settings", info.settings_error,
        "correct it, then: coracled --config " + info.settings.file + " --check-config");
}

void check_kernel(const MachineInfo& info, Findings& findings) {
  std::string what = "Linux " + info.kernel + " on " + (info.model.empty() ? info.architecture : info.model);
  bool old = info.kernel_major < kKernelMajor || (info.kernel_major == kKernelMajor && info.kernel_minor < kKernelMinor);
  if (old)
    say(findings, Level::fail, "kernel", what + " is too old: pods need 5.14 (cgroup.kill)",
        "upgrade the system: Debian 12 has 6.1, Debian 13 has 6.12");
  else say(findings, Level::ok, "kernel", what);
}

void check_cgroups(const MachineInfo& info, Findings& findings) {
  const CgroupInfo& cgroup = info.cgroup;
  if (cgroup.mounted_at.empty())
    return say(findings, Level::fail, "cgroups", "cgroup v2 is not mounted: no pod can start",
               boot_line_advice(cgroup, "add systemd.unified_cgroup_hierarchy=1 to") +
                   "\nor, until the next start: mount -t cgroup2 none /sys/fs/cgroup");
  say(findings, Level::ok, "cgroups", "cgroup v2 is at " + cgroup.mounted_at);
  std::vector<std::string> missing, held_by_v1;
  for (const char* controller : {"memory", "cpu", "pids", "io"}) {
    if (has_word(cgroup.controllers, controller)) continue;
    missing.emplace_back(controller);
    // cgroup v1 names the io controller blkio
    if (has_word(cgroup.v1_controllers, controller, ',') ||
        (controller == std::string_view("io") && has_word(cgroup.v1_controllers, "blkio", ',')))
      held_by_v1.emplace_back(controller);
  }
  if (missing.empty()) return say(findings, Level::ok, "limits", "limits of memory, cpu, pids and io are enforced");
  std::string message = "limits of " + join(missing, ", ") + " are not enforced (pods run without them)";
  if (!held_by_v1.empty())
    return say(findings, Level::warn, "limits", message + ": cgroup v1 holds " + join(held_by_v1, ", "),
               boot_line_advice(cgroup, "add systemd.unified_cgroup_hierarchy=1 to"));
  bool memory = missing.front() == "memory";
  if (memory && is_raspberry(info))
    return say(findings, Level::warn, "limits", message + ": Raspberry Pi OS switches memory off", raspberry_advice(cgroup));
  if (memory && has_word(cgroup.kernel_cmdline, "cgroup_disable=memory"))
    return say(findings, Level::warn, "limits", message + ": the kernel's command line says cgroup_disable=memory",
               boot_line_advice(cgroup, "take cgroup_disable=memory out of"));
  say(findings, Level::warn, "limits", message + ": the kernel does not offer them here",
      memory ? boot_line_advice(cgroup, "add cgroup_enable=memory to") + "\nor use a kernel with CONFIG_MEMCG"
             : "in a container or virtual machine, its host decides which it passes on");
}

void check_features(const MachineInfo& info, Findings& findings) {
  std::vector<std::string> work, untried;
  for (const Feature& feature : info.features) {
    if (feature.probe_result.outcome == ProbeResult::works) {
      work.push_back(feature.name);
    } else if (feature.probe_result.outcome == ProbeResult::not_tried) {
      untried.push_back(feature.name);
    } else {
      std::string advice =
          feature.module.empty()
              ? "the kernel was built or confined without it: use Debian's own kernel, or allow it to this container"
              : "sudo modprobe " + feature.module +
                    "; when there is no such module, install the kernel's own: its modules must fit 'uname -r'";
      say(findings, feature.required ? Level::fail : Level::warn, feature.name,
          feature.needed_for + " does not work: " + feature.probe_result.why, advice);
    }
  }
  if (!work.empty()) say(findings, Level::ok, "features", "tried and working: " + join(work, ", "));
  if (!untried.empty()) say(findings, Level::skip, "features", "not tried without root: " + join(untried, ", "));
}

// ---- disk ----

struct Judged {
  Level level;
  std::string why, advice;
};

Judged judge_file_system(const std::string& name) {
  struct Row {
    const char* name;
    Level level;
    const char* why;
  };
  static constexpr std::array rows = {
      Row{"tmpfs", Level::warn, "is memory: everything is gone after a reboot"},
      Row{"ramfs", Level::warn, "is memory: everything is gone after a reboot"},
      Row{"overlay", Level::warn, "is an overlay: the image's root cannot be one on top of it (a container?)"},
      Row{"vfat", Level::fail, "has neither owners nor links: images cannot be unpacked"},
      Row{"exfat", Level::fail, "has neither owners nor links: images cannot be unpacked"},
      Row{"ntfs", Level::fail, "does not know Linux' owners: images cannot be unpacked"},
      Row{"nfs", Level::fail, "is on the network: the store needs a local disk"},
      Row{"cifs", Level::fail, "is on the network: the store needs a local disk"},
      Row{"9p", Level::fail, "is another machine's: the store needs a local disk"},
      Row{"fuse", Level::warn, "is made by a program: what it promises about power cuts is unknown"},
  };
  for (const Row& row : rows)
    if (name == row.name)
      return {row.level, row.why, "put stateDir on ext4, xfs, f2fs or btrfs (config.yaml), or mount such a disk there"};
  return {Level::ok, "", ""};
}

void check_space(const MachineInfo& info, Findings& findings) {
  const StorageInfo& disk = info.disk;
  if (disk.total.count == 0)
    return say(findings, Level::skip, "disk space", "the data directory " + info.settings.state_dir + " cannot be looked at");
  int percent = int(disk.available.count * 100 / disk.total.count);
  std::string message =
      human(disk.available) + " of " + human(disk.total) + " free (" + std::to_string(percent) + " %) at " + disk.path;
  std::string advice = "free space: coraclectl image list, coraclectl image remove; journalctl --vacuum-size=50M; apt clean";
  if (disk.available < kDiskLeast) say(findings, Level::fail, "disk space", message, advice);
  else if (percent < 10) say(findings, Level::warn, "disk space", message + ": below 10 % the node tells DiskPressure", advice);
  else say(findings, Level::ok, "disk space", message);
  if (disk.inodes > 0 && disk.inodes_free < disk.inodes / 20)
    say(findings, Level::warn, "disk space",
        "only " + std::to_string(disk.inodes_free) + " of " + std::to_string(disk.inodes) + " inodes are free", advice);
}

void check_volume_sizes(const ProbeResult& quotas, const std::string& where, Findings& findings) {
  if (quotas.outcome == ProbeResult::fails)
    say(findings, Level::warn, "volume sizes", "nothing holds the volumes of claims to their sizes" + where + ": " + quotas.why,
        "ext4: tune2fs -O project,quota DEVICE while it is not mounted, and the mount option prjquota (of the root: "
        "rootflags=prjquota)\nor a disk of its own for volumes, XFS mounted with pquota: volumeDirs in config.yaml");
  else if (quotas.outcome == ProbeResult::not_tried)
    say(findings, Level::skip, "volume sizes", "not tried" + where + ": " + quotas.why);
  else say(findings, Level::ok, "volume sizes", "volumes of claims are held to their sizes" + where);
}

void check_volume_dir(const VolumeDirInfo& directory, Findings& findings) {
  const std::string& path = directory.path;
  if (!directory.error.empty())
    return say(findings, Level::warn, "volume directory", path + " cannot be used: " + directory.error,
               "no volume is created on it, and its volumes wait: repair it, or remove it from volumeDirs in config.yaml");
  if (directory.state != VolumeDirInfo::marked)
    return say(findings, Level::skip, "volume directory",
               path + (directory.state == VolumeDirInfo::absent ? " is not there" : " has no mark") +
                   ": no volume was created on it yet, or its disk is not mounted",
               "if it should have volumes, mount its disk: findmnt " + path + ", /etc/fstab");
  say(findings, Level::ok, "volume directory", path + " is there");
  check_volume_sizes(directory.quotas, " on " + path, findings);
}

void check_disk(const MachineInfo& info, Findings& findings) {
  const StorageInfo& disk = info.disk;
  if (!disk.file_system.empty()) {
    Judged judged = judge_file_system(disk.file_system);
    std::string message = disk.file_system + (disk.device.empty() ? "" : " on " + disk.device);
    say(findings, judged.level, "file system", judged.why.empty() ? message : message + " " + judged.why, judged.advice);
  }
  if (disk.overlay.outcome == ProbeResult::fails)
    say(findings, Level::fail, "overlay", "containers' roots cannot be made in " + disk.path + ": " + disk.overlay.why,
        "put stateDir on ext4, xfs, f2fs or btrfs; sudo modprobe overlay");
  else if (disk.overlay.outcome == ProbeResult::not_tried)
    say(findings, Level::skip, "overlay", "not tried: " + disk.overlay.why);
  else say(findings, Level::ok, "overlay", "containers' roots can be made in " + disk.path);
  if (disk.own_users.outcome == ProbeResult::fails)
    say(findings, Level::warn, "own users", "pods with hostUsers false cannot run: " + disk.own_users.why,
        "Linux 5.19 or later, stateDir on ext4, xfs, f2fs or btrfs, and user.max_user_namespaces above 0");
  else if (disk.own_users.outcome == ProbeResult::not_tried)
    say(findings, Level::skip, "own users", "not tried: " + disk.own_users.why);
  else say(findings, Level::ok, "own users", "pods with hostUsers false can run");
  if (info.volume_dirs.empty()) check_volume_sizes(disk.quotas, "", findings);
  for (const VolumeDirInfo& each : info.volume_dirs) check_volume_dir(each, findings);

  if (disk.sync_ms.empty()) return say(findings, Level::skip, "disk speed", "not measured: " + disk.measured.why);
  std::vector<double> sorted = disk.sync_ms;
  std::sort(sorted.begin(), sorted.end());
  double median = sorted[sorted.size() / 2], worst = sorted.back();
  std::string message = "4 KiB reach the disk in " + human_ms(median) + " (median of " + std::to_string(sorted.size()) +
                        "), at worst " + human_ms(worst);
  bool card = disk.device.find("mmcblk") != disk.device.npos;
  std::string advice = card ? "a card of class A2, or better an SSD on USB for " + info.settings.state_dir
                            : "look for what else writes (iotop), or move " + info.settings.state_dir + " to a faster disk";
  if (median > kSyncBearable)
    say(findings, Level::fail, "disk speed", message + ": each write to the API takes that long", advice);
  else if (median > kSyncGood || worst > kSyncStall)
    say(findings, Level::warn, "disk speed",
        message + (median > kSyncGood ? ": each write to the API takes that long" : ": now and then a write stalls"), advice);
  else say(findings, Level::ok, "disk speed", message);
}

// ---- clock, memory ----

void check_clock(const MachineInfo& info, Findings& findings) {
  const ClockInfo& clock = info.clock;
  std::string now = format_time(clock.now),
              battery = clock.has_battery_clock
                            ? ""
                            : "; there is no clock battery, so it is wrong after each start until the network told it";
  std::string advice =
      "let the network set it: sudo timedatectl set-ntp true (apt install systemd-timesyncd); without a network: sudo date -s "
      "'2026-01-31 12:00'";
  bool absurd = parse_number<int>(std::string_view(now).substr(0, 4)).value_or(0) < kYearSane ||
                clock.now + std::chrono::hours(24) < clock.built;
  if (absurd)
    return say(
        findings, Level::fail, "clock",
        "it is " + now + ", before this program existed: registries are not trusted, logs and events bear wrong times" + battery,
        advice);
  if (!clock.synchronised)
    return say(findings, Level::skip, "clock", "it is " + now + "; whether something keeps it right cannot be seen");
  if (*clock.synchronised) return say(findings, Level::ok, "clock", "it is " + now + ", kept right by the network" + battery);
  say(findings, Level::warn, "clock", "it is " + now + ", and nothing keeps it right" + battery, advice);
}

void check_memory(const MachineInfo& info, Findings& findings) {
  const MemoryInfo& memory = info.memory;
  std::string message = human(memory.available) + " of " + human(memory.total) + " available";
  if (memory.available < kMemoryLeast)
    say(findings, Level::warn, "memory", message + ": below 100 MiB the node tells MemoryPressure",
        "stop what is not needed (systemctl list-units --type=service), or give pods lower limits");
  else say(findings, Level::ok, "memory", message);
  std::vector<std::string> zram, card;
  for (const Swap& swap : memory.swaps) {
    if (swap.name.starts_with("/dev/zram")) zram.push_back(swap.name);
    else if (swap.name.find("mmcblk") != swap.name.npos ||
             (!swap.name.starts_with("/dev/") && info.disk.device.find("mmcblk") != std::string::npos))
      card.push_back(swap.name);
  }
  if (!card.empty()) {
    say(findings, Level::warn, "swap", join(card, ", ") + " swaps to a card, which wears it out and stalls everything",
        card.front() == "/var/swap"
            ? "sudo dphys-swapfile swapoff && sudo systemctl disable dphys-swapfile; compressed memory instead: sudo apt install "
              "zram-tools"
            : "sudo swapoff " + card.front() +
                  " and take it out of /etc/fstab; compressed memory instead: sudo apt install zram-tools");
  } else if (memory.swaps.empty() && memory.total < kMemorySmall) {
    say(findings, Level::warn, "swap", "none, with " + human(memory.total) + " of memory: what does not fit is killed",
        "compressed memory helps: sudo apt install zram-tools");
  } else if (!zram.empty()) {
    say(findings, Level::ok, "swap", "compressed memory (" + join(zram, ", ") + ")");
  } else {
    say(findings, Level::ok, "swap",
        memory.swaps.empty() ? "none, and none needed" : memory.swaps.front().name + ", " + human(memory.swaps.front().size));
  }
}

// ---- network ----

// How to let the pods' packets through a chain that drops them, as commands of the machine's firewall manager.
std::string pass_advice(const MachineInfo& info, const std::string& chain, bool forward) {
  const std::string& pods = info.settings.pod_cidr;
  const auto& managers = info.firewall.managers;
  if (managers.contains("ufw"))
    return forward ? "sudo ufw route allow from " + pods + "\nsudo ufw route allow to " + pods : "sudo ufw allow from " + pods;
  if (managers.contains("firewalld"))
    return "sudo firewall-cmd --permanent --zone=trusted --add-source=" + pods + " && sudo firewall-cmd --reload";
  auto words = split(chain, ' ');
  bool iptables = words.size() == 3 && words[0] == "ip" && words[1] == "filter" && (words[2] == "FORWARD" || words[2] == "INPUT");
  if (iptables && forward) {
    std::string to = managers.contains("docker") ? "DOCKER-USER" : "FORWARD";  // Docker keeps DOCKER-USER when it restarts
    return "sudo iptables -I " + to + " -s " + pods + " -j ACCEPT\nsudo iptables -I " + to + " -d " + pods + " -j ACCEPT" +
           (to == "FORWARD" ? "\nto keep them over a reboot: sudo apt install iptables-persistent" : "");
  }
  if (iptables)
    return "sudo iptables -I INPUT -s " + pods + " -j ACCEPT\nto keep it over a reboot: sudo apt install iptables-persistent";
  std::string advice = "sudo nft insert rule " + chain + " ip saddr " + pods + " accept";
  if (forward) advice += "\nsudo nft insert rule " + chain + " ip daddr " + pods + " accept";
  return advice + "\nand the same in /etc/nftables.conf, to keep it over a reboot";
}

bool legacy_blocks(const MachineInfo& info) {
  const std::string& rules = info.firewall.legacy_forward;
  if (rules.find("-P FORWARD DROP") == rules.npos) return false;
  for (std::string_view line : split(rules, '\n'))
    if (line.find("-j ACCEPT") != line.npos &&
        (line.find(info.settings.pod_cidr) != line.npos || line.find("coracle") != line.npos))
      return false;
  return true;
}

void check_firewall(const MachineInfo& info, Findings& findings) {
  const FirewallInfo& firewall = info.firewall;
  bool quiet = true;
  if (firewall.rules_read.outcome == ProbeResult::works) {
    for (const std::string& chain : blocking_chains(firewall.ruleset, "forward", info.settings.pod_cidr))
      quiet = false, say(findings, Level::fail, "firewall", "the chain " + chain + " drops what pods send and get",
                         pass_advice(info, chain, true));
    for (const std::string& chain : blocking_chains(firewall.ruleset, "input", info.settings.pod_cidr))
      quiet = false,
      say(findings, Level::warn, "firewall", "the chain " + chain + " keeps pods from this machine, its DNS among it",
          pass_advice(info, chain, false));
  }
  if (legacy_blocks(info)) {
    quiet = false;
    say(findings, Level::fail, "firewall", "the old iptables' FORWARD policy is DROP: it drops what pods send and get",
        "sudo iptables-legacy -I FORWARD -s " + info.settings.pod_cidr + " -j ACCEPT\nsudo iptables-legacy -I FORWARD -d " +
            info.settings.pod_cidr + " -j ACCEPT");
  } else if (firewall.legacy && firewall.legacy_forward.empty()) {
    say(findings, Level::skip, "firewall", "rules of the old iptables are in force, and cannot be read here");
  }
  if (firewall.rules_read.outcome != ProbeResult::works)
    say(findings, Level::skip, "firewall", "nftables' rules were not read: " + firewall.rules_read.why);
  else if (quiet) say(findings, Level::ok, "firewall", "no rule is in the pods' way");
  if (firewall.forwarding == 0) {
    if (info.daemon.running)
      say(findings, Level::fail, "forwarding",
          "net.ipv4.ip_forward is 0: pods reach nobody, though coracled switched it on; something switched it off again",
          "sudo sysctl -w net.ipv4.ip_forward=1, then find who does it: grep -rs ip_forward /etc/sysctl.conf /etc/sysctl.d "
          "/usr/lib/sysctl.d /run/sysctl.d");
    else say(findings, Level::ok, "forwarding", "off; coracled switches net.ipv4.ip_forward on when it starts");
  } else if (firewall.forwarding) {
    say(findings, Level::ok, "forwarding",
        "net.ipv4.ip_forward is on" +
            std::string(firewall.reverse_path == 1 ? "; rp_filter is strict, which pods can live with" : ""));
  }
}

void check_dns(const MachineInfo& info, Findings& findings) {
  if (!info.nameservers)
    return say(findings, Level::warn, "dns", "/etc/resolv.conf cannot be read: pods resolve only names of Services",
               "echo 'nameserver 9.9.9.9' | sudo tee /etc/resolv.conf, or let DHCP write it");
  if (info.nameservers->empty())
    return say(findings, Level::warn, "dns", "/etc/resolv.conf names no nameserver: pods resolve only names of Services",
               "add one: nameserver 192.168.1.1 (your router), or let DHCP write it");
  std::vector<std::string> reachable;
  for (const std::string& server : *info.nameservers)
    if (!server.starts_with("127.") && server != "::1") reachable.push_back(server);
  bool all_v6 = std::all_of(info.nameservers->begin(), info.nameservers->end(),
                            [](const std::string& server) { return server.find(':') != server.npos; });
  if (all_v6)
    return say(findings, Level::warn, "dns", "only IPv6 nameservers in /etc/resolv.conf: the pods' DNS asks IPv4 ones only",
               "add an IPv4 nameserver to /etc/resolv.conf");
  // Our own DNS server runs in the host's network, so it can reach a resolver on loopback. A pod that uses the machine's
  // resolv.conf cannot.
  if (reachable.empty())
    return say(findings, Level::ok, "dns",
               "asks " + info.nameservers->front() + " on this machine; only pods with dnsPolicy: Default cannot reach that one");
  say(findings, Level::ok, "dns", "asks " + join(*info.nameservers, ", "));
}

void check_ports(const MachineInfo& info, Findings& findings) {
  bool free = true;
  auto clash = [&](const Listener& listener, Level level, const std::string& what, const std::string& advice) {
    free = false;
    std::string who = listener.program.empty() ? "another program" : listener.program;
    say(findings, level, "ports",
        who + " listens on " + listener.protocol + " " + listener.address + ":" + std::to_string(listener.port) + ", " + what,
        advice);
  };
  for (const Listener& listener : info.listeners) {
    bool ours = listener.program == "coracled" || (listener.program.empty() && info.daemon.running);
    if (ours) continue;
    bool anywhere = listener.address == "0.0.0.0" || listener.address == "::";
    if (listener.port == info.settings.port && listener.protocol == "tcp")
      clash(listener, info.daemon.running ? Level::warn : Level::fail, "the API's port",
            "stop it, or set another port: in " + info.settings.file);
    if (listener.port == 53 && (anywhere || listener.address == info.settings.cluster_dns))
      clash(listener, Level::ok, "every address: the pods' DNS takes another port and nftables leads there", "");
  }
  if (free)
    say(findings, Level::ok, "ports",
        "the API's port " + std::to_string(info.settings.port) + (info.daemon.running ? " is coracled's" : " is free"));
}

void check_others(const MachineInfo& info, Findings& findings) {
  struct Row {
    const char* program;
    Level level;
    const char* message;
    const char* advice;
  };
  static constexpr std::array rows = {
      Row{"k3s-server", Level::fail, "k3s runs here: two Kubernetes want the same ports and rules",
          "sudo systemctl disable --now k3s (its pods stay; /usr/local/bin/k3s-killall.sh ends them)"},
      Row{"k3s-agent", Level::fail, "k3s runs here: two Kubernetes want the same ports and rules",
          "sudo systemctl disable --now k3s-agent"},
      Row{"k3s", Level::fail, "k3s runs here: two Kubernetes want the same ports and rules", "sudo systemctl disable --now k3s"},
      Row{"kubelet", Level::fail, "a kubelet runs here: two Kubernetes want the same ports and rules",
          "sudo systemctl disable --now kubelet; kubeadm reset"},
      Row{"kubelite", Level::fail, "MicroK8s runs here: two Kubernetes want the same ports and rules", "sudo microk8s stop"},
      Row{"k0s", Level::fail, "k0s runs here: two Kubernetes want the same ports and rules", "sudo k0s stop"},
      Row{"kube-apiserver", Level::fail, "another kube-apiserver runs here", "stop it"},
      Row{"dockerd", Level::ok,
          "Docker runs beside us: it can stay, but sets FORWARD to DROP (see firewall) and has images of its own", ""},
      Row{"crio", Level::ok, "CRI-O runs beside us, and is not needed", ""},
  };
  bool alone = true;
  for (const Row& row : rows) {
    if (!info.programs.contains(row.program)) continue;
    if (row.program == std::string_view("kube-apiserver") && info.programs.contains("kubelet")) continue;
    alone = false;
    say(findings, row.level, "other engines", row.message, row.advice);
  }
  if (alone) say(findings, Level::ok, "other engines", "no other Kubernetes or Docker runs here");
}

void check_name(const MachineInfo& info, Findings& findings) {
  if (!info.settings.node_name.empty()) return;
  std::string name = to_lower(info.host_name);
  bool good = !name.empty() && name.size() <= 253 &&
              name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") == name.npos && name.front() != '-' &&
              name.front() != '.' && name.back() != '-' && name.back() != '.';
  if (!good)
    say(findings, Level::fail, "name",
        "the host's name " + coracle::quoted(info.host_name) + " cannot name a node: letters, digits, '-' and '.'",
        "sudo hostnamectl set-hostname NAME, or set nodeName: in " + info.settings.file);
}

// ---- coracled ----

void check_daemon(const MachineInfo& info, Findings& findings) {
  const DaemonInfo& daemon = info.daemon;
  if (daemon.running && daemon.ready.outcome == ProbeResult::works) {
    say(findings, Level::ok, "coracled", "runs and is ready at " + daemon.server);
  } else if (daemon.running && daemon.ready.outcome == ProbeResult::fails) {
    say(findings, Level::fail, "coracled", "runs, but is not ready: " + daemon.ready.why,
        daemon.with_systemd ? "sudo journalctl -u coracled -n 50" : "look into its log: /var/log/coracled.log");
  } else if (daemon.running) {
    say(findings, Level::skip, "coracled", "runs; whether it is ready cannot be seen: " + daemon.ready.why);
  } else if (daemon.ready.outcome == ProbeResult::works) {
    say(findings, Level::ok, "coracled", "does not run here; the server " + daemon.server + " is ready");
  } else if (!daemon.installed) {
    say(findings, Level::warn, "coracled", "is not installed", "sudo systemd/install.sh");
  } else {
    say(findings, Level::fail, "coracled", "does not run",
        daemon.with_systemd ? "sudo systemctl enable --now coracled; when it ends again: sudo journalctl -u coracled -n 50"
                            : "sudo coracled --config " + info.settings.file);
  }
  if (daemon.installed)
    for (const std::string& program : daemon.missing)
      say(findings, Level::fail, "coracled",
          program + " is missing: " + (program == info.settings.pause_program ? "no pod can start" : "no image can be pulled"),
          "install again: sudo systemd/install.sh; or set pauseProgram: and imageProgram: in " + info.settings.file);
  for (const auto& one : daemon.conditions) {
    view::NodeCondition condition(one);
    std::string type(condition.type());
    bool bad = (condition.status() == "True") == (type != "Ready");
    if (bad)
      say(findings, type == "Ready" ? Level::fail : Level::warn, "node",
          daemon.node + ": " + type + ": " + std::string(condition.message()), "coraclectl describe node " + daemon.node);
  }
}

void check_store(const MachineInfo& info, Findings& findings) {
  const StoreInfo& store = info.store;
  if (store.checked.outcome != ProbeResult::works)
    return say(findings, Level::skip, "store", "not checked: " + store.checked.why);
  if (store.most.count > 0 && store.used.count >= store.most.count / 10 * kStoreTenthsMost) {
    say(findings, store.used.count >= store.most.count / 100 * 99 ? Level::fail : Level::warn, "store",
        "objects take " + human(store.used) + " of the " + human(store.most) +
            " that they may: beyond that, what is new is refused",
        "delete what is not needed: coraclectl store status tells how much is used; or raise storeMaxSize in " +
            info.settings.file + " and restart coracled");
  }
  if (store.findings.empty())
    return say(findings, Level::ok, "store", "all of " + info.settings.state_dir + "/state.db is as it was written");
  std::string more = store.findings.size() > 1 ? " (and " + std::to_string(store.findings.size() - 1) + " more)" : "";
  say(findings, Level::fail, "store",
      "its file is damaged: " + store.findings.front() + more + "; the daemon still has everything in memory",
      "sudo coraclectl backup FILE on another disk, before it is stopped; then sudo coraclectl restore FILE writes it anew\nthe "
      "card or the disk may be failing: replace it soon");
}

using Check = void (*)(const MachineInfo&, Findings&);
constexpr std::array<Check, 15> kChecks = {
    check_settings, check_kernel, check_cgroups, check_features, check_space, check_disk,   check_clock, check_memory,
    check_firewall, check_dns,    check_ports,   check_others,   check_name,  check_daemon, check_store,
};

// A rule that matches every packet and ends the chain: it has only {"counter": …}, {"log": …} and the verdict.
bool is_unconditional(const json::value& rule, std::string_view verdict) {
  bool found = false;
  for (const auto& part : get_array(rule, "expr")) {
    const json::object* object = part.if_object();
    if (!object) return false;
    if (object->contains(verdict)) found = true;
    else if (!object->contains("counter") && !object->contains("log") && !object->contains("comment")) return false;
  }
  return found;
}

std::string table_of(const json::value& part) {
  return std::string(get_string(part, "family")) + " " + std::string(get_string(part, "table"));
}

// The chains that a packet in `chain` may traverse: this chain and all that it jumps to. An accept rule in another base chain
// does not help here.
std::set<std::string> passed_chains(const json::value& ruleset, const std::string& table, const std::string& chain) {
  std::set<std::string> passed;
  for (std::vector<std::string> next = {chain}; !next.empty();) {
    std::string name = std::move(next.back());
    next.pop_back();
    if (!passed.insert(name).second) continue;
    for (const auto& entry : get_array(ruleset, "nftables")) {
      const json::value* rule = find(entry, "rule");
      if (!rule || table_of(*rule) != table || get_string(*rule, "chain") != name) continue;
      constexpr std::string_view kTarget = "\"target\":\"";  // target of a jump or goto, also inside a verdict map
      std::string text = to_text(*rule);
      for (size_t at = text.find(kTarget); at != text.npos; at = text.find(kTarget, at)) {
        at += kTarget.size();
        next.push_back(text.substr(at, text.find('"', at) - at));
      }
    }
  }
  return passed;
}

}  // namespace

std::string boot_line_advice(const CgroupInfo& cgroup, const std::string& change) {
  for (const BootSetting& setting : kBootSettings) {
    if (!cgroup.boot_settings.contains(setting.file)) continue;
    return change + " " + setting.place + ", then: " + (*setting.apply ? std::string(setting.apply) + " && " : "") +
           "sudo reboot";
  }
  return change + " the kernel's command line, where its boot loader has that, then: sudo reboot";
}

std::string raspberry_advice(const CgroupInfo& cgroup) {
  const std::string& file = cgroup.pi_cmdline_path;
  const std::string wanted = "cgroup_enable=memory cgroup_memory=1";  // the second parameter is for kernels before 2018
  if (file.empty()) return "append " + wanted + " to the single line of cmdline.txt on the boot partition, then: sudo reboot";
  std::string_view text = cgroup.pi_cmdline;
  std::string_view first = trim(text.substr(0, text.find('\n')));
  std::string_view rest = text.find('\n') == text.npos ? std::string_view() : trim(text.substr(text.find('\n')));
  if (has_word(first, "cgroup_disable=memory"))
    return "take cgroup_disable=memory out of " + file +
           ", and add what switches it on:\n  sudo sed -i '1 s/ *cgroup_disable=memory//; 1 s/$/ " + wanted + "/' " + file +
           "\n  sudo reboot";
  if (!has_word(first, "cgroup_enable=memory")) {
    if (cgroup.boot_settings.contains("/etc/default/raspi-firmware")) return boot_line_advice(cgroup, "add " + wanted + " to");
    std::string advice;
    if (rest.find("cgroup_enable=memory") != rest.npos)
      advice = file + " has it, but not on its first line, and only that one is read.\n";
    return advice + "append " + wanted + " to the single line of " + file + ":\n  sudo sed -i '1 s/ *$/ " + wanted + "/' " +
           file + "\n  sudo reboot";
  }
  if (!has_word(cgroup.kernel_cmdline, "cgroup_enable=memory"))
    return file + " is right, but this kernel was started before: sudo reboot";
  size_t off = cgroup.kernel_cmdline.rfind("cgroup_disable=memory"), on = cgroup.kernel_cmdline.rfind("cgroup_enable=memory");
  if (off != std::string::npos && off > on)
    return "something switches it off again behind that: look for cgroup_disable=memory in config.txt, its overlays and " + file;
  return file +
         " is right, but this kernel ignores it (6.12 did at first): sudo apt update && sudo apt full-upgrade && sudo reboot";
}

std::vector<std::string> blocking_chains(const json::value& ruleset, std::string_view hook, std::string_view pod_cidr) {
  struct Chain {
    std::string table, name;  // table: "ip filter"
    bool drops;
  };
  std::vector<Chain> chains;
  for (const auto& entry : get_array(ruleset, "nftables"))
    if (const json::value* chain = find(entry, "chain");
        chain && get_string(*chain, "hook") == hook && get_string(*chain, "type") == "filter")
      if (std::string table = table_of(*chain); table != "ip coracle" && !table.starts_with("ip6 "))  // pods have IPv4 addresses
        chains.push_back({table, std::string(get_string(*chain, "name")), get_string(*chain, "policy") == "drop"});
  std::string address = "\"addr\":\"" + std::string(pod_cidr.substr(0, pod_cidr.find('/'))) + "\"";
  std::vector<std::string> blocking;
  for (Chain& chain : chains) {
    bool passes = false, is_decided = false;  // is_decided: a rule matches every packet, later rules have no effect
    const std::set<std::string> passed = passed_chains(ruleset, chain.table, chain.name);
    for (const auto& entry : get_array(ruleset, "nftables")) {
      const json::value* rule = find(entry, "rule");
      if (!rule || table_of(*rule) != chain.table || !passed.contains(std::string(get_string(*rule, "chain")))) continue;
      bool own = get_string(*rule, "chain") == chain.name;
      if (own && is_decided) continue;
      if (own && is_unconditional(*rule, "accept")) passes = is_decided = true;
      if (own && (is_unconditional(*rule, "drop") || is_unconditional(*rule, "reject"))) chain.drops = is_decided = true;
      std::string text = to_text(*rule);
      if (text.find("\"accept\":") != text.npos && (text.find(address) != text.npos || text.find("\"coracle") != text.npos))
        passes = true;
    }
    if (chain.drops && !passes) blocking.push_back(chain.table + " " + chain.name);
  }
  return blocking;
}

std::vector<Finding> examine(const MachineInfo& info) {
  Findings findings;
  for (Check check : kChecks) check(info, findings);
  return findings;
}

const char* level_name(Level level) {
  switch (level) {
    case Level::ok: return "OK";
    case Level::warn: return "WARN";
    case Level::fail: return "FAIL";
    case Level::skip: return "SKIP";
  }
  return "";
}

bool healthy(const std::vector<Finding>& findings) {
  return std::none_of(findings.begin(), findings.end(), [](const Finding& finding) { return finding.level == Level::fail; });
}

std::string print_findings(const std::vector<Finding>& findings) {
  size_t width = 0;
  std::array<int, 4> counts{};
  for (const Finding& finding : findings) width = std::max(width, finding.check.size()), ++counts[size_t(finding.level)];
  std::string text;
  for (const Finding& finding : findings) {
    std::string level = level_name(finding.level);
    text += level + std::string(6 - level.size(), ' ') + finding.check + std::string(width + 2 - finding.check.size(), ' ') +
            finding.message + "\n";
    if (finding.advice.empty()) continue;
    for (std::string_view line : split(finding.advice, '\n'))
      text += std::string(6 + width + 2, ' ') + "> " + std::string(line) + "\n";
  }
  auto count = [&](Level level) { return std::to_string(counts[size_t(level)]); };
  text += "\n" + count(Level::ok) + " fine, " + count(Level::warn) + " to think about, " + count(Level::fail) + " to repair, " +
          count(Level::skip) + " not looked at\n";
  return text;
}

json::value findings_json(const std::vector<Finding>& findings) {
  json::array list;
  for (const Finding& finding : findings)
    list.push_back(json::object{{"level", level_name(finding.level)},
                                {"check", finding.check},
                                {"message", finding.message},
                                {"advice", finding.advice}});
  return json::object{{"healthy", healthy(findings)}, {"findings", std::move(list)}};
}

}  // namespace coracle::ctl
