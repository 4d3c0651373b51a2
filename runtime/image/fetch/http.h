// SPDX-License-Identifier: Apache-2.0
// HTTP as a source of bytes: one exchange at a time over libcurl, its body pulled by the reader, so that a slow disk slows
// the sender and nothing piles up in between. Redirects are followed here, by hand: what authorises a request stays with
// the host it was meant for.
// Source: libcurl-multi(3); RFC 9110 sections 11 (authentication), 14 (range), 15.4 (redirection).
#pragma once

#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/image/fetch/source.h"

namespace coracle::image {

constexpr int kRedirectsMax = 10;
constexpr size_t kHeadersMax = 64 << 10;  // bytes that are kept of one response's

struct Request {
  std::string url;
  std::vector<std::string> headers;  // "Accept: …"
  std::string authorization;         // "Bearer …"; sent to the first host only
  std::string form;                  // not empty: POST of this form
  int64_t from = 0;                  // first byte wanted
  bool verify = true;                // the server's certificate
  bool may_be_local = true;          // it may lead to this machine itself or to its link: is_local_host
};

// Scheme, host and port of a URL, normalised ("https://host:443"), or "" when it is none of http and https.
std::string origin_of(const std::string& url);
// The host of such an origin, without its port: "host", "[::1]".
std::string host_of_origin(const std::string& origin);
// An address of this machine's own loopback or of a link ("127.0.0.1", "::1", "169.254.169.254", "fe80::1", "0.0.0.0"), with or
// without brackets, or a name that always means one ("localhost", "a.localhost").
bool is_local_host(std::string_view host);

class Http {  // one connection cache; not thread-safe
 public:
  // A response whose head has arrived. The body follows from next().
  class Exchange : public Source {
   public:
    virtual int status() const = 0;
    // All values of a header, its name in lower case.
    virtual std::vector<std::string> headers(std::string_view name) const = 0;
    std::string header(std::string_view name) const;  // the first, or ""
    virtual const std::string& url() const = 0;       // after redirects
    // Whether the server that answered is at this machine itself or on its link. What a proxy reaches for us is not.
    virtual bool is_local() const = 0;
  };

  explicit Http(std::stop_token stop);
  ~Http();
  Http(const Http&) = delete;

  // Blocks until the head of the final response. The Exchange must end before the next one is started. A redirect leads to
  // this machine or its link only from there. Errors: unavailable (network), forbidden (certificate, or an unsafe place),
  // cancelled.
  Result<std::unique_ptr<Exchange>> start(const Request& request);
  std::stop_token stop() const { return stop_; }

 private:
  struct Impl;
  std::stop_token stop_;
  std::unique_ptr<Impl> impl_;
};

// The rest of a body. Errors: too_large.
Result<std::string> read_all(Source& source, size_t max);

}  // namespace coracle::image
