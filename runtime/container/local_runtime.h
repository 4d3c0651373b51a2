// SPDX-License-Identifier: Apache-2.0
// The Runtime of this machine: the sandboxes by id, and one thread that receives events of all of them.
//   pause ── state ──▶ event thread ─▶ Sandbox (its known state) ─▶ on_change(sandbox id)
#pragma once

#include <map>
#include <memory>
#include <string>
#include <thread>

#include "runtime/base/guarded.h"
#include "runtime/container/sandbox.h"
#include "runtime/image/snapshot.h"
#include "runtime/runtime.h"

namespace coracle::runtime {

class LocalRuntime : public Runtime {
 public:
  // Without `images` and `snapshots` (null) only containers with a root path can run. `trees` may be null if trees() is not
  // called. Errors: conflict if another process uses the same state directory; otherwise with the step.
  static Result<std::unique_ptr<LocalRuntime>> open(const Config& config, std::unique_ptr<ImageStore> images,
                                                    image::Snapshots* snapshots, std::unique_ptr<Trees> trees);
  ~LocalRuntime() override;

  ImageStore& images() override { return *images_; }
  Trees& trees() override { return *trees_; }
  Enforcement enforcement() const override { return context_.cgroups.enforcement(); }
  std::string pods_cgroup() const override { return context_.cgroups.path(); }
  std::optional<Bytes> memory_bound() const override { return context_.cgroups.memory_bound(); }
  void on_change(std::function<void(const std::string&)> notify) override;
  Result<std::vector<SandboxState>> sandboxes() override;
  Result<SandboxState> sandbox(const std::string& id) override;
  Result<void> create_sandbox(const SandboxSpec& spec) override;
  Result<Fd> network_namespace(const std::string& id) override;
  Result<void> remove_sandbox(const std::string& id) override;
  Result<void> set_class_weight(const std::string& cgroup_class, uint64_t weight) override;
  Result<void> start_container(const std::string& sandbox_id, const ContainerSpec& spec) override;
  Result<void> signal_container(const std::string& sandbox_id, const std::string& id, int signal) override;
  Result<void> kill_container(const std::string& sandbox_id, const std::string& id) override;
  Result<void> remove_container(const std::string& sandbox_id, const std::string& id) override;
  Result<std::unique_ptr<Exec>> exec(const std::string& sandbox_id, const std::string& id, const ExecSpec& spec) override;
  Result<std::unique_ptr<Exec>> attach(const std::string& sandbox_id, const std::string& id, bool use_stdin) override;
  Result<Usage> usage(const std::string& sandbox_id, const std::string& container_id) override;
  Result<Fd> writable_layer(const std::string& sandbox_id, const std::string& id) override;
  Result<Fd> container_root(const std::string& sandbox_id, const std::string& id) override;

  // Removes writable layers without a container record. They remain if the daemon is killed after creating the layer and before
  // writing the record, or between the reverse steps.
  void drop_stray_snapshots();

 private:
  struct Entry {
    std::shared_ptr<Sandbox> sandbox;  // null while it is being created
    uint64_t key = 0;                  // in the epoll set
  };
  struct All {
    std::map<std::string, Entry> by_id;
    uint64_t last_key = 0;
  };

  explicit LocalRuntime(RuntimeContext context) : context_(std::move(context)) {}
  Result<void> find_sandboxes();
  Result<void> listen_to(const std::string& id, std::shared_ptr<Sandbox> sandbox);
  Result<std::shared_ptr<Sandbox>> get(const std::string& id);
  void listen();  // the event thread
  void on_epoll_event(uint64_t key);
  void tell(const std::string& id);

  RuntimeContext context_;
  std::unique_ptr<ImageStore> images_;
  std::unique_ptr<Trees> trees_;
  Fd lock_, epoll_, stop_;
  Guarded<All> all_;
  Guarded<std::shared_ptr<const std::function<void(const std::string&)>>> notify_;
  std::jthread listener_;  // last: it uses all of the above
};

}  // namespace coracle::runtime
