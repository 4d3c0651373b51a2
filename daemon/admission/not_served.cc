// SPDX-License-Identifier: Apache-2.0
// NotServed: warns about objects that are stored as in Kubernetes but have no effect yet. The warning is defined with the kind in
// the schema text and is removed when the kind works. Kubernetes has no such plugin.
#include "daemon/admission/plugin.h"
#include "daemon/admission/pod.h"
#include "runtime/base/text.h"

namespace coracle::admission {
namespace {

bool needs_app_armor(const json::value& spec) {
  auto wants = [](const json::value& of) {
    std::string_view type = get_string(of, "securityContext.appArmorProfile.type");
    return !type.empty() && type != "Unconfined";
  };
  bool any = wants(spec);
  visit_containers(spec, [&](const json::value& container, std::string_view, size_t) { any = any || wants(container); });
  return any;
}

bool names_a_label(const json::value& spec) {
  auto names = [](const json::value& of) { return !get_object(of, "securityContext.seLinuxOptions").empty(); };
  bool any = names(spec);
  visit_containers(spec, [&](const json::value& container, std::string_view, size_t) { any = any || names(container); });
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
    if (kind == kApiService && find(object, "spec.service"))
      request.warn("APIServices are stored, but requests are not passed on to their services yet");
    if (kind == kIngress) ingress(request, cluster);
    const json::value* pod = pod_of(request.info, object);
    if (const json::value* spec = pod ? find(*pod, "spec") : nullptr) security_modules(request, *spec, cluster.settings());
    return {};
  }

 private:
  static void ingress(const Request& request, const ClusterState& cluster) {
    std::string name(get_string(*request.object, "spec.ingressClassName"));
    bool old_way = get_object(*request.object, "metadata.annotations").contains("kubernetes.io/ingress.class");
    if (old_way || (!name.empty() && cluster.get(kIngressClass, {"", name}))) return;  // a controller was installed for it
    request.warn("Ingresses are stored, but nothing here serves them by itself" +
                 (name.empty() ? std::string() : ": there is no IngressClass " + quoted(name)));
  }

  static void security_modules(const Request& request, const json::value& spec, const Settings& settings) {
    if (!settings.has_app_armor && needs_app_armor(spec))
      request.warn("this machine's kernel has no AppArmor: pods that ask for a profile do not run");
    // Such pods run, as on every node without SELinux.
    if (names_a_label(spec)) request.warn("seLinuxOptions have no effect: containers get no SELinux label here");
  }
};

}  // namespace

std::unique_ptr<Plugin> make_not_served() { return std::make_unique<NotServed>(); }

}  // namespace coracle::admission
