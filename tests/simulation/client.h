// SPDX-License-Identifier: Apache-2.0
// UnreliableClient: the daemon's Client in a scenario. It may refuse a call, execute it and lose the response, or let the daemon
// die during it. The events of each watch wait here until the scenario delivers them. Events of one watch stay in order; the
// order between watches is arbitrary.
//   reconcile ──call──▶ [dies? refused?] ─▶ cluster ─▶ [dies? answer lost?] ──▶ reconcile
//   cluster.tell() ─▶ each watch's queue ──deliver()──▶ informer
// A daemon that has died continues to the end of its pass, but its later calls have no effect.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/simulation/cluster.h"
#include "tests/simulation/dice.h"
#include "tests/simulation/trace.h"

namespace coracle::simulation {

struct Faults {            // the probability of each, per call
  double refused = 0;      // it fails and has no effect
  double conflicts = 0;    // the same for updates and patches, as if another client had been faster
  double lost_answer = 0;  // it takes effect and reports a timeout
  double dies = 0;         // the daemon dies, before or after the call takes effect
  double meanwhile = 0;    // another client acts first
};

class UnreliableClient : public Client {
 public:
  UnreliableClient(Cluster& cluster, Dice& dice, const Faults& faults, const Trace& trace);
  ~UnreliableClient() override;

  Result<ObjectPtr> get(const Kind& kind, const Key& key) override;
  Result<json::value> read(const Kind& kind, const Key& key, std::string_view subresource,
                           const ReadParameters& parameters = {}) override;
  Result<ObjectList> list(const Kind& kind, const ListOptions& options) override;
  Result<ObjectPtr> create(const Kind& kind, const json::value& body) override;
  Result<ObjectPtr> update(const Kind& kind, const json::value& body, const UpdateOptions& options = {}) override;
  Result<ObjectPtr> patch(const Kind& kind, const Key& key, PatchType type, const json::value& patch,
                          const UpdateOptions& options = {}) override;
  Result<void> remove(const Kind& kind, const Key& key, const DeleteOptions& options = {}) override;
  Result<json::value> create_subresource(const Kind& kind, const Key& key, std::string_view subresource,
                                         const json::value& body) override;
  Result<std::unique_ptr<Watch>> watch(const Kind& kind, const WatchOptions& options, WatchSink& sink) override;

  void between_calls(std::function<void()> meanwhile) { meanwhile_ = std::move(meanwhile); }
  bool dead() const { return dead_; }

  // ---- watches ----
  void hear(const Change& change);  // appends it to the queues of the watches of this kind
  bool deliver();                   // delivers one event of one watch; false if none waits
  bool deliver_all();
  void drop_watch();  // ends one watch; its undelivered events are lost
  void drop_all();
  // The revision up to which the daemon's cache has all changes of this kind; during a pass, as of the pass' beginning.
  Revision known(const Kind& kind) const;
  void begin_turn();
  void end_turn() { in_turn_ = false; }

  // The daemon created or bound this pod without getting the response, and has not seen the change yet.
  bool unaware_of(const Object& pod) const;
  // Whether the daemon got the response to its update that created this revision.
  bool heard_of(Revision update) const { return !unanswered_.contains(update); }
  bool unaware_of_removal(const Object& pod) const;                            // the same for a pod that it deleted
  bool could_not_tell(const Key& pod) const { return untold_.contains(pod); }  // its last update of the pod's status failed
  uint64_t writes() const { return writes_; }                                  // successful calls that may write
  uint64_t explanations() const { return explanations_; }                      // those among them that explain why a pod waits
  uint64_t judgements() const { return judgements_; }                          // those that only write an autoscaler's conditions

 private:
  struct Line;
  class Handle;
  enum class Fate { goes_on, refused, conflicts, lost, dies_before, dies_after };
  struct Call {
    bool writes = false;
    bool checks_revision = false;  // may conflict
  };
  template <typename Describe, typename CarryOut>
  auto call(Call what, const Describe& describe, const CarryOut& carry_out) -> decltype(carry_out());
  Fate fate(Call what);

  Cluster& cluster_;
  ToldClient told_;
  Dice& dice_;
  const Faults& faults_;
  const Trace& trace_;
  std::function<void()> meanwhile_;
  std::vector<Line*> lines_;                                                        // in the order of opening
  using Known = std::map<std::pair<std::string_view, std::string_view>, Revision>;  // by group and resource
  static Known::key_type name_of(const Kind& kind) { return {kind.group, kind.resource}; }
  Known known_, at_turn_;
  bool in_turn_ = false;
  std::map<std::string, Revision, std::less<>> lost_, lost_removals_;  // by uid: the revision whose response was lost
  std::set<Revision> unanswered_;
  std::set<Key> untold_;
  Revision heard_ = 0;
  bool dead_ = false, aside_ = false;
  uint64_t writes_ = 0, explanations_ = 0, judgements_ = 0;
};

}  // namespace coracle::simulation
