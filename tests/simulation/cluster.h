// SPDX-License-Identifier: Apache-2.0
// Cluster: the real store and registry of a scenario, in memory-backed files, and the changes written there. The API's behaviour
// is not simulated: defaults, admission, quotas, evictions, finalizers and graceful deletion are the daemon's own.
//   a call (client.h, nodes.h, user.h) ─▶ LocalClient ─▶ registry ─▶ engine ─▶ tell(): each change, in order, to the listener
// The engine's own threads do nothing: a single writer commits by itself, and changes are read instead of pushed.
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
  ObjectPtr before, after;  // null: it did not exist, or no longer exists
  Revision revision = 0;
  const Object& any() const { return after ? *after : *before; }
  bool removes() const { return before && !before->deleting() && (!after || after->deleting()); }  // or starts its deletion
};

class Cluster {
 public:
  using Listener = std::function<void(Actor, const Change&)>;
  explicit Cluster(const Clock& clock);
  ~Cluster();

  void listen(Listener listener) { listener_ = std::move(listener); }
  // Reports the changes since the last call to the listeners, as the work of `actor`.
  void tell(Actor actor);
  // Sets the source of the pods' usage.
  void set_measure(registry::Measure measure);
  // Simulates a power failure: soft writes since the last durable write are lost. All clients have to list again.
  void lose_power();

  Client& client() { return *client_; }
  engine::Engine& engine() { return *engine_; }
  Revision revision() const { return engine_->revision(); }
  static std::vector<const Kind*> kinds();  // the kinds that are stored

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

// A Client that reports its calls as the work of one actor.
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
