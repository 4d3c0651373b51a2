// SPDX-License-Identifier: Apache-2.0
// The pure parts of label, annotate and edit: they turn arguments into patches.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ctl/session.h"

namespace coracle::ctl {

struct Change {
  std::string key;
  std::optional<std::string> value;  // absent: remove the key
};

// Splits `args` into the names of objects and the changes (KEY=VALUE, KEY-).
void split_changes(const std::vector<std::string>& args, std::vector<std::string>& objects, std::vector<Change>& changes);

struct Marks {                      // what label or annotate changes
  json::object patch;               // key → value, or null to remove it; empty: no change
  std::vector<std::string> absent;  // keys to remove that the object does not have
  bool removed_only = true;
};
// Errors: bad_request if a key has another value and `overwrite` is false.
Result<Marks> marks_of(const json::object& present, const std::vector<Change>& changes, bool overwrite);

std::string without_comments(const std::string& text);  // drops lines that begin with '#'

}  // namespace coracle::ctl
