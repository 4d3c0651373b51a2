// SPDX-License-Identifier: Apache-2.0
// What disruption budgets are asked and told, by the eviction that charges them and the controller that counts. Pure.
// Source: Kubernetes policy/v1 PodDisruptionBudget; component-helpers apps/poddisruptionbudget.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/guarded.h"
#include "runtime/base/units.h"
#include "store/object/kind.h"
#include "store/object/object_ptr.h"
#include "store/object/selector.h"

namespace coracle::quota {

// Of one namespace: its selector matches; none matches nothing.
bool covers(const Object& budget, const Object& pod);

// The same, for who asks about many pods: a selector may have megabytes, and is read once.
class Coverage {
 public:
  explicit Coverage(const Object& budget);
  bool of(const Object& pod) const;
  bool of_made_by(const Object& owner) const;  // the pods of its template

 private:
  bool selects(const std::string& ns, const json::object& labels) const;
  std::string ns_;
  std::optional<LabelSelector> selector_;
};

// Each budget's Coverage, until the budget changes. Thread-safe.
class Coverages {
 public:
  std::shared_ptr<const Coverage> of(const Object& budget);
  void forget(const Key& budget);

 private:
  struct Known {
    Revision revision = 0;
    std::shared_ptr<const Coverage> coverage;
  };
  Guarded<std::map<Key, Known>> known_;
};

bool is_ready(const Object& pod);
const json::value* allowed_condition(const json::value& budget);  // DisruptionAllowed, null when there is none
// Brings the condition level with status.disruptionsAllowed.
void set_allowed_condition(json::value& budget, WallTime now);
// The budget cannot be counted: nothing may be disrupted until it can.
void set_sync_failed(json::value& budget, std::string_view why, WallTime now);

}  // namespace coracle::quota
