// SPDX-License-Identifier: Apache-2.0
// The data that doctor collects: kernel files, probes, measurements and two requests to the API. See doctor.h. What cannot be
// read is recorded as unknown, never guessed. Everything that a probe creates is removed.
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "ctl/command.h"
#include "ctl/doctor.h"
#include "ctl/escape.h"
#include "ctl/nft.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "runtime/sys/probe.h"
#include "runtime/sys/process.h"
#include "runtime/sys/project_quota.h"
#include "runtime/sys/run.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/yaml.h"

namespace coracle::ctl {
namespace {

constexpr size_t kSyncs = 40;                 // number of fdatasync calls to measure; fewer on a slow disk
constexpr std::chrono::seconds kSyncSpan{4};  // upper limit of the time for them
constexpr const char* kApiTimeout = "5s";

std::string read_text(const std::string& path) { return sys::read_file(path, 4 << 20).value_or(""); }
std::string read_first_line(const std::string& path) {
  std::string text = read_text(path);
  return std::string(trim(text.substr(0, text.find_first_of("\n\0"))));
}
std::optional<int> read_number(const std::string& path) { return parse_number<int>(read_first_line(path)); }

template <typename T>
ProbeResult probe_result(const Result<T>& result, bool root) {
  if (result) return {ProbeResult::works, {}};
  if (!root && result.error().code() == Code::forbidden) return {ProbeResult::not_tried, "needs root (sudo coraclectl doctor)"};
  return {ProbeResult::fails, result.error().text()};
}

// ---- kernel ----

CgroupInfo read_cgroups() {
  CgroupInfo info;
  std::string mounts = read_text("/proc/self/mountinfo");
  for (std::string_view line : split(mounts, '\n')) {
    auto words = split(line, ' ');
    if (line.find(" - cgroup2 ") == line.npos || words.size() < 6) continue;
    info.mounted_at = words[4];
    break;
  }
  if (!info.mounted_at.empty()) info.controllers = read_first_line(info.mounted_at + "/cgroup.controllers");
  std::string own = read_text("/proc/self/cgroup");
  for (std::string_view line : split(own, '\n')) {
    auto parts = split(line, ':');  // "5:memory:/path"; the line of v2 names no controller
    if (parts.size() >= 3 && !parts[1].empty() && !parts[1].starts_with("name="))
      info.v1_controllers.append(info.v1_controllers.empty() ? "" : ",").append(parts[1]);
  }
  info.kernel_cmdline = read_first_line("/proc/cmdline");
  for (const char* path : {"/boot/firmware/cmdline.txt", "/boot/cmdline.txt"}) {
    if (!sys::exists(path)) continue;
    info.pi_cmdline_path = path;
    info.pi_cmdline = read_text(path);
    break;
  }
  for (const BootSetting& setting : kBootSettings)
    if (sys::exists(setting.file)) info.boot_settings.emplace(setting.file);
  return info;
}

Result<void> try_clone_into_cgroup(const CgroupInfo& cgroup) {
  std::string own = read_text("/proc/self/cgroup"), path;
  for (std::string_view line : split(own, '\n'))
    if (line.starts_with("0::")) path = line.substr(3);
  Fd directory = TRY(sys::open_directory(cgroup.mounted_at + path));
  return sys::try_clone(0, &directory);
}

std::vector<Feature> try_features(const CgroupInfo& cgroup, bool root) {
  std::vector<Feature> features;
  auto add = [&](std::string name, std::string needed_for, std::string module, const auto& result, bool required = true) {
    features.push_back({std::move(name), std::move(needed_for), std::move(module), probe_result(result, root), required});
  };
  auto if_root = [&](const auto& probe) -> Result<void> {
    if (!root) return Error(Code::forbidden, "needs root");
    return probe();
  };
  add("clone3", "starting processes", "", sys::try_clone(0));
  add("pidfd", "waiting for processes", "", sys::open_pidfd(::getpid()));
  if (!cgroup.mounted_at.empty())
    add("clone into cgroup", "starting processes in their cgroup", "", if_root([&] { return try_clone_into_cgroup(cgroup); }));
  add("openat2", "safe paths in containers", "", [] {
    auto top = sys::open_directory("/");
    return top ? sys::open_in(*top, "proc", O_PATH) : std::move(top);
  }());
  add("namespaces", "pods", "",
      if_root([] { return sys::try_clone(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET); }));
  add("user namespaces", "programs that make them in their containers", "", sys::try_clone(CLONE_NEWUSER), false);
  add("mount API", "containers' mounts", "", if_root(sys::try_mount_api));
  add("seccomp", "confinement of containers", "", sys::try_seccomp());
  add("device filter", "confinement of devices (BPF)", "", if_root(sys::try_device_filter));
  add("veth", "pods' network", "veth", if_root([] { return sys::try_link("veth"); }));
  add("bridge", "pods' network", "bridge", if_root([] { return sys::try_link("bridge"); }));
  add("nftables", "Services (NAT by nftables)", "nft_chain_nat", if_root(try_nftables));
  return features;
}

// ---- disk ----

std::string nearest_directory(std::string path) {
  std::error_code ignored;
  while (path.size() > 1 && !std::filesystem::is_directory(path, ignored)) path = std::filesystem::path(path).parent_path();
  return path.empty() ? "/" : path;
}

Result<std::vector<double>> measure_syncs(const std::string& directory) {
  std::string path = directory + "/.coracle-speed-XXXXXX";
  Fd file(::mkostemp(path.data(), O_CLOEXEC));
  if (!file) return Error::from_errno("write to " + directory);
  Scope remove([&] { (void)sys::unlink(path); });
  std::string page(4096, 'x');
  std::vector<double> spans;
  auto start = std::chrono::steady_clock::now();
  while (spans.size() < kSyncs && std::chrono::steady_clock::now() - start < kSyncSpan) {
    auto before = std::chrono::steady_clock::now();
    TRY(sys::write_all(file, page));
    TRY(sys::sync_data(file));
    spans.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - before).count());
  }
  return spans;
}

StorageInfo read_disk(const Settings& settings, bool root) {
  StorageInfo info;
  info.path = nearest_directory(settings.state_dir);
  auto directory = sys::open_directory(info.path);
  if (!directory) {
    info.measured = info.overlay = info.own_users = info.quotas = probe_result(directory, root);
    return info;
  }
  if (auto usage = sys::disk_usage(*directory)) {
    info.total = usage->total, info.available = usage->available;
    info.inodes = usage->inodes, info.inodes_free = usage->inodes_free;
  }
  std::tie(info.device, info.file_system) = device_of(read_text("/proc/self/mountinfo"), info.path);
  if (!root) {
    info.measured = info.overlay = info.own_users = info.quotas = {ProbeResult::not_tried, "needs root (sudo coraclectl doctor)"};
    return info;
  }
  auto spans = measure_syncs(info.path);
  info.measured = probe_result(spans, root);
  if (spans) info.sync_ms = std::move(*spans);
  info.overlay = probe_result(sys::try_overlay(info.path), root);
  info.own_users = info.overlay.outcome == ProbeResult::works
                       ? probe_result(sys::try_own_users(info.path), root)
                       : ProbeResult{ProbeResult::not_tried, "containers' roots cannot be made at all"};
  info.quotas = probe_result(sys::project_use(*directory, 0), root);
  return info;
}

VolumeDirInfo read_volume_dir(const std::string& path, bool root) {
  VolumeDirInfo info{.path = path};
  auto directory = sys::open(path, O_PATH | O_DIRECTORY);  // others may not read it
  if (!directory) {
    if (directory.error().code() != Code::not_found) info.error = directory.error().text();
    return info;
  }
  info.state = sys::stat_at(*directory, ".coracle") ? VolumeDirInfo::marked : VolumeDirInfo::unmarked;
  auto opened = sys::open_directory(path);
  info.quotas = opened ? probe_result(sys::project_use(*opened, 0), root) : probe_result(opened, root);
  return info;
}

// ---- clock, memory ----

ClockInfo read_clock() {
  ClockInfo info;
  info.now = system_clock().now();
  Result<Fd> self = sys::open("/proc/self/exe", O_RDONLY);
  if (self)
    if (auto about = sys::stat(*self)) info.built = WallTime(std::chrono::seconds(about->st_mtim.tv_sec));
  if (auto kept = sys::clock_is_synchronised()) info.synchronised = *kept;
  auto clocks = sys::list("/sys/class/rtc");
  info.has_battery_clock = clocks && !clocks->empty();
  return info;
}

MemoryInfo read_memory() {
  MemoryInfo info;
  std::string text = read_text("/proc/meminfo");
  for (std::string_view line : split(text, '\n')) {
    std::string_view value = trim(line.substr(std::min(line.size(), line.find(':') + 1)));
    Bytes bytes(parse_number<int64_t>(value.substr(0, value.find(' '))).value_or(0) << 10);
    if (line.starts_with("MemTotal:")) info.total = bytes;
    if (line.starts_with("MemAvailable:")) info.available = bytes;
  }
  info.swaps = parse_swaps(read_text("/proc/swaps"));
  return info;
}

// ---- network ----

FirewallInfo read_firewall(bool root, const std::set<std::string>& programs) {
  FirewallInfo info;
  if (root) {
    auto rules = list_ruleset();
    info.rules_read = probe_result(rules, root);
    if (rules) info.ruleset = std::move(*rules);
    std::string tables = read_text("/proc/net/ip_tables_names");
    info.legacy = tables.find("filter") != tables.npos;
    if (info.legacy)
      if (auto said = sys::output_of({"iptables-legacy", "-S", "FORWARD"}, sys::Complaints::dropped))
        info.legacy_forward = std::move(*said);
  } else {
    info.rules_read = {ProbeResult::not_tried, "needs root (sudo coraclectl doctor)"};
  }
  if (read_text("/etc/ufw/ufw.conf").find("ENABLED=yes") != std::string::npos) info.managers.insert("ufw");
  if (programs.contains("firewalld")) info.managers.insert("firewalld");
  if (programs.contains("dockerd")) info.managers.insert("docker");
  info.forwarding = read_number("/proc/sys/net/ipv4/ip_forward");
  info.reverse_path = read_number("/proc/sys/net/ipv4/conf/all/rp_filter");
  return info;
}

// Finds the program that owns each socket, by the socket's inode. Only root can read the descriptors of other users' processes.
std::map<uint64_t, std::string> socket_owners(const std::set<uint64_t>& wanted) {
  std::map<uint64_t, std::string> owners;
  if (wanted.empty()) return owners;
  for (const auto& process : sys::list("/proc").value_or({})) {
    if (!parse_number<int>(process.name)) continue;
    std::string home = "/proc/" + process.name;
    auto descriptors = sys::open_directory(home + "/fd");
    if (!descriptors) continue;
    for (const auto& entry : sys::list(*descriptors).value_or({})) {
      std::string target = sys::read_link_at(*descriptors, entry.name).value_or("");  // "socket:[12345]"
      if (!target.starts_with("socket:[")) continue;
      auto inode = parse_number<uint64_t>(std::string_view(target).substr(8, target.size() - 9));
      if (inode && wanted.contains(*inode)) owners[*inode] = read_first_line(home + "/comm");
    }
  }
  return owners;
}

std::vector<Listener> read_listeners(uint16_t api_port) {
  std::vector<std::pair<Listener, uint64_t>> found;
  for (const char* protocol : {"tcp", "udp"})
    for (bool ipv6 : {false, true})
      for (auto& one : parse_listeners(read_text(std::string("/proc/net/") + protocol + (ipv6 ? "6" : "")), protocol, ipv6))
        if (one.first.port == api_port || one.first.port == 53) found.push_back(std::move(one));
  std::set<uint64_t> inodes;
  for (const auto& one : found) inodes.insert(one.second);
  auto owners = socket_owners(inodes);
  std::vector<Listener> listeners;
  for (auto& [listener, inode] : found) {
    listener.program = owners[inode];
    listeners.push_back(std::move(listener));
  }
  return listeners;
}

// The programs in our network namespace. A program in a container's own namespace cannot take our ports or change our rules.
std::set<std::string> running_programs() {
  std::set<std::string> names;
  auto namespace_of = [](const std::string& process) {
    auto home = sys::open_directory("/proc/" + process);
    return home ? sys::read_link_at(*home, "ns/net").value_or("") : std::string();
  };
  std::string own = namespace_of("self");
  for (const auto& process : sys::list("/proc").value_or({})) {
    if (!parse_number<int>(process.name)) continue;
    std::string theirs = namespace_of(process.name);  // "" without permission to read it
    if (theirs.empty() || theirs == own) names.insert(read_first_line("/proc/" + process.name + "/comm"));
  }
  return names;
}

// ---- coracled ----

void ask_api(Commands& commands, const MachineInfo& info, DaemonInfo& daemon) {
  if (commands.flags().request_timeout == "0") commands.flags().request_timeout = kApiTimeout;
  commands.flags().over_network = true;
  auto session = commands.session();
  if (!session) {
    daemon.ready = {ProbeResult::not_tried, session.error().text()};
    return;
  }
  daemon.server = (*session)->server();
  auto ready = (*session)->text({.path = "/readyz", .accept = "*/*"});
  daemon.ready = {ready ? ProbeResult::works : ProbeResult::fails, ready ? "" : ready.error().text()};
  if (!ready) return;
  auto nodes = (*session)->json({.path = "/api/v1/nodes"});
  if (!nodes) return;
  const json::array& items = items_of(*nodes);
  std::string own = info.settings.node_name.empty() ? to_lower(info.host_name) : info.settings.node_name;
  for (const auto& node : items) {
    if (items.size() > 1 && metadata_of(node).name() != own) continue;
    daemon.node = metadata_of(node).name();
    daemon.conditions = view::Node(node).status().conditions().raw();
  }
}

DaemonInfo read_daemon(Commands& commands, const MachineInfo& info) {
  DaemonInfo daemon;
  std::error_code ignored;
  std::string own = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const std::string& directory : {own, std::string("/usr/bin"), std::string("/usr/local/bin")})
    daemon.installed |= sys::exists(directory + "/coracled");
  for (const std::string& program : {info.settings.pause_program, info.settings.image_program})
    if (!sys::exists(program)) daemon.missing.push_back(program);
  daemon.running = info.programs.contains("coracled");
  daemon.with_systemd = sys::exists("/run/systemd/system");
  ask_api(commands, info, daemon);
  return daemon;
}

// Only the daemon can compare its file with its memory, so it is asked.
StoreInfo read_store(Commands& commands, const DaemonInfo& daemon) {
  StoreInfo store;
  if (daemon.ready.outcome != ProbeResult::works) {
    store.checked = {ProbeResult::not_tried, "coracled does not answer"};
    return store;
  }
  auto session = commands.session();
  auto checked = session ? (*session)->json({.method = "POST", .path = std::string(kStore) + "/check"})
                         : Result<json::value>(session.error());
  store.checked = probe_result(checked, true);
  if (checked)
    for (const auto& finding : get_array(*checked, "findings")) store.findings.emplace_back(finding.as_string());
  auto state = session ? (*session)->json({.path = kStore}) : Result<json::value>(session.error());
  if (state) store.used = Bytes(get_int(*state, "objectsBytes")), store.most = Bytes(get_int(*state, "objectsBytesMax"));
  return store;
}

}  // namespace

MachineInfo read_machine_info(Commands& commands, const std::string& config_file) {
  MachineInfo info;
  info.root = sys::own_uid() == 0;
  info.settings.file = config_file;
  if (auto text = sys::read_file(config_file)) {
    auto settings = parse_settings(*text, info.settings);
    if (settings) info.settings = std::move(*settings);
    else info.settings_error = config_file + ": " + settings.error().text();
  }
  utsname name{};
  (void)::uname(&name);
  info.kernel = name.release, info.architecture = name.machine, info.host_name = name.nodename;
  auto version = split(info.kernel, '.');
  info.kernel_major = parse_number<int>(version[0]).value_or(0);
  if (version.size() > 1)
    info.kernel_minor = parse_number<int>(version[1].substr(0, version[1].find_first_not_of("0123456789"))).value_or(0);
  std::string model = read_text("/proc/device-tree/model");
  info.model = model.substr(0, model.find('\0'));
  info.cgroup = read_cgroups();
  info.features = try_features(info.cgroup, info.root);
  info.disk = read_disk(info.settings, info.root);
  for (const std::string& path : info.settings.volume_dirs) info.volume_dirs.push_back(read_volume_dir(path, info.root));
  info.clock = read_clock();
  info.memory = read_memory();
  info.programs = running_programs();
  info.firewall = read_firewall(info.root, info.programs);
  if (auto text = sys::read_file("/etc/resolv.conf")) info.nameservers = parse_nameservers(*text);
  info.listeners = read_listeners(info.settings.port);
  info.daemon = read_daemon(commands, info);
  info.store = read_store(commands, info.daemon);
  return info;
}

// ---- parsers ----

Result<Settings> parse_settings(std::string_view yaml_text, Settings defaults) {
  std::vector<json::value> documents = TRY(parse_yaml(yaml_text));
  if (documents.empty()) return defaults;
  const json::value& root = documents.front();
  if (!root.is_object()) return Error(Code::invalid, "expected fields and values");
  auto take = [&](const char* field, std::string& into) {
    if (auto text = get_string(root, field); !text.empty()) into = text;
  };
  take("stateDir", defaults.state_dir);
  take("podCIDR", defaults.pod_cidr);
  take("clusterDNS", defaults.cluster_dns);
  take("pauseProgram", defaults.pause_program);
  take("imageProgram", defaults.image_program);
  take("nodeName", defaults.node_name);
  if (const json::array& all = get_array(root, "volumeDirs"); !all.empty()) {
    defaults.volume_dirs.clear();
    for (const json::value& each : all)
      if (each.is_string()) defaults.volume_dirs.emplace_back(each.get_string());
  }
  int64_t port = get_int(root, "port", defaults.port);
  if (port < 0 || port > 65535) return Error(Code::invalid, "port: " + std::to_string(port) + " is no port number");
  defaults.port = uint16_t(port);
  return defaults;
}

std::vector<std::string> parse_nameservers(std::string_view resolv_conf) {
  std::vector<std::string> servers;
  for (std::string_view line : split(resolv_conf, '\n')) {
    line = trim(line);
    if (!line.starts_with("nameserver") || line.size() < 12) continue;
    std::string_view address = trim(line.substr(10));
    servers.emplace_back(address.substr(0, address.find_first_of(" \t#;")));
  }
  return servers;
}

std::vector<Swap> parse_swaps(std::string_view proc_swaps) {
  std::vector<Swap> swaps;
  for (std::string_view line : split(proc_swaps, '\n')) {  // Filename  Type  Size  Used  Priority, in KiB
    std::vector<std::string> words;
    std::string spaced(line);
    std::replace(spaced.begin(), spaced.end(), '\t', ' ');
    for (std::string_view word : split(spaced, ' '))
      if (!word.empty()) words.emplace_back(word);
    if (words.size() >= 3 && words[0].starts_with('/'))
      swaps.push_back({words[0], Bytes(parse_number<int64_t>(words[2]).value_or(0) << 10)});
  }
  return swaps;
}

std::vector<std::pair<Listener, uint64_t>> parse_listeners(std::string_view proc_net, std::string_view protocol, bool ipv6) {
  std::vector<std::pair<Listener, uint64_t>> found;
  for (std::string_view line : split(proc_net, '\n')) {
    std::vector<std::string_view> words;
    for (std::string_view word : split(line, ' '))
      if (!word.empty()) words.push_back(word);
    // sl local_address rem_address st tx:rx tr:tm retrnsmt uid timeout inode
    if (words.size() < 10 || words[3] != (protocol == "tcp" ? "0A" : "07")) continue;
    size_t colon = words[1].find(':');
    auto port = parse_number<uint16_t>(words[1].substr(std::min(words[1].size(), colon + 1)), 16);
    if (colon == words[1].npos || !port) continue;
    std::string_view hex = words[1].substr(0, colon);
    std::string address = "::";
    if (!ipv6) {
      uint32_t bits = parse_number<uint32_t>(hex, 16).value_or(0);  // in the byte order of memory
      std::array<uint8_t, 4> bytes{};
      std::copy_n(reinterpret_cast<const uint8_t*>(&bits), 4, bytes.begin());
      address = std::to_string(bytes[0]) + "." + std::to_string(bytes[1]) + "." + std::to_string(bytes[2]) + "." +
                std::to_string(bytes[3]);
    } else if (hex.find_first_not_of('0') != hex.npos) {
      address = "[" + to_lower(hex) + "]";
    }
    found.push_back({{std::string(protocol), address, *port, {}}, parse_number<uint64_t>(words[9]).value_or(0)});
  }
  return found;
}

std::pair<std::string, std::string> device_of(std::string_view mountinfo, std::string_view path) {
  std::string device, type;
  size_t longest = 0;
  for (std::string_view line : split(mountinfo, '\n')) {
    size_t dash = line.find(" - ");
    auto words = split(line, ' ');
    if (dash == line.npos || words.size() < 6) continue;
    std::string_view point = words[4];
    bool holds =
        point == "/" || path == point || (path.starts_with(point) && path.size() > point.size() && path[point.size()] == '/');
    if (!holds || point.size() < longest) continue;  // a later mount on the same directory hides the earlier one
    longest = point.size();
    auto behind = split(line.substr(dash + 3), ' ');
    type = behind[0];
    device = behind.size() > 1 && behind[1].starts_with('/') ? std::string(behind[1]) : "";
  }
  if (type == "nfs4") type = "nfs";
  if (type.starts_with("fuse.")) type = "fuse";
  if (type == "fuseblk") type = "ntfs";  // nearly always the real type
  return {device, type};
}

// ---- the command ----

void add_doctor(Commands& commands) {
  struct Flags {
    std::string output, config = "/etc/coracle/config.yaml";
  };
  auto flags = std::make_shared<Flags>();
  Command doctor = commands.add("doctor", "Look at this machine: what is wrong, and what to do about it");
  doctor.add_option("-o,--output", flags->output, "json").one_of({"json"});
  doctor.add_option("--config", flags->config, "coracled's settings");
  commands.on(doctor, [&commands, flags]() -> Result<int> {
    std::vector<Finding> findings = examine(read_machine_info(commands, flags->config));
    if (flags->output == "json") out(to_pretty(findings_json(findings)) + "\n");
    else out(visible_lines(print_findings(findings)));  // names come from processes, also from those in containers
    return healthy(findings) ? 0 : 1;
  });
}

}  // namespace coracle::ctl
