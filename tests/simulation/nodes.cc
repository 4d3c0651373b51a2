// SPDX-License-Identifier: Apache-2.0
// See nodes.h.
#include "tests/simulation/nodes.h"

#include <algorithm>
#include <sstream>

#include "daemon/volume/backing.h"
#include "daemon/volume/match.h"

namespace coracle::simulation {
namespace {

constexpr std::chrono::seconds kBeat{10};
constexpr std::string_view kLeases = "kube-node-lease";

json::object make_condition(std::string_view type, bool status, const std::string& since) {
  return {{"type", type}, {"status", status ? "True" : "False"}, {"lastTransitionTime", since}};
}

constexpr std::string_view kOutOfService = "node.kubernetes.io/out-of-service";

}  // namespace

void Nodes::join(const std::string& name) {
  std::string now = format_time(clock_.now());
  json::value node = {{"metadata", {{"name", name}, {"labels", {{"kubernetes.io/hostname", name}}}}}};
  (void)client_.create(kNode, node);
  json::value& resources = machines_[name];
  if (resources.is_null())
    resources = {{"cpu", std::to_string(dice_.between(2, 4))}, {"memory", "2Gi"}, {"pods", std::to_string(dice_.between(8, 30))}};
  json::value status = {
      {"status",
       {{"capacity", resources},
        {"allocatable", resources},
        {"addresses", json::array{{{"type", "InternalIP"}, {"address", "192.0.2." + std::to_string(10 + ++addresses_)}}}},
        {"conditions", json::array{make_condition("Ready", true, now)}}}}};
  (void)client_.patch(kNode, {"", name}, PatchType::merge, status, {.subresource = "status"});
  beats_[name] = WallTime();
  end_removed(name);
  beat();
}

void Nodes::beat() {
  for (auto& [name, last] : beats_) {
    ObjectPtr node = cluster_state_.find(kNode, {"", name});
    if (clock_.now() - last < kBeat || !node || silent_.contains(name)) continue;
    last = clock_.now();
    if (condition(*node, "Ready", "status") != "True") {
      json::array conditions;
      for (const char* type : {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"})
        conditions.push_back(make_condition(type, std::string_view(type) == "Ready", format_time(last)));
      (void)client_.patch(kNode, node->key(), PatchType::merge, {{"status", {{"conditions", std::move(conditions)}}}},
                          {.subresource = "status"});
    }
    json::value spec = {{"holderIdentity", name}, {"leaseDurationSeconds", 40}, {"renewTime", format_micro_time(last)}};
    Key key{std::string(kLeases), name};
    if (cluster_state_.find(kLease, key)) (void)client_.patch(kLease, key, PatchType::merge, {{"spec", spec}});
    else (void)client_.create(kLease, {{"metadata", {{"name", name}, {"namespace", kLeases}}}, {"spec", spec}});
  }
}

bool Nodes::runs(const std::string& name) const { return beats_.contains(name) && !silent_.contains(name); }

bool Nodes::speaks_for(const Object& pod) const { return runs(std::string(get_string(pod.json(), "spec.nodeName"))); }

void Nodes::end_removed(const std::string& name) {
  std::set<std::string> present;
  for (const ObjectPtr& pod : cluster_state_.all(kPod)) present.insert(pod->uid());
  std::erase_if(pods_, [&](const auto& entry) { return entry.second.node == name && !present.contains(entry.first); });
}

void Nodes::trouble() {
  std::vector<std::string> others;
  for (const auto& [name, machine] : machines_)
    if (name != "node-0") others.push_back(name);
  if (others.empty()) return;
  std::string name = dice_.pick(others);
  if (!beats_.contains(name)) {
    trace_.say("node: " + name + " joins again");
    join(name);
  } else if (dice_.chance(0.3)) {
    trace_.say("node: " + name + " is removed");
    silent_.erase(name), beats_.erase(name);
    (void)client_.remove(kNode, {"", name});
  } else if (silent_.contains(name)) {
    speak(name);
  } else {
    trace_.say("node: " + name + " falls silent");
    silent_.insert(name);
  }
}

void Nodes::speak(const std::string& name) {
  trace_.say("node: " + name + " speaks again");
  silent_.erase(name);
  end_removed(name);
  put_taint(name, false);
  beat();
}

void Nodes::put_taint(const std::string& name, bool out_of_service) {
  ObjectPtr node = cluster_state_.find(kNode, {"", name});
  if (!node) return;
  json::array taints;
  for (const json::value& taint : get_array(node->json(), "spec.taints"))
    if (get_string(taint, "key") != kOutOfService) taints.push_back(taint);
  if (out_of_service) taints.push_back({{"key", kOutOfService}, {"value", "off"}, {"effect", "NoExecute"}});
  if (taints != get_array(node->json(), "spec.taints"))
    (void)client_.patch(kNode, node->key(), PatchType::merge, {{"spec", {{"taints", std::move(taints)}}}});
}

void Nodes::relent() {
  for (const std::string& name : std::set<std::string>(silent_)) {
    if (dice_.chance(0.6)) {
      speak(name);
    } else if (dice_.chance(0.5)) {
      trace_.say("node: " + name + " is removed");
      silent_.erase(name), beats_.erase(name);
      (void)client_.remove(kNode, {"", name});
    } else {
      trace_.say("node: " + name + " is out of service");
      put_taint(name, true);
    }
  }
  for (const auto& [name, machine] : std::map(machines_)) {
    if (beats_.contains(name) || dice_.chance(0.3)) continue;
    trace_.say("node: " + name + " joins again");
    join(name);
  }
}

// Acts like an external provisioner: creates one volume for each claim, with its size and reserved for it.
bool Nodes::provision() {
  bool any = false;
  for (const ObjectPtr& claim : cluster_state_.all(kPersistentVolumeClaim)) {
    if (claim->deleting() || volume::is_bound(*claim) || !volume::class_of(*claim).empty()) continue;
    if (find(claim->json(), "spec.storageClassName") || !get_string(claim->json(), "spec.volumeName").empty()) continue;
    std::string volume = "volume-" + claim->uid();
    if (cluster_state_.find(kPersistentVolume, {"", volume})) continue;
    json::value spec = {{"accessModes", {"ReadWriteOnce"}},
                        {"capacity", {{"storage", volume::request_of(*claim).text()}}},
                        {"hostPath", {{"path", "/data/" + claim->name()}}},
                        {"claimRef", {{"namespace", claim->ns()}, {"name", claim->name()}, {"uid", claim->uid()}}}};
    any |= client_.create(kPersistentVolume, {{"metadata", {{"name", volume}}}, {"spec", spec}}).ok();
    trace_.say("node: volume " + volume + " for " + claim->key().text());
  }
  return any;
}

std::optional<std::vector<std::string>> Nodes::directories_of(const Object& pod) const {
  std::vector<std::string> found;
  for (const json::value& each : get_array(pod.json(), "spec.volumes")) {
    if (volume::claim_name(pod.name(), each).empty()) continue;
    auto backing = volume::backing_of(pod.json(), each,
                                      {[this](const Key& key) { return cluster_state_.find(kPersistentVolumeClaim, key); },
                                       [this](std::string_view name) {
                                         return cluster_state_.find(kPersistentVolume, {"", std::string(name)});
                                       }});
    if (!backing) return std::nullopt;
    if (auto path = get_string(backing->volume->json(), "spec.local.path"); !path.empty()) found.emplace_back(path);
  }
  return found;
}

bool Nodes::has_mounted(const std::string& path) const {
  return std::any_of(pods_.begin(), pods_.end(), [&](const auto& entry) {
    const Local& local = entry.second;
    return local.started && local.phase.empty() && std::count(local.mounts.begin(), local.mounts.end(), path) > 0;
  });
}

Result<std::vector<ObjectPtr>> Nodes::measure(const std::string& ns, const std::string& name) const {
  struct Load {
    int64_t cpu = 100, memory = 20;
    bool shared = false;
  };
  auto load_of = [this](const Object& pod) {
    Load load;
    ObjectPtr loads = cluster_state_.find(kConfigMap, kLoads);
    const json::value* text =
        loads ? find_keys(loads->json(), {"data", pod.ns() + "." + std::string(pod.label("app"))}) : nullptr;
    if (!text) return load;
    std::istringstream in{std::string(text->as_string())};
    std::string how;
    in >> how >> load.cpu >> load.memory;
    load.shared = how == "shared";
    return load;
  };
  auto running = [this](const Object& pod) -> const Local* {
    auto local = pods_.find(pod.uid());
    return speaks_for(pod) && local != pods_.end() && local->second.started && local->second.phase.empty() ? &local->second
                                                                                                           : nullptr;
  };
  std::map<std::pair<std::string, std::string_view>, int64_t> sharing;
  std::vector<ObjectPtr> pods = cluster_state_.all(kPod, ns), out;
  for (const ObjectPtr& pod : pods)
    if (const Local* local = running(*pod)) sharing[{pod->ns(), pod->label("app")}] += local->ready;
  for (const ObjectPtr& pod : pods) {
    const Local* local = running(*pod);
    if (!local || (!name.empty() && pod->name() != name)) continue;
    Load load = load_of(*pod);
    int64_t among = load.shared ? std::max<int64_t>(1, sharing[{pod->ns(), pod->label("app")}]) : 1;
    if (!local->ready) load = {5, 8}, among = 1;
    json::array containers;
    for (const json::value& container : get_array(pod->json(), "spec.containers"))
      containers.push_back({{"name", *find(container, "name")},
                            {"usage",
                             {{"cpu", std::to_string(load.cpu * 1'000'000 / among) + "n"},
                              {"memory", std::to_string(load.memory * 1024 / among) + "Ki"}}}});
    json::value body = {{"metadata", {{"name", pod->name()}, {"namespace", pod->ns()}}},
                        {"timestamp", format_time(clock_.now())},
                        {"window", "10s"},
                        {"containers", containers}};
    out.push_back(MUST(Object::make(kPodMetrics, body)));
  }
  return out;
}

bool Nodes::step(const PodLife& life) {
  if (dice_.chance(0.2)) provision();
  std::vector<ObjectPtr> mine;
  for (ObjectPtr& pod : cluster_state_.all(kPod))
    if (speaks_for(*pod)) mine.push_back(std::move(pod));
  if (mine.empty() || dice_.chance(life.slow)) return false;
  return look(*dice_.pick(mine), life);
}

bool Nodes::settle() {
  const PodLife steady{.slow = 0};
  bool any = provision();
  for (const ObjectPtr& pod : cluster_state_.all(kPod))
    if (speaks_for(*pod)) any |= look(*pod, steady);
  return any;
}

bool Nodes::look(const Object& pod, const PodLife& life) {
  Local& local = pods_[pod.uid()];
  std::string_view outcome = pod.annotation(kOutcome);
  std::string now = format_time(clock_.now());
  if (local.phase.empty() && finished(pod)) local.phase = get_string(pod.json(), "status.phase");  // another client has set it
  if (pod.deleting()) {
    if (!local.phase.empty() || !local.started) {
      if (local.phase.empty()) local.phase = "Failed", local.ended_at = now;
      bool told = report(pod, local);
      trace_.say("node: ends " + pod.key().text() + " " + local.phase);
      (void)client_.remove(kPod, pod.key(), {.grace_period_seconds = 0, .uid = pod.uid()});
      return told || !cluster_state_.find(kPod, pod.key());
    }
    end(pod, local, life);
  } else if (!local.phase.empty()) {
    // It has ended; only the status must be written.
  } else if (auto mounts = directories_of(pod); !local.started && !mounts) {
    return false;  // it waits for its volumes
  } else if (!local.started) {
    local = {.started = true,
             .node = std::string(get_string(pod.json(), "spec.nodeName")),
             .ip = "10.0." + std::to_string(++addresses_ / 250) + "." + std::to_string(addresses_ % 250 + 1),
             .started_at = now,
             .mounts = *std::move(mounts)};
  } else if (outcome == "ends") {
    end(pod, local, life);
  } else if (dice_.chance(life.crashes)) {
    local.ready = false;
    local.restarts++;
    if (get_string(pod.json(), "spec.restartPolicy") == "Never")
      local.phase = "Failed", local.exit_code = 1, local.ended_at = now;
  } else if (!local.ready && outcome != "breaks") {
    local.ready = true, local.ready_since = now;
  } else if (local.ready && dice_.chance(life.flaps)) {
    local.ready = false;
  }
  return report(pod, local);
}

void Nodes::end(const Object& pod, Local& local, const PodLife& life) {
  bool asked = pod.deleting(),
       heeds = pod.annotation(kOutcome) == "ends" && dice_.chance(0.3);  // it may exit with 0 also when asked to stop
  bool fails = asked ? !heeds : dice_.chance(life.fails);
  local.ready = false;
  local.exit_code = fails ? (asked ? 143 : int(dice_.between(1, 3))) : 0;
  bool begins_anew = !asked && fails && get_string(pod.json(), "spec.restartPolicy") != "Never";
  if (begins_anew) local.restarts++;
  else local.phase = fails ? "Failed" : "Succeeded", local.ended_at = format_time(clock_.now());
}

bool Nodes::report(const Object& pod, const Local& local) {
  json::value body = pod.json();
  json::object& status = make(body, "status").get_object();
  std::string phase = local.phase.empty() ? (local.started ? "Running" : "Pending") : local.phase;
  json::object state;
  if (!local.phase.empty())
    state["terminated"] = {{"exitCode", local.exit_code},
                           {"finishedAt", local.ended_at.empty() ? local.started_at : local.ended_at},
                           {"startedAt", local.started_at}};
  else state["running"] = {{"startedAt", local.started_at}};
  json::array containers;
  for (const json::value& container : get_array(body, "spec.containers"))
    containers.push_back({{"name", *find(container, "name")},
                          {"image", *find(container, "image")},
                          {"imageID", ""},
                          {"ready", local.ready},
                          {"started", local.phase.empty()},
                          {"restartCount", local.restarts},
                          {"state", state}});
  const json::array& told = get_array(pod.json(), "status.containerStatuses");
  bool same = status["phase"] == json::value(phase) && ready(pod) == local.ready && !told.empty() == local.started &&
              (told.empty() || get_int(told[0], "restartCount") == local.restarts);
  if (same || !local.started) {
    if (same || local.phase.empty()) return false;
    containers.clear();  // it ended before it started
  }
  std::string since = format_time(clock_.now());
  if (local.ready) since = local.ready_since;
  else if (!ready(pod))
    for (const json::value& present : get_array(body, "status.conditions"))
      if (get_string(present, "type") == "Ready") since = get_string(present, "lastTransitionTime");
  json::array conditions;
  for (const json::value& present : get_array(body, "status.conditions"))
    if (get_string(present, "type") != "Ready" && get_string(present, "type") != "ContainersReady") conditions.push_back(present);
  conditions.push_back(make_condition("Ready", local.ready, since));
  conditions.push_back(make_condition("ContainersReady", local.ready, since));
  status["phase"] = phase;
  status["conditions"] = std::move(conditions);
  status["containerStatuses"] = std::move(containers);
  if (!local.ip.empty()) {
    status["podIP"] = local.ip;
    status["podIPs"] = json::array{{{"ip", local.ip}}};
    status["startTime"] = local.started_at;
  }
  trace_.say("node: " + pod.key().text() + " " + phase + (local.ready ? " ready" : "") + " restarts " +
             std::to_string(local.restarts));
  return client_.update(kPod, body, {.subresource = "status"}).ok();
}

}  // namespace coracle::simulation
