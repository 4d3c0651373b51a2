// SPDX-License-Identifier: Apache-2.0
// The kubeconfig files in force, for those who show and change them: which entry stands in which file, and writing one back.
// What a file holds that we do not know stays in it.
// Source: client-go tools/clientcmd/config.go (PathOptions, ModifyConfig).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "store/client/kubeconfig.h"

namespace coracle::ctl {

inline constexpr KubeconfigList kClusterList = kKubeconfigLists[0];
inline constexpr KubeconfigList kContextList = kKubeconfigLists[1];
inline constexpr KubeconfigList kUserList = kKubeconfigLists[2];

enum class KubeconfigUse { read, change };

class KubeconfigFiles {
 public:
  // `given`, else all of $KUBECONFIG, else ~/.kube/config, or this machine's where only that can be read. A file that is not
  // there is an empty one. For a change, FILE.lock is held for each until the object ends, as kubectl holds it. Errors: invalid,
  // naming file and field; already_exists while another program changes them.
  static Result<KubeconfigFiles> open(const std::string& given, KubeconfigUse use);
  KubeconfigFiles(KubeconfigFiles&&) noexcept = default;
  ~KubeconfigFiles();

  bool explicit_file() const { return explicit_; }
  const std::string& default_file() const { return files_[default_].path; }  // where new entries go
  json::value merged(bool absolute_paths = false) const;
  std::string current_context() const;
  std::vector<std::string> names(const KubeconfigList& list) const;  // sorted
  const json::value* find(const KubeconfigList& list, std::string_view name) const;

  // ---- changes, kept in memory until save() ----

  // The entry's object, in the file that it stands in; a new one in the default file.
  json::value& entry(const KubeconfigList& list, const std::string& name);
  bool remove(const KubeconfigList& list, const std::string& name);  // false: it was not there
  void rename(const KubeconfigList& list, const std::string& name, const std::string& to);
  void set_current_context(const std::string& name);  // "": none
  // A member of the document beside its lists: of the first file that has it, else of the default one.
  json::value& member(const std::string& name);
  // The files that the entry names become relative to its own file where they stand below it.
  void make_paths_relative(const KubeconfigList& list, const std::string& name);
  Result<void> save();  // replaces each changed file as a whole, with the mode that it had

 private:
  struct File {
    std::string path;
    json::value config = json::object();
    std::string text;  // as read
    bool there = false;
  };
  KubeconfigFiles() = default;
  Result<void> lock();
  Result<void> read();
  File* file_with(const KubeconfigList& list, std::string_view name);

  std::vector<File> files_;
  std::vector<std::string> locks_;
  size_t default_ = 0;
  bool explicit_ = false;
};

}  // namespace coracle::ctl
