// SPDX-License-Identifier: Apache-2.0
// A text in the user's editor: $KUBE_EDITOR, $EDITOR or vi. Source: kubectl pkg/cmd/util/editor.
#pragma once

#include <optional>
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

// A temporary file with objects, which the user edits until what he saves is taken or he gives up.
class EditedFile {
 public:
  // Shows one object or, of several, a List of them. `head`: comments at the beginning, of which JSON has none. With
  // `windows_line_endings`, lines end in CR LF in the file only. Only we can read the file. Errors: errno's.
  static Result<EditedFile> create(const std::vector<json::value>& objects, bool in_json, const char* head,
                                   bool windows_line_endings);

  // Opens the editor, and returns what was saved, without comments. Nothing: the user saved no change, which is told, and the
  // file is gone. Errors: cancelled if the editor fails or if he gives up, after which a changed file stays and he is told where
  // it is; errno's.
  Result<std::optional<std::string>> next();
  // What a saved text has. Errors: invalid, in kubectl's words.
  Result<std::vector<json::value>> parse(const std::string& text) const;
  // What was saved is not valid: the file says why when it is opened again. JSON cannot, so that is told at once.
  void refuse(const Error& error);
  // Lines of commented() about what was saved, for when the file is opened again.
  void set_reasons(std::string reasons) { reasons_ = std::move(reasons); }

  Error keep(Error error) const;  // tells where the file is; `error` is the result
  void remove() const;
  const std::string& path() const { return path_; }

 private:
  EditedFile(std::string path, std::string text, bool in_json, const char* head, bool windows_line_endings);

  std::string path_, original_, body_, reasons_;
  const char* head_;
  bool in_json_, windows_line_endings_;
  int passes_ = 0;  // how often it was opened
};

// Lines for the head of the file: what is wrong with it.
std::string commented(std::string_view text);

}  // namespace coracle::ctl
