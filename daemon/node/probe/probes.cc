// SPDX-License-Identifier: Apache-2.0
// See probes.h.
#include "daemon/node/probe/probes.h"

#include <algorithm>
#include <array>

#include "runtime/base/thread.h"
#include "store/schema/views.h"

namespace coracle::node {

namespace {

constexpr size_t kProbesAtOnce = 64, kProbesOfPodAtOnce = 8;
constexpr std::chrono::milliseconds kEarlyFirst{100}, kEarlyEnd{1000};  // repetitions in a container's first second
constexpr std::array<ProbeKind, 3> kKinds = {ProbeKind::startup, ProbeKind::liveness, ProbeKind::readiness};

std::string entry_key(const std::string& uid, const std::string& id) { return uid + "/" + id; }

std::string capital_name(ProbeKind kind) {
  switch (kind) {
    case ProbeKind::startup: return "Startup";
    case ProbeKind::liveness: return "Liveness";
    case ProbeKind::readiness: return "Readiness";
  }
  return "";
}

view::Probe probe_of(view::Container container, ProbeKind kind) {
  switch (kind) {
    case ProbeKind::startup: return container.startup_probe();
    case ProbeKind::liveness: return container.liveness_probe();
    case ProbeKind::readiness: return container.readiness_probe();
  }
  return {};
}

}  // namespace

const char* probe_field(ProbeKind kind) {
  switch (kind) {
    case ProbeKind::startup: return "startupProbe";
    case ProbeKind::liveness: return "livenessProbe";
    case ProbeKind::readiness: return "readinessProbe";
  }
  return "";
}

ProbeTiming ProbeTiming::of(const json::value& probe) {
  view::Probe viewed(probe);
  auto at_least = [](int64_t least, int64_t number) { return std::max(number, least); };
  return {std::chrono::seconds(at_least(0, viewed.initial_delay_seconds())),
          std::chrono::seconds(at_least(1, viewed.period_seconds_or(10))),
          std::chrono::seconds(at_least(1, viewed.timeout_seconds_or(1))), int(at_least(1, viewed.success_threshold_or(1))),
          int(at_least(1, viewed.failure_threshold_or(3)))};
}

bool ProbeCount::add(bool success) {
  in_a_row_ = success == last_ ? in_a_row_ + 1 : 1;
  last_ = success;
  if (in_a_row_ < (success ? timing_.success_threshold : timing_.failure_threshold)) return false;
  if (result_ == success) return false;
  result_ = success;
  return true;
}

struct Probes::Probe {
  Probe(const json::value& spec_, std::optional<bool> initial)
      : spec(&spec_), timing(ProbeTiming::of(spec_)), count(timing, initial) {}
  const json::value* spec;  // points into the entry's container
  ProbeTiming timing;
  ProbeCount count;
  SteadyTime due{};  // earlier ones are early repetitions
};

struct Probes::Entry {
  ProbedContainer container;
  std::map<ProbeKind, Probe> probes;
  std::string text;  // of the failure that reached the threshold
  bool startup_done() const {
    auto startup = probes.find(ProbeKind::startup);
    return startup == probes.end() || startup->second.count.result() == true;
  }
};

Probes::Probes(const Actions& actions, const Clock& clock, std::function<void(const std::string&)> changed,
               std::function<void(const Warning&)> warned)
    : actions_(actions),
      clock_(clock),
      changed_(std::move(changed)),
      warned_(std::move(warned)),
      due_(BackoffPolicy{}, clock),
      running_("probes", kProbesAtOnce, kProbesOfPodAtOnce) {}

Probes::~Probes() {
  stop_.request_stop();
  std::jthread dispatcher;
  state_.with([&](State& state) { dispatcher.swap(state.dispatcher); });
}  // joins the dispatcher

void Probes::start() {
  state_.with([](State& state) { state.started = true; });
}

void Probes::dispatch() {
  while (auto due = due_.take(stop_.get_token())) {
    auto lease = std::make_shared<WorkQueue::Lease>(*std::move(due));
    std::string uid = lease->key().ns.substr(0, lease->key().ns.find('/'));  // see entry_key
    running_.post([this, lease = std::move(lease)](std::stop_token) { run(lease->key()); }, uid);
  }
}

bool Probes::watches(const std::string& uid, const std::string& id) const {
  return state_.with([&](const State& state) { return state.entries.count(entry_key(uid, id)) > 0; });
}

void Probes::watch(ProbedContainer watched) {
  auto entry = std::make_shared<Entry>();
  entry->container = std::move(watched);
  const ProbedContainer& container = entry->container;
  std::string key = entry_key(container.uid, container.id);
  for (ProbeKind kind : kKinds) {
    view::Probe spec = probe_of(view::Container(container.spec), kind);
    if (!spec) continue;
    // Before the first result: alive, not ready, not started. An adopted container keeps its earlier state.
    std::optional<bool> initial = true;
    if (kind == ProbeKind::readiness) initial = container.was_ready;
    if (kind == ProbeKind::startup) initial = container.was_started ? std::optional(true) : std::nullopt;
    entry->probes.try_emplace(kind, spec.raw(), initial);
  }
  bool fresh = state_.with([&](State& state) {
    if (!state.entries.try_emplace(key, entry).second) return false;
    if (state.started && !entry->probes.empty() && !state.dispatcher.joinable())
      state.dispatcher = start_thread("probes", [this] { dispatch(); });
    return true;
  });
  if (!fresh) return;
  for (const auto& [kind, probe] : entry->probes) {
    if (kind == ProbeKind::startup && probe.count.result() == true) continue;
    if (kind != ProbeKind::startup && !entry->startup_done()) continue;  // they begin after the startup probe has succeeded
    due_.add_after({key, probe_field(kind)},
                   std::max<std::chrono::nanoseconds>(container.started + probe.timing.initial_delay - clock_.steady(), {}));
  }
}

void Probes::forget(const std::string& uid, const std::string& id) {
  state_.with([&](State& state) { state.entries.erase(entry_key(uid, id)); });
}

void Probes::forget_pod(const std::string& uid) {
  state_.with(
      [&](State& state) { std::erase_if(state.entries, [&](const auto& entry) { return entry.second->container.uid == uid; }); });
}

ProbeVerdict Probes::verdict(const std::string& uid, const std::string& id) const {
  return state_.with([&](const State& state) {
    ProbeVerdict verdict;
    auto found = state.entries.find(entry_key(uid, id));
    if (found == state.entries.end()) return verdict;
    for (const auto& [kind, probe] : found->second->probes) {
      auto result = probe.count.result();
      if (kind == ProbeKind::readiness) verdict.ready = result == true;
      if (kind == ProbeKind::startup) verdict.startup_passed = result == true;
      if (kind != ProbeKind::readiness && result == false) verdict.failed = kind;
    }
    verdict.text = found->second->text;
    return verdict;
  });
}

bool Probes::run_one() {
  auto lease = due_.try_take();
  if (lease) run(lease->key());
  return lease.has_value();
}

void Probes::run(const Key& key) {
  std::shared_ptr<Entry> entry = state_.with([&](State& state) {
    auto found = state.entries.find(key.ns);
    return found == state.entries.end() ? nullptr : found->second;
  });
  if (!entry) return;  // it has ended in the meantime
  for (auto& [kind, probe] : entry->probes) {
    if (key.name != probe_field(kind)) continue;
    const bool early = clock_.steady() < probe.due;
    ActionTarget target{entry->container.uid, entry->container.id, entry->container.address, &entry->container.spec};
    ActionResult result = actions_.run(*probe.spec, target, probe.timing.timeout, stop_.get_token());
    if (stop_.stop_requested()) return;
    finish(entry, kind, result, early);
    return;
  }
}

void Probes::finish(const std::shared_ptr<Entry>& entry, ProbeKind kind, const ActionResult& result, bool early) {
  const ProbedContainer& container = entry->container;
  std::string key = entry_key(container.uid, container.id);
  bool changed = false, still_there = false, again = false, startup_passed = false;
  std::chrono::nanoseconds delay{0};
  state_.with([&](State& state) {
    auto found = state.entries.find(key);
    still_there = found != state.entries.end() && found->second == entry;
    if (!still_there) return;
    Probe& probe = entry->probes.at(kind);
    const SteadyTime now = clock_.steady();
    const std::chrono::nanoseconds ran = now - container.started;
    if (!early) probe.due = now + probe.timing.period;
    changed = (!early || result.success) && probe.count.add(result.success);
    if (changed && !result.success) entry->text = result.text;
    startup_passed = changed && kind == ProbeKind::startup && result.success;
    // A startup probe ends with success; after a final failure, probing ends until the restart.
    bool done =
        probe.count.result() && (kind == ProbeKind::startup || (kind == ProbeKind::liveness && probe.count.result() == false));
    again = !done;
    delay = std::max<std::chrono::nanoseconds>(probe.due - now, {});
    const std::chrono::nanoseconds soon = std::max<std::chrono::nanoseconds>(ran, kEarlyFirst);
    if (!result.success && kind != ProbeKind::liveness && ran + soon <= kEarlyEnd) delay = std::min(delay, soon);
  });
  if (!still_there) return;
  if (!result.success && !early)
    warned_({container.uid, container.spec, "Unhealthy", capital_name(kind) + " probe failed: " + result.text});
  if (result.success && !result.text.empty())
    warned_({container.uid, container.spec, "ProbeWarning", capital_name(kind) + " probe warning: " + result.text});
  if (again) due_.add_after({key, probe_field(kind)}, delay);
  if (startup_passed)
    for (const auto& [other, probe] : entry->probes)
      if (other != ProbeKind::startup)
        due_.add_after({key, probe_field(other)},
                       std::max<std::chrono::nanoseconds>(container.started + probe.timing.initial_delay - clock_.steady(), {}));
  if (changed) changed_(container.uid);
}

}  // namespace coracle::node
