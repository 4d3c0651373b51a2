// SPDX-License-Identifier: Apache-2.0
// Cluster: the real store and registry of a scenario, in memory-backed files, and the story of what was written there. Nothing of
// the API's meaning is played: defaults, admission, quotas, evictions, finalizers and graceful deletion are the daemon's own.
//   a call (client.h, nodes.h, user.h) ─▶ LocalClient ─▶ registry ─▶ engine ─▶ tell(): each change, in order, to the listener
// The engine's own threads take no part: a single writer leads itself, and changes are read, not pushed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/registry/local.h"
#include "store/engine/engine.h"
#include "store/object/object.h"

namespace coracle::simulation {

enum class Actor : uint8_t { daemon, node, user };

struct Change {
  const Kind* kind;
  ObjectPtr before, after;  // null: was not, is no more
  Revision revision = 0;
  const Object& any() const { return after ? *after : *before; }
  bool removes() const { return before && !before->deleting() && (!after || after->deleting()); }  // or lets it go
};

class Cluster {
 public:
  using Listener = std::function<void(Actor, const Change&)>;
  explicit Cluster(const Clock& clock);
  ~Cluster();

  void listen(Listener listener) { listener_ = std::move(listener); }
  // What was written since the last time goes to the listeners, as the work of `actor`.
  void tell(Actor actor);
  // Who knows what pods use, when somebody asks.
  void set_measure(registry::Measure measure);
  // As after a power cut: what was written softly since the last durable write is forgotten. Everybody has to look anew.
  void lose_power();

  Client& client() { return *client_; }
  engine::Engine& engine() { return *engine_; }
  Revision revision() const { return engine_->revision(); }
  static std::vector<const Kind*> kinds();  // that are stored

 private:
  void open();
  struct Page {
    const Kind* kind;
    std::unique_ptr<engine::Watcher> watcher;
  };
  const Clock& clock_;
  std::string directory_;
  int cuts_ = 0;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<registry::Registry> registry_;
  std::unique_ptr<registry::LocalClient> client_;
  std::vector<Page> pages_;
  Revision told_ = 0;
  Listener listener_;
  registry::Measure measure_;
};

// A Client whose calls are told as the work of one actor.
class ToldClient : public Client {
 public:
  ToldClient(Cluster& cluster, Actor actor) : cluster_(cluster), actor_(actor) {}
  Result<ObjectPtr> get(const Kind& kind, const Key& key) override { return cluster_.client().get(kind, key); }
  Result<json::value> read(const Kind& kind, const Key& key, std::string_view subresource,
                           const ReadParameters& parameters = {}) override {
    return cluster_.client().read(kind, key, subresource, parameters);
  }
  Result<ObjectList> list(const Kind& kind, const ListOptions& options) override { return cluster_.client().list(kind, options); }
  Result<ObjectPtr> create(const Kind& kind, const json::value& body) override {
    return told(cluster_.client().create(kind, body));
  }
  Result<ObjectPtr> update(const Kind& kind, const json::value& body, const UpdateOptions& options = {}) override {
    return told(cluster_.client().update(kind, body, options));
  }
  Result<ObjectPtr> patch(const Kind& kind, const Key& key, PatchType type, const json::value& patch,
                          const UpdateOptions& options = {}) override {
    return told(cluster_.client().patch(kind, key, type, patch, options));
  }
  Result<void> remove(const Kind& kind, const Key& key, const DeleteOptions& options = {}) override {
    return told(cluster_.client().remove(kind, key, options));
  }
  Result<json::value> create_subresource(const Kind& kind, const Key& key, std::string_view subresource,
                                         const json::value& body) override {
    return told(cluster_.client().create_subresource(kind, key, subresource, body));
  }
  Result<std::unique_ptr<Watch>> watch(const Kind&, const WatchOptions&, WatchSink&) override {
    return Error(Code::internal, "who plays does not watch");
  }

 private:
  template <typename T>
  T told(T result) {
    cluster_.tell(actor_);
    return result;
  }
  Cluster& cluster_;
  const Actor actor_;
};

}  // namespace coracle::simulation
