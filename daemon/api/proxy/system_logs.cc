// SPDX-License-Identifier: Apache-2.0
// See system_logs.h.
#include "daemon/api/proxy/system_logs.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "daemon/api/proxy/html.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"

namespace coracle::api {
namespace {

constexpr size_t kPieceBytes = 64 << 10;
constexpr size_t kSniffedBytes = 512;

Error no_such_log(const std::string& path) { return Error(Code::not_found, "the node has no log " + quoted(path)); }

// Opens with O_PATH first: a device must not be opened before its path is checked, because opening it has effects.
Result<Fd> find_log(const std::string& root, const std::string& path) {
  const bool is_name = path.find('\0') == path.npos;
  auto found = sys::open(root + path, O_PATH);
  if (!is_name || !found) return no_such_log(path);
  const std::string top = TRY(sys::absolute_path(root));
  const std::string place = TRY(sys::place_of(*found));
  if (place != top && !place.starts_with(top + "/")) return no_such_log(path);
  return found;
}

Result<void> answer_directory(Call& call, const Fd& found) {
  const Fd directory = TRY(sys::open_directory(sys::fd_path(found)));
  const std::vector<sys::DirEntry> entries = TRY(sys::list(directory));
  std::string page = "<!doctype html>\n<meta name=\"viewport\" content=\"width=device-width\">\n<pre>\n";
  for (const sys::DirEntry& entry : entries) {
    const std::string slash = entry.type == DT_DIR ? "/" : "";
    page += "<a href=\"" + percent_encode(entry.name) + slash + "\">" + escape_html(entry.name) + slash + "</a>\n";
  }
  set_answer(call, 200, "text/html; charset=utf-8", page + "</pre>\n");
  return {};
}

// Guesses the content type from the first bytes. Never HTML: a browser must not execute what a pod has written. Source: WHATWG
// MIME Sniffing, "binary data byte".
std::string_view content_type_of(std::string_view begin) {
  if (begin.starts_with("\x1f\x8b\x08")) return "application/gzip";
  auto is_binary = [](unsigned char c) { return c <= 0x08 || c == 0x0b || (c >= 0x0e && c <= 0x1a) || (c >= 0x1c && c <= 0x1f); };
  bool is_text = std::none_of(begin.begin(), begin.end(), is_binary);
  return is_text ? "text/plain; charset=utf-8" : "application/octet-stream";
}

// Sends the present length only, so that the response for a growing log ends.
Result<void> answer_file(Call& call, const Fd& found, off_t length) {
  const Fd file = TRY(sys::open(sys::fd_path(found), O_RDONLY));
  std::string piece(kPieceBytes, '\0');
  auto next = [&](size_t bytes) -> std::string_view {
    ssize_t got = ::read(file.get(), piece.data(), std::min<size_t>(bytes, size_t(length)));
    if (got <= 0) return {};  // it was truncated
    length -= got;
    return {piece.data(), size_t(got)};
  };
  const std::string_view begin = next(kSniffedBytes);
  if (call.head().method == "HEAD") return set_answer(call, 200, content_type_of(begin), ""), Result<void>();
  std::vector<Header> headers = common_headers(call);
  headers.emplace_back("X-Content-Type-Options", "nosniff");
  ChunkedAnswer answer(call.exchange, content_type_of(begin), headers);
  for (std::string_view bytes = begin; !bytes.empty(); bytes = next(kPieceBytes))
    if (!answer.write(bytes)) return {};
  answer.end();
  return {};
}

}  // namespace

Result<void> serve_system_logs(Call& call, const std::string& root, const std::string& path) {
  const Fd found = TRY(find_log(root, path));
  const struct stat what = TRY(sys::stat(found));
  if (S_ISDIR(what.st_mode) && !path.ends_with('/')) return answer_with_slash(call), Result<void>();
  if (S_ISDIR(what.st_mode)) return answer_directory(call, found);
  if (!S_ISREG(what.st_mode)) return no_such_log(path);
  return answer_file(call, found, what.st_size);
}

}  // namespace coracle::api
