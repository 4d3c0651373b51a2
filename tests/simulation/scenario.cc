// SPDX-License-Identifier: Apache-2.0
// See scenario.h. One thread: in each step, the dice choose one part, which makes one step.
//   storm:  watches deliver · controllers run once · scheduler runs once · nodes handle pods · the user acts · time passes ·
//           watches break
//   calm:   all of these, without faults, until nothing moves; then the rules for rest; then all watches start anew, and nothing
//           may move
#include "tests/simulation/scenario.h"

#include <memory>

#include "daemon/controller/manager.h"
#include "daemon/informer/informers.h"
#include "daemon/scheduler/scheduler.h"
#include "daemon/volume/local/provisioner.h"
#include "tests/catalogs.h"
#include "tests/simulation/client.h"
#include "tests/simulation/cluster_state.h"
#include "tests/simulation/nodes.h"
#include "tests/simulation/user.h"

namespace coracle::simulation {
namespace {

using std::chrono::seconds;

constexpr int64_t kNodesMax = 5;
constexpr int kPassesMax = 20'000;     // limit for one calm: beyond it, the cluster never comes to rest
constexpr seconds kRest{15 * 60};      // no write in this time means rest; the controllers' deadlines are shorter
constexpr seconds kLateMost{20};       // the longest delay of a watch; controllers wait 30 seconds for their own writes
constexpr seconds kCalmMax{4 * 3600};  // back-offs and deadlines are shorter than this

class TurnedClock : public Clock {
 public:
  WallTime now() const override { return wall_; }
  SteadyTime steady() const override { return steady_; }
  void advance(std::chrono::nanoseconds span) { wall_ += std::chrono::duration_cast<WallTime::duration>(span), steady_ += span; }
  void jump(seconds span) { wall_ += span; }  // as when the clock of a machine without a battery is set

 private:
  WallTime wall_{seconds(1'700'000'000)};
  SteadyTime steady_{};
};

class ToldEvents : public EventSink {
 public:
  explicit ToldEvents(const Trace& trace) : trace_(trace) {}
  void post(EventRecord record) override {
    count_++;
    if (trace_.on())
      trace_.say("event: " + record.about.kind + " " + record.about.ns + "/" + record.about.name + " " + record.reason + ": " +
                 record.message);
  }
  uint64_t count() const { return count_; }

 private:
  const Trace& trace_;
  uint64_t count_ = 0;
};

// The daemon's state in memory.
struct Daemon {
  Daemon(Cluster& cluster, Disk& disk, const Clock& clock, Dice& dice, const Faults& faults, const Trace& trace)
      : client(cluster, dice, faults, trace),
        events(trace),
        informers(client, Reopening::by_hand),
        manager(client, informers, events, built_in_catalogs(),
                {.root_ca = "CERT", .local_node = "node-0", .terminated_pods_max = 20}, clock),
        scheduler(client, informers, events, scheduler::default_configuration(), clock),
        volume_queue(BackoffPolicy{}, clock) {
    for (int i = 0; i < kNodesMax; ++i) {
      std::string node = "node-" + std::to_string(i);
      provisioners.push_back({node, make_provisioner(node, disk, clock)});
    }
    auto hear = [this](const Kind& kind, auto tell) {
      informers.of(kind).on_change([this, tell](const Informer::Change& change) {
        for (const auto& each : provisioners) ((*each.provisioner).*tell)(change);
      });
    };
    hear(kPersistentVolumeClaim, &volume::Provisioner::on_claim);
    hear(kPersistentVolume, &volume::Provisioner::on_volume);
    hear(kStorageClass, &volume::Provisioner::on_class);
    MUST(informers.start());
  }
  std::unique_ptr<volume::Provisioner> make_provisioner(const std::string& node, Disk& disk, const Clock& clock) {
    return std::make_unique<volume::Provisioner>(
        node, volume::ProvisionerSeams{.client = client,
                                       .claims = informers.of(kPersistentVolumeClaim),
                                       .volumes = informers.of(kPersistentVolume),
                                       .classes = informers.of(kStorageClass),
                                       .events = EventRecorder(events, "kubelet", node),
                                       .directories = disk,
                                       .enqueue = [this](Key key) { volume_queue.add(std::move(key)); },
                                       .delete_in_background = [](const auto& task, const auto&) { task({}); },
                                       .copy_in_background = [](const auto& task, const auto&) { task({}); },
                                       .answers = [](const std::string&) { return true; },
                                       .in_use = [](const Key&) { return false; },
                                       .in_use_yet = [](const Key&) { return false; },
                                       .clock = clock});
  }
  bool turn_manager() {
    return run_once([this] { return manager.run_once(); });
  }
  bool turn_scheduler() {
    return run_once([this] { return scheduler.run_once(); });
  }
  bool turn_provisioners(const Nodes& nodes) {
    return run_once([&] {
      start_provisioners(nodes);
      auto lease = volume_queue.try_take();
      if (!lease) return false;
      work_once(volume_queue, lease->key(), "volume", [this](const Key& key) -> Result<coracle::Outcome> {
        coracle::Outcome outcome;
        for (const auto& each : provisioners) {
          if (!each.runs) continue;
          coracle::Outcome one = TRY(each.provisioner->reconcile(key));
          if (one.again) outcome = one;
        }
        return outcome;
      });
      return true;
    });
  }
  // A provisioner works while its node runs. A new one gets all objects first, as a starting node agent does.
  void start_provisioners(const Nodes& nodes) {
    for (ProvisionerOfNode& each : provisioners) {
      bool begins = !std::exchange(each.runs, nodes.runs(each.node)) && each.runs;
      if (!begins) continue;
      for (const ObjectPtr& claim : informers.of(kPersistentVolumeClaim).list()) each.provisioner->on_claim({nullptr, claim});
      for (const ObjectPtr& volume : informers.of(kPersistentVolume).list()) each.provisioner->on_volume({nullptr, volume});
    }
  }
  template <typename Pass>
  bool run_once(const Pass& take) {
    if (!informers.synced()) return false;  // nothing starts before
    client.begin_turn();
    bool did = take();
    client.end_turn();
    return did;
  }

  UnreliableClient client;
  ToldEvents events;
  Informers informers;
  controller::Manager manager;
  scheduler::Scheduler scheduler;
  WorkQueue volume_queue;
  struct ProvisionerOfNode {
    std::string node;
    std::unique_ptr<volume::Provisioner> provisioner;
    bool runs = false;
  };
  std::vector<ProvisionerOfNode> provisioners;
};

class Scenario {
 public:
  Scenario(uint64_t seed, std::FILE* trace)
      : entropy_(seed),
        dice_(seed),
        trace_(trace),
        cluster_(clock_),
        cluster_state_(cluster_, clock_),
        nodes_(cluster_state_, cluster_, clock_, dice_, trace_),
        user_(cluster_state_, cluster_, dice_, trace_, Dice(~seed).chance(0.25)) {
    cluster_.listen([this](Actor actor, const Change& change) { hear(actor, change); });
    cluster_.set_measure(
        [this](const std::string& ns, const std::string& name, const auto&) { return nodes_.measure(ns, name); });
    choose();
    cluster_state_.add(replicas_rule());
    cluster_state_.add(rollout_rule());
    cluster_state_.add(stateful_sets_rule());
    cluster_state_.add(daemon_sets_rule());
    cluster_state_.add(jobs_rule());
    cluster_state_.add(autoscalers_rule());
    cluster_state_.add(cron_jobs_rule());
    cluster_state_.add(nodes_rule());
    cluster_state_.add(placement_rule());
    cluster_state_.add(preemption_rule());
    cluster_state_.add(budget_rule());
    cluster_state_.add(service_rule());
    cluster_state_.add(volumes_rule(disk_));
    cluster_state_.add(ownership_rule());
    disk_.reached = [this] { return !daemon_->client.dead(); };
    disk_.when_set_aside = [this](const std::string& path) { set_aside(path); };
  }

  Outcome run() {
    for (int64_t i = 0, all = dice_.between(1, kNodesMax); i < all; ++i) nodes_.join("node-" + std::to_string(i));
    user_.begin();
    begin_daemon();
    for (int64_t i = 0, all = dice_.between(1, 3); i < all && well(); ++i) {
      storm();
      if (well()) calm();
    }
    daemon_.reset();
    outcome_.violations = cluster_state_.violations();
    return std::move(outcome_);
  }

 private:
  // The kinds of faults and their frequency; each scenario has a few of them.
  void choose() {
    auto some = [&](double often, double most) { return dice_.chance(often) ? most * double(dice_.between(1, 100)) / 100 : 0.0; };
    storm_faults_ = {.refused = some(0.4, 0.3),
                     .conflicts = some(0.4, 0.3),
                     .lost_answer = some(0.3, 0.1),
                     .dies = some(0.4, 0.03),
                     .meanwhile = some(0.6, 0.5)};
    if (!user_.calm()) storm_life_ = {.slow = 0.5, .flaps = some(0.4, 0.3), .crashes = some(0.4, 0.2), .fails = some(0.5, 1)};
    drops_ = some(0.4, 0.02);
    idle_max_ = dice_.chance(0.5) ? seconds(3) : seconds(9);
    jumps_ = some(0.3, 0.02);
    if (!user_.calm()) trouble_ = some(0.3, 0.05);
    power_ = dice_.chance(0.5);
    disk_goes_ = some(0.3, 0.05);
    eager_ = dice_.between(1, 20);
    auto text = [](const char* what, double value) {
      return value > 0 ? std::string(" ") + what + " " + std::to_string(value).substr(0, 5) : "";
    };
    outcome_.about = user_.text() + ";" + text("refused", storm_faults_.refused) + text("conflicts", storm_faults_.conflicts) +
                     text("lost", storm_faults_.lost_answer) + text("dies", storm_faults_.dies) +
                     text("meanwhile", storm_faults_.meanwhile) + text("flaps", storm_life_.flaps) +
                     text("crashes", storm_life_.crashes) + text("drops", drops_) + text("jumps", jumps_) +
                     text("trouble", trouble_) + text("disk goes", disk_goes_);
    trace_.say("scenario: " + outcome_.about);
  }

  // Checks who would lose data: a claim that is bound to it, or a container that writes it.
  void set_aside(const std::string& path) {
    trace_.say("disk: sets aside " + path);
    if (nodes_.has_mounted(path)) cluster_state_.violated("volumes: " + path + " goes while a container has it");
    for (const ObjectPtr& volume : cluster_state_.all(kPersistentVolume)) {
      if (get_string(volume->json(), "spec.local.path") != path) continue;
      for (const ObjectPtr& claim : cluster_state_.all(kPersistentVolumeClaim))
        if (claim->uid() == get_string(volume->json(), "spec.claimRef.uid") &&
            get_string(claim->json(), "spec.volumeName") == volume->name())
          cluster_state_.violated("volumes: " + path + " goes while " + describe(*claim) + " has it");
    }
  }

  bool well() const { return cluster_state_.violations().empty(); }

  void hear(Actor actor, const Change& change) {
    outcome_.calls++;
    for (uint64_t part :
         {uint64_t(actor), uint64_t(change.revision), uint64_t(std::hash<std::string_view>()(change.any().text()))})
      outcome_.print = (outcome_.print ^ part) * 0x100000001b3;
    if (daemon_) daemon_->client.hear(change);
    cluster_state_.hear(actor, change);
  }

  // ---- the daemon's life cycle ----

  void begin_daemon() {
    daemon_.reset();
    cluster_state_.set_daemon(nullptr);
    daemon_ = std::make_unique<Daemon>(cluster_, disk_, clock_, dice_, faults_, trace_);
    daemon_->client.between_calls([this] { happen_outside(); });
    cluster_state_.set_daemon(&daemon_->client);
  }

  void bury_daemon() {
    if (!daemon_->client.dead()) return;
    outcome_.deaths++;
    daemon_.reset();
    cluster_state_.set_daemon(nullptr);
    if (power_ && dice_.chance(0.5)) {
      trace_.say("power: lost");
      cluster_.lose_power();
      cluster_state_.look_anew();
    }
    trace_.say("daemon: begins anew");
    begin_daemon();
  }

  // ---- storm ----

  void storm() {
    trace_.say("---- storm");
    faults_ = storm_faults_;
    for (int64_t i = 0, all = dice_.between(50, 600); i < all && well(); ++i) {
      outcome_.steps++;
      step();
      bury_daemon();
    }
  }

  void step() {
    if (dice_.chance(drops_)) daemon_->client.drop_watch();
    if (dice_.chance(jumps_)) {
      clock_.jump(seconds(dice_.between(10, 900)));
      daemon_->manager.clock_was_set();
    }
    if (dice_.chance(disk_goes_)) {
      disk_.away = !disk_.away;
      trace_.say(disk_.away ? "disk: goes away" : "disk: returns");
    }
    switch (dice_.between(0, 9)) {
      case 0:
      case 1:
      case 2:
        for (int64_t i = dice_.between(1, eager_); i > 0 && daemon_->client.deliver();) --i;
        break;
      case 3:
      case 4:
      case 5:
        for (int64_t i = dice_.between(1, eager_); i > 0 && !daemon_->client.dead() && daemon_->turn_manager();) --i;
        if (!daemon_->client.dead()) daemon_->turn_provisioners(nodes_);
        break;
      case 6:
        daemon_->informers.run_once();
        while (!daemon_->client.dead() && daemon_->turn_scheduler() && dice_.chance(0.8)) {
        }
        break;
      case 7: pass(std::chrono::milliseconds(dice_.between(1, std::chrono::milliseconds(idle_max_).count()))); break;
      default: happen_outside();
    }
  }

  // Events outside the daemon, which may happen during any call.
  void happen_outside() {
    switch (dice_.between(0, 9)) {
      case 0:
      case 1: user_.act(); break;
      case 2:
      case 3: daemon_->client.deliver(); break;
      default:
        if (dice_.chance(trouble_)) nodes_.trouble();
        for (int i = 0; i < 5; ++i) nodes_.step(storm_life_);
    }
  }

  void pass(std::chrono::nanoseconds span) {
    clock_.advance(span);
    nodes_.beat();
    if (clock_.steady() - level_ < kLateMost) return;
    level_ = clock_.steady();
    while (!daemon_->client.dead() && (daemon_->informers.run_once() || daemon_->client.deliver())) {
    }
  }

  // ---- calm ----

  void calm() {
    trace_.say("---- calm");
    faults_ = {};
    user_.relent();
    nodes_.relent();
    disk_.away = false;
    if (!come_to_rest(true)) return;
    cluster_state_.check_at_rest();
    if (!well()) return;
    trace_.say("---- told anew");
    uint64_t writes = daemon_->client.writes();
    daemon_->client.drop_all();
    if (!come_to_rest(false)) return;
    if (daemon_->client.writes() != writes)
      return cluster_state_.violated("quiet: something moved when everything was told anew");
    // A pod's condition contains the reasons at the time of the decision, so a new scheduler may write it once more; the next
    // decision is the same. New autoscalers take the current size for a recommendation, and report that until their window is
    // over.
    for (bool may_explain : {true, false}) {
      trace_.say("---- begun anew");
      begin_daemon();
      if (!come_to_rest(false)) return;
      const UnreliableClient& client = daemon_->client;
      if (client.writes() != client.judgements() + (may_explain ? client.explanations() : 0))
        return cluster_state_.violated("quiet: something moved when the daemon began anew");
      if (!may_explain) cluster_state_.check_at_rest();
    }
  }

  // Runs until nothing happens for kRest. Returns false if that is never reached.
  bool come_to_rest(bool from_storm) {
    seconds quiet{0}, all{0};
    for (seconds span{1}; quiet < kRest;) {
      if (!come_to_a_stop()) return false;
      if (all > kCalmMax)
        return cluster_state_.violated("rest: after " + std::to_string(all.count()) + " s there is still something to do"), false;
      Revision before = moved_;
      auto told = [&] { return daemon_->client.writes() - (from_storm ? 0 : daemon_->client.judgements()); };
      uint64_t writes = told();
      span = std::min(from_storm ? seconds(30) : seconds(120), span * 2);
      pass(span);
      all += span;
      if (!come_to_a_stop()) return false;
      bool moved = moved_ != before || told() != writes;
      if (moved && !from_storm) return true;  // the caller continues
      quiet = moved ? seconds(0) : quiet + span;
      if (moved) span = seconds(1);
    }
    return true;
  }

  // Runs until nothing can be done at the current time.
  bool come_to_a_stop() {
    for (int passes = 0; passes < kPassesMax; ++passes) {
      if (!well()) return false;
      bool busy = daemon_->informers.run_once();
      busy |= daemon_->client.deliver_all();
      busy |= daemon_->turn_manager();
      busy |= daemon_->turn_provisioners(nodes_);
      if (!busy) busy |= daemon_->turn_scheduler();
      if (!busy && nodes_.settle()) busy = true, moved_++;
      if (!busy) return true;
      bury_daemon();
    }
    cluster_state_.violated("rest: the daemon does not come to a stop");
    return false;
  }

  TurnedClock clock_;
  SeededEntropy entropy_;
  Dice dice_;
  const Trace trace_;
  Cluster cluster_;
  Disk disk_;
  ClusterState cluster_state_;
  Nodes nodes_;
  User user_;
  Faults storm_faults_, faults_;
  PodLife storm_life_;
  double drops_ = 0, jumps_ = 0, trouble_ = 0;
  seconds idle_max_{3};  // the longest pause; together with kLateMost shorter than the time that controllers wait for their own
                         // writes
  bool power_ = false;
  double disk_goes_ = 0;  // how often the volumes' disk goes away, or returns
  int64_t eager_ = 1;
  SteadyTime level_{};
  Revision moved_ = 0;
  std::unique_ptr<Daemon> daemon_;
  Outcome outcome_;
};

}  // namespace

Outcome run_scenario(uint64_t seed, std::FILE* trace) { return Scenario(seed, trace).run(); }

}  // namespace coracle::simulation
