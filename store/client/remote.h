// SPDX-License-Identifier: Apache-2.0
// Remote: the Client over HTTPS, to an API server of ours or any other.
//
//   call ─▶ path, query, body ─▶ Http ─▶ server ─▶ object, list, or Status ─▶ Error
//   watch: a thread of its own per watch reads one JSON event per line and hands it to the sink. A stream that the server
//   ends in good order is taken up again from where it stood; anything else ends the watch.
// An answer 429 or 503 that says when to come back is waited for, a few times. Source: Kubernetes API concepts.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "store/client/client.h"
#include "store/client/http.h"

namespace coracle {

// "/api/v1/namespaces/default/pods/web/log". Empty parts are left out; namespaces only for what has one.
std::string api_path(const Kind& kind, std::string_view ns = {}, std::string_view name = {}, std::string_view subresource = {});

class Remote : public Client {
 public:
  // Errors: as Http::make. Does not connect.
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
  Result<json::value> act(const Kind& kind, const Key& key, std::string_view subresource, const json::value& body) override;
  Result<std::unique_ptr<Watch>> watch(const Kind& kind, const WatchOptions& options, WatchSink& sink) override;

  Http& http() { return *http_; }  // for requests that are no objects: logs, discovery

 private:
  explicit Remote(std::unique_ptr<Http> http);
  Result<json::value> send(HttpRequest request);
  Result<ObjectPtr> send_for_object(const Kind& kind, HttpRequest request);
  std::unique_ptr<Http> http_;
};

}  // namespace coracle
