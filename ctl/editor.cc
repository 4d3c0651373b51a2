// SPDX-License-Identifier: Apache-2.0
// See editor.h.
#include "ctl/editor.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "ctl/command.h"
#include "ctl/edit.h"
#include "ctl/escape.h"
#include "ctl/parse_error.h"
#include "runtime/base/fd.h"
#include "runtime/base/read_rest.h"
#include "runtime/base/text.h"
#include "store/object/patch.h"
#include "store/object/yaml.h"

namespace coracle::ctl {
namespace {

constexpr int kUnattendedPassesMax = 5;  // of an editor without a terminal, which would change the text for ever

std::string editable_text(const std::vector<json::value>& objects, bool in_json) {
  json::value whole = objects.front();
  if (objects.size() > 1) {
    json::array items(objects.begin(), objects.end());
    whole = json::object{{"apiVersion", "v1"}, {"items", std::move(items)}, {"kind", "List"}, {"metadata", json::object()}};
  }
  return in_json ? to_pretty(whole) + "\n" : to_yaml(whole);
}

Result<std::string> make_edit_file(const std::string& ending) {
  std::string path = std::string(std::filesystem::temp_directory_path() / "coraclectl-edit-XXXXXX") + ending;
  Fd created(::mkstemps(path.data(), int(ending.size())));
  if (!created) return Error::from_errno("create " + path);
  return path;
}

Result<std::string> saved_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return read_rest(in, path);
}

std::string without_returns(std::string text) {
  for (size_t at = 0; (at = text.find("\r\n", at)) != text.npos;) text.erase(at, 1);
  return text;
}

Result<std::string> edit_in_editor(const std::string& path, const std::string& text, bool windows_line_endings) {
  {
    std::ofstream file(path, std::ios::trunc | std::ios::binary);
    for (char c : text) {
      if (c == '\n' && windows_line_endings) file << '\r';
      file << c;
    }
    if (!file.flush()) return Error::from_errno("write " + path);
  }
  const char* editor = std::getenv("KUBE_EDITOR");
  if (!editor || !*editor) editor = std::getenv("EDITOR");
  if (!editor || !*editor) editor = "vi";
  std::vector<std::string> argv = {"sh", "-c", std::string(editor) + " " + path};
  int status = TRY(run_program(argv));
  if (status != 0) return Error(Code::cancelled, "there was a problem with the editor " + coracle::quoted(editor));
  std::string saved = TRY(saved_text(path));
  if (!windows_line_endings) return saved;
  return without_returns(std::move(saved));
}

void tell_of_copy(const std::string& path) { tell("A copy of your changes has been stored to " + coracle::quoted(path) + "\n"); }

// After an error: removes the file if it still says `original`, comments aside; else it is the user's.
void leave_edit_file(const std::string& path, const std::string& original) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return;
  auto saved = saved_text(path);
  if (saved && without_comments(without_returns(std::move(*saved))) == original) std::filesystem::remove(path, ignored);
  else tell_of_copy(path);
}

// Both texts say the same: spaces, comments and the order of keys say nothing in YAML; JSON is compared as it is written. Source:
// kubectl pkg/cmd/util/helpers.go, StripComments.
bool says_the_same(const std::string& text, const std::string& other, bool in_json) {
  if (in_json || text == other) return text == other;
  auto left = parse_yaml(text), right = parse_yaml(other);
  return left && right && std::equal(left->begin(), left->end(), right->begin(), right->end(), json_equal);
}

// A file that was not valid was opened again, `passes` times by now, and it is of no use to open it once more: it has what it had
// then (`before`), or nobody is at a terminal to mend it.
bool is_given_up(int passes, const std::string& text, const std::string& before, bool in_json) {
  if (passes == 0) return false;
  bool unattended = !::isatty(STDIN_FILENO);
  return says_the_same(text, before, in_json) || (unattended && passes >= kUnattendedPassesMax);
}

}  // namespace

EditedFile::EditedFile(std::string path, std::string text, bool in_json, const char* head, bool windows_line_endings)
    : path_(std::move(path)),
      original_(std::move(text)),
      body_(original_),
      head_(head),
      in_json_(in_json),
      windows_line_endings_(windows_line_endings) {}

Result<EditedFile> EditedFile::create(const std::vector<json::value>& objects, bool in_json, const char* head,
                                      bool windows_line_endings) {
  std::string path = TRY(make_edit_file(in_json ? ".json" : ".yaml"));
  return EditedFile(std::move(path), editable_text(objects, in_json), in_json, head, windows_line_endings);
}

Result<std::optional<std::string>> EditedFile::next() {
  const int passes = passes_++;
  auto saved = edit_in_editor(path_, (in_json_ ? "" : head_ + reasons_) + body_, windows_line_endings_);
  if (!saved) {
    leave_edit_file(path_, original_);
    return saved.take_error();
  }
  std::string text = without_comments(*saved);
  if (is_given_up(passes, text, body_, in_json_))
    return keep(Error(Code::cancelled, "Edit cancelled, no valid changes were saved."));
  const bool is_unchanged = says_the_same(text, original_, in_json_);
  if (is_unchanged || trim(text).empty()) {
    remove();
    tell(is_unchanged ? "Edit cancelled, no changes made.\n" : "Edit cancelled, saved file was empty.\n");
    return std::optional<std::string>();
  }
  body_ = text;
  return std::optional<std::string>(std::move(text));
}

Result<std::vector<json::value>> EditedFile::parse(const std::string& text) const {
  auto parsed = parse_yaml(text);
  if (parsed) return parsed;
  return Error(Code::invalid, parse_error(parsed.take_error(), "edited-file", in_json_ ? text : "").text());
}

void EditedFile::refuse(const Error& error) {
  const bool is_read = error.code() == Code::bad_request;  // and what it says is wrong
  const std::string reason = (is_read ? "The edited file is not valid: " : "The edited file had a syntax error: ") + error.text();
  reasons_ = commented(reason) + "#\n";
  if (in_json_) tell("error: " + reason + "\n");
}

Error EditedFile::keep(Error error) const {
  tell_of_copy(path_);
  return error;
}

void EditedFile::remove() const { std::filesystem::remove(path_); }

std::string commented(std::string_view text) {
  std::string shown = visible_lines(text);
  for (size_t end = 0; (end = shown.find('\n', end)) != shown.npos; ++end) shown.insert(end + 1, "# ");
  return "# " + shown + "\n";
}

}  // namespace coracle::ctl
