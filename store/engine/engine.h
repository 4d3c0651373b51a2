// SPDX-License-Identifier: Apache-2.0
// Engine: where objects rest. It knows documents, revisions and disks; what a Kubernetes object may contain is the
// registry's business.
//
//   write ──▶ queue ──▶ leader: check revisions ▸ stamp ▸ one SQLite transaction ▸ publish ──▶ memory ──▶ get, list
//              (leads for all who wait in line)                                     └──▶ window ──▶ hub ──▶ watchers
//
// Memory holds every object as one immutable snapshot, so no read ever waits for the disk. The disk holds, at every
// moment, the whole state as it was at some revision:
//   durable  on the disk (WAL, synchronous FULL, one transaction for all who wait) before it is acknowledged or seen;
//   soft     seen at once, on the disk within Options::soft_delay or with the next durable write, whichever is first;
//   lazy     as soft, within Options::lazy_delay: what a crash may forget (a lease);
//   passing  seen at once, on the disk with the next write that goes there or when the engine closes, and never by itself: what
//            comes again within seconds (a lease's renewal).
// Kinds that Options::memory_only names never reach the disk, whatever their writes ask for: they go with the process, and who
// watched them has to list again afterwards. So a crash forgets at most a tail of soft writes, and nothing that anybody was told
// is durable. Revisions come from one counter and are never used twice: a mark is kept on the disk ahead of it, and a crash
// continues above the mark. Where the disk is too full for that mark, the counter leaps far above it.
//
// A disk that is full or read-only stops nothing but what has to be on it: durable writes are refused (unavailable), all others
// go on in memory, and the first durable write that the disk takes takes them along. An engine opens on such a disk as on any
// other.
//
// Thread-safe throughout. Threads: "store-hub" delivers to push watches, "store-watchers" runs the stand-ins of those who read
// theirs and sleep, "store-leader" leads while there is a line (a writer alone leads itself), "store-flush" brings soft writes to
// the disk; the last two sleep while there is nothing for them. Expiry of old objects (events) is left to a controller: remove
// them softly.
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

constexpr size_t kObjectOverhead = 512;  // bytes beside an object's text, about

struct Usage {
  size_t bytes = 0;      // of all objects
  size_t bytes_max = 0;  // Options::objects_bytes_max
};

struct Options {
  // Finds the process-wide Kind of a stored one. Kinds it does not know keep what the disk says of them.
  FindKind find_kind;
  // Which kinds are not kept over a restart; empty: none. What the disk has of them from before is removed from it.
  std::function<bool(const Kind&)> memory_only;
  std::chrono::milliseconds soft_delay{std::chrono::seconds(10)};
  std::chrono::milliseconds lazy_delay{std::chrono::minutes(10)};
  // A damaged file is moved aside (path + ".damaged-<time>") and the engine starts empty, instead of refusing to open.
  bool set_aside_damaged = false;
  size_t window_events_max = 4096;     // recent events kept, for watches that go on from an older revision
  size_t window_bytes_max = 4u << 20;  // and what they and the superseded objects take that they keep alive
  size_t watch_queue_max = 1024;       // events a watcher may be behind before it is ended with gone
  // Text of superseded objects that all watchers' queues together may keep alive; beyond it, who keeps most is ended with gone.
  size_t watch_bytes_max = 4u << 20;
  // What all objects may take together: their texts, and kObjectOverhead each; 0 = no limit. A write that would go beyond it is
  // refused, unless it takes no more than what it replaces. Removals never are.
  size_t objects_bytes_max = 0;
  // Called when a write is refused so, for the first time since there was room (a tenth of the limit). From the thread that
  // leads: must not wait, nor call the engine.
  std::function<void(const Usage&)> on_full;
  std::string copies;         // a directory in memory, for reading a store on a read-only disk; "": none opens there
  const char* vfs = nullptr;  // SQLite VFS by name; for tests that break disks
};

// One change. `expected`: nothing = whatever is there; 0 = must not exist (already_exists); else exactly that revision
// (not_found, conflict). The engine sets metadata.resourceVersion; name, namespace and uid must be in the body.
struct Write {
  const Kind* kind = nullptr;
  Key key;
  std::optional<json::value> body;  // nothing: remove the object
  std::optional<Revision> expected;
  bool beyond_limit = false;  // objects_bytes_max does not count for it: what has to be written for others to go
};

struct ListOptions {
  std::string ns;                              // "" = all
  std::function<bool(const Object&)> matches;  // empty: everything; called outside every lock
  size_t limit = 0;                            // 0 = no limit
  std::string continue_token;                  // of an earlier page: same snapshot, next items
  Revision at = 0;                             // exactly this snapshot; 0 = the latest
};

template <typename Pointer>
struct PageOf {
  std::vector<Pointer> items;       // sorted by namespace, then name
  Revision revision = 0;            // of the snapshot
  std::string continue_token;       // "" on the last page
  std::optional<size_t> remaining;  // items after this page; only known without `matches`
};
using ListPage = PageOf<ObjectPtr>;
using RestingPage = PageOf<RestingPtr>;

// What somebody once looked at: an object as it was at a revision.
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
  uint64_t bytes = 0, unused = 0;  // unused: what a compaction gives back
};

// Takes events in the place of a watcher's owner who sleeps in take(), so that one change need not wake hundreds of threads.
// Called from one thread of the hub, for all watchers: must not wait. Whoever returns false wants the owner back, for what
// follows.
struct StandIn {
  std::function<bool(const Event&)> event;
  std::function<bool()> rest;  // no more events for now
};

// A watch that its owner reads: for a thread that serves one connection.
class Watcher {
 public:
  virtual ~Watcher() = default;
  // Blocks until an event is there, the watch has ended, `deadline` passes, stop is requested, or `stand_in` wants it: that gets
  // the events while this sleeps, and none once it has returned. Nothing: no event came; everything up to progress() was
  // delivered. Errors: gone (too slow, or the engine dropped its past: list again), unavailable (the engine stops). After an
  // error nothing follows.
  virtual Result<std::optional<Event>> take(std::stop_token stop, std::chrono::steady_clock::time_point deadline,
                                            const StandIn* stand_in = nullptr) = 0;
  // After take() returned nothing: the revision up to which nothing is missing. For bookmarks.
  virtual Revision progress() const = 0;
};
// Hands on what has come until now, of bookmarks nothing: for an index that is brought level when it is asked. Does not block.
// False: the watch has ended, and the index has to begin anew.
bool drain(Watcher& watcher, const std::function<void(const Object& object, bool is_gone)>& put);

// A watch that the engine pushes, from its one hub thread: return soon, never call the engine. Destroying it ends the
// watch; afterwards no callback runs (destroyed inside a callback: none but that one).
class Subscription {
 public:
  virtual ~Subscription() = default;
};

struct Callbacks {
  std::function<void(const Event&)> event;
  std::function<void(const Error&)> end;  // as Watcher::take's errors; nothing follows
};

// A read that asks for what is yet to come: timeout, with Kubernetes' words and cause.
Error revision_too_large(Revision asked, Revision latest);

class Engine {
 public:
  // Opens or creates. Errors: internal, naming the file, when it is damaged or not ours; unavailable when another process
  // holds it, or it has to be created and the disk is full or read-only; errno's codes for the directory. Nothing is ever
  // deleted.
  static Result<std::unique_ptr<Engine>> open(const std::string& path, Options options);
  ~Engine();  // brings everything to the disk; ends watches with unavailable

  // Reads. Never wait for the disk.
  Result<ObjectPtr> get(const Kind& kind, const Key& key) const;  // Errors: not_found
  // Whether each of them is still as it was: neither changed, nor removed, nor made anew under its name. Copies nothing: for who
  // keeps what follows from objects.
  bool unchanged(const std::vector<Seen>& all) const;
  // Errors: gone with reason Expired (and, for an expired token, details().continue_token); bad_request for a token that is
  // none; timeout for a revision that is yet to come.
  Result<ListPage> list(const Kind& kind, const ListOptions& options) const;
  Result<RestingPage> list_at_rest(const Kind& kind, const ListOptions& options) const;  // for who wakes one after the other
  size_t count(const Kind& kind) const;
  Usage usage() const;
  Revision revision() const;  // of the latest change that is visible
  // Blocks until revision() has come to `revision`, but no longer than until `deadline`. Returns whether it has.
  bool await(Revision revision, std::chrono::steady_clock::time_point deadline) const;
  Revision compacted() const;  // the oldest revision that a watch may go on from

  // Writes. Errors beside those of `expected`: internal, in etcd's words, when objects_bytes_max is reached. Return the object as
  // stored; a removal returns the final state with the deletion's revision. A body that says
  // what is stored already is no write: same object, same revision, no event.
  Result<ObjectPtr> write(Write write, Durability durability);
  // All or nothing, in this order, each with a revision of its own.
  Result<std::vector<ObjectPtr>> write_all(std::vector<Write> writes, Durability durability);
  Result<ObjectPtr> remove(const Kind& kind, const Key& key, std::optional<Revision> expected, Durability durability);
  // Brings all soft writes to the disk. Blocks.
  Result<void> flush();

  // Watches one kind, in one namespace or all (""). `after` 0: first `added` for each object there is, then `synced`, then
  // what happens; else what happened after that revision. Errors: gone with reason Expired when it is no longer held;
  // timeout when it is yet to come.
  Result<std::unique_ptr<Watcher>> watch(const Kind& kind, const std::string& ns, Revision after);
  Result<std::unique_ptr<Subscription>> subscribe(const Kind& kind, const std::string& ns, Revision after, Callbacks callbacks);
  // Forgets the events up to `revision`: watches and pages from before it are answered with gone.
  void compact(Revision revision);

  // ---- copies and upkeep ----
  // Everything as it is now, soft writes included, but for what is in memory only. Does not wait for the disk, and nobody waits
  // for it.
  Snapshot snapshot() const;
  // From now on every write is refused with `why`, so that nothing is acknowledged that a restored copy would then forget.
  // Returns the highest revision that was, or after a crash could have been, used.
  Revision seal(Error why);
  void unseal();
  // Reads the whole file from the medium and compares it with what should be there. Returns what is wrong; empty: nothing.
  // Writers wait for as long as that takes.
  std::vector<std::string> check();
  Result<FileSize> file_size();
  // Writes the file anew without what is unused. Writers wait.
  Result<void> compact_file();
  // For the memory, when nobody asks for much: keeps the youngest recent events up to so many bytes, and lets go of pages of the
  // file that SQLite holds. Writers wait for microseconds.
  void shrink(size_t window_bytes);
  std::chrono::steady_clock::time_point last_written() const;  // to the disk; the epoch: not since the start

 private:
  void in_turn(std::function<void()> what);  // runs it where no write is under way
  struct State;
  explicit Engine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace coracle::engine
