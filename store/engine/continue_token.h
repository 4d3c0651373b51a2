// SPDX-License-Identifier: Apache-2.0
// ContinueToken: the start of the next page of a list, in Kubernetes' format: base64url of
// {"v":"meta.k8s.io/v1","rv":N,"start":"ns/name\u0000"}. With rv -1 the page comes from the latest state and not from the first
// page's snapshot. Source: apiserver storage/continue.go.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "store/object/kind.h"

namespace coracle::engine {

struct ContinueToken {
  int64_t revision = 0;  // -1: the latest
  Key after;             // the last object of the previous page

  std::string text() const;
  static Result<ContinueToken> parse(std::string_view text, bool namespaced);  // Errors: bad_request
};

}  // namespace coracle::engine
