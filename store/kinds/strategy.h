// SPDX-License-Identifier: Apache-2.0
// Strategy: what the server does on a write of one kind. Strategies are in store/kinds/<folder>/server, which only the server
// links; most kinds need none. The order of the steps of a create (daemon/registry):
//   decode ▸ [prepare_create] ▸ default ▸ admission ▸ default ▸ [allocate] ▸ decode ▸ guard ▸ validate ▸ admission ▸ commit
// Source: Kubernetes API reference per kind.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "store/engine/engine.h"
#include "store/kinds/default_ranges.h"
#include "store/object/kind.h"
#include "store/object/object_ptr.h"
#include "store/object/user.h"

namespace coracle::kinds {

struct Ranges {  // from the configuration
  std::string service_cidr = kDefaultServiceCidr;
  int node_port_min = kDefaultNodePortFirst, node_port_max = kDefaultNodePortLast;
};

// What a write has reserved: values of a shared range, names. It is destroyed when the write is committed or has failed, and
// gives back what was not committed.
class Hold {
 public:
  virtual ~Hold() = default;
};

class ServiceAddresses;
class DefinitionNames;

struct Allocation {  // the environment of an allocation
  ServiceAddresses& services;
  DefinitionNames& definitions;
  const Ranges& ranges;
  WallTime now;
  bool dry_run;                 // nothing is to be reserved
  std::unique_ptr<Hold>& hold;  // receives what was reserved
};

struct Strategy {
  const Kind* kind = nullptr;

  // On create: the body is canonical, and its status is removed if the kind has a status subresource.
  void (*prepare_create)(json::value& object) = nullptr;
  // On create: records the user in the object. nullptr: a component of the daemon.
  void (*record_user)(json::value& object, const User* user) = nullptr;
  // On update of the main resource: keeps fields that the client omitted but that must not be lost.
  void (*prepare_update)(json::value& object, const json::value& old) = nullptr;
  // On update of the status.
  void (*prepare_status)(json::value& object, const json::value& old, WallTime now) = nullptr;
  // On update of /status or /approval: keeps the part that the other subresource writes. Spec and metadata are the old ones
  // already.
  void (*divide_status)(json::value& object, const json::value& old, std::string_view subresource, WallTime now) = nullptr;
  // After defaults and admission: sets fields that only the server sets (addresses, ports, classes). Errors: with Kubernetes'
  // text: invalid; internal if a range is exhausted or a port is taken.
  Result<void> (*allocate_create)(json::value& object, const Allocation& allocation) = nullptr;
  Result<void> (*allocate_update)(json::value& object, const Object& old, const Allocation& allocation) = nullptr;
  // Errors: forbidden if it must not be deleted.
  Result<void> (*check_delete)(const Object& object) = nullptr;
};

constexpr size_t kStrategiesMax = 4;  // of one folder

// The strategies of one folder. Each folder with strategies defines one value, named after it (job_strategies in
// store/kinds/job/server/job_strategy.cc). The build collects them.
struct StrategyFamily {
  Strategy strategies[kStrategiesMax];
};

const Strategy& strategy_of(const Kind& kind);  // an empty one for kinds without a strategy

}  // namespace coracle::kinds
