// SPDX-License-Identifier: Apache-2.0
// Listing: from the objects of a kind to a page of them, at the latest revision or at an earlier one. Pure.
//   latest objects ── rewound by the differences since ──▶ Listing ── after the token, matching, at most the limit ──▶ page
// Source: Kubernetes API concepts, "Retrieving large results sets in chunks"; apiserver storage/etcd3.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "store/engine/continue_token.h"
#include "store/engine/engine.h"

namespace coracle::engine {

// The input of a page.
struct Listing {
  std::vector<RestingPtr> objects;  // sorted
  Revision revision = 0;
  std::optional<ContinueToken> token;  // nullopt: it is the first page
};

// The error for a token whose revision is not kept any more. It has a token for going on with the latest state.
Error expired_token(const ContinueToken& token);

// The state at an older revision: `latest` with the later changes reverted. `differences`: the objects of then that are not those
// of now; null: it was not there. Both are sorted.
std::vector<RestingPtr> rewound(std::vector<RestingPtr> latest, const std::map<Key, RestingPtr>& differences);

// The page after the token, with `options`' filter and limit. `Pointer`: ObjectPtr or RestingPtr; objects are only parsed if they
// are wanted so, or for a filter.
template <typename Pointer>
PageOf<Pointer> page_of(Listing listing, const ListOptions& options);

}  // namespace coracle::engine
