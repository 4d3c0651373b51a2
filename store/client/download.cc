// SPDX-License-Identifier: Apache-2.0
// See download.h.
#include "store/client/download.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "runtime/base/text.h"
#include "store/client/curl.h"
#include "store/client/proxy.h"

namespace coracle {
namespace {

constexpr long kRedirectionsMax = 10;  // as Go's http.Get
constexpr long kDownloadConnectTimeoutMs = 10'000;
constexpr long kStalledSeconds = 60;  // without a byte
constexpr long kOk = 200, kNotFound = 404, kServerError = 500;

struct Download {
  std::string body, status_line;
  size_t bytes_max = 0;
  bool too_large = false;
};

size_t on_download_body(char* bytes, size_t size, size_t count, void* user) {
  auto& download = *static_cast<Download*>(user);
  download.too_large = download.body.size() + size * count > download.bytes_max;
  if (download.too_large) return 0;
  download.body.append(bytes, size * count);
  return size * count;
}

size_t on_download_header(char* bytes, size_t size, size_t count, void* user) {
  std::string_view line(bytes, size * count);
  if (line.starts_with("HTTP/")) {  // of the first response, or of the one after a redirection
    auto& download = *static_cast<Download*>(user);
    download.status_line = trim(line.substr(std::min(line.find(' '), line.size())));
    download.body.clear();
  }
  return line.size();
}

// Without what stands before the last "@" of the part that ends at one of `ends`.
std::string without_user_before(const std::string& url, const char* ends) {
  size_t start = url.find("://");
  if (start == url.npos) return url;
  start += 3;
  size_t at = url.substr(0, url.find_first_of(ends, start)).rfind('@');
  return at == url.npos || at < start ? url : url.substr(0, start) + url.substr(at + 1);
}

// With the port. `shown` is a URL without a user.
std::string host_of(const std::string& shown) {
  size_t start = shown.find("://") + 3, end = shown.find_first_of("/?#", start);
  return shown.substr(start, end == shown.npos ? end : end - start);
}

Error unreachable(CURL* easy, const std::string& shown, CURLcode code, const char* detail) {
  long err = 0;
  curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &err);
  if (code == CURLE_COULDNT_CONNECT && err == ECONNREFUSED)
    return Error(Code::unavailable,
                 "The connection to the server " + host_of(shown) + " was refused - did you specify the right host or port?");
  return Error(Code::unavailable, "Unable to connect to the server: unable to read URL " + quoted(shown) + ": " +
                                      (*detail ? detail : curl_easy_strerror(code)));
}

struct Attempt {
  Result<std::string> body;
  bool may_pass = false;  // the failure, when it is tried again
};

Attempt try_download(const std::string& url, size_t bytes_max) {
  auto loaded = load_curl();
  if (!loaded) return {loaded.take_error()};
  std::unique_ptr<CURL, void (*)(CURL*)> easy(curl_easy_init(), curl_easy_cleanup);
  if (!easy) return {Error(Code::unavailable, "libcurl cannot start")};
  Download got;
  got.bytes_max = bytes_max;
  std::array<char, CURL_ERROR_SIZE> detail{};
  std::string proxy = proxy_for(url, ProxyEnvironment::read());
  curl_easy_setopt(easy.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy.get(), CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy.get(), CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(easy.get(), CURLOPT_MAXREDIRS, kRedirectionsMax);
  curl_easy_setopt(easy.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy.get(), CURLOPT_CONNECTTIMEOUT_MS, kDownloadConnectTimeoutMs);
  curl_easy_setopt(easy.get(), CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(easy.get(), CURLOPT_LOW_SPEED_TIME, kStalledSeconds);
  curl_easy_setopt(easy.get(), CURLOPT_USERAGENT, "coracle/" CORACLE_VERSION);
  curl_easy_setopt(easy.get(), CURLOPT_PROXY, proxy.c_str());  // "": none
  curl_easy_setopt(easy.get(), CURLOPT_NOPROXY, proxy.empty() ? "*" : "");
  curl_easy_setopt(easy.get(), CURLOPT_ERRORBUFFER, detail.data());
  curl_easy_setopt(easy.get(), CURLOPT_WRITEFUNCTION, on_download_body);
  curl_easy_setopt(easy.get(), CURLOPT_WRITEDATA, &got);
  curl_easy_setopt(easy.get(), CURLOPT_HEADERFUNCTION, on_download_header);
  curl_easy_setopt(easy.get(), CURLOPT_HEADERDATA, &got);
  CURLcode code = curl_easy_perform(easy.get());
  long status = 0;
  curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
  const std::string shown = without_user(url);
  if (got.too_large) return {Error(Code::too_large, shown + " is larger than " + std::to_string(bytes_max) + " bytes")};
  if (code == CURLE_URL_MALFORMAT)  // perhaps because of a "/" in a password
    return {Error(Code::bad_request, "the URL " + quoted(without_user_before(url, "")) + " is not valid")};
  if (code != CURLE_OK) return {unreachable(easy.get(), shown, code, detail.data()), true};
  if (status == kOk) return {std::move(got.body)};
  Error refused(
      status == kNotFound ? Code::not_found : Code::unavailable,
      "unable to read URL " + quoted(shown) + ", server reported " + got.status_line + ", status code=" + std::to_string(status));
  return {std::move(refused), status >= kServerError};
}

}  // namespace

std::string without_user(const std::string& url) { return without_user_before(url, "/?#"); }

Result<std::string> download(const std::string& url, size_t bytes_max, const Attempts& attempts) {
  for (int left = attempts.count - 1;; --left) {
    Attempt attempt = try_download(url, bytes_max);
    if (!attempt.may_pass || left <= 0) return std::move(attempt.body);
    (void)::poll(nullptr, 0, int(attempts.pause.count()));  // a signal may shorten the pause
  }
}

}  // namespace coracle
