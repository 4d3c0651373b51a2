// SPDX-License-Identifier: Apache-2.0
// See informer.h.
//   watch thread ── event ──▶ cache (locked) ──▶ handlers (unlocked, in order)
//   the watch ends ──▶ reconnect thread (exists only while the watch is down) ──▶ a new watch from the beginning, whose
//   initial events are compared with the cache: missed changes become modifications, missing objects deletions.
#include "daemon/informer/informer.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "runtime/base/guarded.h"
#include "runtime/base/log.h"
#include "runtime/base/thread.h"
#include "store/object/object.h"

namespace coracle {
namespace {

constexpr std::chrono::milliseconds kRetryFirst{50};
constexpr std::chrono::seconds kRetryLongest{30};
constexpr std::chrono::seconds kHealthyAfter{10};  // a watch that has lasted so long resets the back-off

struct Index {
  Informer::Indexer values;
  std::map<std::string, RestingSet, std::less<>> entries;

  void remove(const ObjectPtr& object) {
    for (const std::string& value : values(*object)) {
      auto entry = entries.find(value);
      if (entry == entries.end()) continue;
      entry->second.erase(object->at_rest());
      if (entry->second.empty()) entries.erase(entry);
    }
  }
  void add(const ObjectPtr& object) {
    for (std::string& value : values(*object)) entries[std::move(value)].insert(object->at_rest());
  }
};

struct Cache {
  RestingSet objects;
  std::map<std::string, Index, std::less<>> indexes;
  bool synced = false;
  Revision revision = 0;

  const RestingSet* entry(std::string_view name, std::string_view value) const {  // null: empty
    auto index = indexes.find(name);
    if (index == indexes.end()) return nullptr;
    auto found = index->second.entries.find(value);
    return found == index->second.entries.end() ? nullptr : &found->second;
  }

  ObjectPtr find(const Key& key) const {
    auto found = objects.find(key);
    return found == objects.end() ? nullptr : (*found)->awake();
  }
  void remove(const ObjectPtr& object) {
    for (auto& [name, index] : indexes) index.remove(object);
    objects.erase(object->at_rest());
  }
  void put(const ObjectPtr& before, const ObjectPtr& after) {
    if (before) remove(before);
    for (auto& [name, index] : indexes) index.add(after);
    objects.insert(after->at_rest());
  }
};

std::vector<ObjectPtr> awake(const std::vector<RestingPtr>& objects) {
  std::vector<ObjectPtr> all;
  all.reserve(objects.size());
  for (const RestingPtr& object : objects) all.push_back(object->awake());
  return all;
}

struct Connection {
  bool down = false;              // the watch has ended, or has not begun
  bool reconnecting = false;      // a reconnect thread is running, or must not start yet
  std::jthread reconnect_thread;  // if `reconnecting` is false, it has finished and only needs a join
};

}  // namespace

struct Informer::State : WatchSink {
  State(Client& client, const Kind& kind, WatchOptions scope, Reopening reopening)
      : client(client), kind(kind), scope(std::move(scope)), reopening(reopening) {}

  Client& client;
  const Kind& kind;
  const WatchOptions scope;
  const Reopening reopening;
  std::vector<Handler> handlers;
  Guarded<Cache> cache;
  Guarded<Connection> connection;
  std::stop_source stopping;
  bool resyncing = true;            // watch thread only
  std::set<Key, std::less<>> seen;  // watch thread only: keys in the initial events of a new watch
  std::unique_ptr<Watch> watch;     // used by start(), then by the reconnect thread, then by stop()

  void tell(const Change& change) {
    for (const Handler& handler : handlers) handler(change);
  }

  void on_event(const WatchEvent& event) override {
    switch (event.type) {
      case EventType::added:
      case EventType::modified: put(event.object); break;
      case EventType::deleted: drop(event.object); break;
      case EventType::synced: finish_resync(event.revision); break;
      case EventType::bookmark: reached(event.revision); break;
    }
  }

  // Initial events are unordered; the revision is known at their end only.
  void reached(Revision revision) {
    if (resyncing) return;
    cache.with([&](Cache& cache) { cache.revision = std::max(cache.revision, revision); });
  }

  void put(const ObjectPtr& object) {
    if (resyncing) seen.insert(object->key());
    Change change = cache.with([&](Cache& cache) -> Change {
      if (!resyncing) cache.revision = std::max(cache.revision, object->revision());
      ObjectPtr before = cache.find(object->key());
      bool known = before && before->uid() == object->uid() && before->revision() >= object->revision();
      if (known) return {};
      cache.put(before, object);
      return {before, object};
    });
    if (!change.after) return;
    if (change.before && change.before->uid() != change.after->uid()) {  // a missed deletion: another object has the name now
      tell({change.before, nullptr});
      change.before = nullptr;
    }
    tell(change);
  }

  void drop(const ObjectPtr& object) {
    bool held = cache.with([&](Cache& cache) {
      if (!resyncing) cache.revision = std::max(cache.revision, object->revision());
      ObjectPtr before = cache.find(object->key());
      if (before) cache.remove(before);
      return before != nullptr;
    });
    if (resyncing) seen.erase(object->key());
    if (held) tell({object, nullptr});
  }

  void finish_resync(Revision revision) {
    std::vector<ObjectPtr> gone = cache.with([&](Cache& cache) {
      std::vector<ObjectPtr> gone;
      for (const RestingPtr& object : cache.objects)
        if (!seen.contains(object->key())) gone.push_back(object->awake());
      for (const ObjectPtr& object : gone) cache.remove(object);
      cache.synced = true;
      cache.revision = std::max(cache.revision, revision);
      return gone;
    });
    resyncing = false;
    seen.clear();
    for (const ObjectPtr& object : gone) tell({object, nullptr});
    cache.notify();
  }

  void on_end(const Error& why) override {
    log_debug("informer", "the watch ended: " + why.text(), {{"kind", kind.kind}});
    reconnect_later();
  }

  void reconnect_later() {
    connection.with([](Connection& c) { c.down = true; });
    connection.notify();
    begin_reconnecting();
  }

  // Starts the reconnect thread if the watch is down and none is running. The watch's thread may call this while another thread
  // stops the informer, so the thread is started under the lock.
  void begin_reconnecting() {
    std::jthread last;  // joined outside the lock
    connection.with([&](Connection& c) {
      if (!c.down || stopping.stop_requested() || std::exchange(c.reconnecting, true)) return;
      if (reopening != Reopening::by_thread) return;
      last.swap(c.reconnect_thread);
      c.reconnect_thread = start_thread("informer", [this] { reconnect(); });
    });
  }

  // The watch may end before this function has it: then the reconnect thread starts only when it is here.
  Result<void> open_first() {
    connection.with([](Connection& c) { c.reconnecting = true; });
    auto opened = open();
    connection.with([](Connection& c) { c.reconnecting = false; });
    if (opened) begin_reconnecting();
    return opened;
  }

  void reconnect() {
    const std::stop_token stop = stopping.get_token();
    const auto is_down = [](const Connection& c) { return c.down; };
    const auto finish_unless_down = [](Connection& c) { return c.reconnecting = c.down; };
    const auto now = [] { return std::chrono::steady_clock::now(); };
    std::chrono::nanoseconds pause = kRetryFirst;
    while (!stop.stop_requested()) {
      watch.reset();  // blocks until its last callback has returned
      connection.with([](Connection& c) { c.down = false; });
      if (auto opened = open(); !opened) {
        log_debug("informer", "watch again: " + opened.error().text(), {{"kind", kind.kind}});
        connection.with([](Connection& c) { c.down = true; });
      }
      // Waits until the watch has lasted some time: one that ends at once must not be reopened without a delay.
      if (!connection.wait_until(stop, now() + kHealthyAfter, is_down, finish_unless_down)) return;
      connection.wait_until(
          stop, now() + pause, [](const Connection&) { return false; }, [](Connection&) {});
      pause = std::min<std::chrono::nanoseconds>(pause * 2, kRetryLongest);
    }
  }

  bool run_once() {
    bool down = connection.with([](Connection& c) {
      c.reconnecting = false;
      return std::exchange(c.down, false);
    });
    if (!down) return false;
    watch.reset();
    if (!open()) reconnect_later();
    return true;
  }

  Result<void> open() {
    resyncing = true;
    seen.clear();
    watch = TRY(client.watch(kind, scope, *this));
    return {};
  }
};

Informer::Informer(Client& client, const Kind& kind, WatchOptions scope, Reopening reopening)
    : state_(std::make_unique<State>(client, kind, std::move(scope), reopening)) {}

Informer::~Informer() { stop(); }

void Informer::stop() {
  state_->stopping.request_stop();
  std::jthread last;
  // A watch that ends from here on starts no thread.
  state_->connection.with([&](Connection& c) { last.swap(c.reconnect_thread); });
  state_->connection.notify();
  if (last.joinable()) last.join();
  state_->watch.reset();
}

bool Informer::run_once() { return state_->run_once(); }

void Informer::on_change(Handler handler) { state_->handlers.push_back(std::move(handler)); }

void Informer::add_index(std::string name, Indexer values) {
  state_->cache.with([&](Cache& cache) { cache.indexes.try_emplace(std::move(name), Index{std::move(values), {}}); });
}

Result<void> Informer::start() {
  auto opened = state_->open_first();
  if (opened) return {};
  Code code = opened.error().code();
  bool later = code == Code::unavailable || code == Code::timeout || code == Code::gone || code == Code::too_many_requests;
  if (!later) return opened.take_error().wrap("watch " + state_->kind.qualified_resource());
  state_->reconnect_later();
  return {};
}

bool Informer::wait_synced(std::stop_token stop) const {
  return state_->cache.wait(
      stop, [](const Cache& c) { return c.synced; }, [](Cache& c) { return c.synced; });
}

bool Informer::synced() const {
  return state_->cache.with([](const Cache& cache) { return cache.synced; });
}

ObjectPtr Informer::get(const Key& key) const {
  return state_->cache.with([&](const Cache& cache) { return cache.find(key); });
}

std::vector<ObjectPtr> Informer::list(std::string_view ns) const {
  return awake(state_->cache.with([&](const Cache& cache) {
    if (ns.empty()) return std::vector<RestingPtr>(cache.objects.begin(), cache.objects.end());
    auto first = cache.objects.lower_bound(KeyView(ns, ""));
    auto last = std::find_if(first, cache.objects.end(), [&](const RestingPtr& object) { return object->ns() != ns; });
    return std::vector<RestingPtr>(first, last);
  }));
}

std::vector<ObjectPtr> Informer::by_index(std::string_view name, std::string_view value) const {
  return awake(state_->cache.with([&](const Cache& cache) {
    const RestingSet* entry = cache.entry(name, value);
    return entry ? std::vector<RestingPtr>(entry->begin(), entry->end()) : std::vector<RestingPtr>();
  }));
}

size_t Informer::count_by_index(std::string_view name, std::string_view value) const {
  return state_->cache.with([&](const Cache& cache) {
    const RestingSet* entry = cache.entry(name, value);
    return entry ? entry->size() : 0;
  });
}

Revision Informer::revision() const {
  return state_->cache.with([](const Cache& cache) { return cache.revision; });
}

size_t Informer::size() const {
  return state_->cache.with([](const Cache& cache) { return cache.objects.size(); });
}

}  // namespace coracle
