// SPDX-License-Identifier: Apache-2.0
// Gate: implements dependencies.h's Lister with informers, and reports changes for which waiting pods must be checked again.
//   informers ── change ──▶ on_change(namespace) ──▶ holders of waiting pods there call missing() again
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/informer/informers.h"
#include "daemon/startup/dependencies.h"
#include "runtime/base/guarded.h"

namespace coracle::startup {

class StartupGate : public Lister {
 public:
  using Ready = std::function<bool(const Object& pod)>;
  // The informers must not have started and must outlive it. `ready` absent: the pod's status is used.
  explicit StartupGate(Informers& informers, Ready ready = {});

  // Call before the informers start. `changed` is called on their threads and must be fast: something in the namespace has
  // changed.
  void on_change(std::function<void(const std::string& ns)> changed);

  // As dependencies.h's functions, with a cache per namespace that is valid until something changes there. Thread-safe. Must not
  // be used with a `ready` function: its changes do not invalidate the cache.
  std::string waits_for(const Object& pod);
  std::string cycle(const Object& pod);

  ObjectPtr get(const Kind& kind, const Key& key) const override;
  std::vector<ObjectPtr> pods(const std::string& ns) const override;
  bool ready(const Object& pod) const override;
  bool has_ready_endpoints(const Key& service) const override;

 private:
  struct Kept {
    uint64_t id = 0;
    std::unique_ptr<DependencyCache> idle;  // null: in use
  };
  struct AllKept {
    std::map<std::string, Kept> by_ns;  // the caches that no change has invalidated
    uint64_t last_id = 0;
  };
  template <typename Ask>
  std::string ask_cache(const std::string& ns, Ask ask);

  Guarded<AllKept> kept_;
  Informers& informers_;
  Ready ready_;
  Informer& slices_;
  Informer& pods_;
};

}  // namespace coracle::startup
