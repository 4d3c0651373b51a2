// SPDX-License-Identifier: Apache-2.0
// One sandbox: its record, its cgroup, its connections to coracle-pause, and the known state of its containers. A lock serialises
// the operations and may be held while pause works. The known state has a second lock that is only held briefly, so that reading
// it does not wait for a launch.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "runtime/base/guarded.h"
#include "runtime/cgroup/pods.h"
#include "runtime/container/pause_link.h"
#include "runtime/container/prepare.h"
#include "runtime/container/records.h"
#include "runtime/container/seccomp_program.h"
#include "runtime/image/snapshot.h"
#include "runtime/runtime.h"

namespace coracle::runtime {

constexpr std::chrono::milliseconds kKillTimeout{15000};

using DevicePrograms = Guarded<std::map<std::vector<uint64_t>, std::shared_ptr<const Fd>>>;  // loaded, by instructions

// What all sandboxes of a runtime share.
struct RuntimeContext {
  cgroup::Cgroups cgroups;
  Records records;
  std::unique_ptr<SeccompCache> seccomp;
  image::Snapshots* snapshots = nullptr;  // null: containers need spec.root.path
  Fd run_dir;                             // directory of the sockets
  Fd pause_program;                       // sealed
  std::string boot_id;
  LauncherInfo own;
  std::unique_ptr<DevicePrograms> device_programs;
};

struct ExecState {
  struct Inside {
    std::optional<int> wait_status;
  };
  Guarded<Inside> inside;
};

class Sandbox : public std::enable_shared_from_this<Sandbox> {
 public:
  // On failure, nothing is left behind.
  static Result<std::shared_ptr<Sandbox>> create(RuntimeContext& context, const SandboxSpec& spec);
  // Restores a sandbox from its record; if its pause cannot be reached it is dead. Errors: a damaged record.
  static Result<std::shared_ptr<Sandbox>> find(RuntimeContext& context, const std::string& id);

  const std::string& id() const { return record_.id; }
  SandboxState state() const;
  bool is_alive() const;
  void name_snapshots(std::set<std::string>& out) const;
  Result<Fd> network_namespace() const;

  Result<void> start_container(const ContainerSpec& spec);
  Result<void> signal_container(const std::string& id, int signal);
  Result<void> kill_container(const std::string& id);
  Result<void> remove_container(const std::string& id);
  Result<std::unique_ptr<Exec>> exec(const std::string& id, const ExecSpec& spec);
  Result<std::unique_ptr<Exec>> attach(const std::string& id, bool use_stdin);
  Result<Usage> usage(const std::string& container_id);
  Result<Fd> writable_layer(const std::string& id);
  Result<Fd> container_root(const std::string& id);
  // Kills and removes everything; the object must not be used afterwards.
  Result<void> remove();

  // The event subscription, for the event loop. read_events() processes all pending states. False: pause has exited, and so have
  // the containers.
  const Fd& events() const { return events_.fd(); }
  bool read_events();

  // Called by the Exec that exec() returned.
  void forget(const std::string& process_id);

 private:
  struct Container {
    ContainerRecord record;
    bool is_started = false;  // false: a launch is in progress, and the container is not visible yet
    bool is_running = false;
    Fd pidfd;
    int pid = 0;
    WallTime started;
    std::optional<ExitStatus> exit;
    // The exit code, or -1. Shared with attachments, which may outlive this record and the sandbox.
    std::shared_ptr<std::atomic<int>> ended = std::make_shared<std::atomic<int>>(-1);
  };
  struct Known {
    bool is_alive = false;
    std::map<std::string, Container> containers;
    std::map<std::string, std::weak_ptr<ExecState>> execs;
  };

  explicit Sandbox(RuntimeContext& context) : context_(context) {}
  Result<void> start_pause(const SandboxSpec& spec);
  Result<void> set_up_pause(const SandboxSpec& spec, const sys::OwnedNamespaces* owned);
  Result<void> connect();
  bool adopt();
  Result<void> launch(const ContainerSpec& spec, const ContainerRecord& record, SeccompPtr seccomp, const UserNamespace* user);
  Result<Fd> make_container_cgroup(const ContainerSpec& spec);
  Result<void> filter_devices(const Fd& cgroup, const oci::Spec& spec);
  Result<Fd> make_root(const ContainerSpec& spec, const ContainerRecord& record, const UserNamespace* user);
  void clean_container(const ContainerRecord& record);
  void apply(const pause::State& state, Fd pidfd);
  bool was_oom_killed(const std::string& id) const;
  // Kills what an exited container has left behind in a shared pid namespace and removes its cgroup, because each cgroup takes
  // kernel memory. After an OOM kill the cgroup stays until the container is removed, so that a restarted daemon can still find
  // the reason. Does not wait: if processes are still ending, remove_container does the rest.
  void drop_cgroup(const std::string& id);
  void mark_dead();
  Result<Answer> ask(const pause::Request& request, std::span<const int> fds);
  Result<oci::Process> exec_process(const std::string& id, const ExecSpec& spec, ContainerRecord& record);
  std::string container_cgroup(const std::string& id) const { return record_.cgroup + "/c-" + id; }
  std::string socket_name() const { return record_.id + ".sock"; }
  SandboxInfo info() const;
  bool has_user_namespace() const { return !record_.uid_mappings.empty(); }
  // The pod's user namespace, if it has one of its own.
  Result<std::optional<UserNamespace>> user_namespace() const;

  RuntimeContext& context_;
  SandboxRecord record_;
  Fd cgroup_, pause_;  // pause_: a pidfd
  int pause_pid_ = 0;
  mutable std::mutex operations_;  // serialises operations; held while pause works, so not a Guarded
  PauseLink link_;
  PauseLink events_;
  uint64_t execs_made_ = 0;
  Guarded<Known> known_;
};

bool is_sandbox_id(const std::string& id);
bool is_container_id(const std::string& id);
int exit_code_of(int wait_status);

}  // namespace coracle::runtime
