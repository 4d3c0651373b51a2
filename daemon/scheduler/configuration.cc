// SPDX-License-Identifier: Apache-2.0
// Parses a KubeSchedulerConfiguration. See configuration.h.
//   profile: defaults ─ disabled + enabled (multiPoint, then each point) ─▶ plugins by extension point ─▶ plugins with their args
#include "daemon/scheduler/configuration.h"

#include <algorithm>
#include <functional>

#include "daemon/scheduler/plugins/plugins.h"
#include "runtime/base/text.h"
#include "store/object/quantity.h"
#include "store/object/yaml.h"

namespace coracle::scheduler {
namespace {

Error wrong(const std::string& field, std::string_view what) { return Error(Code::invalid, field + ": " + std::string(what)); }

// ---- strict parsing ----

// Checks that the object has only these members.
Result<void> check_fields(const json::value& value, const std::string& field, std::initializer_list<std::string_view> known) {
  const json::object* object = value.if_object();
  if (!object) return wrong(field, "must be an object");
  for (const auto& [name, member] : *object)
    if (std::ranges::find(known, std::string_view(name)) == known.end())
      return wrong((field.empty() ? "" : field + ".") + std::string(name), "unknown field");
  return {};
}

Result<int64_t> integer(const json::value& root, const std::string& name, const std::string& field, int64_t absent, int64_t least,
                        int64_t most) {
  const json::value* value = find(root, name);
  if (!value || value->is_null()) return absent;
  if (!value->is_int64() || value->get_int64() < least || value->get_int64() > most)
    return wrong(field + name,
                 "must be a number from " + std::to_string(least) + " to " + std::to_string(most) + ", is " + to_text(*value));
  return value->get_int64();
}

Result<std::vector<ResourceWeight>> resources_of(const json::value& list, const std::string& field) {
  std::vector<ResourceWeight> out;
  const json::array* array = list.if_array();
  if (!array) return wrong(field, "must be a list");
  for (const json::value& one : *array) {
    TRY(check_fields(one, field, {"name", "weight"}));
    int64_t weight = TRY(integer(one, "weight", field + ".", 1, 1, 100));
    out.push_back({std::string(get_string(one, "name")), weight});
    if (out.back().name.empty()) return wrong(field + ".name", "required");
  }
  return out;
}

Result<std::set<std::string>> names_of(const json::value& root, std::string_view name, const std::string& field) {
  std::set<std::string> out;
  const json::value* value = find(root, name);
  if (!value || value->is_null()) return out;
  if (!value->is_array()) return wrong(field + std::string(name), "must be a list of names");
  for (const json::value& one : value->get_array()) {
    if (!one.is_string()) return wrong(field + std::string(name), "must be a list of names");
    out.emplace(one.get_string());
  }
  return out;
}

// ---- plugins and their args ----

struct AllArgs {
  FitArgs fit;
  BalancedAllocationArgs balanced;
  NodeAffinityArgs node_affinity;
  InterPodAffinityArgs inter_pod_affinity;
  PodTopologySpreadArgs spread;
  PreemptionArgs preemption;
  VolumeBindingArgs volume_binding;
};

struct Known {
  std::string_view name;
  std::function<std::unique_ptr<Plugin>(const AllArgs&)> make;
  int64_t weight = 0;  // in the default profile's multiPoint
  bool by_default = true;
};

// In the order of Kubernetes' default profile.
const std::vector<Known>& known_plugins() {
  static const std::vector<Known> table = {
      {"SchedulingGates", [](const AllArgs&) { return make_scheduling_gates(); }},
      {"PrioritySort", [](const AllArgs&) { return make_priority_sort(); }},
      {"NodeUnschedulable", [](const AllArgs&) { return make_node_unschedulable(); }},
      {"NodeName", [](const AllArgs&) { return make_node_name(); }},
      {"TaintToleration", [](const AllArgs&) { return make_taint_toleration(); }, 3},
      {"NodeAffinity", [](const AllArgs& args) { return make_node_affinity(args.node_affinity); }, 2},
      {"NodePorts", [](const AllArgs&) { return make_node_ports(); }},
      {"NodeResourcesFit", [](const AllArgs& args) { return make_node_resources_fit(args.fit); }, 1},
      {"VolumeRestrictions", [](const AllArgs&) { return make_volume_restrictions(); }},
      {"NodeVolumeLimits", [](const AllArgs&) { return make_node_volume_limits(); }},
      {"VolumeBinding", [](const AllArgs&) { return make_volume_binding(); }},
      {"VolumeZone", [](const AllArgs&) { return make_volume_zone(); }},
      {"PodTopologySpread", [](const AllArgs& args) { return make_pod_topology_spread(args.spread); }, 2},
      {"InterPodAffinity", [](const AllArgs& args) { return make_inter_pod_affinity(args.inter_pod_affinity); }, 2},
      {"DynamicResources", [](const AllArgs&) { return make_dynamic_resources(); }},
      {"DefaultPreemption", [](const AllArgs& args) { return make_default_preemption(args.preemption); }},
      {"NodeResourcesBalancedAllocation", [](const AllArgs& args) { return make_balanced_allocation(args.balanced); }, 1},
      {"ImageLocality", [](const AllArgs&) { return make_image_locality(); }, 1},
      {"DefaultBinder", [](const AllArgs&) { return make_default_binder(); }},
      {"SelectorSpread", [](const AllArgs&) { return make_selector_spread(); }, 1, false},
      {"NodePreferAvoidPods", [](const AllArgs&) { return make_node_prefer_avoid_pods(); }, 10000, false},
  };
  return table;
}

const Known* known_plugin(std::string_view name) {
  for (const Known& one : known_plugins())
    if (one.name == name) return &one;
  return nullptr;
}

Result<void> read_fit(AllArgs& all, const json::value& args, const std::string& field) {
  TRY(check_fields(args, field, {"apiVersion", "kind", "ignoredResources", "ignoredResourceGroups", "scoringStrategy"}));
  all.fit.ignored_resources = TRY(names_of(args, "ignoredResources", field + "."));
  all.fit.ignored_groups = TRY(names_of(args, "ignoredResourceGroups", field + "."));
  const json::value* strategy = find(args, "scoringStrategy");
  if (!strategy) return {};
  std::string where = field + ".scoringStrategy";
  TRY(check_fields(*strategy, where, {"type", "resources", "requestedToCapacityRatio"}));
  std::string_view type = get_string(*strategy, "type");
  if (type.empty() || type == "LeastAllocated") all.fit.strategy = FitArgs::Strategy::least_allocated;
  else if (type == "MostAllocated") all.fit.strategy = FitArgs::Strategy::most_allocated;
  else if (type == "RequestedToCapacityRatio") all.fit.strategy = FitArgs::Strategy::requested_to_capacity_ratio;
  else return wrong(where + ".type", "must be LeastAllocated, MostAllocated or RequestedToCapacityRatio");
  if (const json::value* resources = find(*strategy, "resources"))
    all.fit.resources = TRY(resources_of(*resources, where + ".resources"));
  if (const json::value* ratio = find(*strategy, "requestedToCapacityRatio")) {
    TRY(check_fields(*ratio, where + ".requestedToCapacityRatio", {"shape"}));
    for (const json::value& point : get_array(*ratio, "shape")) {
      std::string shape = where + ".requestedToCapacityRatio.shape";
      TRY(check_fields(point, shape, {"utilization", "score"}));
      int64_t utilization = TRY(integer(point, "utilization", shape + ".", 0, 0, 100));
      int64_t score = TRY(integer(point, "score", shape + ".", 0, 0, 10));
      if (!all.fit.shape.empty() && utilization <= all.fit.shape.back().first) return wrong(shape, "utilization must rise");
      all.fit.shape.emplace_back(utilization, score);
    }
  }
  if (all.fit.strategy == FitArgs::Strategy::requested_to_capacity_ratio && all.fit.shape.empty())
    return wrong(where + ".requestedToCapacityRatio.shape", "at least one point is needed");
  return {};
}

Result<void> read_balanced(AllArgs& all, const json::value& args, const std::string& field) {
  TRY(check_fields(args, field, {"apiVersion", "kind", "resources"}));
  if (const json::value* resources = find(args, "resources"))
    all.balanced.resources = TRY(resources_of(*resources, field + ".resources"));
  for (const ResourceWeight& one : all.balanced.resources)
    if (one.weight != 1) return wrong(field + ".resources.weight", "must be 1");
  return {};
}

Result<void> read_node_affinity(AllArgs& all, const json::value& args, const std::string& field) {
  TRY(check_fields(args, field, {"apiVersion", "kind", "addedAffinity"}));
  if (const json::value* added = find(args, "addedAffinity")) {
    TRY(check_fields(*added, field + ".addedAffinity",
                     {"requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"}));
    all.node_affinity.added = *added;
  }
  return {};
}

Result<void> read_inter_pod_affinity(AllArgs& all, const json::value& args, const std::string& field) {
  TRY(check_fields(args, field, {"apiVersion", "kind", "hardPodAffinityWeight", "ignorePreferredTermsOfExistingPods"}));
  all.inter_pod_affinity.hard_pod_affinity_weight = TRY(integer(args, "hardPodAffinityWeight", field + ".", 1, 0, 100));
  all.inter_pod_affinity.ignore_preferred_terms_of_existing_pods = get_bool(args, "ignorePreferredTermsOfExistingPods");
  return {};
}

Result<void> read_pod_topology_spread(AllArgs& all, const json::value& args, const std::string& field) {
  TRY(check_fields(args, field, {"apiVersion", "kind", "defaultConstraints", "defaultingType"}));
  std::string_view type = get_string(args, "defaultingType");
  const json::array& constraints = get_array(args, "defaultConstraints");
  if (!type.empty() && type != "System" && type != "List") return wrong(field + ".defaultingType", "must be System or List");
  all.spread.system_defaults = type != "List";
  if (all.spread.system_defaults && !constraints.empty())
    return wrong(field + ".defaultingType", "must be List when there are defaultConstraints");
  for (const json::value& one : constraints) {
    std::string where = field + ".defaultConstraints";
    TRY(check_fields(one, where, {"maxSkew", "topologyKey", "whenUnsatisfiable"}));  // selectors are derived from the pod
    (void)TRY(integer(one, "maxSkew", where + ".", 0, 1, INT32_MAX));
    if (!find(one, "maxSkew")) return wrong(where + ".maxSkew", "required");
    if (get_string(one, "topologyKey").empty()) return wrong(where + ".topologyKey", "required");
    std::string_view when = get_string(one, "whenUnsatisfiable");
    if (when != "DoNotSchedule" && when != "ScheduleAnyway")
      return wrong(where + ".whenUnsatisfiable", "must be DoNotSchedule or ScheduleAnyway");
  }
  all.spread.constraints = constraints;
  return {};
}

Result<void> read_preemption(AllArgs& all, const json::value& args, const std::string& field) {
  TRY(check_fields(args, field, {"apiVersion", "kind", "minCandidateNodesPercentage", "minCandidateNodesAbsolute"}));
  all.preemption.candidates_min_percentage = TRY(integer(args, "minCandidateNodesPercentage", field + ".", 10, 0, 100));
  all.preemption.candidates_min = TRY(integer(args, "minCandidateNodesAbsolute", field + ".", 100, 0, INT32_MAX));
  if (all.preemption.candidates_min_percentage == 0 && all.preemption.candidates_min == 0)
    return wrong(field, "minCandidateNodesPercentage and minCandidateNodesAbsolute cannot both be zero");
  return {};
}

Result<void> read_volume_binding(AllArgs& all, const json::value& args, const std::string& field) {
  TRY(check_fields(args, field, {"apiVersion", "kind", "bindTimeoutSeconds"}));
  all.volume_binding.bind_timeout_seconds = TRY(integer(args, "bindTimeoutSeconds", field + ".", 600, 0, INT32_MAX));
  return {};
}

Result<AllArgs> read_args(const json::array& configs, const std::string& field) {
  using Read = Result<void> (*)(AllArgs&, const json::value&, const std::string&);
  static const std::map<std::string_view, Read> readers = {
      {"NodeResourcesFit", read_fit},
      {"NodeResourcesBalancedAllocation", read_balanced},
      {"NodeAffinity", read_node_affinity},
      {"InterPodAffinity", read_inter_pod_affinity},
      {"PodTopologySpread", read_pod_topology_spread},
      {"DefaultPreemption", read_preemption},
      {"VolumeBinding", read_volume_binding},
  };
  AllArgs all;
  std::set<std::string_view> seen;
  for (size_t i = 0; i < configs.size(); i++) {
    std::string where = field + "[" + std::to_string(i) + "]";
    TRY(check_fields(configs[i], where, {"name", "args"}));
    std::string_view name = get_string(configs[i], "name");
    if (!known_plugin(name)) return wrong(where + ".name", "unknown plugin " + quoted(name));
    if (!seen.insert(name).second) return wrong(where + ".name", "repeated config for plugin " + std::string(name));
    const json::value* args = find(configs[i], "args");
    if (!args) continue;
    auto reader = readers.find(name);
    if (reader == readers.end()) return wrong(where + ".args", "plugin " + std::string(name) + " takes no arguments");
    std::string_view kind = get_string(*args, "kind");
    if (!kind.empty() && kind != std::string(name) + "Args")
      return wrong(where + ".args.kind", "must be " + std::string(name) + "Args");
    TRY(reader->second(all, *args, where + ".args"));
  }
  return all;
}

// ---- plugins by extension point ----

struct Named {
  std::string name;
  int64_t weight = 0;  // 0: the plugin's default
};

struct PointSet {
  std::vector<Named> enabled;
  std::set<std::string> disabled;  // "*": all default plugins
};

struct PointName {
  std::string_view name;
  Plugin::Point point;
};
constexpr PointName kPoints[] = {
    {"preEnqueue", Plugin::pre_enqueue_point},
    {"queueSort", Plugin::queue_sort_point},
    {"preFilter", Plugin::pre_filter_point},
    {"filter", Plugin::filter_point},
    {"postFilter", Plugin::post_filter_point},
    {"preScore", Plugin::pre_score_point},
    {"score", Plugin::score_point},
    {"reserve", Plugin::reserve_point},
    {"permit", Plugin::permit_point},
    {"preBind", Plugin::pre_bind_point},
    {"bind", Plugin::bind_point},
    {"postBind", Plugin::post_bind_point},
};

Result<PointSet> read_set(const json::value& plugins, std::string_view point, const std::string& field) {
  PointSet set;
  const json::value* value = find(plugins, point);
  if (!value || value->is_null()) return set;
  std::string where = field + "." + std::string(point);
  TRY(check_fields(*value, where, {"enabled", "disabled"}));
  for (std::string_view list : {"enabled", "disabled"}) {
    const json::array& entries = get_array(*value, list);
    for (size_t i = 0; i < entries.size(); i++) {
      std::string entry = where + "." + std::string(list) + "[" + std::to_string(i) + "]";
      TRY(check_fields(entries[i], entry, {"name", "weight"}));
      std::string name(get_string(entries[i], "name"));
      bool all = list == "disabled" && name == "*";
      if (!all && !known_plugin(name)) return wrong(entry + ".name", "unknown plugin " + quoted(name));
      int64_t weight = TRY(integer(entries[i], "weight", entry + ".", 0, 0, INT32_MAX));
      if (list == "disabled") set.disabled.insert(name);
      else if (std::ranges::find(set.enabled, name, &Named::name) != set.enabled.end())
        return wrong(entry + ".name", "plugin " + name + " is already registered");
      else set.enabled.push_back({name, weight});
    }
  }
  return set;
}

bool has(const std::vector<Named>& list, const std::string& name) {
  return std::ranges::find(list, name, &Named::name) != list.end();
}

// The defaults without the disabled plugins; reconfigured ones keep their place, new ones follow.
std::vector<Named> merged(const std::vector<Named>& defaults, const PointSet& custom) {
  std::vector<Named> out;
  for (const Named& one : defaults) {
    if (custom.disabled.contains("*") || custom.disabled.contains(one.name)) continue;
    auto anew = std::ranges::find(custom.enabled, one.name, &Named::name);
    out.push_back(anew == custom.enabled.end() ? one : *anew);
  }
  for (const Named& one : custom.enabled)
    if (!has(out, one.name)) out.push_back(one);
  return out;
}

std::vector<Named> at_point(const std::vector<Named>& everywhere, const PointSet& here, Plugin::Point point,
                            const std::map<std::string, uint32_t>& points) {
  std::vector<Named> out;
  for (const Named& one : here.enabled)
    if (has(everywhere, one.name)) out.push_back(one);
  if (!here.disabled.contains("*"))
    for (const Named& one : everywhere)
      if ((points.at(one.name) & point) && !here.disabled.contains(one.name) && !has(here.enabled, one.name)) out.push_back(one);
  for (const Named& one : here.enabled)
    if (!has(out, one.name)) out.push_back(one);
  return out;
}

Result<std::shared_ptr<const Framework>> build(const json::value& profile, const std::string& field, int64_t percentage_of_all,
                                               Configuration& configuration) {
  TRY(check_fields(profile, field, {"schedulerName", "plugins", "pluginConfig", "percentageOfNodesToScore"}));
  std::string name(get_string(profile, "schedulerName"));
  if (name.empty()) name = kDefaultSchedulerName;
  int64_t percentage = TRY(integer(profile, "percentageOfNodesToScore", field + ".", percentage_of_all, 0, 100));
  AllArgs args = TRY(read_args(get_array(profile, "pluginConfig"), field + ".pluginConfig"));
  configuration.volumes_bound_within = std::chrono::seconds(args.volume_binding.bind_timeout_seconds);
  const json::value* plugins = find(profile, "plugins");
  json::value none = json::object{};
  if (!plugins || plugins->is_null()) plugins = &none;
  std::string where = field + ".plugins";
  TRY(check_fields(*plugins, where,
                   {"preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve", "permit",
                    "preBind", "bind", "postBind", "multiPoint"}));

  std::vector<Named> defaults;
  for (const Known& one : known_plugins())
    if (one.by_default) defaults.push_back({std::string(one.name), one.weight});
  PointSet multi = TRY(read_set(*plugins, "multiPoint", where));
  std::vector<Named> everywhere = merged(defaults, multi);

  std::map<std::string, uint32_t> points;  // of every known plugin
  std::map<std::string, size_t> numbers;   // of the plugins in use
  for (const Known& one : known_plugins()) points[std::string(one.name)] = one.make(args)->points();
  PluginLists lists;
  for (const PointName& one : kPoints) {
    PointSet here = TRY(read_set(*plugins, one.name, where));
    for (const Named& named : at_point(everywhere, here, one.point, points)) {
      if (!(points[named.name] & one.point))
        return wrong(where + "." + std::string(one.name),
                     "plugin " + quoted(named.name) + " does not extend " + std::string(one.name) + " plugin");
      auto [number, fresh] = numbers.try_emplace(named.name, lists.plugins.size());
      if (fresh) lists.plugins.push_back(known_plugin(named.name)->make(args));
      lists.at[one.point].push_back({number->second, named.weight ? named.weight : 1});
    }
  }
  for (const auto& [point, what] : {std::pair(Plugin::queue_sort_point, "queueSort"), std::pair(Plugin::bind_point, "bind")})
    if (lists.at[point].size() != 1) return wrong(where + "." + what, "exactly one plugin is needed");
  return std::make_shared<const Framework>(std::move(name), std::move(lists), int(percentage));
}

Result<Configuration> configuration_of(const json::value& root) {
  TRY(check_fields(root, "",
                   {"apiVersion", "kind", "parallelism", "leaderElection", "clientConnection", "healthzBindAddress",
                    "metricsBindAddress", "enableProfiling", "enableContentionProfiling", "percentageOfNodesToScore",
                    "podInitialBackoffSeconds", "podMaxBackoffSeconds", "profiles", "extenders", "delayCacheUntilActive"}));
  if (get_string(root, "apiVersion") != "kubescheduler.config.k8s.io/v1")
    return wrong("apiVersion", "must be kubescheduler.config.k8s.io/v1");
  if (get_string(root, "kind") != "KubeSchedulerConfiguration") return wrong("kind", "must be KubeSchedulerConfiguration");
  if (!get_array(root, "extenders").empty()) return wrong("extenders", "not supported");
  Configuration configuration;
  int64_t first = TRY(integer(root, "podInitialBackoffSeconds", "", 1, 1, INT32_MAX));
  int64_t longest = TRY(integer(root, "podMaxBackoffSeconds", "", 10, 1, INT32_MAX));
  if (longest < first) return wrong("podMaxBackoffSeconds", "must not be less than podInitialBackoffSeconds");
  configuration.backoff_first = std::chrono::seconds(first);
  configuration.backoff_longest = std::chrono::seconds(longest);
  int64_t percentage = TRY(integer(root, "percentageOfNodesToScore", "", 0, 0, 100));
  json::array profiles = get_array(root, "profiles");
  if (profiles.empty()) profiles.push_back(json::object{});
  for (size_t i = 0; i < profiles.size(); i++) {
    std::string field = "profiles[" + std::to_string(i) + "]";
    auto framework = TRY(build(profiles[i], field, percentage, configuration));
    for (const auto& other : configuration.profiles)
      if (other->scheduler_name() == framework->scheduler_name())
        return wrong(field + ".schedulerName", "duplicate value " + quoted(framework->scheduler_name()));
    configuration.profiles.push_back(std::move(framework));
  }
  return configuration;
}

}  // namespace

Result<Configuration> read_configuration(std::string_view text) {
  std::vector<json::value> documents = TRY(parse_yaml(text));
  if (documents.size() != 1) return wrong("", "one document is needed, there are " + std::to_string(documents.size()));
  return configuration_of(documents.front());
}

Configuration default_configuration() {
  return MUST(configuration_of({{"apiVersion", "kubescheduler.config.k8s.io/v1"}, {"kind", "KubeSchedulerConfiguration"}}));
}

}  // namespace coracle::scheduler
