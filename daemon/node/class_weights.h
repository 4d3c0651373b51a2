// SPDX-License-Identifier: Apache-2.0
// ClassWeights: keeps the cpu.weight of each quality-of-service cgroup in line with the running pods. The pods' own weights count
// only within their class.
//   best effort: the minimum; burstable: the weight of the pods' summed CPU requests; guaranteed: the sum of the weights that its
//   pods would have beside the classes.
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

  // note(): the pod has a sandbox. forget(): it has none any more. Thread-safe. They write to the kernel if a weight changes, and
  // log failures.
  void note(const std::string& uid, const json::value& pod);
  void forget(const std::string& uid);

 private:
  struct Share {
    QosClass qos = QosClass::best_effort;
    int64_t cpu_shares = 0;
  };
  struct State {
    std::map<std::string, Share> pods;     // by uid
    std::map<QosClass, uint64_t> weights;  // as written to the kernel
  };
  void level(State& state);

  runtime::Runtime& runtime_;
  Guarded<State> state_;
};

}  // namespace coracle::node
