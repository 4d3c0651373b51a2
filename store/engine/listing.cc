// SPDX-License-Identifier: Apache-2.0
// See listing.h.
#include "store/engine/listing.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "store/object/object.h"
#include "store/object/status.h"

namespace coracle::engine {

Error expired_token(const ContinueToken& token) {
  ErrorDetails details;
  details.continue_token = ContinueToken{-1, token.after}.text();
  return expired(
             "The provided continue parameter is too old to display a consistent list result. You can start a new "
             "list without the continue parameter, or use the continue token in this response to retrieve the "
             "remainder of the results. Continuing with the provided token results in an inconsistent list - objects "
             "that were created, modified, or deleted between the time the first chunk was returned and now may show "
             "up in the list.")
      .with(std::move(details));
}

std::vector<RestingPtr> rewound(std::vector<RestingPtr> latest, const std::map<Key, RestingPtr>& differences) {
  std::vector<RestingPtr> then;
  auto old = differences.begin();
  auto put_back_before = [&](std::optional<KeyView> key) {
    for (; old != differences.end() && (!key || KeyView(old->first) < *key); ++old)
      if (old->second) then.push_back(old->second);
  };
  for (RestingPtr& object : latest) {
    put_back_before(object->key());
    if (old != differences.end() && KeyView(old->first) == object->key()) {
      if (old->second) then.push_back(old->second);
      ++old;
    } else {
      then.push_back(std::move(object));
    }
  }
  put_back_before(std::nullopt);
  return then;
}

template <typename Pointer>
PageOf<Pointer> page_of(Listing listing, const ListOptions& options) {
  PageOf<Pointer> page;
  page.revision = listing.revision;
  auto next = listing.objects.begin(), end = listing.objects.end();
  if (listing.token) {
    KeyView after(listing.token->after);
    next = std::ranges::upper_bound(next, end, after, {}, [](const RestingPtr& object) { return object->key(); });
  }
  size_t left = size_t(end - next);
  page.items.reserve(options.limit ? std::min(left, options.limit) : left);
  constexpr bool kRest = std::is_same_v<Pointer, RestingPtr>;
  for (; next != end; ++next) {
    ObjectPtr awake = kRest && !options.matches ? nullptr : (*next)->awake();
    if (options.matches && !options.matches(*awake)) continue;
    if (options.limit && page.items.size() == options.limit) {
      page.continue_token = ContinueToken{int64_t(listing.revision), Key(page.items.back()->key())}.text();
      break;
    }
    if constexpr (kRest) page.items.push_back(std::move(*next));
    else page.items.push_back(std::move(awake));
  }
  if (!options.matches) page.remaining = size_t(end - next);
  return page;
}

template PageOf<ObjectPtr> page_of(Listing listing, const ListOptions& options);
template PageOf<RestingPtr> page_of(Listing listing, const ListOptions& options);

}  // namespace coracle::engine
