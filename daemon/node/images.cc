// SPDX-License-Identifier: Apache-2.0
// See images.h.
#include "daemon/node/images.h"

#include <unordered_set>

#include "daemon/node/docker_config.h"
#include "runtime/base/text.h"
#include "store/object/object.h"
#include "store/schema/views.h"

namespace coracle::node {

namespace {

// "registry.example/team/*" matches all repositories below it; any other pattern is one repository.
bool is_allowlisted(const std::vector<std::string>& list, std::string_view reference) {
  std::string_view repository = reference.substr(0, reference.find('@'));
  size_t name = repository.rfind('/') == repository.npos ? 0 : repository.rfind('/') + 1;
  repository = repository.substr(0, repository.find(':', name));
  for (std::string_view entry : list) {
    bool all_below = entry.ends_with("/*");
    if (all_below ? repository.starts_with(entry.substr(0, entry.size() - 1)) : repository == entry) return true;
  }
  return false;
}

}  // namespace

bool may_use(const ImageVerification& verification, std::string_view reference, runtime::ImageAccess access) {
  if (access == runtime::ImageAccess::proven || verification.policy == VerificationPolicy::never) return true;
  if (access == runtime::ImageAccess::unproven || verification.policy == VerificationPolicy::always) return false;
  return verification.policy == VerificationPolicy::never_preloaded || is_allowlisted(verification.allowlist, reference);
}

bool is_local_image(std::string_view reference) { return reference.starts_with("localhost/"); }

PullPolicy pull_policy(std::string_view reference, std::string_view policy) {
  if (policy == "Never" || is_local_image(reference)) return PullPolicy::never;
  if (policy == "Always") return PullPolicy::always;
  std::string_view name = reference.substr(reference.rfind('/') + 1);
  bool latest = name.find('@') == name.npos && (name.find(':') == name.npos || name.ends_with(":latest"));
  return policy.empty() && latest ? PullPolicy::always : PullPolicy::if_not_present;
}

PullPolicy pull_policy(const json::value& container) {
  return pull_policy(view::Container(container).image(), view::Container(container).image_pull_policy());
}

std::string image_holder(const std::string& uid, std::string_view volume) { return uid + ".volume." + std::string(volume); }

std::vector<runtime::Credentials> credentials_in(const json::value& secret) {
  std::vector<runtime::Credentials> found;
  view::ObjectMeta metadata = view::Secret(secret).metadata();
  const std::string source =
      std::string(metadata.namespace_()) + "/" + std::string(metadata.name()) + "/" + std::string(metadata.uid());
  const json::object& data = view::Secret(secret).data();
  for (const char* key : {".dockerconfigjson", ".dockercfg"}) {
    const json::value* packed = data.if_contains(key);
    if (!packed || !packed->is_string()) continue;
    auto text = base64_decode(packed->get_string());
    if (!text) continue;
    add_credentials(*text, std::string_view(key) == ".dockerconfigjson", found);
  }
  for (runtime::Credentials& each : found) each.source = source;
  return found;
}

PullSecrets pull_secrets(const json::value& pod, const Lookup& lookup) {
  PullSecrets secrets;
  std::unordered_set<std::string_view> seen;  // there may be very many
  TextBudget budget("the pod's imagePullSecrets", kPullSecretsBytesMax);
  for (view::LocalObjectReference reference : view::Pod(pod).spec().image_pull_secrets()) {
    auto name = reference.name();
    if (name.empty() || !seen.insert(name).second) continue;
    ObjectPtr secret = lookup.secret(name);
    if (!secret) {
      secrets.missing.emplace_back(name);
      continue;
    }
    if (!budget.take(secret->text().size())) break;  // the secrets before the limit are used
    for (auto& credentials : credentials_in(secret->json())) secrets.credentials.push_back(std::move(credentials));
  }
  return secrets;
}

}  // namespace coracle::node
