// SPDX-License-Identifier: Apache-2.0
// A text in the user's editor: $KUBE_EDITOR, $EDITOR or vi. Source: kubectl pkg/cmd/util/editor.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

// What the user edits: the object or, of several, a List of them.
std::string editable_text(const std::vector<json::value>& objects, bool in_json);
// Creates an empty file that only we can read, of an unpredictable name that ends in `ending` (".yaml"). Errors: errno's.
Result<std::string> make_edit_file(const std::string& ending);
// Lets the user edit `text` in that file and returns what was saved. With `windows_line_endings`, lines end in CR LF in the file
// only. Errors: cancelled if the editor fails; errno's.
Result<std::string> edit_in_editor(const std::string& path, const std::string& text, bool windows_line_endings = false);
// After such an error: removes the file if it still says `original`, comments aside; else it is the user's, and he is told where
// it is.
void leave_edit_file(const std::string& path, const std::string& original);

}  // namespace coracle::ctl
