// SPDX-License-Identifier: Apache-2.0
// See kubeconfig_files.h.
#include "ctl/kubeconfig_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "store/object/yaml.h"

namespace coracle::ctl {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kModeOfNewFiles = 0600;
constexpr mode_t kModeOfNewDirectories = 0755;

std::vector<std::string> files_of_environment() {
  std::vector<std::string> files;
  const char* list = std::getenv("KUBECONFIG");
  for (std::string_view one : split(list ? list : "", ':'))
    if (!one.empty() && std::find(files.begin(), files.end(), one) == files.end()) files.emplace_back(one);
  return files;
}

std::string file_without_a_choice() {
  const char* home = std::getenv("HOME");
  std::string path = std::string(home ? home : "") + "/.kube/config";
  std::error_code ignored;
  return !fs::exists(path, ignored) && ::access(kMachineKubeconfig, R_OK) == 0 ? kMachineKubeconfig : path;
}

json::array* list_of(json::value& config, const KubeconfigList& list) {
  json::value* entries = config.get_object().if_contains(list.list);
  return entries ? entries->if_array() : nullptr;
}

json::value* entry_of(json::value& config, const KubeconfigList& list, std::string_view name) {
  if (json::array* entries = list_of(config, list))
    for (auto& entry : *entries)
      if (get_string(entry, "name") == name) return &entry;
  return nullptr;
}

std::string parent_of(const std::string& path) { return fs::absolute(path).parent_path().string(); }

Result<void> write(const std::string& path, const std::string& text) {
  std::error_code failed;
  TRY(sys::make_directories(parent_of(path), kModeOfNewDirectories));
  fs::path target = fs::canonical(path, failed);  // a link stays one
  if (failed) target = path;
  struct stat had {};
  bool there = ::stat(target.c_str(), &had) == 0;
  return sys::replace_file(target.string(), text, there ? had.st_mode & 07777 : kModeOfNewFiles);
}

}  // namespace

Result<KubeconfigFiles> KubeconfigFiles::open(const std::string& given, KubeconfigUse use) {
  KubeconfigFiles files;
  std::vector<std::string> paths = files_of_environment();
  files.explicit_ = !given.empty();
  if (files.explicit_) paths = {given};
  else if (paths.empty()) paths = {file_without_a_choice()};
  for (auto& path : paths) files.files_.push_back({std::move(path)});
  if (use == KubeconfigUse::change) TRY(files.lock());
  TRY(files.read());
  auto& all = files.files_;
  auto first = std::find_if(all.begin(), all.end(), [](const auto& file) { return file.there; });
  files.default_ = first == all.end() ? all.size() - 1 : size_t(first - all.begin());
  return files;
}

KubeconfigFiles::~KubeconfigFiles() {
  for (const auto& lock : locks_) ::unlink(lock.c_str());
}

Result<void> KubeconfigFiles::lock() {
  std::set<std::string> sorted;  // the same order everywhere: two programs never wait for each other
  for (const auto& file : files_) sorted.insert(file.path);
  for (const auto& path : sorted) {
    TRY(sys::make_directories(parent_of(path), kModeOfNewDirectories));
    std::string lock = path + ".lock";
    auto made = sys::open(lock, O_CREAT | O_EXCL | O_WRONLY, kModeOfNewFiles);
    if (!made && made.error().err() == EEXIST)
      return Error(Code::already_exists, "open " + lock +
                                             ": file exists; another program changes the kubeconfig. If none does, "
                                             "remove that file");
    if (!made) return made.take_error();
    locks_.push_back(lock);
  }
  return {};
}

Result<void> KubeconfigFiles::read() {
  for (auto& file : files_) {
    auto text = sys::read_file(file.path);
    if (!text && text.error().err() == ENOENT) continue;
    if (!text) return text.take_error();
    file.there = true;
    file.text = std::move(*text);
    file.config = TRY(parse_kubeconfig_document(file.text, file.path));
  }
  return {};
}

json::value KubeconfigFiles::merged(bool absolute_paths) const {
  json::value merged = json::object();
  for (const auto& file : files_) {
    json::value config = file.config;
    if (absolute_paths) make_paths_absolute(config, file.path);
    merge_kubeconfig(merged, config);
  }
  return merged;
}

std::string KubeconfigFiles::current_context() const {
  for (const auto& file : files_)
    if (std::string name(get_string(file.config, "current-context")); !name.empty()) return name;
  return {};
}

std::vector<std::string> KubeconfigFiles::names(const KubeconfigList& list) const {
  std::set<std::string> names;
  for (const auto& file : files_)
    for (const auto& entry : get_array(file.config, list.list)) names.emplace(get_string(entry, "name"));
  return {names.begin(), names.end()};
}

const json::value* KubeconfigFiles::find(const KubeconfigList& list, std::string_view name) const {
  for (const auto& file : files_)
    if (const json::value* found = kubeconfig_entry(file.config, list, name)) return found;
  return nullptr;
}

KubeconfigFiles::File* KubeconfigFiles::file_with(const KubeconfigList& list, std::string_view name) {
  for (auto& file : files_)
    if (entry_of(file.config, list, name)) return &file;
  return nullptr;
}

json::value& KubeconfigFiles::entry(const KubeconfigList& list, const std::string& name) {
  File* file = file_with(list, name);
  if (!file) {
    file = &files_[default_];
    json::value& entries = file->config.get_object()[list.list];
    if (!entries.is_array()) entries.emplace_array();
    entries.get_array().push_back(json::object{{list.field, json::object()}, {"name", name}});
  }
  json::value& body = entry_of(file->config, list, name)->get_object()[list.field];
  if (!body.is_object()) body.emplace_object();
  return body;
}

bool KubeconfigFiles::remove(const KubeconfigList& list, const std::string& name) {
  File* file = file_with(list, name);
  if (!file) return false;
  json::array& entries = *list_of(file->config, list);
  entries.erase(entries.begin() + (entry_of(file->config, list, name) - entries.data()));
  return true;
}

void KubeconfigFiles::rename(const KubeconfigList& list, const std::string& name, const std::string& to) {
  if (File* file = file_with(list, name)) entry_of(file->config, list, name)->get_object()["name"] = to;
}

void KubeconfigFiles::set_current_context(const std::string& name) {
  if (current_context() == name) return;
  File* target = &files_[default_];
  if (name.empty() && !explicit_)
    for (auto& file : files_)
      if (!get_string(file.config, "current-context").empty()) {
        target = &file;
        break;
      }
  target->config.get_object()["current-context"] = name;
}

json::value& KubeconfigFiles::member(const std::string& name) {
  for (auto& file : files_)
    if (json::value* found = file.config.get_object().if_contains(name)) return *found;
  return files_[default_].config.get_object()[name];
}

void KubeconfigFiles::make_paths_relative(const KubeconfigList& list, const std::string& name) {
  File* file = file_with(list, name);
  if (!file) return;
  fs::path directory = parent_of(file->path);
  json::value& body = entry(list, name);
  for (const char* field : {"certificate-authority", "client-certificate", "client-key", "tokenFile"}) {
    std::string path(get_string(body, field));
    if (path.empty()) continue;
    fs::path whole = (directory / path).lexically_normal();
    std::string relative = whole.lexically_relative(directory).string();
    body.get_object()[field] = relative.starts_with("..") ? whole.string() : relative;
  }
}

Result<void> KubeconfigFiles::save() {
  for (auto& file : files_) {
    json::value before = TRY(parse_kubeconfig_document(file.text, file.path));
    if (before == file.config) continue;
    json::object& config = file.config.get_object();
    if (!config.contains("apiVersion")) config["apiVersion"] = "v1";
    if (!config.contains("kind")) config["kind"] = "Config";
    for (const auto& [list, field] : kKubeconfigLists)
      if (!config.contains(list)) config[list] = json::array();
    if (!config.contains("current-context")) config["current-context"] = "";
    TRY(write(file.path, to_yaml(file.config)).wrap("write " + file.path));
  }
  return {};
}

}  // namespace coracle::ctl
