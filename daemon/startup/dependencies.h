// SPDX-License-Identifier: Apache-2.0
// Start-up dependencies between pods. The annotation `coracle.io/after: "deployment/db, service/cache"` on a pod or its template
// holds the pod back until these are available. Kubernetes has no such feature; the usual substitute is an init container that
// polls. Pure. Used by four components:
//   admission   parses the annotation, rejects invalid ones, and gives the pod a scheduling gate of the same name
//   controller  removes the gate when all dependencies are available, and until then reports what is missing
//   node        holds back pods that were bound before a reboot: no dependency runs yet then
//   startup_gate.h      (here) implements Lister for both with informers
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "store/object/kind.h"
#include "store/object/object_ptr.h"

namespace coracle::startup {

inline constexpr std::string_view kAfter = "coracle.io/after";  // the annotation, and the scheduling gate
constexpr size_t kDependenciesMax = 64;

// The kinds that may be dependencies.
inline constexpr const Kind* kKinds[] = {
    &kPod, &kService, &kDeployment, &kReplicaSet, &kStatefulSet, &kDaemonSet, &kReplicationController, &kJob};

struct Dependency {  // in the namespace of the waiting pod
  const Kind* kind;
  std::string name;
  std::string text() const;  // "deployment/db"
};

// Parses "KIND/NAME, KIND/NAME", with any kind name that kubectl accepts. Errors: invalid, with the faulty part.
Result<std::vector<Dependency>> parse_after(std::string_view text);

// The observed state that dependencies are evaluated on.
class Lister {
 public:
  virtual ~Lister() = default;
  virtual ObjectPtr get(const Kind& kind, const Key& key) const = 0;  // null: it does not exist
  virtual std::vector<ObjectPtr> pods(const std::string& ns) const = 0;
  // Whether the pod is ready now. Its status alone is not enough: after a power cut it is outdated until the node has synced the
  // pod.
  virtual bool ready(const Object& pod) const = 0;
  virtual bool has_ready_endpoints(const Key& service) const = 0;
};

// A cache of evaluated dependencies in one namespace, so that thousands of waiting pods do not each read all pods. Valid until
// something changes in the namespace. Not thread-safe.
class DependencyCache {
 public:
  DependencyCache(const Lister& lister, const std::string& ns);  // `lister` must outlive it
  ~DependencyCache();

  // The unmet dependencies of the pod, one text each: "deployment/db: 0 of 1 pods ready". Empty: it may start. An unparsable
  // annotation holds nothing back: admission rejects it, or the pod is older than the daemon.
  std::vector<std::string> missing(const Object& pod);

  // The same as one text, including cycles: "coracle.io/after: waiting for deployment/db: not found". "": it may start.
  std::string waits_for(const Object& pod);

  // A dependency cycle that contains the pod, "deployment/web → deployment/db → deployment/web"; "" if there is none.
  std::string cycle(const Object& pod);

 private:
  class Observed;
  std::unique_ptr<Observed> observed_;
};

// The same for a single evaluation.
std::vector<std::string> missing(const Object& pod, const Lister& lister);
std::string waits_for(const Object& pod, const Lister& lister);
std::string cycle(const Object& pod, const Lister& lister);

}  // namespace coracle::startup
