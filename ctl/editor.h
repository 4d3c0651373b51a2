// SPDX-License-Identifier: Apache-2.0
// A text in the user's editor: $KUBE_EDITOR, $EDITOR or vi. Source: kubectl pkg/cmd/util/editor.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

// The first lines of the file.
constexpr const char* kEditHead =
    "# Please edit the object below. Lines beginning with a '#' will be ignored,\n"
    "# and an empty file will abort the edit. If an error occurs while saving this file will be\n"
    "# reopened with the relevant failures.\n#\n";
constexpr const char* kNothingValid = "Edit cancelled, no valid changes were saved.";
constexpr int kUnattendedPassesMax = 5;  // of an editor without a terminal, which would change the text for ever

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

// Both texts say the same: spaces, comments and the order of keys say nothing in YAML; JSON is compared as it is written. Source:
// kubectl pkg/cmd/util/helpers.go, StripComments.
bool says_the_same(const std::string& text, const std::string& other, bool in_json);
// A file that was not valid was opened again, `passes` times by now, and it is of no use to open it once more: it has what it had
// then (`before`), or nobody is at a terminal to mend it.
bool is_given_up(int passes, const std::string& text, const std::string& before, bool in_json);
// Lines for the head of the file: what is wrong with it.
std::string commented(std::string_view text);

}  // namespace coracle::ctl
