// SPDX-License-Identifier: Apache-2.0
// Where a field of a YAML text stands, for errors about settings: parse_yaml() keeps no lines. Pure. Source: YAML 1.1.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace coracle {

// The line, counted from 1, of the name of a field or of an item of a list in the first document that is not empty: `path` has
// names of fields and decimal indexes of items. If it is not there, as behind an alias, that of the nearest one above it; 0:
// there is none. The text is one that parse_yaml() accepts.
size_t line_in_yaml(std::string_view text, const std::vector<std::string>& path);

}  // namespace coracle
