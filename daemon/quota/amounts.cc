// SPDX-License-Identifier: Apache-2.0
// See amounts.h.
#include "daemon/quota/amounts.h"

namespace coracle::quota {
namespace {

Amounts pod_sum(const json::value& pod, std::string_view which) {
  std::string path = "resources." + std::string(which);
  Amounts sum, sidecars, init;
  for (const json::value& container : get_array(pod, "spec.containers")) add(sum, amounts_of(get_object(container, path)));
  for (const json::value& container : get_array(pod, "spec.initContainers")) {
    Amounts own = amounts_of(get_object(container, path));
    if (get_string(container, "restartPolicy") == "Always") {
      add(sum, own), add(sidecars, own);
    } else {  // beside the sidecars before it; the sidecars' sum is counted once below, because it only grows
      for (auto& [name, amount] : own)
        if (auto beside = sidecars.find(name); beside != sidecars.end()) amount += beside->second;
      raise(init, own);
    }
  }
  raise(init, sidecars);
  raise(sum, init);
  for (const auto& [name, amount] : amounts_of(get_object(pod, "spec." + path)))
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

Amounts pod_requests(const json::value& pod, bool with_overhead) {
  Amounts sum = pod_sum(pod, "requests");
  if (with_overhead) add(sum, amounts_of(get_object(pod, "spec.overhead")));
  return sum;
}

Amounts pod_limits(const json::value& pod, bool with_overhead) {
  Amounts sum = pod_sum(pod, "limits");
  if (!with_overhead) return sum;
  for (const auto& [name, amount] : amounts_of(get_object(pod, "spec.overhead")))
    if (auto limit = sum.find(name); limit != sum.end() && !limit->second.is_zero()) limit->second += amount;
  return sum;
}

}  // namespace coracle::quota
