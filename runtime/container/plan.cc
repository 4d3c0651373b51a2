// SPDX-License-Identifier: Apache-2.0
// See plan.h.
#include "runtime/container/plan.h"

#include <linux/mount.h>

#include <cstring>
#include <map>

#include "runtime/base/text.h"
#include "runtime/oci/capabilities.h"
#include "runtime/oci/defaults.h"
#include "runtime/oci/mount_options.h"

namespace coracle::runtime {
namespace {

bool stands_beneath(const std::string& path, const std::string& dir) {
  return path == dir || path.starts_with(dir + "/");
}

// The last one counts.
void take_attribute(const oci::MountOption& option, uint64_t& set, uint64_t& clear) {
  set = (set & ~option.clear) | option.set;
  clear = (clear & ~option.set) | option.clear;
}

const std::string* env_value(const std::vector<std::string>& env, std::string_view name, std::string& room) {
  for (const std::string& item : env) {
    if (!item.starts_with(name) || item.size() <= name.size() || item[name.size()] != '=') continue;
    room = item.substr(name.size() + 1);
  }
  return &room;
}

std::string program_of(const oci::Spec& spec) { return spec.process.args.empty() ? "" : spec.process.args[0]; }

Error explain_exec(int err, const oci::Spec& spec) {
  std::string program = program_of(spec);
  std::string said = "exec: " + quoted(program) + ": ";
  if (err == ENOENT && program.find('/') == program.npos)
    return Error(Code::not_found, said + "executable file not found in $PATH");
  if (err == ENOENT) return Error::from_errno(err, said + "stat " + program);
  return Error::from_errno(err, "exec: " + quoted(program));
}

}  // namespace

Result<MountOptions> parse_mount_options(const oci::Mount& mount) {
  MountOptions out;
  out.is_bind = mount.type == "bind" || mount.source_fd;
  for (const std::string& name : mount.options) {
    auto option = oci::mount_option(name);
    if (!option) {
      size_t equals = name.find('=');
      if (out.is_bind) return Error(Code::unsupported, "mounts: option " + quoted(name) + " of " + mount.destination);
      out.data.push_back(
          {name.substr(0, equals), equals == name.npos ? "" : name.substr(equals + 1), equals != name.npos});
      continue;
    }
    switch (option->kind) {
      case oci::MountOptionKind::nothing:
        break;
      case oci::MountOptionKind::bind:
        out.is_bind = true;
        out.is_recursive |= option->is_recursive;
        break;
      case oci::MountOptionKind::attribute:
        take_attribute(*option, out.set, out.clear);
        break;
      case oci::MountOptionKind::recursive_attribute:
        take_attribute(*option, out.set_recursive, out.clear_recursive);
        break;
      case oci::MountOptionKind::propagation:
        out.propagation = option->set;
        break;
      case oci::MountOptionKind::super_flag:
        out.data.push_back({name, "", false});
        break;
      case oci::MountOptionKind::copy_up:
      case oci::MountOptionKind::id_mapped:
        return Error(Code::unsupported, "mounts: option " + quoted(name) + " of " + mount.destination);
    }
  }
  if (out.is_bind) out.data.clear();  // they belong to a file system that is mounted already
  return out;
}

Result<std::vector<MountDraft>> plan_mounts(const oci::Spec& spec, const SandboxFacts& sandbox) {
  std::vector<MountDraft> out;
  for (const oci::Mount& mount : spec.mounts) {
    MountDraft draft;
    draft.destination = mount.destination;
    draft.type = mount.type;
    draft.options = TRY(parse_mount_options(mount));
    draft.source = mount.source;
    draft.source_fd = mount.source_fd;
    // Where the kernel's own file systems stand, nothing may lead astray. CVE-2019-19921, CVE-2026-41579.
    for (const char* place : {"/proc", "/sys", "/dev"})
      if (stands_beneath(mount.destination, place)) draft.flags |= launch::kMountNoLinks;
    if (draft.options.is_bind) {
      draft.kind = launch::MountKind::attach;
      if (draft.source.empty() && !draft.source_fd)
        return Error(Code::invalid, "mounts: " + mount.destination + " has no source");
    } else if (mount.destination == "/dev/shm" && mount.type == "tmpfs" && mount.source == "shm") {
      // One for all containers of the pod, as they share System V and POSIX IPC; the host's where they share that.
      draft.kind = sandbox.has_ipc ? launch::MountKind::pod_shm : launch::MountKind::attach;
      draft.source = "/dev/shm";
    } else {
      if (mount.type.empty()) return Error(Code::invalid, "mounts: " + mount.destination + " has no type");
      if (mount.type == "cgroup") draft.type = "cgroup2";
      if (!mount.source.empty()) draft.options.data.insert(draft.options.data.begin(), {"source", mount.source, true});
      // Steps after the mounts write to it, which a read-only one forbids: then they take one of their own.
      if (mount.type == "proc" && !(draft.options.set & MOUNT_ATTR_RDONLY)) draft.flags |= launch::kMountProc;
      if (mount.type == "sysfs" && !sandbox.has_network) draft.options.set |= MOUNT_ATTR_RDONLY;
    }
    out.push_back(std::move(draft));
  }
  return out;
}

std::vector<oci::Device> plan_devices(const oci::Spec& spec) {
  std::vector<oci::Device> out = spec.linux_.devices;
  auto is_given = [&](const std::string& path) {
    for (const oci::Device& device : spec.linux_.devices)
      if (device.path == path) return true;
    for (const oci::Mount& mount : spec.mounts)
      if (mount.destination == path ||
          (mount.destination == "/dev" && (mount.type == "bind" || mount.type == "devtmpfs" || mount.source_fd)))
        return true;  // it comes with a mount: the host's own /dev, say
    return false;
  };
  for (const oci::Device& device : oci::default_devices())
    if (!is_given(device.path)) out.push_back(device);
  return out;
}

std::vector<sys::DeviceMatch> plan_device_rules(const oci::Spec& spec) {
  std::vector<sys::DeviceMatch> out;
  auto add = [&](const oci::DeviceRule& rule) {
    sys::DeviceMatch match;
    match.allow = rule.allow;
    match.type = rule.type[0];
    if (rule.major) match.major = uint32_t(*rule.major);
    if (rule.minor) match.minor = uint32_t(*rule.minor);
    match.read = rule.access.find('r') != rule.access.npos;
    match.write = rule.access.find('w') != rule.access.npos;
    match.make = rule.access.find('m') != rule.access.npos;
    out.push_back(match);
  };
  // The defaults come before the caller's, so that the caller has the last word; without any rule of the caller's, only
  // they are allowed (GHSA-g54h-m393-cpwq: a list that denies by default).
  for (const oci::DeviceRule& rule : spec.linux_.resources.devices)
    if (!rule.allow && rule.type == "a" && !rule.major && !rule.minor) add(rule);
  for (const oci::DeviceRule& rule : oci::default_device_rules()) add(rule);
  for (const oci::Device& device : spec.linux_.devices) {
    if (device.type == "p") continue;
    oci::DeviceRule rule;
    rule.allow = true;
    rule.type = device.type == "u" ? "c" : device.type;
    rule.major = device.major;
    rule.minor = device.minor;
    add(rule);
  }
  for (const oci::DeviceRule& rule : spec.linux_.resources.devices)
    if (rule.allow || rule.type != "a" || rule.major || rule.minor) add(rule);
  return out;
}

std::vector<std::pair<std::string, std::string>> plan_links(const oci::Spec& spec) {
  std::vector<std::pair<std::string, std::string>> out;
  bool has_dev = false, has_pts = false;
  for (const oci::Mount& mount : spec.mounts) {
    has_dev |= mount.destination == "/dev" && mount.type == "tmpfs";
    has_pts |= mount.destination == "/dev/pts";
  }
  if (!has_dev) return out;
  out = {{"/proc/self/fd", "/dev/fd"},
         {"/proc/self/fd/0", "/dev/stdin"},
         {"/proc/self/fd/1", "/dev/stdout"},
         {"/proc/self/fd/2", "/dev/stderr"},
         {"/proc/kcore", "/dev/core"}};
  if (has_pts) out.emplace_back("pts/ptmx", "/dev/ptmx");
  return out;
}

std::vector<std::string> plan_programs(const std::string& program, const std::vector<std::string>& env) {
  if (program.find('/') != program.npos) return {program};
  std::string path;
  (void)env_value(env, "PATH", path);
  std::vector<std::string> out;
  for (std::string_view dir : split(path, ':')) {
    if (dir.empty()) continue;  // "the current directory" would be whatever the image made it
    out.push_back(std::string(dir) + "/" + program);
  }
  return out;
}

Result<CapabilitySets> plan_capabilities(const oci::Capabilities& wanted, const OwnFacts& own) {
  CapabilitySets out;
  out.bounding = TRY(oci::capability_set(wanted.bounding)) & own.capabilities;
  out.permitted = TRY(oci::capability_set(wanted.permitted)) & own.capabilities;
  out.effective = TRY(oci::capability_set(wanted.effective)) & out.permitted;
  out.inheritable = TRY(oci::capability_set(wanted.inheritable)) & own.capabilities;
  out.ambient = TRY(oci::capability_set(wanted.ambient)) & out.permitted & out.inheritable;
  return out;
}

int plan_oom_score(int wanted, const OwnFacts& own) {
  bool may_lower = own.capabilities >> kCapSysResource & 1;
  return may_lower ? wanted : std::max(wanted, own.oom_score_adj);
}

Error explain_failure(const pause::Reply& reply, const oci::Spec& spec, const std::vector<std::string>& mounts) {
  auto stage = launch::Stage(reply.stage);
  auto named = [&](const std::vector<std::string>& list) {
    return reply.index >= 0 && size_t(reply.index) < list.size() ? " " + list[size_t(reply.index)] : std::string();
  };
  std::string doing = reply.stage < uint32_t(launch::Stage::count) ? launch::kStageNames[reply.stage] : "launch";
  switch (stage) {
    case launch::Stage::exec:
      return explain_exec(reply.err, spec);
    case launch::Stage::mount:
      doing += named(mounts);
      break;
    case launch::Stage::mask:
      doing += named(spec.linux_.masked_paths);
      break;
    case launch::Stage::readonly:
      doing += named(spec.linux_.readonly_paths);
      break;
    case launch::Stage::working_directory:
      doing += " " + spec.process.cwd;
      break;
    case launch::Stage::user:
      doing += " " + std::to_string(spec.process.user.uid) + ":" + std::to_string(spec.process.user.gid);
      break;
    case launch::Stage::hostname:
      doing += " " + spec.hostname;
      break;
    case launch::Stage::rlimit:
      if (reply.index >= 0 && size_t(reply.index) < spec.process.rlimits.size())
        doing += " " + spec.process.rlimits[size_t(reply.index)].type;
      break;
    case launch::Stage::device: {
      std::vector<oci::Device> devices = plan_devices(spec);
      if (reply.index >= 0 && size_t(reply.index) < devices.size()) doing += " " + devices[size_t(reply.index)].path;
      break;
    }
    case launch::Stage::sysctl: {
      std::vector<std::string> names;
      for (const auto& [name, value] : spec.linux_.sysctl) names.push_back(name);
      doing += named(names);
      break;
    }
    case launch::Stage::slot:
      if (reply.err == EEXIST) return Error(Code::conflict, "the id is in use");
      if (reply.err == EBUSY) return Error(Code::conflict, "still running");
      if (reply.err == ENFILE) return Error(Code::too_many_requests, "the pod has as many processes as it can hold");
      break;
    case launch::Stage::target:
      if (reply.err == ESRCH) return Error(Code::conflict, "the container is not running");
      break;
    default:
      break;
  }
  return Error::from_errno(reply.err, doing);
}

}  // namespace coracle::runtime
