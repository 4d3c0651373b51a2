// SPDX-License-Identifier: Apache-2.0
// An HTTP GET for probes. It returns the status, the Location and the beginning of the body. It accepts what Go's client accepts:
// header lines may end in a bare line feed. Source: RFC 9112; kubelet's prober.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/node/probe/connection.h"

namespace coracle::node {

struct Url {
  bool tls = false;
  std::string host;
  uint16_t port = 0;
  std::string path;  // with the query, percent-encoded where necessary
  std::string text() const;
};

// Resolves `reference` (a Location header) against `base`. Returns nullopt if it is malformed or not http or https. Pure.
std::optional<Url> resolve(const Url& base, std::string_view reference);
// Percent-encodes the characters that are not allowed in a request line. Pure.
std::string encoded_path(std::string_view path);

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpReply {
  int status = 0;
  std::string location;
  std::string body;  // the first 10 KiB
};

// Errors: timeout, cancelled, unavailable (also if the body is shorter than announced); invalid if the response is not HTTP or a
// header cannot be sent.
Result<HttpReply> http_get(const Url& url, const HttpHeaders& headers, const AddressLookup& lookup, const CallContext& context);

}  // namespace coracle::node
