// SPDX-License-Identifier: Apache-2.0
// See metrics.h.
#include "daemon/node/metrics.h"

#include <unistd.h>

#include <algorithm>

#include "daemon/node/node_object.h"
#include "daemon/node/record.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "store/object/quantity.h"

namespace coracle::node {
namespace {

json::object usage_of(const Sample& sample) {
  auto cpu = Quantity::parse(std::to_string(sample.nanocores) + "n");
  return {{"cpu", cpu ? cpu->text() : "0"}, {"memory", Quantity::of(sample.memory).text()}};
}

Result<ObjectPtr> make_metrics(const Kind& kind, const Key& key, const json::object& labels, const Sample& oldest,
                               std::string_view member, json::value measured, WallTime now) {
  json::object metadata{{"name", key.name}};
  if (!key.ns.empty()) metadata["namespace"] = key.ns;
  metadata["creationTimestamp"] = format_time(now);
  if (!labels.empty()) metadata["labels"] = labels;
  json::object body{{"kind", kind.kind},
                    {"apiVersion", kind.api_version()},
                    {"metadata", std::move(metadata)},
                    {"timestamp", format_time(oldest.at)},
                    {"window", format_duration(std::chrono::floor<std::chrono::milliseconds>(oldest.window))}};
  body[member] = std::move(measured);
  return Object::make(kind, std::move(body));
}

}  // namespace

Result<Reading> read_machine_use(const std::string& stat, const std::string& meminfo) {
  auto fields =
      split(std::string_view(stat).substr(0, stat.find('\n')), ' ');  // "cpu  user nice system idle iowait irq softirq steal …"
  std::erase(fields, std::string_view());
  if (fields.size() < 8 || fields[0] != "cpu")
    return Error(Code::internal, "/proc/stat does not begin with the machine's cpu time");
  int64_t ticks = 0;
  for (size_t used : {1, 2, 3, 6, 7}) ticks += parse_number<int64_t>(fields[used]).value_or(0);
  Reading out;
  out.cpu = std::chrono::nanoseconds(ticks * (1'000'000'000 / ::sysconf(_SC_CLK_TCK)));
  int64_t held = memory_field(meminfo, "MemTotal:").count - memory_field(meminfo, "MemFree:").count;
  out.memory = Bytes(std::max<int64_t>(held - memory_field(meminfo, "Inactive(file):").count, 0));
  return out;
}

Result<std::vector<ObjectPtr>> Metrics::nodes(const std::string& name) {
  if (!name.empty() && name != config_.node_name) return std::vector<ObjectPtr>();
  auto read = []() -> Result<Reading> {
    std::string stat = TRY(sys::read_file("/proc/stat", 1 << 20));
    std::string meminfo = TRY(sys::read_file("/proc/meminfo", 1 << 16));
    return read_machine_use(stat, meminfo);
  };
  auto samples = meter_.measure({{"", std::nullopt, read}});
  auto sample = samples.find("");
  if (sample == samples.end()) return Error(Code::unavailable, "the machine's use cannot be measured");
  auto node = client_.get(kNode, {"", config_.node_name});
  ObjectPtr metrics = TRY(make_metrics(kNodeMetrics, {"", config_.node_name}, node ? (*node)->labels() : json::object(),
                                       sample->second, "usage", usage_of(sample->second), clock_.now()));
  return std::vector<ObjectPtr>{std::move(metrics)};
}

Result<std::vector<ObjectPtr>> Metrics::pods(const std::string& ns, const std::string& name,
                                             const std::function<bool(const Object& pod)>& wanted_pod) {
  struct Container {
    std::string name, gauge;
  };
  struct Measured {
    ObjectPtr pod;
    std::vector<Container> containers;
  };
  std::vector<Measured> wanted;
  std::vector<Gauge> gauges;
  std::vector<runtime::SandboxState> sandboxes = TRY(runtime_.sandboxes());
  for (const auto& sandbox : sandboxes) {
    auto desired = table_.get(sandbox.id);
    if (!desired || !desired->api()) continue;
    ObjectPtr pod = desired->api();
    if ((!ns.empty() && pod->ns() != ns) || (!name.empty() && pod->name() != name)) continue;
    if (wanted_pod && !wanted_pod(*pod)) continue;
    Measured measured{pod, {}};
    for (const auto& container : sandbox.containers) {
      if (!container.running) continue;
      std::string gauge = sandbox.id + "/" + container.id;
      measured.containers.push_back({ContainerMark::from_text(container.metadata).name, gauge});
      gauges.push_back(
          {gauge, clock_.now() - container.started, [this, sandbox = sandbox.id, id = container.id]() -> Result<Reading> {
             runtime::Usage usage = TRY(runtime_.usage(sandbox, id));
             return Reading{usage.cpu, usage.memory_working_set};
           }});
    }
    wanted.push_back(std::move(measured));
  }
  auto samples = meter_.measure(gauges);
  std::vector<ObjectPtr> out;
  for (const Measured& measured : wanted) {
    json::array containers;
    const Sample* oldest = nullptr;
    for (const Container& container : measured.containers) {
      auto sample = samples.find(container.gauge);
      if (sample == samples.end()) continue;  // it has ended in the meantime
      containers.push_back(json::object{{"name", container.name}, {"usage", usage_of(sample->second)}});
      if (!oldest || sample->second.at < oldest->at) oldest = &sample->second;
    }
    if (!oldest) continue;
    ObjectPtr metrics = TRY(make_metrics(kPodMetrics, measured.pod->key(), measured.pod->labels(), *oldest, "containers",
                                         std::move(containers), clock_.now()));
    out.push_back(std::move(metrics));
  }
  std::sort(out.begin(), out.end(), [](const ObjectPtr& a, const ObjectPtr& b) { return a->key() < b->key(); });
  return out;
}

}  // namespace coracle::node
