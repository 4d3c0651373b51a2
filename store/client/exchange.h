// SPDX-License-Identifier: Apache-2.0
// One request and its response, as each transport of Http fills it in: libcurl (http.cc), the local socket (local_http.h).
#pragma once

#include <functional>
#include <stop_token>
#include <string_view>

#include "store/client/http.h"

namespace coracle {

struct Exchange {
  HttpAnswer answer;
  const std::function<bool(std::string_view)>* sink = nullptr;
  const std::function<size_t(char*, size_t)>* source = nullptr;
  const std::function<void()>* begun = nullptr;
  std::stop_token stop;
  bool sink_ended = false, too_large = false;

  // A line of the response's head, with the empty one at its end. `status`: of the response, known by then.
  void take_head_line(std::string_view line, int status);
  // A part of the response's body. False: the rest is not wanted (sink_ended) or too much (too_large).
  bool take_body(std::string_view bytes, int status);
};

}  // namespace coracle
