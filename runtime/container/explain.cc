// SPDX-License-Identifier: Apache-2.0
// See explain.h.
#include "runtime/container/explain.h"

#include <cctype>
#include <cerrno>
#include <cstring>

#include "runtime/base/text.h"
#include "runtime/container/plan.h"

namespace coracle::runtime {
namespace {

using launch::Stage;

struct Meaning {
  const char* field;  // of config.json; "": none
  const char* calls;  // the system calls
};

Meaning meaning_of(Stage stage) {
  switch (stage) {
    case Stage::stdio: return {"", "standard streams: dup3"};
    case Stage::log: return {"", "log file"};
    case Stage::clone: return {"", "clone3"};
    case Stage::plan: return {"", "launch plan: mmap"};
    case Stage::session: return {"", "setsid"};
    case Stage::join: return {"linux.namespaces", "setns"};
    case Stage::unshare: return {"linux.namespaces", "unshare"};
    case Stage::root: return {"root", "mount_setattr, move_mount"};
    case Stage::mount: return {"mounts", "mount"};
    case Stage::device: return {"linux.devices", "mknod"};
    case Stage::link: return {"", "links in /dev: symlinkat"};
    case Stage::mask: return {"linux.maskedPaths", "open_tree, move_mount"};
    case Stage::readonly: return {"linux.readonlyPaths", "mount_setattr, move_mount"};
    case Stage::sysctl: return {"linux.sysctl", "write"};
    case Stage::terminal: return {"process.terminal", "/dev/pts/ptmx"};
    case Stage::pivot: return {"root", "pivot_root"};
    case Stage::oom: return {"process.oomScoreAdj", "write oom_score_adj"};
    case Stage::rlimit: return {"process.rlimits", "prlimit"};
    case Stage::working_directory: return {"process.cwd", "chdir"};
    case Stage::groups: return {"process.user.additionalGids", "setgroups"};
    case Stage::user: return {"process.user", "setresuid, setresgid"};
    case Stage::capabilities: return {"process.capabilities", "capset, prctl"};
    case Stage::no_new_privileges: return {"process.noNewPrivileges", "prctl"};
    case Stage::seccomp: return {"linux.seccomp", "seccomp"};
    case Stage::network: return {"", "loopback interface"};
    case Stage::gate: return {"", "wait for the launcher"};
    case Stage::keyring: return {"", "session keyring: keyctl"};
    case Stage::scheduler: return {"process.scheduler", "sched_setattr"};
    case Stage::io_priority: return {"process.ioPriority", "ioprio_set"};
    case Stage::affinity: return {"process.execCPUAffinity.final", "sched_setaffinity"};
    case Stage::personality: return {"linux.personality", "personality"};
    case Stage::memory_policy: return {"linux.memoryPolicy", "set_mempolicy"};
    case Stage::user_namespace: return {"linux.namespaces", "user: setns, unshare"};
    case Stage::propagation: return {"linux.rootfsPropagation", "mount"};
    case Stage::start: return {"", "wait for start: accept"};
    case Stage::cgroup: return {"linux.cgroupsPath", "cgroup v1: write tasks"};
    default: return {"", size_t(stage) < size_t(Stage::count) ? launch::kStageNames[size_t(stage)] : "launch"};
  }
}

// The name of the failed object: the mount's destination, the sysctl's name.
std::string which(const launch::Failure& failure, const oci::Spec& spec, const std::vector<std::string>& mounts) {
  auto at = [&](const std::vector<std::string>& list) {
    return failure.index >= 0 && size_t(failure.index) < list.size() ? list[size_t(failure.index)] : std::string();
  };
  std::vector<std::string> names;
  switch (failure.stage) {
    case Stage::mount: return at(mounts);
    case Stage::mask: return at(spec.linux_.masked_paths);
    case Stage::readonly: return at(spec.linux_.readonly_paths);
    case Stage::working_directory: return spec.process.cwd;
    case Stage::user: return std::to_string(spec.process.user.uid) + ":" + std::to_string(spec.process.user.gid);
    case Stage::rlimit:
      for (const oci::Rlimit& limit : spec.process.rlimits) names.push_back(limit.type);
      return at(names);
    case Stage::device:
      for (const oci::Device& device : plan_devices(spec, {})) names.push_back(device.path);
      return at(names);
    case Stage::sysctl:
      for (const auto& [name, value] : spec.linux_.sysctl) names.push_back(name);
      return at(names);
    default: return "";
  }
}

Error explain_exec(int err, const oci::Spec& spec) {
  std::string program = spec.process.args.empty() ? "" : spec.process.args[0];
  std::string said = "exec: " + quoted(program) + ": ";
  if (err == ENOENT && program.find('/') == program.npos)
    return Error(Code::not_found, said + "executable file not found in $PATH");
  if (err == ENOENT) return Error::from_errno(err, said + "stat " + program);
  return Error::from_errno(err, "exec: " + quoted(program));
}

bool is_kernel_s(const std::string& place) {
  for (const char* each : {"/proc", "/sys", "/dev"})
    if ((place + "/").starts_with(std::string(each) + "/")) return true;
  return false;
}

const char* mismatch(int err) {
  return err == launch::kDirectoryOverFile ? "not a directory: a directory is mounted over a file"
                                           : "is a directory: a file is mounted over a directory";
}

std::string signal_text(int signal) {  // "31 (bad system call)"
  const char* found = ::sigdescr_np(signal);
  if (!found) return std::to_string(signal);
  std::string words = found;
  words[0] = char(std::tolower(static_cast<unsigned char>(words[0])));
  return std::to_string(signal) + " (" + words + ")";
}

Error explain_hook(const char* field, const launch::Failure& failure, const std::vector<oci::Hook>& hooks,
                   const std::string& said) {
  std::string hook = std::string("error running ") + field + " hook";  // the words are runc's
  if (failure.index >= 0 && size_t(failure.index) < hooks.size())
    hook += " #" + std::to_string(failure.index) + ": " + hooks[size_t(failure.index)].path;
  const std::string tail = said.empty() ? "" : ": " + said;
  if (failure.err <= -128) return Error(Code::internal, hook + " was killed by signal " + signal_text(-failure.err - 128) + tail);
  if (failure.err < 0) return Error(Code::internal, hook + " ended with exit code " + std::to_string(-failure.err) + tail);
  if (failure.err == ETIMEDOUT) return Error(Code::timeout, hook + " took longer than its timeout" + tail);
  return Error::from_errno(failure.err, hook);
}

}  // namespace

Error explain_failure(const launch::Failure& failure, const oci::Spec& spec, const std::vector<std::string>& mounts,
                      const std::string& said) {
  const int err = failure.err;
  switch (failure.stage) {
    case Stage::exec: return explain_exec(err, spec);
    case Stage::create_hook: return explain_hook("createContainer", failure, spec.hooks.create_container, said);
    case Stage::start_hook: return explain_hook("startContainer", failure, spec.hooks.start_container, said);
    case Stage::mount:
      if (err < 0) return Error(Code::invalid, "mounts: " + which(failure, spec, mounts) + ": " + mismatch(err));
      // No link is followed there; the words are runc's.
      if (const std::string place = which(failure, spec, mounts); err == ELOOP && is_kernel_s(place))
        return Error::from_errno(err, "mounts: " + place + ": must be mounted on ordinary directory");
      break;
    case Stage::slot:
      if (err == EEXIST) return Error(Code::conflict, "the id is in use");
      if (err == EBUSY) return Error(Code::conflict, "still running");
      if (err == ENFILE) return Error(Code::too_many_requests, "the pod has as many processes as it can hold");
      break;
    case Stage::target:
      if (err == ESRCH) return Error(Code::conflict, "the container is not running");
      break;
    case Stage::plan:
      if (err == EPROTO)
        return Error(Code::conflict, "the pod was begun by another version of coracled; delete it, and it is begun anew");
      break;
    case Stage::scheduler: {  // Source: sched_setattr(2); the words are runc's
      const bool is_deadline = spec.process.scheduler && spec.process.scheduler->policy == "SCHED_DEADLINE";
      if (err == EPERM && is_deadline && !spec.linux_.resources.cpuset_cpus.empty())
        return Error(Code::forbidden,
                     "process.scheduler: process scheduler can't be used together with AllowedCPUs (linux.resources.cpu.cpus)");
      break;
    }
    case Stage::hostname:
      return Error::from_errno(
          err, failure.index == 1 ? "domainname: setdomainname " + spec.domainname : "hostname: sethostname " + spec.hostname);
    case Stage::lsm:
      return Error::from_errno(err, failure.index == 1 ? "process.selinuxLabel: write attr/exec"
                                                       : "process.apparmorProfile: write attr/apparmor/exec");
    default: break;
  }
  Meaning meaning = meaning_of(failure.stage);
  std::string what = meaning.field, one = which(failure, spec, mounts);
  if (!one.empty()) what += (what.empty() ? "" : ": ") + one;
  what += (what.empty() ? "" : ": ") + std::string(meaning.calls);
  return Error::from_errno(err, what);
}

Error explain_failure(const pause::Reply& reply, const oci::Spec& spec, const std::vector<std::string>& mounts) {
  return explain_failure(launch::Failure{reply.err, Stage(reply.stage), reply.index}, spec, mounts);
}

}  // namespace coracle::runtime
