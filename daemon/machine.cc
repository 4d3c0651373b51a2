// SPDX-License-Identifier: Apache-2.0
// See machine.h.
#include "daemon/machine.h"

#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <utility>

#include "daemon/nfs.h"
#include "runtime/base/text.h"
#include "runtime/oci/defaults.h"
#include "runtime/sys/apparmor.h"
#include "runtime/sys/file.h"
#include "runtime/sys/mount.h"
#include "runtime/sys/netlink.h"
#include "store/schema/views.h"

namespace coracle {

Result<std::string> host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return Error::from_errno("read the host's name");
  std::string lower = to_lower(name.data());
  bool good = !lower.empty() && lower.size() <= 253 &&
              lower.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") == lower.npos && lower.front() != '-' &&
              lower.front() != '.' && lower.back() != '-' && lower.back() != '.';
  if (!good)
    return Error(Code::invalid, "the host's name " + coracle::quoted(lower) +
                                    " cannot name a node (letters, digits, '-' and '.'); set nodeName");
  return lower;
}

std::string node_name_of(const std::vector<json::value>& nodes, std::string_view machine_id, const std::string& host) {
  std::optional<std::pair<std::string, std::string>> first;  // creation time and name
  for (const json::value& node : nodes) {
    if (machine_id.empty() || view::Node(node).status().node_info().machine_id() != machine_id) continue;
    std::pair<std::string, std::string> its(view::Node(node).metadata().creation_timestamp(), view::Node(node).metadata().name());
    if (its.second == host) return host;
    if (!first || its < *first) first = std::move(its);
  }
  return first ? first->second : host;
}

Result<std::string> host_address() {
  sys::Netlink netlink = TRY(sys::Netlink::open());
  std::vector<sys::RouteSpec> routes = TRY(netlink.routes());
  std::vector<sys::AddressInfo> addresses = TRY(netlink.addresses());
  std::vector<sys::Link> links = TRY(netlink.links());
  auto ours = [&](uint32_t index) {
    return std::any_of(links.begin(), links.end(),
                       [&](const sys::Link& link) { return link.index == index && link.name.starts_with("coracle"); });
  };
  auto plain = [](const std::string& address) { return address.substr(0, address.find('/')); };
  auto usable = [&](const sys::AddressInfo& info) {
    return info.scope == "global" && info.address.find(':') == std::string::npos && !ours(info.link);
  };
  for (const auto& route : routes) {
    if (route.destination != "0.0.0.0/0") continue;
    if (!route.source.empty()) return plain(route.source);
    for (const auto& info : addresses)
      if (info.link == route.link && usable(info)) return plain(info.address);
  }
  for (const auto& info : addresses)
    if (usable(info)) return plain(info.address);
  return std::string("127.0.0.1");
}

Result<bool> has_address(const std::string& address) {
  if (address == "0.0.0.0" || address == "::") return true;
  sys::Netlink netlink = TRY(sys::Netlink::open());
  std::vector<sys::AddressInfo> addresses = TRY(netlink.addresses());
  auto same = [&](const sys::AddressInfo& info) { return info.address.substr(0, info.address.find('/')) == address; };
  return std::any_of(addresses.begin(), addresses.end(), same);
}

namespace {

// Mounts a file system on an existing directory, unless one of that type is mounted already, as by an earlier daemon.
Result<void> mount_once(const std::string& directory, const std::string& type, int64_t magic, unsigned mode,
                        std::vector<sys::FsOption> options) {
  Fd place = TRY(sys::open_directory(directory));
  Fd parent = TRY(sys::open_directory(directory + "/.."));
  struct stat here = TRY(sys::stat(place)), above;
  above = TRY(sys::stat(parent));
  struct statfs kind {};
  if (::fstatfs(place.get(), &kind) != 0) return Error::from_errno("look at " + directory);
  if (int64_t(kind.f_type) == magic && here.st_dev != above.st_dev) return {};
  char octal[8];
  std::snprintf(octal, sizeof octal, "%04o", mode);
  options.push_back({"mode", octal});
  Fd mount = TRY(sys::new_file_system(type, options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV));
  return sys::attach_mount(mount, place);
}

}  // namespace

Result<void> mount_tmpfs(const std::string& directory, Bytes size, unsigned mode) {
  std::vector<sys::FsOption> options;
  if (size.count > 0) options.push_back({"size", std::to_string(size.count)});
  return mount_once(directory, "tmpfs", TMPFS_MAGIC, mode, std::move(options));
}

Result<void> mount_huge_pages(const std::string& directory, Bytes page_size, Bytes size, unsigned mode) {
  return mount_once(directory, "hugetlbfs", HUGETLBFS_MAGIC, mode,
                    {{"pagesize", std::to_string(page_size.count)}, {"size", std::to_string(size.count)}});
}

namespace {

Result<void> detach(const std::string& place, std::string_view type) {
  return type.starts_with("nfs") ? unmount_nfs(place) : sys::detach_mount(place);
}

}  // namespace

Result<void> unmount(const std::string& directory) {
  for (size_t before = SIZE_MAX;;) {
    auto there = sys::mounts_on(directory);
    if (!there && there.error().code() == Code::not_found) return {};
    if (!there) return there.take_error();
    if (there->empty()) return {};
    if (there->size() >= before) return Error(Code::unavailable, "unmount " + directory + ": it is mounted still");
    before = there->size();
    TRY(detach(directory, there->back()));
  }
}

Result<void> unmount_below(const std::string& directory) {
  return sys::detach_below(directory, [](const sys::MountAround& mount) { return detach(mount.place, mount.type); });
}

Result<std::string> load_default_apparmor() {
  const std::string name = "coracle-default";
  bool is_loaded = TRY(sys::is_apparmor_profile_loaded(name));
  if (!is_loaded) TRY(sys::load_apparmor_profile(oci::default_apparmor_profile(name)));
  return name;
}

}  // namespace coracle
