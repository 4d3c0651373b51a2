// SPDX-License-Identifier: Apache-2.0
// UnreliableClient: the daemon's Client in a scenario. It may refuse a call, carry it out and lose the answer, or let the daemon
// die in the middle of it; and what watches have to tell waits here, per watch, until the scenario lets it through. Within one
// watch nothing is reordered, between watches everything is.
//   reconcile ──call──▶ [dies? refused?] ─▶ cluster ─▶ [dies? answer lost?] ──▶ reconcile
//   cluster.tell() ─▶ each watch's queue ──deliver()──▶ informer
// A daemon that has died goes on to the end of its pass, but nothing that it does from there on reaches anybody.
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

struct Faults {            // how probable each is, of a call
  double refused = 0;      // it fails, and nothing has happened
  double conflicts = 0;    // the same, of updates and patches, as if somebody had been faster
  double lost_answer = 0;  // it has happened, and reports a timeout
  double dies = 0;         // the daemon does, before or after it has happened
  double meanwhile = 0;    // somebody else acts first
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
  void hear(const Change& change);  // puts it into the queues of those that watch the kind
  bool deliver();                   // one event of one watch; false when none waits
  bool deliver_all();
  void drop_watch();  // one of them ends; what it has not told yet is lost
  void drop_all();
  // Everything of this kind up to that revision is in the daemon's cache; in a pass, was so when the pass began.
  Revision known(const Kind& kind) const;
  void begin_turn();
  void end_turn() { in_turn_ = false; }

  // The daemon made or bound this pod, but was not told so, and has not seen it yet.
  bool unaware_of(const Object& pod) const;
  // Whether the daemon got the answer to its update that made this revision.
  bool heard_of(Revision update) const { return !unanswered_.contains(update); }
  bool unaware_of_removal(const Object& pod) const;                            // the same, of one that it removed
  bool could_not_tell(const Key& pod) const { return untold_.contains(pod); }  // what it last had to say in the pod's status
  uint64_t writes() const { return writes_; }                                  // calls that may write, and succeeded
  uint64_t explanations() const { return explanations_; }                      // of them, why a pod waits
  uint64_t judgements() const { return judgements_; }                          // what an autoscaler says of itself

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
  std::vector<Line*> lines_;                                                        // in the order in which they were opened
  using Known = std::map<std::pair<std::string_view, std::string_view>, Revision>;  // by group and resource
  static Known::key_type name_of(const Kind& kind) { return {kind.group, kind.resource}; }
  Known known_, at_turn_;
  bool in_turn_ = false;
  std::map<std::string, Revision, std::less<>> lost_, lost_removals_;  // by uid: when its answer was lost
  std::set<Revision> unanswered_;
  std::set<Key> untold_;
  Revision heard_ = 0;
  bool dead_ = false, aside_ = false;
  uint64_t writes_ = 0, explanations_ = 0, judgements_ = 0;
};

}  // namespace coracle::simulation
