// SPDX-License-Identifier: Apache-2.0
// See loader.h.
#include "ctl/kustomize/loader.h"

#include <filesystem>

#include "runtime/base/text.h"
#include "runtime/sys/file.h"

namespace coracle::kustomize {
namespace {

bool is_within(const std::string& path, const std::string& directory) {
  return path == directory || directory == "/" || (path.starts_with(directory) && path[directory.size()] == '/');
}

Error remote_error(const std::string& path) {
  return Error(
      Code::bad_request,
      path + " is remote, and kustomizations are built from local files only: fetch it (git clone, curl) and name its path");
}

// In kustomize's words, which name what is missing.
Error absent_error(const std::string& directory) {
  std::error_code failed;
  std::filesystem::path missing;
  for (const auto& part : std::filesystem::absolute(directory, failed).lexically_normal()) {
    missing /= part;
    if (!std::filesystem::exists(std::filesystem::symlink_status(missing, failed))) break;
  }
  return Error(Code::not_found, "must build at directory: not a valid directory: evalsymlink failure on '" + directory +
                                    "' : lstat " + missing.string() + ": no such file or directory");
}

}  // namespace

bool is_remote(std::string_view path) {
  for (std::string_view start : {"git::", "git@", "gh:", "github.com/", "github.com:", "bitbucket.org/", "gitlab.com/"})
    if (path.starts_with(start)) return true;
  return path.find("://") != path.npos;
}

Result<Loader> Loader::open(const std::string& directory, bool restricted) {
  std::error_code failed;
  if (is_remote(directory) && !std::filesystem::exists(directory, failed)) return remote_error(directory);
  auto absolute = sys::absolute_path(directory);
  if (!absolute && absolute.error().code() == Code::not_found) return absent_error(directory);
  std::string root = TRY(std::move(absolute).wrap(directory));
  if (!std::filesystem::is_directory(root, failed))
    return Error(Code::bad_request, "must build at directory: '" + directory + "': file is not directory");
  Loader loader;
  loader.roots_ = {root};
  loader.shown_ = directory;
  while (loader.shown_.size() > 1 && loader.shown_.ends_with('/')) loader.shown_.pop_back();
  loader.restricted_ = restricted;
  loader.budget_ = std::make_shared<Budget>();
  return loader;
}

std::string Loader::shown(const std::string& path) const {
  if (path.starts_with('/')) return path;
  std::string joined = std::filesystem::path(shown_ == "." ? path : shown_ + "/" + path).lexically_normal();
  while (joined.size() > 1 && joined.ends_with('/')) joined.pop_back();
  return joined;
}

bool Loader::is_file(const std::string& path) const {
  std::error_code failed;
  std::filesystem::path full = path.starts_with('/') ? path : root() + "/" + path;
  return std::filesystem::is_regular_file(full, failed);
}

Result<std::string> Loader::load(const std::string& path) const {
  if (path.empty()) return Error(Code::invalid, "a path is empty");
  std::string name = shown(path);
  if (is_remote(path) && !is_file(path)) return remote_error(path);
  std::string full = TRY(sys::absolute_path(path.starts_with('/') ? path : root() + "/" + path).wrap(name));
  std::error_code failed;
  if (std::filesystem::is_directory(full, failed)) return Error(Code::invalid, name + " is a directory, not a file");
  if (!std::filesystem::is_regular_file(full, failed)) return Error(Code::invalid, name + " is not a regular file");
  if (restricted_ && !is_within(full, root()))
    return Error(Code::forbidden, name + " is not in or below " + shown_ +
                                      "; --load-restrictor LoadRestrictionsNone permits it for the command kustomize");
  std::string text = TRY(sys::read_file(full, kFileBytesMax).wrap(name));
  budget_->bytes += text.size();
  if (budget_->bytes > kBuildBytesMax) return Error(Code::too_large, name + ": the kustomization has more than 256 MiB of files");
  return text;
}

Result<Loader> Loader::enter(const std::string& path) const {
  if (path.empty()) return Error(Code::invalid, "a path is empty");
  std::error_code failed;
  if (is_remote(path) && !std::filesystem::exists(root() + "/" + path, failed)) return remote_error(path);
  std::string name = shown(path);
  if (path.starts_with('/')) return Error(Code::bad_request, path + ": the path of a base must be relative");
  std::string next = TRY(sys::absolute_path(root() + "/" + path).wrap(name));
  if (!std::filesystem::is_directory(next, failed)) return Error(Code::bad_request, name + " is not a directory");
  for (const std::string& visited : roots_)
    if (is_within(visited, next))
      return Error(Code::bad_request, "cycle: " + name + " is " + (visited == next ? "" : "above ") + "the directory " + visited +
                                          ", which leads here");
  if (roots_.size() >= kDirectoryDepthMax) return Error(Code::too_large, name + ": bases are nested too deeply");
  if (++budget_->directories > kDirectoriesMax) return Error(Code::too_large, name + ": too many bases");
  Loader loader = *this;
  loader.roots_.push_back(next);
  loader.shown_ = name;
  return loader;
}

}  // namespace coracle::kustomize
