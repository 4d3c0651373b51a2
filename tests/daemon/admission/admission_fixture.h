// SPDX-License-Identifier: Apache-2.0
// A registry with its whole admission chain, and functions that return the admitted object or the reason of a refusal.
#pragma once

#include "store/schema/catalog.h"
#include "tests/daemon/registry/registry_fixture.h"

namespace coracle::admission {

struct AdmissionFixture : registry::RegistryFixture {
  using RegistryFixture::RegistryFixture;
  const Kind& kind(std::string_view api_version, std::string_view name) const {
    const schema::KindInfo* info = schema::catalog().by_kind(api_version, name);
    EXPECT_TRUE(info) << name;
    return info->kind;
  }
  // The kind comes from the text. `user`: the name of the user, "" = the daemon.
  Result<ObjectPtr> put(std::string_view text, const std::string& user = {}, bool dry_run = false) {
    json::value body = parse(text);
    registry::Writer writer;
    writer.warnings = &warnings;
    writer.audit = &audit;
    writer.dry_run = dry_run;
    const User asker{user, "", groups_of(user), {}};
    writer.user = user.empty() ? nullptr : &asker;
    auto written = registry().create(kind(get_string(body, "apiVersion"), get_string(body, "kind")),
                                     {std::string(get_string(body, "metadata.namespace")), ""}, body, writer);
    if (!written) return written.take_error();
    return written->object;
  }
  std::string refusal(std::string_view text, const std::string& user = {}) {
    auto made = put(text, user);
    return made ? "admitted" : made.error().text();
  }
  static std::vector<std::string> groups_of(const std::string& user) {
    if (user.starts_with("system:node:")) return {"system:nodes", "system:authenticated"};
    return {"system:authenticated"};
  }
  // Stores the object unchanged, without admission: for fields that only a controller or a node would write.
  ObjectPtr store(const Object& object, std::string_view path, json::value value) {
    return MUST(engine->write({&object.kind(), object.key(), with(object, path, std::move(value)), std::nullopt},
                              engine::Durability::durable));
  }
  // A pod with one container; `spec` and `container` are further fields, starting with a comma.
  static std::string pod(const std::string& name, const std::string& container = "", const std::string& spec = "",
                         const std::string& metadata = "") {
    return R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name + R"(","namespace":"default")" + metadata +
           R"(},"spec":{"containers":[{"name":"c","image":"i")" + container + "}]" + spec + "}}";
  }

  std::vector<std::string> warnings;
  std::map<std::string, std::string> audit;
};

}  // namespace coracle::admission
