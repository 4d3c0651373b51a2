// SPDX-License-Identifier: Apache-2.0
// Rewrites the heads of proxied messages. Pure.
//   client's Head ──request_head──▶ bytes for the target          target's AnswerHead ──answer_head──▶ bytes for the client
// Hop-by-hop headers are not forwarded. Credentials and impersonation headers are not forwarded, because they are for this server
// only. CORS headers of the target are dropped, because they would apply to this server's origin. Source: RFC 9110 section 7.6
// (forwarding); apimachinery util/proxy (Transport, UpgradeAwareHandler); Go's ReverseProxy.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/api/head.h"

namespace coracle::api {

struct ProxiedRequest {  // one proxied request
  std::string prefix;    // the path up to "proxy": "/api/v1/namespaces/default/pods/web/proxy"
  std::string rest;      // the rest of the path, as sent: "/index.html"
  std::string host;      // the target's host in a URL: "10.42.0.7:8080"
  std::string client;    // the client's address
};

// The path for the target, without empty and dot segments, which cannot lead above "/". A trailing slash stays.
std::string clean_path(std::string_view path);

// `upgrade`: the upgrade headers are forwarded, because the connection may change its protocol.
std::string request_head(const Head& head, const ProxiedRequest& proxied, bool upgrade);
bool asks_for_upgrade(const Head& head);

// How the response tells the client where its body ends.
enum class Framing { none, length, chunked, close };
// `more`: headers that this server adds. `location`: the target's Location, rewritten. The head ends with the empty line.
std::string answer_head(const AnswerHead& head, Framing framing, bool keep_alive, const std::optional<std::string>& location,
                        const std::vector<std::pair<std::string, std::string>>& more);

// Rewrites a URL of the target for clients of this server: paths on the target get the proxy's prefix, other URLs stay unchanged.
// `asked_host` is the client's Host header. Returns nullopt if it is not a URL.
std::optional<std::string> rewrite_url(std::string_view url, const ProxiedRequest& proxied, std::string_view asked_host);

}  // namespace coracle::api
