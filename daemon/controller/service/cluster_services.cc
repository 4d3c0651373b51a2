// SPDX-License-Identifier: Apache-2.0
// The Services of the API (kubernetes, with its endpoints) and of the DNS (kube-dns). The daemon creates them when it starts. If
// they are deleted while it runs, as by `delete services --all`, this controller recreates them unchanged. A change enqueues a
// key; reconcile recreates missing objects from their last known state.
#include <map>

#include "daemon/controller/controller.h"
#include "runtime/base/guarded.h"
#include "store/kinds/meta/metadata.h"

namespace coracle::controller {
namespace {

const Key kApi{"default", "kubernetes"}, kDns{"kube-system", "kube-dns"};

json::value copy_for_recreate(const Object& gone) {
  json::value body = gone.json();
  json::object metadata{{"name", gone.name()}, {"namespace", gone.ns()}};
  if (metadata_of(gone).has_labels()) metadata["labels"] = metadata_of(gone).labels();
  body.as_object()["metadata"] = std::move(metadata);
  body.as_object().erase("status");
  return body;
}

class ClusterServices : public Controller {
 public:
  explicit ClusterServices(const Context& context) : client_(context.client) {
    for (const Kind* kind : {&kService, &kEndpoints, &kEndpointSlice}) watched_.emplace_back(kind, &context.informers.of(*kind));
  }
  std::string_view name() const override { return "clusterservices"; }

  void subscribe(const Enqueue& enqueue) override {
    for (auto [kind, informer] : watched_)
      informer->on_change([=, this, kind = kind](const Informer::Change& change) {
        Key key = change.any().key();
        if (key != kApi && key != kDns) return;
        if (!change.after) return enqueue.now(key);
        last_seen_.with([&](auto& seen) { seen[{kind, key}] = change.after; });
      });
  }

  Result<Outcome> reconcile(const Key& key) override {
    for (auto [kind, informer] : watched_) {
      auto gone = last_seen_.with([&, kind = kind](auto& seen) {
        return seen.contains({kind, key}) ? seen.at({kind, key}) : nullptr;
      });
      if (!gone || informer->get(key)) continue;
      auto created = client_.create(*kind, copy_for_recreate(*gone));
      if (!created && created.error().code() != Code::already_exists) return created.take_error().wrap("bring back " + key.name);
    }
    return Outcome{};
  }

 private:
  Client& client_;
  std::vector<std::pair<const Kind*, Informer*>> watched_;
  Guarded<std::map<std::pair<const Kind*, Key>, ObjectPtr>> last_seen_;
};

}  // namespace

std::unique_ptr<Controller> make_cluster_services(const Context& context) { return std::make_unique<ClusterServices>(context); }

}  // namespace coracle::controller
