// SPDX-License-Identifier: Apache-2.0
// See log_links.h.
#include "daemon/node/stream/log_links.h"

#include <unistd.h>

#include <array>

#include "daemon/node/files.h"
#include "runtime/sys/file.h"

namespace coracle::node {
namespace {

constexpr std::string_view kSuffix = ".log";
constexpr size_t kNameMax = 255;  // NAME_MAX

std::string link_name(const Key& pod, std::string_view container, std::string_view container_id) {
  std::string name = pod.name + "_" + pod.ns + "_" + std::string(container) + "-" + std::string(container_id);
  name.resize(std::min(name.size(), kNameMax - kSuffix.size()));
  return name.append(kSuffix);
}

std::string target_of(const std::string& link) {
  std::array<char, 4096> target;
  ssize_t length = ::readlink(link.c_str(), target.data(), target.size());
  return length < 0 ? std::string() : std::string(target.data(), size_t(length));
}

}  // namespace

Result<void> link_log(const std::string& directory, const Key& pod, std::string_view container, std::string_view container_id,
                      const std::string& log) {
  std::string link = directory + "/" + link_name(pod, container, container_id);
  if (target_of(link) == log) return {};
  (void)::unlink(link.c_str());
  if (::symlink(log.c_str(), link.c_str()) != 0) return Error::from_errno("link " + link);
  return {};
}

void remove_dead_links(const std::string& directory, const std::string& logs) {
  if (directory.empty()) return;
  for (const std::string& name : files::list(directory)) {
    std::string link = directory + "/" + name, target = target_of(link);
    if (target.starts_with(logs + "/") && !sys::exists(target)) (void)::unlink(link.c_str());
  }
}

}  // namespace coracle::node
