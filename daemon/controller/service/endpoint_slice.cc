// SPDX-License-Identifier: Apache-2.0
// EndpointSlices of Services with a selector, used by proxy and DNS. A slice refers to its Service by label and owner reference;
// the garbage collector deletes it with the Service.
#include "daemon/controller/controller.h"
#include "daemon/controller/service/endpoints.h"

namespace coracle::controller {
namespace {

class EndpointSliceController : public Controller {
 public:
  explicit EndpointSliceController(const Context& context)
      : client_(context.client),
        services_(context.informers.of(kService)),
        pods_(context.informers.of(kPod)),
        nodes_(context.informers.of(kNode)),
        slices_(context.informers.of(kEndpointSlice)),
        own_(context.clock) {}

  std::string_view name() const override { return "endpointslice"; }

  void subscribe(const Enqueue& enqueue) override {
    index_by_service(slices_);
    follow(services_, selectors_);
    services_.on_change([=, this](const Informer::Change& change) {
      if (!change.after) own_.forget(change.before->key());
      enqueue.now(change.any().key());
    });
    slices_.on_change([=](const Informer::Change& change) {
      const Object& slice = change.any();
      if (slice.label(kManagedByLabel) == kSliceController)
        enqueue.now({slice.ns(), std::string(slice.label(kServiceNameLabel))});
    });
    index_addressed(pods_);
    pods_.on_change([=, this](const Informer::Change& change) { name_services(selectors_, change, enqueue.now); });
    nodes_.on_change([=, this](const Informer::Change& change) {
      if (zone_label(change.before) == zone_label(change.after)) return;
      for (const ObjectPtr& service : services_.list()) enqueue.now(service->key());
    });
  }

  Result<Outcome> reconcile(const Key& key) override {
    ObjectPtr service = services_.get(key);
    if (!service) selectors_.forget(key);
    if (!service || service->deleting()) return Outcome{};
    view::Service view(*service);
    if (view.spec().selector().empty() || view.spec().type() == "ExternalName") return Outcome{};
    if (!own_.shown(key, slices_)) return Outcome{OwnWrites::kLookAgain};
    std::map<std::string, std::vector<Backend>> wanted;
    std::vector<ObjectPtr> pods = selected_pods(pods_, *service, selectors_);
    for (const std::string& family : families(*service))
      wanted[family] = backends(*service, pods, family, [this](std::string_view node) { return zone_of(node); });
    SliceOwner owner{*service, service->name(), kSliceController, is_headless(*service)};
    TRY(apply(client_, plan_slices(owner, wanted, present(key)), key, own_));
    return Outcome{};
  }

 private:
  std::vector<ObjectPtr> present(const Key& key) const {
    std::vector<ObjectPtr> slices = slices_of(slices_, key, kSliceController);
    std::erase_if(slices, [](const ObjectPtr& slice) { return slice->deleting(); });
    return slices;
  }
  std::string zone_of(std::string_view node) const { return zone_label(nodes_.get({"", std::string(node)})); }
  static std::string zone_label(const ObjectPtr& node) {  // "" without a node
    return node ? std::string(node->label("topology.kubernetes.io/zone")) : "";
  }

  Client& client_;
  Informer& services_;
  SelectorIndex selectors_{selector_of_service};
  Informer& pods_;
  Informer& nodes_;
  Informer& slices_;
  OwnWrites own_;
};

}  // namespace

std::unique_ptr<Controller> make_endpoint_slice_controller(const Context& context) {
  return std::make_unique<EndpointSliceController>(context);
}

}  // namespace coracle::controller
