// SPDX-License-Identifier: Apache-2.0
// Credentials of registries in Docker's configuration, which Secrets hold as text. It is no built-in kind, so it is read by its
// paths. Source: docker/cli, config.json and the older .dockercfg.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/text.h"
#include "runtime/runtime.h"

namespace coracle::node {

// Adds those in `text`. `nested`: of config.json, where they are below "auths". Text that is not such a configuration has none.
inline void add_credentials(std::string_view text, bool nested, std::vector<runtime::Credentials>& found) {
  auto config = parse_json(text);
  if (!config || !config->is_object()) return;
  for (const auto& [registry, entry] : nested ? get_object(*config, "auths") : config->get_object()) {
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

}  // namespace coracle::node
