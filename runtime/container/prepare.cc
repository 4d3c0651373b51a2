// SPDX-License-Identifier: Apache-2.0
// See prepare.h.
#include "runtime/container/prepare.h"

#include <linux/mount.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "runtime/base/text.h"
#include "runtime/oci/validate.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"

namespace coracle::runtime {
namespace {

constexpr uint64_t kRec = 16384;  // MS_REC
constexpr size_t kPlanBytesMax = 16 << 20;

// The flat plan while it grows: everything is appended, aligned, and named by its offset.
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
  // Finishes the plan as a descriptor that nobody can change any more.
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

bool is_directory(const Fd& fd) {
  auto about = sys::stat(fd);
  return about && S_ISDIR(about->st_mode);
}

// A copy of the host's mount at the source, shaped, in nobody's tree.
Result<Fd> make_bind(const MountDraft& draft) {
  Fd opened;
  if (!draft.source_fd) opened = TRY(sys::open(draft.source, O_PATH));
  const Fd& source = draft.source_fd ? *draft.source_fd : opened;
  auto cloned = sys::clone_mount(source, draft.options.is_recursive);
  // A source that is a detached mount itself cannot be copied by older kernels; it is ours to hand on.
  if (!cloned && draft.source_fd && cloned.error().err() == EINVAL) cloned = sys::duplicate(source);
  Fd mount = TRY(std::move(cloned));
  // Private unless propagation was asked for: what the container mounts stays in it.
  uint64_t propagation = draft.options.propagation ? draft.options.propagation : uint64_t((1 << 18) | kRec);
  TRY(sys::change_mount(mount, {.propagation = propagation & ~kRec, .recursive = (propagation & kRec) != 0}));
  if (draft.options.set || draft.options.clear)
    TRY(sys::change_mount(mount, {.set = draft.options.set, .clear = draft.options.clear}));
  if (draft.options.set_recursive || draft.options.clear_recursive)
    TRY(sys::change_mount(
        mount, {.set = draft.options.set_recursive, .clear = draft.options.clear_recursive, .recursive = true}));
  return mount;
}

Result<launch::MountStep> write_mount(PlanWriter& writer, const MountDraft& draft, Prepared& out) {
  launch::MountStep step{};
  step.kind = draft.kind;
  step.flags = draft.flags;
  step.destination = writer.text(draft.destination);
  step.fd = -1;
  if (draft.kind == launch::MountKind::attach) {
    Fd mount = TRY(make_bind(draft).wrap("mount " + draft.destination));
    if (!is_directory(mount)) step.flags |= launch::kMountOnFile;
    step.fd = int32_t(launch::kFdMore + out.fds.size());
    out.fds.push_back(std::move(mount));
    return step;
  }
  step.attributes = draft.options.set | draft.options.set_recursive;
  step.propagation = draft.options.propagation;
  if (draft.kind == launch::MountKind::pod_shm) return step;
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
  auto drafts = TRY(plan_mounts(*input.spec, input.sandbox));
  for (const MountDraft& draft : drafts) {
    launch::MountStep step = TRY(write_mount(writer, draft, out));
    steps.push_back(step);
    out.mounts.push_back(draft.destination);
  }
  plan.mounts = writer.items(steps);
  return {};
}

void write_devices(PlanWriter& writer, const oci::Spec& spec, launch::Plan& plan) {
  std::vector<launch::DeviceStep> devices;
  for (const oci::Device& device : plan_devices(spec)) {
    uint32_t type = device.type == "b" ? uint32_t(S_IFBLK) : device.type == "p" ? uint32_t(S_IFIFO) : uint32_t(S_IFCHR);
    devices.push_back({writer.text(device.path), type | (device.file_mode.value_or(0666) & 07777),
                       device.uid.value_or(0), device.gid.value_or(0), uint32_t(device.major), uint32_t(device.minor)});
  }
  plan.devices = writer.items(devices);
  std::vector<launch::LinkStep> links;
  for (const auto& [target, path] : plan_links(spec)) links.push_back({writer.text(target), writer.text(path)});
  plan.links = writer.items(links);
}

// What is joined by a path may be the host's own: its settings are then no more the container's than where it names
// none.
Result<void> note_host_s(const Fd& joined, const std::string& type, SandboxFacts& facts) {
  bool* has = type == "network" ? &facts.has_network : type == "ipc" ? &facts.has_ipc : &facts.has_uts;
  if (type != "network" && type != "ipc" && type != "uts") return {};
  Fd own = TRY(sys::open(std::string("/proc/self/ns/") + (type == "network" ? "net" : type), O_RDONLY));
  struct stat theirs = TRY(sys::stat(joined));
  struct stat ours = TRY(sys::stat(own));
  if (theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino) *has = false;
  return {};
}

Result<void> write_namespaces(PlanWriter& writer, const PrepareInput& input, launch::Plan& plan, Prepared& out,
                              SandboxFacts& facts) {
  std::vector<launch::JoinStep> joins;
  plan.unshare = CLONE_NEWCGROUP;
  for (const oci::Namespace& ns : input.spec->linux_.namespaces) {
    if (ns.path.empty()) continue;
    Fd fd = TRY(sys::open(ns.path, O_RDONLY).wrap("namespace " + ns.type));
    if (ns.type == "pid") return Error(Code::unsupported, "linux.namespaces: joining a pid namespace by path");
    if (ns.type == "cgroup") plan.unshare = 0;
    TRY(note_host_s(fd, ns.type, facts));
    joins.push_back({int32_t(launch::kFdMore + out.fds.size()), uint32_t(*sys::namespace_flag(ns.type))});
    out.fds.push_back(std::move(fd));
  }
  plan.joins = writer.items(joins);
  if (input.sandbox.shared_pid) {
    out.request_flags |= pause::kSharedPidNamespace;
  } else if (!input.sandbox.host_pid) {
    out.request_flags |= pause::kNewPidNamespace;
  } else {
    plan.flags |= launch::kPlanDieWithPause;
  }
  return {};
}

Result<void> write_sysctls(PlanWriter& writer, const PrepareInput& input, const SandboxFacts& facts,
                           launch::Plan& plan) {
  // The container shares the sandbox's namespaces, so only those that are not the host's may be changed.
  TRY(oci::check_sysctls(input.spec->linux_.sysctl, facts.has_network, facts.has_ipc, facts.has_uts));
  std::vector<launch::SysctlStep> steps;
  for (const auto& [name, value] : input.spec->linux_.sysctl)
    steps.push_back({writer.text(oci::sysctl_path(name)), writer.text(value)});
  plan.sysctls = writer.items(steps);
  return {};
}

Result<void> write_rlimits(PlanWriter& writer, const oci::Process& process, const OwnFacts& own, launch::Plan& plan) {
  std::vector<launch::RlimitStep> steps;
  for (const oci::Rlimit& limit : process.rlimits) {
    auto number = sys::rlimit_number(limit.type);
    if (!number) return Error(Code::invalid, "process.rlimits: unknown type " + coracle::quoted(limit.type));
    sys::Limits mine = TRY(sys::own_limit(*number));
    if (limit.hard > mine.hard && !(own.capabilities >> kCapSysResource & 1))
      return Error(Code::forbidden, "process.rlimits: " + limit.type + ": " + std::to_string(limit.hard) +
                                        " is above this machine's hard limit " + std::to_string(mine.hard) +
                                        ", and without CAP_SYS_RESOURCE it cannot be raised");
    steps.push_back({uint32_t(*number), 0, limit.soft, limit.hard});
  }
  plan.rlimits = writer.items(steps);
  return {};
}

// What a container's first process and an exec have in common.
Result<void> write_process(PlanWriter& writer, const PrepareInput& input, const oci::Process& process,
                           launch::Plan& plan, Prepared& out) {
  plan.cwd = writer.text(process.cwd);
  // What the kernel reads is a command. Source: AppArmor's attr/exec, as aa_change_onexec(2) writes it.
  plan.apparmor = writer.text_or_none(process.apparmor_profile.empty() ? "" : "exec " + process.apparmor_profile);
  plan.selinux = writer.text_or_none(process.selinux_label);
  plan.programs = writer.texts(plan_programs(process.args[0], process.env));
  plan.argv = writer.vector(process.args);
  plan.env = writer.vector(process.env);
  plan.uid = process.user.uid;
  plan.gid = process.user.gid;
  plan.groups = writer.items(process.user.additional_gids);
  if (process.user.umask) {
    plan.flags |= launch::kPlanSetUmask;
    plan.umask = *process.user.umask;
  }
  plan.flags |= launch::kPlanSetOomScore;  // never the launcher's own
  plan.oom_score_adj = plan_oom_score(process.oom_score_adj.value_or(0), input.own);
  if (process.no_new_privileges) plan.flags |= launch::kPlanNoNewPrivileges;
  if (process.terminal) {
    plan.flags |= launch::kPlanTerminal;
    plan.columns = process.console_width;
    plan.rows = process.console_height;
    out.request_flags |= pause::kTerminal;
  }
  plan.flags |= launch::kPlanCapabilities;
  CapabilitySets sets = TRY(plan_capabilities(process.capabilities.value_or(oci::Capabilities{}), input.own));
  plan.bounding = sets.bounding;
  plan.effective = sets.effective;
  plan.permitted = sets.permitted;
  plan.inheritable = sets.inheritable;
  plan.ambient = sets.ambient;
  TRY(write_rlimits(writer, process, input.own, plan));
  if (input.seccomp) {
    if (input.seccomp->listener) return Error(Code::unsupported, "linux.seccomp: SCMP_ACT_NOTIFY");
    plan.seccomp_flags = input.seccomp->flags;
    plan.seccomp = writer.items(input.seccomp->instructions);
  }
  return {};
}

uint64_t propagation_of(const std::string& name) {
  uint64_t flags = name.ends_with("shared")       ? 1 << 20
                   : name.ends_with("slave")      ? 1 << 19
                   : name.ends_with("unbindable") ? 1 << 17
                                                  : 0;
  if (flags && name.starts_with("r")) flags |= kRec;
  return flags;
}

}  // namespace

Result<Fd> open_root(const std::string& path) {
  Fd dir = TRY(sys::open(path, O_PATH | O_DIRECTORY).wrap("root"));
  Fd mount = TRY(sys::clone_mount(dir, true).wrap("root"));
  TRY(sys::change_mount(mount, {.propagation = 1 << 18, .recursive = true}));
  return mount;
}

Result<Prepared> prepare_container(const PrepareInput& input, Fd root) {
  const oci::Spec& spec = *input.spec;
  Prepared out;
  PlanWriter writer;
  launch::Plan plan{};
  plan.root_fd = int32_t(launch::kFdMore);
  out.fds.push_back(std::move(root));
  SandboxFacts facts = input.sandbox;
  TRY(write_namespaces(writer, input, plan, out, facts));
  TRY(write_mounts(writer, input, plan, out));
  write_devices(writer, spec, plan);
  TRY(write_sysctls(writer, input, facts, plan));
  plan.masked_paths = writer.texts(spec.linux_.masked_paths);
  plan.readonly_paths = writer.texts(spec.linux_.readonly_paths);
  plan.root_propagation = propagation_of(spec.linux_.rootfs_propagation);
  if (spec.root.readonly) plan.flags |= launch::kPlanReadonlyRoot;
  plan.flags |= launch::kPlanMakeDirectory;
  TRY(write_process(writer, input, spec.process, plan, out));
  bool has_dev = std::any_of(spec.mounts.begin(), spec.mounts.end(), [](const oci::Mount& mount) {
    return mount.destination == "/dev" && mount.type == "tmpfs";
  });
  if (spec.process.terminal && has_dev) plan.flags |= launch::kPlanConsole;
  if (input.hold) {
    plan.flags |= launch::kPlanHold;
    out.request_flags |= pause::kHold;
  }
  if (out.fds.size() + launch::kFdMore > launch::kFdsMax)
    return Error(Code::too_large, "mounts: too many for one container");
  out.plan = TRY(writer.finish(plan));
  return out;
}

Result<Prepared> prepare_exec(const PrepareInput& input, const oci::Process& process) {
  Prepared out;
  PlanWriter writer;
  launch::Plan plan{};
  plan.flags = launch::kPlanExec;
  plan.root_fd = -1;
  TRY(write_process(writer, input, process, plan, out));
  out.plan = TRY(writer.finish(plan));
  return out;
}

}  // namespace coracle::runtime
