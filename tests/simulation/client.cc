// SPDX-License-Identifier: Apache-2.0
// See client.h.
#include "tests/simulation/client.h"

#include <algorithm>

#include "daemon/registry/fields.h"
#include "store/object/status.h"
#include "store/schema/catalog.h"
#include "store/schema/convert.h"

namespace coracle::simulation {

// One watch and its undelivered events.
struct UnreliableClient::Line {
  Line(const schema::KindInfo& info, WatchSink& sink) : info(info), sink(sink) {}
  const schema::KindInfo& info;
  WatchSink& sink;
  std::deque<WatchEvent> events;
  bool level = false, ended = false;
  bool all_told() const { return level && !ended && events.empty(); }
};

class UnreliableClient::Handle : public Watch {
 public:
  Handle(UnreliableClient& client, std::unique_ptr<Line> line) : client_(client), line_(std::move(line)) {}
  ~Handle() override { std::erase(client_.lines_, line_.get()); }

 private:
  UnreliableClient& client_;
  std::unique_ptr<Line> line_;
};

UnreliableClient::UnreliableClient(Cluster& cluster, Dice& dice, const Faults& faults, const Trace& trace)
    : cluster_(cluster), told_(cluster, Actor::daemon), dice_(dice), faults_(faults), trace_(trace) {}
UnreliableClient::~UnreliableClient() = default;

UnreliableClient::Fate UnreliableClient::fate(Call what) {
  if (dice_.chance(faults_.dies)) return dice_.chance(0.5) ? Fate::dies_before : Fate::dies_after;
  if (dice_.chance(faults_.refused)) return Fate::refused;
  if (what.checks_revision && dice_.chance(faults_.conflicts)) return Fate::conflicts;
  if (what.writes && dice_.chance(faults_.lost_answer)) return Fate::lost;
  return Fate::goes_on;
}

template <typename Describe, typename CarryOut>
auto UnreliableClient::call(Call what, const Describe& describe, const CarryOut& carry_out) -> decltype(carry_out()) {
  if (dead_) return Error(Code::unavailable, "the daemon is dead");
  if (meanwhile_ && !aside_ && dice_.chance(faults_.meanwhile)) {
    aside_ = true;  // an action of another client is not interrupted by a further one
    meanwhile_();
    aside_ = false;
  }
  Fate fate = this->fate(what);
  auto say = [&](const std::string& outcome) {
    if (trace_.on()) trace_.say("daemon: " + describe() + (outcome.empty() ? "" : " -- " + outcome));
  };
  switch (fate) {
    case Fate::dies_before:
      dead_ = true;
      say("dies before");
      return Error(Code::unavailable, "the daemon is dead");
    case Fate::refused:
      say("refused");
      return dice_.chance(0.5) ? Error(Code::unavailable, "refused") : Error(Code::timeout, "no time");
    case Fate::conflicts: say("conflicts"); return Error(Code::conflict, "somebody was faster");
    default: break;
  }
  auto result = carry_out();
  writes_ += what.writes && result.ok();
  bool lost = fate == Fate::lost || fate == Fate::dies_after;
  std::string outcome = result ? "" : result.error().text();
  if (what.writes) say(outcome + (fate == Fate::lost ? " answer lost" : fate == Fate::dies_after ? " dies after" : ""));
  if (fate == Fate::dies_after) dead_ = true;
  if (lost) return Error(Code::timeout, "the answer was lost");
  return result;
}

namespace {

std::string resource(const Kind& kind, std::string_view subresource) {
  return kind.qualified_resource() + (subresource.empty() ? "" : "/" + std::string(subresource));
}

Key key_of(const json::value& body) {
  std::string_view name = get_string(body, "metadata.name");
  return {std::string(get_string(body, "metadata.namespace")),
          std::string(name.empty() ? get_string(body, "metadata.generateName") : name)};
}

}  // namespace

Result<ObjectPtr> UnreliableClient::get(const Kind& kind, const Key& key) {
  return call(
      {}, [&] { return "get " + resource(kind, {}) + " " + key.text(); }, [&] { return told_.get(kind, key); });
}

Result<json::value> UnreliableClient::read(const Kind& kind, const Key& key, std::string_view subresource,
                                           const ReadParameters& parameters) {
  return call(
      {}, [&] { return "read " + resource(kind, subresource) + " " + key.text(); },
      [&] { return told_.read(kind, key, subresource, parameters); });
}

Result<ObjectList> UnreliableClient::list(const Kind& kind, const ListOptions& options) {
  return call(
      {}, [&] { return "list " + resource(kind, {}); }, [&] { return told_.list(kind, options); });
}

Result<ObjectPtr> UnreliableClient::create(const Kind& kind, const json::value& body) {
  ObjectPtr made;
  auto carry_out = [&]() -> Result<ObjectPtr> {
    made = TRY(told_.create(kind, body));
    return made;
  };
  auto describe = [&] { return "create " + resource(kind, {}) + " " + (made ? made->key() : key_of(body)).text(); };
  auto result = call({.writes = true}, describe, carry_out);
  if (made && !result) lost_[made->uid()] = made->revision();
  return result;
}

Result<ObjectPtr> UnreliableClient::update(const Kind& kind, const json::value& body, const UpdateOptions& options) {
  auto describe = [&] {
    const json::value* part = find(body, options.subresource.empty() ? "spec" : "status");
    return "update " + resource(kind, options.subresource) + " " + key_of(body).text() + " " + (part ? to_text(*part) : "");
  };
  Revision made = 0;
  auto carry_out = [&]() -> Result<ObjectPtr> {
    auto updated = told_.update(kind, body, options);
    if (updated) made = cluster_.revision();
    return updated;
  };
  auto result = call({.writes = true, .checks_revision = true}, describe, carry_out);
  if (made && !result) unanswered_.insert(made);
  judgements_ += result.ok() && kind == kHorizontalPodAutoscaler;
  return result;
}

Result<ObjectPtr> UnreliableClient::patch(const Kind& kind, const Key& key, PatchType type, const json::value& patch,
                                          const UpdateOptions& options) {
  auto describe = [&] { return "patch " + resource(kind, options.subresource) + " " + key.text() + " " + to_text(patch); };
  auto result =
      call({.writes = true, .checks_revision = true}, describe, [&] { return told_.patch(kind, key, type, patch, options); });
  if (kind == kPod && options.subresource == "status") {
    explanations_ += result.ok();
    if (result.ok()) untold_.erase(key);
    else untold_.insert(key);
  }
  return result;
}

Result<void> UnreliableClient::remove(const Kind& kind, const Key& key, const DeleteOptions& options) {
  auto describe = [&] { return "remove " + resource(kind, {}) + " " + key.text() + " " + options.propagation; };
  bool checks = options.revision.has_value();  // with a uid alone, a conflict means another object
  bool done = false;
  auto result = call({.writes = true, .checks_revision = checks}, describe, [&] {
    auto removed = told_.remove(kind, key, options);
    done = removed.ok();
    return removed;
  });
  if (done && !result && options.uid) lost_removals_[*options.uid] = cluster_.revision();
  return result;
}

Result<json::value> UnreliableClient::create_subresource(const Kind& kind, const Key& key, std::string_view subresource,
                                                         const json::value& body) {
  ObjectPtr done;
  auto describe = [&] { return "create_subresource " + resource(kind, subresource) + " " + key.text() + " " + to_text(body); };
  auto carry_out = [&]() -> Result<json::value> {
    json::value answer = TRY(told_.create_subresource(kind, key, subresource, body));
    if (auto now = told_.get(kind, key)) done = *now;
    return answer;
  };
  auto result = call({.writes = true}, describe, carry_out);
  if (done && !result) lost_[done->uid()] = done->revision();
  return result;
}

Result<std::unique_ptr<Watch>> UnreliableClient::watch(const Kind& kind, const WatchOptions& options, WatchSink& sink) {
  auto carry_out = [&]() -> Result<std::unique_ptr<Watch>> {
    if (options.after != 0 || !options.ns.empty() || !options.label_selector.empty() || !options.field_selector.empty())
      return Error(Code::internal, "informers watch all of a kind, from the beginning");
    auto line = std::make_unique<Line>(schema::catalog().of(kind), sink);
    ObjectList all = TRY(told_.list(kind, {}));
    for (ObjectPtr& object : all.items) line->events.push_back({EventType::added, object, object->revision()});
    line->events.push_back({EventType::synced, nullptr, cluster_.revision()});
    heard_ = cluster_.revision();
    lines_.push_back(line.get());
    return std::unique_ptr<Watch>(std::make_unique<Handle>(*this, std::move(line)));
  };
  return call(
      {}, [&] { return "watch " + resource(kind, {}); }, carry_out);
}

void UnreliableClient::hear(const Change& change) {
  heard_ = change.revision;
  for (Line* line : lines_) {
    if (line->ended || !(line->info.stored().kind == *change.kind)) continue;
    ObjectPtr object = change.after;
    EventType type = !change.before ? EventType::added : change.after ? EventType::modified : EventType::deleted;
    if (!object) object = change.before->with_revision(change.revision);
    line->events.push_back({type, schema::shown_as(line->info, std::move(object)), change.revision});
  }
}

bool UnreliableClient::deliver() {
  std::vector<Line*> ready;
  std::copy_if(lines_.begin(), lines_.end(), std::back_inserter(ready), [](const Line* line) { return !line->events.empty(); });
  if (ready.empty()) return false;
  Line* line = dice_.pick(ready);
  WatchEvent event = std::move(line->events.front());
  line->events.pop_front();
  line->level |= event.type == EventType::synced;
  if (line->level) known_[name_of(line->info.kind)] = event.revision;
  line->sink.on_event(event);
  return true;
}

bool UnreliableClient::deliver_all() {
  bool any = false;
  while (deliver()) any = true;
  return any;
}

void UnreliableClient::drop_watch() {
  if (lines_.empty()) return;
  Line* line = dice_.pick(lines_);
  if (std::exchange(line->ended, true)) return;
  line->events.clear();
  trace_.say("daemon: the watch of " + resource(line->info.kind, {}) + " ends");
  line->sink.on_end(dice_.chance(0.5) ? expired("too old") : Error(Code::unavailable, "the connection broke"));
}

void UnreliableClient::drop_all() {
  for (Line* line : std::vector<Line*>(lines_)) {
    if (std::exchange(line->ended, true)) continue;
    line->events.clear();
    line->sink.on_end(Error(Code::unavailable, "the connection broke"));
  }
}

void UnreliableClient::begin_turn() {
  at_turn_ = known_;
  for (const Line* line : lines_)
    if (line->all_told()) at_turn_[name_of(line->info.kind)] = heard_;
  in_turn_ = true;
}

Revision UnreliableClient::known(const Kind& kind) const {
  if (!in_turn_)
    for (const Line* line : lines_)
      if (line->info.kind == kind && line->all_told()) return heard_;
  const auto& table = in_turn_ ? at_turn_ : known_;
  auto found = table.find(name_of(kind));
  return found == table.end() ? 0 : found->second;
}

bool UnreliableClient::unaware_of(const Object& pod) const {
  auto found = lost_.find(pod.uid());
  return found != lost_.end() && found->second > known(pod.kind());
}

bool UnreliableClient::unaware_of_removal(const Object& pod) const {
  auto found = lost_removals_.find(pod.uid());
  return found != lost_removals_.end() && found->second > known(kPod);
}

}  // namespace coracle::simulation
