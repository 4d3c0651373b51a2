// SPDX-License-Identifier: Apache-2.0
// FakeClient. See fake_client.h. One lock, one map per kind, one thread per watch.
#include "tests/store/client/fake_client.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <thread>

#include "runtime/base/guarded.h"
#include "runtime/base/text.h"
#include "store/object/object.h"
#include "store/object/patch.h"
#include "store/object/selector.h"
#include "store/object/status.h"

namespace coracle {
namespace {

struct Change {
  const Kind* kind;
  Revision revision;
  ObjectPtr before, after;  // null: the object was absent before, or is absent after
  ObjectPtr final;          // for a deletion: the last state, with the deletion's revision
};

struct Filter {
  std::string ns;
  LabelSelector labels;
  FieldSelector fields;

  static Result<Filter> make(const std::string& ns, const std::string& labels, const std::string& fields) {
    Filter filter;
    filter.ns = ns;
    filter.labels = TRY(LabelSelector::parse(labels));
    filter.fields = TRY(FieldSelector::parse(fields));
    return filter;
  }
  bool matches(const ObjectPtr& object) const {
    if (!object || (!ns.empty() && object->ns() != ns) || !labels.matches(*object)) return false;
    return fields.matches([&](std::string_view field) {
      const json::value* value = coracle::find(object->json(), field);
      if (!value || value->is_null()) return std::string();
      return value->is_string() ? std::string(value->get_string()) : to_text(*value);
    });
  }
  // The event that a watch with this filter gets for a change.
  std::optional<WatchEvent> seen(const Change& change) const {
    bool was = matches(change.before), is = matches(change.after);
    if (!was && !is) return std::nullopt;
    if (!was) return WatchEvent{EventType::added, change.after, change.revision};
    if (is) return WatchEvent{EventType::modified, change.after, change.revision};
    ObjectPtr last = change.final ? change.final : change.before->with_revision(change.revision);
    return WatchEvent{EventType::deleted, last, change.revision};
  }
};

// The number of events that are being delivered.
class Pending {
 public:
  void add(size_t n) {
    count_.with([&](size_t& count) { count += n; });
  }
  void done(size_t n) {
    count_.with([&](size_t& count) { count -= n; });
    count_.notify();
  }
  void wait() const {
    count_.wait(
        {}, [](size_t count) { return count == 0; }, [](size_t) {});
  }

 private:
  mutable Guarded<size_t> count_{0};
};

// One watch's queue, and the thread that delivers its events to the sink.
class Delivery {
 public:
  Delivery(const Kind& kind, Filter filter, WatchSink& sink, std::shared_ptr<Pending> pending)
      : kind(&kind),
        filter(std::move(filter)),
        pending_(std::move(pending)),
        thread_([this, &sink](std::stop_token stop) { run(stop, sink); }) {}
  ~Delivery() {
    thread_.request_stop();
    thread_.join();
    pending_->done(queue_.with([](Queue& queue) { return queue.events.size() + (queue.end ? 1 : 0); }));
  }
  void push(WatchEvent event) {
    queue_.with([&](Queue& queue) {
      if (queue.ended) return;
      pending_->add(1);
      queue.events.push_back(std::move(event));
    });
    queue_.notify();
  }
  void end(Error why) {
    queue_.with([&](Queue& queue) {
      if (queue.ended) return;
      pending_->add(1);
      queue.ended = true;
      queue.end = std::move(why);
    });
    queue_.notify();
  }

  const Kind* kind;
  Filter filter;

 private:
  struct Queue {
    std::deque<WatchEvent> events;
    std::optional<Error> end;
    bool ended = false;
  };
  void run(std::stop_token stop, WatchSink& sink) {
    while (!stop.stop_requested()) {
      auto ready = [](const Queue& queue) { return !queue.events.empty() || queue.end; };
      std::optional<WatchEvent> event;
      std::optional<Error> end;
      queue_.wait(stop, ready, [&](Queue& queue) {
        if (stop.stop_requested()) return;
        if (!queue.events.empty()) {
          event = std::move(queue.events.front());
          queue.events.pop_front();
        } else {
          end = std::exchange(queue.end, std::nullopt);
        }
      });
      if (event) sink.on_event(*event);
      if (end) sink.on_end(*end);
      if (event || end) pending_->done(1);
    }
  }

  std::shared_ptr<Pending> pending_;
  Guarded<Queue> queue_;
  std::jthread thread_;
};

bool has_generation(const Kind& kind) {
  return kind == kPod || kind == kDeployment || kind == kReplicaSet || kind == kStatefulSet || kind == kDaemonSet;
}
bool has_status(const Kind& kind) { return has_generation(kind) || kind == kNode || kind == kService || kind == kNamespace; }

void copy_member(json::value& to, const json::value& from, std::string_view dotted) {
  const json::value* value = find(from, dotted);
  if (value) {
    make(to, dotted) = *value;
    return;
  }
  size_t dot = dotted.rfind('.');
  json::value* parent = dot == dotted.npos ? &to : const_cast<json::value*>(find(to, dotted.substr(0, dot)));
  if (parent && parent->is_object()) parent->get_object().erase(dotted.substr(dot == dotted.npos ? 0 : dot + 1));
}

bool same(const json::value* left, const json::value* right) {
  static const json::value none;
  return json_equal(left ? *left : none, right ? *right : none);
}

}  // namespace

struct FakeClient::State {
  struct Fault {
    int left;
    Error error;
    std::string which;
  };
  struct Store {
    std::map<std::string, std::map<Key, ObjectPtr>> objects;  // by qualified resource
    std::deque<Change> past;
    Revision revision = 1;
    Revision forgotten = 0;
    uint64_t uids = 0;
    int lose = 0;
    std::string lost_patch;  // prefix of the call's record; "": none
    std::vector<Key> last_only;
    std::vector<Fault> faults;
    std::vector<std::string> calls;
    std::vector<Delivery*> watches;
    std::map<std::string, json::value> reads;

    ObjectPtr get(const Kind& kind, const Key& key) {
      auto& table = objects[kind.qualified_resource()];
      auto found = table.find(key);
      return found == table.end() ? nullptr : found->second;
    }
    void publish(Change change) {
      bool lost = lose > 0 && --lose == 0;
      for (Delivery* watch : watches) {
        if (lost || !(*watch->kind == *change.kind)) continue;
        if (auto event = watch->filter.seen(change)) watch->push(*event);
      }
      past.push_back(std::move(change));
    }
    Result<ObjectPtr> store(const Kind& kind, json::value body, const ObjectPtr& before) {
      coracle::make(body, "metadata.resourceVersion") = std::to_string(before ? before->revision() : revision + 1);
      if (before && json_equal(before->json(), body)) return before;
      coracle::make(body, "metadata.resourceVersion") = std::to_string(revision + 1);
      ObjectPtr object = TRY(Object::make(kind, std::move(body)));
      objects[kind.qualified_resource()][object->key()] = object;
      publish({&kind, ++revision, before, object, nullptr});
      return object;
    }
    void drop(const Kind& kind, const ObjectPtr& before) {
      objects[kind.qualified_resource()].erase(before->key());
      revision++;
      publish({&kind, revision, before, nullptr, before->with_revision(revision)});
    }
  };

  explicit State(const Clock& clock) : clock(clock) {}

  // Records the call and decides whether it fails.
  Result<void> enter(std::string call) {
    return store.with([&](Store& store) -> Result<void> {
      store.calls.push_back(call);
      for (Fault& fault : store.faults) {
        if (fault.left == 0 || !call.starts_with(fault.which)) continue;
        if (--fault.left == 0) return fault.error;
      }
      return {};
    });
  }
  std::string now() const { return format_time(clock.now()); }
  json::value finished_create(Store& store, const Kind& kind, json::value body) const;
  Result<ObjectPtr> replace(Store& store, const Kind& kind, const ObjectPtr& before, json::value body,
                            const std::string& subresource) const;
  Result<void> remove(Store& store, const Kind& kind, const Key& key, const DeleteOptions& options) const;

  const Clock& clock;
  std::shared_ptr<Pending> pending = std::make_shared<Pending>();
  mutable Guarded<Store> store;
};

// Sets the fields that the server sets on create.
json::value FakeClient::State::finished_create(Store& store, const Kind& kind, json::value body) const {
  std::string number = std::to_string(++store.uids);
  json::value& metadata = make(body, "metadata");
  if (get_string(metadata, "name").empty() && !get_string(metadata, "generateName").empty())
    metadata.get_object()["name"] =
        std::string(get_string(metadata, "generateName")) + std::string(5 - std::min<size_t>(5, number.size()), 'x') + number;
  metadata.get_object()["uid"] = "00000000-0000-4000-8000-" + std::string(12 - number.size(), '0') + number;
  metadata.get_object()["creationTimestamp"] = now();
  metadata.get_object().erase("deletionTimestamp");
  if (has_generation(kind)) metadata.get_object()["generation"] = 1;
  body.get_object()["apiVersion"] = kind.api_version();
  body.get_object()["kind"] = kind.kind;
  return body;
}

Result<ObjectPtr> FakeClient::State::replace(Store& store, const Kind& kind, const ObjectPtr& before, json::value body,
                                             const std::string& subresource) const {
  const json::value& old = before->json();
  std::string_view uid = get_string(body, "metadata.uid");
  if (!uid.empty() && uid != before->uid())
    return conflict(kind, before->name(),
                    "Precondition failed: UID in precondition: " + std::string(uid) + ", UID in object meta: " + before->uid());
  json::value wanted = body;
  if (subresource == "status" || subresource == "approval") {
    wanted = old;
    for (const char* written : {"status", "metadata.annotations"}) copy_member(wanted, body, written);
  } else if (subresource == "scale") {
    wanted = old;
    copy_member(wanted, body, "spec.replicas");
  } else if (has_status(kind)) {
    copy_member(wanted, old, "status");
  }
  for (const char* kept : {"metadata.uid", "metadata.creationTimestamp", "metadata.deletionTimestamp", "metadata.generation",
                           "metadata.deletionGracePeriodSeconds", "metadata.resourceVersion", "apiVersion", "kind"})
    copy_member(wanted, old, kept);
  if (has_generation(kind) && !same(coracle::find(old, "spec"), coracle::find(wanted, "spec")))
    make(wanted, "metadata.generation") = get_int(old, "metadata.generation") + 1;
  bool released = before->deleting() && get_array(wanted, "metadata.finalizers").empty() &&
                  get_int(wanted, "metadata.deletionGracePeriodSeconds") == 0;
  if (!released) return store.store(kind, std::move(wanted), before);
  store.drop(kind, before);
  return Object::make(kind, std::move(wanted));
}

Result<void> FakeClient::State::remove(Store& store, const Kind& kind, const Key& key, const DeleteOptions& options) const {
  ObjectPtr before = store.get(kind, key);
  if (!before) return not_found(kind, key.name);
  if (options.uid && *options.uid != before->uid())
    return conflict(kind, key.name,
                    "Precondition failed: UID in precondition: " + *options.uid + ", UID in object meta: " + before->uid());
  if (options.revision && *options.revision != before->revision())
    return conflict(kind, key.name, "Precondition failed: the resourceVersion differs");

  json::value body = before->json();
  int64_t grace = 0;
  std::string_view phase = get_string(body, "status.phase");
  if (kind == kPod && !get_string(body, "spec.nodeName").empty() && phase != "Succeeded" && phase != "Failed")
    grace = std::max<int64_t>(0, options.grace_period_seconds.value_or(get_int(body, "spec.terminationGracePeriodSeconds", 30)));
  if (options.propagation == "Foreground" || options.propagation == "Orphan") {
    if (!make(body, "metadata.finalizers").is_array()) make(body, "metadata.finalizers").emplace_array();
    make(body, "metadata.finalizers").get_array().emplace_back(options.propagation == "Orphan" ? "orphan" : "foregroundDeletion");
  }
  if (grace == 0 && get_array(body, "metadata.finalizers").empty()) return store.drop(kind, before), Result<void>();
  if (before->deleting() && get_int(body, "metadata.deletionGracePeriodSeconds") <= grace) return {};
  if (!before->deleting() && has_generation(kind)) make(body, "metadata.generation") = get_int(body, "metadata.generation") + 1;
  make(body, "metadata.deletionTimestamp") = format_time(clock.now() + std::chrono::seconds(grace));
  make(body, "metadata.deletionGracePeriodSeconds") = grace;
  TRY(store.store(kind, std::move(body), before));
  return {};
}

FakeClient::FakeClient(const Clock& clock) : state_(std::make_unique<State>(clock)) {}
FakeClient::~FakeClient() = default;

Result<ObjectPtr> FakeClient::get(const Kind& kind, const Key& key) {
  TRY(state_->enter("get " + kind.qualified_resource() + " " + key.text()));
  ObjectPtr object = find(kind, key);
  if (!object) return not_found(kind, key.name);
  return object;
}

Result<ObjectList> FakeClient::list(const Kind& kind, const ListOptions& options) {
  TRY(state_->enter("list " + kind.qualified_resource()));
  Filter filter = TRY(Filter::make(options.ns, options.label_selector, options.field_selector));
  const std::set<Key> only(options.only.begin(), options.only.end());
  return state_->store.with([&](State::Store& store) -> Result<ObjectList> {
    store.last_only = options.only;
    ObjectList list;
    list.revision = store.revision;
    for (const auto& [key, object] : store.objects[kind.qualified_resource()]) {
      if (!filter.matches(object) || (!options.continue_token.empty() && key.text() <= options.continue_token)) continue;
      if (!only.empty() && !only.contains(key)) continue;
      if (options.limit > 0 && int64_t(list.items.size()) == options.limit) {
        list.continue_token = list.items.back()->key().text();  // no snapshot: later pages show the latest state
        break;
      }
      list.items.push_back(object);
    }
    return list;
  });
}

Result<ObjectPtr> FakeClient::create(const Kind& kind, const json::value& body) {
  Key key{std::string(get_string(body, "metadata.namespace")), std::string(get_string(body, "metadata.name"))};
  TRY(state_->enter("create " + kind.qualified_resource() + " " + key.text()));
  if (!get_string(body, "metadata.resourceVersion").empty())
    return bad_request("resourceVersion should not be set on objects to be created");
  return state_->store.with([&](State::Store& store) -> Result<ObjectPtr> {
    if (!key.name.empty() && store.get(kind, key)) return already_exists(kind, key.name);
    return store.store(kind, state_->finished_create(store, kind, body), nullptr);
  });
}

Result<ObjectPtr> FakeClient::update(const Kind& kind, const json::value& body, const UpdateOptions& options) {
  Key key{std::string(get_string(body, "metadata.namespace")), std::string(get_string(body, "metadata.name"))};
  std::string resource = kind.qualified_resource() + (options.subresource.empty() ? "" : "/" + options.subresource);
  TRY(state_->enter("update " + resource + " " + key.text()));
  return state_->store.with([&](State::Store& store) -> Result<ObjectPtr> {
    ObjectPtr before = store.get(kind, key);
    if (!before) return not_found(kind, key.name);
    std::string_view revision = get_string(body, "metadata.resourceVersion");
    if (!revision.empty() && revision != std::to_string(before->revision())) return stale_conflict(kind, key.name);
    return state_->replace(store, kind, before, body, options.subresource);
  });
}

Result<ObjectPtr> FakeClient::patch(const Kind& kind, const Key& key, PatchType type, const json::value& patch,
                                    const UpdateOptions& options) {
  std::string resource = kind.qualified_resource() + (options.subresource.empty() ? "" : "/" + options.subresource);
  const std::string record = "patch " + resource + " " + key.text();
  TRY(state_->enter(record));
  return state_->store.with([&](State::Store& store) -> Result<ObjectPtr> {
    ObjectPtr before = store.get(kind, key);
    if (!before && type == PatchType::apply) return store.store(kind, state_->finished_create(store, kind, patch), nullptr);
    if (!before) return not_found(kind, key.name);
    json::value body = before->json();
    if (type == PatchType::json) {
      TRY(apply_json_patch(body, patch));
    } else {
      apply_merge_patch(body, patch);  // strategic merge and apply need the schema; here lists are replaced
    }
    if (get_string(body, "metadata.resourceVersion") != std::to_string(before->revision())) return stale_conflict(kind, key.name);
    if (store.lost_patch.empty() || !record.starts_with(store.lost_patch))
      return state_->replace(store, kind, before, std::move(body), options.subresource);
    store.lost_patch.clear();
    store.lose = 1;
    TRY(state_->replace(store, kind, before, std::move(body), options.subresource));
    return Error(Code::timeout, "the answer was lost");
  });
}

Result<void> FakeClient::remove(const Kind& kind, const Key& key, const DeleteOptions& options) {
  TRY(state_->enter("remove " + kind.qualified_resource() + " " + key.text()));
  return state_->store.with([&](State::Store& store) { return state_->remove(store, kind, key, options); });
}

namespace {

json::value scale_of(const Object& workload) {
  auto selector = LabelSelector::from_json(find(workload.json(), "spec.selector"));
  json::object status{{"replicas", get_int(workload.json(), "status.replicas")}};
  if (selector) status["selector"] = selector->text();
  return json::object{{"apiVersion", "autoscaling/v1"},
                      {"kind", "Scale"},
                      {"metadata", json::object{{"name", workload.name()},
                                                {"namespace", workload.ns()},
                                                {"uid", workload.uid()},
                                                {"resourceVersion", std::to_string(workload.revision())}}},
                      {"spec", json::object{{"replicas", get_int(workload.json(), "spec.replicas")}}},
                      {"status", std::move(status)}};
}

}  // namespace

Result<json::value> FakeClient::read(const Kind& kind, const Key& key, std::string_view subresource,
                                     const ReadParameters& parameters) {
  std::string asked = kind.qualified_resource() + " " + key.text();
  if (!subresource.empty()) asked.append("/").append(subresource);
  for (const auto& [name, value] : parameters) asked += " " + name + "=" + value;
  TRY(state_->enter("read " + asked));
  return state_->store.with([&](State::Store& store) -> Result<json::value> {
    if (auto answer = store.reads.find(asked); answer != store.reads.end()) return answer->second;
    ObjectPtr object = store.get(kind, key);
    if (object && subresource == "scale") return scale_of(*object);
    if (object && subresource == "status") return object->json();
    if (subresource == "scale") return not_found(kind, key.name);
    return Error(Code::not_found, "the server could not find the requested resource").with(ErrorDetails{});
  });
}

void FakeClient::answer_read(const std::string& asked, std::string_view json_text) {
  state_->store.with([&](State::Store& store) { store.reads[asked] = MUST(parse_json(json_text)); });
}

Result<json::value> FakeClient::create_subresource(const Kind& kind, const Key& key, std::string_view subresource,
                                                   const json::value& body) {
  TRY(state_->enter("create_subresource " + kind.qualified_resource() + "/" + std::string(subresource) + " " + key.text()));
  return state_->store.with([&](State::Store& store) -> Result<json::value> {
    ObjectPtr before = store.get(kind, key);
    if (!before) return not_found(kind, key.name);
    if (kind == kPod && subresource == "eviction") {
      TRY(state_->remove(store, kind, key, {}));
      return success_status();
    }
    if (!(kind == kPod) || subresource != "binding")
      return not_found(kind, std::string(key.name) + "/" + std::string(subresource));
    json::value pod = before->json();
    if (!get_string(pod, "spec.nodeName").empty()) return conflict(kind, key.name, "pod is already assigned to a node");
    if (before->deleting()) return conflict(kind, key.name, "pod is being deleted, cannot be assigned to a host");
    make(pod, "spec.nodeName") = get_string(body, "target.name");
    make(pod, "metadata.generation") = get_int(pod, "metadata.generation") + 1;
    json::value& conditions = make(pod, "status.conditions");
    if (!conditions.is_array()) conditions.emplace_array();
    conditions.get_array().push_back({{"type", "PodScheduled"}, {"status", "True"}, {"lastTransitionTime", state_->now()}});
    TRY(store.store(kind, std::move(pod), before));
    return success_status();
  });
}

namespace {

class FakeWatch : public Watch {
 public:
  explicit FakeWatch(std::function<void()> leave, std::unique_ptr<Delivery> delivery)
      : leave_(std::move(leave)), delivery_(std::move(delivery)) {}
  ~FakeWatch() override { leave_(); }

 private:
  std::function<void()> leave_;
  std::unique_ptr<Delivery> delivery_;
};

}  // namespace

Result<std::unique_ptr<Watch>> FakeClient::watch(const Kind& kind, const WatchOptions& options, WatchSink& sink) {
  TRY(state_->enter("watch " + kind.qualified_resource()));
  Filter filter = TRY(Filter::make(options.ns, options.label_selector, options.field_selector));
  auto delivery = std::make_unique<Delivery>(kind, filter, sink, state_->pending);
  TRY(state_->store.with([&](State::Store& store) -> Result<void> {
    if (options.after == 0) {
      for (const auto& [key, object] : store.objects[kind.qualified_resource()])
        if (filter.matches(object)) delivery->push({EventType::added, object, object->revision()});
      delivery->push({EventType::synced, nullptr, store.revision});
    } else if (options.after < store.forgotten) {
      return expired("too old resource version: " + std::to_string(options.after) + " (" + std::to_string(store.forgotten) + ")");
    } else {
      for (const Change& change : store.past) {
        if (change.revision <= options.after || !(*change.kind == kind)) continue;
        if (auto event = filter.seen(change)) delivery->push(*event);
      }
    }
    store.watches.push_back(delivery.get());
    return {};
  }));
  auto leave = [state = state_.get(), mine = delivery.get()] {
    state->store.with([&](State::Store& store) { std::erase(store.watches, mine); });
  };
  return std::unique_ptr<Watch>(std::make_unique<FakeWatch>(std::move(leave), std::move(delivery)));
}

ObjectPtr FakeClient::put(const Kind& kind, std::string_view json_text) {
  json::value body = MUST(parse_json(json_text));
  if (kind.namespaced && get_string(body, "metadata.namespace").empty()) make(body, "metadata.namespace") = "default";
  Key key{std::string(get_string(body, "metadata.namespace")), std::string(get_string(body, "metadata.name"))};
  return state_->store.with([&](State::Store& store) {
    ObjectPtr before = store.get(kind, key);
    std::string uid(get_string(body, "metadata.uid"));
    json::value finished = state_->finished_create(store, kind, body);
    for (const char* given : {"metadata.uid", "metadata.creationTimestamp", "metadata.generation", "metadata.deletionTimestamp"})
      if (const json::value* value = coracle::find(body, given)) make(finished, given) = *value;
    if (before && uid.empty()) make(finished, "metadata.uid") = before->uid();
    return MUST(store.store(kind, std::move(finished), before));
  });
}

void FakeClient::set_status(const Kind& kind, const Key& key, std::string_view text) {
  json::value status = MUST(parse_json(text));
  state_->store.with([&](State::Store& store) {
    ObjectPtr before = store.get(kind, key);
    if (!before) bug("FakeClient::set_status", "no such object", std::source_location::current());
    json::value body = before->json();
    make(body, "status") = std::move(status);
    (void)MUST(store.store(kind, std::move(body), before));
  });
}

void FakeClient::erase(const Kind& kind, const Key& key) {
  state_->store.with([&](State::Store& store) {
    if (ObjectPtr before = store.get(kind, key)) store.drop(kind, before);
  });
}

ObjectPtr FakeClient::find(const Kind& kind, const Key& key) const {
  return state_->store.with([&](State::Store& store) { return store.get(kind, key); });
}

std::vector<ObjectPtr> FakeClient::all(const Kind& kind, std::string_view ns) const {
  return state_->store.with([&](State::Store& store) {
    std::vector<ObjectPtr> objects;
    for (const auto& [key, object] : store.objects[kind.qualified_resource()])
      if (ns.empty() || key.ns == ns) objects.push_back(object);
    return objects;
  });
}

void FakeClient::fail(int nth, Error error, std::string which) {
  state_->store.with([&](State::Store& store) { store.faults.push_back({nth, std::move(error), std::move(which)}); });
}

void FakeClient::lose_event(int nth) {
  state_->store.with([&](State::Store& store) { store.lose = nth; });
}

void FakeClient::lose_patch(std::string which) {
  state_->store.with([&](State::Store& store) { store.lost_patch = std::move(which); });
}

void FakeClient::end_watches(Error why) {
  state_->store.with([&](State::Store& store) {
    for (Delivery* watch : store.watches) watch->end(why);
    store.watches.clear();
  });
}

void FakeClient::forget_past() {
  state_->store.with([](State::Store& store) {
    store.forgotten = store.revision;
    store.past.clear();
  });
}

void FakeClient::settle() const { state_->pending->wait(); }

std::vector<std::string> FakeClient::calls() const {
  return state_->store.with([](State::Store& store) { return store.calls; });
}
std::vector<Key> FakeClient::last_only() const {
  return state_->store.with([](const State::Store& store) { return store.last_only; });
}

void FakeClient::clear_calls() {
  state_->store.with([](State::Store& store) { store.calls.clear(); });
}
Revision FakeClient::revision() const {
  return state_->store.with([](State::Store& store) { return store.revision; });
}

}  // namespace coracle
