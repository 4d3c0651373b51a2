// SPDX-License-Identifier: Apache-2.0
// See end_by_marks.h.
#include "daemon/node/end_by_marks.h"

#include <algorithm>
#include <map>
#include <memory>

#include "daemon/node/container_spec.h"
#include "daemon/node/record.h"
#include "runtime/base/clock.h"
#include "runtime/base/guarded.h"
#include "runtime/base/signal_name.h"

namespace coracle::node {
namespace {

bool any_runs(const runtime::SandboxState& sandbox) {
  return sandbox.alive &&
         std::any_of(sandbox.containers.begin(), sandbox.containers.end(), [](const auto& c) { return c.running; });
}

}  // namespace

Result<void> end_by_marks(runtime::Runtime& runtime, std::chrono::seconds longest) {
  // Number of sandbox changes; shared, because the runtime keeps the callback.
  auto changes = std::make_shared<Guarded<uint64_t>>(0);
  runtime.on_change([changes](const std::string&) {
    changes->with([](uint64_t& count) { count++; });
    changes->notify();
  });
  Result<void> outcome;
  auto note = [&](Result<void> done) {
    if (!done && outcome) outcome = std::move(done);
  };
  std::map<std::string, SteadyTime> until;  // by sandbox
  std::vector<runtime::SandboxState> all = TRY(runtime.sandboxes());
  for (const auto& sandbox : all) {
    auto grace = std::min(longest, std::chrono::seconds(SandboxMark::from_text(sandbox.metadata).grace_seconds));
    until[sandbox.id] = std::chrono::steady_clock::now() + grace;
    for (const auto& container : sandbox.containers) {
      if (!container.running) continue;
      int signal = signal_number(ContainerMark::from_text(container.metadata).stop_signal).value_or(15);
      note(runtime.signal_container(sandbox.id, container.id, signal));
    }
  }
  while (!all.empty()) {
    uint64_t seen = changes->with([](uint64_t count) { return count; });
    for (auto& sandbox : all) {
      auto found = runtime.sandbox(sandbox.id);
      if (found) sandbox = *std::move(found);
      else sandbox.alive = false;
    }
    SteadyTime now = std::chrono::steady_clock::now();
    auto goes = [&](const runtime::SandboxState& sandbox) { return !any_runs(sandbox) || now >= until[sandbox.id]; };
    for (const auto& sandbox : all)
      if (goes(sandbox)) note(runtime.remove_sandbox(sandbox.id));
    std::erase_if(all, goes);
    if (all.empty()) break;
    auto earlier = [&](const auto& a, const auto& b) { return until[a.id] < until[b.id]; };
    SteadyTime next = until[std::min_element(all.begin(), all.end(), earlier)->id];
    changes->wait_until(
        {}, next, [&](uint64_t count) { return count != seen; }, [](uint64_t) {});
  }
  return outcome;
}

}  // namespace coracle::node
