// SPDX-License-Identifier: Apache-2.0
// ImageCollector: removes unused images when the disk is nearly full, before pods are evicted. Each update of an application
// leaves the image that it had before. Only images are removed that a registry has given; imported ones cannot come again without
// a person. Source: kubelet, pkg/kubelet/images/image_gc_manager.go (thresholds, least age, the longest unused first).
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "daemon/node/config.h"
#include "daemon/node/task_pool.h"
#include "runtime/base/clock.h"
#include "runtime/base/guarded.h"
#include "runtime/runtime.h"

namespace coracle::node {

struct DiskUse {
  Bytes total, available;
};

// Percent of the disk that is used, rounded up as by the kubelet: images are removed until no more than the low threshold is
// used. 0: not known.
int used_percent(const DiskUse& use);

class ImageCollector {
 public:
  static constexpr std::chrono::minutes kPause{5};  // after a collection that could not free enough

  // `use`: of the images' disk; nullopt: not known. `changed` is called after images were removed. They and the executor must
  // outlive the tasks.
  ImageCollector(const ImageCollection& settings, runtime::ImageStore& images, const Clock& clock, Executor executor,
                 std::function<std::optional<DiskUse>()> use, std::function<void()> changed);
  // Looks at the disk, and posts a collection if one is due. Call it every few seconds. Does not block.
  void look();

 private:
  void collect();

  struct State {
    bool is_running = false;
    std::optional<SteadyTime> not_before;
  };
  const ImageCollection& settings_;
  runtime::ImageStore& images_;
  const Clock& clock_;
  const Executor executor_;
  const std::function<std::optional<DiskUse>()> use_;
  const std::function<void()> changed_;
  Guarded<State> state_;
};

}  // namespace coracle::node
