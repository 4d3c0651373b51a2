// SPDX-License-Identifier: Apache-2.0
// What of a message's head is passed on between a client and what is behind, and what of it names places there. Pure.
//   client's Head ──request_head──▶ bytes for the target          target's AnswerHead ──answer_head──▶ bytes for the client
// What belongs to one connection stays on it; who asks here is nobody there, so credentials and impersonation stay here; what
// the target says of other origins would be said in this server's name, so it is left out.
// Source: RFC 9110 section 7.6 (forwarding); apimachinery util/proxy (Transport, UpgradeAwareHandler); Go's ReverseProxy.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/api/head.h"

namespace coracle::api {

struct Passage {       // one request that is handed on
  std::string prefix;  // the path up to "proxy": "/api/v1/namespaces/default/pods/web/proxy"
  std::string rest;    // what follows, as it was sent: "/index.html"
  std::string host;    // the target's, as a URL says it: "10.42.0.7:8080"
  std::string client;  // the client's address
};

// The path as the target shall see it: without empty and dot segments, which lead no higher than "/"; a slash at its end stays.
std::string clean_path(std::string_view path);

// `upgrade`: the connection is to become another protocol's, and what asks for that is passed on.
std::string request_head(const Head& head, const Passage& passage, bool upgrade);
bool asks_for_upgrade(const Head& head);

// How a body's end is told to the client.
enum class Framing { none, length, chunked, close };
// `more`: what this server adds. `location`: the target's, rewritten. The head ends with its empty line.
std::string answer_head(const AnswerHead& head, Framing framing, bool keep_alive, const std::optional<std::string>& location,
                        const std::vector<std::pair<std::string, std::string>>& more);

// A URL that the target wrote, as a client of this server must read it: paths of the target lead through the passage, other
// places stay what they are. `asked_host` is the client's Host. Nothing: it is no URL.
std::optional<std::string> rewrite_url(std::string_view url, const Passage& passage, std::string_view asked_host);

}  // namespace coracle::api
