// SPDX-License-Identifier: Apache-2.0
// Cells: the rules that a column of the schema text may name, as functions from an object to a cell. The general ones:
//   path <dotted> [text when empty]   age <dotted> [when absent]   number <dotted>   count <dotted>...   ratio <dotted> <dotted>
//   names <list> <field>   labels <map>   selector <LabelSelector>   texts <list>   controller
//   text <dotted> [when absent]: whatever it is, as text   boolean <dotted> [true when absent]   flag <dotted> <when absent>:
//   True or False list <strings>: or <none>   integer <dotted> [text when absent]
// and <kind>.<what> for those of one kind (cells of pods are pod.ready, pod.status, ...). Pure.
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

CellRule cell_rule(std::string_view name);  // nullptr when there is none

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
std::span<const NamedCellRule> extension_cells();  // what shapes the API itself; resource claims
std::span<const NamedCellRule> access_cells();     // of bindings and certificate requests

// Conditions of a row: a pod that is done is marked Completed, so that clients may hide it.
json::array row_conditions(const KindInfo& kind, const json::value& object);

inline json::value or_none(std::string_view text) { return json::value(text.empty() ? std::string_view("<none>") : text); }

}  // namespace coracle::schema
