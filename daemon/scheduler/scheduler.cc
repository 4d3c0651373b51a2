// SPDX-License-Identifier: Apache-2.0
// The loop around decide(). See scheduler.h.
#include "daemon/scheduler/scheduler.h"

#include <thread>

#include "daemon/scheduler/decide.h"
#include "daemon/scheduler/queue.h"
#include "runtime/base/guarded.h"
#include "runtime/base/log.h"

namespace coracle::scheduler {
namespace {

struct Board {
  Cluster cluster;
  SchedulingQueue queue;
};

bool finished(view::Pod pod) {
  std::string_view phase = pod.status().phase();
  return phase == "Succeeded" || phase == "Failed";
}

bool is_ours(const Object& object) {
  view::Pod pod(object);
  std::string_view scheduler = pod.spec().scheduler_name();
  bool for_us = scheduler.empty() || scheduler == kSchedulerName;
  return pod.spec().node_name().empty() && for_us && !object.deleting() && !finished(pod);
}

bool is_gated(const Object& pod) { return !view::Pod(pod).spec().scheduling_gates().empty(); }

// What a decision rests on; a status write alone is no reason to decide again.
bool asks_the_same(const Object& a, const Object& b) {
  return view::Pod(a).spec().raw() == view::Pod(b).spec().raw() && a.labels() == b.labels();
}

bool offers_the_same(const Object& a, const Object& b) {
  view::Node before(a), after(b);
  return before.spec().raw() == after.spec().raw() && a.labels() == b.labels() &&
         before.status().allocatable() == after.status().allocatable();
}

SchedulingQueue::Waiting waiting(const Object& object) {
  view::Pod pod(object);
  bool heeds_pods = pod.spec().affinity().has_pod_affinity() || pod.spec().affinity().has_pod_anti_affinity() ||
                    !pod.spec().topology_spread_constraints().empty();
  return {pod.spec().priority(), std::string(pod.metadata().creation_timestamp()), heeds_pods};
}

const json::value* scheduled_condition(const Object& pod) {
  for (const json::value& condition : get_array(pod.json(), "status.conditions"))
    if (get_string(condition, "type") == "PodScheduled") return &condition;
  return nullptr;
}

}  // namespace

struct Scheduler::State {
  State(Client& client, Informers& informers, EventSink& events, const Clock& clock)
      : client(client),
        clock(clock),
        informers(informers),
        pods(informers.of(kPod)),
        nodes(informers.of(kNode)),
        namespaces(informers.of(kNamespace)),
        recorder(events, std::string(kSchedulerName)) {}

  Client& client;
  const Clock& clock;
  Informers& informers;
  Informer& pods;
  Informer& nodes;
  Informer& namespaces;
  EventRecorder recorder;
  Guarded<Board> board;
  std::jthread thread;

  void subscribe() {
    pods.on_change([this](const Informer::Change& change) { on_pod(change); });
    nodes.on_change([this](const Informer::Change& change) { on_node(change); });
  }

  void on_pod(const Informer::Change& change) {
    SteadyTime now = clock.steady();
    change_board([&](Board& b) {
      const Object& pod = change.any();
      bool placed = change.after && !view::Pod(pod).spec().node_name().empty() && !finished(view::Pod(pod));
      if (placed) {
        bool known = b.cluster.holds(pod.uid()) && change.before && asks_the_same(*change.before, pod);
        b.cluster.put_pod(change.after, std::string(view::Pod(pod).spec().node_name()));
        b.queue.remove(pod.key());
        if (!known) b.queue.wake(now, true);  // company for those who asked for it
      } else if (!change.after || !is_ours(pod)) {
        b.queue.remove(pod.key());
        if (b.cluster.remove_pod(pod.uid())) b.queue.wake(now);  // room for somebody
      } else if (is_gated(pod)) {
        b.queue.remove(pod.key());
      } else if (!change.before || !asks_the_same(*change.before, pod)) {
        b.queue.add(pod.key(), waiting(pod));
      }
    });
  }

  void on_node(const Informer::Change& change) {
    SteadyTime now = clock.steady();
    change_board([&](Board& b) {
      if (!change.after) return b.cluster.remove_node(change.before->name());
      b.cluster.put_node(change.after);
      if (!change.before || !offers_the_same(*change.before, *change.after)) b.queue.wake(now);
    });
  }

  // Wakes the scheduler's thread for what it could act on, and for nothing else.
  template <typename F>
  void change_board(F&& change) {
    bool matters = board.with([&](Board& b) {
      auto due = b.queue.next_due();
      change(b);
      return b.queue.has_active() || b.queue.next_due() != due;
    });
    if (matters) board.notify();
  }

  void run(std::stop_token stop) {
    if (!informers.wait_synced(stop)) return;
    while (!stop.stop_requested()) {
      if (turn()) continue;
      auto due = board.with([](Board& b) { return b.queue.next_due(); });
      auto ready = [&](const Board& b) {
        return b.queue.has_active() || (b.queue.next_due() && b.queue.next_due() != due);
      };
      auto nothing = [](Board&) {};
      if (due)
        board.wait_until(stop, std::chrono::steady_clock::now() + (*due - clock.steady()), ready, nothing);
      else
        board.wait(stop, ready, nothing);
    }
  }

  bool turn() {
    auto key = board.with([&](Board& b) { return b.queue.pop(clock.steady()); });
    if (!key) return false;
    ObjectPtr pod = pods.get(*key);
    if (!pod || !is_ours(*pod)) {
      board.with([&](Board& b) { b.queue.remove(*key); });
      return true;
    }
    // The decision is made and noted in one go: the next pod must already see it.
    Decision decision = board.with([&](Board& b) {
      Decision decision = decide(*pod, b.cluster, [this](std::string_view ns) { return labels_of(ns); });
      if (!decision.node.empty())
        b.cluster.put_pod(pod, decision.node);
      else
        b.queue.park(*key, clock.steady());
      return decision;
    });
    if (decision.node.empty())
      explain(*pod, decision.message);
    else
      bind(*pod, decision.node);
    return true;
  }

  json::object labels_of(std::string_view ns) const {
    ObjectPtr object = namespaces.get({"", std::string(ns)});
    return object ? object->labels() : json::object{};
  }

  void bind(const Object& pod, const std::string& node) {
    json::value binding = {{"apiVersion", "v1"},
                           {"kind", "Binding"},
                           {"metadata", {{"name", pod.name()}, {"namespace", pod.ns()}, {"uid", pod.uid()}}},
                           {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}}}};
    auto bound = client.act(kPod, pod.key(), "binding", binding);
    if (bound) {
      recorder.normal(pod, "Scheduled", "Successfully assigned " + pod.key().text() + " to " + node);
      return;
    }
    bool gone = bound.error().code() == Code::not_found || bound.error().code() == Code::conflict;
    board.with([&](Board& b) {
      b.cluster.remove_pod(pod.uid());
      b.queue.fail(pod.key(), clock.steady());  // a pod that is gone is taken out when its event comes
      b.queue.wake(clock.steady());
    });
    if (gone) return;
    log_warning("scheduler", "bind: " + bound.error().text(), {{"pod", pod.key().text()}, {"node", node}});
    recorder.warning(pod, "FailedScheduling", "binding rejected: " + bound.error().text());
  }

  void explain(const Object& pod, const std::string& message) {
    recorder.warning(pod, "FailedScheduling", message);
    const json::value* present = scheduled_condition(pod);
    if (present && get_string(*present, "reason") == "Unschedulable" && get_string(*present, "message") == message)
      return;
    bool was_false = present && get_string(*present, "status") == "False" && find(*present, "lastTransitionTime");
    json::value since = was_false ? *find(*present, "lastTransitionTime") : json::value(format_time(clock.now()));
    json::value patch = {{"status",
                          {{"conditions", json::array{{{"type", "PodScheduled"},
                                                       {"status", "False"},
                                                       {"reason", "Unschedulable"},
                                                       {"message", message},
                                                       {"lastTransitionTime", std::move(since)}}}}}}};
    auto written = client.patch(kPod, pod.key(), PatchType::strategic, patch, {.subresource = "status"});
    if (!written && written.error().code() != Code::not_found)
      log_warning("scheduler", "write condition: " + written.error().text(), {{"pod", pod.key().text()}});
  }
};

Scheduler::Scheduler(Client& client, Informers& informers, EventSink& events, const Clock& clock)
    : state_(std::make_unique<State>(client, informers, events, clock)) {
  state_->subscribe();
}

Scheduler::~Scheduler() {
  state_->thread = {};       // asks it to stop, and waits
  state_->informers.stop();  // their handlers name us
}

void Scheduler::start() {
  state_->thread = std::jthread([state = state_.get()](std::stop_token stop) { state->run(stop); });
}

bool Scheduler::turn() { return state_->turn(); }

}  // namespace coracle::scheduler
