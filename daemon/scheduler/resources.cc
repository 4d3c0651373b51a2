// SPDX-License-Identifier: Apache-2.0
// Adds up the requests of pods. See resources.h.
#include "daemon/scheduler/resources.h"

#include <algorithm>
#include <unordered_map>

#include "store/object/quantity.h"
#include "store/schema/amounts.h"

namespace coracle::scheduler {
namespace {

auto lower_bound(auto& others, std::string_view name) {
  return std::lower_bound(others.begin(), others.end(), name,
                          [](const auto& other, std::string_view n) { return other.first < n; });
}

// Both sums: the requests, and the amounts for scores.
struct Sum {
  Amounts exact, scored;
  Sum& operator+=(const Sum& other) {
    exact += other.exact;
    scored += other.scored;
    return *this;
  }
  void raise_to(const Sum& other) {
    exact.raise_to(other.exact);
    scored.raise_to(other.scored);
  }
  void add_own(const Sum& other) {
    exact.add_own(other.exact);
    scored.add_own(other.scored);
  }
};

// The allocated resources of containers, by name: a pod may have thousands.
using Held = std::unordered_map<std::string_view, Amounts>;

template <typename Statuses>
Held held_by(const Statuses& statuses) {
  Held held;
  for (view::ContainerStatus one : statuses) {
    if (!one.has_resources()) continue;
    Amounts& its = held[one.name()];
    its.raise_to(Amounts::of(one.resources().requests()));
    its.raise_to(Amounts::of(one.allocated_resources()));
  }
  return held;
}

Sum request_of(const view::Container& container, const Held& held, bool resize_is_infeasible) {
  const json::object& wanted = container.resources().requests();
  Sum sum;
  sum.exact = Amounts::of(wanted);
  if (auto its = held.find(container.name()); its != held.end()) {
    if (resize_is_infeasible) sum.exact = its->second;
    else sum.exact.raise_to(its->second);
  }
  sum.scored = sum.exact;
  if (!wanted.contains("cpu")) sum.scored.cpu_milli = kDefaultCpuMilli;
  if (!wanted.contains("memory")) sum.scored.memory = kDefaultMemoryBytes;
  return sum;
}

bool resize_is_infeasible(const view::PodStatus& status) {
  for (view::PodCondition condition : status.conditions())
    if (condition.type() == "PodResizePending") return condition.reason() == "Infeasible";
  return false;
}

}  // namespace

Amounts Amounts::of(const json::object& quantities) {
  Amounts out;
  for (const auto& [name, value] : quantities) {
    auto quantity = Quantity::from_json(value);
    if (!quantity) continue;
    if (name == "cpu" || name == "memory" || name == "ephemeral-storage")
      out.set(name, name == "cpu" ? quantity->milli_value() : quantity->value());
    else out.others_.emplace_back(std::string(name), quantity->value());
  }
  std::ranges::sort(out.others_, {}, &Other::first);  // names in a JSON object are unique
  return out;
}

void Amounts::combine(const Amounts& other, int64_t (*f)(int64_t, int64_t)) {
  if (other.others_.empty()) return;
  std::vector<Other> all;
  all.reserve(others_.size() + other.others_.size());
  auto b = other.others_.begin();
  for (Other& one : others_) {
    for (; b != other.others_.end() && b->first < one.first; ++b) all.emplace_back(b->first, f(0, b->second));
    bool both = b != other.others_.end() && b->first == one.first;
    all.emplace_back(std::move(one.first), both ? f(one.second, (b++)->second) : one.second);
  }
  for (; b != other.others_.end(); ++b) all.emplace_back(b->first, f(0, b->second));
  others_ = std::move(all);
}

int64_t Amounts::get(std::string_view name) const {
  if (name == "cpu") return cpu_milli;
  if (name == "memory") return memory;
  if (name == "ephemeral-storage") return ephemeral;
  auto found = lower_bound(others_, name);
  return found == others_.end() || found->first != name ? 0 : found->second;
}

void Amounts::set(std::string_view name, int64_t amount) {
  if (name == "cpu") cpu_milli = amount;
  else if (name == "memory") memory = amount;
  else if (name == "ephemeral-storage") ephemeral = amount;
  else if (auto found = lower_bound(others_, name); found != others_.end() && found->first == name) found->second = amount;
  else others_.emplace(found, std::string(name), amount);
}

bool Amounts::has(std::string_view name) const {
  auto found = lower_bound(others_, name);
  return found != others_.end() && found->first == name;
}

bool Amounts::is_zero() const {
  return cpu_milli == 0 && memory == 0 && ephemeral == 0 &&
         std::all_of(others_.begin(), others_.end(), [](const Other& other) { return other.second == 0; });
}

Amounts& Amounts::operator+=(const Amounts& other) {
  cpu_milli += other.cpu_milli, memory += other.memory, ephemeral += other.ephemeral;
  combine(other, [](int64_t own, int64_t its) { return own + its; });
  return *this;
}

Amounts& Amounts::operator-=(const Amounts& other) {
  cpu_milli -= other.cpu_milli, memory -= other.memory, ephemeral -= other.ephemeral;
  combine(other, [](int64_t own, int64_t its) { return own - its; });
  std::erase_if(others_, [](const Other& one) { return one.second == 0; });
  return *this;
}

void Amounts::add_own(const Amounts& other) {
  cpu_milli += other.cpu_milli, memory += other.memory, ephemeral += other.ephemeral;
  for (auto& [name, amount] : others_) amount += other.get(name);
}

void Amounts::raise_to(const Amounts& other) {
  cpu_milli = std::max(cpu_milli, other.cpu_milli), memory = std::max(memory, other.memory),
  ephemeral = std::max(ephemeral, other.ephemeral);
  combine(other, [](int64_t own, int64_t its) { return std::max(own, its); });
}

PodRequests requests_of(const view::Pod& pod) {
  view::PodStatus status = pod.status();
  bool infeasible = resize_is_infeasible(status);
  Sum running, sidecars, starting;
  const Held held = held_by(status.container_statuses()), held_at_start = held_by(status.init_container_statuses());
  for (view::Container container : pod.spec().containers()) running += request_of(container, held, infeasible);
  for (view::Container container : pod.spec().init_containers()) {
    Sum own = request_of(container, held_at_start, infeasible);
    if (container.restart_policy() == "Always") {  // a sidecar: runs from its turn on
      running += own;
      sidecars += own;
    } else {  // beside the sidecars before it; the sidecars' sum is counted once below, because it only grows
      own.add_own(sidecars);
      starting.raise_to(own);
    }
  }
  starting.raise_to(sidecars);
  running.raise_to(starting);
  const Amounts whole = Amounts::of(pod.spec().resources().requests());
  for (const auto& [name, value] : pod.spec().resources().requests()) {
    if (!quota::is_pod_level(name)) continue;
    running.exact.set(name, whole.get(name));
    running.scored.set(name, whole.get(name));
  }
  Amounts overhead = Amounts::of(pod.spec().overhead());
  running.exact += overhead;
  running.scored += overhead;
  return {std::move(running.exact), running.scored.cpu_milli, running.scored.memory};
}

std::string amount_text(std::string_view resource, int64_t amount) {
  if (resource == "cpu") return Quantity::of(Millicores(amount)).text();
  bool bytes = resource == "memory" || resource == "ephemeral-storage" || resource.starts_with(quota::kHugePages);
  return bytes ? Quantity::of(Bytes(amount)).text() : std::to_string(amount);
}

}  // namespace coracle::scheduler
