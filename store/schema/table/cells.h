// SPDX-License-Identifier: Apache-2.0
// Cells: the rules for columns of the schema text, as functions from an object to a cell. The general rules:
//   path <dotted> [text if empty]   age <dotted> [text if absent]   number <dotted>   count <dotted>...   ratio <dotted> <dotted>
//   names <list> <field>   labels <map>   selector <LabelSelector>   texts <list>   controller
//   text <dotted> [text if absent]: any value as text   boolean <dotted> [true if absent]   flag <dotted> <value if absent>: True
//   or False   list <strings>: or <none>   integer <dotted> [text if absent]
// and <kind>.<name> for rules of one kind (pod.ready, pod.status, ...). Pure.
#pragma once

#include <span>
#include <string_view>

#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "store/schema/catalog.h"

namespace coracle::schema {

struct CellInput {
  const json::value& object;
  std::span<const std::string_view> arguments;
  WallTime now;
};

using CellRule = json::value (*)(const CellInput& input);

struct NamedCellRule {
  std::string_view name;
  CellRule rule;
};

CellRule cell_rule(std::string_view name);  // nullptr if there is none

std::span<const NamedCellRule> general_cells();
std::span<const NamedCellRule> pod_cells();
std::span<const NamedCellRule> node_cells();
std::span<const NamedCellRule> service_cells();  // and Endpoints, EndpointSlice
std::span<const NamedCellRule> event_cells();
std::span<const NamedCellRule> job_cells();
std::span<const NamedCellRule> autoscaler_cells();
std::span<const NamedCellRule> metrics_cells();
std::span<const NamedCellRule> network_cells();    // Ingress, IngressClass, IPAddress
std::span<const NamedCellRule> storage_cells();    // volumes, claims, quotas, ComponentStatus
std::span<const NamedCellRule> csi_cells();        // storage classes and drivers
std::span<const NamedCellRule> extension_cells();  // CustomResourceDefinitions, webhooks, API services; resource claims
std::span<const NamedCellRule> access_cells();     // for RBAC bindings and certificate requests

// Conditions of a row: a finished pod is marked Completed, so that clients can hide it.
json::array row_conditions(const KindInfo& kind, const json::value& object);

inline json::value or_none(std::string_view text) { return json::value(text.empty() ? std::string_view("<none>") : text); }

}  // namespace coracle::schema
