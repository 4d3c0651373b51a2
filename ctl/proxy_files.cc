// SPDX-License-Identifier: Apache-2.0
// The files of proxy --www. See proxy.h.
#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>
#include <optional>

#include "ctl/proxy.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"

namespace coracle::ctl {
namespace {

constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
    {".html", "text/html; charset=utf-8"},
    {".htm", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".mjs", "text/javascript; charset=utf-8"},
    {".json", "application/json"},
    {".txt", "text/plain; charset=utf-8"},
    {".xml", "text/xml; charset=utf-8"},
    {".svg", "image/svg+xml"},
    {".png", "image/png"},
    {".jpg", "image/jpeg"},
    {".jpeg", "image/jpeg"},
    {".gif", "image/gif"},
    {".webp", "image/webp"},
    {".pdf", "application/pdf"},
    {".wasm", "application/wasm"},
    {".gz", "application/gzip"},
    {".ico", "image/vnd.microsoft.icon"},
};

std::string type_of(const std::string& path) {
  std::string extension = to_lower(std::filesystem::path(path).extension().string());
  for (const auto& [known, type] : kTypes)
    if (extension == known) return std::string(type);
  auto file = sys::open(path, O_RDONLY | O_NONBLOCK);
  std::array<char, 512> start{};
  auto got = file ? sys::read_some(*file, start) : Result<size_t>(0);
  std::string_view bytes(start.data(), got ? *got : 0);
  bool text =
      std::all_of(bytes.begin(), bytes.end(), [](unsigned char c) { return c >= 32 || c == '\n' || c == '\r' || c == '\t'; });
  return text ? "text/plain; charset=utf-8" : "application/octet-stream";
}

std::string http_time(time_t seconds) {
  tm parts{};
  ::gmtime_r(&seconds, &parts);
  constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  char text[64];
  std::snprintf(text, sizeof text, "%s, %02d %s %04d %02d:%02d:%02d GMT", kDays[parts.tm_wday], parts.tm_mday,
                kMonths[parts.tm_mon], parts.tm_year + 1900, parts.tm_hour, parts.tm_min, parts.tm_sec);
  return text;
}

std::string html(std::string_view text) {
  std::string safe;
  for (char c : text) {
    if (c == '<') safe += "&lt;";
    else if (c == '>') safe += "&gt;";
    else if (c == '&') safe += "&amp;";
    else if (c == '"') safe += "&#34;";
    else if (c == '\'') safe += "&#39;";
    else safe += c;
  }
  return safe;
}

FileAnswer whole_answer(std::string text) {
  FileAnswer answer;
  answer.head = std::move(text);
  return answer;
}

FileAnswer list_answer(const std::string& directory) {
  auto entries = sys::list(directory);
  if (!entries) return whole_answer(error_answer(500, "Error reading directory"));
  FileAnswer answer;
  answer.body = "<!doctype html>\n<meta name=\"viewport\" content=\"width=device-width\">\n<pre>\n";
  for (const auto& entry : *entries) {
    std::error_code failed;
    std::string name = entry.name + (std::filesystem::is_directory(directory + "/" + entry.name, failed) ? "/" : "");
    std::string link;
    for (char c : name) link += c == '/' ? "/" : percent_encode(std::string_view(&c, 1));
    answer.body += "<a href=\"" + link + "\">" + html(name) + "</a>\n";
  }
  answer.body += "</pre>\n";
  answer.head = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nConnection: close\r\nContent-Length: " +
                std::to_string(answer.body.size()) + "\r\n\r\n";
  return answer;
}

// "bytes=0-99", "bytes=100-", "bytes=-5" of a file of `size` bytes; nothing for several ranges, which get the whole file. A
// range outside the file has the size 0.
std::optional<std::pair<uint64_t, uint64_t>> range_of(std::string_view header, uint64_t size) {
  if (!header.starts_with("bytes=") || header.find(',') != header.npos) return std::nullopt;
  header.remove_prefix(6);
  size_t dash = header.find('-');
  if (dash == header.npos) return std::nullopt;
  auto first = parse_number<uint64_t>(trim(header.substr(0, dash))), last = parse_number<uint64_t>(trim(header.substr(dash + 1)));
  if (!first && !last) return std::nullopt;
  if (!first) return std::pair(size - std::min(*last, size), std::min(*last, size));
  if (*first >= size || (last && *last < *first)) return std::pair(uint64_t(0), uint64_t(0));
  return std::pair(*first, last ? std::min(*last - *first + 1, size - *first) : size - *first);
}

}  // namespace

FileAnswer file_answer(const ProxyRequest& request, const std::string& directory, const std::string& path) {
  if (request.method != "GET" && request.method != "HEAD") return whole_answer(error_answer(405, "method not allowed"));
  if (path.ends_with("/index.html")) return whole_answer(redirect_answer("./"));
  std::string place = directory + path;
  std::error_code failed;
  bool is_directory = std::filesystem::is_directory(place, failed);
  std::string last = path.substr(path.find_last_of('/', path.size() > 1 ? path.size() - 2 : 0) + 1);
  if (is_directory && !path.ends_with('/')) return whole_answer(redirect_answer(percent_encode(last) + "/"));
  if (is_directory) {
    if (!std::filesystem::is_regular_file(place + "index.html", failed)) return list_answer(place);
    place += "index.html";
  } else if (path.ends_with('/')) {
    last.pop_back();
    if (std::filesystem::exists(directory + path.substr(0, path.size() - 1), failed))
      return whole_answer(redirect_answer("../" + percent_encode(last)));
  }
  auto file = sys::open(place, O_RDONLY | O_NONBLOCK);
  if (!file && file.error().code() == Code::forbidden) return whole_answer(error_answer(403, "403 Forbidden"));
  if (!file) return whole_answer(error_answer(404, "404 page not found"));
  auto facts = sys::stat(*file);
  if (!facts || !S_ISREG(facts->st_mode)) return whole_answer(error_answer(404, "404 page not found"));
  FileAnswer answer;
  answer.path = place;
  answer.size = uint64_t(facts->st_size);
  std::string modified = http_time(facts->st_mtime);
  std::string fields = "Last-Modified: " + modified + "\r\nConnection: close\r\n";
  const std::string* since = request.header("if-modified-since");
  if (since && *since == modified) return whole_answer("HTTP/1.1 304 Not Modified\r\n" + fields + "\r\n");
  fields += "Accept-Ranges: bytes\r\nContent-Type: " + type_of(place) + "\r\n";
  const std::string* wanted = request.header("range");
  auto range = wanted ? range_of(*wanted, answer.size) : std::nullopt;
  int status = 200;
  if (range && range->second == 0 && answer.size > 0) return whole_answer(error_answer(416, "invalid range: failed to overlap"));
  if (range) {
    status = 206;
    fields += "Content-Range: bytes " + std::to_string(range->first) + "-" + std::to_string(range->first + range->second - 1) +
              "/" + std::to_string(answer.size) + "\r\n";
    answer.from = range->first, answer.size = range->second;
  }
  answer.head = "HTTP/1.1 " + std::string(status == 206 ? "206 Partial Content" : "200 OK") + "\r\n" + fields +
                "Content-Length: " + std::to_string(answer.size) + "\r\n\r\n";
  return answer;
}

}  // namespace coracle::ctl
