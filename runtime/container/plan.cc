// SPDX-License-Identifier: Apache-2.0
// See plan.h.
#include "runtime/container/plan.h"

#include <linux/mempolicy.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/personality.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "runtime/base/text.h"
#include "runtime/oci/capabilities.h"
#include "runtime/oci/defaults.h"
#include "runtime/oci/mount_options.h"
#include "runtime/oci/validate.h"

namespace coracle::runtime {
namespace {

// As in linux/ioprio.h; some versions of that header do not compile as C++, because a parameter is called "class".
enum { kRealTime = 1, kBestEffort = 2, kIdle = 3 };
constexpr int kIoClassShift = 13;

bool stands_beneath(const std::string& path, const std::string& dir) { return path == dir || path.starts_with(dir + "/"); }

// The last option wins.
void take_attribute(const oci::MountOption& option, uint64_t& set, uint64_t& clear) {
  set = (set & ~option.clear) | option.set;
  clear = (clear & ~option.set) | option.clear;
}

Result<void> check_is_bind(const MountOptions& options, const oci::Mount& mount, const std::string& name) {
  if (options.is_bind) return {};
  return Error(Code::unsupported, "mounts: option " + quoted(name) + " of " + mount.destination + " is for binds");
}

const std::string* env_value(const std::vector<std::string>& env, std::string_view name, std::string& buffer) {
  for (const std::string& item : env) {
    if (!item.starts_with(name) || item.size() <= name.size() || item[name.size()] != '=') continue;
    buffer = item.substr(name.size() + 1);
  }
  return &buffer;
}

}  // namespace

Result<MountOptions> parse_mount_options(const oci::Mount& mount) {
  MountOptions out;
  auto is_given = [&](const char* name) { return std::count(mount.options.begin(), mount.options.end(), name) > 0; };
  out.is_bind = mount.type == "bind" || mount.source_fd || is_given("bind") || is_given("rbind");
  for (const std::string& name : mount.options) {
    auto option = oci::mount_option(name);
    if (!option) {
      size_t equals = name.find('=');
      // Options of a file system have no effect on a bind mount, and the kernel ignores them; engines pass them anyway.
      if (out.is_bind && equals != name.npos) continue;
      if (out.is_bind) return Error(Code::unsupported, "mounts: option " + quoted(name) + " of " + mount.destination);
      out.data.push_back({name.substr(0, equals), equals == name.npos ? "" : name.substr(equals + 1), equals != name.npos});
      continue;
    }
    switch (option->kind) {
      case oci::MountOptionKind::nothing: break;
      case oci::MountOptionKind::bind:
        out.is_bind = true;
        out.is_recursive |= option->is_recursive;
        break;
      case oci::MountOptionKind::attribute: take_attribute(*option, out.set, out.clear); break;
      case oci::MountOptionKind::recursive_attribute: take_attribute(*option, out.set_recursive, out.clear_recursive); break;
      case oci::MountOptionKind::propagation: out.propagation = option->set; break;
      case oci::MountOptionKind::super_flag: out.data.push_back({name, "", false}); break;
      case oci::MountOptionKind::copy_up:
        if (mount.type != "tmpfs")
          return Error(Code::unsupported, "mounts: option " + quoted(name) + " of " + mount.destination + " is for tmpfs");
        out.copies_up = true;
        break;
      case oci::MountOptionKind::id_mapped:
        TRY(check_is_bind(out, mount, name));
        out.is_idmapped = true;
        out.is_recursively_idmapped |= option->is_recursive;
        break;
      case oci::MountOptionKind::copy_link:
        TRY(check_is_bind(out, mount, name));
        out.copies_link = true;
        break;
      case oci::MountOptionKind::link_source:
        TRY(check_is_bind(out, mount, name));
        out.takes_link = true;
        break;
      case oci::MountOptionKind::link_destination:
        TRY(check_is_bind(out, mount, name));
        out.covers_link = true;
        break;
    }
  }
  if (out.copies_link && (out.takes_link || out.covers_link))
    return Error(Code::invalid, "mounts: " + mount.destination + ": copy-symlink is without src-nofollow and dest-nofollow");
  if (out.is_bind) out.data.clear();  // they are options of an already mounted file system
  return out;
}

namespace {

// uid= and gid= of a new file system are the container's ids, but host root mounts it.
void translate_owner(MountOptions& options, const IdMaps& ids) {
  for (sys::FsOption& option : options.data) {
    auto id = parse_number<uint32_t>(option.value);
    if (option.key == "uid" && id) option.value = std::to_string(ids.uid(*id));
    if (option.key == "gid" && id) option.value = std::to_string(ids.gid(*id));
  }
}

bool has_mode(const MountOptions& options) {
  return std::any_of(options.data.begin(), options.data.end(), [](const sys::FsOption& option) { return option.key == "mode"; });
}

// Converts a source in the bundle's root that an earlier mount covers to a path in the container. On the host that path shows the
// covered directory, but the container's view is meant.
std::optional<std::string> covered_source(const oci::Spec& spec, const std::string& source,
                                          const std::vector<MountDraft>& earlier) {
  const std::string root = oci::plain_path(spec.root.path), path = oci::plain_path(source);
  if (spec.root.path.empty() || root == "/" || !path.starts_with(root + "/")) return std::nullopt;
  const std::string inside = path.substr(root.size());
  const bool is_covered = std::any_of(earlier.begin(), earlier.end(), [&](const MountDraft& draft) {
    return draft.kind != launch::MountKind::own_directory && stands_beneath(inside, draft.destination);
  });
  return is_covered ? std::optional(inside) : std::nullopt;
}

// An absolute path without duplicate slashes. The specification requires an absolute path, but engines also pass relative ones.
std::string destination_of(const oci::Mount& mount) {
  return mount.destination.starts_with("/") ? mount.destination : "/" + mount.destination;
}

// The files of the kernel's own file systems have labels of their own. Source: runc, crun.
bool takes_label(const std::string& type) { return type != "proc" && type != "sysfs" && type != "mqueue" && type != "cgroup2"; }

std::string v1_directory(const cgroup::V1Hierarchy& hierarchy) {  // "cpu,cpuacct", as on the host
  return hierarchy.mount_point.substr(hierarchy.mount_point.rfind('/') + 1);
}

// A tmpfs with a directory for each hierarchy, as on the host, and cgroup v2 beside them. Source: runc, crun. Its cgroups are
// bound: that shows the same as new mounts in its cgroup namespace, with fewer system calls and without cgroup_mutex.
void add_v1_mounts(const MountDraft& wanted, const SandboxInfo& sandbox, std::vector<MountDraft>& out) {
  MountDraft top = wanted;
  top.flags |= launch::kMountHolds;
  top.type = "tmpfs";
  top.options.data = {{"source", "tmpfs", true}, {"mode", "755", true}};
  out.push_back(std::move(top));
  MountDraft one = wanted;
  one.kind = launch::MountKind::outer;
  one.flags |= launch::kMountInHeld;
  one.options.propagation = 0;
  one.options.data.clear();
  for (const cgroup::V1Hierarchy& hierarchy : sandbox.v1) {
    one.destination = wanted.destination + "/" + v1_directory(hierarchy);
    one.source = hierarchy.mount_point + sandbox.cgroup;
    out.push_back(one);
  }
  one.destination = wanted.destination + "/unified";
  one.source = sandbox.v2_cgroup;
  out.push_back(std::move(one));
}

}  // namespace

std::optional<uint32_t> IdMaps::host_id(const std::vector<oci::IdMapping>& maps, uint32_t id) {
  for (const oci::IdMapping& map : maps)
    if (id >= map.container_id && id - map.container_id < map.size) return map.host_id + (id - map.container_id);
  return std::nullopt;
}

Result<NamespacePlan> plan_namespaces(const oci::Spec& spec, const SandboxInfo& sandbox) {
  static const std::map<std::string, uint64_t> flags = {
      {"network", CLONE_NEWNET}, {"ipc", CLONE_NEWIPC}, {"uts", CLONE_NEWUTS}, {"pid", CLONE_NEWPID}, {"mount", CLONE_NEWNS}};
  NamespacePlan out;
  if (sandbox.is_pod) {  // coracle-pause is in the pod's namespaces and creates the others
    out.new_cgroup = true;
    if (!sandbox.shared_pid && !sandbox.host_pid) out.fresh |= CLONE_NEWPID;
  }
  bool has_mount = sandbox.is_pod;
  for (const oci::Namespace& ns : spec.linux_.namespaces) {
    auto flag = flags.find(ns.type);
    has_mount |= ns.type == "mount";
    if (!ns.path.empty()) {
      if (ns.type == "user") out.user_path = ns.path;
      else out.joined[ns.type] = ns.path;
      if (ns.type == "cgroup") out.new_cgroup = false;
    } else if (ns.type == "user") {
      out.new_user = true;
    } else if (ns.type == "cgroup") {
      out.new_cgroup = true;
    } else if (ns.type == "time") {
      out.new_time = true;
    } else if (flag != flags.end() && !sandbox.is_pod) {
      out.fresh |= flag->second;
    }
  }
  out.in_host_tree = !has_mount;
  if (sandbox.is_pod && out.joined.count("mount"))
    return Error(Code::unsupported, "linux.namespaces: a pod's container cannot join a mount namespace");
  return out;
}

Result<std::vector<MountDraft>> plan_mounts(const oci::Spec& spec, const SandboxInfo& sandbox, const IdMaps& ids) {
  std::vector<MountDraft> out;
  for (const oci::Mount& mount : spec.mounts) {
    MountDraft draft;
    draft.destination = destination_of(mount);
    if (mount.of_root) {
      draft.kind = launch::MountKind::own_directory;
      if (sandbox.launcher >= launch::kLauncherKeepsDirectories) out.push_back(std::move(draft));
      continue;
    }
    draft.type = mount.type;
    draft.options = TRY(parse_mount_options(mount));
    translate_owner(draft.options, ids);
    if (draft.options.copies_up) draft.flags |= launch::kMountCopyUp;
    if (draft.options.covers_link) draft.flags |= launch::kMountOnLink;
    const bool has_mappings = !mount.uid_mappings.empty() || !mount.gid_mappings.empty();
    if (has_mappings && !draft.options.is_bind)
      return Error(Code::unsupported, "mounts: uidMappings and gidMappings of " + mount.destination + " are for binds");
    draft.options.is_idmapped |= has_mappings;  // the options only say whether it is recursive
    if (draft.options.is_idmapped) {
      draft.uid_mappings = mount.uid_mappings.empty() ? ids.uids : mount.uid_mappings;
      draft.gid_mappings = mount.gid_mappings.empty() ? ids.gids : mount.gid_mappings;
      if (draft.uid_mappings.empty() || draft.gid_mappings.empty())
        return Error(Code::invalid, "mounts: option idmap of " + mount.destination + " without uidMappings and gidMappings");
    }
    draft.source = mount.source;
    draft.source_fd = mount.source_fd;
    // No link may occur in paths beneath the kernel's file systems. CVE-2019-19921, CVE-2026-41579.
    for (const char* place : {"/proc", "/sys", "/dev"})
      if (stands_beneath(draft.destination, place)) draft.flags |= launch::kMountNoLinks;
    if (draft.options.is_bind) {
      draft.kind = launch::MountKind::attach;
      if (draft.source.empty() && !draft.source_fd)
        return Error(Code::invalid, "mounts: " + mount.destination + " has no source");
      const bool is_from_host =
          draft.source_fd || draft.options.is_idmapped || draft.options.copies_link || draft.options.takes_link;
      if (auto inside = covered_source(spec, draft.source, out); inside && !is_from_host) {
        draft.kind = launch::MountKind::inner;
        draft.source = *inside;
        if (draft.options.is_recursive) draft.flags |= launch::kMountBeneath;
      }
    } else if (sandbox.is_pod && mount.destination == "/dev/shm" && mount.type == "tmpfs" && mount.source == "shm") {
      // One for all containers of the pod, because they share System V and POSIX IPC; the host's if they share that.
      draft.kind = sandbox.has_ipc ? launch::MountKind::pod_shm : launch::MountKind::attach;
      draft.source = "/dev/shm";
    } else {
      if (mount.type.empty()) return Error(Code::invalid, "mounts: " + mount.destination + " has no type");
      if (mount.type == "cgroup" && !sandbox.v1.empty()) {
        add_v1_mounts(draft, sandbox, out);
        continue;
      }
      if (mount.type == "cgroup") draft.type = "cgroup2";
      if (sandbox.has_selinux && takes_label(draft.type) && !spec.linux_.mount_label.empty())
        draft.options.data.push_back({"context", spec.linux_.mount_label, true});
      if (!mount.source.empty()) draft.options.data.insert(draft.options.data.begin(), {"source", mount.source, true});
      // Later steps write to it. If it is read-only, they use a separate procfs.
      if (mount.type == "proc" && !(draft.options.set & MOUNT_ATTR_RDONLY)) draft.flags |= launch::kMountProc;
      if (mount.type == "tmpfs" && !draft.options.copies_up && !has_mode(draft.options)) draft.flags |= launch::kMountKeepMode;
      if (mount.type == "sysfs" && sandbox.is_pod && !sandbox.has_network) draft.options.set |= MOUNT_ATTR_RDONLY;
    }
    out.push_back(std::move(draft));
  }
  return out;
}

std::optional<uint32_t> plan_cgroup_owner(const oci::Spec& spec, const NamespacePlan& namespaces, const IdMaps& ids) {
  const bool is_writable = std::any_of(spec.mounts.begin(), spec.mounts.end(), [](const oci::Mount& mount) {
    return mount.source == "cgroup" && mount.destination == "/sys/fs/cgroup" &&
           std::count(mount.options.begin(), mount.options.end(), "ro") == 0;
  });
  if (!namespaces.new_cgroup || !is_writable) return std::nullopt;
  const uint32_t uid = spec.process.user.uid;
  auto owner = ids.uids.empty() ? std::optional(uid) : IdMaps::host_id(ids.uids, uid);
  return owner == 0u ? std::nullopt : owner;
}

namespace {

// One of the default devices, which every container has.
bool is_everybody_s(const oci::Device& device) {
  const auto& defaults = oci::default_devices();
  return std::any_of(defaults.begin(), defaults.end(), [&](const oci::Device& each) {
    return each.type == device.type && each.major == device.major && each.minor == device.minor;
  });
}

}  // namespace

// A container whose root is not the host's root does not own the host's disks: a requested device keeps its owner. That is
// equivalent to a bind mount of the host's node, which other runtimes use because they cannot create device nodes in a user
// namespace.
std::vector<oci::Device> plan_devices(const oci::Spec& spec, const IdMaps& ids) {
  std::vector<oci::Device> out = spec.linux_.devices;
  for (oci::Device& device : out) device.path = oci::plain_path(device.path);
  auto is_given = [&](const std::string& path) {
    for (const oci::Device& device : spec.linux_.devices)
      if (oci::plain_path(device.path) == path) return true;
    for (const oci::Mount& mount : spec.mounts)
      if (mount.destination == path ||
          (mount.destination == "/dev" && (mount.type == "bind" || mount.type == "devtmpfs" || mount.source_fd)))
        return true;  // it is part of a mount, for example the host's /dev
    return false;
  };
  for (const oci::Device& device : oci::default_devices())
    if (!is_given(device.path)) out.push_back(device);
  for (oci::Device& device : out) {
    if (!ids.uids.empty() && !is_everybody_s(device)) continue;
    device.uid = ids.uid(device.uid.value_or(0));
    device.gid = ids.gid(device.gid.value_or(0));
  }
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
  // The last match decides, so the caller's rules keep their order. The defaults come last, as with runc and crun: every
  // container can use its default devices. Without any rule of the caller, only the defaults are allowed (GHSA-g54h-m393-cpwq: a
  // list that denies by default).
  for (const oci::DeviceRule& rule : spec.linux_.resources.devices) add(rule);
  for (const oci::DeviceRule& rule : oci::default_device_rules()) add(rule);
  return out;
}

std::vector<std::pair<std::string, std::string>> plan_links(const oci::Spec& spec, const SandboxInfo& sandbox) {
  std::vector<std::pair<std::string, std::string>> out;
  bool has_dev = false, has_pts = false;
  for (const oci::Mount& mount : spec.mounts) {
    has_dev |= mount.destination == "/dev" && mount.type == "tmpfs";
    has_pts |= mount.destination == "/dev/pts";
  }
  if (has_dev)
    out = {{"/proc/self/fd", "/dev/fd"},
           {"/proc/self/fd/0", "/dev/stdin"},
           {"/proc/self/fd/1", "/dev/stdout"},
           {"/proc/self/fd/2", "/dev/stderr"},
           {"/proc/kcore", "/dev/core"}};
  if (has_dev && has_pts) out.emplace_back("pts/ptmx", "/dev/ptmx");
  for (const oci::Mount& mount : spec.mounts)
    for (const cgroup::V1Hierarchy& hierarchy : sandbox.v1)
      for (const std::string& controller : hierarchy.controllers)
        if (mount.type == "cgroup" && controller != v1_directory(hierarchy))
          out.emplace_back(v1_directory(hierarchy), destination_of(mount) + "/" + controller);
  return out;
}

std::vector<std::string> plan_env(const std::vector<std::string>& env) {
  auto name_of = [](const std::string& item) { return std::string_view(item).substr(0, item.find('=')); };
  auto repeats = [&](const std::string& a, const std::string& b) { return name_of(a) >= name_of(b); };
  if (std::ranges::adjacent_find(env, repeats) == env.end()) return env;  // sorted, as pods have it
  std::map<std::string_view, size_t> last;
  for (size_t i = 0; i < env.size(); ++i) last[name_of(env[i])] = i;
  std::vector<std::string> out;
  for (size_t i = 0; i < env.size(); ++i)
    if (last[name_of(env[i])] == i) out.push_back(env[i]);
  return out;
}

std::vector<std::string> plan_programs(const std::string& program, const std::vector<std::string>& env) {
  if (program.find('/') != program.npos) return {program};
  std::string path;
  (void)env_value(env, "PATH", path);
  std::vector<std::string> out;
  for (std::string_view dir : split(path, ':')) {
    if (dir.empty()) continue;  // it would mean the working directory, which the image sets
    out.push_back(std::string(dir) + "/" + program);
  }
  return out;
}

Result<CapabilitySets> plan_capabilities(const oci::Capabilities& wanted, const LauncherInfo& own) {
  CapabilitySets out;
  out.bounding = TRY(oci::capability_set(wanted.bounding)) & own.capabilities;
  out.permitted = TRY(oci::capability_set(wanted.permitted)) & own.capabilities;
  out.effective = TRY(oci::capability_set(wanted.effective)) & out.permitted;
  out.inheritable = TRY(oci::capability_set(wanted.inheritable)) & own.capabilities;
  out.ambient = TRY(oci::capability_set(wanted.ambient)) & out.permitted & out.inheritable;
  return out;
}

namespace {

std::vector<std::string> not_in(uint64_t granted, const std::vector<std::string>& wanted) {
  std::vector<std::string> out;
  for (const std::string& name : wanted)
    if (auto number = oci::capability_number(name); number && !(granted >> *number & 1)) out.push_back(name);
  return out;
}

}  // namespace

std::string capabilities_not_granted(const oci::Capabilities& wanted, const CapabilitySets& granted) {
  struct Set {
    const char* name;
    const std::vector<std::string>& wanted;
    uint64_t granted;
  };
  std::vector<std::string> out;
  for (const Set& set :
       {Set{"bounding", wanted.bounding, granted.bounding}, Set{"effective", wanted.effective, granted.effective},
        Set{"permitted", wanted.permitted, granted.permitted}, Set{"inheritable", wanted.inheritable, granted.inheritable}})
    for (const std::string& name : not_in(set.granted, set.wanted)) out.push_back(std::string(set.name) + " " + name);
  return join(out, ", ");
}

std::vector<std::string> ambient_not_granted(const oci::Capabilities& wanted, const CapabilitySets& granted) {
  return not_in(granted.ambient, wanted.ambient);
}

bool may_lower_oom_score(const LauncherInfo& own) { return own.is_host_root && own.capabilities >> kCapSysResource & 1; }

int plan_oom_score(int wanted, const LauncherInfo& own) {
  return may_lower_oom_score(own) ? wanted : std::max(wanted, own.oom_score_adj);
}

// ---- names to numbers ----

namespace {

template <typename T>
Result<T> number_of(const std::map<std::string, T>& known, const std::string& word, const char* field) {
  auto found = known.find(word);
  if (found == known.end()) return Error(Code::invalid, std::string(field) + ": " + coracle::quoted(word));
  return found->second;
}

}  // namespace

namespace {

struct SchedulerAttributes {  // sched_attr, whose header clashes with <sched.h>
  uint32_t size, sched_policy;
  uint64_t sched_flags;
  int32_t sched_nice;
  uint32_t sched_priority;
  uint64_t sched_runtime, sched_deadline, sched_period;
  uint32_t sched_util_min, sched_util_max;
};
static_assert(sizeof(SchedulerAttributes) == 56);

}  // namespace

Result<std::string> plan_scheduler(const oci::Scheduler& in) {
  static const std::map<std::string, uint32_t> policies = {{"SCHED_OTHER", 0},   {"SCHED_FIFO", 1}, {"SCHED_RR", 2},
                                                           {"SCHED_BATCH", 3},   {"SCHED_ISO", 4},  {"SCHED_IDLE", 5},
                                                           {"SCHED_DEADLINE", 6}};
  static const std::map<std::string, uint64_t> flags = {{"SCHED_FLAG_RESET_ON_FORK", 1},  {"SCHED_FLAG_RECLAIM", 2},
                                                        {"SCHED_FLAG_DL_OVERRUN", 4},     {"SCHED_FLAG_KEEP_POLICY", 8},
                                                        {"SCHED_FLAG_KEEP_PARAMS", 16},   {"SCHED_FLAG_UTIL_CLAMP_MIN", 32},
                                                        {"SCHED_FLAG_UTIL_CLAMP_MAX", 64}};
  SchedulerAttributes attributes{};
  attributes.size = sizeof attributes;
  attributes.sched_policy = TRY(number_of(policies, in.policy, "process.scheduler.policy"));
  attributes.sched_nice = in.nice.value_or(0);
  attributes.sched_priority = uint32_t(in.priority.value_or(0));
  attributes.sched_runtime = in.runtime_ns.value_or(0);
  attributes.sched_deadline = in.deadline_ns.value_or(0);
  attributes.sched_period = in.period_ns.value_or(0);
  for (const std::string& flag : in.flags) attributes.sched_flags |= TRY(number_of(flags, flag, "process.scheduler.flags"));
  return std::string(reinterpret_cast<const char*>(&attributes), sizeof attributes);
}

Result<int32_t> plan_io_priority(const oci::IoPriority& in) {
  static const std::map<std::string, int32_t> classes = {
      {"IOPRIO_CLASS_RT", kRealTime}, {"IOPRIO_CLASS_BE", kBestEffort}, {"IOPRIO_CLASS_IDLE", kIdle}};
  int32_t number = TRY(number_of(classes, in.io_class, "process.ioPriority.class"));
  return number << kIoClassShift | in.priority;
}

Result<int64_t> plan_personality(const oci::Personality& in) {
  static const std::map<std::string, int64_t> domains = {{"LINUX", PER_LINUX}, {"LINUX32", PER_LINUX32}};
  if (!in.flags.empty()) return Error(Code::unsupported, "linux.personality.flags: " + coracle::quoted(in.flags[0]));
  return number_of(domains, in.domain, "linux.personality.domain");
}

Result<std::vector<uint64_t>> plan_bits(const std::string& list, const char* field) {
  constexpr uint32_t kBitsMax = 8192;
  std::vector<uint64_t> out;
  for (std::string_view part : split(list, ',')) {
    auto ends = split(trim(part), '-');
    auto first = parse_number<uint32_t>(ends[0]), last = parse_number<uint32_t>(ends.back());
    if (ends.size() > 2 || !first || !last || *first > *last || *last >= kBitsMax)
      return Error(Code::invalid, std::string(field) + ": " + coracle::quoted(list));
    for (uint32_t bit = *first; bit <= *last; ++bit) {
      out.resize(std::max<size_t>(out.size(), bit / 64 + 1));
      out[bit / 64] |= uint64_t(1) << bit % 64;
    }
  }
  return out;
}

Result<int32_t> plan_memory_mode(const oci::MemoryPolicy& in) {
  static const std::map<std::string, int32_t> modes = {
      {"MPOL_DEFAULT", 0},        {"MPOL_PREFERRED", 1},          {"MPOL_BIND", 2}, {"MPOL_INTERLEAVE", 3}, {"MPOL_LOCAL", 4},
      {"MPOL_PREFERRED_MANY", 5}, {"MPOL_WEIGHTED_INTERLEAVE", 6}};
  static const std::map<std::string, int32_t> flags = {
      {"MPOL_F_STATIC_NODES", 1 << 15}, {"MPOL_F_RELATIVE_NODES", 1 << 14}, {"MPOL_F_NUMA_BALANCING", 1 << 13}};
  int32_t out = TRY(number_of(modes, in.mode, "linux.memoryPolicy.mode"));
  for (const std::string& flag : in.flags) out |= TRY(number_of(flags, flag, "linux.memoryPolicy.flags"));
  return out;
}

}  // namespace coracle::runtime
