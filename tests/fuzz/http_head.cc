// SPDX-License-Identifier: Apache-2.0
// The head of an HTTP request, parsed before authentication: the reader of bodies and the router get the same head that was
// accepted.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "daemon/api/head.h"
#include "daemon/api/negotiate.h"
#include "daemon/api/route.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace coracle::api;
  auto head = parse_request_head({reinterpret_cast<const char*>(data), size});
  if (!head) return 0;
  if (head->chunked && head->content_length) std::abort();  // the end of its body must be unambiguous
  if (head->awaits_continue && !head->has_body()) std::abort();
  bool star = head->path == "*" && head->method == "OPTIONS";
  if (!star && !head->path.starts_with('/')) std::abort();
  auto breaks_a_line = [](std::string_view text) { return text.find_first_of(std::string_view("\r\n\0", 3)) != text.npos; };
  for (const auto& [name, value] : head->headers)
    if (name.empty() || breaks_a_line(name) || breaks_a_line(value)) std::abort();  // a proxied request repeats them
  for (Offer offer : {Offer::value, Offer::object, Offer::stream}) (void)negotiate(*head, offer);
  auto route = read_route(head->path);
  if (route) (void)route->verb(*head);
  return 0;
}
