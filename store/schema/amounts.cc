// SPDX-License-Identifier: Apache-2.0
// See amounts.h.
#include "store/schema/amounts.h"

#include <algorithm>

namespace coracle::quota {
namespace {

using List = const json::object& (view::ResourceRequirements::*)() const;  // requests or limits

Amounts pod_sum(view::PodSpec pod, List list) {
  Amounts sum, sidecars, init;
  for (view::Container container : pod.containers()) add(sum, amounts_of((container.resources().*list)()));
  for (view::Container container : pod.init_containers()) {
    Amounts own = amounts_of((container.resources().*list)());
    if (container.restart_policy() == "Always") {
      add(sum, own), add(sidecars, own);
    } else {  // beside the sidecars before it; the sidecars' sum is counted once below, because it only grows
      for (auto& [name, amount] : own)
        if (auto beside = sidecars.find(name); beside != sidecars.end()) amount += beside->second;
      raise(init, own);
    }
  }
  raise(init, sidecars);
  raise(sum, init);
  for (const auto& [name, amount] : amounts_of((pod.resources().*list)()))
    if (is_pod_level(name)) sum[name] = amount;
  return sum;
}

}  // namespace

bool is_pod_level(std::string_view name) { return name == "cpu" || name == "memory" || name.starts_with(kHugePages); }

Amounts amounts_of(const json::object& list) {
  Amounts out;
  for (const auto& entry : list)
    if (auto amount = Quantity::from_json(entry.value())) out[std::string(entry.key())] = *amount;
  return out;
}

Amounts amounts_of(const json::object& list, const std::vector<std::string>& names) {
  Amounts out;
  for (const std::string& name : names)
    if (auto amount = amount_in(list, name)) out[name] = *amount;
  return out;
}

bool same_amounts(const json::object& a, const json::object& b) {
  auto same = [](const json::value& one, const json::value& other) {
    if (one == other) return true;
    auto amount = Quantity::from_json(one), another = Quantity::from_json(other);
    return amount && another && *amount == *another;
  };
  return a.size() == b.size() && std::ranges::all_of(a, [&](const auto& entry) {
           const json::value* other = b.if_contains(entry.key());
           return other && same(entry.value(), *other);
         });
}

json::object to_json(const Amounts& amounts) {
  json::object out;
  for (const auto& [name, amount] : amounts) out[name] = amount.text();
  return out;
}

void add(Amounts& sum, const Amounts& more) {
  for (const auto& [name, amount] : more) sum[name] += amount;
}

void raise(Amounts& most, const Amounts& other) {
  for (const auto& [name, amount] : other) {
    auto [there, fresh] = most.try_emplace(name, amount);
    if (!fresh && there->second < amount) there->second = amount;
  }
}

Amounts pod_requests(view::Pod pod, bool with_overhead) {
  Amounts sum = pod_sum(pod.spec(), &view::ResourceRequirements::requests);
  if (with_overhead) add(sum, amounts_of(pod.spec().overhead()));
  return sum;
}

Amounts pod_limits(view::Pod pod, bool with_overhead) {
  Amounts sum = pod_sum(pod.spec(), &view::ResourceRequirements::limits);
  if (!with_overhead) return sum;
  for (const auto& [name, amount] : amounts_of(pod.spec().overhead()))
    if (auto limit = sum.find(name); limit != sum.end() && !limit->second.is_zero()) limit->second += amount;
  return sum;
}

}  // namespace coracle::quota
