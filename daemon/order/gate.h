// SPDX-License-Identifier: Apache-2.0
// Gate: the world of order.h as the informers have it, and whom to look at again when something in it changes.
//   informers ── change ──▶ on_change(namespace) ──▶ whoever holds pods back there asks missing() again
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/informer/informers.h"
#include "daemon/order/order.h"

namespace coracle::order {

class Gate : public World {
 public:
  using Ready = std::function<bool(const Object& pod)>;
  // Before the informers are started; they must outlive it. `ready`: absent, what the pod's status says.
  explicit Gate(Informers& informers, Ready ready = {});

  // Before the informers are started. Called from their threads, short: something in the namespace is not what it was.
  void on_change(std::function<void(const std::string& ns)> changed);

  ObjectPtr get(const Kind& kind, const Key& key) const override;
  std::vector<ObjectPtr> pods(const std::string& ns) const override;
  bool ready(const Object& pod) const override;
  bool has_ready_endpoints(const Key& service) const override;

 private:
  Informers& informers_;
  Ready ready_;
  Informer& slices_;
  Informer& pods_;
};

}  // namespace coracle::order
