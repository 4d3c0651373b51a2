// SPDX-License-Identifier: Apache-2.0
// Client: THE SEAM between those who act (controllers, scheduler, node agent, network, the CLI) and the place where
// objects rest. Three implementations pass one contract suite: daemon/registry/local (in process, the same pipeline as
// HTTP), store/client/remote (HTTPS, libcurl), and the tests' fake (fails on the nth call, loses an event).
//
// Every call may block on the disk or the network and is thread-safe. Objects are immutable; a write takes a json::value
// with the whole object (update) or what is to change (patch). Errors carry Kubernetes' meaning in their Code:
// not_found, already_exists, conflict (stale resourceVersion, or a precondition), invalid (details().causes), forbidden,
// gone (the revision is no longer held: list again), unavailable, timeout.
// Source: Kubernetes API concepts; apimachinery meta/v1.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "runtime/base/units.h"
#include "store/object/kind.h"
#include "store/object/object_ptr.h"

namespace coracle {

struct ListOptions {
  std::string ns;              // "" = all namespaces
  std::string label_selector;  // Kubernetes' text form, "" = everything
  std::string field_selector;
  int64_t limit = 0;  // 0 = no limit
  std::string continue_token;
  std::vector<Key>
      only;  // of these, those that match; empty = all. Of what is measured when it is asked for, no other is measured
};

struct ObjectList {
  std::vector<ObjectPtr> items;  // sorted by namespace, then name
  Revision revision = 0;         // the snapshot's; a watch may go on from here
  std::string continue_token;
};

struct WatchOptions {
  std::string ns;
  std::string label_selector;
  std::string field_selector;
  // Events after this revision. 0: first `added` for everything there is, then `synced`, then what happens.
  Revision after = 0;
};

enum class EventType : uint8_t {
  added,
  modified,
  deleted,   // the object as it was, with the revision of its deletion
  bookmark,  // no object: everything up to `revision` was delivered
  synced,    // no object: the initial events are complete
};

struct WatchEvent {
  EventType type;
  ObjectPtr object;
  Revision revision = 0;
};

// Receives a watch's events in order, from a thread of the implementation's. Must return soon and must not call the
// Client: update a cache, name a key in a queue.
class WatchSink {
 public:
  virtual ~WatchSink() = default;
  virtual void on_event(const WatchEvent& event) = 0;
  // The watch ended by itself: gone (list again), unavailable (start again). Nothing follows.
  virtual void on_end(const Error& why) = 0;
};

// Destroying it ends the watch; after the destructor returns no call to the sink is made or under way.
class Watch {
 public:
  virtual ~Watch() = default;
};

enum class PatchType { json, merge, strategic, apply };

struct UpdateOptions {
  std::string subresource;  // "", "status", "scale"
  std::string field_manager;
  bool force = false;  // PatchType::apply only
};

struct DeleteOptions {
  std::optional<int64_t> grace_period_seconds;
  std::optional<std::string> uid;  // preconditions
  std::optional<Revision> revision;
  std::string propagation;  // "", "Background", "Foreground", "Orphan"
};

using ReadParameters = std::vector<std::pair<std::string, std::string>>;  // of the query: "labelSelector", …

class Client {
 public:
  virtual ~Client() = default;
  virtual Result<ObjectPtr> get(const Kind& kind, const Key& key) = 0;
  // GET of what is no object of its kind: a subresource ("scale"), or what APIs beyond Kubernetes' own keep beneath a name
  // (custom.metrics.k8s.io; then the kind need not be one that anybody else knows, and either of the words may be ""). Returns
  // the answer's body. Errors: not_found, also when no such thing is served.
  virtual Result<json::value> read(const Kind& kind, const Key& key, std::string_view subresource,
                                   const ReadParameters& parameters = {}) = 0;
  virtual Result<ObjectList> list(const Kind& kind, const ListOptions& options) = 0;
  // The namespace is taken from `body`. Returns the object as stored.
  virtual Result<ObjectPtr> create(const Kind& kind, const json::value& body) = 0;
  // Whole-object update. With metadata.resourceVersion in `body`: conflict when it is stale. Returns the object as stored.
  virtual Result<ObjectPtr> update(const Kind& kind, const json::value& body, const UpdateOptions& options = {}) = 0;
  virtual Result<ObjectPtr> patch(const Kind& kind, const Key& key, PatchType type, const json::value& patch,
                                  const UpdateOptions& options = {}) = 0;
  virtual Result<void> remove(const Kind& kind, const Key& key, const DeleteOptions& options = {}) = 0;
  // POST to a subresource that is an action: "binding", "eviction", "token". Returns the answer's body.
  virtual Result<json::value> act(const Kind& kind, const Key& key, std::string_view subresource, const json::value& body) = 0;
  // Errors at the start as list; later ones arrive at on_end.
  virtual Result<std::unique_ptr<Watch>> watch(const Kind& kind, const WatchOptions& options, WatchSink& sink) = 0;
};

}  // namespace coracle
