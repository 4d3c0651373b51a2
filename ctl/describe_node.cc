// SPDX-License-Identifier: Apache-2.0
// How describe shows nodes, namespaces, quotas and limit ranges: what there is of each resource, and what is used. See
// describe.h.
#include <algorithm>
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
  for (const auto& [key, value] : get_object(node, "metadata.labels")) {
    std::string_view label = key;
    if (label.starts_with(kPrefix) && label.size() > kPrefix.size()) roles.emplace(label.substr(kPrefix.size()));
    if (label == "kubernetes.io/role" && !jsonpath_text(value).empty()) roles.insert(jsonpath_text(value));
  }
  return roles.empty() ? "<none>" : join(std::vector<std::string>(roles.begin(), roles.end()), ",");
}

void put_taints(std::string& text, const json::array& taints) {
  if (taints.empty()) return put(text, 0, "Taints", "<none>");
  std::vector<json::value> sorted(taints.begin(), taints.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return text_at(a, "effect") + "," + text_at(a, "key") < text_at(b, "effect") + "," + text_at(b, "key");
  });
  text += "Taints:";
  for (const auto& taint : sorted) {
    std::string value = text_at(taint, "value"), effect = text_at(taint, "effect");
    text += "\t" + text_at(taint, "key") + (value.empty() ? "" : "=" + value) +
            (value.empty() && effect.empty() ? "" : ":" + effect) + "\n";
  }
}

void put_lease(std::string& text, const Related& related) {
  if (!related.lease_error.empty()) return put(text, 0, "Lease", "Failed to get lease: " + related.lease_error);
  text += "Lease:\n";
  put(text, 1, "HolderIdentity", or_else(text_at(related.lease, "spec.holderIdentity"), "<unset>"));
  for (auto [field, label] : {std::pair{"spec.acquireTime", "AcquireTime"}, std::pair{"spec.renewTime", "RenewTime"}})
    put(text, 1, label, or_else(time_text(text_at(related.lease, field)), "<unset>"));
}

void put_amounts(std::string& text, std::string_view title, const quota::Amounts& amounts) {
  if (amounts.empty()) return;
  text.append(title).append(":\n");
  for (const auto& [name, amount] : amounts) put(text, 1, name, amount.text());
}

void put_system(std::string& text, const json::value& node) {
  text += "System Info:\n";
  for (auto [field, label] :
       {std::pair{"machineID", "Machine ID"}, std::pair{"systemUUID", "System UUID"}, std::pair{"bootID", "Boot ID"},
        std::pair{"kernelVersion", "Kernel Version"}, std::pair{"osImage", "OS Image"},
        std::pair{"operatingSystem", "Operating System"}, std::pair{"architecture", "Architecture"},
        std::pair{"containerRuntimeVersion", "Container Runtime Version"}, std::pair{"kubeletVersion", "Kubelet Version"}})
    put(text, 1, label, text_at(node, std::string("status.nodeInfo.") + field));
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

void put_pods_of_node(std::string& text, const json::value& node, const std::vector<json::value>& pods, WallTime now) {
  quota::Amounts allocatable = quota::amounts_of(get_object(node, "status.allocatable")), requests, limits;
  if (allocatable.empty()) allocatable = quota::amounts_of(get_object(node, "status.capacity"));
  put(text, 0, "Non-terminated Pods", "(" + std::to_string(pods.size()) + " in total)");
  text +=
      "  Namespace\tName\t\tCPU Requests\tCPU Limits\tMemory Requests\tMemory Limits\tAge\n"
      "  ---------\t----\t\t------------\t----------\t---------------\t-------------\t---\n";
  for (const auto& pod : pods) {
    quota::Amounts wants = quota::pod_requests(view::Pod(pod), true), most = quota::pod_limits(view::Pod(pod), true);
    text += "  " + text_at(pod, "metadata.namespace") + "\t" + text_at(pod, "metadata.name") + "\t";
    for (const char* name : {"cpu", "memory"})
      for (const auto* amounts : {&wants, &most}) text += "\t" + share_text(amount_in(*amounts, name), allocatable, name);
    text += "\t" + schema::human_age(text_at(pod, "metadata.creationTimestamp"), now) + "\n";
    quota::add(requests, wants), quota::add(limits, most);
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
  std::string text;
  put(text, 0, "Name", text_at(node, "metadata.name"));
  put(text, 0, "Roles", roles_text(node));
  put_marks(text, node);
  put(text, 0, "CreationTimestamp", time_text(text_at(node, "metadata.creationTimestamp")));
  put_taints(text, get_array(node, "spec.taints"));
  put(text, 0, "Unschedulable", get_bool(node, "spec.unschedulable") ? "true" : "false");
  put_lease(text, related);
  put_node_conditions(text, node, "lastHeartbeatTime", "LastHeartbeatTime");
  text += "Addresses:\n";
  for (const auto& address : get_array(node, "status.addresses"))
    put(text, 1, text_at(address, "type"), text_at(address, "address"));
  put_amounts(text, "Capacity", quota::amounts_of(get_object(node, "status.capacity")));
  put_amounts(text, "Allocatable", quota::amounts_of(get_object(node, "status.allocatable")));
  put_system(text, node);
  if (std::string range = text_at(node, "spec.podCIDR"); !range.empty()) put(text, 0, "PodCIDR", range);
  if (auto ranges = get_strings(node, "spec.podCIDRs"); !ranges.empty()) put(text, 0, "PodCIDRs", join(ranges, ","));
  if (std::string provider = text_at(node, "spec.providerID"); !provider.empty()) put(text, 0, "ProviderID", provider);
  if (related.pods.error.empty()) put_pods_of_node(text, node, related.pods.items, now);
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

void put_scopes(std::string& text, size_t level, std::string_view bullet, const json::value& quota) {
  std::vector<std::string> scopes = get_strings(quota, "spec.scopes");
  std::sort(scopes.begin(), scopes.end());
  if (!scopes.empty()) put(text, level, "Scopes", join(scopes, ", "));
  for (const auto& scope : scopes)
    if (const char* what = scope_text(scope)) text.append(bullet).append(what).append("\n");
}

void put_usage(std::string& text, std::string_view indent, const json::value& quota) {
  quota::Amounts used = quota::amounts_of(get_object(quota, "status.used"));
  for (const auto& [name, hard] : quota::amounts_of(get_object(quota, "status.hard")))
    text.append(indent).append(name + "\t" + amount_in(used, name).text() + "\t" + hard.text() + "\n");
}

std::string quota_text(const json::value& quota) {
  std::string text;
  put_name(text, quota);
  put_scopes(text, 0, " * ", quota);
  text += "Resource\tUsed\tHard\n--------\t----\t----\n";
  put_usage(text, "", quota);
  return text;
}

void put_limits(std::string& text, std::string_view indent, const json::value& range) {
  for (const auto& limit : get_array(range, "spec.limits")) {
    constexpr const char* kColumns[] = {"min", "max", "defaultRequest", "default", "maxLimitRequestRatio"};
    std::set<std::string> names;
    for (const char* column : kColumns)
      for (const auto& [name, amount] : get_object(limit, column)) names.emplace(name);
    for (const auto& name : names) {
      text.append(indent).append(text_at(limit, "type") + "\t" + name);
      for (const char* column : kColumns) text += "\t" + or_else(amount_text(find_keys(limit, {column, name})), "-");
      text += "\n";
    }
  }
}

std::string limits_text(const json::value& range) {
  std::string text;
  put_name(text, range);
  text +=
      "Type\tResource\tMin\tMax\tDefault Request\tDefault Limit\tMax Limit/Request Ratio\n"
      "----\t--------\t---\t---\t---------------\t-------------\t-----------------------\n";
  put_limits(text, "", range);
  return text;
}

// ---- namespaces ----

std::string namespace_text(const json::value& object, const Related& related) {
  std::string text;
  put(text, 0, "Name", text_at(object, "metadata.name"));
  put_marks(text, object);
  put(text, 0, "Status", text_at(object, "status.phase"));
  put_conditions_with_time(text, object);
  if (const std::string& error = related.quotas.error; !error.empty()) text += "\nResource Quotas " + unread_text(error) + "\n";
  else text += related.quotas.items.empty() ? "\nNo resource quota.\n" : "\nResource Quotas\n";
  std::vector<json::value> quotas = related.quotas.items;
  std::stable_sort(quotas.begin(), quotas.end(),
                   [](const auto& a, const auto& b) { return get_string(a, "metadata.name") < get_string(b, "metadata.name"); });
  for (const auto& quota : quotas) {
    put(text, 1, "Name", text_at(quota, "metadata.name"));
    put_scopes(text, 1, "  * ", quota);
    text += "  Resource\tUsed\tHard\n  --------\t---\t---\n";
    put_usage(text, "  ", quota);
  }
  if (const std::string& error = related.limits.error; !error.empty())
    return text + "\nResource Limits " + unread_text(error) + "\n";
  text += related.limits.items.empty() ? "\nNo LimitRange resource.\n"
                                       : "\nResource Limits\n Type\tResource\tMin\tMax\tDefault Request\tDefault Limit\tMax "
                                         "Limit/Request Ratio\n"
                                         " ----\t--------\t---\t---\t---------------\t-------------\t-----------------------\n";
  for (const auto& range : related.limits.items) put_limits(text, " ", range);
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
