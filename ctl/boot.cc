// SPDX-License-Identifier: Apache-2.0
// See boot.h.
#include "ctl/boot.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "ctl/command.h"
#include "ctl/escape.h"
#include "ctl/print.h"
#include "runtime/base/text.h"
#include "runtime/sys/run.h"
#include "store/kinds/meta/conditions.h"
#include "store/kinds/meta/metadata.h"
#include "store/kinds/pod/pod_state.h"

namespace coracle::ctl {
namespace {

using std::chrono::seconds;

class Properties {  // of `systemctl show`
 public:
  explicit Properties(std::string_view text) {
    for (std::string_view line : split(text, '\n'))
      if (size_t at = line.find('='); at != line.npos) all_[line.substr(0, at)] = trim(line.substr(at + 1));
  }
  // Microseconds; nullopt for 0, which means that it has not happened.
  std::optional<SinceKernel> microseconds(std::string_view name) const {
    auto found = all_.find(name);
    auto number = found == all_.end() ? std::nullopt : parse_number<int64_t>(found->second);
    return number && *number > 0 ? std::optional(SinceKernel(*number)) : std::nullopt;
  }
  std::optional<WallTime> wall_time(std::string_view name) const {  // "@1700000000"
    auto found = all_.find(name);
    if (found == all_.end() || !found->second.starts_with('@')) return std::nullopt;
    auto number = parse_number<int64_t>(found->second.substr(1));
    return number ? std::optional(WallTime(seconds(*number))) : std::nullopt;
  }

 private:
  std::map<std::string_view, std::string_view> all_;
};

// Converts times of the API. The wall clock may have been set since the kernel's start, from 1970 on a board without a battery:
// then earlier times belong to the clock that systemd began with.
class Converter {
 public:
  Converter(const BootState& state, const Properties& manager) : uptime_(state.uptime) {
    starts_.push_back(state.now - std::chrono::duration_cast<WallTime::duration>(state.uptime));
    auto began = manager.wall_time("UserspaceTimestamp");
    auto since = manager.microseconds("UserspaceTimestampMonotonic");
    if (began && since) starts_.push_back(*began - std::chrono::duration_cast<WallTime::duration>(*since));
  }
  std::optional<SinceKernel> operator()(std::string_view text) const {
    auto time = parse_time(text);
    if (!time) return std::nullopt;
    constexpr seconds kSlack{2};  // of what was rounded
    for (const WallTime& start : starts_) {
      const auto since = std::chrono::duration_cast<SinceKernel>(*time - start);
      if (since >= -kSlack && since <= uptime_ + kSlack) return std::clamp<SinceKernel>(since, SinceKernel(0), uptime_);
    }
    return std::nullopt;
  }

 private:
  const SinceKernel uptime_;
  std::vector<WallTime> starts_;  // the kernel's start by the present clock, and by the first one
};

std::string whole(const std::optional<SinceKernel>& at) {
  return at ? std::to_string(std::chrono::floor<seconds>(*at).count()) + " s" : std::string("?");
}

// What a pod waits for, or waited for: those that it has to come after, its place, its images and starts.
std::string waits_of(const json::value& pod, bool is_ready, const Converter& since) {
  std::vector<std::string> parts;
  view::PodStatus status = view::Pod(pod).status();
  view::Condition scheduled(find_condition(pod, "PodScheduled"));
  const json::value* after = metadata_of(pod).annotations().if_contains("coracle.io/after");
  if (after && after->is_string()) parts.push_back("after " + std::string(after->get_string()));
  if (!is_ready) {
    for (const auto& list : {status.init_container_statuses(), status.container_statuses()})
      for (view::ContainerStatus container : list)
        if (view::ContainerStateWaiting waiting = container.state().waiting())
          parts.push_back(std::string(container.name()) + ": " + std::string(waiting.reason()));
    if (scheduled && scheduled.status() != "True") parts.emplace_back(scheduled.message());
    return join(parts, ", ");
  }
  if (auto at = since(scheduled.last_transition_time())) parts.push_back("a place until " + whole(at));
  std::optional<SinceKernel> started;
  for (view::ContainerStatus container : status.container_statuses())
    if (auto at = since(container.state().running().started_at()); at && (!started || *at > *started)) started = at;
  if (started) parts.push_back("its images and containers until " + whole(started));
  return join(parts, ", ");
}

void add_pods(const BootState& state, const Converter& since, std::vector<BootStep>& steps) {
  for (const json::value& pod : items_of(state.pods)) {
    const view::ObjectMeta metadata = metadata_of(pod);
    if (is_terminal_phase(view::Pod(pod).status().phase()) || metadata.has_deletion_timestamp()) continue;
    const view::Condition ready(find_condition(pod, "Ready"));
    const bool is_ready = ready.status() == "True";
    BootStep step{std::nullopt,
                  "pod " + std::string(metadata.namespace_()) + "/" + std::string(metadata.name()) +
                      (is_ready ? " is ready" : " is not ready"),
                  waits_of(pod, is_ready, since), true};
    if (is_ready) step.at = since(ready.last_transition_time());
    steps.push_back(std::move(step));
  }
}

std::string shown_time(const BootStep& step) {
  if (!step.at) return "-";
  if (step.is_whole_seconds) return whole(step.at);
  char text[32];
  std::snprintf(text, sizeof text, "%.3f s", double(step.at->count()) / 1e6);
  return text;
}

BootState read_boot(Commands& commands) {
  BootState state;
  auto show = [](std::vector<std::string> more) {
    std::vector<std::string> argv = {"systemctl", "show", "--timestamp=unix"};
    argv.insert(argv.end(), more.begin(), more.end());
    return sys::output_of(argv, sys::Complaints::dropped).value_or("");  // not under systemd: nothing
  };
  state.manager = show({});
  state.unit = show({"coracled.service"});
  if (auto session = commands.session()) {
    auto pods = (*session)->json({.path = (*session)->path(schema::catalog().of(kPod), "")});
    if (pods) state.pods = *std::move(pods);
    else tell("coraclectl: no pods are shown: " + pods.error().text() + "\n");
  } else {
    tell("coraclectl: no pods are shown: " + session.error().text() + "\n");
  }
  state.now = system_clock().now();
  state.uptime = std::chrono::duration_cast<SinceKernel>(std::chrono::steady_clock::now().time_since_epoch());
  return state;
}

}  // namespace

std::vector<BootStep> boot_steps(const BootState& state) {
  const Properties manager(state.manager), unit(state.unit);
  std::vector<BootStep> steps;
  auto add = [&](std::optional<SinceKernel> at, const char* what) {
    if (at) steps.push_back({at, what, "", false});
  };
  auto before_kernel = [&](const char* name) {
    auto span = manager.microseconds(name);
    return span ? std::optional(-*span) : std::nullopt;
  };
  add(before_kernel("FirmwareTimestampMonotonic"), "the firmware starts");
  add(before_kernel("LoaderTimestampMonotonic"), "the boot loader starts");
  add(SinceKernel(0), "the kernel starts");
  add(manager.microseconds("InitRDTimestampMonotonic"), "the initrd starts");
  add(manager.microseconds("UserspaceTimestampMonotonic"), "the first process starts");
  add(unit.microseconds("InactiveExitTimestampMonotonic"), "coracled starts");
  add(unit.microseconds("ActiveEnterTimestampMonotonic"), "the API is ready");
  add(manager.microseconds("FinishTimestampMonotonic"), "all units have started");
  add_pods(state, Converter(state, manager), steps);
  // What is rounded down to a second came at its end, as far as is known.
  auto order = [](const BootStep& step) {
    if (!step.at) return SinceKernel::max();
    return *step.at + (step.is_whole_seconds ? SinceKernel(999'999) : SinceKernel(0));
  };
  std::stable_sort(steps.begin(), steps.end(), [&](const BootStep& a, const BootStep& b) { return order(a) < order(b); });
  return steps;
}

std::string print_boot(const std::vector<BootStep>& steps) {
  size_t time_width = 0, what_width = 0;
  for (const BootStep& step : steps) {
    time_width = std::max(time_width, shown_time(step).size());
    what_width = std::max(what_width, step.what.size());
  }
  std::string text;
  for (const BootStep& step : steps) {
    const std::string time = shown_time(step);
    text += std::string(time_width - time.size(), ' ') + time + "  " + step.what;
    if (!step.waited_for.empty()) text += std::string(what_width - step.what.size() + 2, ' ') + step.waited_for;
    text += "\n";
  }
  return text;
}

json::value boot_json(const std::vector<BootStep>& steps) {
  json::array list;
  for (const BootStep& step : steps) {
    json::object shown{{"at", nullptr}, {"what", step.what}};
    if (step.at) shown["at"] = double(step.at->count()) / 1e6;
    if (!step.waited_for.empty()) shown["waitedFor"] = step.waited_for;
    list.push_back(std::move(shown));
  }
  return json::object{{"steps", std::move(list)}};
}

void add_boot(Commands& commands) {
  struct Flags {
    std::string output;
  };
  auto flags = std::make_shared<Flags>();
  Command boot =
      commands.add("boot", "This machine's last start: when the kernel, coracled and each pod began, and what pods waited for");
  boot.add_option("-o,--output", flags->output, "json").one_of({"json"});
  commands.on(boot, [&commands, flags]() -> Result<int> {
    std::vector<BootStep> steps = boot_steps(read_boot(commands));
    if (flags->output == "json") out(to_pretty(boot_json(steps)) + "\n");
    else out(visible_lines(print_boot(steps)));
    return 0;
  });
}

}  // namespace coracle::ctl
