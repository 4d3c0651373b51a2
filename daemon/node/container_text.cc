// SPDX-License-Identifier: Apache-2.0
// See container_text.h.
#include "daemon/node/container_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/base/text.h"
#include "runtime/sys/file.h"

namespace coracle::node {

std::string as_utf8(std::string_view bytes) {
  constexpr size_t kCharacterMax = 4;
  if (is_utf8(bytes)) return std::string(bytes);
  std::string text;
  while (!bytes.empty()) {
    size_t length = 1;
    while (length <= std::min(kCharacterMax, bytes.size()) && !is_utf8(bytes.substr(0, length))) ++length;
    bool character = length <= std::min(kCharacterMax, bytes.size());
    text += character ? bytes.substr(0, length) : std::string_view("\xef\xbf\xbd");
    bytes.remove_prefix(character ? length : 1);
  }
  return text;
}

std::string end_of_file(const std::string& path, size_t max) {
  auto file = sys::open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!file) return "";
  auto info = sys::stat(*file);
  if (!info || !S_ISREG(info->st_mode)) return "";
  std::string text(std::min(max, size_t(info->st_size)), '\0');
  ssize_t got = ::pread(file->get(), text.data(), text.size(), info->st_size - off_t(text.size()));
  text.resize(size_t(std::max<ssize_t>(got, 0)));
  return text;
}

}  // namespace coracle::node
