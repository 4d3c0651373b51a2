// SPDX-License-Identifier: Apache-2.0
// Nodes: the node agents of a scenario, without containers. A bound pod starts after a while, becomes ready, may become unready,
// crash, or end; a terminating one ends after a while. A node's memory of its pods survives the daemon, as pause processes do: a
// status that the store has lost is written again.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "tests/simulation/cluster_state.h"
#include "tests/simulation/dice.h"
#include "tests/simulation/trace.h"

namespace coracle::simulation {

struct PodLife {       // probabilities for each step of a pod
  double slow = 0.5;   // nothing happens in this step
  double flaps = 0;    // a ready pod becomes unready
  double crashes = 0;  // its container exits, and restarts if allowed
  double fails = 0;    // a pod that ends by itself exits with a nonzero code
};

inline constexpr std::string_view kOutcome =
    "simulation/outcome";  // annotation: "runs" (the default), "ends", "breaks" (never becomes ready)

// A ConfigMap: "<namespace>.<app>" → "shared|each <milli cpu> <MiB>": the load of all its ready pods together, or of each one.
inline const Key kLoads{"default", "loads"};

class Nodes {
 public:
  Nodes(const ClusterState& cluster_state, Cluster& cluster, const Clock& clock, Dice& dice, const Trace& trace)
      : cluster_state_(cluster_state), client_(cluster, Actor::node), clock_(clock), dice_(dice), trace_(trace) {}

  void join(const std::string& name);  // creates its Node and Lease
  bool provision();                    // creates a volume for each claim without class and volume; false if there is none
  void beat();                         // all nodes except silent ones renew their leases when due
  // A node falls silent or reports again, or its Node is deleted or created again. Never this machine's own node, which lives and
  // dies with the daemon.
  void trouble();
  // Most silent nodes report again. The others are deleted or get the out-of-service taint, as operators do after checking that
  // nothing runs there. Most deleted nodes join again.
  void relent();
  // What the pods use that run: in a namespace ("": in all), or one. It follows the loads that the user gives (kLoads).
  bool has_mounted(const std::string& path) const;  // a running container may write into the volume's directory
  bool runs(const std::string& name) const;         // the machine runs and its node is not silent
  Result<std::vector<ObjectPtr>> measure(const std::string& ns, const std::string& name) const;
  bool step(const PodLife& life);  // one pod makes a step; false if there was nothing to do for it
  bool settle();                   // all pods reach their final state at once; false if they already had

 private:
  struct Local {  // the node's knowledge, whatever the store has
    bool started = false, ready = false;
    std::string phase;  // set once the pod has ended
    int exit_code = 0;
    int64_t restarts = 0;
    std::string node, ip, started_at, ready_since, ended_at;
    std::vector<std::string> mounts;
  };
  // The directories of the pod's claims; nothing while a claim has no volume.
  std::optional<std::vector<std::string>> directories_of(const Object& pod) const;
  bool look(const Object& pod, const PodLife& life);
  bool report(const Object& pod, const Local& local);
  void end(const Object& pod, Local& local, const PodLife& life);

  bool speaks_for(const Object& pod) const;   // its node runs
  void end_removed(const std::string& name);  // ends the pods that were deleted while their node was silent
  void speak(const std::string& name);
  void put_taint(const std::string& name, bool out_of_service);

  const ClusterState& cluster_state_;
  ToldClient client_;
  const Clock& clock_;
  Dice& dice_;
  const Trace& trace_;
  std::map<std::string, Local> pods_;            // by uid
  std::map<std::string, WallTime> beats_;        // of running nodes
  std::map<std::string, json::value> machines_;  // by name: capacity
  std::set<std::string> silent_;
  int addresses_ = 0;
};

}  // namespace coracle::simulation
