// SPDX-License-Identifier: Apache-2.0
// See prepare.h.
#include "runtime/container/prepare.h"

#include <linux/magic.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "runtime/base/text.h"
#include "runtime/oci/validate.h"
#include "runtime/sys/apparmor.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"

namespace coracle::runtime {
namespace {

constexpr uint64_t kRec = 16384, kUnbindable = 1 << 17, kPrivate = 1 << 18, kSlave = 1 << 19, kShared = 1 << 20;  // MS_*
constexpr size_t kPlanBytesMax = 16 << 20;

// Builds the flat plan: everything is appended, aligned, and referenced by its offset.
class PlanWriter {
 public:
  PlanWriter() : bytes_(sizeof(launch::Plan), '\0') {}

  uint32_t text(const std::string& text) {
    uint32_t at = uint32_t(bytes_.size());
    bytes_.append(text.c_str(), text.size() + 1);
    return at;
  }
  uint32_t text_or_none(const std::string& value) { return value.empty() ? launch::kNoString : text(value); }
  template <typename T>
  launch::Range items(const std::vector<T>& items) {
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
    launch::Range range{uint32_t(bytes_.size()), uint32_t(items.size())};
    if (!items.empty()) bytes_.append(reinterpret_cast<const char*>(items.data()), items.size() * sizeof(T));
    return range;
  }
  launch::Range texts(const std::vector<std::string>& list) {
    std::vector<uint32_t> offsets;
    for (const std::string& item : list) offsets.push_back(text(item));
    return items(offsets);
  }
  launch::Range vector(const std::vector<std::string>& list) {  // argv, env
    std::vector<uint64_t> slots;
    for (const std::string& item : list) slots.push_back(text(item));
    slots.push_back(0);
    return items(slots);
  }
  // Returns the plan as a sealed memfd.
  Result<Fd> finish(launch::Plan& plan) {
    if (bytes_.size() > kPlanBytesMax) return Error(Code::too_large, "launch plan");
    plan.magic = launch::kPlanMagic;
    plan.version = launch::kPlanVersion;
    plan.size = uint32_t(bytes_.size());
    std::memcpy(bytes_.data(), &plan, sizeof plan);
    return sys::make_memfd("coracle-plan", bytes_, true);
  }

 private:
  std::string bytes_;
};

std::vector<oci::IdMapping> mappings(const std::vector<sys::IdRange>& ranges) {
  std::vector<oci::IdMapping> out;
  for (const sys::IdRange& range : ranges) out.push_back({range.inside, range.outside, range.size});
  return out;
}

Result<bool> is_directory(const Fd& fd) {
  struct stat about = TRY(sys::stat(fd));
  return bool(S_ISDIR(about.st_mode));
}

// Most mounts use the container's maps, for which the existing user namespace serves.
Result<void> map_ids(const Fd& mount, const MountDraft& draft, const UserNamespace* user) {
  sys::OwnedNamespaces made;
  const bool is_own = user && draft.uid_mappings == user->ids.uids && draft.gid_mappings == user->ids.gids;
  if (!is_own) made = TRY(sys::make_user_namespace(id_ranges(draft.uid_mappings), id_ranges(draft.gid_mappings), 0));
  auto mapped = sys::change_mount(
      mount, {.id_map = is_own ? &user->owned.user : &made.user, .recursive = draft.options.is_recursively_idmapped});
  if (!mapped && mapped.error().err() == EINVAL) return mapped.take_error().wrap("idmap: its file system cannot be id-mapped");
  return std::move(mapped).wrap("idmap");
}

// A detached, configured copy of the host's mount at the source.
Result<Fd> make_bind(const MountDraft& draft, const UserNamespace* user) {
  Fd opened;
  if (!draft.source_fd) opened = TRY(sys::open(draft.source, O_PATH | (draft.options.takes_link ? O_NOFOLLOW : 0)));
  const Fd& source = draft.source_fd ? *draft.source_fd : opened;
  auto cloned = sys::clone_mount(source, draft.options.is_recursive);
  // Older kernels cannot copy a detached mount; it is passed on instead.
  if (!cloned && draft.source_fd && cloned.error().err() == EINVAL) cloned = sys::duplicate(source);
  Fd mount = TRY(std::move(cloned));
  // Private unless propagation is requested: the container's mounts do not leave it.
  uint64_t propagation = draft.options.propagation ? draft.options.propagation : kPrivate | kRec;
  if (propagation & kUnbindable)
    propagation = kPrivate | (propagation & kRec);  // the child sets it last: an unbindable mount cannot be bound
  TRY(sys::change_mount(mount, {.propagation = propagation & ~kRec, .recursive = (propagation & kRec) != 0}));
  if (draft.options.is_idmapped) TRY(map_ids(mount, draft, user));
  if (draft.options.set || draft.options.clear)
    TRY(sys::change_mount(mount, {.set = draft.options.set, .clear = draft.options.clear}));
  if (draft.options.set_recursive || draft.options.clear_recursive)
    TRY(sys::change_mount(mount,
                          {.set = draft.options.set_recursive, .clear = draft.options.clear_recursive, .recursive = true}));
  return mount;
}

// The target of a source that is a link. Nothing: it is none.
Result<std::optional<std::string>> link_of(const MountDraft& draft) {
  if (!draft.options.copies_link || draft.source_fd) return std::optional<std::string>();
  Fd source = TRY(sys::open(draft.source, O_PATH | O_NOFOLLOW));
  auto target = sys::read_link_at(source, "");
  if (!target && target.error().code() == Code::not_found) return std::optional<std::string>();
  std::string found = TRY(std::move(target));
  return std::optional<std::string>(std::move(found));
}

// `by_age`: mounts are listed in the order of their creation.
Result<launch::MountStep> write_mount(PlanWriter& writer, const MountDraft& draft, const UserNamespace* user, bool by_age,
                                      Prepared& out) {
  launch::MountStep step{};
  step.kind = draft.kind;
  step.flags = draft.flags;
  step.destination = writer.text(draft.destination);
  step.fd = -1;
  if (draft.kind == launch::MountKind::own_directory) return step;
  auto link = TRY(link_of(draft).wrap("mount " + draft.destination));
  if (link) {
    step.kind = launch::MountKind::link;
    step.type = writer.text(*link);
    return step;
  }
  if (draft.kind == launch::MountKind::attach) {
    const std::string name = draft.source_fd && !draft.source.empty() ? " (" + draft.source + ")" : "";
    Fd mount = TRY(make_bind(draft, user).wrap("mount " + draft.destination + name));
    bool on_directory = TRY(is_directory(mount).wrap("mount " + draft.destination));
    if (!on_directory) step.flags |= launch::kMountOnFile;
    else if (by_age) step.flags |= launch::kMountAnew;
    step.fd = int32_t(launch::kFdMore + out.fds.size());
    out.fds.push_back(std::move(mount));
    if (draft.options.propagation & (kUnbindable | kShared)) step.propagation = draft.options.propagation;
    return step;
  }
  step.attributes = draft.options.set | draft.options.set_recursive;
  step.propagation = draft.options.propagation;
  if (draft.kind == launch::MountKind::inner || draft.kind == launch::MountKind::outer) step.type = writer.text(draft.source);
  if (draft.kind != launch::MountKind::file_system) return step;
  step.type = writer.text(draft.type);
  std::vector<uint32_t> options;
  for (const sys::FsOption& option : draft.options.data) {
    options.push_back(writer.text(option.key));
    options.push_back(option.has_value ? writer.text(option.value) : launch::kNoString);
  }
  step.options = writer.items(options);
  return step;
}

Result<void> write_mounts(PlanWriter& writer, const PrepareInput& input, launch::Plan& plan, Prepared& out) {
  std::vector<launch::MountStep> steps;
  auto drafts = TRY(plan_mounts(*input.spec, input.sandbox, input.user ? input.user->ids : IdMaps{}));
  const bool by_age = !input.sandbox.is_pod && sys::lists_mounts_by_age();
  for (const MountDraft& draft : drafts) {
    launch::MountStep step = TRY(write_mount(writer, draft, input.user, by_age, out));
    steps.push_back(step);
    out.mounts.push_back(draft.destination);
  }
  plan.mounts = writer.items(steps);
  return {};
}

void write_devices(PlanWriter& writer, const oci::Spec& spec, const SandboxInfo& sandbox, const IdMaps& ids, launch::Plan& plan) {
  std::vector<launch::DeviceStep> devices;
  for (const oci::Device& device : plan_devices(spec, ids)) {
    uint32_t type = device.type == "b" ? uint32_t(S_IFBLK) : device.type == "p" ? uint32_t(S_IFIFO) : uint32_t(S_IFCHR);
    devices.push_back({writer.text(device.path), type | (device.file_mode.value_or(0666) & 07777), device.uid.value_or(0),
                       device.gid.value_or(0), uint32_t(device.major), uint32_t(device.minor)});
  }
  plan.devices = writer.items(devices);
  std::vector<launch::LinkStep> links;
  for (const auto& [target, path] : plan_links(spec, sandbox)) links.push_back({writer.text(target), writer.text(path)});
  plan.links = writer.items(links);
}

// A namespace that is joined by path may be the host's. Then its settings may be changed no more than for a container without
// that namespace.
Result<void> note_host_s(const Fd& joined, const std::string& type, SandboxInfo& info) {
  bool* has = type == "network" ? &info.has_network : type == "ipc" ? &info.has_ipc : &info.has_uts;
  if (type != "network" && type != "ipc" && type != "uts") return {};
  const bool is_ours = TRY(sys::is_own_namespace(joined, type == "network" ? "net" : type.c_str()));
  if (is_ours) *has = false;
  return {};
}

int32_t keep(Prepared& out, Fd fd) {
  out.fds.push_back(std::move(fd));
  return int32_t(launch::kFdMore + out.fds.size() - 1);
}

Result<void> join_by_path(const NamespacePlan& namespaces, std::vector<launch::JoinStep>& joins, Prepared& out,
                          SandboxInfo& info) {
  for (const auto& [type, path] : namespaces.joined) {
    if (type == "mount") continue;  // joined last: the other paths are on the host
    Fd fd = TRY(sys::open(path, O_RDONLY).wrap("linux.namespaces: " + type));
    TRY(note_host_s(fd, type, info));
    if (type == "pid") out.pid_namespace = std::move(fd);
    else joins.push_back({keep(out, std::move(fd)), uint32_t(*sys::namespace_flag(type))});
  }
  if (auto mount = namespaces.joined.find("mount"); mount != namespaces.joined.end()) {
    Fd fd = TRY(sys::open(mount->second, O_RDONLY).wrap("linux.namespaces: mount"));
    joins.push_back({keep(out, std::move(fd)), CLONE_NEWNS});
  }
  return {};
}

// A mounted cgroup2 shows the container's cgroup as its root (CVE-2023-25809). If the container uses the host's cgroup namespace,
// the mount is made in a temporary one.
void write_cgroup_namespace(const NamespacePlan& namespaces, launch::Plan& plan) {
  if (namespaces.joined.count("cgroup")) return;
  if (namespaces.new_cgroup) plan.unshare |= CLONE_NEWCGROUP;
  else plan.flags |= launch::kPlanHostCgroups;
}

Result<void> write_namespaces(PlanWriter& writer, const PrepareInput& input, launch::Plan& plan, Prepared& out,
                              SandboxInfo& info) {
  NamespacePlan namespaces = TRY(plan_namespaces(*input.spec, input.sandbox));
  std::vector<launch::JoinStep> joins;
  out.clone_flags = namespaces.fresh;
  if (namespaces.joined.count("mount")) plan.flags |= launch::kPlanJoinedMounts;
  if (namespaces.in_host_tree) plan.flags |= launch::kPlanInHostTree;
  if (input.user) {
    const sys::OwnedNamespaces& owned = input.user->owned;
    for (auto [fd, flag] :
         {std::pair(&owned.network, CLONE_NEWNET), std::pair(&owned.ipc, CLONE_NEWIPC), std::pair(&owned.uts, CLONE_NEWUTS)}) {
      if (!*fd) continue;
      Fd copy = TRY(sys::duplicate(*fd));
      joins.push_back({keep(out, std::move(copy)), uint32_t(flag)});
      out.clone_flags &= ~uint64_t(flag);
    }
    Fd user = TRY(sys::duplicate(owned.user));
    plan.user_fd = keep(out, std::move(user));
    if (!namespaces.in_host_tree) plan.flags |= launch::kPlanUnshareMounts;
  }
  TRY(join_by_path(namespaces, joins, out, info));
  plan.joins = writer.items(joins);
  write_cgroup_namespace(namespaces, plan);
  if (!input.sandbox.is_pod) {
    plan.flags |= launch::kPlanHostTree;
    if (namespaces.fresh & CLONE_NEWNET) plan.flags |= launch::kPlanLoopback;
  } else if (input.sandbox.shared_pid) {
    out.request_flags |= pause::kSharedPidNamespace;
  } else if (!input.sandbox.host_pid) {
    out.request_flags |= pause::kNewPidNamespace;
  } else {
    plan.flags |= launch::kPlanDieWithPause;
  }
  return {};
}

Result<void> write_sysctls(PlanWriter& writer, const PrepareInput& input, const SandboxInfo& info, launch::Plan& plan) {
  // The container shares the sandbox's namespaces, so only sysctls of namespaces that are not the host's are allowed.
  TRY(oci::check_sysctls(input.spec->linux_.sysctl, info.has_network, info.has_ipc, info.has_uts));
  std::vector<launch::SysctlStep> steps;
  for (const auto& [name, value] : input.spec->linux_.sysctl)
    steps.push_back({writer.text(oci::sysctl_path(name)), writer.text(value)});
  plan.sysctls = writer.items(steps);
  return {};
}

Result<void> write_rlimits(PlanWriter& writer, const oci::Process& process, const LauncherInfo& own, launch::Plan& plan) {
  std::vector<launch::RlimitStep> steps;
  for (const oci::Rlimit& limit : process.rlimits) {
    auto number = sys::rlimit_number(limit.type);
    if (!number) return Error(Code::invalid, "process.rlimits: unknown type " + coracle::quoted(limit.type));
    sys::Limits mine = TRY(sys::own_limit(*number).wrap("process.rlimits: " + limit.type));
    bool may_raise = own.is_host_root && own.capabilities >> kCapSysResource & 1;
    if (limit.hard > mine.hard && !may_raise)
      return Error(Code::forbidden, "process.rlimits: " + limit.type + ": " + std::to_string(limit.hard) +
                                        " is above this machine's hard limit " + std::to_string(mine.hard) +
                                        ", and without CAP_SYS_RESOURCE it cannot be raised");
    steps.push_back({uint32_t(*number), 0, limit.soft, limit.hard});
  }
  plan.rlimits = writer.items(steps);
  return {};
}

Result<void> write_scheduling(PlanWriter& writer, const oci::Process& process, launch::Plan& plan) {
  plan.io_priority = -1;
  if (process.scheduler) {
    std::string attributes = TRY(plan_scheduler(*process.scheduler));
    plan.scheduler = writer.items(std::vector<char>(attributes.begin(), attributes.end()));
  }
  if (process.io_priority) plan.io_priority = TRY(plan_io_priority(*process.io_priority));
  return {};
}

// Only for exec; the cgroup limits the processors of the container's own process.
Result<void> write_affinity(PlanWriter& writer, const oci::Process& process, launch::Plan& plan) {
  const oci::CpuAffinity affinity = process.exec_cpu_affinity.value_or(oci::CpuAffinity());
  if (affinity.initial.empty() && affinity.final_cpus.empty()) plan.flags |= launch::kPlanAllProcessors;
  if (affinity.final_cpus.empty()) return {};
  auto bits = TRY(plan_bits(affinity.final_cpus, "process.execCPUAffinity.final"));
  plan.affinity = writer.items(bits);
  return {};
}

// A label that is not enforced must be an error.
Result<void> check_labels(const oci::Process& process) {
  if (!process.apparmor_profile.empty() && !sys::is_apparmor_enabled())
    return Error(Code::unsupported, "process.apparmorProfile: this kernel has no AppArmor switched on");
  if (!process.selinux_label.empty() && !sys::exists("/sys/fs/selinux/enforce"))
    return Error(Code::unsupported, "process.selinuxLabel: this kernel has no SELinux switched on");
  return {};
}

void write_cgroups(PlanWriter& writer, const PrepareInput& input, launch::Plan& plan, Prepared& out) {
  if (!input.v1_tasks || input.v1_tasks->empty()) return;
  std::vector<int32_t> tasks;
  for (Fd& each : *input.v1_tasks) tasks.push_back(keep(out, std::move(each)));
  plan.v1_tasks = writer.items(tasks);
  plan.flags |= launch::kPlanV1;
}

// What the container's first process and an exec have in common.
Result<void> write_process(PlanWriter& writer, const PrepareInput& input, const oci::Process& process, launch::Plan& plan,
                           Prepared& out) {
  TRY(check_labels(process));
  write_cgroups(writer, input, plan, out);
  plan.cwd = writer.text(process.cwd);
  // The kernel expects a command. Source: AppArmor's attr/exec, as written by aa_change_onexec(2).
  plan.apparmor = writer.text_or_none(process.apparmor_profile.empty() ? "" : "exec " + process.apparmor_profile);
  plan.selinux = writer.text_or_none(process.selinux_label);
  plan.programs = writer.texts(process.args.empty() ? std::vector<std::string>() : plan_programs(process.args[0], process.env));
  plan.argv = writer.vector(process.args);
  plan.env = writer.vector(plan_env(process.env));
  plan.uid = process.user.uid;
  plan.gid = process.user.gid;
  plan.groups = writer.items(process.user.additional_gids);
  if (process.user.umask) {
    plan.flags |= launch::kPlanSetUmask;
    plan.umask = *process.user.umask;
  }
  // Without a value the process keeps that of its launcher, as the specification requires; coracle-pause's is its own.
  if (process.oom_score_adj || input.sandbox.is_pod) {
    plan.flags |= launch::kPlanSetOomScore;
    plan.oom_score_adj = plan_oom_score(process.oom_score_adj.value_or(0), input.own);
  }
  if (process.no_new_privileges) plan.flags |= launch::kPlanNoNewPrivileges;
  if (process.terminal) {
    plan.flags |= launch::kPlanTerminal;
    plan.columns = process.console_width;
    plan.rows = process.console_height;
    out.request_flags |= pause::kTerminal;
  }
  plan.flags |= launch::kPlanCapabilities;
  LauncherInfo own = input.own;
  if (input.user) own.capabilities = ~uint64_t(0);  // root of its own user namespace has all capabilities
  CapabilitySets sets = TRY(plan_capabilities(process.capabilities.value_or(oci::Capabilities{}), own));
  plan.bounding = sets.bounding;
  plan.effective = sets.effective;
  plan.permitted = sets.permitted;
  plan.inheritable = sets.inheritable;
  plan.ambient = sets.ambient;
  TRY(write_rlimits(writer, process, input.own, plan));
  TRY(write_scheduling(writer, process, plan));
  const IdMaps ids = input.user ? input.user->ids : IdMaps{};
  plan.terminal_uid = ids.uid(process.user.uid);
  const bool cannot_set = !input.own.may_set_groups && process.user.additional_gids.empty();
  if (input.keeps_groups || cannot_set) plan.flags |= launch::kPlanKeepGroups;
  plan.keyring = writer.text_or_none(input.keyring);
  plan.kept_fds = input.kept_fds;
  if (input.seccomp) {
    if (input.seccomp->listener && input.sandbox.is_pod)  // in a pod nobody would receive the descriptor
      return Error(Code::unsupported, "linux.seccomp: SCMP_ACT_NOTIFY");
    plan.seccomp_flags = input.seccomp->flags;
    plan.seccomp = writer.items(input.seccomp->instructions);
  }
  return {};
}

bool has_reports(const PrepareInput& input, const launch::Plan& plan) {
  return plan.flags & (launch::kPlanTerminal | launch::kPlanGate | launch::kPlanHold) ||
         (input.seccomp && input.seccomp->listener);
}

uint64_t propagation_of(const std::string& name) {
  uint64_t flags = name.ends_with("shared")       ? 1 << 20
                   : name.ends_with("slave")      ? 1 << 19
                   : name.ends_with("unbindable") ? 1 << 17
                                                  : 0;
  if (flags && name.starts_with("r")) flags |= kRec;
  return flags;
}

// `env`: for hooks without an environment.
launch::Range write_hooks(PlanWriter& writer, const std::vector<oci::Hook>& hooks, const std::vector<std::string>& env) {
  std::vector<launch::HookStep> steps;
  for (const oci::Hook& hook : hooks) {
    launch::HookStep step{};
    step.path = writer.text(hook.path);
    step.timeout_seconds = uint32_t(std::max(0, hook.timeout_seconds.value_or(0)));
    step.argv = writer.vector(hook.args.empty() ? std::vector<std::string>{hook.path} : hook.args);
    step.env = writer.vector(hook.env.value_or(env));
    steps.push_back(step);
  }
  return writer.items(steps);
}

Result<void> write_personality(PlanWriter& writer, const oci::Linux& linux_, launch::Plan& plan) {
  plan.personality = plan.memory_mode = -1;
  if (linux_.personality) plan.personality = TRY(plan_personality(*linux_.personality));
  if (!linux_.memory_policy) return {};
  plan.memory_mode = TRY(plan_memory_mode(*linux_.memory_policy));
  std::vector<uint64_t> nodes;
  if (!linux_.memory_policy->nodes.empty()) nodes = TRY(plan_bits(linux_.memory_policy->nodes, "linux.memoryPolicy.nodes"));
  plan.memory_nodes = writer.items(nodes);
  return {};
}

}  // namespace

std::vector<sys::IdRange> id_ranges(const std::vector<oci::IdMapping>& maps) {
  std::vector<sys::IdRange> out;
  for (const oci::IdMapping& map : maps) out.push_back({map.container_id, map.host_id, map.size});
  return out;
}

// These values decide how a container is confined, so errors are not ignored.
Result<LauncherInfo> launcher_info() {
  LauncherInfo out;
  out.capabilities = TRY(sys::own_capabilities());
  out.is_host_root = TRY(sys::in_initial_user_namespace());
  if (!may_lower_oom_score(out)) out.oom_score_adj = TRY(sys::own_oom_score());
  if (!out.is_host_root) out.may_set_groups = TRY(sys::may_set_groups());  // nobody can forbid it in the initial one
  return out;
}

std::vector<int> Prepared::in_order(const Fd* cgroup, const Fd* const streams[3], const Fd* log_directory) const {
  // An unused descriptor is replaced by the plan's.
  std::vector<int> out(launch::kFdMore, plan.get());
  if (cgroup && *cgroup) out[launch::kFdCgroup] = cgroup->get();
  for (int i = 0; i < 3; ++i)
    if (streams && streams[i] && *streams[i]) out[launch::kFdStdin + i] = streams[i]->get();
  if (log_directory) out[launch::kFdLogDirectory] = log_directory->get();
  for (const Fd& fd : fds) out.push_back(fd.get());
  return out;
}

Result<std::optional<UserNamespace>> prepare_user_namespace(const oci::Spec& spec, const NamespacePlan& namespaces) {
  const uint64_t others = namespaces.fresh & (CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS);
  std::optional<UserNamespace> out;
  if (namespaces.new_user) {
    out.emplace();
    out->owned = TRY(sys::make_user_namespace(id_ranges(spec.linux_.uid_mappings), id_ranges(spec.linux_.gid_mappings), others)
                         .wrap("linux.uidMappings"));
  } else if (!namespaces.user_path.empty()) {
    Fd user = TRY(sys::open(namespaces.user_path, O_RDONLY).wrap("linux.namespaces: user"));
    out.emplace();
    out->owned = TRY(sys::join_user_namespace(user, others).wrap("linux.namespaces: user"));
  }
  if (out) out->ids = {mappings(out->owned.uids), mappings(out->owned.gids)};
  return out;
}

Result<UserNamespace> user_namespace_of(const Fd& pidfd) {
  Fd user = TRY(sys::namespace_of(pidfd, "user"));
  UserNamespace out;
  out.owned = TRY(sys::join_user_namespace(user, 0));
  out.ids = {mappings(out.owned.uids), mappings(out.owned.gids)};
  return out;
}

Result<Fd> open_root(const std::string& path, bool in_host_tree, const std::string& propagation) {
  Fd dir = TRY(sys::open(path, O_PATH | O_DIRECTORY).wrap("root"));
  if (in_host_tree) return dir;
  Fd mount = TRY(sys::clone_mount(dir, true).wrap("root"));
  // The copy of a shared mount is its peer until then: a private one cannot become a slave any more.
  const bool is_slave = propagation == "slave" || propagation == "rslave";
  TRY(sys::change_mount(mount, {.propagation = is_slave ? kSlave : kPrivate, .recursive = true}).wrap("root"));
  return mount;
}

namespace {

// Sends the descriptors that do not fit into one message into a socket, and passes that socket with the others.
Result<void> carry_rest(const SandboxInfo& sandbox, launch::Plan& plan, Prepared& out) {
  constexpr size_t kOwn = launch::kFdsMax - launch::kFdMore;
  if (out.fds.size() <= kOwn) return {};
  const size_t first = kOwn - 1;
  const bool fits = sandbox.launcher >= launch::kLauncherCarries && out.fds.size() - first <= launch::kCarriedMax;
  if (!fits) return Error(Code::too_large, "mounts: too many for one container");
  auto [from, carrier] = TRY(sys::make_socketpair(SOCK_SEQPACKET));
  for (size_t at = first; at < out.fds.size();) {
    std::vector<int> some;
    for (; some.size() < launch::kFdsMax && at < out.fds.size(); ++at) some.push_back(out.fds[at].get());
    const std::byte nothing{};
    TRY(sys::send_message(from, {&nothing, 1}, some).wrap("mounts"));
  }
  out.fds.erase(out.fds.begin() + ptrdiff_t(first), out.fds.end());
  out.fds.push_back(std::move(carrier));
  plan.flags |= launch::kPlanCarries;
  return {};
}

}  // namespace

Result<Prepared> prepare_container(const PrepareInput& input, Fd root) {
  const oci::Spec& spec = *input.spec;
  const IdMaps ids = input.user ? input.user->ids : IdMaps{};
  Prepared out;
  PlanWriter writer;
  launch::Plan plan{};
  plan.user_fd = -1;
  plan.root_fd = root ? keep(out, std::move(root)) : -1;
  SandboxInfo info = input.sandbox;
  TRY(write_namespaces(writer, input, plan, out, info));
  TRY(write_mounts(writer, input, plan, out));
  write_devices(writer, spec, input.sandbox, ids, plan);
  TRY(write_sysctls(writer, input, info, plan));
  plan.fs_uid = ids.uid(0);
  plan.fs_gid = ids.gid(0);
  plan.masked_paths = writer.texts(spec.linux_.masked_paths);
  plan.readonly_paths = writer.texts(spec.linux_.readonly_paths);
  plan.null_path = writer.text(input.sandbox.is_pod ? "/null" : "/dev/null");
  if (input.sandbox.is_pod) plan.empty_path = writer.text("/empty");
  plan.root_propagation = propagation_of(spec.linux_.rootfs_propagation);
  if (spec.root.readonly) plan.flags |= launch::kPlanReadonlyRoot;
  plan.flags |= launch::kPlanMakeDirectory | launch::kPlanAllProcessors;
  if (!input.sandbox.is_pod) {  // coracle-pause sets a pod's names
    plan.hostname = writer.text_or_none(spec.hostname);
    plan.domainname = writer.text_or_none(spec.domainname);
  }
  TRY(write_process(writer, input, spec.process, plan, out));
  TRY(write_personality(writer, spec.linux_, plan));
  plan.create_hooks = write_hooks(writer, spec.hooks.create_container, sys::own_environment());
  plan.start_hooks = write_hooks(writer, spec.hooks.start_container, plan_env(spec.process.env));
  if (input.root_path != "/") plan.root_path = writer.text_or_none(input.root_path);
  plan.bundle = writer.text_or_none(input.bundle);
  plan.create_state = writer.text(input.create_state);
  plan.start_state = writer.text(input.start_state);
  plan.state_tail = writer.text(input.state_tail);
  bool has_dev = std::any_of(spec.mounts.begin(), spec.mounts.end(),
                             [](const oci::Mount& mount) { return mount.destination == "/dev" && mount.type == "tmpfs"; });
  if (spec.process.terminal && has_dev) plan.flags |= launch::kPlanConsole;
  if (!input.pivots) plan.flags |= launch::kPlanNoPivot;
  if (input.waits) plan.flags |= launch::kPlanWait;
  if (!spec.hooks.prestart.empty() || !spec.hooks.create_runtime.empty()) plan.flags |= launch::kPlanGate;
  if (input.hold) plan.flags |= launch::kPlanHold;
  out.has_reports = has_reports(input, plan);
  TRY(carry_rest(input.sandbox, plan, out));
  out.plan = TRY(writer.finish(plan).wrap("launch plan"));
  return out;
}

namespace {

// The target's namespaces that an exec joins. Namespaces that the target shares with us are omitted: they may be the host's,
// which only host root may join (for example the time namespace).
Result<void> join_target(const Fd& target, launch::Plan& plan, Prepared& out) {
  uint64_t foreign = TRY(sys::foreign_namespaces(target).wrap("linux.namespaces"));
  if (foreign & CLONE_NEWPID) out.pid_namespace = TRY(sys::duplicate(target));         // as good as the namespace: setns(2)
  plan.target_namespaces = CLONE_NEWNS | uint32_t(foreign & ~uint64_t(CLONE_NEWPID));  // always the mount namespace
  return {};
}

// Who enters a container writes to its launcher's procfs. One of its own would take longer than all the rest: when it is closed,
// the kernel waits for all processors. Where the launcher has none that can be written, the child mounts one.
void give_proc(launch::Plan& plan, Prepared& out) {
  const bool is_needed = plan.flags & launch::kPlanSetOomScore || plan.apparmor || plan.selinux;
  if (!is_needed) return;
  auto proc = sys::open("/proc", O_PATH | O_DIRECTORY);
  auto about = proc ? sys::disk_usage(*proc) : Result<sys::DiskUsage>(proc.take_error());
  if (!about || about->magic != PROC_SUPER_MAGIC || !sys::open("/proc/self/oom_score_adj", O_WRONLY)) return;
  plan.proc_fd = keep(out, std::move(*proc));
  plan.flags |= launch::kPlanProc;
}

}  // namespace

Result<Prepared> prepare_exec(const PrepareInput& input, const oci::Process& process) {
  Prepared out;
  PlanWriter writer;
  launch::Plan plan{};
  plan.flags = launch::kPlanExec;
  plan.root_fd = plan.user_fd = -1;
  if (input.user) plan.flags |= launch::kPlanJoinTargetUser;
  if (!input.sandbox.is_pod) plan.flags |= launch::kPlanHostTree;
  if (input.target) TRY(join_target(*input.target, plan, out));
  TRY(write_process(writer, input, process, plan, out));
  TRY(write_affinity(writer, process, plan));
  TRY(write_personality(writer, input.spec->linux_, plan));
  give_proc(plan, out);
  out.has_reports = has_reports(input, plan);
  out.plan = TRY(writer.finish(plan).wrap("launch plan"));
  return out;
}

}  // namespace coracle::runtime
