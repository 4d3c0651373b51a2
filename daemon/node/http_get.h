// SPDX-License-Identifier: Apache-2.0
// GET as a probe asks it: what matters of the answer is its status, where it points, and how its body begins. What Go's client
// takes is taken: header lines may end in a bare line feed. Source: RFC 9112; kubelet's prober.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/node/connection.h"

namespace coracle::node {

struct Url {
  bool tls = false;
  std::string host;
  uint16_t port = 0;
  std::string path;  // with its query, percent-encoded where it must be
  std::string text() const;
};

// `reference` (a Location) as seen from `base`. Nothing when it is malformed or no http. Pure.
std::optional<Url> resolve(const Url& base, std::string_view reference);
// What may not stand in a request's first line, percent-encoded. Pure.
std::string encoded_path(std::string_view path);

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpReply {
  int status = 0;
  std::string location;
  std::string body;  // its first 10 KiB
};

// Errors: timeout, cancelled, unavailable (also when the body is shorter than it was to be); invalid when the answer is no HTTP,
// or a header cannot be sent.
Result<HttpReply> http_get(const Url& url, const HttpHeaders& headers, const AddressLookup& lookup, const Patience& patience);

}  // namespace coracle::node
