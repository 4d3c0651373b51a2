// SPDX-License-Identifier: Apache-2.0
// PodSync: one sync of one pod: gather, plan, apply and report. Used by PodWorker only. pod_sync.cc gathers and reports,
// pod_steps.cc applies the plan, pod_images.cc provides the images, and pod_start.cc starts a container.
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

constexpr std::chrono::seconds kConfigErrorRetry{10};  // retry interval of a container with a configuration error
constexpr std::chrono::seconds kHostPathRetry{2};      // retry interval while a hostPath does not exist
constexpr std::chrono::minutes kMountErrorTold{2};     // an unchanged FailedMount event is repeated after so long
constexpr std::chrono::seconds kDrainMax{5};           // longest wait for the Service rules before termination
constexpr std::chrono::milliseconds kDrainMin{20};     // shortest wait if the pod was ready: it may be on its way into the rules
constexpr std::chrono::seconds kRulesDelayMax{1};      // longest time until a pod that has become ready is in the rules
constexpr std::chrono::seconds kPullErrorShown{2};     // ErrImagePull is shown for so long, then ImagePullBackOff

constexpr const char* kConfigError = "CreateContainerConfigError";  // a waiting reason

std::string duration_text(std::chrono::seconds span);
// The key of a running hook: "<container id> postStart".
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

  // Gathers, plans, applies, reports. Errors: what could not be applied; the other steps are done and reported.
  Result<Outcome> run();

 private:
  // ---- gather ----
  Result<bool> prepare();
  bool waits_for_predecessor() const;
  void wake_successors(const Key& name) const;
  void weigh();
  void restore_status();
  Result<void> look();
  void note_released();  // for users_of_claim()
  struct Attempts {      // the newest two attempts of one container in the sandbox
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
  void apply_probe_results();
  void admit();
  void shorten_grace();
  void wait_for_others();
  void wait_for_rules();
  bool is_selected() const;  // by a Service's selector
  void set_phase_from_plan(const Plan& plan);

  // ---- apply ----
  Result<void> apply(const Plan& plan);
  Result<void> apply(const Step& step);
  Result<void> create_sandbox();
  Result<void> check_means();
  Result<void> check_runtime_class();
  Result<std::vector<std::string>> attach_network();
  Result<void> prepare_volumes();
  void refresh_volumes();
  Result<void> ask_places();
  void note_waiting(const VolumeResult& result);
  void note_mount_failures(const std::vector<MountFailure>& failures, bool waits);
  Result<std::optional<uint32_t>> first_id();
  Result<std::string> shared_memory();
  Result<void> start(const std::string& name);
  struct ImageWanted {  // an image that a container needs: its own, or that of a volume that it mounts
    std::string pull;   // the key in the pod's pulls
    std::string reference;
    PullPolicy policy;
    int attempt;                // the image is pulled once per attempt
    const ContainerRef* about;  // the container for events; null: the pod
  };
  std::optional<runtime::Image> image_for(const ContainerRef& container, ContainerRecord& record);
  // Mounts the image volumes of the container whose images are present. False: the container waits, and its record has the
  // reason.
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
  bool free_disk_space(const ContainerRecord& record);
  void note_back_offs(const Plan& plan);

  // ---- report ----
  Result<void> write_status();
  void tell_unenforceable();
  void tell_refused();
  void event(bool warning, std::string_view reason, std::string message, const ContainerRef* container = nullptr) const;
  void again_at(SteadyTime when) { again_ = again_ ? std::min(*again_, when) : when; }

  const json::value& pod() const { return desired_.object->json(); }
  const ContainerIndex& containers() {
    if (indexed_ != desired_.object) containers_.emplace((indexed_ = desired_.object)->json());
    return *containers_;
  }
  // The object for reading the status: the newer of the informer's and the last one that this agent wrote.
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
  ObjectPtr indexed_;  // the pod that containers_ indexes
  std::optional<ContainerIndex> containers_;
  PodPaths paths_;
  bool forgotten_ = false, acted_ = false;
  bool waits_ = false;  // the failure was reported, and again_ is the time of the retry
  std::optional<SteadyTime> again_;
};

}  // namespace coracle::node
