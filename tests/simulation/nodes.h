// SPDX-License-Identifier: Apache-2.0
// Nodes: what the node agents of a scenario do, without containers. A pod that is bound starts after a while, becomes ready, may
// cease to be, crash, or end; one that is being deleted ends after a while. What a node knows of its pods survives the daemon, as
// pause processes do: what the store has forgotten is told again.
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

struct PodLife {       // how probable each is, of a look at a pod
  double slow = 0.5;   // nothing happens this time
  double flaps = 0;    // a ready pod ceases to be
  double crashes = 0;  // its container ends, and it begins anew, if it may
  double fails = 0;    // of a pod that is to end: with another exit code than 0
};

inline constexpr std::string_view kOutcome =
    "simulation/outcome";  // annotation: "runs" (the default), "ends", "breaks" (is never ready)

// A ConfigMap: "<namespace>.<app>" → "shared|each <milli cpu> <MiB>", the load of all its ready pods together, or of each.
inline const Key kLoads{"default", "loads"};

class Nodes {
 public:
  Nodes(const ClusterState& cluster_state, Cluster& cluster, const Clock& clock, Dice& dice, const Trace& trace)
      : cluster_state_(cluster_state), client_(cluster, Actor::node), clock_(clock), dice_(dice), trace_(trace) {}

  void join(const std::string& name);  // with its Node and Lease
  bool provision();                    // a volume for each claim of no class that has none; false when all have
  void beat();                         // all that are not silent renew their leases when it is time
  // A node falls silent or speaks again, its Node is removed or joins again. Never this machine's own: it is as well as the
  // daemon.
  void trouble();
  // Most that are silent speak again. The others are removed, or declared out of service, as people do who have made sure that
  // nothing runs there any more. Most that were removed join again.
  void relent();
  // What the pods use that run: in a namespace ("": in all), or one. It follows the loads that the user gives (kLoads).
  bool has_mounted(const std::string& path) const;  // a container runs that may write into the directory of a volume
  bool runs(const std::string& name) const;         // the machine is on, and is heard
  Result<std::vector<ObjectPtr>> measure(const std::string& ns, const std::string& name) const;
  bool step(const PodLife& life);  // one pod gets a look; false when there was nothing to do for it
  bool settle();                   // every pod gets where it is going at once; false when all were there

 private:
  struct Local {  // what the node knows, whatever the store says
    bool started = false, ready = false;
    std::string phase;  // of one that has ended
    int exit_code = 0;
    int64_t restarts = 0;
    std::string node, ip, started_at, ready_since, ended_at;
    std::vector<std::string> mounts;
  };
  // The directories of the pod's claims; nothing while one of them has no volume yet.
  std::optional<std::vector<std::string>> directories_of(const Object& pod) const;
  bool look(const Object& pod, const PodLife& life);
  bool report(const Object& pod, const Local& local);
  void end(const Object& pod, Local& local, const PodLife& life);

  bool speaks_for(const Object& pod) const;   // its node runs
  void end_removed(const std::string& name);  // the pods that were removed while their node was not heard
  void speak(const std::string& name);
  void put_taint(const std::string& name, bool out_of_service);

  const ClusterState& cluster_state_;
  ToldClient client_;
  const Clock& clock_;
  Dice& dice_;
  const Trace& trace_;
  std::map<std::string, Local> pods_;            // by uid
  std::map<std::string, WallTime> beats_;        // of those that run
  std::map<std::string, json::value> machines_;  // by name: what each has
  std::set<std::string> silent_;
  int addresses_ = 0;
};

}  // namespace coracle::simulation
