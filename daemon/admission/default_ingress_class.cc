// SPDX-License-Identifier: Apache-2.0
// DefaultIngressClass: sets the default class, if there is one, in an Ingress without a class. Source: Kubernetes
// plugin/pkg/admission/network/defaultingressclass.
#include "daemon/admission/plugin.h"
#include "store/kinds/meta/default_object.h"
#include "store/schema/views.h"

namespace coracle::admission {
namespace {

class DefaultIngressClass : public Plugin {
 public:
  std::string_view name() const override { return "DefaultIngressClass"; }

  Result<void> admit(Request& request, const ClusterState& cluster) const override {
    if (!request.creates(kIngress)) return {};
    view::Ingress ingress(*request.object);
    if (ingress.spec().has_ingress_class_name() || ingress.metadata().annotations().contains("kubernetes.io/ingress.class"))
      return {};
    if (ObjectPtr found = default_object(cluster.list(kIngressClass), kDefaultIngressClass))
      make(*request.object, "spec.ingressClassName") = found->name();
    return {};
  }
};

}  // namespace

std::unique_ptr<Plugin> make_default_ingress_class() { return std::make_unique<DefaultIngressClass>(); }

}  // namespace coracle::admission
