// SPDX-License-Identifier: Apache-2.0
// How describe shows nodes, namespaces, quotas and limit ranges: what there is of each resource, and what is used. See
// describe.h.
#include <algorithm>
#include <map>
#include <set>

#include "ctl/describe.h"
#include "ctl/jsonpath.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/schema/amounts.h"
#include "store/schema/table.h"

namespace coracle::ctl {
namespace {

// ---- nodes ----

std::string roles_text(const json::value& node) {
  constexpr std::string_view kPrefix = "node-role.kubernetes.io/";
  std::set<std::string> roles;
  for (const auto& [key, value] : metadata_of(node).labels()) {
    std::string_view label = key;
    if (label.starts_with(kPrefix) && label.size() > kPrefix.size()) roles.emplace(label.substr(kPrefix.size()));
    if (label == "kubernetes.io/role" && !jsonpath_text(value).empty()) roles.insert(jsonpath_text(value));
  }
  return roles.empty() ? "<none>" : join(std::vector<std::string>(roles.begin(), roles.end()), ",");
}

void put_taints(std::string& text, view::Range<view::Taint> taints) {
  if (taints.empty()) return put(text, 0, "Taints", "<none>");
  auto order = [](view::Taint taint) { return std::string(taint.effect()).append(",").append(taint.key()); };
  std::vector<view::Taint> sorted(taints.begin(), taints.end());
  std::stable_sort(sorted.begin(), sorted.end(), [&](view::Taint a, view::Taint b) { return order(a) < order(b); });
  text += "Taints:";
  for (view::Taint taint : sorted) {
    std::string value(taint.value()), effect(taint.effect());
    text += "\t" + std::string(taint.key()) + (value.empty() ? "" : "=" + value) +
            (value.empty() && effect.empty() ? "" : ":" + effect) + "\n";
  }
}

void put_lease(std::string& text, const Related& related) {
  if (!related.lease_error.empty()) return put(text, 0, "Lease", "Failed to get lease: " + related.lease_error);
  text += "Lease:\n";
  view::LeaseSpec lease = view::Lease(related.lease).spec();
  put(text, 1, "HolderIdentity", or_else(lease.holder_identity(), "<unset>"));
  put(text, 1, "AcquireTime", or_else(time_text(lease.acquire_time()), "<unset>"));
  put(text, 1, "RenewTime", or_else(time_text(lease.renew_time()), "<unset>"));
}

void put_amounts(std::string& text, std::string_view title, const quota::Amounts& amounts) {
  if (amounts.empty()) return;
  text.append(title).append(":\n");
  for (const auto& [name, amount] : amounts) put(text, 1, name, amount.text());
}

constexpr size_t kPoolsShown = 10;

// The devices that drivers offer on this node alone, by pools.
void put_device_pools(std::string& text, const std::vector<json::value>& slices) {
  struct Pool {
    std::string row;
    size_t slices = 0, devices = 0;
  };
  std::map<std::string, Pool> pools;
  for (const json::value& one : slices) {
    view::ResourceSliceSpec spec = view::ResourceSlice(one).spec();
    std::string driver(spec.driver()), name(spec.pool().name());
    Pool& pool = pools[driver + "/" + name];
    pool.row = driver + "\t" + name;
    ++pool.slices, pool.devices += spec.devices().size();
  }
  if (pools.empty()) return;
  text += "Node-Local ResourceSlices:\n  Driver\tPool\tSlices\tDevices\n  ------\t----\t------\t-------\n";
  size_t shown = 0;
  for (const auto& [key, pool] : pools) {
    if (shown++ == kPoolsShown) {
      text += "  ...and " + std::to_string(pools.size() - kPoolsShown) + " more pools\n";
      break;
    }
    text += "  " + pool.row + "\t" + std::to_string(pool.slices) + "\t" + std::to_string(pool.devices) + "\n";
  }
}

void put_system(std::string& text, view::NodeSystemInfo info) {
  text += "System Info:\n";
  for (auto [label, value] :
       {std::pair{"Machine ID", info.machine_id()}, std::pair{"System UUID", info.system_uuid()},
        std::pair{"Boot ID", info.boot_id()}, std::pair{"Kernel Version", info.kernel_version()},
        std::pair{"OS Image", info.os_image()}, std::pair{"Operating System", info.operating_system()},
        std::pair{"Architecture", info.architecture()}, std::pair{"Container Runtime Version", info.container_runtime_version()},
        std::pair{"Kubelet Version", info.kubelet_version()}})
    put(text, 1, label, value);
}

Quantity amount_in(const quota::Amounts& amounts, std::string_view name) {
  auto found = amounts.find(name);
  return found == amounts.end() ? Quantity() : found->second;
}

// "250m (12%)".
std::string share_text(const Quantity& amount, const quota::Amounts& allocatable, std::string_view name) {
  bool cpu = name == "cpu";
  Quantity whole = amount_in(allocatable, name);
  double total = double(cpu ? whole.milli_value() : whole.value()), part = double(cpu ? amount.milli_value() : amount.value());
  return amount.text() + " (" + std::to_string(total == 0 ? 0 : int64_t(part / total * 100)) + "%)";
}

void hold_resources(json::value& container, view::ContainerStatus status, bool resize_is_infeasible) {
  quota::Amounts requests, limits;
  if (!resize_is_infeasible) {
    view::ResourceRequirements wanted = view::Container(container).resources();
    requests = quota::amounts_of(wanted.requests()), limits = quota::amounts_of(wanted.limits());
  }
  quota::raise(requests, quota::amounts_of(status.resources().requests()));
  quota::raise(requests, quota::amounts_of(status.allocated_resources()));
  quota::raise(limits, quota::amounts_of(status.resources().limits()));
  make(container, "resources.requests") = quota::to_json(requests);
  make(container, "resources.limits") = quota::to_json(limits);
}

// The pod whose containers ask for what they hold, where that is more: a resize may be under way. Source: component-helpers
// resource, UseStatusResources.
json::value with_held_resources(json::value pod) {
  json::value* spec = pod.is_object() ? pod.get_object().if_contains("spec") : nullptr;
  if (!spec || !spec->is_object()) return pod;
  const json::value read = pod;
  view::PodStatus status = view::Pod(read).status();
  bool resize_is_infeasible = false;
  for (view::PodCondition condition : status.conditions())
    if (condition.type() == "PodResizePending") resize_is_infeasible = condition.reason() == "Infeasible";
  std::map<std::string_view, view::ContainerStatus> holders;
  for (const auto& statuses : {status.container_statuses(), status.init_container_statuses()})
    for (view::ContainerStatus one : statuses)
      if (one.has_resources()) holders.emplace(one.name(), one);
  for (const char* list : {"containers", "initContainers"}) {
    json::value* containers = spec->get_object().if_contains(list);
    if (!containers || !containers->is_array()) continue;
    for (json::value& container : containers->get_array()) {
      auto holder = holders.find(view::Container(container).name());
      bool runs_on = list == std::string_view("containers") || view::Container(container).restart_policy() == "Always";
      if (holder != holders.end() && runs_on) hold_resources(container, holder->second, resize_is_infeasible);
    }
  }
  return pod;
}

void put_pods_of_node(std::string& text, view::NodeStatus node, const std::vector<json::value>& pods, WallTime now) {
  quota::Amounts allocatable = quota::amounts_of(node.allocatable()), requests, limits;
  if (allocatable.empty()) allocatable = quota::amounts_of(node.capacity());
  put(text, 0, "Non-terminated Pods", "(" + std::to_string(pods.size()) + " in total)");
  text +=
      "  Namespace\tName\t\tCPU Requests\tCPU Limits\tMemory Requests\tMemory Limits\tAge\n"
      "  ---------\t----\t\t------------\t----------\t---------------\t-------------\t---\n";
  for (const auto& pod : pods) {
    const json::value held = with_held_resources(pod);
    quota::Amounts wants = quota::pod_requests(view::Pod(held), true), most = quota::pod_limits(view::Pod(held), true);
    text += "  " + std::string(metadata_of(pod).namespace_()) + "\t" + std::string(metadata_of(pod).name()) + "\t";
    for (const char* name : {"cpu", "memory"})
      for (const auto* amounts : {&wants, &most}) text += "\t" + share_text(amount_in(*amounts, name), allocatable, name);
    text += "\t" + schema::human_age(metadata_of(pod).creation_timestamp(), now) + "\n";
    quota::add(requests, quota::pod_requests(view::Pod(pod), true));  // as kubectl: what was asked for
    quota::add(limits, quota::pod_limits(view::Pod(pod), true));
  }
  text +=
      "Allocated resources:\n  (Total limits may be over 100 percent, i.e., overcommitted.)\n"
      "  Resource\tRequests\tLimits\n  --------\t--------\t------\n";
  std::vector<std::string> shares = {"cpu", "memory", "ephemeral-storage"}, others;
  for (const auto& [name, amount] : allocatable)
    if (name.starts_with(quota::kHugePages)) shares.push_back(name);
    else if (name != "pods" && std::find(shares.begin(), shares.end(), name) == shares.end()) others.push_back(name);
  for (const auto& name : shares)
    text += "  " + name + "\t" + share_text(amount_in(requests, name), allocatable, name) + "\t" +
            share_text(amount_in(limits, name), allocatable, name) + "\n";
  for (const auto& name : others)
    text += "  " + name + "\t" + amount_in(requests, name).text() + "\t" + amount_in(limits, name).text() + "\n";
}

std::string node_text(const json::value& node, const Related& related, WallTime now) {
  view::NodeSpec spec = view::Node(node).spec();
  view::NodeStatus status = view::Node(node).status();
  std::string text;
  put(text, 0, "Name", metadata_of(node).name());
  put(text, 0, "Roles", roles_text(node));
  put_marks(text, node);
  put(text, 0, "CreationTimestamp", time_text(metadata_of(node).creation_timestamp()));
  put_taints(text, spec.taints());
  put(text, 0, "Unschedulable", spec.unschedulable() ? "true" : "false");
  put_lease(text, related);
  std::vector<TimedCondition> conditions;
  for (view::NodeCondition one : status.conditions())
    conditions.push_back({view::Condition(one.raw()), one.last_heartbeat_time()});
  put_timed_conditions(text, "LastHeartbeatTime", conditions);
  text += "Addresses:\n";
  for (view::NodeAddress address : status.addresses()) put(text, 1, address.type(), address.address());
  put_amounts(text, "Capacity", quota::amounts_of(status.capacity()));
  put_amounts(text, "Allocatable", quota::amounts_of(status.allocatable()));
  put_device_pools(text, related.device_slices);
  put_system(text, status.node_info());
  if (!spec.pod_cidr().empty()) put(text, 0, "PodCIDR", spec.pod_cidr());
  if (!spec.pod_cidrs().empty()) put(text, 0, "PodCIDRs", join(strings(spec.pod_cidrs()), ","));
  if (!spec.provider_id().empty()) put(text, 0, "ProviderID", spec.provider_id());
  if (related.pods.error.empty()) put_pods_of_node(text, status, related.pods.items, now);
  else put(text, 0, "Pods", "not authorized");
  return text;
}

// ---- quotas and limits ----

const char* scope_text(std::string_view scope) {
  return scope == "Terminating" ? "Matches all pods that have an active deadline. These pods have a limited lifespan on a node "
                                  "before being actively terminated by the system."
         : scope == "NotTerminating" ? "Matches all pods that do not have an active deadline. These pods usually include long "
                                       "running pods whose container command is not expected to terminate."
         : scope == "BestEffort"
             ? "Matches all pods that do not have resource requirements set. These pods have a best effort quality of service."
         : scope == "NotBestEffort" ? "Matches all pods that have at least one resource requirement set. These pods have a "
                                      "burstable or guaranteed quality of service."
                                    : nullptr;
}

void put_scopes(std::string& text, size_t level, std::string_view bullet, view::ResourceQuota quota) {
  std::vector<std::string> scopes = strings(quota.spec().scopes());
  std::sort(scopes.begin(), scopes.end());
  if (!scopes.empty()) put(text, level, "Scopes", join(scopes, ", "));
  for (const auto& scope : scopes)
    if (const char* what = scope_text(scope)) text.append(bullet).append(what).append("\n");
}

// `alike`: what is used in the notation of the limit, rounded up to integers where that takes another one.
void put_usage(std::string& text, std::string_view indent, view::ResourceQuota quota, bool alike) {
  quota::Amounts all = quota::amounts_of(quota.status().used());
  for (const auto& [name, hard] : quota::amounts_of(quota.status().hard())) {
    Quantity used = amount_in(all, name);
    if (alike && used.notation() != hard.notation())
      used = hard.notation() == Quantity::Notation::binary ? Quantity::of(Bytes(used.value())) : Quantity::of_count(used.value());
    text.append(indent).append(name + "\t" + used.text() + "\t" + hard.text() + "\n");
  }
}

std::string quota_text(const json::value& object) {
  view::ResourceQuota quota(object);
  std::string text;
  put_name(text, object);
  put_scopes(text, 0, " * ", quota);
  text += "Resource\tUsed\tHard\n--------\t----\t----\n";
  put_usage(text, "", quota, true);
  return text;
}

void put_limits(std::string& text, std::string_view indent, view::LimitRange range) {
  for (view::LimitRangeItem limit : range.spec().limits()) {
    const json::object* const columns[] = {&limit.min(), &limit.max(), &limit.default_request(), &limit.default_(),
                                           &limit.max_limit_request_ratio()};
    std::set<std::string> names;
    for (const json::object* column : columns)
      for (const auto& [name, amount] : *column) names.emplace(name);
    for (const auto& name : names) {
      text.append(indent).append(limit.type()).append("\t").append(name);
      for (const json::object* column : columns) text += "\t" + or_else(amount_text(column->if_contains(name)), "-");
      text += "\n";
    }
  }
}

std::string limits_text(const json::value& object) {
  std::string text;
  put_name(text, object);
  text +=
      "Type\tResource\tMin\tMax\tDefault Request\tDefault Limit\tMax Limit/Request Ratio\n"
      "----\t--------\t---\t---\t---------------\t-------------\t-----------------------\n";
  put_limits(text, "", view::LimitRange(object));
  return text;
}

// ---- namespaces ----

std::string namespace_text(const json::value& object, const Related& related) {
  std::string text;
  put(text, 0, "Name", metadata_of(object).name());
  put_marks(text, object);
  put(text, 0, "Status", view::Namespace(object).status().phase());
  put_conditions_with_time(text, object);
  if (const std::string& error = related.quotas.error; !error.empty()) text += "\nResource Quotas " + unread_text(error) + "\n";
  else text += related.quotas.items.empty() ? "\nNo resource quota.\n" : "\nResource Quotas\n";
  std::vector<view::ResourceQuota> quotas(related.quotas.items.begin(), related.quotas.items.end());
  std::stable_sort(quotas.begin(), quotas.end(), [](auto a, auto b) { return a.metadata().name() < b.metadata().name(); });
  for (view::ResourceQuota quota : quotas) {
    put(text, 1, "Name", quota.metadata().name());
    put_scopes(text, 1, "  * ", quota);
    text += "  Resource\tUsed\tHard\n  --------\t---\t---\n";
    put_usage(text, "  ", quota, false);
  }
  if (const std::string& error = related.limits.error; !error.empty())
    return text + "\nResource Limits " + unread_text(error) + "\n";
  text += related.limits.items.empty() ? "\nNo LimitRange resource.\n"
                                       : "\nResource Limits\n Type\tResource\tMin\tMax\tDefault Request\tDefault Limit\tMax "
                                         "Limit/Request Ratio\n"
                                         " ----\t--------\t---\t---\t---------------\t-------------\t-----------------------\n";
  for (const auto& range : related.limits.items) put_limits(text, " ", view::LimitRange(range));
  return text;
}

}  // namespace

std::string machine_text(const json::value& object, const Related& related, WallTime now) {
  std::string_view kind = kind_in(object);
  if (kind == "Node") return node_text(object, related, now);
  if (kind == "Namespace") return namespace_text(object, related);
  if (kind == "ResourceQuota") return quota_text(object);
  if (kind == "LimitRange") return limits_text(object);
  return {};
}

}  // namespace coracle::ctl
