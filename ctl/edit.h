// SPDX-License-Identifier: Apache-2.0
// The pure parts of label, annotate, set and edit: they turn arguments into patches.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/session.h"

namespace coracle::ctl {

struct Change {
  std::string key;
  std::optional<std::string> value;  // absent: remove the key
};

// Splits `args` into the names of objects and the changes (KEY=VALUE, KEY-), the first of which ends the names. `what`: "label".
// Errors: bad_request for a name behind a change.
Result<void> split_pairs(const std::vector<std::string>& args, const std::string& what, std::vector<std::string>& objects,
                         std::vector<Change>& changes);

struct Marks {                      // what label or annotate changes
  json::object patch;               // key → value, or null to remove it; empty: no change
  std::vector<std::string> absent;  // keys to remove that the object does not have
  std::vector<std::string> taken;   // "'KEY' already has a value (VALUE)" for each key that may not be overwritten
  bool adds = false, removes = false;
};
// `free_key` may be overwritten in any case.
Marks marks_of(const json::object& present, const std::vector<Change>& changes, bool overwrite, std::string_view free_key = {});
// Keys that are both set and removed.
std::vector<std::string> contradictions_of(const std::vector<Change>& changes);

std::string without_comments(const std::string& text);  // drops lines that begin with '#'

}  // namespace coracle::ctl
