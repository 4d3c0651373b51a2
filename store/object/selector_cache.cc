// SPDX-License-Identifier: Apache-2.0
// See selector_cache.h.
#include "store/object/selector_cache.h"

#include "store/object/object.h"

namespace coracle {

std::optional<LabelSelector> selector_of_service(const Object& service) {
  const json::object& selector = get_object(service.json(), "spec.selector");
  return selector.empty() ? std::nullopt : std::optional(LabelSelector::from_map(selector));
}

std::shared_ptr<const LabelSelector> SelectorCache::of(const Object& owner) {
  return known_.with([&](auto& all) {
    auto [known, fresh] = all.try_emplace(owner.uid());
    if (fresh || known->second.revision != owner.revision()) {
      auto selector = read_(owner);
      known->second = {owner.revision(), selector ? std::make_shared<const LabelSelector>(*std::move(selector)) : nullptr};
    }
    return known->second.selector;
  });
}

void SelectorCache::forget(const Object& owner) {
  known_.with([&](auto& all) { all.erase(owner.uid()); });
}

}  // namespace coracle
