// SPDX-License-Identifier: Apache-2.0
// See expected_mounts.h.
#include "daemon/volume/local/expected_mounts.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <sstream>

#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "runtime/sys/mount.h"

namespace coracle::volume {
namespace {

std::string without_slash_at_end(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

bool contains(const std::string& place, const std::string& directory) {
  return directory == place || (directory.starts_with(place) && directory[place.size()] == '/');
}

bool is_mounted_at_start(std::string_view options) {
  auto all = split(options, ',');
  auto has = [&](std::string_view one) { return std::ranges::find(all, one) != all.end(); };
  return !has("noauto") || has("x-systemd.automount");
}

// The innermost mount point of the table around the directory; "" if there is none.
std::string place_in_fstab(const std::string& table, const std::string& directory) {
  std::string innermost;
  for (std::string_view line : split(table, '\n')) {
    std::istringstream words{std::string(line)};
    std::string device, place, type, options;
    words >> device >> place >> type >> options;
    place = without_slash_at_end(sys::plain_path(place));
    if (device.starts_with('#') || place.size() < 2 || !place.starts_with('/') || !is_mounted_at_start(options)) continue;
    if (contains(place, directory) && place.size() > innermost.size()) innermost = std::move(place);
  }
  return innermost;
}

bool is_masked(const std::vector<std::string>& unit_dirs, const std::string& unit) {
  return std::ranges::any_of(unit_dirs, [&](const std::string& path) {
    auto directory = sys::open_directory(path);
    return directory && sys::read_link_at(*directory, unit).value_or("") == "/dev/null";
  });
}

// The link by which a target wants the unit; "" if the unit is disabled or masked.
std::string link_of(const std::vector<std::string>& unit_dirs, const std::string& unit) {
  for (const std::string& path : unit_dirs) {
    auto entries = sys::list(path);
    if (!entries) continue;
    for (const sys::DirEntry& entry : *entries) {
      if (!entry.name.ends_with(".wants") && !entry.name.ends_with(".requires")) continue;
      auto wants = sys::open_directory(path + "/" + entry.name);
      if (wants && sys::stat_at(*wants, unit) && !is_masked(unit_dirs, unit)) return path + "/" + entry.name + "/" + unit;
    }
  }
  return "";
}

bool is_mounted(const std::string& place) {
  auto types = sys::mounts_on(place);
  return types && !types->empty();
}

}  // namespace

std::string unit_name(std::string_view path) {
  std::string name;
  for (std::string_view part : split(path, '/')) {
    if (part.empty()) continue;
    if (!name.empty()) name += '-';
    for (char c : part) {
      bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == ':' || c == '_' ||
                   (c == '.' && !name.empty());
      if (plain) name += c;
      else name.append("\\x").append(hex(std::string_view(&c, 1)));
    }
  }
  return name.empty() ? "-" : name;
}

std::optional<MissingMount> missing_mount(const ExpectedMounts& expected, const std::string& directory) {
  std::string in_fstab = place_in_fstab(sys::read_file(expected.fstab).value_or(""), directory);
  for (std::string place = directory; place.size() > 1; place.resize(place.rfind('/'))) {
    std::string source = place == in_fstab ? expected.fstab : "";
    for (const char* suffix : {".mount", ".automount"})
      if (source.empty()) source = link_of(expected.unit_dirs, unit_name(place) + suffix);
    if (source.empty()) continue;
    if (is_mounted(place)) return std::nullopt;
    return MissingMount{std::move(place), std::move(source)};
  }
  return std::nullopt;
}

}  // namespace coracle::volume
