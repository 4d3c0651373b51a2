// SPDX-License-Identifier: Apache-2.0
// Strategy: what the write pipeline does for one kind beyond what it does for all. One file per kind under kinds/; a kind
// without one needs nothing special. The steps, in the order in which the pipeline takes them:
//   decode ▸ [prepare] ▸ default ▸ admission ▸ [allocate] ▸ validate ▸ admission ▸ commit
// Source: Kubernetes API reference per kind.
#pragma once

#include <functional>
#include <string>

#include "daemon/admission/user.h"
#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "store/engine/engine.h"
#include "store/object/kind.h"
#include "store/object/object_ptr.h"

namespace coracle::registry {

struct Ranges {  // from the configuration
  std::string service_cidr = "10.43.0.0/16";
  int node_port_min = 30000, node_port_max = 32767;
};

class ServiceIndex;

struct Allocation {  // what a strategy may look at
  engine::Engine& engine;
  ServiceIndex& services;
  const Ranges& ranges;
  WallTime now;
};

struct Strategy {
  const Kind* kind = nullptr;
  bool one_at_a_time = false;  // writes are serialised: they allocate from a shared range

  // On create: the body is canonical, its status is gone already where the kind has a status subresource.
  void (*prepare_create)(json::value& object) = nullptr;
  // On create: the object says who made it. nullptr: a component of the house.
  void (*record_user)(json::value& object, const User* user) = nullptr;
  // On update of the main resource: what a client left out but may not lose.
  void (*prepare_update)(json::value& object, const json::value& old) = nullptr;
  // On update of the status.
  void (*prepare_status)(json::value& object, const json::value& old, WallTime now) = nullptr;
  // On update of /status or /approval: what the other one writes stays. Spec and metadata are the old ones already.
  void (*divide_status)(json::value& object, const json::value& old, std::string_view subresource, WallTime now) = nullptr;
  // Defaulted and admitted: what the server alone gives it (addresses, ports, classes). Errors: invalid, in Kubernetes' words.
  Result<void> (*allocate_create)(json::value& object, const Allocation& allocation) = nullptr;
  Result<void> (*allocate_update)(json::value& object, const Object& old, const Allocation& allocation) = nullptr;
  // Errors: forbidden when it may not be deleted at all.
  Result<void> (*check_delete)(const Object& object) = nullptr;
};

const Strategy& strategy_of(const Kind& kind);

}  // namespace coracle::registry
