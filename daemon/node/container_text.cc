// SPDX-License-Identifier: Apache-2.0
// See container_text.h.
#include "daemon/node/container_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/sys/file.h"

namespace coracle::node {

std::string end_of_file(const std::string& path, size_t max) {
  auto file = sys::open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!file) return "";
  auto info = sys::stat(*file);
  if (!info || !S_ISREG(info->st_mode)) return "";
  std::string text(size_t(std::min<uint64_t>(max, uint64_t(info->st_size))), '\0');
  ssize_t got = ::pread(file->get(), text.data(), text.size(), info->st_size - off_t(text.size()));
  text.resize(size_t(std::max<ssize_t>(got, 0)));
  return text;
}

}  // namespace coracle::node
