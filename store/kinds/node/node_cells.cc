// SPDX-License-Identifier: Apache-2.0
// Cells of nodes: readiness in one word, roles from labels, addresses by type.
#include <set>

#include "runtime/base/text.h"
#include "store/kinds/node/node_kinds.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

constexpr std::string_view kRolePrefix = "node-role.kubernetes.io/";
constexpr std::string_view kRoleLabel = "kubernetes.io/role";

json::value node_status(const CellInput& in) {
  view::Node node(in.object);
  std::string text = "Unknown";
  for (view::NodeCondition condition : node.status().conditions()) {
    if (condition.type() == "Ready") text = condition.status() == "True" ? "Ready" : "NotReady";
  }
  if (node.spec().unschedulable()) text += ",SchedulingDisabled";
  return json::value(text);
}

json::value node_roles(const CellInput& in) {
  std::set<std::string> found;
  for (const auto& pair : view::Node(in.object).metadata().labels()) {
    std::string_view key = pair.key();
    if (key.starts_with(kRolePrefix) && key.size() > kRolePrefix.size()) found.emplace(key.substr(kRolePrefix.size()));
    if (key == kRoleLabel && pair.value().is_string()) found.emplace(pair.value().get_string());
  }
  return or_none(join({found.begin(), found.end()}, ","));
}

json::value node_address(const CellInput& in) {
  for (view::NodeAddress address : view::Node(in.object).status().addresses()) {
    if (address.type() == in.arguments[0]) return json::value(address.address());
  }
  return or_none("");
}

constexpr NamedCellRule kNodeCells[] = {{"node.status", node_status}, {"node.roles", node_roles}, {"node.address", node_address}};

}  // namespace

std::span<const NamedCellRule> node_cells() { return kNodeCells; }

}  // namespace coracle::schema
