// SPDX-License-Identifier: Apache-2.0
// NamespaceLifecycle: rejects creations in a missing or terminating namespace, and the deletion of three system namespaces.
// Source: apiserver admission/plugin/namespace/lifecycle.
#include "daemon/admission/plugin.h"
#include "store/object/object.h"
#include "store/object/status.h"
#include "store/schema/views.h"

namespace coracle::admission {
namespace {

class NamespaceLifecycle : public Plugin {
 public:
  std::string_view name() const override { return "NamespaceLifecycle"; }

  Result<void> admit(Request& request, const ClusterState& cluster) const override {
    if (request.kind == kNamespace) {
      bool immortal = request.key.name == "default" || request.key.name == "kube-system" || request.key.name == "kube-public";
      if (request.operation == Operation::remove && immortal) return refuse(request, "this namespace may not be deleted");
      return {};
    }
    const std::string& ns = request.key.ns;
    if (ns.empty() || request.operation != Operation::create) return {};
    ObjectPtr found = cluster.get(kNamespace, {"", ns});
    if (!found) return not_found(kNamespace, ns);
    if (!found->deleting() && view::Namespace(*found).status().phase() != "Terminating") return {};
    Error refused = refuse(request, "unable to create new content in namespace " + ns + " because it is being terminated");
    ErrorDetails details = *refused.details();
    details.causes.push_back({"NamespaceTerminating", "namespace " + ns + " is being terminated", "metadata.namespace"});
    return std::move(refused).with(std::move(details));
  }
};

}  // namespace

std::unique_ptr<Plugin> make_namespace_lifecycle() { return std::make_unique<NamespaceLifecycle>(); }

}  // namespace coracle::admission
