// SPDX-License-Identifier: Apache-2.0
// Checks of `process`. See checks.h. Source: runtime-spec config.md "process"; execve(2), sched_setattr(2), ioprio_set(2),
// capabilities(7).
#include <set>

#include "runtime/oci/capabilities.h"
#include "runtime/oci/checks.h"
#include "runtime/sys/process.h"

namespace coracle::oci {
namespace {

constexpr size_t kArgumentBytesMax = 6 << 20;  // execve's limit depends on the stack's; this one bounds the plan
constexpr size_t kGroupsMax = 65536;           // NGROUPS_MAX
constexpr int kNiceMin = -20, kNiceMax = 19, kRealtimeMin = 1, kRealtimeMax = 99;
constexpr uint64_t kDeadlineRuntimeMin = 1024;  // the kernel rounds smaller values to 0

Result<void> check_deadline(const Scheduler& scheduler) {
  uint64_t runtime = scheduler.runtime_ns.value_or(0), deadline = scheduler.deadline_ns.value_or(0),
           period = scheduler.period_ns.value_or(0);
  if (scheduler.policy != "SCHED_DEADLINE") {
    if (runtime || deadline || period)
      return bad("process.scheduler: runtime, deadline and period are SCHED_DEADLINE's, not " + scheduler.policy + "'s");
    return {};
  }
  if (runtime < kDeadlineRuntimeMin) return bad("process.scheduler.runtime is below 1024 ns");
  if (deadline < runtime) return bad("process.scheduler.deadline is below process.scheduler.runtime");
  if (period && period < deadline) return bad("process.scheduler.period is below process.scheduler.deadline");
  return {};
}

}  // namespace

Result<void> check_arguments(const Spec& spec) {
  const Process& process = spec.process;
  if (!spec.has_process) return {};
  if (process.args.empty() || process.args[0].empty()) return bad("process.args is empty");
  size_t bytes = 0;
  for (const auto* list : {&process.args, &process.env}) {
    for (const std::string& item : *list) {
      if (has_nul(item)) return bad("process.args or process.env holds a NUL byte");
      bytes += item.size() + 1;
    }
  }
  if (bytes > kArgumentBytesMax) return Error(Code::too_large, "process.args and process.env are too long");
  for (const std::string& item : process.env)
    if (item.find('=') == item.npos || item[0] == '=') return bad("process.env entry " + quoted(item) + " is not NAME=value");
  return {};
}

Result<void> check_working_directory(const Spec& spec) {
  if (!is_absolute(spec.process.cwd)) return bad("process.cwd " + quoted(spec.process.cwd) + " is not absolute");
  return {};
}

Result<void> check_user(const Spec& spec) {
  const User& user = spec.process.user;
  if (user.uid > kIdMax) return bad("process.user.uid " + std::to_string(user.uid) + " is out of range");
  if (user.gid > kIdMax) return bad("process.user.gid " + std::to_string(user.gid) + " is out of range");
  if (user.additional_gids.size() > kGroupsMax) return Error(Code::too_large, "process.user.additionalGids");
  for (uint32_t gid : user.additional_gids)
    if (gid > kIdMax) return bad("process.user.additionalGids: " + std::to_string(gid) + " is out of range");
  if (user.umask && *user.umask > 0777) return bad("process.user.umask is out of range");
  return {};
}

Result<void> check_capabilities(const Spec& spec) {
  if (!spec.process.capabilities) return {};
  const Capabilities& caps = *spec.process.capabilities;
  for (auto [set, list] : {std::pair("bounding", &caps.bounding), std::pair("effective", &caps.effective),
                           std::pair("inheritable", &caps.inheritable), std::pair("permitted", &caps.permitted),
                           std::pair("ambient", &caps.ambient)})
    TRY(capability_set(*list).wrap(std::string("process.capabilities.") + set));
  return {};
}

Result<void> check_labels(const Spec& spec) {
  const Process& process = spec.process;
  if (!is_one_line(process.apparmor_profile))
    return bad("process.apparmorProfile " + quoted(process.apparmor_profile) + " holds a control character");
  if (!is_one_line(process.selinux_label))
    return bad("process.selinuxLabel " + quoted(process.selinux_label) + " holds a control character");
  // It becomes the mount option context="label".
  if (!is_one_line(spec.linux_.mount_label) || spec.linux_.mount_label.find_first_of("\"\\") != std::string::npos)
    return bad("linux.mountLabel " + quoted(spec.linux_.mount_label) + " is malformed");
  return {};
}

Result<void> check_rlimits(const Spec& spec) {
  std::set<std::string> seen;
  for (size_t i = 0; i < spec.process.rlimits.size(); ++i) {
    const Rlimit& limit = spec.process.rlimits[i];
    if (!sys::rlimit_number(limit.type)) return bad(at("process.rlimits", i) + ".type: unknown " + quoted(limit.type));
    if (!seen.insert(limit.type).second) return bad("process.rlimits: " + quoted(limit.type) + " stands twice");
    if (limit.soft > limit.hard) return bad("process.rlimits: " + limit.type + ": the soft limit is above the hard one");
  }
  return {};
}

Result<void> check_oom_score(const Spec& spec) {
  if (spec.process.oom_score_adj && (*spec.process.oom_score_adj < -1000 || *spec.process.oom_score_adj > 1000))
    return bad("process.oomScoreAdj is not between -1000 and 1000");
  return {};
}

Result<void> check_scheduler(const Spec& spec) {
  static const std::set<std::string> policies = {"SCHED_OTHER", "SCHED_FIFO", "SCHED_RR",
                                                 "SCHED_BATCH", "SCHED_IDLE", "SCHED_DEADLINE"};
  static const std::set<std::string> flags = {"SCHED_FLAG_RESET_ON_FORK", "SCHED_FLAG_RECLAIM",     "SCHED_FLAG_DL_OVERRUN",
                                              "SCHED_FLAG_KEEP_POLICY",   "SCHED_FLAG_KEEP_PARAMS", "SCHED_FLAG_UTIL_CLAMP_MIN",
                                              "SCHED_FLAG_UTIL_CLAMP_MAX"};
  if (!spec.process.scheduler) return {};
  const Scheduler& scheduler = *spec.process.scheduler;
  const std::string& policy = scheduler.policy;
  if (policy == "SCHED_ISO") return unsupported("process.scheduler.policy: Linux never had SCHED_ISO");
  if (!policies.count(policy)) return bad("process.scheduler.policy: unknown " + quoted(policy));
  int nice = scheduler.nice.value_or(0), priority = scheduler.priority.value_or(0);
  if (nice < kNiceMin || nice > kNiceMax)
    return bad("process.scheduler.nice: " + std::to_string(nice) + " is not between -20 and 19");
  bool is_realtime = policy == "SCHED_FIFO" || policy == "SCHED_RR";
  if (is_realtime && (priority < kRealtimeMin || priority > kRealtimeMax))
    return bad("process.scheduler.priority: " + policy + " needs one from 1 to 99, not " + std::to_string(priority));
  if (!is_realtime && priority != 0) return bad("process.scheduler.priority: " + policy + " has none");
  for (const std::string& flag : scheduler.flags)
    if (!flags.count(flag)) return bad("process.scheduler.flags: unknown " + quoted(flag));
  return check_deadline(scheduler);
}

Result<void> check_io_priority(const Spec& spec) {
  static const std::set<std::string> classes = {"IOPRIO_CLASS_RT", "IOPRIO_CLASS_BE", "IOPRIO_CLASS_IDLE"};
  if (!spec.process.io_priority) return {};
  const IoPriority& io = *spec.process.io_priority;
  if (!classes.count(io.io_class)) return bad("process.ioPriority.class: unknown " + quoted(io.io_class));
  if (io.priority < 0 || io.priority > 7)
    return bad("process.ioPriority.priority: " + std::to_string(io.priority) + " is not between 0 and 7");
  return {};
}

Result<void> check_affinity(const Spec& spec) {
  if (!spec.process.exec_cpu_affinity) return {};
  const CpuAffinity& affinity = *spec.process.exec_cpu_affinity;
  if (!is_number_list(affinity.initial))
    return bad("process.execCPUAffinity.initial: " + quoted(affinity.initial) + " is no list of processors");
  if (!is_number_list(affinity.final_cpus))
    return bad("process.execCPUAffinity.final: " + quoted(affinity.final_cpus) + " is no list of processors");
  return {};
}

}  // namespace coracle::oci
