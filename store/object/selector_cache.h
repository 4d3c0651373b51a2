// SPDX-License-Identifier: Apache-2.0
// SelectorCache: what each owner (a Service, a ReplicaSet) selects, read once until the owner changes. For who holds every change
// of a pod against all owners there are: a selector may have a megabyte, and there may be ten thousand. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "runtime/base/guarded.h"
#include "store/object/kind.h"
#include "store/object/object_ptr.h"
#include "store/object/selector.h"

namespace coracle {

// A Service's; nothing when it has none.
std::optional<LabelSelector> selector_of_service(const Object& service);
std::optional<LabelSelector> read_selector(const json::value* written);  // a LabelSelector; nothing when it cannot be read
// spec.selector of the others, likewise.
std::optional<LabelSelector> selector_in_spec(const Object& owner);

class SelectorCache {
 public:
  using Read = std::function<std::optional<LabelSelector>(const Object& owner)>;  // nothing: it selects nobody
  explicit SelectorCache(Read read) : read_(std::move(read)) {}

  std::shared_ptr<const LabelSelector> of(const Object& owner);  // null: it selects nobody
  void forget(const Key& owner);                                 // it is gone

 private:
  struct Known {
    Revision revision = 0;
    std::shared_ptr<const LabelSelector> selector;
  };
  const Read read_;
  Guarded<std::map<Key, Known>> known_;
};

}  // namespace coracle
