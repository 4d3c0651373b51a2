// SPDX-License-Identifier: Apache-2.0
// Engine: stores objects. It handles documents, revisions and the disk; the registry decides what a Kubernetes object may
// contain.
//
//   write ──▶ queue ──▶ leader: check revisions ▸ amend ▸ stamp ▸ one SQLite transaction ▸ publish ──▶ memory ──▶ get, list
//              (commits for all waiting writers)                                    └──▶ window ──▶ broadcaster ──▶ watchers
//
// Memory has every object as an immutable snapshot, so reads never wait for the disk. At any moment, the disk has the complete
// state of some revision. A write is:
//   durable  synced to the disk (WAL, synchronous FULL, one transaction for all waiting writers) before it is acknowledged or
//            visible;
//   soft     visible at once, on the disk within Options::soft_delay or with the next durable write, whichever is first. Objects
//            of a quarter of a megabyte and more go there before that, if the disk takes them;
//   lazy     as soft, within Options::lazy_delay: for data that may be lost in a crash (a lease);
//   passing  visible at once, on the disk with the next write that goes there or when the engine closes, and never by itself:
//            for data that is written again within seconds (a lease's renewal).
// Kinds of Options::memory_only are never written to the disk, whatever the durability. They are lost with the process, and their
// watchers must list again. So a crash loses at most the last soft writes, and nothing that was acknowledged as durable.
// Revisions come from one counter and are never reused: a mark ahead of the counter is kept on the disk, and after a crash the
// counter continues above the mark. If the disk is too full for a new mark, the counter jumps far above the old one.
//
// A full or read-only disk only affects writes that must be on it: durable writes fail with unavailable, and all others continue
// in memory. The first durable write that succeeds writes them too. An engine can also be opened on such a disk.
//
// Thread-safe throughout. Threads: "broadcaster" delivers to subscriptions. "store-watchers" runs the delegates of watchers whose
// owners sleep. "store-leader" leads while writers are queued (a single writer leads itself). "store-flush" writes soft changes
// to the disk. The last two sleep while there is no work. A controller removes expired objects (events), with soft removals.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "store/engine/event.h"
#include "store/engine/kinds.h"
#include "store/object/kind.h"
#include "store/object/object_ptr.h"

namespace coracle::engine {

enum class Durability : uint8_t { durable, soft, lazy, passing };

constexpr size_t kObjectOverhead = 512;  // approximate bytes of an object beside its text
// Of one object: as large as a body may be. The defaults and managedFields of a body of many small items are three times as large
// as it is, and every later request, watch and component has to do with them. etcd takes half as much. An object that is being
// deleted may grow a little beyond it, so that its finalizers can be removed.
constexpr size_t kObjectBytesMax = 3u << 20;
constexpr uint64_t kCheckLogBytesMax = 64u << 20;

struct Usage {
  size_t bytes = 0;      // of all objects
  size_t bytes_max = 0;  // Options::objects_bytes_max
};

struct Options {
  // Finds the process-wide Kind of a stored object. Other kinds are kept as they are on the disk.
  FindKind find_kind;
  // Kinds that are not kept across a restart; empty: none. Their objects from earlier runs are removed from the disk.
  std::function<bool(const Kind&)> memory_only;
  std::chrono::milliseconds soft_delay{std::chrono::seconds(10)};
  std::chrono::milliseconds lazy_delay{std::chrono::minutes(10)};
  // Moves a damaged file aside (path + ".damaged-<time>") and starts with an empty store, instead of failing to open.
  bool set_aside_damaged = false;
  size_t window_events_max = 4096;     // recent events kept, for watches that start from an older revision
  size_t window_bytes_max = 4u << 20;  // bytes of these events and of the superseded objects that they keep alive
  size_t watch_queue_max = 1024;       // events that a watcher may be behind before it is ended with gone
  // Text of superseded objects that the queues of all watchers together may keep alive; above it, the watcher that keeps most is
  // ended with gone.
  size_t watch_bytes_max = 4u << 20;
  // Limit for all objects together: their texts, and kObjectOverhead each; 0: no limit. A write above the limit fails, unless it
  // is not larger than what it replaces. Removals never fail.
  size_t objects_bytes_max = 0;
  // Called when a write fails because of that limit, for the first time since enough space was free (a tenth of the limit). Runs
  // on the leader's thread: it must not block or call the engine.
  std::function<void(const Usage&)> on_full;
  uint64_t check_log_bytes_max = kCheckLogBytesMax;  // size of the log above which a check no longer lets writers go on
  std::string copies;         // a directory in memory, for opening a store on a read-only disk; "": that fails
  const char* vfs = nullptr;  // name of a SQLite VFS; for tests that inject disk errors
};

// Computes the new body of an object from the present one, in a writer's turn: all earlier writes are in `now`, also those of the
// same commit. Nothing: the object stays as it is. Runs on the leader's thread, and again if the disk fails: it must not block,
// call the engine or change what it has captured. Errors: fail the write, and all others of its write_all.
using Amend = std::function<Result<std::optional<json::value>>(const Object& now)>;

// One change. `expected`: nothing = no precondition; 0 = must not exist (already_exists); otherwise this exact revision
// (not_found, conflict). The engine sets metadata.resourceVersion; name, namespace and uid must be in the body.
struct Write {
  const Kind* kind = nullptr;
  Key key;
  std::optional<json::value> body;  // nothing: removes the object
  std::optional<Revision> expected;
  bool beyond_limit = false;          // ignores objects_bytes_max, for writes that are needed to remove other objects
  Amend amend;                        // in place of `body`, for sums to which several writers add at once (not_found)
  bool sheds_managed_fields = false;  // if the object is too large with metadata.managedFields, it is stored without them
};

struct ListOptions {
  std::string ns;                              // "": all
  std::function<bool(const Object&)> matches;  // empty: all objects; called without locks held
  size_t limit = 0;                            // 0: no limit
  std::string continue_token;                  // from an earlier page: same snapshot, next items
  Revision at = 0;                             // exactly this snapshot; 0: the latest
};

template <typename Pointer>
struct PageOf {
  std::vector<Pointer> items;       // sorted by namespace, then name
  Revision revision = 0;            // of the snapshot
  std::string continue_token;       // "" on the last page
  std::optional<size_t> remaining;  // items after this page; only set without `matches`
};
using ListPage = PageOf<ObjectPtr>;
using RestingPage = PageOf<RestingPtr>;

// An object at the revision at which somebody has read it.
struct Seen {
  const Kind* kind = nullptr;
  Key key;
  Revision revision = 0;
};

struct Snapshot {
  std::vector<RestingPtr> objects;  // of every kind
  Revision revision = 0;
};

struct FileSize {
  uint64_t bytes = 0, unused = 0;  // unused: what a compaction frees
};

// Receives events in place of a watcher's owner that sleeps in take(), so that one change need not wake hundreds of threads.
// Called on a single thread of the broadcaster for all watchers: it must not block. Returning false wakes the owner, which
// receives the following events.
struct Delegate {
  std::function<bool(const Event&)> event;
  std::function<bool()> rest;  // called after the last event for now
};

// A watch that its owner reads, for a thread that serves one connection.
class Watcher {
 public:
  virtual ~Watcher() = default;
  // Blocks until an event arrives, the watch ends, `deadline` passes, a stop is requested, or `delegate` returns false.
  // `delegate` receives the events while this call sleeps, and none after it has returned. Nothing: no event; everything up to
  // progress() was delivered. Errors: gone (too slow, or the engine has dropped the events: list again), unavailable (the engine
  // stops). After an error nothing follows.
  virtual Result<std::optional<Event>> take(std::stop_token stop, std::chrono::steady_clock::time_point deadline,
                                            const Delegate* delegate = nullptr) = 0;
  // Valid after take() has returned nothing: all events up to this revision were delivered. For bookmarks.
  virtual Revision progress() const = 0;
};
// Passes all pending events to `put`, without bookmarks: for an index that is updated when it is queried. Does not block. False:
// the watch has ended, and the index must be rebuilt.
bool drain(Watcher& watcher, const std::function<void(const Object& object, bool is_gone)>& put);

// A watch whose callbacks run on the engine's broadcaster thread: they must return quickly and must not call the engine. The
// destructor ends the watch; no callback runs after it (except the current one, if it is called inside a callback).
class Subscription {
 public:
  virtual ~Subscription() = default;
};

struct Callbacks {
  std::function<void(const Event&)> event;
  std::function<void(const Error&)> end;  // the errors of Watcher::take; nothing follows
};

// The error for a read at a future revision: timeout, with Kubernetes' text and cause.
Error revision_too_large(Revision asked, Revision latest);

class Engine {
 public:
  // Opens or creates a store. Errors: internal, with the file, if it is damaged or not a store; unavailable if another process
  // has opened it, or if it must be created and the disk is full or read-only; errno's codes for the directory. Never deletes
  // anything.
  static Result<std::unique_ptr<Engine>> open(const std::string& path, Options options);
  ~Engine();  // writes everything to the disk; ends watches with unavailable

  // Reads. They never wait for the disk.
  Result<ObjectPtr> get(const Kind& kind, const Key& key) const;  // Errors: not_found
  // True if each of them is unchanged: neither modified, nor removed, nor created again with the same name. Copies nothing: for
  // caches of values that are derived from objects.
  bool unchanged(const std::vector<Seen>& all) const;
  // Errors: gone with reason Expired (for an expired token with details().continue_token); bad_request for an invalid token;
  // timeout for a future revision.
  Result<ListPage> list(const Kind& kind, const ListOptions& options) const;
  Result<RestingPage> list_at_rest(const Kind& kind, const ListOptions& options) const;  // to parse them one by one
  size_t count(const Kind& kind) const;
  Usage usage() const;
  // Of the latest visible change. Takes no lock; later reads are at least as new.
  Revision revision() const;
  // Blocks until revision() has reached `revision` or `deadline` has passed. Returns whether it has been reached.
  bool await(Revision revision, std::chrono::steady_clock::time_point deadline) const;
  Revision compacted() const;  // the oldest revision that a watch can start after

  // Writes. Errors beside those of `expected`: internal, worded as etcd's, if objects_bytes_max is reached; too_large. They
  // return the object as stored; a removal returns the last state with the revision of the deletion. A body that equals the
  // stored object is not written: same object, same revision, no event. If that object is not on the disk yet, a durable write
  // puts it there all the same before it returns.
  Result<ObjectPtr> write(Write write, Durability durability);
  // Executes all or none, in this order, each with its own revision.
  Result<std::vector<ObjectPtr>> write_all(std::vector<Write> writes, Durability durability);
  Result<ObjectPtr> remove(const Kind& kind, const Key& key, std::optional<Revision> expected, Durability durability);
  // Writes all soft changes to the disk. Blocks.
  Result<void> flush();

  // Watches one kind in one namespace or all (""). `after` 0: first `added` for each existing object, then `synced`, then
  // changes; otherwise changes after that revision. Errors: gone with reason Expired if it has been compacted; timeout if it is a
  // future revision.
  Result<std::unique_ptr<Watcher>> watch(const Kind& kind, const std::string& ns, Revision after);
  Result<std::unique_ptr<Subscription>> subscribe(const Kind& kind, const std::string& ns, Revision after, Callbacks callbacks);
  // Ends the watches of a kind with `why`, after the events that they have not read yet.
  void end_watches(const Kind& kind, const Error& why);
  // Drops the events up to `revision`: watches and pages from before it fail with gone.
  void compact(Revision revision);

  // ---- copies and maintenance ----
  // The current state including soft writes, without memory-only kinds. Does not wait for the disk, and does not block writers.
  Snapshot snapshot() const;
  // From now on every write fails with `why`, so that nothing is acknowledged that a restored copy would lack. Returns the
  // highest revision that was used, or that could have been used before a crash.
  Revision seal(Error why);
  void unseal();
  // Reads the whole file from the medium and compares it with memory. Returns the problems; empty: none. Writers only wait until
  // the log is in the file, as after every thousandth page. If the disk is too full for that, or the log exceeds
  // Options::check_log_bytes_max meanwhile, they wait until the check is done.
  std::vector<std::string> check();
  Result<FileSize> file_size();
  // Rewrites the file without unused pages. Writers wait.
  Result<void> compact_file();
  // Frees memory in idle times: keeps the newest recent events up to `window_bytes`, and releases SQLite's page cache. Writers
  // wait for microseconds.
  void shrink(size_t window_bytes);
  std::chrono::steady_clock::time_point last_written() const;  // to the disk; the epoch: not since the start

 private:
  void in_turn(std::function<void()> what);  // runs it between writes
  struct State;
  explicit Engine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace coracle::engine
