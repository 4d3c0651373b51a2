// SPDX-License-Identifier: Apache-2.0
// DefaultTolerationSeconds: pods tolerate a node that is not ready or unreachable for five minutes, unless they set a time.
// Source: Kubernetes plugin/pkg/admission/defaulttolerationseconds.
#include "daemon/admission/plugin.h"
#include "store/schema/views.h"

namespace coracle::admission {
namespace {

constexpr int kSeconds = 300;

bool tolerates(view::Pod pod, std::string_view taint) {
  for (view::Toleration toleration : pod.spec().tolerations()) {
    std::string_view key = toleration.key(), effect = toleration.effect();
    if ((key.empty() || key == taint) && (effect.empty() || effect == "NoExecute")) return true;
  }
  return false;
}

class DefaultTolerationSeconds : public Plugin {
 public:
  std::string_view name() const override { return "DefaultTolerationSeconds"; }

  Result<void> admit(Request& request, const ClusterState&) const override {
    if (!(request.kind == kPod) || !request.subresource.empty() || request.operation == Operation::remove) return {};
    for (std::string_view taint : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
      if (tolerates(view::Pod(*request.object), taint)) continue;
      json::object& toleration = make_array(*request.object, "spec.tolerations").emplace_back(json::object_kind).emplace_object();
      toleration.reserve(4);
      toleration["key"] = taint, toleration["operator"] = "Exists", toleration["effect"] = "NoExecute";
      toleration["tolerationSeconds"] = kSeconds;
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<Plugin> make_default_toleration_seconds() { return std::make_unique<DefaultTolerationSeconds>(); }

}  // namespace coracle::admission
