// SPDX-License-Identifier: Apache-2.0
// See manifest_files.h.
#include "ctl/manifest_files.h"

#include <dirent.h>
#include <fnmatch.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "runtime/base/read_rest.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "store/client/download.h"
#include "store/client/exec_credential.h"

namespace coracle::ctl {
namespace {

namespace fs = std::filesystem;

constexpr size_t kManifestBytesMax = 256u << 20;  // of one that is fetched

Error absent(const std::string& name) { return Error(Code::not_found, "the path " + coracle::quoted(name) + " does not exist"); }

// Of the link itself or of what it leads to. What is not there has a status too. Errors: errno's, of what may not be looked at.
enum class Links : uint8_t { stay, follow };
Result<fs::file_status> status_of(const fs::path& path, Links links) {
  std::error_code failed;
  fs::file_status status = links == Links::follow ? fs::status(path, failed) : fs::symlink_status(path, failed);
  if (!fs::status_known(status)) return Error::from_errno(failed.value(), "read " + path.string());
  return status;
}

// Appends the paths that match, of which `at` is the rest below `base`. As in Go, a "*" matches a leading dot too. Errors:
// errno's, of what cannot be read: it may match.
Result<void> match(const fs::path& base, fs::path::iterator at, const fs::path::iterator& end, std::vector<fs::path>& found) {
  if (at == end) {
    fs::file_status status = TRY(status_of(base, Links::stay));
    if (fs::exists(status)) found.push_back(base);
    return {};
  }
  std::string part = at->string();
  ++at;
  if (part.find_first_of("*?[\\") == part.npos) return match(base / part, at, end, found);
  fs::path directory = base.empty() ? fs::path(".") : base;
  fs::file_status status = TRY(status_of(directory, Links::follow));
  if (!fs::is_directory(status)) return {};
  std::vector<sys::DirEntry> entries = TRY(sys::list(directory.string()));
  for (const sys::DirEntry& entry : entries)
    if (::fnmatch(part.c_str(), entry.name.c_str(), 0) == 0) TRY(match(base / entry.name, at, end, found));
  return {};
}

// The name itself where it is a path; else, as a pattern, what matches.
Result<std::vector<fs::path>> expand(const std::string& name) {
  std::error_code failed;
  if (fs::exists(name, failed) || failed) return std::vector<fs::path>{name};
  std::vector<fs::path> found;
  fs::path pattern(name);
  TRY(match({}, pattern.begin(), pattern.end(), found));
  if (found.empty()) return absent(name);
  return found;
}

bool is_manifest_name(const fs::path& path) {
  std::string extension = path.extension();
  return extension == ".yaml" || extension == ".yml" || extension == ".json";
}

Result<void> add_manifests(const fs::path& directory, bool recursive, std::vector<fs::path>& paths) {
  std::vector<sys::DirEntry> entries = TRY(sys::list(directory.string()));
  for (const sys::DirEntry& entry : entries) {
    std::error_code ignored;
    fs::path path = directory / entry.name;
    if (entry.type == DT_DIR && recursive) TRY(add_manifests(path, true, paths));
    else if (is_manifest_name(path) && fs::is_regular_file(path, ignored)) paths.push_back(path);
  }
  return {};
}

// Errors: errno's, of a directory that cannot be read.
Result<std::vector<fs::path>> manifests_in(const fs::path& directory, bool recursive) {
  std::vector<fs::path> paths;
  TRY(add_manifests(directory, recursive, paths));
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string read_standard_input() {
  keep_input_from_plugins();
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
