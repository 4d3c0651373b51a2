// SPDX-License-Identifier: Apache-2.0
// Loader: the files of one kustomization directory. Files have to be in or below the directory unless that restriction is off;
// links are resolved first. A base is a directory that is neither visited already on the way to here nor above one: so there are
// no cycles. All loaders of a build share its limits.
// Blocks on the file system. Source: kustomize's loader.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace coracle::kustomize {

constexpr size_t kFileBytesMax = 16u << 20;
constexpr size_t kBuildBytesMax = 256u << 20;  // of all files that a build reads
constexpr size_t kDirectoriesMax = 4'000;      // that a build visits, counting repeated visits
constexpr size_t kDirectoryDepthMax = 100;     // of bases of bases

// True for what only the network has: a URL, or a git repository in one of the forms that kustomize accepts.
bool is_remote(std::string_view path);

class Loader {
 public:
  // For the directory of the build. Errors: bad_request for a remote one, and for what is no directory; not_found.
  static Result<Loader> open(const std::string& directory, bool restricted);

  // Errors: forbidden outside the directory; not_found; invalid for what is no regular file; too_large.
  Result<std::string> load(const std::string& path) const;
  bool is_file(const std::string& path) const;
  // The loader of a base or component. Errors: bad_request for a remote or absolute path and for a cycle; not_found; too_large.
  Result<Loader> enter(const std::string& path) const;

  const std::string& root() const { return roots_.back(); }  // absolute, without links
  const std::string& shown() const { return shown_; }        // as the user would write it, for messages
  std::string shown(const std::string& path) const;

 private:
  struct Budget {
    size_t bytes = 0, directories = 0;
  };
  std::vector<std::string> roots_;  // from the directory of the build to this one
  std::string shown_;
  bool restricted_ = true;
  std::shared_ptr<Budget> budget_;
};

}  // namespace coracle::kustomize
