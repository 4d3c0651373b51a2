// SPDX-License-Identifier: Apache-2.0
// Client: the interface between the users of objects (controllers, scheduler, node agent, network, the CLI) and the API server.
// Three implementations pass the same contract tests: daemon/registry/local (in process, with the same pipeline as HTTP),
// store/client/remote (HTTPS, libcurl), and the fake for tests (fails on the nth call, loses an event).
//
// Every call may block on the disk or the network and is thread-safe. Objects are immutable; a write takes a json::value with the
// whole object (update) or with the changes (patch). Errors have Kubernetes' meaning in their Code: not_found, already_exists,
// conflict (stale resourceVersion, or a failed precondition), invalid (details().causes), forbidden, gone (the revision has been
// compacted: list again), unavailable, timeout.
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
  std::string ns;              // "": all namespaces
  std::string label_selector;  // Kubernetes' text form; "": all objects
  std::string field_selector;
  int64_t limit = 0;  // 0: no limit
  std::string continue_token;
  // If not empty: lists only those of these that match. A kind that is computed on request is only computed for these.
  std::vector<Key> only;
};

struct ObjectList {
  std::vector<ObjectPtr> items;  // sorted by namespace, then name
  Revision revision = 0;         // of the snapshot; a watch can start after it
  std::string continue_token;
};

struct WatchOptions {
  std::string ns;
  std::string label_selector;
  std::string field_selector;
  // Events after this revision. 0: first `added` for every existing object, then `synced`, then changes.
  Revision after = 0;
};

enum class EventType : uint8_t {
  added,
  modified,
  deleted,   // the last state, with the revision of the deletion
  bookmark,  // no object: all events up to `revision` were delivered
  synced,    // no object: the initial events are complete
};

struct WatchEvent {
  EventType type;
  ObjectPtr object;
  Revision revision = 0;
};

// Receives a watch's events in order, on a thread of the implementation. It must return quickly and must not call the Client:
// update a cache, or add a key to a queue.
class WatchSink {
 public:
  virtual ~WatchSink() = default;
  virtual void on_event(const WatchEvent& event) = 0;
  // The watch has ended by itself: gone (list again), unavailable (start it again). No further call follows.
  virtual void on_end(const Error& why) = 0;
};

// The destructor ends the watch: no call to the sink is running or follows after it returns.
class Watch {
 public:
  virtual ~Watch() = default;
};

enum class PatchType { json, merge, strategic, apply };

struct UpdateOptions {
  std::string subresource;  // "", "status", "scale"
  std::string field_manager;
  bool force = false;  // PatchType::apply only
  // What is written follows from what is on the disk, so that the caller would write the same again after a crash. A component in
  // the store's process then does not wait for the disk; the next write that does takes it along.
  bool is_repeated = false;
};

struct DeleteOptions {
  std::optional<int64_t> grace_period_seconds;
  std::optional<std::string> uid;  // preconditions
  std::optional<Revision> revision;
  std::string propagation;  // "", "Background", "Foreground", "Orphan"
};

using ReadParameters = std::vector<std::pair<std::string, std::string>>;  // query parameters: "labelSelector", …

class Client {
 public:
  virtual ~Client() = default;
  virtual Result<ObjectPtr> get(const Kind& kind, const Key& key) = 0;
  // GET of something that is not an object of the kind: a subresource ("scale"), or a resource below a name in other API groups
  // (custom.metrics.k8s.io; then the kind need not be known elsewhere, and name or subresource may be ""). Returns the body of
  // the response. Errors: not_found, also if the resource is not served.
  virtual Result<json::value> read(const Kind& kind, const Key& key, std::string_view subresource,
                                   const ReadParameters& parameters = {}) = 0;
  virtual Result<ObjectList> list(const Kind& kind, const ListOptions& options) = 0;
  // Takes the namespace from `body`. Returns the object as stored.
  virtual Result<ObjectPtr> create(const Kind& kind, const json::value& body) = 0;
  // Replaces the whole object. With metadata.resourceVersion in `body`: conflict if it is stale. Returns the object as stored.
  virtual Result<ObjectPtr> update(const Kind& kind, const json::value& body, const UpdateOptions& options = {}) = 0;
  virtual Result<ObjectPtr> patch(const Kind& kind, const Key& key, PatchType type, const json::value& patch,
                                  const UpdateOptions& options = {}) = 0;
  virtual Result<void> remove(const Kind& kind, const Key& key, const DeleteOptions& options = {}) = 0;
  // Creates on a subresource: "binding", "eviction", "token". Returns the body of the response.
  virtual Result<json::value> create_subresource(const Kind& kind, const Key& key, std::string_view subresource,
                                                 const json::value& body) = 0;
  // Errors: those of list, returned here; later errors go to on_end.
  virtual Result<std::unique_ptr<Watch>> watch(const Kind& kind, const WatchOptions& options, WatchSink& sink) = 0;
};

}  // namespace coracle
