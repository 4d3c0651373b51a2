// SPDX-License-Identifier: Apache-2.0
// Services of type LoadBalancer: on one machine, its own address is the load balancer's, and the proxy serves it. This controller
// writes the address to the status, and removes it when the type changes.
#include <algorithm>

#include "daemon/controller/controller.h"
#include "daemon/controller/shared/common.h"

namespace coracle::controller {
namespace {

class LoadBalancerController : public Controller {
 public:
  explicit LoadBalancerController(const Context& context)
      : client_(context.client),
        services_(context.informers.of(kService)),
        nodes_(context.informers.of(kNode)),
        recorder_(context.events, "service-controller") {}

  std::string_view name() const override { return "loadbalancer"; }

  void subscribe(const Enqueue& enqueue) override {
    services_.on_change([=](const Informer::Change& change) {
      if (change.after) enqueue.now(change.after->key());
    });
    nodes_.on_change([=, this](const Informer::Change& change) {
      if (change.before && change.after && addresses_of(*change.before) == addresses_of(*change.after)) return;
      for (const ObjectPtr& service : services_.list()) enqueue.now(service->key());
    });
  }

  Result<Outcome> reconcile(const Key& key) override {
    ObjectPtr service = services_.get(key);
    if (!service || service->deleting() || is_foreign(*service)) return Outcome{};
    json::array ingress = wanted(*service);
    view::ServiceStatus before = view::Service(*service).status();
    if (same_json(ingress, before.load_balancer().ingress().raw())) return Outcome{};
    json::object status = before.members();
    bool appeared = before.load_balancer().ingress().empty() && !ingress.empty();
    json::object load_balancer;
    if (!ingress.empty()) load_balancer["ingress"] = std::move(ingress);
    status["loadBalancer"] = std::move(load_balancer);
    TRY(write_status(client_, *service, std::move(status)));
    if (appeared) recorder_.normal(*service, "EnsuredLoadBalancer", "Ensured load balancer");
    return Outcome{};
  }

 private:
  // Another implementation handles a Service with loadBalancerClass, including its status.
  static bool is_foreign(const Object& service) {
    view::ServiceSpec spec = view::Service(service).spec();
    return spec.type() == "LoadBalancer" && spec.has_load_balancer_class();
  }

  static std::vector<std::string> addresses_of(const Object& node) {
    std::vector<std::string> out;
    for (view::NodeAddress address : view::Node(node).status().addresses())
      if (address.type() == "InternalIP") out.emplace_back(address.address());
    return out;
  }

  json::array wanted(const Object& object) const {
    view::Service service(object);
    json::array ingress;
    if (service.spec().type() != "LoadBalancer") return ingress;
    for (const ObjectPtr& node : nodes_.list())
      for (const std::string& address : addresses_of(*node))
        if (of_family(service, address)) ingress.push_back({{"ip", address}, {"ipMode", "VIP"}});
    return ingress;
  }
  static bool of_family(view::Service service, const std::string& address) {
    std::string_view family = address.find(':') == address.npos ? "IPv4" : "IPv6";
    auto families = service.spec().ip_families();
    if (families.empty()) return family == "IPv4";
    return std::any_of(families.begin(), families.end(), [&](std::string_view f) { return f == family; });
  }

  Client& client_;
  Informer& services_;
  Informer& nodes_;
  EventRecorder recorder_;
};

}  // namespace

std::unique_ptr<Controller> make_load_balancer_controller(const Context& context) {
  return std::make_unique<LoadBalancerController>(context);
}

}  // namespace coracle::controller
