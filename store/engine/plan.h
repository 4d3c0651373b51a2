// SPDX-License-Identifier: Apache-2.0
// Plan: decides a batch of writes against the latest state without changing it. Later writes see earlier ones; each group of
// writes is applied as a whole or not at all. The result is then written to the disk and applied to memory.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "store/engine/engine.h"
#include "store/engine/memory.h"

namespace coracle::engine {

// A Write whose body has been checked and converted to text with space for the revision. Created before the leader's turn. The
// first plan that decides it consumes `parsed`.
struct Prepared {
  const Kind* kind = nullptr;
  Key key;
  ObjectPtr body;      // null: remove
  json::value parsed;  // the JSON from which `body` was made
  std::optional<Revision> expected;
  bool beyond_limit = false;
  Amend amend;
  bool sheds_managed_fields = false;
  bool is_being_deleted = false;  // only determined for a body above kObjectBytesMax

  static Result<Prepared> make(Write write);  // Errors: invalid
  Result<void> drop_managed_fields();         // from `body` and `parsed`
};

// The use of Options::objects_bytes_max.
struct Space {
  Usage usage;
  bool refused = false;  // a write has failed because of the limit
};

class Plan {
 public:
  struct Entry {
    ObjectPtr object;  // null: does not exist
    int64_t row = 0;
  };
  using Find = std::function<Entry(const Kind& kind, const Key& key)>;

  Plan(Find find, Revision last, int64_t next_row, Usage usage = {})
      : find_(std::move(find)), last_(last), next_row_(next_row), space_{usage} {}

  // Errors: not_found, already_exists, conflict, internal if there is no space; then no write of the group is in the plan.
  Result<std::vector<ObjectPtr>> add(std::vector<Prepared>& group);

  // The object as the groups so far leave it.
  Entry latest(const Kind& kind, const Key& key) const;
  const std::vector<Change>& changes() const { return changes_; }
  Revision last() const { return last_; }  // the last revision used
  int64_t next_row() const { return next_row_; }
  const Space& space() const { return space_; }

 private:
  using Name = std::tuple<std::string_view, std::string_view, Key>;
  struct Mark {  // the plan before a group
    size_t changes = 0;
    Revision last = 0;
    int64_t next_row = 0;
    size_t bytes = 0;
  };
  Result<ObjectPtr> decide(Prepared& write);
  Result<ObjectPtr> decide(Prepared& write, const Entry& now);
  void put(const Prepared& write, Entry next);
  void roll_back(const Mark& mark);
  Result<void> take_space(const Prepared& write, const Entry& now);

  Find find_;
  Revision last_;
  int64_t next_row_;
  Space space_;
  std::vector<Change> changes_;
  std::map<Name, Entry> planned_;                                // the state after changes_
  std::vector<std::pair<Name, std::optional<Entry>>> replaced_;  // what the present group has replaced in it
};

}  // namespace coracle::engine
