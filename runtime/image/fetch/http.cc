// SPDX-License-Identifier: Apache-2.0
// libcurl's multi interface, driven by the reader. See http.h.
#include "runtime/image/fetch/http.h"

#include <arpa/inet.h>
#include <curl/curl.h>

#include <cstdlib>
#include <cstring>
#include <functional>

#include "runtime/base/clock.h"
#include "runtime/base/text.h"

namespace coracle::image {
namespace {

constexpr long kConnectSeconds = 15;
constexpr long kStallSeconds = 60;  // without receiving data
constexpr int kPollMilliseconds = 1000;

// Advice for the administrator about a failed transfer, or "". The clock of a device without a battery starts in the past.
std::string cure_of(CURLcode code, std::string_view detail) {
  if (code == CURLE_SSL_CONNECT_ERROR) return "; does the server speak http only? Then list it in insecureRegistries";
  if (code != CURLE_PEER_FAILED_VERIFICATION) return {};
  if (detail.find("not yet valid") != detail.npos || detail.find("expired") != detail.npos)
    return "; the clock of this machine says " + format_time(system_clock().now());
  return "; install the authority that signed the certificate (update-ca-certificates), or list the server in insecureRegistries";
}

Error error_of(CURLcode code, const char* detail, const std::string& url) {
  Code kind = Code::unavailable;
  if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_UNSUPPORTED_PROTOCOL) kind = Code::forbidden;
  if (code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_CACERT_BADFILE) kind = Code::invalid;  // what registries.yaml names
  if (code == CURLE_URL_MALFORMAT) kind = Code::invalid;
  if (code == CURLE_OPERATION_TIMEDOUT) kind = Code::timeout;
  std::string what = detail && *detail ? detail : curl_easy_strerror(code);
  Error error(kind, shown_url(url) + ": " + what + cure_of(code, what));
  return kind == Code::unavailable || kind == Code::timeout ? unreachable(std::move(error)) : std::move(error);
}

std::string part_of(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK || !text) return {};
  std::string out = text;
  curl_free(text);
  return out;
}

// Resolves `location` relative to `base`, or returns "".
std::string resolve(const std::string& base, const std::string& location) {
  std::unique_ptr<CURLU, void (*)(CURLU*)> url(curl_url(), curl_url_cleanup);
  if (curl_url_set(url.get(), CURLUPART_URL, base.c_str(), 0) != CURLUE_OK) return {};
  if (curl_url_set(url.get(), CURLUPART_URL, location.c_str(), 0) != CURLUE_OK) return {};
  return part_of(url.get(), CURLUPART_URL);
}

// Addresses in network byte order, as from inet_pton.
bool is_local_ipv4(const uint8_t* bytes) {
  return bytes[0] == 127 || bytes[0] == 0 || (bytes[0] == 169 && bytes[1] == 254);  // 0.0.0.0 connects to loopback
}

bool is_local_ipv6(const uint8_t* bytes) {
  static constexpr uint8_t kZeros[16] = {};
  if (bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80) return true;
  bool in_ipv4 = std::memcmp(bytes, kZeros, 10) == 0 && bytes[10] == bytes[11] && (bytes[10] == 0 || bytes[10] == 0xff);
  return in_ipv4 && (is_local_ipv4(bytes + 12) || std::memcmp(bytes, kZeros, 15) == 0);  // ::ffff:127.0.0.1, ::1, ::
}

// True if libcurl uses a proxy from the environment: then only the proxy's address is visible.
bool has_proxy() {
  for (const char* name : {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}) {
    const char* value = std::getenv(name);
    if (value && *value) return true;
  }
  return false;
}

void set_text(CURL* easy, CURLoption option, const std::string& text) {  // "": not set
  if (text.empty()) return;
  curl_blob blob{const_cast<char*>(text.data()), text.size(), CURL_BLOB_COPY};
  curl_easy_setopt(easy, option, &blob);
}

bool is_redirect(int status) { return status == 301 || status == 302 || status == 303 || status == 307 || status == 308; }

class CurlExchange : public Http::Exchange {
 public:
  CurlExchange(CURLM* multi, std::stop_token stop, std::string url)
      : multi_(multi), stop_(std::move(stop)), url_(std::move(url)), easy_(curl_easy_init()) {}
  ~CurlExchange() override {
    if (added_) curl_multi_remove_handle(multi_, easy_);
    curl_easy_cleanup(easy_);
    curl_slist_free_all(sent_);
  }

  Result<void> begin(const Request& request, bool is_first_host, bool may_be_local);
  int status() const override { return status_; }
  std::vector<std::string> headers(std::string_view name) const override {
    std::vector<std::string> values;
    for (auto [at, end] = headers_.equal_range(std::string(name)); at != end; ++at) values.push_back(at->second);
    return values;
  }
  const std::string& url() const override { return url_; }
  bool is_local() const override { return is_local_; }
  Result<std::string_view> next() override;

 private:
  static size_t on_body(char* bytes, size_t, size_t count, void* self) {
    static_cast<CurlExchange*>(self)->arrived_.append(bytes, count);
    return count;
  }
  static size_t on_header(char* bytes, size_t, size_t count, void* self) {
    auto* exchange = static_cast<CurlExchange*>(self);
    if (exchange->header_bytes_ += count; exchange->header_bytes_ > kHeadersMax) return 0;  // ends the transfer
    exchange->read_header(std::string_view(bytes, count));
    return count;
  }
  // Called after the connection is established and before anything is sent: a name may resolve to any address.
  static int on_connected(void* self, char* address, char*, int, int) {
    auto* exchange = static_cast<CurlExchange*>(self);
    exchange->is_local_ = exchange->is_local_ || (!has_proxy() && is_local_host(address));
    return exchange->is_local_ && !exchange->may_be_local_ ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
  }
  void read_header(std::string_view line);
  Result<void> pump();  // processes pending events
  Error failure() const {
    if (header_bytes_ <= kHeadersMax) return error_of(outcome_, detail_, url_);
    return Error(Code::too_large, shown() + ": more than " + std::to_string(kHeadersMax) + " bytes of headers");
  }

  CURLM* multi_;
  std::stop_token stop_;
  std::string url_;
  CURL* easy_;
  curl_slist* sent_ = nullptr;
  char detail_[CURL_ERROR_SIZE] = "";
  bool added_ = false, head_ = false, done_ = false;
  bool may_be_local_ = true, is_local_ = false;
  CURLcode outcome_ = CURLE_OK;
  int status_ = 0;
  size_t header_bytes_ = 0;
  std::multimap<std::string, std::string> headers_;
  std::string arrived_, given_;
};

void CurlExchange::read_header(std::string_view line) {
  if (line.starts_with("HTTP/")) {  // also after "100 Continue" and a proxy's response
    headers_.clear();
    size_t space = line.find(' ');
    status_ = space == line.npos ? 0 : parse_number<int>(line.substr(space + 1, 3)).value_or(0);
    return;
  }
  if (trim(line).empty()) {
    head_ = status_ >= 200;
    return;
  }
  size_t colon = line.find(':');
  if (colon == line.npos) return;
  headers_.emplace(to_lower(line.substr(0, colon)), trim(line.substr(colon + 1)));
}

Result<void> CurlExchange::begin(const Request& request, bool is_first_host, bool may_be_local) {
  may_be_local_ = may_be_local;
  is_local_ = is_local_host(host_of_origin(origin_of(url_)));
  auto refused = [&] { return Error(Code::forbidden, shown() + ": leads to this machine itself or to its link"); };
  if (is_local_ && !may_be_local_) return refused();
  auto add = [&](const std::string& header) { sent_ = curl_slist_append(sent_, header.c_str()); };
  for (const std::string& header : request.headers) add(header);
  if (is_first_host) {
    for (const std::string& header : request.private_headers) add(header);
    if (!request.authorization.empty()) add("Authorization: " + request.authorization);
  }
  curl_easy_setopt(easy_, CURLOPT_URL, url_.c_str());
  curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, sent_);
  curl_easy_setopt(easy_, CURLOPT_USERAGENT, "coracle");
  curl_easy_setopt(easy_, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy_, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(easy_, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(easy_, CURLOPT_LOW_SPEED_TIME, kStallSeconds);
  curl_easy_setopt(easy_, CURLOPT_ERRORBUFFER, detail_);
  curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(easy_, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(easy_, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(easy_, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(easy_, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(easy_, CURLOPT_PREREQFUNCTION, on_connected);
  curl_easy_setopt(easy_, CURLOPT_PREREQDATA, this);
  if (request.from > 0) curl_easy_setopt(easy_, CURLOPT_RANGE, (std::to_string(request.from) + "-").c_str());
  if (!request.form.empty()) curl_easy_setopt(easy_, CURLOPT_COPYPOSTFIELDS, request.form.c_str());
  if (!request.verify) {
    curl_easy_setopt(easy_, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(easy_, CURLOPT_SSL_VERIFYHOST, 0L);
  }
  if (request.tls) {
    // The machine's authorities stay valid: libcurl finds them in a directory. As for curl and containerd, the registry's hold
    // for the storage that it redirects to, which often has a certificate of the same authority. The client's own is shown to no
    // other.
    set_text(easy_, CURLOPT_CAINFO_BLOB, request.tls->authorities);
    if (is_first_host) {
      set_text(easy_, CURLOPT_SSLCERT_BLOB, request.tls->certificate);
      set_text(easy_, CURLOPT_SSLKEY_BLOB, request.tls->private_key);
    }
  }
  if (curl_multi_add_handle(multi_, easy_) != CURLM_OK) return Error(Code::internal, "cannot start a transfer");
  added_ = true;
  while (!head_ && !done_) TRY(pump());
  if (done_ && outcome_ == CURLE_ABORTED_BY_CALLBACK) return refused();
  if (done_ && outcome_ != CURLE_OK && !head_) return failure();
  return {};
}

Result<void> CurlExchange::pump() {
  if (stop_.stop_requested()) return Error(Code::cancelled, "cancelled");
  int running = 0;
  size_t before = arrived_.size();
  bool had_head = head_;
  if (CURLMcode code = curl_multi_perform(multi_, &running); code != CURLM_OK)
    return Error(Code::unavailable, shown() + ": " + curl_multi_strerror(code));
  int left = 0;
  while (CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE || message->easy_handle != easy_) continue;
    done_ = true;
    outcome_ = message->data.result;
  }
  bool moved = done_ || arrived_.size() != before || head_ != had_head;
  if (!moved) curl_multi_poll(multi_, nullptr, 0, kPollMilliseconds, nullptr);
  return {};
}

Result<std::string_view> CurlExchange::next() {
  while (arrived_.empty() && !done_) TRY(pump());
  if (arrived_.empty() && outcome_ != CURLE_OK) return failure();
  given_.clear();
  given_.swap(arrived_);
  return std::string_view(given_);
}

}  // namespace

std::string origin_of(const std::string& url) {
  std::unique_ptr<CURLU, void (*)(CURLU*)> parsed(curl_url(), curl_url_cleanup);
  if (curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK) return {};
  std::string scheme = part_of(parsed.get(), CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") return {};
  return scheme + "://" + to_lower(part_of(parsed.get(), CURLUPART_HOST)) + ":" +
         part_of(parsed.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
}

std::string host_of_origin(const std::string& origin) {
  size_t start = origin.find("://"), end = origin.rfind(':');
  if (start == origin.npos || end < start + 3) return {};
  return origin.substr(start + 3, end - start - 3);
}

bool is_local_host(std::string_view host) {
  if (host.starts_with('[')) host = host.substr(1, host.find(']') - 1);
  host = host.substr(0, host.find('%'));  // fe80::1%eth0
  while (host.ends_with('.')) host.remove_suffix(1);
  const std::string text = to_lower(host);
  if (text == "localhost" || text.ends_with(".localhost")) return true;
  uint8_t bytes[16];
  if (::inet_pton(AF_INET, text.c_str(), bytes) == 1) return is_local_ipv4(bytes);
  return ::inet_pton(AF_INET6, text.c_str(), bytes) == 1 && is_local_ipv6(bytes);
}

Error unreachable(Error error) {
  ErrorDetails details = error.details() ? *error.details() : ErrorDetails();
  details.reason = runtime::kRegistryUnreachable;
  return std::move(error).with(std::move(details));
}

std::string Http::Exchange::shown() const { return shown_url(url()); }

std::string Http::Exchange::header(std::string_view name) const {
  auto values = headers(name);
  return values.empty() ? std::string() : values.front();
}

struct Http::Impl {
  std::unique_ptr<CURLM, CURLMcode (*)(CURLM*)> multi{curl_multi_init(), curl_multi_cleanup};
  std::stop_callback<std::function<void()>> wake;  // a stop interrupts the poll
  explicit Impl(std::stop_token stop) : wake(std::move(stop), [this] { curl_multi_wakeup(multi.get()); }) {}
};

Http::Http(std::stop_token stop) : stop_(stop), impl_(std::make_unique<Impl>(stop)) {}
Http::~Http() = default;

Result<std::unique_ptr<Http::Exchange>> Http::start(const Request& request) {
  const std::string first = origin_of(request.url);
  if (first.empty()) return Error(Code::invalid, "no http or https URL: " + quoted(shown_url(request.url)));
  std::string url = request.url;
  bool left_home = false;  // after a redirect to another host, credentials are not sent any more
  bool may_be_local = request.may_be_local;
  for (int hops = 0; hops <= kRedirectsMax; ++hops) {
    auto exchange = std::make_unique<CurlExchange>(impl_->multi.get(), stop_, url);
    TRY(exchange->begin(request, !left_home, may_be_local));
    if (hops == 0) may_be_local = exchange->is_local();
    std::string location = exchange->header("location");
    if (!is_redirect(exchange->status()) || location.empty() || !request.form.empty())
      return std::unique_ptr<Exchange>(std::move(exchange));
    url = resolve(url, location);
    std::string origin = origin_of(url);
    if (origin.empty()) return Error(Code::forbidden, shown_url(request.url) + ": redirected to " + quoted(shown_url(location)));
    if (first.starts_with("https:") && origin.starts_with("http:") && request.verify)
      return Error(Code::forbidden, shown_url(request.url) + ": redirected from https to http, to " + quoted(shown_url(url)));
    left_home = left_home || origin != first;
  }
  return Error(Code::unavailable, shown_url(request.url) + ": more than " + std::to_string(kRedirectsMax) + " redirects");
}

Result<std::string> read_all(Source& source, size_t max) {
  std::string text;
  for (;;) {
    std::string_view piece = TRY(source.next());
    if (piece.empty()) return text;
    if (text.size() + piece.size() > max)
      return Error(Code::too_large, "the answer is larger than " + std::to_string(max) + " bytes");
    text.append(piece);
  }
}

}  // namespace coracle::image
