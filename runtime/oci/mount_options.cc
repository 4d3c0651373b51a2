// SPDX-License-Identifier: Apache-2.0
// See mount_options.h.
#include "runtime/oci/mount_options.h"

#include <linux/mount.h>

#include <map>

namespace coracle::oci {
namespace {

using Kind = MountOptionKind;

constexpr uint64_t kUnbindable = 1 << 17, kPrivate = 1 << 18, kSlave = 1 << 19, kShared = 1 << 20,
                   kRec = 16384;  // MS_*

std::map<std::string, MountOption> attributes() {
  auto set = [](uint64_t flag) { return MountOption{Kind::attribute, flag, 0, false}; };
  auto clear = [](uint64_t flag) { return MountOption{Kind::attribute, 0, flag, false}; };
  // The atime modes are alternatives, not separate flags.
  auto atime = [](uint64_t one) { return MountOption{Kind::attribute, one, MOUNT_ATTR__ATIME, false}; };
  return {{"ro", set(MOUNT_ATTR_RDONLY)},
          {"rw", clear(MOUNT_ATTR_RDONLY)},
          {"nosuid", set(MOUNT_ATTR_NOSUID)},
          {"suid", clear(MOUNT_ATTR_NOSUID)},
          {"nodev", set(MOUNT_ATTR_NODEV)},
          {"dev", clear(MOUNT_ATTR_NODEV)},
          {"noexec", set(MOUNT_ATTR_NOEXEC)},
          {"exec", clear(MOUNT_ATTR_NOEXEC)},
          {"nodiratime", set(MOUNT_ATTR_NODIRATIME)},
          {"diratime", clear(MOUNT_ATTR_NODIRATIME)},
          {"nosymfollow", set(MOUNT_ATTR_NOSYMFOLLOW)},
          {"symfollow", clear(MOUNT_ATTR_NOSYMFOLLOW)},
          {"noatime", atime(MOUNT_ATTR_NOATIME)},
          {"strictatime", atime(MOUNT_ATTR_STRICTATIME)},
          {"relatime", atime(MOUNT_ATTR_RELATIME)},
          {"norelatime", set(0)},
          {"nostrictatime", set(0)},
          {"atime", set(0)}};
}

std::map<std::string, MountOption> make_mount_options() {
  std::map<std::string, MountOption> out;
  for (const auto& [name, option] : attributes()) {
    out[name] = option;
    out["r" + name] = {Kind::recursive_attribute, option.set, option.clear, true};
  }
  // For a whole tree they mean the kernel's default, whatever each mount has. A single mount keeps what it has. Source: runc
  for (const char* name : {"ratime", "rnorelatime", "rnostrictatime"})
    out[name] = {Kind::recursive_attribute, MOUNT_ATTR_RELATIME, MOUNT_ATTR__ATIME, true};
  for (auto [name, flag] : {std::pair("shared", kShared), std::pair("slave", kSlave), std::pair("private", kPrivate),
                            std::pair("unbindable", kUnbindable)}) {
    out[name] = {Kind::propagation, flag, 0, false};
    out[std::string("r") + name] = {Kind::propagation, flag | kRec, 0, true};
  }
  for (const char* name : {"sync", "async", "dirsync", "lazytime", "nolazytime", "mand", "nomand"})
    out[name] = {Kind::super_flag, 0, 0, false};
  // Whether changes are counted is up to the file system; what can be mounted by descriptors takes no option for it.
  for (const char* name : {"defaults", "silent", "loud", "iversion", "noiversion"}) out[name] = {};
  out["bind"] = {Kind::bind, 0, 0, false};
  out["rbind"] = {Kind::bind, 0, 0, true};
  out["tmpcopyup"] = {Kind::copy_up, 0, 0, false};
  out["idmap"] = {Kind::id_mapped, 0, 0, false};
  out["ridmap"] = {Kind::id_mapped, 0, 0, true};
  out["copy-symlink"] = {Kind::copy_link, 0, 0, false};
  out["src-nofollow"] = {Kind::link_source, 0, 0, false};
  out["dest-nofollow"] = {Kind::link_destination, 0, 0, false};
  return out;
}

const std::map<std::string, MountOption>& table() {
  static const std::map<std::string, MountOption> all = make_mount_options();
  return all;
}

}  // namespace

std::optional<MountOption> mount_option(const std::string& name) {
  if (name.empty()) return MountOption{};
  auto found = table().find(name);
  if (found == table().end()) return std::nullopt;
  return found->second;
}

std::vector<std::string> mount_option_names() {
  std::vector<std::string> out;
  for (const auto& [name, option] : table()) out.push_back(name);
  return out;
}

}  // namespace coracle::oci
