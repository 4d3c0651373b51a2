// SPDX-License-Identifier: Apache-2.0
// NotServed: warns about objects that are stored as in Kubernetes but have no effect yet. The warning is defined with the kind in
// the schema text and is removed when the kind works. Kubernetes has no such plugin.
#include "daemon/admission/plugin.h"
#include "daemon/admission/pod.h"
#include "runtime/base/text.h"

namespace coracle::admission {
namespace {

bool needs_app_armor(view::PodSpec spec) {
  auto wants = [](auto of) {  // the pod's spec or a container
    std::string_view type = of.security_context().app_armor_profile().type();
    return !type.empty() && type != "Unconfined";
  };
  bool any = wants(spec);
  visit_containers(spec, [&](view::Container container, std::string_view, size_t) { any = any || wants(container); });
  return any;
}

bool names_a_label(view::PodSpec spec) {
  auto names = [](auto of) { return !of.security_context().se_linux_options().members().empty(); };
  bool any = names(spec);
  visit_containers(spec, [&](view::Container container, std::string_view, size_t) { any = any || names(container); });
  return any;
}

class NotServed : public Plugin {
 public:
  std::string_view name() const override { return "NotServed"; }

  Result<void> validate(const Request& request, const ClusterState& cluster) const override {
    if (request.operation == Operation::remove || !request.subresource.empty() || !request.warnings) return {};
    const Kind& kind = request.kind;
    if (std::string_view warning = request.info.traits.warns; !warning.empty()) request.warn(std::string(warning));
    const json::value& object = *request.object;
    if (kind == kApiService && view::APIService(object).spec().has_service())
      request.warn("APIServices are stored, but requests are not passed on to their services yet");
    if (kind == kIngress) ingress(request, cluster);
    if (view::PodSpec spec = pod_of(request.info, object).spec()) security_modules(request, spec, cluster.settings());
    return {};
  }

 private:
  static void ingress(const Request& request, const ClusterState& cluster) {
    view::Ingress ingress(*request.object);
    std::string name(ingress.spec().ingress_class_name());
    bool old_way = ingress.metadata().annotations().contains("kubernetes.io/ingress.class");
    if (old_way || (!name.empty() && cluster.get(kIngressClass, {"", name}))) return;  // a controller was installed for it
    request.warn("Ingresses are stored, but nothing here serves them by itself" +
                 (name.empty() ? std::string() : ": there is no IngressClass " + quoted(name)));
  }

  static void security_modules(const Request& request, view::PodSpec spec, const Settings& settings) {
    if (!settings.has_app_armor && needs_app_armor(spec))
      request.warn("this machine's kernel has no AppArmor: pods that ask for a profile do not run");
    // Such pods run, as on every node without SELinux.
    if (names_a_label(spec)) request.warn("seLinuxOptions have no effect: containers get no SELinux label here");
  }
};

}  // namespace

std::unique_ptr<Plugin> make_not_served() { return std::make_unique<NotServed>(); }

}  // namespace coracle::admission
