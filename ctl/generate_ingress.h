// SPDX-License-Identifier: Apache-2.0
// An Ingress from flags, as kubectl makes it. Pure. Source: kubectl pkg/cmd/create/create_ingress.go.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

struct IngressFlags {
  std::string name, ingress_class, default_backend;  // "SERVICE:PORT"
  std::vector<std::string> rules;                    // "HOST/PATH=SERVICE:PORT[,tls[=SECRET]]"; a path that ends in * is a prefix
  std::vector<std::string> annotations;              // "KEY=VALUE"
};
Result<json::value> ingress_of(const IngressFlags& flags);  // Errors: bad_request, worded as kubectl's

}  // namespace coracle::ctl
