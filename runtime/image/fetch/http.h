// SPDX-License-Identifier: Apache-2.0
// HTTP as a Source: one exchange at a time with libcurl. The reader pulls the body, so that a slow disk slows the sender and
// nothing is buffered without limit. Redirects are followed here and not by libcurl: credentials and the client's certificate are
// only sent to the host that they are for. Source: libcurl-multi(3); RFC 9110 sections 11 (authentication), 14 (range), 15.4
// (redirection).
#pragma once

#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/image/fetch/source.h"
#include "runtime/runtime.h"

namespace coracle::image {

constexpr int kRedirectsMax = 10;
constexpr size_t kHeadersMax = 64 << 10;  // bytes of the headers of a response, with those that precede it (100 Continue)

struct Request {
  std::string url;
  std::vector<std::string> headers;          // "Accept: …"
  std::vector<std::string> private_headers;  // only sent to the first host
  std::string authorization;                 // "Bearer …"; only sent to the first host
  std::string form;                          // if not empty: POST this form
  int64_t from = 0;                          // the first byte to request
  bool verify = true;                        // verify the server's certificate
  // Authorities for every host, also after redirects; the client's certificate for the first host only. null: none. Must outlive
  // the call of start().
  const runtime::RegistryTls* tls = nullptr;
  bool may_be_local = true;  // the URL may be on this machine or its link: is_local_host
};

// Scheme, host and port of a URL, normalised ("https://host:443"); "" if the scheme is not http or https.
std::string origin_of(const std::string& url);
// The host of an origin without its port: "host", "[::1]".
std::string host_of_origin(const std::string& origin);
// True for a loopback or link-local address ("127.0.0.1", "::1", "169.254.169.254", "fe80::1", "0.0.0.0"), with or without
// brackets, and for a name that always resolves to one ("localhost", "a.localhost").
bool is_local_host(std::string_view host);

// Marks the error: runtime::is_registry_unreachable.
Error unreachable(Error error);

class Http {  // one connection cache; not thread-safe
 public:
  // A response whose headers have been received. next() returns the body.
  class Exchange : public Source {
   public:
    virtual int status() const = 0;
    // All values of a header; `name` is in lower case.
    virtual std::vector<std::string> headers(std::string_view name) const = 0;
    std::string header(std::string_view name) const;  // the first, or ""
    virtual const std::string& url() const = 0;       // after redirects
    std::string shown() const;                        // url() for errors: shown_url()
    // True if the responding server is on this machine or its link. False for a server behind a proxy.
    virtual bool is_local() const = 0;
  };

  explicit Http(std::stop_token stop);
  ~Http();
  Http(const Http&) = delete;

  // Blocks until the headers of the final response. Destroy the Exchange before starting the next. A redirect to this machine or
  // its link is only followed from there. Errors: unavailable and timeout (network: unreachable()), forbidden (certificate, or an
  // unsafe redirect), too_large (headers), cancelled. They name the URL.
  Result<std::unique_ptr<Exchange>> start(const Request& request);
  std::stop_token stop() const { return stop_; }

 private:
  struct Impl;
  std::stop_token stop_;
  std::unique_ptr<Impl> impl_;
};

// Reads the rest of a body. Errors: too_large.
Result<std::string> read_all(Source& source, size_t max);

}  // namespace coracle::image
