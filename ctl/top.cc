// SPDX-License-Identifier: Apache-2.0
// top: the current usage of nodes and pods, as metrics.k8s.io measures it on request, for nodes also in percent of allocatable;
// and how full the claims' volumes are, from the nodes' kubelet metrics.
#include "ctl/top.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "ctl/command.h"
#include "ctl/discovery.h"
#include "ctl/help.h"
#include "ctl/print.h"
#include "runtime/base/clock.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/schema/views.h"

namespace coracle::ctl {

void Amounts::add(const json::object& usage) {
  for (auto [sum, resource] : {std::pair(&cpu, "cpu"), std::pair(&memory, "memory"), std::pair(&swap, "swap")}) {
    const json::value* amount = usage.if_contains(resource);
    auto quantity = amount ? Quantity::from_json(*amount) : Quantity();
    if (quantity) *sum += *quantity;
  }
}

std::vector<std::string> Amounts::cells(bool with_swap) const {
  std::vector<std::string> cells{std::to_string(cpu.milli_value()) + "m", std::to_string(memory.bytes().count >> 20) + "Mi"};
  if (with_swap) cells.push_back(std::to_string(swap.bytes().count >> 20) + "Mi");
  return cells;
}

namespace {

std::string percent(const Quantity& used, const Quantity& of) {
  if (of.milli_value() <= 0) return "<unknown>";
  return std::to_string(int64_t(double(used.milli_value()) / double(of.milli_value()) * 100)) + "%";
}

void sort_usages(std::vector<Usage>& usages, std::string_view by) {
  std::stable_sort(usages.begin(), usages.end(), [&](const Usage& a, const Usage& b) {
    if (by == "cpu") return a.amounts.cpu > b.amounts.cpu;
    if (by == "memory") return a.amounts.memory > b.amounts.memory;
    return std::tie(a.ns, a.name) < std::tie(b.ns, b.name);
  });
}

// Calls `act` with each object of a list, or with the one object that was asked for by its name.
template <typename Act>
void for_each_object(const json::value& answer, const Act& act) {
  bool is_list = answer.is_object() && answer.get_object().contains("items");
  if (!is_list) act(answer);
  for (const json::value& object : items_of(answer)) act(object);
}

}  // namespace

std::vector<Usage> pod_usages(const json::value& answer) {
  std::vector<Usage> out;
  for_each_object(answer, [&](const json::value& object) {
    view::PodMetrics pod(object);
    Usage usage{std::string(pod.metadata().namespace_()), std::string(pod.metadata().name()), {}, {}};
    for (view::ContainerMetrics container : pod.containers()) {
      Usage part{usage.ns, std::string(container.name()), {}, {}};
      part.amounts.add(container.usage());
      usage.amounts.cpu += part.amounts.cpu;
      usage.amounts.memory += part.amounts.memory;
      usage.amounts.swap += part.amounts.swap;
      usage.parts.push_back(std::move(part));
    }
    out.push_back(std::move(usage));
  });
  return out;
}

std::string print_pod_usages(std::vector<Usage> usages, const PodTopOptions& options) {
  Columns columns;
  std::vector<std::string> header;
  if (options.all_namespaces) header.emplace_back("NAMESPACE");
  if (options.containers) header.emplace_back("POD");
  for (const char* name : {"NAME", "CPU(cores)", "MEMORY(bytes)"}) header.emplace_back(name);
  size_t names = header.size() - 2;
  if (options.show_swap) header.emplace_back("SWAP(bytes)");
  if (options.headers) columns.add(header);
  sort_usages(usages, options.sort_by);
  Amounts total;
  auto row = [&](const Usage& usage, const std::string* pod) {
    std::vector<std::string> cells;
    if (options.all_namespaces) cells.push_back(usage.ns);
    if (pod) cells.push_back(*pod);
    cells.push_back(usage.name);
    for (std::string& cell : usage.amounts.cells(options.show_swap)) cells.push_back(std::move(cell));
    columns.add(std::move(cells));
  };
  for (Usage& usage : usages) {
    total.cpu += usage.amounts.cpu;
    total.memory += usage.amounts.memory;
    total.swap += usage.amounts.swap;
    if (!options.containers) {
      row(usage, nullptr);
      continue;
    }
    sort_usages(usage.parts, options.sort_by);
    for (const Usage& part : usage.parts) row(part, &usage.name);
  }
  if (options.sum) {
    std::vector<std::string> line(names), sums(names);
    for (int i = 0; i < 2 + int(options.show_swap); ++i) line.emplace_back("________");
    for (std::string& cell : total.cells(options.show_swap)) sums.push_back(std::move(cell));
    columns.add(std::move(line));
    columns.add(std::move(sums));
  }
  return columns.text();
}

std::string print_node_usages(const json::value& metrics, const json::value& nodes, const NodeTopOptions& options) {
  std::vector<Usage> measured;
  for_each_object(metrics, [&](const json::value& object) {
    view::NodeMetrics node(object);
    Usage usage{"", std::string(node.metadata().name()), {}, {}};
    usage.amounts.add(node.usage());
    measured.push_back(std::move(usage));
  });
  sort_usages(measured, options.sort_by);
  std::map<std::string, Amounts> available;
  std::set<std::string> without_swap;
  for_each_object(nodes, [&](const json::value& object) {
    view::Node node(object);
    std::string name(node.metadata().name());
    Amounts& known = available[name];
    known.add(options.show_capacity ? node.status().capacity() : node.status().allocatable());
    int64_t swap = node.status().node_info().swap().capacity_or(-1);
    if (swap >= 0) known.swap = Quantity::parse(std::to_string(swap)).value_or(Quantity());
    else without_swap.insert(std::move(name));
  });
  Columns columns;
  std::vector<std::string> header{"NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)"};
  if (options.show_swap) header.insert(header.end(), {"SWAP(bytes)", "SWAP(%)"});
  if (options.headers) columns.add(header);
  for (const Usage& usage : measured) {
    std::vector<std::string> cells = usage.amounts.cells(true);
    const Amounts& of = available[usage.name];
    std::vector<std::string> row{usage.name, cells[0], percent(usage.amounts.cpu, of.cpu), cells[1],
                                 percent(usage.amounts.memory, of.memory)};
    bool unknown = without_swap.contains(usage.name);
    std::string part = of.swap.milli_value() > 0 ? percent(usage.amounts.swap, of.swap) : "0%";
    if (options.show_swap) row.insert(row.end(), {unknown ? "<unknown>" : cells[2], unknown ? "<unknown>" : part});
    columns.add(std::move(row));
    available.erase(usage.name);
  }
  for (const auto& [name, of] : available) {  // nodes without metrics
    std::vector<std::string> row(header.size(), "<unknown>");
    row.front() = name;
    columns.add(std::move(row));
  }
  return columns.text();
}

namespace {

constexpr std::string_view kVolumeMetric = "kubelet_volume_stats_";

// The value of a label in `a="x",b="y"`; "" if it is absent. Object names need no escapes.
std::string label_value(std::string_view labels, std::string_view name) {
  size_t at = labels.find(std::string(name) + "=\"");
  if (at == labels.npos) return "";
  std::string_view rest = labels.substr(at + name.size() + 2);
  return std::string(rest.substr(0, rest.find('"')));
}

std::string bytes_text(double bytes) {
  constexpr std::string_view kUnits[] = {"", "Ki", "Mi", "Gi", "Ti"};
  size_t unit = 0;
  for (; bytes >= 10240 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1024;
  return std::to_string(int64_t(bytes)) + std::string(kUnits[unit]);
}

}  // namespace

std::vector<VolumeUsage> volume_usages(std::string_view metrics) {
  std::map<std::pair<std::string, std::string>, VolumeUsage> found;
  for (std::string_view line : split(metrics, '\n')) {
    size_t open = line.find('{'), close = line.find("} ");
    if (!line.starts_with(kVolumeMetric) || open == line.npos || close == line.npos || close < open) continue;
    std::string_view labels = line.substr(open + 1, close - open - 1);
    std::string ns = label_value(labels, "namespace"), claim = label_value(labels, "persistentvolumeclaim");
    VolumeUsage& usage = found[{ns, claim}];
    usage.ns = ns, usage.claim = claim;
    std::string figure(line.substr(kVolumeMetric.size(), open - kVolumeMetric.size()));
    usage.figures[figure] = std::strtod(std::string(line.substr(close + 2)).c_str(), nullptr);
  }
  std::vector<VolumeUsage> all;
  for (auto& [key, usage] : found) all.push_back(std::move(usage));
  return all;
}

std::string print_volume_usages(std::vector<VolumeUsage> usages, const VolumeTopOptions& options) {
  auto figure = [](const VolumeUsage& usage, std::string_view name) {
    auto found = usage.figures.find(name);
    return found == usage.figures.end() ? 0.0 : found->second;
  };
  auto part = [&](const VolumeUsage& usage, std::string_view of, std::string_view whole) {
    double all = figure(usage, whole);
    return all > 0 ? std::to_string(int(figure(usage, of) / all * 100)) + "%" : std::string("<unknown>");
  };
  if (!options.sort_by.empty())
    std::ranges::stable_sort(usages, std::greater(),
                             [&](const VolumeUsage& usage) { return figure(usage, options.sort_by + "_bytes"); });
  Columns columns;
  std::vector<std::string> header{"NAME", "CAPACITY", "USED", "AVAILABLE", "USED(%)", "INODES(%)"};
  if (options.all_namespaces) header.insert(header.begin(), "NAMESPACE");
  if (options.headers) columns.add(header);
  for (const VolumeUsage& usage : usages) {
    std::vector<std::string> cells{usage.claim};
    for (const char* name : {"capacity_bytes", "used_bytes", "available_bytes"}) cells.push_back(bytes_text(figure(usage, name)));
    cells.push_back(part(usage, "used_bytes", "capacity_bytes"));
    cells.push_back(part(usage, "inodes_used", "inodes"));
    if (options.all_namespaces) cells.insert(cells.begin(), usage.ns);
    columns.add(std::move(cells));
  }
  return columns.text();
}

namespace {

constexpr std::chrono::minutes kMetricsDelay{2};  // a new pod has no measurements for so long

struct TopFlags {
  std::string name, selector, field_selector, sort_by;
  std::vector<std::string> more_names;
  bool no_headers = false, all_namespaces = false, containers = false, sum = false, show_capacity = false, protobuf = true;
  bool show_swap = false;
};

Result<void> check(const TopFlags& flags, const std::string& what) {
  if (!flags.more_names.empty())
    return Error(Code::bad_request, what + " [NAME | -l label]\nSee 'coraclectl top " + what + " -h' for help and examples");
  if (!flags.sort_by.empty() && flags.sort_by != "cpu" && flags.sort_by != "memory")
    return Error(Code::bad_request, "--sort-by accepts only cpu or memory");
  if (!flags.name.empty() && (!flags.selector.empty() || !flags.field_selector.empty()))
    return Error(Code::bad_request,
                 std::string("only one of NAME or ") + (what == "pod" ? "" : "--") + "selector can be provided");
  return {};
}

Query query_of(const TopFlags& flags) {
  Query query;
  if (!flags.selector.empty()) query.emplace_back("labelSelector", flags.selector);
  if (!flags.field_selector.empty()) query.emplace_back("fieldSelector", flags.field_selector);
  return query;
}

// The object that the line names, or a list of all.
Result<json::value> read_all_or_one(Session& session, const TopFlags& flags, const Kind& kind, const std::string& ns) {
  const schema::KindInfo& info = schema::catalog().of(kind);
  return session.json(
      {.path = flags.name.empty() ? session.path(info, ns) : session.path(info, ns, flags.name), .query = query_of(flags)});
}

// The same of measurements. Errors: not_found where the server has none at all.
Result<json::value> read_metrics(Session& session, const TopFlags& flags, const Kind& kind, const std::string& ns) {
  auto metrics = read_all_or_one(session, flags, kind, ns);
  if (metrics || metrics.error().code() != Code::not_found) return metrics;
  auto groups = discover_groups(session);
  bool has_metrics =
      !groups || std::any_of(groups->begin(), groups->end(), [&](const ApiGroup& one) { return one.name == kind.group; });
  if (!has_metrics) return Error(Code::not_found, "Metrics API not available");
  return metrics;
}

std::string age_text(int64_t seconds) {  // "26h3m4s", as Go writes a duration
  std::string text;
  if (seconds >= 3600) text += std::to_string(seconds / 3600) + "h";
  if (seconds >= 60) text += std::to_string(seconds / 60 % 60) + "m";
  return text + std::to_string(seconds % 60) + "s";
}

// Why no pod was measured; without an error there is none. Source: kubectl pkg/cmd/top/top_pod.go, verifyEmptyMetrics.
Result<void> explain_no_metrics(Session& session, const TopFlags& flags, const std::string& ns) {
  json::value pods = TRY(read_all_or_one(session, flags, kPod, ns));
  const json::array& items = items_of(pods);
  for (const json::value& pod : items) {
    auto created = parse_time(metadata_of(pod).creation_timestamp());
    if (!created) continue;
    auto age = std::chrono::duration_cast<std::chrono::seconds>(system_clock().now() - *created);
    if (age <= kMetricsDelay) continue;
    return Error(Code::unavailable, "Metrics not available for pod " + std::string(metadata_of(pod).namespace_()) + "/" +
                                        std::string(metadata_of(pod).name()) + ", age: " + age_text(age.count()));
  }
  if (items.empty()) return {};
  return Error(Code::unavailable, "metrics not available yet");
}

Result<int> run_pods(Commands& commands, const TopFlags& flags) {
  TRY(check(flags, "pod"));
  Session* session = TRY(commands.session());
  std::string ns = flags.all_namespaces && flags.name.empty() ? "" : session->ns();
  json::value list = TRY(read_metrics(*session, flags, kPodMetrics, ns));
  std::vector<Usage> usages = pod_usages(list);
  if (usages.empty()) {
    TRY(explain_no_metrics(*session, flags, ns));
    std::fputs(ns.empty() ? "No resources found\n" : ("No resources found in " + ns + " namespace.\n").c_str(), stderr);
    return 0;
  }
  out(print_pod_usages(std::move(usages),
                       {ns.empty(), flags.containers, flags.sum, !flags.no_headers, flags.sort_by, flags.show_swap}));
  return 0;
}

Result<int> run_nodes(Commands& commands, const TopFlags& flags) {
  TRY(check(flags, "node"));
  Session* session = TRY(commands.session());
  json::value metrics = TRY(read_metrics(*session, flags, kNodeMetrics, ""));
  if (flags.name.empty() && items_of(metrics).empty()) return Error(Code::unavailable, "metrics not available yet");
  json::value nodes = TRY(read_all_or_one(*session, flags, kNode, ""));
  out(print_node_usages(metrics, nodes, {flags.show_capacity, !flags.no_headers, flags.sort_by, flags.show_swap}));
  return 0;
}

// Each node's agent reports the volumes of its pods.
Result<int> run_volumes(Commands& commands, const TopFlags& flags) {
  if (!flags.sort_by.empty() && flags.sort_by != "used" && flags.sort_by != "available" && flags.sort_by != "capacity")
    return Error(Code::bad_request, "--sort-by accepts only used, available or capacity");
  Session* session = TRY(commands.session());
  json::value nodes = TRY(session->json({.path = session->path(schema::catalog().of(kNode), "")}));
  std::vector<VolumeUsage> usages;
  int status = 0;
  for (const json::value& node : items_of(nodes)) {
    std::string name(metadata_of(node).name());
    auto metrics = session->text({.path = session->path(schema::catalog().of(kNode), "", name, "proxy") + "/metrics"});
    if (!metrics) {
      std::fprintf(stderr, "error: node %s: %s\n", name.c_str(), metrics.error().text().c_str());
      status = 1;
      continue;
    }
    for (VolumeUsage& usage : volume_usages(*metrics)) usages.push_back(std::move(usage));
  }
  std::erase_if(usages, [&](const VolumeUsage& usage) {
    return (!flags.all_namespaces && usage.ns != session->ns()) || (!flags.name.empty() && usage.claim != flags.name);
  });
  if (usages.empty() && status == 0) {
    if (!flags.name.empty()) return Error(Code::not_found, "no pod that runs has a volume of the claim " + quoted(flags.name));
    std::fputs(
        flags.all_namespaces ? "No resources found\n" : ("No resources found in " + session->ns() + " namespace.\n").c_str(),
        stderr);
    return 0;
  }
  out(print_volume_usages(std::move(usages), {flags.all_namespaces, !flags.no_headers, flags.sort_by}));
  return status;
}

void add_shared(Command command, TopFlags& flags) {
  command.add_option("-l,--selector", flags.selector, "label selector");
  command.add_option("--sort-by", flags.sort_by, "cpu or memory");
  command.add_flag("--no-headers", flags.no_headers, "rows only");
  command.add_flag("--show-swap", flags.show_swap, "swap memory too");
  command.add_flag("--use-protocol-buffers", flags.protobuf, "for kubectl's sake: changes nothing");
}

}  // namespace

void add_top(Commands& commands) {
  Command top = commands.add("top", "What nodes and pods use: cpu and memory; how full volumes are");
  auto pod_flags = std::make_shared<TopFlags>();
  Command pods = commands.add("pod", "What pods use", top);
  pods.alias("pods").alias("po");
  pods.add_option("name", pod_flags->name, "POD");
  pods.add_option("more", pod_flags->more_names, "none").hide();
  add_shared(pods, *pod_flags);
  pods.add_option("--field-selector", pod_flags->field_selector, "field selector");
  pods.add_flag("-A,--all-namespaces", pod_flags->all_namespaces, "in all namespaces");
  pods.add_flag("--containers", pod_flags->containers, "each container by itself");
  pods.add_flag("--sum", pod_flags->sum, "and all together");
  commands.on(pods, [&commands, pod_flags] { return run_pods(commands, *pod_flags); });

  auto node_flags = std::make_shared<TopFlags>();
  Command nodes = commands.add("node", "What nodes use", top);
  nodes.alias("nodes").alias("no");
  nodes.add_option("name", node_flags->name, "NODE");
  nodes.add_option("more", node_flags->more_names, "none").hide();
  add_shared(nodes, *node_flags);
  nodes.add_flag("--show-capacity", node_flags->show_capacity, "as a part of what nodes have, not of what pods may use");
  commands.on(nodes, [&commands, node_flags] { return run_nodes(commands, *node_flags); });

  auto volume_flags = std::make_shared<TopFlags>();
  Command volumes = commands.add("volumes", "How full the volumes of claims are that pods have", top);
  volumes.alias("volume").alias("pvc");
  volumes.add_option("name", volume_flags->name, "CLAIM");
  volumes.add_flag("-A,--all-namespaces", volume_flags->all_namespaces, "in all namespaces");
  volumes.add_option("--sort-by", volume_flags->sort_by, "used, available or capacity");
  volumes.add_flag("--no-headers", volume_flags->no_headers, "rows only");
  commands.on(volumes, [&commands, volume_flags] { return run_volumes(commands, *volume_flags); });
  commands.on(top, [top]() -> Result<int> { return tell(help_of(top, terminal_width())), 1; });
}

}  // namespace coracle::ctl
