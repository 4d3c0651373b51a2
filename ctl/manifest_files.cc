// SPDX-License-Identifier: Apache-2.0
// See manifest_files.h.
#include "ctl/manifest_files.h"

#include <fnmatch.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "runtime/base/read_rest.h"
#include "runtime/base/text.h"
#include "store/client/download.h"

namespace coracle::ctl {
namespace {

namespace fs = std::filesystem;

constexpr size_t kManifestBytesMax = 256u << 20;  // of one that is fetched

Error absent(const std::string& name) { return Error(Code::not_found, "the path " + coracle::quoted(name) + " does not exist"); }

// The paths that match, of which `pattern` is the rest below `base`. As in Go, a "*" matches a leading dot too.
void match(const fs::path& base, fs::path::iterator at, const fs::path::iterator& end, std::vector<fs::path>& found) {
  std::error_code failed;
  if (at == end) {
    if (fs::exists(fs::symlink_status(base, failed))) found.push_back(base);
    return;
  }
  std::string part = at->string();
  ++at;
  if (part.find_first_of("*?[\\") == part.npos) return match(base / part, at, end, found);
  std::vector<fs::path> entries;
  for (const auto& entry : fs::directory_iterator(base.empty() ? fs::path(".") : base, failed))
    if (::fnmatch(part.c_str(), entry.path().filename().c_str(), 0) == 0) entries.push_back(base / entry.path().filename());
  std::sort(entries.begin(), entries.end());
  for (const auto& entry : entries) match(entry, at, end, found);
}

// The name itself where it is a path; else, as a pattern, what matches.
Result<std::vector<fs::path>> expand(const std::string& name) {
  std::error_code failed;
  if (fs::exists(name, failed) || failed) return std::vector<fs::path>{name};
  std::vector<fs::path> found;
  fs::path pattern(name);
  match({}, pattern.begin(), pattern.end(), found);
  if (found.empty()) return absent(name);
  return found;
}

bool is_manifest_name(const fs::path& path) {
  std::string extension = path.extension();
  return extension == ".yaml" || extension == ".yml" || extension == ".json";
}

Result<std::vector<fs::path>> manifests_in(const fs::path& directory, bool recursive) {
  std::vector<fs::path> paths;
  std::error_code failed;
  auto consider = [&](const fs::directory_entry& entry) {
    std::error_code ignored;
    if (entry.is_regular_file(ignored) && is_manifest_name(entry.path())) paths.push_back(entry.path());
  };
  if (recursive)
    for (const auto& entry : fs::recursive_directory_iterator(directory, failed)) consider(entry);
  else
    for (const auto& entry : fs::directory_iterator(directory, failed)) consider(entry);
  if (failed) return Error::from_errno(failed.value(), "read " + directory.string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string read_standard_input() {
  std::string text;
  char buffer[65536];
  while (size_t got = std::fread(buffer, 1, sizeof buffer, stdin)) text.append(buffer, got);
  return text;
}

}  // namespace

bool is_url(const std::string& source) { return source.starts_with("http://") || source.starts_with("https://"); }

Result<std::vector<std::string>> manifest_sources(const std::vector<std::string>& names, bool recursive) {
  std::vector<std::string> sources;
  for (const std::string& name : names) {
    if (name == "-" && std::find(sources.begin(), sources.end(), name) != sources.end())
      return Error(Code::bad_request, "standard input cannot be used for multiple arguments");
    if (name == "-" || is_url(name)) {
      sources.push_back(name);
      continue;
    }
    std::vector<fs::path> paths = TRY(expand(name));
    for (const fs::path& path : paths) {
      std::error_code ignored;
      if (!fs::is_directory(path, ignored)) {
        sources.push_back(path);
        continue;
      }
      std::vector<fs::path> manifests = TRY(manifests_in(path, recursive));
      sources.insert(sources.end(), manifests.begin(), manifests.end());
    }
    if (sources.empty())
      return Error(Code::not_found, "error reading [" + name + "]: recognized file extensions are [.json .yaml .yml]");
  }
  return sources;
}

Result<std::string> read_manifest(const std::string& source) {
  if (source == "-") return read_standard_input();
  if (is_url(source)) return download(source, kManifestBytesMax);
  std::ifstream file(source, std::ios::binary);
  if (!file && errno == ENOENT) return absent(source);
  if (!file) return Error::from_errno("read " + source);
  return read_rest(file, source);
}

}  // namespace coracle::ctl
