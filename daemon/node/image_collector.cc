// SPDX-License-Identifier: Apache-2.0
// See image_collector.h.
#include "daemon/node/image_collector.h"

#include <algorithm>

#include "runtime/base/log.h"
#include "runtime/base/text.h"

namespace coracle::node {

int used_percent(const DiskUse& use) {
  if (use.total.count <= 0) return 0;
  return 100 - int(std::clamp<int64_t>(use.available.count * 100 / use.total.count, 0, 100));
}

ImageCollector::ImageCollector(const ImageCollection& settings, runtime::ImageStore& images, const Clock& clock,
                               Executor executor, std::function<std::optional<DiskUse>()> use, std::function<void()> changed)
    : settings_(settings),
      images_(images),
      clock_(clock),
      executor_(std::move(executor)),
      use_(std::move(use)),
      changed_(std::move(changed)) {}

void ImageCollector::look() {
  if (settings_.high_percent >= 100) return;  // off
  const auto use = use_();
  if (!use || used_percent(*use) < settings_.high_percent) return;
  const bool is_due = state_.with([&](State& state) {
    if (state.is_running || (state.not_before && clock_.steady() < *state.not_before)) return false;
    state.is_running = true;
    return true;
  });
  if (is_due) executor_([this](std::stop_token) { collect(); });
}

void ImageCollector::collect() {
  auto is_enough = [&] {
    const auto use = use_();
    return !use || used_percent(*use) <= settings_.low_percent;
  };
  auto removed = images_.collect(settings_.least_age, is_enough);
  if (!removed) log_warning("node", "unused images cannot be removed", {{"why", removed.error().text()}});
  std::vector<std::string> names;
  if (removed)
    for (const runtime::Image& image : *removed) names.push_back(image.references.empty() ? image.id : image.references.front());
  const bool frees_enough = is_enough();
  if (!names.empty())
    log_notice("node", "unused images were removed, because the disk is nearly full", {{"images", join(names, ", ")}});
  if (!frees_enough)
    log_warning("node", "the disk is nearly full, and no other image can be removed",
                {{"percent", std::to_string(settings_.high_percent)}});
  state_.with([&](State& state) {
    state.is_running = false;
    state.not_before.reset();
    if (!frees_enough) state.not_before = clock_.steady() + kPause;
  });
  if (!names.empty()) changed_();
}

}  // namespace coracle::node
