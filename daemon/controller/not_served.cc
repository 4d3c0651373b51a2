// SPDX-License-Identifier: Apache-2.0
// Claims and ingresses that nothing here serves: an event on each says so, for who looks at one that stays as it is. Goes when
// they are served.
#include "daemon/controller/controller.h"
#include "runtime/base/text.h"

namespace coracle::controller {
namespace {

class NotServed : public Controller {
 public:
  NotServed(const Context& context, std::string_view name, const Kind& kind)
      : name_(name), objects_(context.informers.of(kind)), recorder_(context.events, std::string(name)) {}

  std::string_view name() const override { return name_; }

  void subscribe(const LookAt& look_at) override {
    objects_.on_change([=](const Informer::Change& change) {
      if (change.after && !change.before) look_at.now(change.after->key());
    });
  }

  Result<Outcome> reconcile(const Key& key) override {
    ObjectPtr object = objects_.get(key);
    if (!object || object->deleting()) return Outcome{};
    TRY(say(*object));
    return Outcome{};
  }

 protected:
  virtual Result<void> say(const Object& object) = 0;
  const EventRecorder& recorder() const { return recorder_; }

 private:
  const std::string_view name_;
  Informer& objects_;
  const EventRecorder recorder_;
};

class UnboundClaims : public NotServed {
 public:
  explicit UnboundClaims(const Context& context) : NotServed(context, "persistentvolume-controller", kPersistentVolumeClaim) {}

 private:
  Result<void> say(const Object& claim) override {
    if (get_string(claim.json(), "status.phase") == "Bound") return {};
    recorder().warning(claim, "FailedBinding", "this server does not bind claims to volumes yet: a pod that uses this one waits");
    return {};
  }
};

class UnservedIngresses : public NotServed {
 public:
  explicit UnservedIngresses(const Context& context)
      : NotServed(context, "ingress-controller", kIngress), client_(context.client) {}

 private:
  Result<void> say(const Object& ingress) override {
    std::string name(get_string(ingress.json(), "spec.ingressClassName"));
    bool old_way = !ingress.annotation("kubernetes.io/ingress.class").empty();
    if (old_way || (!name.empty() && client_.get(kIngressClass, {"", name}))) return {};
    recorder().warning(ingress, "NotServed",
                       "nothing here serves ingresses by itself" + (name.empty() ? ", and it names no class of one who does"
                                                                                 : ": there is no IngressClass " + quoted(name)));
    return {};
  }

  Client& client_;
};

}  // namespace

std::unique_ptr<Controller> make_unbound_claims(const Context& context) { return std::make_unique<UnboundClaims>(context); }
std::unique_ptr<Controller> make_unserved_ingresses(const Context& context) {
  return std::make_unique<UnservedIngresses>(context);
}

}  // namespace coracle::controller
