// SPDX-License-Identifier: Apache-2.0
// Engine. See engine.h. This file defines the order of operations: leadership, decisions, and what is on the disk before what.
//
// Writers queue up. A writer that finds no leader becomes the leader. It takes all queued writers, decides their writes (plan.h),
// writes them to the disk if one is durable (with all pending soft changes), makes them visible, publishes the events, and wakes
// the writers. That is the group commit; a single writer has no hand-over. If others have queued up meanwhile, the engine's own
// thread becomes the leader until the queue is empty: under load, the disk never waits for a thread to wake up. There is one
// leader at a time, so memory, watchers and disk see the same sequence of revisions.
#include "store/engine/engine.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <deque>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "runtime/base/guarded.h"
#include "runtime/base/log.h"
#include "runtime/base/scope.h"
#include "runtime/base/thread.h"
#include "runtime/base/wait_once.h"
#include "store/engine/broadcaster.h"
#include "store/engine/disk.h"
#include "store/engine/listing.h"
#include "store/engine/memory.h"
#include "store/engine/plan.h"
#include "store/object/status.h"

namespace coracle::engine {
namespace {

using Steady = std::chrono::steady_clock;

constexpr size_t kLedMax = 256;  // writers per batch
// From so many bytes a write takes longer than those of many others together. Large ones are written down apart from small ones,
// as many in one batch as have kLargeTogetherMax bytes.
constexpr size_t kLargeBytes = 256 << 10, kLargeTogetherMax = 4 << 20;
// Number of revisions to reserve on the disk at once. It is large because changes that are never written to the disk use
// revisions too, and must not cause writes; with one renewal every ten seconds it lasts four months.
constexpr Revision kReservedAhead = 1 << 20;
// If a reservation cannot be written because the disk is full or read-only, the counter jumps: far above the mark, by a random
// distance, so that the next start, which continues from the mark, does not reach these revisions.
constexpr Revision kUnmarkedMin = Revision(1) << 24, kUnmarkedMax = Revision(1) << 36;

struct Ticket {  // a queued writer
  std::vector<Prepared> writes;
  Durability durability = Durability::durable;
  bool flush = false;
  std::function<void()> task;  // instead of writes: work that needs the leader's state
  size_t bytes = 0;            // of the writes
  bool is_large() const { return bytes >= kLargeBytes; }
  std::optional<Result<std::vector<ObjectPtr>>> outcome;
  WaitOnce served;  // after it is given, the ticket may be destroyed
};

struct Line {
  std::deque<Ticket*> waiting;
  bool led = false;     // there is a leader
  bool handed = false;  // the engine's thread is the leader

  bool long_work_next = false;  // small writes have gone before it

  struct Turn {
    std::vector<Ticket*> led;
    bool tidies = false;  // writes the log into the file, and nothing else
  };

  // The next batch. Small writes take turns with what lasts long, so that they wait for one of these at most: large writes, and a
  // log that is too long (`log_is_too_long`). One that is long (`log_is_long`) goes into the file when nobody waits.
  Turn take(bool log_is_long, bool log_is_too_long) {
    const auto is_small = [](const Ticket* ticket) { return !ticket->is_large(); };
    const auto first_large = std::stable_partition(waiting.begin(), waiting.end(), is_small);
    const bool any_small = first_large != waiting.begin(), any_large = first_large != waiting.end();
    const bool lasts_long = long_work_next || !any_small;
    if (lasts_long && (log_is_too_long || (log_is_long && waiting.empty()))) {
      long_work_next = false;
      return {{}, true};
    }
    const bool takes_large = lasts_long && any_large;
    auto begin = takes_large ? first_large : waiting.begin(), end = begin;
    const auto limit = takes_large ? waiting.end() : first_large;
    for (size_t bytes = 0; end != limit && size_t(end - begin) < kLedMax; ++end) {
      bytes += (*end)->bytes;
      if (takes_large && end != begin && bytes > kLargeTogetherMax) break;
    }
    Turn turn{{begin, end}, false};
    waiting.erase(begin, end);
    long_work_next = !takes_large && (any_large || log_is_too_long);
    return turn;
  }
};

std::string name_of(const RestingObject& object) { return object.kind().qualified_resource() + " " + Key(object.key()).text(); }

Error too_old(Revision asked, Revision floor) {
  return expired("too old resource version: " + std::to_string(asked) + " (" + std::to_string(floor) + ")");
}

}  // namespace

bool drain(Watcher& watcher, const std::function<void(const Object& object, bool is_gone)>& put) {
  for (;;) {
    auto event = watcher.take({}, {});
    if (!event) return false;
    if (!*event) return true;
    if ((*event)->object) put(*(*event)->object, (*event)->type == EventType::deleted);
  }
}

Error revision_too_large(Revision asked, Revision latest) {
  ErrorDetails details;
  details.causes.push_back({"ResourceVersionTooLarge", "Too large resource version", ""});
  details.retry_after_seconds = 1;
  return Error(Code::timeout,
               "Timeout: Too large resource version: " + std::to_string(asked) + ", current: " + std::to_string(latest))
      .with(std::move(details));
}

struct Engine::State {
  explicit State(Options options)
      : options(std::move(options)),
        kinds(this->options.find_kind),
        memory(this->options.window_events_max, this->options.window_bytes_max) {}

  Result<void> load();
  bool memory_only(const Kind& kind) const { return options.memory_only && options.memory_only(kind); }
  // The oldest revision at which a watch or list of this kind can start.
  Revision floor_of(const Kind& kind, const Memory& memory) const {
    return memory_only(kind) ? std::max(memory.window.floor(), forgotten_at) : memory.window.floor();
  }

  Result<Listing> read(const Kind& kind, const ListOptions& options) const;
  Result<std::vector<ObjectPtr>> wait_in_queue(Ticket& ticket);
  void lead(const std::vector<Ticket*>& all);
  Result<void> lead_together(const std::vector<Ticket*>& led, bool on_disk);
  bool confirms_pending(const Plan& plan, const Ticket& ticket) const;
  Result<void> write_down(const Plan& plan);
  void go_unmarked();
  void note_space(const Space& space);
  void remember_soft(const std::vector<Change>& changes, Durability durability);
  void publish(const std::vector<Change>& changes);
  void keep_leading(std::stop_token stop);
  void keep_flushing(std::stop_token stop);

  struct Start {
    std::vector<RestingEvent> events;
    Revision upto = 0;
  };
  Result<Start> start_of_watch(const Kind& kind, const std::string& ns, Revision after) const;

  const Options options;
  std::unique_ptr<Disk> disk;
  StoredKinds kinds;
  Guarded<Memory> memory;
  std::atomic<Revision> visible = 0;  // memory's revision, set under its lock: each request asks whether anything has changed
  Broadcaster broadcaster{options.watch_bytes_max};
  Guarded<Line> line;
  std::mutex maintenance;  // one check or compaction at a time; held while they read and write the file

  // Owned by the leader, and passed on with leadership.
  Revision last = 0;          // last revision in use
  Revision forgotten_at = 0;  // start of memory-only data; constant after load()
  int64_t next_row = 1;
  std::map<int64_t, RestingPtr> unwritten;  // pending soft changes by row; null: deleted
  std::optional<Error> sealed;              // why writes fail
  bool full = false;                        // a write has failed, and not enough was freed since
  bool unmarked = false;                    // revisions above the mark are in use, because the disk fails
  std::atomic<Steady::rep> written_at = 0;  // time of the last write that a caller waited for

  Guarded<std::optional<Steady::time_point>> flush_due;  // deadline for writing `unwritten`
  std::jthread flusher;
  std::jthread leader;
};

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Engine>> Engine::open(const std::string& path, Options options) {
  auto state = std::make_unique<State>(std::move(options));
  auto open_and_load = [&]() -> Result<void> {
    state->disk.reset();
    state->disk = TRY(Disk::open(path, state->options.vfs, state->options.copies));
    return state->load().wrap(path);
  };
  auto opened = open_and_load();
  bool damage = !opened && opened.error().details() && opened.error().details()->reason == kDamaged;
  if (damage && state->options.set_aside_damaged) {
    state->disk.reset();
    std::string aside = TRY(Disk::set_aside(path));
    log_warning("store", "the store was damaged; it is kept aside and a new one begins",
                {{"why", opened.error().text()}, {"kept", aside}});
    opened = open_and_load();
  } else if (damage) {
    return opened.take_error().wrap(
        "the store is damaged; restore it from a copy, or begin empty with coracled --set-aside-damaged");
  }
  if (!opened) return opened.take_error().wrap("open the store");
  state->leader = start_thread("store-leader", [state = state.get()](std::stop_token stop) { state->keep_leading(stop); });
  state->flusher = start_thread("store-flush", [state = state.get()](std::stop_token stop) { state->keep_flushing(stop); });
  return std::unique_ptr<Engine>(new Engine(std::move(state)));
}

Engine::~Engine() {
  state_->flusher.request_stop();
  state_->flusher.join();
  auto flushed = flush();
  if (flushed) in_turn([&] { flushed = state_->disk->mark_clean(state_->last); });  // a long log may be going into the file
  if (!flushed)
    log_warning("store", "the last writes of status, leases and events are not on the disk", {{"why", flushed.error().text()}});
  state_->broadcaster.stop(Error(Code::unavailable, "the store is closing"));
}

Result<void> Engine::State::load() {
  std::vector<Row> rows = TRY(disk->load(kinds));
  last = std::max<Revision>(disk->reserved(), 1);  // 0 means "none"
  Revision before = last;
  // Memory-only objects are lost: watches from before must list again, but watches from now on can be resumed.
  if (options.memory_only) forgotten_at = ++last;
  auto marked = disk->commit({}, last + kReservedAhead);
  if (!marked && !disk_takes_nothing(marked.error())) return marked;
  if (!marked) {
    log_warning("store", "the disk takes nothing: writes that have to be on it are refused until it does",
                {{"why", marked.error().text()}});
    go_unmarked();
  }
  memory.with([&](Memory& memory) {
    for (Row& row : rows) {
      next_row = std::max(next_row, row.id + 1);
      if (memory_only(row.object->kind())) unwritten[row.id] = nullptr;
      else memory.load({std::move(row.object), row.id});
    }
    memory.revision = visible = last;
    memory.window.start(before);
  });
  return {};
}

// Reads.

Result<ObjectPtr> Engine::get(const Kind& kind, const Key& key) const {
  RestingPtr object = state_->memory.with([&](const Memory& memory) {
    const Memory::Entry* found = memory.find(kind, key);
    return found ? found->object : nullptr;
  });
  if (!object) return not_found(kind, key.name);
  return object->awake();
}

bool Engine::unchanged(const std::vector<Seen>& all) const {
  return state_->memory.with([&](const Memory& memory) {
    return std::ranges::all_of(all, [&](const Seen& seen) {
      const Memory::Entry* found = memory.find(*seen.kind, seen.key);
      return found && found->object->revision() == seen.revision;
    });
  });
}

// Errors: see Engine::list.
Result<Listing> Engine::State::read(const Kind& kind, const ListOptions& options) const {
  Listing listing;
  if (!options.continue_token.empty()) listing.token = TRY(ContinueToken::parse(options.continue_token, kind.namespaced));
  const auto& token = listing.token;
  Revision at = token ? Revision(std::max<int64_t>(token->revision, 0)) : options.at;

  std::map<Key, RestingPtr> differences;
  Revision revision = 0, floor = 0;
  memory.with([&](const Memory& memory) {
    revision = memory.revision;
    floor = floor_of(kind, memory);
    if (at > revision || (at && at < floor)) return;
    listing.objects = memory.objects(kind, options.ns);
    if (at && at < revision) differences = memory.window.differences(at, kind, options.ns);
  });
  if (at > revision) return revision_too_large(at, revision);
  if (at && at < floor) return token ? expired_token(*token) : expired("The resourceVersion for the provided list is too old.");
  if (!differences.empty()) listing.objects = rewound(std::move(listing.objects), differences);
  listing.revision = at ? at : revision;
  return listing;
}

Result<ListPage> Engine::list(const Kind& kind, const ListOptions& options) const {
  Listing listing = TRY(state_->read(kind, options));
  return page_of<ObjectPtr>(std::move(listing), options);
}

Result<RestingPage> Engine::list_at_rest(const Kind& kind, const ListOptions& options) const {
  Listing listing = TRY(state_->read(kind, options));
  return page_of<RestingPtr>(std::move(listing), options);
}

size_t Engine::count(const Kind& kind) const {
  return state_->memory.with([&](const Memory& memory) { return memory.count(kind); });
}

Usage Engine::usage() const {
  return {state_->memory.with([](const Memory& memory) { return memory.bytes(); }), state_->options.objects_bytes_max};
}

Revision Engine::revision() const { return state_->visible; }

bool Engine::await(Revision revision, Steady::time_point deadline) const {
  auto reached = [&](const Memory& memory) { return memory.revision >= revision; };
  return state_->memory.wait_until({}, deadline, reached, reached);
}

Revision Engine::compacted() const {
  return state_->memory.with([](const Memory& memory) { return memory.window.floor(); });
}

void Engine::end_watches(const Kind& kind, const Error& why) { state_->broadcaster.end_watches(kind, why); }

void Engine::compact(Revision revision) {
  state_->memory.with([&](Memory& memory) { memory.window.forget(std::min(revision, memory.revision)); });
}

// Writes.

Result<ObjectPtr> Engine::write(Write write, Durability durability) {
  std::vector<Write> one;
  one.push_back(std::move(write));
  std::vector<ObjectPtr> stored = TRY(write_all(std::move(one), durability));
  return std::move(stored[0]);
}

Result<ObjectPtr> Engine::remove(const Kind& kind, const Key& key, std::optional<Revision> expected, Durability durability) {
  return write(Write{&kind, key, std::nullopt, expected}, durability);
}

Result<std::vector<ObjectPtr>> Engine::write_all(std::vector<Write> writes, Durability durability) {
  Ticket ticket;
  ticket.durability = durability;
  for (Write& write : writes) {
    Prepared prepared = TRY(Prepared::make(std::move(write)));
    if (prepared.body) ticket.bytes += prepared.body->text().size();
    ticket.writes.push_back(std::move(prepared));
  }
  return state_->wait_in_queue(ticket);
}

Result<void> Engine::flush() {
  Ticket ticket;
  ticket.flush = true;
  TRY(state_->wait_in_queue(ticket));
  return {};
}

// Copies and maintenance.

void Engine::in_turn(std::function<void()> what) {
  Ticket ticket;
  ticket.task = std::move(what);
  (void)state_->wait_in_queue(ticket);  // a turn has no error of its own
}

Snapshot Engine::snapshot() const {
  Snapshot now = state_->memory.with([](const Memory& memory) { return Snapshot{memory.all(), memory.revision}; });
  std::erase_if(now.objects, [this](const RestingPtr& object) { return state_->memory_only(object->kind()); });
  return now;
}

Revision Engine::seal(Error why) {
  Revision last = 0;
  in_turn([&] {
    state_->sealed = std::move(why);
    last = std::max(state_->last, state_->disk->reserved());
  });
  return last;
}

void Engine::unseal() {
  in_turn([&] { state_->sealed.reset(); });
}

std::vector<std::string> Engine::check() {
  std::lock_guard one_at_a_time(state_->maintenance);
  std::map<int64_t, RestingPtr> expected;
  std::vector<std::string> findings, differences;
  auto read = [&](bool frozen) {
    findings = state_->disk->check(frozen, [&](int64_t id, std::string_view text) {
      auto known = expected.extract(id);
      if (!known) differences.push_back("row " + std::to_string(id) + " is there, and should not be");
      else if (std::string buffer; known.mapped() && known.mapped()->text(buffer) != text)
        differences.push_back(name_of(*known.mapped()) + " is not what was written");
    });
  };
  auto expect = [&] {
    expected = state_->memory.with([](const Memory& memory) { return memory.rows(); });
    std::erase_if(expected, [this](const auto& row) { return state_->memory_only(row.second->kind()); });
    for (const auto& [row, object] : state_->unwritten) expected[row] = nullptr;  // these rows may still be outdated on the disk
  };
  bool frozen = false, melted = false;
  in_turn([&] {
    expect();
    frozen = state_->disk->freeze(state_->options.check_log_bytes_max).ok();
    if (!frozen) read(false);  // with what is in the log, which a full disk keeps there
  });
  if (frozen) {
    Scope thaw([&] { in_turn([&] { state_->disk->thaw(); }); });
    read(true);
    melted = state_->disk->melted();
  }
  if (melted) {
    differences.clear();
    in_turn([&] { expect(), read(false); });
  }
  if (findings.empty())
    for (const auto& [row, object] : expected)
      if (object) differences.push_back(name_of(*object) + " is missing");
  for (std::string& difference : differences)
    if (findings.size() < kFindingsMax) findings.push_back(std::move(difference));
  return findings;
}

Result<FileSize> Engine::file_size() {
  Result<Disk::Size> size = Disk::Size();
  in_turn([&] { size = state_->disk->size(); });
  if (!size) return size.take_error();
  return FileSize{size->bytes, size->unused};
}

Result<void> Engine::compact_file() {
  std::lock_guard one_at_a_time(state_->maintenance);
  Result<void> done;
  in_turn([&] { done = state_->disk->compact(); });
  return done;
}

void Engine::shrink(size_t window_bytes) {
  state_->memory.with([&](Memory& memory) { memory.window.shrink(window_bytes); });
  in_turn([&] { state_->disk->release_memory(); });
}

std::chrono::steady_clock::time_point Engine::last_written() const {
  return Steady::time_point(Steady::duration(state_->written_at.load()));
}

Result<std::vector<ObjectPtr>> Engine::State::wait_in_queue(Ticket& ticket) {
  std::vector<Ticket*> led = line.with([&](Line& line) {
    line.waiting.push_back(&ticket);
    return std::exchange(line.led, true) ? std::vector<Ticket*>() : line.take(false, false).led;
  });
  if (led.empty()) {
    ticket.served.wait();
    return *std::move(ticket.outcome);
  }
  lead(led);
  bool hands_over = line.with([this](Line& line) {
    line.led = line.handed = !line.waiting.empty() || disk->log_is_long();
    return line.handed;
  });
  if (hands_over) line.notify();
  for (Ticket* each : led)
    if (each != &ticket) each->served.give();
  return *std::move(ticket.outcome);
}

// The "store-leader" thread: sleeps until it becomes the leader. It also writes a long log into the file.
void Engine::State::keep_leading(std::stop_token stop) {
  auto handed = [](const Line& line) { return line.handed; };
  while (line.wait(stop, handed, handed)) {
    for (;;) {
      Line::Turn turn = line.with([&](Line& line) {
        Line::Turn turn = line.take(disk->log_is_long(), disk->log_is_too_long());
        line.led = line.handed = turn.tidies || !turn.led.empty();
        return turn;
      });
      if (turn.tidies) disk->checkpoint();
      else if (turn.led.empty()) break;
      lead(turn.led);
      for (Ticket* each : turn.led) each->served.give();
    }
  }
}

void Engine::State::lead(const std::vector<Ticket*>& all) {
  std::vector<Ticket*> led;
  for (Ticket* ticket : all) {
    if (ticket->task) ticket->task(), ticket->outcome = std::vector<ObjectPtr>();
    else if (sealed && !ticket->flush) ticket->outcome = *sealed;
    else led.push_back(ticket);
  }
  if (led.empty()) return;
  auto done = lead_together(led, true);
  if (done) return;
  // The disk write has failed. Durable writes fail with it; soft ones need no disk and are decided again without them.
  std::vector<Ticket*> soft;
  for (Ticket* ticket : led) {
    if (ticket->flush || ticket->durability == Durability::durable) ticket->outcome = done.error();
    else soft.push_back(ticket);
  }
  if (soft.empty()) return;
  if (last > disk->reserved() && disk_takes_nothing(done.error())) go_unmarked();
  auto again = lead_together(soft, false);
  if (again) return;
  for (Ticket* ticket : soft) ticket->outcome = again.error();
}

// `on_disk`: large writes go there at once, also soft ones, which a small one would have to take along otherwise. Errors: the
// disk's; then no write has been applied.
Result<void> Engine::State::lead_together(const std::vector<Ticket*>& led, bool on_disk) {
  auto find = [this](const Kind& kind, const Key& key) {
    return memory.with([&](const Memory& memory) {
      const Memory::Entry* found = memory.find(kind, key);
      return found ? Plan::Entry{found->object->awake(), found->row} : Plan::Entry();
    });
  };
  Usage usage{memory.with([](const Memory& memory) { return memory.bytes(); }), options.objects_bytes_max};
  Plan plan(find, last, next_row, usage);
  bool durable = false;
  Durability softest = Durability::passing;
  for (Ticket* ticket : led) {
    size_t before = plan.changes().size();
    ticket->outcome = plan.add(ticket->writes);
    bool changes = plan.changes().size() > before;
    bool is_promised = ticket->durability == Durability::durable && ticket->outcome->ok();
    durable |= ticket->flush || (is_promised && (changes || confirms_pending(plan, *ticket))) || (on_disk && ticket->is_large());
    if (changes) softest = std::min(softest, ticket->durability);
  }
  note_space(plan.space());
  durable |= plan.last() > disk->reserved() && !unmarked;  // the mark must be raised: write everything with it
  last = plan.last();                                      // even on failure: a revision that may be on the disk is not reused
  if (durable) {
    TRY(write_down(plan));
  } else {
    remember_soft(plan.changes(), softest);
  }
  next_row = plan.next_row();
  publish(plan.changes());
  return {};
}

// Whether a write that changes nothing finds what is not on the disk yet: its caller is told that it is stored.
bool Engine::State::confirms_pending(const Plan& plan, const Ticket& ticket) const {
  if (unwritten.empty() && plan.changes().empty()) return false;
  return std::ranges::any_of(ticket.writes, [&](const Prepared& write) {
    if (memory_only(*write.kind)) return false;
    const int64_t row = plan.latest(*write.kind, write.key).row;
    return unwritten.contains(row) || std::ranges::find(plan.changes(), row, &Change::row) != plan.changes().end();
  });
}

void Engine::State::go_unmarked() {
  if (unmarked) return;
  unmarked = true;
  std::random_device random;
  last += std::uniform_int_distribution<Revision>(kUnmarkedMin, kUnmarkedMax)(random);
}

void Engine::State::note_space(const Space& space) {
  const Usage& usage = space.usage;
  if (full && usage.bytes < usage.bytes_max / 10 * 9) full = false;
  if (!space.refused || full) return;
  full = true;
  log_warning("store", "objects take all the space that they may: writes are refused, deletions are not",
              {{"bytes", std::to_string(usage.bytes)}, {"bytes_max", std::to_string(usage.bytes_max)}});
  if (options.on_full) options.on_full(usage);
}

// Writes all pending soft changes and the plan.
Result<void> Engine::State::write_down(const Plan& plan) {
  std::map<int64_t, RestingPtr> latest = unwritten;
  for (const Change& change : plan.changes())
    if (!memory_only(change.event.object->kind())) latest[change.row] = change.kept();
  std::optional<Revision> reserve;
  if (plan.last() > disk->reserved()) reserve = plan.last() + kReservedAhead;
  if (latest.empty() && !reserve) return {};
  std::vector<Row> rows;
  for (auto& [id, object] : latest) rows.push_back({id, std::move(object)});
  TRY(disk->commit(rows, reserve));
  written_at = Steady::now().time_since_epoch().count();
  unmarked = false;
  unwritten.clear();
  flush_due.with([](auto& due) { due.reset(); });
  return {};
}

void Engine::State::remember_soft(const std::vector<Change>& changes, Durability durability) {
  bool any = false;
  for (const Change& change : changes) {
    if (memory_only(change.event.object->kind())) continue;
    unwritten[change.row] = change.kept();
    any = true;
  }
  if (!any || durability == Durability::passing) return;
  Steady::time_point due = Steady::now() + (durability == Durability::lazy ? options.lazy_delay : options.soft_delay);
  bool sooner = flush_due.with([&](auto& current) {
    if (current && *current <= due) return false;
    current = due;
    return true;
  });
  if (sooner) flush_due.notify();
}

void Engine::State::publish(const std::vector<Change>& changes) {
  if (changes.empty()) return;
  std::vector<Event> events;
  memory.with([&](Memory& memory) {
    for (const Change& change : changes) memory.apply(change);
    visible = memory.revision;
  });
  memory.notify();
  for (const Change& change : changes) events.push_back(change.event);
  broadcaster.publish(events);
}

// The "store-flush" thread: sleeps without a deadline while nothing is pending.
void Engine::State::keep_flushing(std::stop_token stop) {
  while (!stop.stop_requested()) {
    auto due = flush_due.wait(
        stop, [](const auto& due) { return due.has_value(); }, [](const auto& due) { return due; });
    if (!due) continue;
    bool now = flush_due.wait_until(
        stop, *due, [&](const auto& current) { return current != due; }, [&](const auto& current) { return current == due; });
    if (!now || stop.stop_requested()) continue;
    Ticket ticket;
    ticket.flush = true;
    auto flushed = wait_in_queue(ticket);
    if (flushed) continue;
    log_warning("store", "cannot write status, leases and events to the disk; trying again", {{"why", flushed.error().text()}});
    flush_due.with([&](auto& current) { current = Steady::now() + options.soft_delay; });
  }
}

// Watches.

Result<Engine::State::Start> Engine::State::start_of_watch(const Kind& kind, const std::string& ns, Revision after) const {
  Start start;
  Revision floor = 0;
  std::vector<RestingPtr> objects;
  memory.with([&](const Memory& memory) {
    start.upto = memory.revision;
    floor = floor_of(kind, memory);
    if (after == 0) objects = memory.objects(kind, ns);
    else if (after >= floor) start.events = memory.window.after(after, kind, ns);
  });
  if (after > start.upto) return revision_too_large(after, start.upto);
  if (after && after < floor) return too_old(after, floor);
  if (after) return start;
  start.events.reserve(objects.size() + 1);
  for (RestingPtr& object : objects) {
    Revision revision = object->revision();
    start.events.push_back({EventType::added, revision, std::move(object), nullptr});
  }
  start.events.push_back({EventType::synced, start.upto, nullptr, nullptr});
  return start;
}

Result<std::unique_ptr<Watcher>> Engine::watch(const Kind& kind, const std::string& ns, Revision after) {
  auto inbox = state_->broadcaster.join(kind, ns, state_->options.watch_queue_max);
  auto start = state_->start_of_watch(kind, ns, after);
  if (start) return state_->broadcaster.begin_watcher(std::move(inbox), std::move(start->events), start->upto);
  state_->broadcaster.leave(inbox);
  return start.take_error();
}

Result<std::unique_ptr<Subscription>> Engine::subscribe(const Kind& kind, const std::string& ns, Revision after,
                                                        Callbacks callbacks) {
  auto inbox = state_->broadcaster.join(kind, ns, state_->options.watch_queue_max);
  auto start = state_->start_of_watch(kind, ns, after);
  if (start)
    return state_->broadcaster.begin_subscription(std::move(inbox), std::move(start->events), start->upto, std::move(callbacks));
  state_->broadcaster.leave(inbox);
  return start.take_error();
}

}  // namespace coracle::engine
