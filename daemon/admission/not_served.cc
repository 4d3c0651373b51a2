// SPDX-License-Identifier: Apache-2.0
// NotServed: what is stored as Kubernetes stores it, but not acted on yet, says so in a warning to whoever writes it. A row goes
// when its kind works. Ours: Kubernetes has no such plugin.
#include <array>

#include "daemon/admission/plugin.h"
#include "daemon/admission/pod.h"
#include "runtime/base/text.h"

namespace coracle::admission {
namespace {

constexpr std::string_view kWebhooks = "webhooks are stored, but not called yet";
constexpr std::string_view kPolicies = "admission policies are stored, but not evaluated yet";
constexpr std::string_view kDevices = "devices are not allocated yet: a pod that claims one waits";

struct NotServedKind {
  std::string_view group, resource, says;
};
constexpr NotServedKind kNotServed[] = {
    {"apiextensions.k8s.io", "customresourcedefinitions",
     "CustomResourceDefinitions are stored, but the kinds that they define are not served yet"},
    {"admissionregistration.k8s.io", "validatingwebhookconfigurations", kWebhooks},
    {"admissionregistration.k8s.io", "mutatingwebhookconfigurations", kWebhooks},
    {"admissionregistration.k8s.io", "validatingadmissionpolicies", kPolicies},
    {"admissionregistration.k8s.io", "validatingadmissionpolicybindings", kPolicies},
    {"admissionregistration.k8s.io", "mutatingadmissionpolicies", kPolicies},
    {"admissionregistration.k8s.io", "mutatingadmissionpolicybindings", kPolicies},
    {"networking.k8s.io", "networkpolicies",
     "NetworkPolicies are stored, but not enforced yet: pods are reached as without them"},
    {"resource.k8s.io", "resourceclaims", kDevices},
    {"resource.k8s.io", "resourceclaimtemplates", kDevices},
    {"storage.k8s.io", "volumeattachments", "VolumeAttachments are stored, but no volume is attached for them yet"},
};

bool wants_app_armor(const json::value& spec) {
  auto wants = [](const json::value& of) {
    std::string_view type = get_string(of, "securityContext.appArmorProfile.type");
    return !type.empty() && type != "Unconfined";
  };
  bool any = wants(spec);
  visit_containers(spec, [&](const json::value& container, std::string_view, size_t) { any = any || wants(container); });
  return any;
}

class NotServed : public Plugin {
 public:
  std::string_view name() const override { return "NotServed"; }

  Result<void> validate(const Request& request, const World& world) const override {
    if (request.operation == Operation::remove || !request.subresource.empty() || !request.warnings) return {};
    const Kind& kind = request.kind;
    for (const NotServedKind& row : kNotServed)
      if (row.group == kind.group && row.resource == kind.resource) request.warn(std::string(row.says));
    const json::value& object = *request.object;
    if (kind == kApiService && find(object, "spec.service"))
      request.warn("APIServices are stored, but requests are not passed on to their services yet");
    if (kind == kIngress) ingress(request, world);
    if (!world.settings().has_app_armor) app_armor(request);
    return {};
  }

 private:
  static void ingress(const Request& request, const World& world) {
    std::string name(get_string(*request.object, "spec.ingressClassName"));
    bool old_way = get_object(*request.object, "metadata.annotations").contains("kubernetes.io/ingress.class");
    if (old_way || (!name.empty() && world.get(kIngressClass, {"", name}))) return;  // somebody brought a controller along
    request.warn("Ingresses are stored, but nothing here serves them by itself" +
                 (name.empty() ? std::string() : ": there is no IngressClass " + quoted(name)));
  }

  static void app_armor(const Request& request) {
    const json::value* pod = pod_of(request.kind, *request.object);
    const json::value* spec = pod ? find(*pod, "spec") : nullptr;
    if (spec && wants_app_armor(*spec))
      request.warn("this machine's kernel has no AppArmor: pods that ask for a profile do not run");
  }
};

}  // namespace

std::unique_ptr<Plugin> make_not_served() { return std::make_unique<NotServed>(); }

}  // namespace coracle::admission
