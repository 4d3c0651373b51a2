// SPDX-License-Identifier: Apache-2.0
// Mirrors user-created Endpoints of Services without a selector to EndpointSlices, so that the proxy reads only slices. Endpoints
// with the label endpointslice.kubernetes.io/skip-mirror are ignored.
#include "daemon/controller/controller.h"
#include "daemon/controller/service/endpoints.h"

namespace coracle::controller {
namespace {

class EndpointSliceMirror : public Controller {
 public:
  explicit EndpointSliceMirror(const Context& context)
      : client_(context.client),
        services_(context.informers.of(kService)),
        endpoints_(context.informers.of(kEndpoints)),
        slices_(context.informers.of(kEndpointSlice)),
        own_(context.clock) {}

  std::string_view name() const override { return "endpointslicemirror"; }

  void subscribe(const Enqueue& enqueue) override {
    index_by_service(slices_);
    services_.on_change([=](const Informer::Change& change) { enqueue.now(change.any().key()); });
    endpoints_.on_change([=](const Informer::Change& change) { enqueue.now(change.any().key()); });
    slices_.on_change([=](const Informer::Change& change) {
      const Object& slice = change.any();
      if (slice.label(kManagedByLabel) == kSliceMirror) enqueue.now({slice.ns(), std::string(slice.label(kServiceNameLabel))});
    });
  }

  Result<Outcome> reconcile(const Key& key) override {
    if (!own_.shown(key, slices_)) return Outcome{OwnWrites::kLookAgain};
    SlicePlan plan;
    ObjectPtr endpoints = mirrored(key);
    if (endpoints)
      plan = plan_slices({*endpoints, key.name, kSliceMirror}, backends_of_endpoints(*endpoints),
                         slices_of(slices_, key, kSliceMirror));
    else plan.remove = slices_of(slices_, key, kSliceMirror);
    TRY(apply(client_, plan, key, own_));
    return Outcome{};
  }

 private:
  ObjectPtr mirrored(const Key& key) const {
    ObjectPtr service = services_.get(key);
    ObjectPtr endpoints = endpoints_.get(key);
    bool by_hand = service && endpoints && view::Service(*service).spec().selector().empty() &&
                   endpoints->label(kSkipMirrorLabel) != "true" && !endpoints->deleting();
    return by_hand ? endpoints : nullptr;
  }

  Client& client_;
  Informer& services_;
  Informer& endpoints_;
  Informer& slices_;
  OwnWrites own_;
};

}  // namespace

std::unique_ptr<Controller> make_endpoint_slice_mirror(const Context& context) {
  return std::make_unique<EndpointSliceMirror>(context);
}

}  // namespace coracle::controller
