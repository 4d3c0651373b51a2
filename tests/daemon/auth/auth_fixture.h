// SPDX-License-Identifier: Apache-2.0
// A registry with the default roles and the write guard, and users for requests.
#pragma once

#include "daemon/auth/authorizer.h"
#include "daemon/auth/default_roles.h"
#include "daemon/auth/write_guard.h"
#include "runtime/base/text.h"
#include "tests/daemon/registry/registry_fixture.h"

namespace coracle::auth {

inline User user(std::string name, std::vector<std::string> groups = {"system:authenticated"}) {
  return {std::move(name), "", std::move(groups), {}};
}
inline const User kAdmin = user("kubernetes-admin", {"system:masters", "system:authenticated"});
inline const User kJane = user("jane");

class AuthFixture : public registry::RegistryFixture {
 public:
  AuthFixture() : authorizer(registry()), guard(authorizer) {
    MUST(ensure_default_roles(registry()));
    registry().set_guard(&guard);
  }
  ~AuthFixture() { registry().set_guard(nullptr); }

  bool may(const User& who, std::string verb, std::string resource, std::string ns = "default", std::string name = "",
           std::string group = "", std::string sub = "") {
    return decide(who, std::move(verb), std::move(resource), std::move(ns), std::move(name), std::move(group), std::move(sub))
        .allowed;
  }
  Decision decide(const User& who, std::string verb, std::string resource, std::string ns = "default", std::string name = "",
                  std::string group = "", std::string sub = "") {
    return authorizer.authorize(who, {std::move(verb), std::move(group), std::move(resource), std::move(sub), std::move(ns),
                                      std::move(name), "", true, ""});
  }
  bool may_path(const User& who, std::string verb, std::string path) {
    return authorizer.authorize(who, {std::move(verb), "", "", "", "", "", std::move(path), false, ""}).allowed;
  }
  // The error that `who` gets for this write; "" if it succeeds.
  std::string written_by(const User& who, const Kind& kind, std::string_view text) {
    registry::Writer writer;
    writer.user = &who;
    auto made = try_make(kind, text, writer);
    return made ? std::string() : made.error().text();
  }
  std::string merged_by(const User& who, const Kind& kind, const Key& key, std::string_view patch,
                        std::string_view subresource = {}) {
    registry::Writer writer;
    writer.user = &who;
    auto made = registry().patch(kind, key, subresource, PatchType::merge, parse(patch), false, writer);
    return made ? std::string() : made.error().text();
  }

  Authorizer authorizer;
  WriteGuard guard;
};

}  // namespace coracle::auth
