// SPDX-License-Identifier: Apache-2.0
// SelectorCache: the parsed selectors of owners (Services, ReplicaSets), each parsed once per generation of its owner, or once
// per revision if the owner has no generation: a selector may have a megabyte, there may be ten thousand owners, and every change
// of a pod is matched with all of them and changes the status of some. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "runtime/base/guarded.h"
#include "runtime/base/units.h"
#include "store/object/kind.h"
#include "store/object/object_ptr.h"
#include "store/object/selector.h"

namespace coracle {

// The selector of a Service; nothing if it has none.
std::optional<LabelSelector> selector_of_service(const Object& service);
std::optional<LabelSelector> read_selector(const json::value* written);  // a LabelSelector; nothing if it is invalid
// spec.selector of other kinds; nothing as above.
std::optional<LabelSelector> selector_in_spec(const Object& owner);

class SelectorCache {
 public:
  using Read = std::function<std::optional<LabelSelector>(const Object& owner)>;  // nothing: selects nothing
  explicit SelectorCache(Read read) : read_(std::move(read)) {}

  std::shared_ptr<const LabelSelector> of(const Object& owner);  // null: it selects nothing
  void forget(const Key& owner);                                 // the owner has been deleted

 private:
  struct Known {
    Revision revision = 0;
    std::string uid;
    int64_t generation = 0;  // 0: it has none
    std::shared_ptr<const LabelSelector> selector;
  };
  const Read read_;
  Guarded<std::map<Key, Known>> known_;
};

}  // namespace coracle
