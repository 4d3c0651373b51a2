// SPDX-License-Identifier: Apache-2.0
// See defaults.h.
// Source: runtime-spec config-linux.md "Default Devices", "Default Filesystems"; the capabilities and the masked paths are those
// that containers expect from Docker.
#include "runtime/oci/defaults.h"

#include "runtime/sys/file.h"

namespace coracle::oci {
namespace {

// Thermal throttle counters, which reveal the activity of other users: one directory per processor.
const std::vector<std::string>& heat_counters() {
  static const std::vector<std::string> found = [] {
    const std::string processors = "/sys/devices/system/cpu/";
    constexpr size_t kCountersMax = 200;  // the limit for masked paths is 256
    std::vector<std::string> out;
    auto entries = sys::list(processors);
    if (!entries) return out;
    for (const sys::DirEntry& entry : *entries) {
      const std::string path = processors + entry.name + "/thermal_throttle";
      if (out.size() < kCountersMax && sys::exists(path)) out.push_back(path);
    }
    return out;
  }();
  return found;
}

}  // namespace

Spec default_spec() {
  static const std::vector<std::string> kCapabilities = {
      "CAP_AUDIT_WRITE",      "CAP_CHOWN",   "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID",  "CAP_KILL",   "CAP_MKNOD",
      "CAP_NET_BIND_SERVICE", "CAP_NET_RAW", "CAP_SETFCAP",      "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID", "CAP_SYS_CHROOT"};
  Spec spec;
  spec.process.env = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"};
  spec.process.capabilities.emplace();
  spec.process.capabilities->bounding = kCapabilities;
  spec.process.capabilities->effective = kCapabilities;
  spec.process.capabilities->permitted = kCapabilities;
  auto mount = [&](const char* destination, const char* type, const char* source, std::vector<std::string> options) {
    Mount out;
    out.destination = destination;
    out.type = type;
    out.source = source;
    out.options = std::move(options);
    spec.mounts.push_back(std::move(out));
  };
  mount("/proc", "proc", "proc", {"nosuid", "noexec", "nodev"});
  mount("/dev", "tmpfs", "tmpfs", {"nosuid", "strictatime", "mode=755", "size=65536k"});
  mount("/dev/pts", "devpts", "devpts", {"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"});
  mount("/dev/shm", "tmpfs", "shm", {"nosuid", "noexec", "nodev", "mode=1777", "size=65536k"});
  mount("/dev/mqueue", "mqueue", "mqueue", {"nosuid", "noexec", "nodev"});
  mount("/sys", "sysfs", "sysfs", {"nosuid", "noexec", "nodev", "ro"});
  mount("/sys/fs/cgroup", "cgroup", "cgroup", {"nosuid", "noexec", "nodev", "relatime", "ro"});
  spec.linux_.masked_paths = {"/proc/acpi",
                              "/proc/asound",
                              "/proc/interrupts",
                              "/proc/kcore",
                              "/proc/keys",
                              "/proc/latency_stats",
                              "/proc/sched_debug",
                              "/proc/scsi",
                              "/proc/timer_list",
                              "/proc/timer_stats",
                              "/sys/devices/virtual/powercap",
                              "/sys/firmware"};
  for (const std::string& path : heat_counters()) spec.linux_.masked_paths.push_back(path);
  spec.linux_.readonly_paths = {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"};
  DeviceRule nothing;
  nothing.allow = false;
  spec.linux_.resources.devices = {nothing};
  return spec;
}

const std::vector<Device>& default_devices() {
  static const std::vector<Device> devices = [] {
    std::vector<Device> out;
    auto add = [&](const char* path, int64_t major, int64_t minor) {
      Device device;
      device.path = path;
      device.type = "c";
      device.major = major;
      device.minor = minor;
      device.file_mode = 0666;
      out.push_back(device);
    };
    add("/dev/null", 1, 3);
    add("/dev/zero", 1, 5);
    add("/dev/full", 1, 7);
    add("/dev/random", 1, 8);
    add("/dev/urandom", 1, 9);
    add("/dev/tty", 5, 0);
    return out;
  }();
  return devices;
}

const std::vector<DeviceRule>& default_device_rules() {
  static const std::vector<DeviceRule> rules = [] {
    std::vector<DeviceRule> out;
    auto allow = [&](const char* type, std::optional<int64_t> major, std::optional<int64_t> minor, const char* access) {
      DeviceRule rule;
      rule.allow = true;
      rule.type = type;
      rule.major = major;
      rule.minor = minor;
      rule.access = access;
      out.push_back(rule);
    };
    allow("c", {}, {}, "m");  // creating a node is harmless: the rules control its use
    allow("b", {}, {}, "m");
    for (const Device& device : default_devices()) allow("c", device.major, device.minor, "rwm");
    allow("c", 5, 2, "rwm");     // /dev/ptmx
    allow("c", 136, {}, "rwm");  // /dev/pts/*
    allow("c", 10, 200, "rwm");  // /dev/net/tun, which VPNs make for themselves; it needs CAP_NET_ADMIN. Source: runc, crun
    return out;
  }();
  return rules;
}

}  // namespace coracle::oci
