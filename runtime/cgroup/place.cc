// SPDX-License-Identifier: Apache-2.0
// See place.h.
#include "runtime/cgroup/place.h"

#include <algorithm>
#include <vector>

#include "runtime/base/text.h"

namespace coracle::cgroup {
namespace {

constexpr size_t kNameMax = 255;        // of a cgroup (like a file) and of a unit
constexpr size_t kPathMax = 4096 - 64;  // leaves space for the mount point and a file name

Error invalid_cgroups_path(const std::string& path, const std::string& text) {
  return Error(Code::invalid, "linux.cgroupsPath: " + quoted(path) + " " + text);
}

// Without empty components; ".." and similar ones are an error.
Result<std::string> clean_path(const std::string& path) {
  std::vector<std::string> parts;
  for (std::string_view part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") return invalid_cgroups_path(path, "leads out by \"..\"");
    if (part.size() > kNameMax) return invalid_cgroups_path(path, "has a part of more than 255 bytes");
    parts.emplace_back(part);
  }
  if (parts.empty()) return invalid_cgroups_path(path, "is the top of the hierarchy, not a cgroup of the container's own");
  std::string out = join(parts, "/");
  if (path.size() > kPathMax || path.find('\0') != path.npos) return invalid_cgroups_path(path, "is no path");
  return out;
}

// Source: systemd.unit(5).
bool is_unit_name(std::string_view name) {
  constexpr std::string_view kMarks = ":_.\\-@";
  return !name.empty() && name.size() <= kNameMax && std::all_of(name.begin(), name.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || kMarks.find(c) != kMarks.npos;
  });
}

Result<Place> plan_scope(const std::string& path, const std::string& id, bool is_user) {
  std::vector<std::string_view> parts = {"", "coracle", id};
  if (!path.empty()) parts = split(path, ':');
  if (parts.size() != 3) return invalid_cgroups_path(path, "is not of the form slice:prefix:name that the manager systemd takes");
  if (parts[2].empty()) return invalid_cgroups_path(path, "has no name");
  Place out{.manager = Manager::systemd, .is_given = !path.empty()};
  out.slice = std::string(parts[0]);
  if (out.slice.empty()) out.slice = is_user ? "user.slice" : "system.slice";
  TRY(slice_path(out.slice).wrap("linux.cgroupsPath"));
  if (parts[2].ends_with(".slice")) return invalid_cgroups_path(path, "names a slice; a container stands in a scope");
  out.unit = std::string(parts[1]) + "-" + std::string(parts[2]) + ".scope";
  if (!is_unit_name(out.unit)) return invalid_cgroups_path(path, "makes no name of a unit: " + quoted(out.unit));
  return out;
}

}  // namespace

Result<Manager> manager_of(const std::string& name) {
  for (Manager each : {Manager::cgroupfs, Manager::systemd, Manager::disabled})
    if (name == name_of(each)) return each;
  return Error(Code::invalid, "cgroup manager " + quoted(name) + ": there are cgroupfs, systemd and disabled");
}

const char* name_of(Manager manager) {
  switch (manager) {
    case Manager::cgroupfs: return "cgroupfs";
    case Manager::systemd: return "systemd";
    case Manager::disabled: return "disabled";
  }
  return "";
}

Result<Place> plan_place(Manager manager, const std::string& cgroups_path, const std::string& id, bool is_user) {
  if (manager == Manager::disabled) return Place{.manager = manager};
  if (manager == Manager::systemd) return plan_scope(cgroups_path, id, is_user);
  Place out{.manager = manager, .is_given = !cgroups_path.empty()};
  out.is_relative = !cgroups_path.starts_with('/');
  std::string path = TRY(clean_path(cgroups_path.empty() ? id : cgroups_path));
  out.path = "/" + path;
  return out;
}

Result<std::string> slice_path(const std::string& slice) {
  Error wrong(Code::invalid, quoted(slice) + " is no name of a slice");
  if (!slice.ends_with(".slice") || !is_unit_name(slice)) return wrong;
  std::string name = slice.substr(0, slice.size() - 6);
  if (name == "-") return std::string();
  std::string path, prefix;
  for (std::string_view part : split(name, '-')) {
    if (part.empty()) return wrong;
    prefix += (prefix.empty() ? "" : "-") + std::string(part);
    path += "/" + prefix + ".slice";
  }
  return path;
}

}  // namespace coracle::cgroup
