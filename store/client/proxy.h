// SPDX-License-Identifier: Apache-2.0
// Which proxy a server is reached through, as the environment says it: HTTPS_PROXY, HTTP_PROXY, NO_PROXY and their forms in
// small letters.
// Source: Go's golang.org/x/net/http/httpproxy, which kubectl follows.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace coracle {

struct ProxyEnvironment {
  std::string https_proxy, http_proxy, no_proxy;
  static ProxyEnvironment read();  // this process' variables
};

// The proxy's URL for `server`, a URL; "" for none. This machine itself (localhost, loopback addresses) never has one. Pure.
std::string proxy_for(std::string_view server, const ProxyEnvironment& environment);

// Errors: invalid, for what no request can go through.
Result<void> check_proxy_url(std::string_view url);

}  // namespace coracle
