// SPDX-License-Identifier: Apache-2.0
// See startup_gate.h.
#include "daemon/startup/startup_gate.h"

#include "daemon/quota/disruption.h"
#include "store/kinds/pod/pod_state.h"
#include "store/object/object.h"
#include "store/schema/views.h"

namespace coracle::startup {
namespace {

constexpr const char* kByService = "service";  // an index of slices that the EndpointSlice controller adds as well

}  // namespace

StartupGate::StartupGate(Informers& informers, Ready ready)
    : informers_(informers), ready_(std::move(ready)), slices_(informers.of(kEndpointSlice)), pods_(informers.of(kPod)) {
  slices_.add_index(kByService, [](const Object& slice) -> std::vector<std::string> {
    return {slice.ns() + "/" + std::string(slice.label("kubernetes.io/service-name"))};
  });
  on_change([this](const std::string& ns) { kept_.with([&](AllKept& kept) { kept.by_ns.erase(ns); }); });
}

void StartupGate::on_change(std::function<void(const std::string& ns)> changed) {
  auto tell = [changed = std::move(changed)](const Informer::Change& change) { changed(change.any().ns()); };
  for (const Kind* kind : kKinds) informers_.of(*kind).on_change(tell);
  slices_.on_change(tell);
}

template <typename Ask>
std::string StartupGate::ask_cache(const std::string& ns, Ask ask) {
  auto [id, cache] = kept_.with([&](AllKept& kept) {
    auto [found, fresh] = kept.by_ns.try_emplace(ns);
    if (fresh) found->second.id = ++kept.last_id;
    return std::pair(found->second.id, std::move(found->second.idle));
  });
  if (!cache) cache = std::make_unique<DependencyCache>(*this, ns);
  std::string answer = ask(*cache);
  kept_.with([&, id = id, &cache = cache](AllKept& kept) {
    auto found = kept.by_ns.find(ns);
    if (found != kept.by_ns.end() && found->second.id == id) std::swap(found->second.idle, cache);
  });
  return answer;
}

std::string StartupGate::waits_for(const Object& pod) {
  return ask_cache(pod.ns(), [&](DependencyCache& cache) { return cache.waits_for(pod); });
}

std::string StartupGate::cycle(const Object& pod) {
  return ask_cache(pod.ns(), [&](DependencyCache& cache) { return cache.cycle(pod); });
}

ObjectPtr StartupGate::get(const Kind& kind, const Key& key) const { return informers_.of(kind).get(key); }

std::vector<ObjectPtr> StartupGate::pods(const std::string& ns) const { return pods_.list(ns); }

bool StartupGate::ready(const Object& pod) const { return ready_ ? ready_(pod) : is_ready(view::Pod(pod)); }

bool StartupGate::has_ready_endpoints(const Key& service) const {
  for (const ObjectPtr& object : slices_.by_index(kByService, service.text()))
    for (view::Endpoint endpoint : view::EndpointSlice(*object).endpoints())
      if (!endpoint.conditions().has_ready() || endpoint.conditions().ready()) return true;
  return false;
}

}  // namespace coracle::startup
