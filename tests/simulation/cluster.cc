// SPDX-License-Identifier: Apache-2.0
// See cluster.h.
#include "tests/simulation/cluster.h"

#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "daemon/registry/bootstrap.h"
#include "store/schema/catalog.h"
#include "tests/catalogs.h"

namespace coracle::simulation {
namespace {

engine::Options options() {
  engine::Options options;
  options.find_kind = find_built_in();
  options.soft_delay = options.lazy_delay = std::chrono::hours(24);  // only the scenario's clock triggers writes to disk
  return options;
}

}  // namespace

std::vector<const Kind*> Cluster::kinds() {
  std::vector<const Kind*> kinds;
  for (const schema::KindInfo& info : schema::catalog().kinds())
    if (info.is_stored() && info.has_verb("watch")) kinds.push_back(&info.kind);
  return kinds;
}

Cluster::Cluster(const Clock& clock) : clock_(clock) {
  char path[] = "/dev/shm/coracle-simulation-XXXXXX";
  directory_ = ::mkdtemp(path);
  open();
  MUST(registry::bootstrap(*registry_, {}, {"192.0.2.1", 6443}));
}

Cluster::~Cluster() {
  pages_.clear();
  client_.reset();
  registry_.reset();
  engine_.reset();
  std::filesystem::remove_all(directory_);
}

void Cluster::open() {
  engine_ = MUST(engine::Engine::open(directory_ + "/store-" + std::to_string(cuts_), options()));
  registry_ = std::make_unique<registry::Registry>(*engine_, built_in_catalogs(), kinds::Ranges{}, clock_);
  if (measure_) registry_->set_measure(kPodMetrics, measure_);
  client_ = std::make_unique<registry::LocalClient>(*registry_);
  told_ = engine_->revision();
  pages_.clear();
  for (const Kind* kind : kinds()) pages_.push_back({kind, MUST(engine_->watch(*kind, "", told_))});
}

void Cluster::set_measure(registry::Measure measure) {
  measure_ = std::move(measure);
  registry_->set_measure(kPodMetrics, measure_);
}

void Cluster::tell(Actor actor) {
  if (engine_->revision() == told_) return;
  std::vector<Change> changes;
  std::stop_source stopped;
  stopped.request_stop();  // only existing events, without waiting
  for (Page& page : pages_) {
    while (auto event = MUST(page.watcher->take(stopped.get_token(), {}))) {
      bool gone = event->type == engine::EventType::deleted;
      changes.push_back({page.kind, event->before, gone ? nullptr : event->object, event->revision});
    }
  }
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.revision < b.revision; });
  told_ = engine_->revision();
  if (!listener_) return;
  for (const Change& change : changes) listener_(actor, change);
}

void Cluster::lose_power() {
  std::string from = directory_ + "/store-" + std::to_string(cuts_);
  std::string to = directory_ + "/store-" + std::to_string(++cuts_);
  for (const char* suffix : {"", "-wal"})
    if (std::filesystem::exists(from + suffix)) std::filesystem::copy_file(from + suffix, to + suffix);
  pages_.clear();
  client_.reset();
  registry_.reset();
  engine_.reset();
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(from + suffix);
  open();
}

}  // namespace coracle::simulation
