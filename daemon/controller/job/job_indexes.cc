// SPDX-License-Identifier: Apache-2.0
// See job_indexes.h.
#include "daemon/controller/job/job_indexes.h"

#include <algorithm>

#include "runtime/base/text.h"

namespace coracle::controller {

IndexSet IndexSet::parse(std::string_view text, int64_t limit) {
  IndexSet out;
  for (std::string_view part : split(text, ',')) {
    std::vector<std::string_view> ends = split(part, '-');
    auto first = parse_number<uint32_t>(ends.front()), last = parse_number<uint32_t>(ends.back());
    if (ends.size() > 2 || !first || !last || *last < *first || int64_t(*first) >= limit) continue;
    out.add(*first, std::min<int64_t>(*last, limit - 1));
  }
  return out;
}

void IndexSet::add(int64_t first, int64_t last) {
  auto next = spans_.upper_bound(first);
  if (next != spans_.begin() && std::prev(next)->second >= first - 1) {  // begins in the preceding range or directly after it
    --next;
    first = next->first;
  }
  while (next != spans_.end() && next->first <= last + 1) {
    last = std::max(last, next->second);
    next = spans_.erase(next);
  }
  spans_.emplace(first, last);
}

void IndexSet::add(const IndexSet& other) {
  for (auto [first, last] : other.spans_) add(first, last);
}

bool IndexSet::contains(int64_t index) const {
  auto after = spans_.upper_bound(index);
  return after != spans_.begin() && std::prev(after)->second >= index;
}

int64_t IndexSet::size() const {
  int64_t count = 0;
  for (auto [first, last] : spans_) count += last - first + 1;
  return count;
}

int64_t IndexSet::common(const IndexSet& other) const {
  int64_t count = 0;
  auto mine = spans_.begin(), theirs = other.spans_.begin();
  while (mine != spans_.end() && theirs != other.spans_.end()) {
    int64_t first = std::max(mine->first, theirs->first), last = std::min(mine->second, theirs->second);
    if (first <= last) count += last - first + 1;
    if (mine->second < theirs->second) ++mine;
    else ++theirs;
  }
  return count;
}

std::vector<int64_t> IndexSet::first_missing(int64_t count, int64_t limit) const {
  std::vector<int64_t> out;
  int64_t candidate = 0;
  auto fill = [&](int64_t end) {
    for (; candidate < end && int64_t(out.size()) < count; ++candidate) out.push_back(candidate);
  };
  for (auto [first, last] : spans_) {
    fill(std::min(first, limit));
    candidate = std::max(candidate, last + 1);
  }
  fill(limit);
  return out;
}

std::string IndexSet::text() const {
  std::string out;
  for (auto [first, last] : spans_) {
    if (!out.empty()) out += ',';
    out += std::to_string(first);
    if (last > first) out += (last == first + 1 ? ',' : '-') + std::to_string(last);
  }
  return out;
}

}  // namespace coracle::controller
