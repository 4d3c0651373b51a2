// SPDX-License-Identifier: Apache-2.0
// A URL's path from an untrusted client.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "daemon/api/route.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto route = coracle::api::read_route({reinterpret_cast<const char*>(data), size});
  if (!route) return 0;
  for (const std::string& part : {route->group, route->version, route->ns, route->resource, route->name, route->subresource})
    if (part.find('/') != std::string::npos || part.find('\0') != std::string::npos) std::abort();
  return 0;
}
