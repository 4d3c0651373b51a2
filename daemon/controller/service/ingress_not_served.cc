// SPDX-License-Identifier: Apache-2.0
// Ingresses that no controller serves: records an event NotServed on each new Ingress whose IngressClass does not exist.
#include "daemon/controller/controller.h"
#include "runtime/base/text.h"
#include "store/object/object.h"
#include "store/schema/views.h"

namespace coracle::controller {
namespace {

class UnservedIngresses : public Controller {
 public:
  explicit UnservedIngresses(const Context& context)
      : client_(context.client),
        ingresses_(context.informers.of(kIngress)),
        recorder_(context.events, std::string(UnservedIngresses::name())) {}

  std::string_view name() const override { return "ingress-controller"; }

  void subscribe(const Enqueue& enqueue) override {
    ingresses_.on_change([=](const Informer::Change& change) {
      if (change.after && !change.before) enqueue.now(change.after->key());
    });
  }

  Result<Outcome> reconcile(const Key& key) override {
    ObjectPtr ingress = ingresses_.get(key);
    if (!ingress || ingress->deleting()) return Outcome{};
    std::string name(view::Ingress(*ingress).spec().ingress_class_name());
    bool old_way = !ingress->annotation("kubernetes.io/ingress.class").empty();
    if (old_way) return Outcome{};
    if (!name.empty()) {
      auto found = client_.get(kIngressClass, {"", name});
      if (found) return Outcome{};
      if (found.error().code() != Code::not_found) return found.take_error().wrap("read the IngressClass");
    }
    recorder_.warning(*ingress, "NotServed",
                      "nothing here serves ingresses by itself" + (name.empty() ? ", and it names no class of one who does"
                                                                                : ": there is no IngressClass " + quoted(name)));
    return Outcome{};
  }

 private:
  Client& client_;
  Informer& ingresses_;
  const EventRecorder recorder_;
};

}  // namespace

std::unique_ptr<Controller> make_unserved_ingresses(const Context& context) {
  return std::make_unique<UnservedIngresses>(context);
}

}  // namespace coracle::controller
