// SPDX-License-Identifier: Apache-2.0
// See status.h.
#include "daemon/node/status.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "runtime/base/sha256.h"
#include "runtime/base/text.h"
#include "store/kinds/pod/pod_state.h"

namespace coracle::node {

namespace {

std::string listed(const std::vector<std::string>& names) {  // in Go's format of a slice
  return "[" + join(names, " ") + "]";
}

class StatusMaker {
 public:
  StatusMaker(const PodRecord& record, const json::value& pod, const StatusContext& context)
      : record_(record), pod_(pod), viewed_(pod), context_(context) {
    for (view::PodCondition condition : viewed_.status().conditions()) conditions_.emplace(condition.type(), condition);
  }

  json::object make() {
    count();
    json::object status;
    if (auto generation = viewed_.metadata().generation(); generation > 0) status["observedGeneration"] = generation;
    const std::string now = phase();
    status["phase"] = now;
    if (is_terminal_phase(now)) {  // the reason is set when it has ended
      if (!record_.verdict_reason.empty()) status["reason"] = record_.verdict_reason;
      if (!record_.verdict_message.empty()) status["message"] = record_.verdict_message;
    }
    status["conditions"] = conditions();
    if (!context_.host_ips.empty()) {
      status["hostIP"] = context_.host_ips.front();
      status["hostIPs"] = addresses(context_.host_ips);
    }
    if (!record_.ips.empty()) {
      status["podIP"] = record_.ips.front();
      status["podIPs"] = addresses(record_.ips);
    }
    if (record_.start_time) status["startTime"] = format_time(*record_.start_time);
    if (!refused()) add_container_statuses(status);
    return status;
  }

 private:
  // A pod refused at admission has no container statuses, because no container was started.
  bool refused() const {
    return record_.verdict == Verdict::failed && !record_.verdict_reason.empty() &&
           std::all_of(record_.containers.begin(), record_.containers.end(), [](const auto& c) { return c.attempt < 0; });
  }

  void count() {
    for (const auto& container : containers_of(pod_)) {
      const ContainerRecord* found = record_.find(container.name);
      if (!found) continue;
      const auto& record = *found;
      any_running_ |= record.running;
      if (container.role == Role::main) {
        main_running_ += record.running;
        main_ended_ += !record.running && record.terminated.has_value();
        main_waiting_ += !record.running && !record.terminated;
        main_failed_ |= record.terminated && record.exit_code() != 0;
        if (!ready(record)) unready_.push_back(record.name);
      } else if (container.role == Role::sidecar) {
        if (!record.started || !record.running) incomplete_.push_back(record.name);
        if (!ready(record)) unready_.push_back(record.name);
      } else if (!record.terminated || record.running || record.exit_code() != 0) {
        incomplete_.push_back(record.name);
      }
    }
  }

  bool ready(const ContainerRecord& record) const { return record.running && record.started && record.ready; }

  std::string phase() const {
    if (record_.verdict != Verdict::none && !any_running_) return record_.verdict == Verdict::succeeded ? "Succeeded" : "Failed";
    if (context_.deleting && !any_running_ && record_.released)
      return main_waiting_ == 0 && !main_failed_ ? "Succeeded" : "Failed";
    if (!record_.initialized && main_running_ + main_ended_ == 0) return "Pending";
    if (main_waiting_ > 0 && main_running_ + main_ended_ == 0) return "Pending";
    if (main_waiting_ > 0 && main_running_ == 0 && main_ended_ == 0) return "Pending";
    return main_waiting_ > 0 ? "Pending" : "Running";
  }

  json::array conditions() const {
    const std::string phase_now = phase();
    bool done = is_terminal_phase(phase_now);
    const char* done_reason = phase_now == "Succeeded" ? "PodCompleted" : "PodFailed";
    json::array list;
    bool sandbox_ready = record_.sandbox == SandboxFact::alive && record_.network_known && !record_.released;
    list.push_back(condition("PodReadyToStartContainers", sandbox_ready));
    bool initialized = record_.initialized || incomplete_.empty();
    if (phase_now == "Succeeded") {
      list.push_back(condition("Initialized", true, "PodCompleted"));
    } else if (initialized) {
      list.push_back(condition("Initialized", true));
    } else {
      list.push_back(condition("Initialized", false, "ContainersNotInitialized",
                               "containers with incomplete status: " + listed(incomplete_)));
    }
    json::object containers_ready = done               ? condition("ContainersReady", false, done_reason)
                                    : unready_.empty() ? condition("ContainersReady", true)
                                                       : condition("ContainersReady", false, "ContainersNotReady",
                                                                   "containers with unready status: " + listed(unready_));
    list.push_back(ready_condition(containers_ready));
    list.push_back(std::move(containers_ready));
    // A pod that no scheduler has bound (spec.nodeName was set, or it is a mirror pod) gets this condition from the node.
    if (condition_of("PodScheduled").status() != "True") list.push_back(condition("PodScheduled", true));
    return list;
  }

  json::object ready_condition(const json::object& containers_ready) const {
    if (containers_ready.at("status") != "True") {
      auto text = [&](const char* name) {
        const auto* found = containers_ready.if_contains(name);
        return found ? std::string(found->get_string()) : std::string();
      };
      return condition("Ready", false, text("reason"), text("message"));
    }
    std::string closed;
    for (view::PodReadinessGate gate : viewed_.spec().readiness_gates()) {
      auto type = gate.condition_type();
      view::PodCondition found = condition_of(type);
      std::string problem;
      if (!found) problem = "corresponding condition of pod readiness gate \"" + std::string(type) + "\" does not exist.";
      else if (found.status() != "True")
        problem =
            "the status of pod readiness gate \"" + std::string(type) + "\" is not \"True\", but " + std::string(found.status());
      if (!problem.empty()) closed += (closed.empty() ? "" : ", ") + problem;
    }
    if (!closed.empty()) return condition("Ready", false, "ReadinessGatesNotReady", closed);
    return condition("Ready", true);
  }

  view::PodCondition condition_of(std::string_view type) const {
    auto found = conditions_.find(type);
    return found == conditions_.end() ? view::PodCondition() : found->second;
  }

  json::object condition(std::string_view type, bool value, std::string reason = {}, std::string message = {}) const {
    std::string_view text = value ? "True" : "False";
    view::PodCondition before = condition_of(type);
    std::string since(before.status() == text ? before.last_transition_time() : std::string_view());
    json::object made{
        {"type", type}, {"status", text}, {"lastTransitionTime", since.empty() ? format_time(context_.now) : since}};
    if (auto generation = viewed_.metadata().generation(); generation > 0) made["observedGeneration"] = generation;
    if (!reason.empty()) made["reason"] = reason;
    if (!message.empty()) made["message"] = bounded(std::move(message));
    return made;
  }

  // A pod may have thousands of containers and gates, and each change of its status would write all of their names.
  static std::string bounded(std::string message) {
    constexpr size_t kMost = 32'768;  // Source: meta/v1, Condition.message, maxLength
    constexpr std::string_view kMore = ", ...";
    if (message.size() <= kMost) return message;
    message.resize(std::min(message.rfind(", ", kMost - kMore.size()), kMost - kMore.size()));
    return message.append(kMore);
  }

  static json::array addresses(const std::vector<std::string>& ips) {
    json::array list;
    for (const auto& ip : ips) list.push_back(json::object{{"ip", ip}});
    return list;
  }

  void add_container_statuses(json::object& status) const {
    json::array init, main;
    for (const auto& container : containers_of(pod_))
      if (const ContainerRecord* record = record_.find(container.name))
        (container.role == Role::main ? main : init).push_back(container_status(container, *record));
    if (!init.empty()) status["initContainerStatuses"] = std::move(init);
    status["containerStatuses"] = std::move(main);
    json::array ephemeral;
    for (const auto& container : ephemeral_of(pod_))
      if (const ContainerRecord* record = record_.find(container.name)) ephemeral.push_back(container_status(container, *record));
    if (!ephemeral.empty()) status["ephemeralContainerStatuses"] = std::move(ephemeral);
  }

  json::object container_status(const ContainerRef& container, const ContainerRecord& record) const {
    json::object made{{"name", record.name}};
    bool waits = !record.running && !record.waiting_reason.empty() && record_.verdict == Verdict::none && !record_.released;
    made["state"] = state(container, record, waits);
    // A container that waits for its next attempt shows the end of the newest one as its last state.
    const auto& last = waits && record.terminated ? record.terminated : record.last;
    made["lastState"] = last ? json::object{{"terminated", *last}} : json::object{};
    bool started = record.running && record.started;
    bool succeeded_init = container.role == Role::init && !record.running && record.terminated && record.exit_code() == 0;
    made["ready"] = container.role == Role::init ? succeeded_init : container.role != Role::ephemeral && ready(record);
    made["restartCount"] = std::max(record.attempt, 0);
    made["image"] = record.mark.image.empty() ? std::string(view::Container(*container.spec).image()) : record.mark.image;
    made["imageID"] = record.mark.image_id;
    if (record.attempt >= 0) made["containerID"] = container_id(record_, record);
    made["started"] = started;
    if (json::array mounts = volume_mounts(*container.spec); !mounts.empty()) made["volumeMounts"] = std::move(mounts);
    return made;
  }

  static json::array volume_mounts(const json::value& container) {
    json::array list;
    for (view::VolumeMount mount : view::Container(container).volume_mounts()) {
      json::object made{{"name", mount.name()}, {"mountPath", mount.mount_path()}};
      if (mount.read_only()) {
        made["readOnly"] = true;
        made["recursiveReadOnly"] = is_recursively_read_only(mount.raw()) ? "Enabled" : "Disabled";
      }
      list.push_back(std::move(made));
    }
    return list;
  }

  json::object state(const ContainerRef& container, const ContainerRecord& record, bool waits) const {
    if (record.running && container.role != Role::init && record.post_start.state == HookState::running)
      return waiting("ContainerCreating", "");
    if (record.running) return {{"running", json::object{{"startedAt", format_time(record.started_at)}}}};
    if (waits) return waiting(record.waiting_reason, record.waiting_message);
    if (record.terminated) return {{"terminated", *record.terminated}};
    bool after_init = !viewed_.spec().init_containers().empty() && !record_.initialized;
    return waiting(after_init ? "PodInitializing" : "ContainerCreating", "");
  }

  static json::object waiting(std::string_view reason, std::string_view message) {
    json::object made{{"reason", reason}};
    if (!message.empty()) made["message"] = message;
    return {{"waiting", std::move(made)}};
  }

  const PodRecord& record_;
  const json::value& pod_;
  const view::Pod viewed_;
  const StatusContext& context_;
  std::map<std::string_view, view::PodCondition> conditions_;  // of the API's status, by type
  int main_running_ = 0, main_ended_ = 0, main_waiting_ = 0;
  bool any_running_ = false, main_failed_ = false;
  std::vector<std::string> unready_, incomplete_;
};

// Whether `old` contains all of `wanted`; keys of other writers do not matter.
bool same_conditions(view::Range<view::PodCondition> old, view::Range<view::PodCondition> wanted) {
  auto parts = [](view::PodCondition condition) {
    return std::tuple(condition.type(), condition.status(), condition.reason(), condition.message(),
                      condition.last_transition_time(), condition.observed_generation());
  };
  return std::all_of(wanted.begin(), wanted.end(), [&](view::PodCondition item) {
    return std::any_of(old.begin(), old.end(), [&](view::PodCondition there) { return parts(there) == parts(item); });
  });
}

// Conditions are merged by type, so fields that a condition no longer has must be removed explicitly.
json::array without_leftovers(view::Range<view::PodCondition> wanted, view::Range<view::PodCondition> old) {
  json::array out;
  for (view::PodCondition item : wanted) {
    json::object made = item.members();
    for (view::PodCondition there : old) {
      if (there.type() != item.type()) continue;
      if (there.has_reason() && !item.has_reason()) made["reason"] = nullptr;
      if (there.has_message() && !item.has_message()) made["message"] = nullptr;
    }
    out.push_back(std::move(made));
  }
  return out;
}

bool is_nothing(const json::value& value) {
  return value.is_null() || (value.is_object() && value.get_object().empty()) ||
         (value.is_array() && value.get_array().empty()) || (value.is_string() && value.get_string().empty());
}

// Equality as in the store: absent, null, "" and empty are the same.
bool same(const json::value& a, const json::value& b) {
  if (is_nothing(a) && is_nothing(b)) return true;
  if (a.is_object() && b.is_object()) {
    static const json::value nothing;
    auto covers = [](const json::object& from, const json::object& to) {
      for (const auto& [key, value] : from) {
        const json::value* other = to.if_contains(key);
        if (!same(value, other ? *other : nothing)) return false;
      }
      return true;
    };
    return covers(a.get_object(), b.get_object()) && covers(b.get_object(), a.get_object());
  }
  if (a.is_array() && b.is_array()) {
    const auto &x = a.get_array(), &y = b.get_array();
    return x.size() == y.size() &&
           std::equal(x.begin(), x.end(), y.begin(), [](const auto& p, const auto& q) { return same(p, q); });
  }
  return a == b;
}

}  // namespace

std::string container_id(const PodRecord& record, const ContainerRecord& container) {
  return std::string(kContainerIdScheme) + hex(as_text(sha256_of(record.uid + "/" + container.id())));
}

json::object make_status(const PodRecord& record, const json::value& pod, const StatusContext& context) {
  return StatusMaker(record, pod, context).make();
}

std::optional<json::value> status_patch(const json::value& pod, const json::object& wanted) {
  static const char* const kOwned[] = {"observedGeneration",
                                       "phase",
                                       "reason",
                                       "message",
                                       "hostIP",
                                       "hostIPs",
                                       "podIP",
                                       "podIPs",
                                       "startTime",
                                       "initContainerStatuses",
                                       "containerStatuses",
                                       "ephemeralContainerStatuses"};
  const json::object& old = view::Pod(pod).status().members();
  json::object changed;
  for (const char* key : kOwned) {
    static const json::value nothing;
    const json::value* before = old.if_contains(key);
    const json::value* after = wanted.if_contains(key);
    if (same(before ? *before : nothing, after ? *after : nothing)) continue;
    if (!after) {
      changed[key] = nullptr;
      continue;
    }
    changed[key] = *after;
    // Otherwise they would be merged by key, and an old address would stay.
    bool merged_by_key = std::string_view(key) == "podIPs" || std::string_view(key) == "hostIPs";
    if (merged_by_key && before)
      changed[key].as_array().insert(changed[key].as_array().begin(), json::object{{"$patch", "replace"}});
  }
  auto before = view::Pod(pod).status().conditions(), after = view::PodStatus(wanted).conditions();
  if (!same_conditions(before, after)) changed["conditions"] = without_leftovers(after, before);
  if (changed.empty()) return std::nullopt;
  return json::value(
      json::object{{"metadata", json::object{{"uid", view::Pod(pod).metadata().uid()}}}, {"status", std::move(changed)}});
}

}  // namespace coracle::node
