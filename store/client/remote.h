// SPDX-License-Identifier: Apache-2.0
// Remote: the Client over HTTPS, for any API server.
//
//   call ─▶ path, query, body ─▶ Http ─▶ server ─▶ object, list, or Status ─▶ Error
//   watch: a thread per watch reads one JSON event per line and passes it to the sink. A stream that the server ends
//   regularly is resumed from its last revision; anything else ends the watch.
// Responses 429 and 503 with Retry-After are retried a few times. Source: Kubernetes API concepts.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "store/client/client.h"
#include "store/client/http.h"

namespace coracle {

// "/api/v1/namespaces/default/pods/web/log". Empty parts are omitted; the namespace is only used for namespaced kinds.
std::string api_path(const Kind& kind, std::string_view ns = {}, std::string_view name = {}, std::string_view subresource = {});

class Remote : public Client {
 public:
  // Errors: those of Http::make. Does not connect.
  static Result<std::unique_ptr<Remote>> make(ServerAccess access);
  ~Remote() override;

  Result<ObjectPtr> get(const Kind& kind, const Key& key) override;
  Result<json::value> read(const Kind& kind, const Key& key, std::string_view subresource,
                           const ReadParameters& parameters = {}) override;
  Result<ObjectList> list(const Kind& kind, const ListOptions& options) override;
  Result<ObjectPtr> create(const Kind& kind, const json::value& body) override;
  Result<ObjectPtr> update(const Kind& kind, const json::value& body, const UpdateOptions& options = {}) override;
  Result<ObjectPtr> patch(const Kind& kind, const Key& key, PatchType type, const json::value& patch,
                          const UpdateOptions& options = {}) override;
  Result<void> remove(const Kind& kind, const Key& key, const DeleteOptions& options = {}) override;
  Result<json::value> create_subresource(const Kind& kind, const Key& key, std::string_view subresource,
                                         const json::value& body) override;
  Result<std::unique_ptr<Watch>> watch(const Kind& kind, const WatchOptions& options, WatchSink& sink) override;

  Http& http() { return *http_; }  // for requests that are not about objects: logs, discovery

 private:
  explicit Remote(std::unique_ptr<Http> http);
  Result<json::value> send(HttpRequest request);
  Result<ObjectPtr> send_for_object(const Kind& kind, HttpRequest request);
  std::unique_ptr<Http> http_;
};

}  // namespace coracle
