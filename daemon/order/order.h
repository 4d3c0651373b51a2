// SPDX-License-Identifier: Apache-2.0
// Order: pods that wait for others. `coracle.io/after: "deployment/db, service/cache"` on a pod or its template holds it back
// until those are available. What Kubernetes refuses and who runs a single machine asks for: init containers that poll are
// the usual substitute. Pure; four rooms use it:
//   admission   reads the annotation, refuses what it cannot mean, and gives the pod a scheduling gate of the same name
//   controller  takes the gate away once all it names are available, and says meanwhile what is missing
//   node        holds back pods that were bound before the machine was switched off: nothing runs yet when it comes back
//   gate.h      (here) reads the world for both from the informers
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "store/object/kind.h"
#include "store/object/object_ptr.h"

namespace coracle::order {

inline constexpr std::string_view kAfter = "coracle.io/after";  // the annotation, and the scheduling gate
constexpr size_t kDependenciesMax = 64;

// Those that can be waited for.
inline constexpr const Kind* kKinds[] = {
    &kPod, &kService, &kDeployment, &kReplicaSet, &kStatefulSet, &kDaemonSet, &kReplicationController, &kJob};

struct Dependency {  // in the namespace of the pod that waits
  const Kind* kind;
  std::string name;
  std::string text() const;  // "deployment/db"
};

// "KIND/NAME, KIND/NAME": kinds by any name that kubectl knows them by. Errors: invalid, quoting the part that it is about.
Result<std::vector<Dependency>> parse_after(std::string_view text);

// What is asked of the world.
class World {
 public:
  virtual ~World() = default;
  virtual ObjectPtr get(const Kind& kind, const Key& key) const = 0;  // null: there is none
  virtual std::vector<ObjectPtr> pods(const std::string& ns) const = 0;
  // Whether the pod is ready now. Not its status alone: after a power cut that is of the past until the node has looked.
  virtual bool ready(const Object& pod) const = 0;
  virtual bool has_ready_endpoints(const Key& service) const = 0;
};

// What is known of one namespace's dependencies, found out once for all pods that wait there, so that thousands of them do not
// each look at all pods: good until something changes in the namespace. Not thread-safe.
class DependencyCache {
 public:
  DependencyCache(const World& world, const std::string& ns);  // `world` must outlive it
  ~DependencyCache();

  // What keeps the pod back, one text per dependency: "deployment/db: 0 of 1 pods ready". None: it may go. An annotation that
  // cannot be read keeps nobody back: admission has refused it, or it was there before us.
  std::vector<std::string> missing(const Object& pod);

  // The same as one text, cycles included: "coracle.io/after: waiting for deployment/db: not found". "": it may go.
  std::string waits_for(const Object& pod);

  // The way from the pod back to itself, "deployment/web → deployment/db → deployment/web"; "" when there is none.
  std::string cycle(const Object& pod);

 private:
  class Facts;
  std::unique_ptr<Facts> facts_;
};

// The same, asked once.
std::vector<std::string> missing(const Object& pod, const World& world);
std::string waits_for(const Object& pod, const World& world);
std::string cycle(const Object& pod, const World& world);

}  // namespace coracle::order
