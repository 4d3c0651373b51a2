// SPDX-License-Identifier: Apache-2.0
// A registry over an engine in a temporary directory, with the initial objects of every cluster.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>

#include "daemon/registry/bootstrap.h"
#include "daemon/registry/local.h"
#include "daemon/registry/registry.h"
#include "store/object/object.h"
#include "tests/catalogs.h"

namespace coracle::registry {

class RegistryFixture {
 public:
  // `vfs`: of SQLite, for tests with a slow or failing disk.
  explicit RegistryFixture(kinds::Ranges ranges = {}, size_t objects_bytes_max = 0, const char* vfs = nullptr) : ranges(ranges) {
    char path[] = "/tmp/coracle-registry-XXXXXX";
    directory = ::mkdtemp(path);
    options.find_kind = find_built_in();
    options.objects_bytes_max = objects_bytes_max;
    options.vfs = vfs;
    reopen();
    MUST(bootstrap(*registry_, ranges, {"192.0.2.1", 6443}));
    make(kServiceAccount, R"({"metadata":{"name":"default","namespace":"default"}})");
  }
  // As a restart of the daemon, with changed settings.
  void reopen() {
    client_.reset(), registry_.reset(), engine.reset();
    engine = MUST(engine::Engine::open(directory + "/store.db", options));
    registry_ = std::make_unique<Registry>(*engine, built_in_catalogs(), ranges, clock, admission);
    client_ = std::make_unique<LocalClient>(*registry_);
  }
  ~RegistryFixture() {
    registry_.reset();
    engine.reset();
    std::filesystem::remove_all(directory);
  }
  Registry& registry() { return *registry_; }
  LocalClient& client() { return *client_; }

  static json::value parse(std::string_view text) { return MUST(parse_json(text)); }
  Result<ObjectPtr> try_make(const Kind& kind, std::string_view text, const Writer& writer = {}) {
    json::value body = parse(text);
    auto written = registry_->create(kind, {std::string(get_string(body, "metadata.namespace")), ""}, body, writer);
    if (!written) return written.take_error();
    return written->object;
  }
  ObjectPtr make(const Kind& kind, std::string_view text) { return MUST(try_make(kind, text)); }
  Result<ObjectPtr> try_update(const Kind& kind, json::value body, std::string_view subresource = {}) {
    Key key{std::string(get_string(body, "metadata.namespace")), std::string(get_string(body, "metadata.name"))};
    auto written = registry_->update(kind, key, subresource, std::move(body), {});
    if (!written) return written.take_error();
    return written->object;
  }
  Result<ObjectPtr> try_merge(const Kind& kind, const Key& key, std::string_view patch, std::string_view subresource = {}) {
    auto written = registry_->patch(kind, key, subresource, PatchType::merge, parse(patch), false, {});
    if (!written) return written.take_error();
    return written->object;
  }
  static json::value with(const Object& object, std::string_view path, json::value value) {
    json::value body = object.json();
    coracle::make(body, path) = std::move(value);
    return body;
  }

  kinds::Ranges ranges;
  admission::Settings admission;
  FakeClock clock;
  std::string directory;
  engine::Options options;
  std::unique_ptr<engine::Engine> engine;
  std::unique_ptr<Registry> registry_;
  std::unique_ptr<LocalClient> client_;
};

}  // namespace coracle::registry
