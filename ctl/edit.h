// SPDX-License-Identifier: Apache-2.0
// The pure halves of label, annotate and edit: from words on the command line to patches.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ctl/session.h"

namespace coracle::ctl {

struct Change {
  std::string key;
  std::optional<std::string> value;  // nothing: remove
};

// Splits args into the objects' part and KEY=VALUE / KEY- changes.
void split_changes(const std::vector<std::string>& args, std::vector<std::string>& objects, std::vector<Change>& changes);

struct Marks {                      // of label and annotate
  json::object patch;               // key → value, null to remove; empty: nothing changes
  std::vector<std::string> absent;  // should be removed, and are not there
  bool removed_only = true;
};
// Errors: bad_request for a value that is there and may not be overwritten.
Result<Marks> marks_of(const json::object& present, const std::vector<Change>& changes, bool overwrite);

std::string without_comments(const std::string& text);  // lines that begin with '#'

}  // namespace coracle::ctl
