// SPDX-License-Identifier: Apache-2.0
// See informers.h.
#include "daemon/informer/informers.h"

#include <algorithm>

namespace coracle {

Informer& Informers::of(const Kind& kind) {
  auto [found, fresh] = all_.try_emplace(&kind);
  if (fresh) {
    if (started_) bug("Informers::of after start", std::string(kind.kind).c_str(), std::source_location::current());
    found->second = std::make_unique<Informer>(client_, kind, WatchOptions{}, reopening_);
  }
  return *found->second;
}

Result<void> Informers::start() {
  started_ = true;
  for (auto& [kind, informer] : all_) {
    TRY(informer->start());
  }
  return {};
}

void Informers::stop() {
  for (auto& [kind, informer] : all_) informer->stop();
}

bool Informers::run_once() {
  bool opened = false;
  for (auto& [kind, informer] : all_) opened |= informer->run_once();
  return opened;
}

bool Informers::wait_synced(std::stop_token stop) const {
  return std::all_of(all_.begin(), all_.end(), [&](const auto& entry) { return entry.second->wait_synced(stop); });
}

bool Informers::synced() const {
  return std::all_of(all_.begin(), all_.end(), [](const auto& entry) { return entry.second->synced(); });
}

}  // namespace coracle
