// SPDX-License-Identifier: Apache-2.0
// ContinueToken: where the next page of a list begins, as Kubernetes writes it: base64url of
// {"v":"meta.k8s.io/v1","rv":N,"start":"ns/name\u0000"}. rv -1 goes on from the latest state instead of the first page's.
// Source: apiserver storage/continue.go.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "store/object/kind.h"

namespace coracle::engine {

struct ContinueToken {
  int64_t revision = 0;  // -1: the latest
  Key after;             // the last object of the page before

  std::string text() const;
  static Result<ContinueToken> parse(std::string_view text, bool namespaced);  // Errors: bad_request
};

}  // namespace coracle::engine
