// SPDX-License-Identifier: Apache-2.0
// Informer: a cache of one kind, kept by a watch, shared by all who read that kind. It holds the store's own snapshots,
// at rest, so it costs pointers. Handlers are told that something changed; they name keys in queues and do no more. A watch that
// ends is started again (with back-off) and the cache is brought level with what is there: a lost event heals.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "store/client/client.h"

namespace coracle {

// Who opens a watch again that has ended: a thread of the informer's, or whoever calls turn().
enum class Reopening { by_thread, by_hand };

class Informer {
 public:
  // `client` and `kind` must outlive it. Does nothing before start().
  Informer(Client& client, const Kind& kind, WatchOptions scope = {}, Reopening reopening = Reopening::by_thread);
  ~Informer();

  struct Change {
    ObjectPtr before;  // null: it is new
    ObjectPtr after;   // null: it is gone
    const Object& any() const { return after ? *after : *before; }
  };
  using Handler = std::function<void(const Change&)>;

  // Before start(). Called in order, after the cache has changed, from the watch's thread: short, no Client calls.
  void on_change(Handler handler);
  // Before start(). Makes by_index(name, value) answer; `values` gives an object's values (a pod's owner uid).
  using Indexer = std::function<std::vector<std::string>(const Object&)>;
  void add_index(std::string name, Indexer values);

  Result<void> start();                          // begins the watch
  void stop();                                   // ends it: no handler is called any more. The cache stays readable
  bool wait_synced(std::stop_token stop) const;  // blocks until the initial state is in; false when stopped
  bool synced() const;

  // For tests, by hand: tries once to open a watch that has ended, on the caller's thread. False when none has.
  bool turn();

  // Reads: thread-safe, never block for long.
  ObjectPtr get(const Key& key) const;                          // null when absent
  std::vector<ObjectPtr> list(std::string_view ns = {}) const;  // "" = all, sorted
  std::vector<ObjectPtr> by_index(std::string_view name, std::string_view value) const;
  size_t size() const;
  // Every event of this kind up to this revision is in the cache: who wrote at r sees it here once revision() >= r.
  Revision revision() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace coracle
