// SPDX-License-Identifier: Apache-2.0
// See images.h.
#include "daemon/node/images.h"

#include <set>

#include "runtime/base/text.h"
#include "store/object/object.h"

namespace coracle::node {

namespace {

void add_auths(const json::object& auths, std::vector<runtime::Credentials>& found) {
  for (const auto& [registry, entry] : auths) {
    runtime::Credentials credentials;
    std::string host(registry);
    for (std::string_view scheme : {"https://", "http://"})
      if (host.starts_with(scheme)) host.erase(0, scheme.size());
    while (host.ends_with('/')) host.pop_back();
    credentials.registry = host;
    credentials.username = get_string(entry, "username");
    credentials.password = get_string(entry, "password");
    credentials.identity_token = get_string(entry, "identitytoken");
    if (auto packed = get_string(entry, "auth"); !packed.empty()) {
      auto decoded = base64_decode(packed);
      size_t colon = decoded ? decoded->find(':') : std::string::npos;
      if (colon == std::string::npos) continue;
      credentials.username = decoded->substr(0, colon);
      credentials.password = decoded->substr(colon + 1);
    }
    found.push_back(std::move(credentials));
  }
}

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
  return pull_policy(get_string(container, "image"), get_string(container, "imagePullPolicy"));
}

std::string image_holder(const std::string& uid, std::string_view volume) { return uid + ".volume." + std::string(volume); }

std::vector<runtime::Credentials> credentials_in(const json::value& secret) {
  std::vector<runtime::Credentials> found;
  const std::string source = std::string(get_string(secret, "metadata.namespace")) + "/" +
                             std::string(get_string(secret, "metadata.name")) + "/" +
                             std::string(get_string(secret, "metadata.uid"));
  const json::object& data = get_object(secret, "data");
  for (const char* key : {".dockerconfigjson", ".dockercfg"}) {
    const json::value* packed = data.if_contains(key);
    if (!packed || !packed->is_string()) continue;
    auto text = base64_decode(packed->get_string());
    if (!text) continue;
    auto config = parse_json(*text);
    if (!config || !config->is_object()) continue;
    bool nested = std::string_view(key) == ".dockerconfigjson";
    add_auths(nested ? get_object(*config, "auths") : config->get_object(), found);
  }
  for (runtime::Credentials& each : found) each.source = source;
  return found;
}

PullSecrets pull_secrets(const json::value& pod, const Lookup& lookup) {
  PullSecrets secrets;
  std::set<std::string_view> seen;
  TextBudget budget("the pod's imagePullSecrets", kPullSecretsBytesMax);
  for (const auto& reference : get_array(pod, "spec.imagePullSecrets")) {
    auto name = get_string(reference, "name");
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

std::string pull_error_reason(const Error& error) { return error.code() == Code::invalid ? "InvalidImageName" : "ErrImagePull"; }

}  // namespace coracle::node
