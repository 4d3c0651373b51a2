// SPDX-License-Identifier: Apache-2.0
// LocalClient: the Client of components in this process. It uses the same write pipeline as HTTP requests, without text,
// authentication (it acts as the internal user) or a thread per watch (the engine's broadcaster calls the sinks).
#pragma once

#include "daemon/registry/registry.h"
#include "store/client/client.h"

namespace coracle::registry {

class LocalClient : public Client {
 public:
  explicit LocalClient(Registry& registry) : registry_(registry) {}

  Result<ObjectPtr> get(const Kind& kind, const Key& key) override;
  Result<json::value> read(const Kind& kind, const Key& key, std::string_view subresource,
                           const ReadParameters& parameters) override;
  Result<ObjectList> list(const Kind& kind, const ListOptions& options) override;
  Result<ObjectPtr> create(const Kind& kind, const json::value& body) override;
  Result<ObjectPtr> update(const Kind& kind, const json::value& body, const UpdateOptions& options) override;
  Result<ObjectPtr> patch(const Kind& kind, const Key& key, PatchType type, const json::value& patch,
                          const UpdateOptions& options) override;
  Result<void> remove(const Kind& kind, const Key& key, const DeleteOptions& options) override;
  Result<json::value> create_subresource(const Kind& kind, const Key& key, std::string_view subresource,
                                         const json::value& body) override;
  Result<std::unique_ptr<Watch>> watch(const Kind& kind, const WatchOptions& options, WatchSink& sink) override;

 private:
  Registry& registry_;
};

}  // namespace coracle::registry
