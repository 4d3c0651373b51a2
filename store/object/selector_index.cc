// SPDX-License-Identifier: Apache-2.0
// See selector_index.h.
#include "store/object/selector_index.h"

#include <algorithm>
#include <utility>

#include "store/object/object.h"

namespace coracle {
namespace {

// Unambiguous: a namespace has no '/', and a label's key no '='. `name`: reused, since an object may have thousands of labels.
void write_bucket(std::string& name, std::string_view ns, std::string_view key, std::string_view value) {
  name.assign(ns).append("/").append(key).append("=").append(value);
}
std::string bucket_of(std::string_view ns, std::string_view key, std::string_view value) {
  std::string name;
  write_bucket(name, ns, key, value);
  return name;
}
std::string bucket_without_label(std::string_view ns) { return std::string(ns).append("/"); }

}  // namespace

SelectorIndex::Buckets::value_type& SelectorIndex::Index::best_for(std::string_view ns, const LabelSelector& selector) {
  std::string best = bucket_without_label(ns);
  size_t fewest = size_t(-1);
  for (auto [key, value] : selector.demanded_labels(kLabelsTried)) {
    std::string name = bucket_of(ns, key, value);
    auto found = buckets.find(name);
    size_t owners = found == buckets.end() ? 0 : found->second.size();
    if (owners < fewest) best = std::move(name), fewest = owners;
  }
  return *buckets.try_emplace(std::move(best)).first;
}

void SelectorIndex::Index::leave(Owners::value_type& owner) {
  Buckets::value_type* bucket = std::exchange(owner.second.bucket, nullptr);
  if (!bucket) return;
  bucket->second.erase(&owner);
  if (bucket->second.empty()) buckets.erase(buckets.find(bucket->first));
}

void SelectorIndex::put(const Object& owner) {
  std::shared_ptr<const LabelSelector> selector = of(owner);
  index_.with([&](Index& index) {
    Owners::value_type& own = *index.owners.try_emplace(owner.key()).first;
    if (own.second.selector == selector) return;
    index.leave(own);
    own.second.selector = std::move(selector);
    if (!own.second.selector) return;
    own.second.bucket = &index.best_for(owner.ns(), *own.second.selector);
    own.second.bucket->second.insert(&own);
  });
}

void SelectorIndex::remove(const Key& owner) {
  index_.with([&](Index& index) {
    auto found = index.owners.find(owner);
    if (found == index.owners.end()) return;
    index.leave(*found);
    index.owners.erase(found);
  });
  forget(owner);
}

std::vector<SelectorIndex::Candidate> SelectorIndex::candidates(const Object& labelled) const {
  std::vector<Candidate> out;
  const json::object& labels = labelled.labels();
  index_.with([&](const Index& index) {
    auto look_at = [&](const std::string& name) {
      auto bucket = index.buckets.find(name);
      if (bucket == index.buckets.end()) return;
      for (const Owners::value_type* owner : bucket->second) out.emplace_back(owner->first, owner->second.selector);
    };
    look_at(bucket_without_label(labelled.ns()));
    if (index.buckets.empty()) return;
    std::string name;
    for (const auto& [key, value] : labels) {
      if (!value.is_string()) continue;
      write_bucket(name, labelled.ns(), key, std::string_view(value.get_string()));
      look_at(name);
    }
  });
  return out;
}

std::vector<Key> SelectorIndex::matching(const Object& labelled) const {
  std::vector<Key> out;
  for (auto& [owner, selector] : candidates(labelled))  // without the lock: a selector may be large
    if (selector->matches(labelled)) out.push_back(std::move(owner));
  std::ranges::sort(out);
  return out;
}

size_t SelectorIndex::tried_for(const Object& labelled) const { return candidates(labelled).size(); }

}  // namespace coracle
