// SPDX-License-Identifier: Apache-2.0
// Gate: the world of order.h as the informers have it, and whom to look at again when something in it changes.
//   informers ── change ──▶ on_change(namespace) ──▶ whoever holds pods back there asks missing() again
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/informer/informers.h"
#include "daemon/order/order.h"
#include "runtime/base/guarded.h"

namespace coracle::order {

class Gate : public World {
 public:
  using Ready = std::function<bool(const Object& pod)>;
  // Before the informers are started; they must outlive it. `ready`: absent, what the pod's status says.
  explicit Gate(Informers& informers, Ready ready = {});

  // Before the informers are started. Called from their threads, short: something in the namespace is not what it was.
  void on_change(std::function<void(const std::string& ns)> changed);

  // As order.h's functions, with a cache for each namespace, until something changes there. Thread-safe. Must not be used when
  // `ready` was given: its changes do not reach the cache.
  std::string waits_for(const Object& pod);
  std::string cycle(const Object& pod);

  ObjectPtr get(const Kind& kind, const Key& key) const override;
  std::vector<ObjectPtr> pods(const std::string& ns) const override;
  bool ready(const Object& pod) const override;
  bool has_ready_endpoints(const Key& service) const override;

 private:
  struct Kept {
    uint64_t id = 0;
    std::unique_ptr<DependencyCache> idle;  // null: somebody uses it
  };
  struct AllKept {
    std::map<std::string, Kept> by_ns;  // those that nothing has changed since
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

}  // namespace coracle::order
