// SPDX-License-Identifier: Apache-2.0
// See selector_cache.h.
#include "store/object/selector_cache.h"

#include "store/object/object.h"

namespace coracle {

std::optional<LabelSelector> selector_of_service(const Object& service) {
  const json::object& selector = get_object(service.json(), "spec.selector");
  return selector.empty() ? std::nullopt : std::optional(LabelSelector::from_map(selector));
}

std::optional<LabelSelector> read_selector(const json::value* written) {
  auto selector = LabelSelector::from_json(written);
  return selector ? std::optional(*std::move(selector)) : std::nullopt;
}

std::optional<LabelSelector> selector_in_spec(const Object& owner) { return read_selector(find(owner.json(), "spec.selector")); }

std::shared_ptr<const LabelSelector> SelectorCache::of(const Object& owner) {
  auto known = known_.with([&](auto& all) {
    auto at = all.find(owner.key());
    return at == all.end() ? Known{} : at->second;
  });
  if (known.revision && known.revision == owner.revision()) return known.selector;  // 0: not stored yet
  const int64_t generation = get_int(owner.json(), "metadata.generation");
  const bool same_spec = generation && known.generation == generation && known.uid == owner.uid();
  if (same_spec) {
    known.revision = owner.revision();
  } else {
    auto selector = read_(owner);  // outside the lock: it may be large
    known = {owner.revision(), owner.uid(), generation,
             selector ? std::make_shared<const LabelSelector>(*std::move(selector)) : nullptr};
  }
  known_.with([&](auto& all) { all.insert_or_assign(owner.key(), known); });
  return known.selector;
}

void SelectorCache::forget(const Key& owner) {
  known_.with([&](auto& all) { all.erase(owner); });
}

}  // namespace coracle
