// SPDX-License-Identifier: Apache-2.0
// PodSync: what one look at one pod needs, from reading through planning and doing to telling. Inside the worker only:
// pod_sync.cc reads and tells, pod_steps.cc carries out the plan, pod_images.cc has the images, pod_start.cc starts a container.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/node/container_spec.h"
#include "daemon/node/images.h"
#include "daemon/node/worker.h"

namespace coracle::node {

constexpr std::chrono::seconds kConfigErrorRetry{10};  // a container that cannot be carried out as defined is tried again
constexpr std::chrono::seconds kHostPathRetry{2};      // and one whose path on the host is not there yet
constexpr std::chrono::minutes kMountErrorTold{2};     // so long a FailedMount that stays the same is not told again
constexpr std::chrono::seconds kDrainMax{5};           // a pod that is to end waits no longer for the service rules
constexpr std::chrono::milliseconds kDrainMin{20};     // one that was ready may be on its way into them
constexpr std::chrono::seconds kRulesDelayMax{1};      // so long a pod that has just become ready may be on that way
constexpr std::chrono::seconds kPullErrorShown{2};     // ErrImagePull is shown so long, then ImagePullBackOff

// What hooks are known by until they are done: "<container id> postStart".
std::string duration_text(std::chrono::seconds span);
std::string hook_name(const ContainerRecord& record, const char* hook);

class PodSync {
 public:
  PodSync(PodWorker& worker, PodWorker::Entry& entry, std::string uid, DesiredPod desired)
      : worker_(worker),
        seams_(worker.seams_),
        entry_(entry),
        record_(entry.record),
        uid_(std::move(uid)),
        desired_(std::move(desired)) {}

  // Reads, plans, does, tells. Errors: what could not be done; everything else was done and told.
  Result<Outcome> run();

 private:
  // ---- reading ----
  Result<bool> prepare();
  bool waits_for_predecessor() const;
  void weigh();
  void adopt_left_status();
  Result<void> look();
  void note_released();  // for those who ask whose volumes are in use
  struct Attempts {      // of one container in the sandbox
    const runtime::ContainerState *newest = nullptr, *before = nullptr;
    ContainerMark newest_mark;
  };
  static std::map<std::string, Attempts, std::less<>> attempts_in(const runtime::SandboxState& sandbox);
  void look_at(ContainerRecord& container, const Attempts& found);
  void note_end(ContainerRecord& container, const runtime::ContainerState& state);
  void note_lost(ContainerRecord& container, int exit_code, std::string reason, std::string message);
  std::string termination_message(const ContainerRecord& container, int exit_code) const;
  void take_reports();
  void take_pull(const std::string& name, const PullDone& pull);
  void end_as_evicted(std::string why);
  void take_verdicts();
  void admit();
  void shorten_grace();
  void wait_for_others();
  void wait_for_rules();
  bool is_selected() const;  // by a Service
  void take_verdict(const Plan& plan);

  // ---- doing ----
  Result<void> apply(const Plan& plan);
  Result<void> apply(const Step& step);
  Result<void> create_sandbox();
  Result<void> check_means();
  Result<void> check_runtime_class();
  Result<std::vector<std::string>> attach_network();
  Result<void> prepare_volumes();
  void refresh_volumes();
  void note_mount_failed(const Error& error);
  Result<std::optional<uint32_t>> first_id();
  Result<std::string> shared_memory();
  Result<void> start(const std::string& name);
  struct ImageWanted {  // by a container: its own image, or that of a volume which it mounts
    std::string pull;   // its name among the pod's pulls
    std::string reference;
    PullPolicy policy;
    int attempt;                // for each it is pulled once
    const ContainerRef* about;  // whom events are about; null: the pod
  };
  std::optional<runtime::Image> image_for(const ContainerRef& container, ContainerRecord& record);
  // Mounts the images that are volumes of the container, as far as they are there. False: it waits, and its record says why.
  bool mount_images(const ContainerRef& container, ContainerRecord& record);
  Result<void> mount_image(const runtime::Image& image, const std::string& volume, const std::string& place);
  std::optional<runtime::Image> find_image(const ImageWanted& wanted, const ContainerRef& container, ContainerRecord& record);
  bool is_pulled(const ImageWanted& wanted) const;
  std::optional<runtime::Image> look_for_image(const ImageWanted& wanted, const ContainerRef& container, ContainerRecord& record);
  std::vector<runtime::Credentials> pull_credentials();
  void begin_pull(const ImageWanted& wanted, std::vector<runtime::Credentials> credentials);
  Result<runtime::ContainerSpec> container_spec(const ContainerRef& container, const ContainerRecord& record,
                                                const runtime::Image& image, int attempt);
  Result<std::string> apparmor_profile(const json::value& container) const;
  Result<std::string> target_id(const ContainerRef& container) const;
  Result<std::vector<ManagedFile>> managed_files(const ContainerRef& container, int attempt);
  void note_started(const ContainerRef& container, ContainerRecord& record);
  void show_log(const ContainerRecord& record) const;
  void note_start_failed(const ContainerRef& container, ContainerRecord& record, int attempt, const Error& error);
  void begin_attempt(ContainerRecord& record, int attempt);
  void wait_with(ContainerRecord& record, std::string reason, std::string message);
  void config_error(const ContainerRef& container, ContainerRecord& record, std::string reason, const Error& error);
  void begin_hook(const ContainerRef& container, const ContainerRecord& record, const char* hook, std::chrono::seconds timeout);
  Result<void> stop_container(const Step& step);
  bool is_in_vain(const ContainerRecord& record, int signal) const;
  Result<void> discard_sandbox();
  Result<void> stop_sandbox();
  Result<void> remove_sandbox();
  Result<void> release();
  Result<void> forget();
  void remove_old_attempts(const ContainerRecord& record);
  bool make_room(const ContainerRecord& record);
  void note_back_offs(const Plan& plan);

  // ---- telling ----
  Result<void> write_status();
  void tell_unenforceable();
  void event(bool warning, std::string_view reason, std::string message, const ContainerRef* container = nullptr) const;
  void again_at(SteadyTime when) { again_ = again_ ? std::min(*again_, when) : when; }

  const json::value& pod() const { return desired_.object->json(); }
  const ContainerIndex& containers() {
    if (indexed_ != desired_.object) containers_.emplace((indexed_ = desired_.object)->json());
    return *containers_;
  }
  // Where status is read from: the newest of what the informer has and what we wrote.
  ObjectPtr api() const {
    const ObjectPtr& known = desired_.api();
    bool newer =
        known && entry_.written && entry_.written->uid() == known->uid() && entry_.written->revision() > known->revision();
    if (!newer) entry_.written.reset();
    return newer ? entry_.written->awake() : known;
  }
  bool deleting() const { return desired_.gone || desired_.object->deleting(); }
  PodIdentity identity() const { return {seams_.config.node_name, seams_.config.node_ips, record_.ips, seams_.allocatable()}; }
  Lookup lookup() const;
  std::string pod_text() const { return record_.key.name + "_" + record_.key.ns + "(" + uid_ + ")"; }

  PodWorker& worker_;
  WorkerSeams& seams_;
  PodWorker::Entry& entry_;
  PodRecord& record_;
  std::string uid_;
  DesiredPod desired_;
  ObjectPtr indexed_;  // whose containers containers_ has
  std::optional<ContainerIndex> containers_;
  PodPaths paths_;
  bool forgotten_ = false, acted_ = false;
  bool waits_ = false;  // what could not be done was told, and again_ is when it is tried again
  std::optional<SteadyTime> again_;
};

}  // namespace coracle::node
