// SPDX-License-Identifier: Apache-2.0
// A simulated machine for the node agent's tests: fake API, runtime, clock and network, its own directory, and no threads except
// the fake client's: every sync, probe, pull and hook runs when the test calls it.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "daemon/event/recorder.h"
#include "daemon/node/agent.h"
#include "tests/runtime/fake_runtime.h"
#include "tests/store/client/fake_client.h"

namespace coracle::node {

class HeardEvents : public EventSink {
 public:
  void post(EventRecord record) override {
    heard_.with([&](auto& heard) { heard.push_back((record.warning ? "W " : "N ") + record.reason + " " + record.message); });
    about_.with([&](auto& about) { about.insert(record.about.uid); });
  }
  std::set<std::string> about() const {  // uids
    return about_.with([](const auto& about) { return about; });
  }
  std::vector<std::string> all() const {
    return heard_.with([](const auto& heard) { return heard; });
  }
  bool has(const std::string& text) const {
    auto heard = all();
    return std::any_of(heard.begin(), heard.end(), [&](const auto& event) { return event.find(text) != event.npos; });
  }

 private:
  Guarded<std::vector<std::string>> heard_;
  Guarded<std::set<std::string>> about_;
};

struct Tasks {  // an Executor that runs tasks on request
  std::shared_ptr<std::deque<Task>> queued = std::make_shared<std::deque<Task>>();
  Executor executor() {
    return [queued = queued](Task task) { queued->push_back(std::move(task)); };
  }
  bool run_one() {
    if (queued->empty()) return false;
    Task task = std::move(queued->front());
    queued->pop_front();
    task({});
    return true;
  }
};

class Machine : public ::testing::Test {
 protected:
  Machine() {
    char name[] = "/tmp/coracle-node-XXXXXX";
    directory_ = ::mkdtemp(name);
    config_.node_name = "node-1";
    config_.node_ips = {"192.0.2.1"};
    config_.state_dir = directory_ + "/pods";
    config_.memory_dir = directory_ + "/memory";
    config_.log_dir = directory_ + "/logs";
    config_.image_collection.high_percent = 100;  // off: the disk is that of the machine that runs the test
    config_.log_links_dir = directory_ + "/links";
    std::filesystem::create_directories(config_.log_links_dir);
    config_.manifests_dir = directory_ + "/manifests";
    config_.volume_dirs = {directory_ + "/volumes"};
    config_.place_patience = std::chrono::seconds(30);  // so that a busy machine changes nothing
    config_.host_root = directory_ + "/host";
    std::filesystem::create_directories(config_.host_root + "/etc");
    network_.attach = [this](const std::string& id, const Fd& ns, const Key&,
                             const std::vector<HostPort>& ports) -> Result<Attachment> {
      EXPECT_TRUE(ns);
      std::lock_guard lock(network_calls_);
      attached_.push_back(id);
      host_ports_ = ports;
      if (attach_error_) return *attach_error_;
      return Attachment{{"10.1.0.7"}};
    };
    network_.detach = [this](const std::string& id) -> Result<void> {
      std::lock_guard lock(network_calls_);
      std::erase(attached_, id);
      return {};
    };
    network_.nameservers = {"10.96.0.10"};
    runtime_.images_fake().add("docker.io/library/web:1", {.cmd = {"/bin/web"}, .env = {"PATH=/bin"}});
  }
  ~Machine() override {
    agent_.reset();
    informers_.clear();
    std::filesystem::remove_all(directory_);
  }

  void boot() {  // starts a daemon
    agent_.reset();
    informers_.clear();
    for (const Kind* kind :
         {&kPod, &kConfigMap, &kSecret, &kService, &kPersistentVolumeClaim, &kPersistentVolume, &kStorageClass})
      informers_.push_back(std::make_unique<Informer>(client_, *kind));
    agent_ = std::make_unique<Agent>(config_,
                                     AgentSeams{.client = client_,
                                                .pods = *informers_[0],
                                                .config_maps = *informers_[1],
                                                .secrets = *informers_[2],
                                                .services = *informers_[3],
                                                .runtime = runtime_,
                                                .events = events_,
                                                .clock = clock_,
                                                .pulls = pulls_.executor(),
                                                .hooks = hooks_.executor(),
                                                .walks = walks_.executor(),
                                                .held_back = held_back_,
                                                .pause = pause_,
                                                .is_dropped = is_dropped_,
                                                .claims = informers_[4].get(),
                                                .volumes = informers_[5].get(),
                                                .storage_classes = informers_[6].get()},
                                     network_);
    ASSERT_TRUE(agent_->adopt());
    for (auto& informer : informers_) ASSERT_TRUE(informer->start());
    for (auto& informer : informers_) ASSERT_TRUE(informer->wait_synced({}));
    if (reads_manifests_) agent_->read_manifests();
    agent_->sweep();
    settle();
  }
  // Runs until nothing is due: only syncs and events; pulls, hooks and probes run on request.
  void settle() {
    for (int i = 0; i < 1000; ++i) {
      client_.settle();
      if (!agent_->work_once()) return;
    }
    FAIL() << "the agent does not come to rest";
  }
  void advance(std::chrono::seconds span) {
    clock_.advance(span);
    settle();
  }
  ObjectPtr put_pod(const std::string& spec, const std::string& name = "web", const std::string& metadata = "") {
    auto pod = client_.put(kPod, R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":")" + name + "\"" +
                                     metadata + R"(},"spec":{"nodeName":"node-1",)" + spec + "}}");
    if (agent_) settle();
    return pod;
  }
  // The claim "data", bound to a volume in this directory, which the node provisioned (is_ours) or somebody else.
  void put_directory_volume(const std::string& place, bool is_ours = true, const std::string& size = "1Gi") {
    std::string made_by = is_ours ? R"("annotations":{"pv.kubernetes.io/provisioned-by":"coracle.io/directory"},)" : "";
    client_.put(kPersistentVolume,
                R"({"metadata":{)" + made_by + R"("name":"disk"},"spec":{"capacity":{"storage":")" + size +
                    R"("},"accessModes":["ReadWriteOnce"],"claimRef":{"namespace":"default","name":"data","uid":
      "uid-data"},"local":{"path":")" +
                    place +
                    R"("},"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[
      {"key":"kubernetes.io/hostname","operator":"In","values":["node-1"]}]}]}}},"status":{"phase":"Bound"}})");
    client_.put(kPersistentVolumeClaim,
                R"({"metadata":{"name":"data","namespace":"default","uid":"uid-data","annotations":{
      "pv.kubernetes.io/bind-completed":"yes"}},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":")" +
                    size + R"("}},"volumeName":"disk"},"status":{"phase":"Bound"}})");
    settle();
  }
  void put_claim_user(const std::string& name = "web") {
    put_pod(R"("containers":[{"name":"a","image":"web:1","volumeMounts":[{"name":"v","mountPath":"/v"}]}],"volumes":[{"name":"v",
      "persistentVolumeClaim":{"claimName":"data"}}])",
            name);
  }
  json::value pod(const std::string& name = "web") const {
    ObjectPtr found = client_.find(kPod, {"default", name});
    return found ? found->json() : json::value();
  }
  std::string uid(const std::string& name = "web") const { return client_.find(kPod, {"default", name})->uid(); }
  // "Running", "Waiting CrashLoopBackOff", "Terminated Error 3"
  std::string state(const std::string& container = "a", const std::string& name = "web") const {
    json::value shown = pod(name);
    const json::value* status = status_of(shown, container);
    if (!status) return "none";
    if (find(*status, "state.running")) return "Running";
    if (const auto* waiting = find(*status, "state.waiting")) return "Waiting " + std::string(get_string(*waiting, "reason"));
    if (const auto* ended = find(*status, "state.terminated"))
      return "Terminated " + std::string(get_string(*ended, "reason")) + " " + std::to_string(get_int(*ended, "exitCode"));
    return "unknown";
  }
  std::string phase(const std::string& name = "web") const { return std::string(get_string(pod(name), "status.phase")); }
  std::string condition(const std::string& type, const std::string& name = "web") const {
    json::value shown = pod(name);
    for (const auto& condition : get_array(shown, "status.conditions"))
      if (get_string(condition, "type") == type) return std::string(get_string(condition, "status"));
    return "none";
  }
  int64_t restarts(const std::string& container = "a", const std::string& name = "web") const {
    json::value shown = pod(name);
    const json::value* status = status_of(shown, container);
    return status ? get_int(*status, "restartCount") : -1;
  }
  std::optional<runtime::ContainerSpec> spec_of(const std::string& id, const std::string& name = "web") const {
    return runtime_.container_spec(uid(name), id);
  }
  std::vector<std::string> runtime_calls(const std::string& beginning) const {
    std::vector<std::string> found;
    for (const auto& call : runtime_.calls())
      if (call.starts_with(beginning)) found.push_back(call);
    return found;
  }
  static std::string read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string directory_;
  FakeClock clock_;
  FakeClient client_{clock_};
  runtime::FakeRuntime runtime_{clock_};
  AgentConfig config_;
  PodNetworkHooks network_;
  HeardEvents events_;
  Tasks pulls_, hooks_, walks_;
  std::function<std::string(const Object& pod)> held_back_;
  std::function<void(std::chrono::nanoseconds)> pause_;
  std::function<bool(int, int)> is_dropped_;
  bool reads_manifests_ = false;  // at the start, as the daemon does
  std::mutex network_calls_;      // for tests with several workers
  std::vector<std::string> attached_;
  std::vector<HostPort> host_ports_;
  std::optional<Error> attach_error_;
  std::vector<std::unique_ptr<Informer>> informers_;
  std::unique_ptr<Agent> agent_;
};

}  // namespace coracle::node
