// SPDX-License-Identifier: Apache-2.0
// The head of an HTTP request, read before anybody is known: what is let in is what cpp-httplib and the router then see.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "daemon/api/head.h"
#include "daemon/api/negotiate.h"
#include "daemon/api/route.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace coracle::api;
  auto head = vet_head({reinterpret_cast<const char*>(data), size});
  if (!head) return 0;
  std::string tame = tame_head(*head);
  if (tame.size() > 400 || tame.find("\r\n\r\n") != tame.size() - 4) std::abort();  // one head, and a small one
  if (head->chunked && head->content_length) std::abort();
  for (Offer offer : {Offer::value, Offer::object, Offer::stream}) (void)negotiate(*head, offer);
  auto route = read_route(head->path);
  if (route) (void)route->verb(*head);
  return 0;
}
