// SPDX-License-Identifier: Apache-2.0
// The doctor's verdicts, each for a machine with the problem.
#include "ctl/doctor.h"

#include <gtest/gtest.h>

#include <functional>

namespace coracle::ctl {
namespace {

MachineInfo healthy_machine() {
  MachineInfo info;
  info.root = true;
  info.kernel = "6.12.25+deb13-arm64", info.kernel_major = 6, info.kernel_minor = 12, info.architecture = "aarch64";
  info.cgroup = {.mounted_at = "/sys/fs/cgroup",
                 .controllers = "cpuset cpu io memory pids",
                 .v1_controllers = "",
                 .kernel_cmdline = "quiet"};
  info.features = {{"veth", "pods' network", "veth", {ProbeResult::works, ""}}};
  info.disk = {.path = "/var/lib/coracle",
               .file_system = "ext4",
               .device = "/dev/sda1",
               .total = Bytes(int64_t(100) << 30),
               .available = Bytes(int64_t(50) << 30)};
  info.disk.inodes = 1000, info.disk.inodes_free = 900;
  info.disk.sync_ms = {1, 2, 3};
  info.disk.measured = info.disk.overlay = info.disk.own_users = info.disk.quotas = {ProbeResult::works, ""};
  info.clock = {.now = *parse_time("2026-05-01T10:00:00Z"),
                .built = *parse_time("2026-01-01T00:00:00Z"),
                .synchronised = true,
                .has_battery_clock = true};
  info.memory = {.total = Bytes(int64_t(4) << 30), .available = Bytes(int64_t(2) << 30), .swaps = {}};
  info.firewall.rules_read = {ProbeResult::works, ""};
  info.firewall.ruleset = *parse_json(R"({"nftables":[]})");
  info.firewall.forwarding = 1;
  info.nameservers = {{"192.168.1.1"}};
  info.host_name = "shop";
  info.programs = {"systemd", "coracled"};
  info.listeners = {{"tcp", "127.0.0.1", 6443, "coracled"}};
  info.daemon = {
      .installed = true,
      .missing = {},
      .running = true,
      .with_systemd = true,
      .ready = {ProbeResult::works, ""},
      .server = "https://127.0.0.1:6443",
      .conditions = parse_json(R"([{"type":"Ready","status":"True"},{"type":"DiskPressure","status":"False"}])")->as_array(),
      .node = "shop"};
  info.store.checked = {ProbeResult::works, ""};
  return info;
}

MachineInfo raspberry(std::string cmdline, std::string running = "quiet") {
  MachineInfo info = healthy_machine();
  info.model = "Raspberry Pi 4 Model B Rev 1.4";
  info.cgroup.controllers = "cpuset cpu io pids";
  info.cgroup.pi_cmdline_path = "/boot/firmware/cmdline.txt";
  info.cgroup.pi_cmdline = std::move(cmdline);
  info.cgroup.kernel_cmdline = std::move(running);
  return info;
}

json::value ruleset(std::string_view chain, std::string_view rules = "") {
  std::string text = R"({"nftables":[{"metainfo":{}},{"chain":)" + std::string(chain) + "}";
  if (!rules.empty()) text += "," + std::string(rules);
  auto parsed = parse_json(text + "]}");
  EXPECT_TRUE(parsed) << text;
  return *parsed;
}
constexpr const char* kDockerForward =
    R"({"family":"ip","table":"filter","name":"FORWARD","type":"filter","hook":"forward","prio":0,"policy":"drop"})";
constexpr const char* kUfwInput =
    R"({"family":"inet","table":"filter","name":"input","type":"filter","hook":"input","prio":0,"policy":"drop"})";

const Finding* finding(const std::vector<Finding>& findings, std::string_view check, Level level) {
  for (const auto& one : findings)
    if (one.check == check && one.level == level) return &one;
  return nullptr;
}

TEST(Doctor, finds_nothing_on_a_healthy_machine) {
  auto findings = examine(healthy_machine());
  for (const auto& one : findings) EXPECT_EQ(one.level, Level::ok) << one.check << ": " << one.message;
  EXPECT_TRUE(healthy(findings));
}

TEST(Doctor, names_each_trouble_and_what_to_do) {
  struct Row {
    const char* name;
    std::function<void(MachineInfo&)> trouble;
    const char* check;
    Level level;
    const char* message;
    const char* advice;
  };
  for (const Row& row : {
           Row{"an old kernel", [](MachineInfo& f) { f.kernel = "5.10.0", f.kernel_major = 5, f.kernel_minor = 10; }, "kernel",
               Level::fail, "too old", "Debian 12"},
           Row{"no cgroup v2", [](MachineInfo& f) { f.cgroup.mounted_at = ""; }, "cgroups", Level::fail, "not mounted",
               "systemd.unified_cgroup_hierarchy=1"},
           Row{"v1 holds controllers",
               [](MachineInfo& f) { f.cgroup.controllers = "", f.cgroup.v1_controllers = "cpu,cpuacct,memory,pids,blkio"; },
               "limits", Level::warn, "cgroup v1 holds memory, cpu, pids, io", "systemd.unified_cgroup_hierarchy=1"},
           Row{"memory switched off on a PC",
               [](MachineInfo& f) { f.cgroup.controllers = "cpu io pids", f.cgroup.kernel_cmdline = "ro cgroup_disable=memory"; },
               "limits", Level::warn, "cgroup_disable=memory", "take cgroup_disable=memory out of the kernel's command line"},
           Row{"io alone is missing", [](MachineInfo& f) { f.cgroup.controllers = "cpu memory pids"; }, "limits", Level::warn,
               "limits of io are not", "its host decides"},
           Row{"no veth",
               [](MachineInfo& f) {
                 f.features[0].probe_result = {ProbeResult::fails, "Operation not supported"};
               },
               "veth", Level::fail, "Operation not supported", "modprobe veth"},
           Row{"a full disk", [](MachineInfo& f) { f.disk.available = 100_MiB; }, "disk space", Level::fail, "100 MiB of 100 GiB",
               "image remove"},
           Row{"a nearly full disk", [](MachineInfo& f) { f.disk.available = Bytes(int64_t(5) << 30); }, "disk space",
               Level::warn, "DiskPressure", "free space"},
           Row{"no inodes", [](MachineInfo& f) { f.disk.inodes_free = 3; }, "disk space", Level::warn, "3 of 1000 inodes",
               "free space"},
           Row{"a slow card",
               [](MachineInfo& f) {
                 f.disk.device = "/dev/mmcblk0p2", f.disk.sync_ms = {30, 40, 50};
               },
               "disk speed", Level::warn, "40 ms (median of 3)", "class A2"},
           Row{"a dying card",
               [](MachineInfo& f) {
                 f.disk.sync_ms = {300, 400, 2000};
               },
               "disk speed", Level::fail, "at worst 2000 ms", "faster disk"},
           Row{"a card that stalls",
               [](MachineInfo& f) {
                 f.disk.sync_ms = {3, 3, 900};
               },
               "disk speed", Level::warn, "stalls", "iotop"},
           Row{"data in memory", [](MachineInfo& f) { f.disk.file_system = "tmpfs"; }, "file system", Level::warn,
               "gone after a reboot", "stateDir"},
           Row{"data on a stick", [](MachineInfo& f) { f.disk.file_system = "vfat"; }, "file system", Level::fail, "owners",
               "ext4"},
           Row{"no id maps",
               [](MachineInfo& f) {
                 f.disk.own_users = {ProbeResult::fails, "cannot be id-mapped"};
               },
               "own users", Level::warn, "cannot be id-mapped", "Linux 5.19"},
           Row{"no project quotas",
               [](MachineInfo& f) {
                 f.disk.quotas = {ProbeResult::fails, "the file system does not count by projects"};
               },
               "volume sizes", Level::warn, "does not count by projects", "prjquota"},
           Row{"a disk for volumes that is broken",
               [](MachineInfo& f) {
                 f.volume_dirs = {{VolumeDirInfo::marked, "/mnt/a", "", {ProbeResult::works, ""}},
                                  {VolumeDirInfo::absent, "/mnt/b", "Input/output error", {}}};
               },
               "volume directory", Level::warn, "/mnt/b cannot be used: Input/output error", "volumeDirs"},
           Row{"a disk for volumes that may be away",
               [](MachineInfo& f) {
                 f.volume_dirs = {{VolumeDirInfo::unmarked, "/mnt/b", "", {}}};
               },
               "volume directory", Level::skip, "/mnt/b has no mark", "findmnt /mnt/b"},
           Row{"a disk for volumes without quotas",
               [](MachineInfo& f) {
                 f.volume_dirs = {{VolumeDirInfo::marked, "/mnt/b", "", {ProbeResult::fails, "no projects"}}};
               },
               "volume sizes", Level::warn, "sizes on /mnt/b: no projects", "prjquota"},
           Row{"no overlay",
               [](MachineInfo& f) {
                 f.disk.overlay = {ProbeResult::fails, "Invalid argument"};
               },
               "overlay", Level::fail, "Invalid argument", "modprobe overlay"},
           Row{"the year 1970",
               [](MachineInfo& f) { f.clock.now = *parse_time("1970-01-01T00:01:00Z"), f.clock.has_battery_clock = false; },
               "clock", Level::fail, "no clock battery", "set-ntp true"},
           Row{"before the program", [](MachineInfo& f) { f.clock.now = *parse_time("2025-01-01T00:00:00Z"); }, "clock",
               Level::fail, "before this program existed", "date -s"},
           Row{"nobody keeps the clock", [](MachineInfo& f) { f.clock.synchronised = false; }, "clock", Level::warn,
               "nothing keeps it right", "set-ntp"},
           Row{"little memory", [](MachineInfo& f) { f.memory.available = 60_MiB; }, "memory", Level::warn, "MemoryPressure",
               "limits"},
           Row{"swap on a card",
               [](MachineInfo& f) {
                 f.disk.device = "/dev/mmcblk0p2", f.memory.swaps = {{"/var/swap", 100_MiB}};
               },
               "swap", Level::warn, "wears it out", "dphys-swapfile"},
           Row{"512 MiB and no swap", [](MachineInfo& f) { f.memory.total = 512_MiB; }, "swap", Level::warn, "none, with 512 MiB",
               "zram-tools"},
           Row{"forwarding switched off", [](MachineInfo& f) { f.firewall.forwarding = 0; }, "forwarding", Level::fail,
               "ip_forward is 0", "sysctl -w net.ipv4.ip_forward=1"},
           Row{"Docker's FORWARD",
               [](MachineInfo& f) { f.firewall.ruleset = ruleset(kDockerForward), f.firewall.managers = {"docker"}; }, "firewall",
               Level::fail, "ip filter FORWARD", "iptables -I DOCKER-USER -s 10.244.0.0/24 -j ACCEPT"},
           Row{"iptables' FORWARD", [](MachineInfo& f) { f.firewall.ruleset = ruleset(kDockerForward); }, "firewall", Level::fail,
               "ip filter FORWARD", "iptables -I FORWARD -s 10.244.0.0/24 -j ACCEPT"},
           Row{"ufw's input", [](MachineInfo& f) { f.firewall.ruleset = ruleset(kUfwInput), f.firewall.managers = {"ufw"}; },
               "firewall", Level::warn, "its DNS", "ufw allow from 10.244.0.0/24"},
           Row{"firewalld",
               [](MachineInfo& f) { f.firewall.ruleset = ruleset(kDockerForward), f.firewall.managers = {"firewalld"}; },
               "firewall", Level::fail, "drops", "--zone=trusted --add-source=10.244.0.0/24"},
           Row{"old iptables", [](MachineInfo& f) { f.firewall.legacy = true, f.firewall.legacy_forward = "-P FORWARD DROP\n"; },
               "firewall", Level::fail, "DROP", "iptables-legacy -I FORWARD"},
           Row{"no nameserver", [](MachineInfo& f) { f.nameservers = std::vector<std::string>(); }, "dns", Level::warn,
               "names no nameserver", "nameserver"},
           Row{"no resolv.conf", [](MachineInfo& f) { f.nameservers.reset(); }, "dns", Level::warn, "cannot be read",
               "resolv.conf"},
           Row{"k3s", [](MachineInfo& f) { f.programs.insert("k3s-server"); }, "other engines", Level::fail, "k3s",
               "disable --now k3s"},
           Row{"the port is taken",
               [](MachineInfo& f) {
                 f.daemon.running = false, f.listeners = {{"tcp", "0.0.0.0", 6443, "kube-apiserver"}};
               },
               "ports", Level::fail, "kube-apiserver listens on tcp 0.0.0.0:6443", "another port"},
           Row{"a name that is none", [](MachineInfo& f) { f.host_name = "my_pi"; }, "name", Level::fail, "\"my_pi\"",
               "set-hostname"},
           Row{"not ready",
               [](MachineInfo& f) {
                 f.daemon.ready = {ProbeResult::fails, "timed out"};
               },
               "coracled", Level::fail, "timed out", "journalctl -u coracled"},
           Row{"not running",
               [](MachineInfo& f) {
                 f.daemon.running = false, f.daemon.ready = {ProbeResult::fails, "refused"};
               },
               "coracled", Level::fail, "does not run", "enable --now"},
           Row{"not installed", [](MachineInfo& f) { f.daemon = {}; }, "coracled", Level::warn, "not installed", "install.sh"},
           Row{"no pause", [](MachineInfo& f) { f.daemon.missing = {f.settings.pause_program}; }, "coracled", Level::fail,
               "coracle-pause is missing: no pod can start", "install"},
           Row{"no image worker", [](MachineInfo& f) { f.daemon.missing = {f.settings.image_program}; }, "coracled", Level::fail,
               "coracle-image is missing: no image", "install"},
           Row{"the node complains",
               [](MachineInfo& f) {
                 f.daemon.conditions =
                     parse_json(R"([{"type":"DiskPressure","status":"True","message":"disk is full"}])")->as_array();
               },
               "node", Level::warn, "DiskPressure: disk is full", "describe node shop"},
           Row{"the settings", [](MachineInfo& f) { f.settings_error = "line 3: tab"; }, "settings", Level::fail, "line 3",
               "--check-config"},
       }) {
    MachineInfo info = healthy_machine();
    row.trouble(info);
    auto findings = examine(info);
    const Finding* found = finding(findings, row.check, row.level);
    ASSERT_TRUE(found) << row.name << "\n" << print_findings(findings);
    EXPECT_NE(found->message.find(row.message), std::string::npos) << row.name << ": " << found->message;
    EXPECT_NE(found->advice.find(row.advice), std::string::npos) << row.name << ": " << found->advice;
    EXPECT_EQ(healthy(findings), row.level != Level::fail) << row.name;
  }
}

TEST(Doctor, says_what_it_could_not_look_at) {
  MachineInfo info = healthy_machine();
  info.features[0].probe_result = {ProbeResult::not_tried, "needs root"};
  info.disk.overlay = info.disk.own_users = info.disk.measured = info.disk.quotas = {ProbeResult::not_tried, "needs root"};
  info.disk.sync_ms.clear();
  info.firewall.rules_read = {ProbeResult::not_tried, "needs root"};
  info.daemon.ready = {ProbeResult::not_tried, "no kubeconfig"};
  auto findings = examine(info);
  for (const char* check : {"features", "overlay", "own users", "volume sizes", "disk speed", "firewall", "coracled"})
    EXPECT_TRUE(finding(findings, check, Level::skip)) << check;
  EXPECT_TRUE(healthy(findings));
}

TEST(Doctor, gives_the_exact_edit_of_a_raspberry_pi) {
  struct Row {
    const char* cmdline;
    const char* running;
    const char* want;
  };
  for (const Row& row : {
           Row{"console=tty1 rootwait\n", "console=tty1",
               "sudo sed -i '1 s/ *$/ cgroup_enable=memory cgroup_memory=1/' /boot/firmware/cmdline.txt"},
           Row{"console=tty1\ncgroup_enable=memory\n", "console=tty1", "not on its first line"},
           Row{"console=tty1 cgroup_disable=memory rootwait\n", "x", "s/ *cgroup_disable=memory//"},
           Row{"console=tty1 cgroup_enable=memory cgroup_memory=1\n", "console=tty1", "started before: sudo reboot"},
           Row{"console=tty1 cgroup_enable=memory\n", "cgroup_enable=memory console=tty1 cgroup_disable=memory",
               "switches it off again"},
           Row{"console=tty1 cgroup_enable=memory\n", "cgroup_disable=memory console=tty1 cgroup_enable=memory", "full-upgrade"},
       }) {
    auto findings = examine(raspberry(row.cmdline, row.running));
    const Finding* found = finding(findings, "limits", Level::warn);
    ASSERT_TRUE(found) << row.cmdline;
    EXPECT_NE(found->advice.find(row.want), std::string::npos) << row.cmdline << " gives " << found->advice;
  }
  CgroupInfo nowhere;
  EXPECT_NE(raspberry_advice(nowhere).find("cgroup_enable=memory"), std::string::npos);
}

TEST(Doctor, changes_the_kernel_s_line_where_this_board_has_it) {
  struct Row {
    std::set<std::string> there;
    const char* want;
  };
  for (const Row& row : {
           Row{{"/etc/default/grub", "/etc/kernel/cmdline"},
               "add x to GRUB_CMDLINE_LINUX in /etc/default/grub, then: sudo update-grub && sudo reboot"},
           Row{{"/boot/armbianEnv.txt"}, "add x to extraargs= in /boot/armbianEnv.txt, then: sudo reboot"},
           Row{{"/etc/default/u-boot", "/boot/extlinux/extlinux.conf"},
               "add x to U_BOOT_PARAMETERS in /etc/default/u-boot, then: sudo u-boot-update && sudo reboot"},
           Row{{"/boot/extlinux/extlinux.conf"}, "add x to each line append of /boot/extlinux/extlinux.conf, then: sudo reboot"},
           Row{{"/etc/kernel/cmdline"},
               "add x to the line of /etc/kernel/cmdline, then: sudo update-initramfs -u && sudo reboot"},
           Row{{}, "add x to the kernel's command line, where its boot loader has that, then: sudo reboot"},
       }) {
    CgroupInfo cgroup;
    cgroup.boot_settings = row.there;
    EXPECT_EQ(boot_line_advice(cgroup, "add x to"), row.want);
  }
  // Debian's package for the board makes cmdline.txt anew with each kernel.
  MachineInfo info = raspberry("console=tty1 rootwait\n");
  info.cgroup.boot_settings = {"/etc/default/raspi-firmware"};
  const Finding* found = nullptr;
  auto findings = examine(info);
  ASSERT_TRUE(found = finding(findings, "limits", Level::warn));
  EXPECT_EQ(found->advice,
            "add cgroup_enable=memory cgroup_memory=1 to the single line of /etc/default/raspi-extra-cmdline, then: "
            "sudo update-initramfs -u && sudo reboot");
}

TEST(Doctor, knows_when_a_firewall_lets_pods_through) {
  auto rule = [](std::string_view chain, std::string_view expr) {
    return R"({"rule":{"family":"ip","table":"filter","chain":")" + std::string(chain) + R"(","expr":)" + std::string(expr) +
           "}}";
  };
  constexpr const char* kOpen =
      R"({"family":"ip","table":"filter","name":"FORWARD","type":"filter","hook":"forward","policy":"accept"})";
  std::string by_address = rule(
      "FORWARD",
      R"([{"match":{"op":"==","left":{"payload":{"protocol":"ip","field":"saddr"}},"right":{"prefix":{"addr":"10.244.0.0","len":24}}}},{"accept":null}])");
  std::string by_link =
      rule("ufw-user", R"([{"match":{"op":"==","left":{"meta":{"key":"iifname"}},"right":"coracle*"}},{"accept":null}])");
  std::string to_user = rule("FORWARD", R"([{"jump":{"target":"ufw-user"}}])");
  std::string other =
      rule("FORWARD", R"([{"match":{"op":"==","left":{"meta":{"key":"iifname"}},"right":"docker0"}},{"accept":null}])");
  std::string reject_rest = rule("FORWARD", R"([{"counter":{"packets":0,"bytes":0}},{"reject":{"type":"icmpx"}}])");
  std::string accept_all = rule("FORWARD", R"([{"accept":null}])");
  std::vector<std::string> blocked = {"ip filter FORWARD"}, none;
  EXPECT_EQ(blocking_chains(ruleset(kDockerForward), "forward", "10.244.0.0/24"), blocked);
  EXPECT_EQ(blocking_chains(ruleset(kDockerForward, other), "forward", "10.244.0.0/24"), blocked);
  EXPECT_EQ(blocking_chains(ruleset(kDockerForward, by_address), "forward", "10.244.0.0/24"), none);
  EXPECT_EQ(blocking_chains(ruleset(kDockerForward, by_address), "forward", "10.9.0.0/24"), blocked);
  EXPECT_EQ(blocking_chains(ruleset(kDockerForward, to_user + "," + by_link), "forward", "10.244.0.0/24"), none);
  EXPECT_EQ(blocking_chains(ruleset(kDockerForward, by_link), "forward", "10.244.0.0/24"),
            blocked);  // in a chain that nothing jumps to
  EXPECT_EQ(blocking_chains(ruleset(kDockerForward), "input", "10.244.0.0/24"), none);
  constexpr const char* kInput =
      R"({"family":"ip","table":"filter","name":"INPUT","type":"filter","hook":"input","policy":"drop"})";
  EXPECT_EQ(blocking_chains(ruleset(kInput, by_address), "input", "10.244.0.0/24"), std::vector<std::string>{"ip filter INPUT"});
  EXPECT_EQ(blocking_chains(ruleset(kOpen), "forward", "10.244.0.0/24"), none);
  EXPECT_EQ(blocking_chains(ruleset(kOpen, reject_rest), "forward", "10.244.0.0/24"), blocked);
  EXPECT_EQ(blocking_chains(ruleset(kOpen, accept_all + "," + reject_rest), "forward", "10.244.0.0/24"), none);
  EXPECT_EQ(blocking_chains(ruleset(kOpen, reject_rest + "," + accept_all), "forward", "10.244.0.0/24"), blocked);
  EXPECT_EQ(blocking_chains(ruleset(kOpen, reject_rest + "," + by_address), "forward", "10.244.0.0/24"), blocked);
  EXPECT_EQ(blocking_chains(ruleset(kDockerForward, accept_all), "forward", "10.244.0.0/24"), none) << "its policy never comes";
  EXPECT_EQ(blocking_chains(ruleset(kDockerForward, reject_rest + "," + accept_all), "forward", "10.244.0.0/24"), blocked);
  EXPECT_EQ(
      blocking_chains(ruleset(R"({"family":"ip","table":"coracle","name":"f","type":"filter","hook":"forward","policy":"drop"})"),
                      "forward", "10.244.0.0/24"),
      none);
  EXPECT_EQ(blocking_chains(
                ruleset(R"({"family":"ip6","table":"filter","name":"FORWARD","type":"filter","hook":"forward","policy":"drop"})"),
                "forward", "10.244.0.0/24"),
            none);
}

TEST(Doctor, reads_what_the_machine_says) {
  EXPECT_EQ(parse_nameservers("# x\nnameserver 1.1.1.1 # a\n nameserver\t9.9.9.9\noptions rotate\nnameserver\n"),
            (std::vector<std::string>{"1.1.1.1", "9.9.9.9"}));
  auto swaps = parse_swaps(
      "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/zram0                              partition\t1024\t\t0\t\t100\n");
  ASSERT_EQ(swaps.size(), 1u);
  EXPECT_EQ(swaps[0].name, "/dev/zram0");
  EXPECT_EQ(swaps[0].size, 1_MiB);
  auto listeners = parse_listeners(
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
      "   0: 0100007F:192B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1\n"
      "   1: 0100007F:192B 0100007F:ABCD 01 00000000:00000000 00:00000000 00000000     0        0 4712 1\n",
      "tcp", false);
  ASSERT_EQ(listeners.size(), 1u);
  EXPECT_EQ(listeners[0].first.address, "127.0.0.1");
  EXPECT_EQ(listeners[0].first.port, 6443);
  EXPECT_EQ(listeners[0].second, 4711u);
  std::string mounts =
      "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:2 / /var rw - f2fs /dev/mmcblk0p2 rw\n3 1 0:9 / /va rw - tmpfs tmpfs rw\n4 1 "
      "0:8 / /nfs rw - nfs4 host:/x rw\n";
  EXPECT_EQ(device_of(mounts, "/var/lib"), (std::pair<std::string, std::string>{"/dev/mmcblk0p2", "f2fs"}));
  EXPECT_EQ(device_of(mounts, "/etc"), (std::pair<std::string, std::string>{"/dev/sda1", "ext4"}));
  EXPECT_EQ(device_of(mounts, "/va/x").second, "tmpfs");
  EXPECT_EQ(device_of(mounts, "/nfs").second, "nfs");
  auto settings = parse_settings("stateDir: /data\nport: 7443\npodCIDR: 10.9.0.0/16\n", {});
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->state_dir, "/data");
  EXPECT_EQ(settings->port, 7443);
  EXPECT_EQ(settings->pod_cidr, "10.9.0.0/16");
  EXPECT_EQ(settings->cluster_dns, "10.96.0.10");
  EXPECT_EQ(MUST(parse_settings("volumeDirs: [/mnt/a, /mnt/b]\n", {})).volume_dirs,
            (std::vector<std::string>{"/mnt/a", "/mnt/b"}));
  EXPECT_FALSE(parse_settings("port: 70000\n", {}));
  EXPECT_FALSE(parse_settings("a:\n\t- b\n", {}));
  EXPECT_TRUE(parse_settings("", {}));
}

TEST(Doctor, prints_a_line_each_and_json) {
  std::vector<Finding> findings = {{Level::ok, "kernel", "fine", ""}, {Level::fail, "firewall", "drops", "do a\ndo b"}};
  EXPECT_EQ(print_findings(findings),
            "OK    kernel    fine\n"
            "FAIL  firewall  drops\n"
            "                > do a\n"
            "                > do b\n"
            "\n1 fine, 0 to think about, 1 to repair, 0 not looked at\n");
  json::value object = findings_json(findings);
  EXPECT_FALSE(get_bool(object, "healthy", true));
  EXPECT_EQ(get_string(get_array(object, "findings")[1], "level"), "FAIL");
  EXPECT_EQ(get_string(get_array(object, "findings")[1], "advice"), "do a\ndo b");
}

TEST(Doctor, tells_when_the_store_is_nearly_full) {
  MachineInfo info = healthy_machine();
  info.store.most = 100_MiB;
  info.store.used = 79_MiB;
  EXPECT_FALSE(finding(examine(info), "store", Level::warn));
  info.store.used = 80_MiB;
  const auto nearly = examine(info);
  const Finding* warned = finding(nearly, "store", Level::warn);
  ASSERT_TRUE(warned);
  EXPECT_NE(warned->advice.find("storeMaxSize"), std::string::npos);
  info.store.used = 100_MiB;
  EXPECT_TRUE(finding(examine(info), "store", Level::fail));
}

TEST(Doctor, tells_of_a_damaged_store_before_it_is_needed) {
  MachineInfo info = healthy_machine();
  info.store.findings = {"configmaps default/a is not what was written", "pods default/b is missing"};
  const auto findings = examine(info);
  const Finding* found = finding(findings, "store", Level::fail);
  ASSERT_TRUE(found);
  EXPECT_NE(found->message.find("configmaps default/a is not what was written (and 1 more)"), std::string::npos);
  EXPECT_NE(found->advice.find("coraclectl backup"), std::string::npos);
  info.store = {{ProbeResult::not_tried, "coracled does not answer"}, {}};
  EXPECT_TRUE(finding(examine(info), "store", Level::skip));
}

}  // namespace
}  // namespace coracle::ctl
