// SPDX-License-Identifier: Apache-2.0
// ClassWeights: how much CPU time each quality-of-service class gets against the others, kept level with the pods that run. Their
// own weights count within their class only.
//   best effort: the least there is; burstable: as one that asks for what its pods ask for together; guaranteed: as much as its
//   pods would get each by itself, beside the classes.
// Source: kubelet's qosContainerManager, setCPUCgroupConfig; "Resource Management for Pods and Containers".
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "daemon/node/resources.h"
#include "runtime/base/guarded.h"

namespace coracle::node {

class ClassWeights {
 public:
  explicit ClassWeights(runtime::Runtime& runtime) : runtime_(runtime) {}

  // The pod has a sandbox, or has none any more. Thread-safe; writes to the kernel when a weight changes. What fails is logged.
  void note(const std::string& uid, const json::value& pod);
  void forget(const std::string& uid);

 private:
  struct Share {
    QosClass qos = QosClass::best_effort;
    int64_t cpu_shares = 0;
  };
  struct State {
    std::map<std::string, Share> pods;     // by uid
    std::map<QosClass, uint64_t> weights;  // as set
  };
  void level(State& state);

  runtime::Runtime& runtime_;
  Guarded<State> state_;
};

}  // namespace coracle::node
