// SPDX-License-Identifier: Apache-2.0
// SelectorIndex: the owners (Services, ReplicaSets) whose selectors match an object, without trying all of them: every change of
// a pod asks for them, and there may be thousands.
//   owner ──put──▶ a bucket: one label that its selector demands, that with the fewest owners      object ──matching──▶ the
//   buckets of its labels ▸ only their selectors are tried
// An owner is in one bucket, so labels that all owners demand do not gather them. Owners whose selectors demand no label with one
// value are tried for each object of their namespace. Thread-safe; it follows the calls of put() and remove().
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/object/selector_cache.h"

namespace coracle {

class SelectorIndex : public SelectorCache {
 public:
  using SelectorCache::SelectorCache;

  void put(const Object& owner);  // it has been created or changed
  void remove(const Key& owner);  // it has been deleted; its selector is forgotten too
  // The owners in the object's namespace whose selectors match it, sorted.
  std::vector<Key> matching(const Object& labelled) const;
  size_t tried_for(const Object& labelled) const;  // how many selectors matching() tries; for tests

 private:
  static constexpr size_t kLabelsTried = 16;  // of a selector, to find the bucket with the fewest owners
  struct Entry;
  using Owners = std::map<Key, Entry>;
  using Buckets = std::map<std::string, std::set<const Owners::value_type*>, std::less<>>;  // by namespace and label
  struct Entry {
    std::shared_ptr<const LabelSelector> selector;  // null: it selects nothing, and is in no bucket
    Buckets::value_type* bucket = nullptr;
  };
  struct Index {
    Owners owners;
    Buckets buckets;
    Buckets::value_type& best_for(std::string_view ns, const LabelSelector& selector);
    void leave(Owners::value_type& owner);
  };
  using Candidate = std::pair<Key, std::shared_ptr<const LabelSelector>>;
  std::vector<Candidate> candidates(const Object& labelled) const;
  Guarded<Index> index_;
};

}  // namespace coracle
