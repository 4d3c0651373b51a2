// SPDX-License-Identifier: Apache-2.0
// IndexSet: the completion indexes of an Indexed Job, in the format of its status, "1,3-5,7". Stored as ranges, because a Job may
// have a hundred thousand. Pure. Source: batch/v1 JobStatus.completedIndexes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace coracle::controller {

class IndexSet {
 public:
  // Ignores malformed entries and indexes of `limit` or above: an elastic Job may have been scaled down.
  static IndexSet parse(std::string_view text, int64_t limit);
  void add(int64_t index) { add(index, index); }
  void add(int64_t first, int64_t last);
  void add(const IndexSet& other);

  bool contains(int64_t index) const;
  bool empty() const { return spans_.empty(); }
  int64_t size() const;
  int64_t common(const IndexSet& other) const;                             // size of the intersection
  std::vector<int64_t> first_missing(int64_t count, int64_t limit) const;  // at most `count`, below `limit`
  std::string text() const;

 private:
  std::map<int64_t, int64_t> spans_;  // first to last; ranges do not touch
};

}  // namespace coracle::controller
