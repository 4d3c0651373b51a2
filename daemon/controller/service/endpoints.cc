// SPDX-License-Identifier: Apache-2.0
// Endpoints: for each Service with a selector, the object of the same name with the addresses of its pods. EndpointSlices
// supersede it, but people and old clients still read it. It is deleted with its Service, regardless of its author, because a
// later Service of that name must not start with old addresses. Endpoints created before there was a Service are kept.
//   keys: {namespace, name} a Service · {"gone/<namespace>", name} one that was deleted
#include "daemon/controller/service/endpoints.h"

#include "daemon/controller/controller.h"

namespace coracle::controller {
namespace {

constexpr std::string_view kGone = "gone/";

class EndpointsController : public Controller {
 public:
  explicit EndpointsController(const Context& context)
      : client_(context.client),
        services_(context.informers.of(kService)),
        pods_(context.informers.of(kPod)),
        endpoints_(context.informers.of(kEndpoints)),
        own_(context.clock) {}

  std::string_view name() const override { return "endpoints"; }

  void subscribe(const Enqueue& enqueue) override {
    follow(services_, selectors_);
    services_.on_change([=, this](const Informer::Change& change) {
      const Object& service = change.any();
      if (!change.after) own_.forget(service.key());
      enqueue.now(change.after ? service.key() : Key{std::string(kGone) + service.ns(), service.name()});
    });
    endpoints_.on_change([=](const Informer::Change& change) { enqueue.now(change.any().key()); });
    index_addressed(pods_);
    pods_.on_change([=, this](const Informer::Change& change) { name_services(selectors_, change, enqueue.now); });
  }

  Result<Outcome> reconcile(const Key& named) override {
    bool gone = named.ns.starts_with(kGone);
    Key key{gone ? named.ns.substr(kGone.size()) : named.ns, named.name};
    ObjectPtr service = services_.get(key);
    if (!own_.shown(key, endpoints_)) return Outcome{OwnWrites::kLookAgain};
    ObjectPtr present = endpoints_.get(key);
    if (!service) {
      selectors_.forget(key);
      bool ours = present && present->label("endpoints.kubernetes.io/managed-by") == "endpoint-controller";
      if (!ours && !(gone && present)) return Outcome{};
      TRY(remove(*present));
      return Outcome{};
    }
    view::Service view(*service);
    if (view.spec().selector().empty() || view.spec().type() == "ExternalName" || service->deleting()) return Outcome{};
    std::vector<Backend> behind = backends(*service, selected_pods(pods_, *service, selectors_), families(*service)[0], {});
    json::value wanted = endpoints_object(*service, behind, present);
    if (present && same_json(wanted, present->json())) return Outcome{};
    auto written = present ? client_.update(kEndpoints, wanted) : client_.create(kEndpoints, wanted);
    if (!written) return written.take_error().wrap(present ? "update endpoints" : "create endpoints");
    own_.wrote(key, (*written)->revision());
    return Outcome{};
  }

 private:
  Result<void> remove(const Object& present) {
    auto removed = client_.remove(kEndpoints, present.key(), {.uid = present.uid()});
    if (!removed && removed.error().code() != Code::not_found) return removed.take_error().wrap("remove endpoints");
    return {};
  }

  Client& client_;
  Informer& services_;
  SelectorIndex selectors_{selector_of_service};
  Informer& pods_;
  Informer& endpoints_;
  OwnWrites own_;
};

}  // namespace

std::unique_ptr<Controller> make_endpoints_controller(const Context& context) {
  return std::make_unique<EndpointsController>(context);
}

}  // namespace coracle::controller
