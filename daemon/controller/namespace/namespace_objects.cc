// SPDX-License-Identifier: Apache-2.0
// Default objects of every namespace: the ServiceAccount "default" and the ConfigMap "kube-root-ca.crt", by which its pods verify
// the API server. If deleted or changed, they are restored. Source: Kubernetes service accounts; root CA publisher.
#include "daemon/controller/controller.h"
#include "daemon/controller/shared/common.h"

namespace coracle::controller {
namespace {

constexpr std::string_view kRootCa = "kube-root-ca.crt";
constexpr std::string_view kDefault = "default";

// The keys are namespaces. The two controllers share the triggers and differ in the object.
class PerNamespace : public Controller {
 public:
  PerNamespace(const Context& context, const Kind& kind, std::string_view object)
      : client_(context.client),
        kind_(kind),
        namespaces_(context.informers.of(kNamespace)),
        objects_(context.informers.of(kind)),
        object_(object) {}

  void subscribe(const Enqueue& enqueue) override {
    namespaces_.on_change([=](const Informer::Change& change) {
      if (change.after && !change.after->deleting()) enqueue.now(change.after->key());
    });
    objects_.on_change([=, this](const Informer::Change& change) {
      if (change.any().name() == object_) enqueue.now({"", change.any().ns()});
    });
  }

  Result<Outcome> reconcile(const Key& key) override {
    ObjectPtr ns = namespaces_.get(key);
    if (!ns || ns->deleting() || view::Namespace(*ns).status().phase() == "Terminating") return Outcome{};
    ObjectPtr present = objects_.get({key.name, object_});
    json::value wanted = this->wanted(key.name, present);
    Result<void> done;
    if (!present) done = ignore_race(client_.create(kind_, wanted));
    else if (!same_json(wanted, present->json())) done = ignore_race(client_.update(kind_, wanted));
    if (!done) return done.take_error().wrap(object_ + " in " + key.name);
    return Outcome{};
  }

 protected:
  virtual json::value wanted(const std::string& ns, const ObjectPtr& present) const = 0;
  const std::string& object() const { return object_; }

 private:
  static Result<void> ignore_race(Result<ObjectPtr> written) {
    if (written) return {};
    Code code = written.error().code();
    // Created by another client, or the namespace is being deleted: both cause an event.
    if (code == Code::already_exists || code == Code::forbidden || code == Code::not_found) return {};
    return written.take_error();
  }

  Client& client_;
  const Kind& kind_;
  Informer& namespaces_;
  Informer& objects_;
  const std::string object_;
};

class ServiceAccountController : public PerNamespace {
 public:
  explicit ServiceAccountController(const Context& context) : PerNamespace(context, kServiceAccount, kDefault) {}
  std::string_view name() const override { return "serviceaccount"; }

 protected:
  json::value wanted(const std::string& ns, const ObjectPtr& present) const override {
    if (present) return present->json();
    return {{"apiVersion", "v1"}, {"kind", "ServiceAccount"}, {"metadata", {{"name", object()}, {"namespace", ns}}}};
  }
};

class RootCaPublisher : public PerNamespace {
 public:
  explicit RootCaPublisher(const Context& context)
      : PerNamespace(context, kConfigMap, kRootCa), root_ca_(context.config.root_ca) {}
  std::string_view name() const override { return "rootca"; }

 protected:
  json::value wanted(const std::string& ns, const ObjectPtr& present) const override {
    json::value body = present ? present->json()
                               : json::value{{"apiVersion", "v1"},
                                             {"kind", "ConfigMap"},
                                             {"metadata",
                                              {{"name", object()},
                                               {"namespace", ns},
                                               {"annotations",
                                                {{"kubernetes.io/description",
                                                  "Contains a CA bundle that can be used to verify the API server of this "
                                                  "cluster when using internal endpoints such as the internal service IP or "
                                                  "kubernetes.default.svc."}}}}}};
    body.as_object()["data"] = {{"ca.crt", root_ca_}};
    return body;
  }

 private:
  const std::string root_ca_;
};

}  // namespace

std::unique_ptr<Controller> make_service_account_controller(const Context& context) {
  return std::make_unique<ServiceAccountController>(context);
}

std::unique_ptr<Controller> make_root_ca_publisher(const Context& context) { return std::make_unique<RootCaPublisher>(context); }

}  // namespace coracle::controller
