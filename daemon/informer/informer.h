// SPDX-License-Identifier: Apache-2.0
// Informer: a cache of one kind, updated by a watch and shared by all its readers. It holds the store's own snapshots at rest, so
// it only costs pointers. Handlers are notified of changes; they should only enqueue keys. When the watch ends, it is opened
// again with back-off, and the cache is synced with the current state, so lost events do no harm.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "store/client/client.h"

namespace coracle {

// How an ended watch is opened again: by the informer's thread, or by a call of run_once().
enum class Reopening { by_thread, by_hand };

class Informer {
 public:
  // `client` and `kind` must outlive the informer. Does nothing before start().
  Informer(Client& client, const Kind& kind, WatchOptions scope = {}, Reopening reopening = Reopening::by_thread);
  ~Informer();

  struct Change {
    ObjectPtr before;  // null: created
    ObjectPtr after;   // null: deleted
    const Object& any() const { return after ? *after : *before; }
  };
  using Handler = std::function<void(const Change&)>;

  // Call before start(). Handlers are called in order on the watch's thread, after the cache has changed. They must be fast and
  // must not call the Client.
  void on_change(Handler handler);
  // Call before start(). Adds an index for by_index(name, value); `values` returns an object's values (such as a pod's owner
  // uid). Components that need the same index may each add it, under the same name: the first one counts.
  using Indexer = std::function<std::vector<std::string>(const Object&)>;
  void add_index(std::string name, Indexer values);

  // Starts the watch. A server that cannot be reached, has no time or has lost the events is no error: the watch is opened later.
  // Errors: the Client's other ones. Blocks for the Client's answer.
  Result<void> start();
  void stop();                                   // ends it; no handler is called any more. The cache stays readable
  bool wait_synced(std::stop_token stop) const;  // blocks until the initial state is in the cache; false if stopped
  bool synced() const;

  // For tests, by hand: tries once to open an ended watch, on the caller's thread. False if none has ended.
  bool run_once();

  // Reads: thread-safe; they block briefly at most.
  ObjectPtr get(const Key& key) const;                          // null if absent
  std::vector<ObjectPtr> list(std::string_view ns = {}) const;  // "" = all, sorted
  // Sorted; none if no such index was added.
  std::vector<ObjectPtr> by_index(std::string_view name, std::string_view value) const;
  size_t count_by_index(std::string_view name, std::string_view value) const;  // their number; wakes none of them
  size_t size() const;
  // Every event of this kind up to this revision is in the cache. A writer of revision r finds its write here once revision() >=
  // r.
  Revision revision() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace coracle
