// SPDX-License-Identifier: Apache-2.0
// Downloads a URL. Separate from http.h, because it is not about an API server: no credentials are sent, and redirects are
// followed.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "runtime/base/result.h"

namespace coracle {

struct Attempts {
  int count = 3;
  std::chrono::milliseconds pause{1000};  // between two
};

// The body at an http or https URL, through the environment's proxy (proxy.h), from servers whose certificates the system trusts.
// Tries again after a status of 5xx and wherever there is no whole answer, whatever the reason: also of a certificate that is not
// trusted and of too many redirections; but not where the body is too large. Blocks. Errors, which name no user and no password:
// not_found for status 404, unavailable for another one and for a server that cannot be reached or trusted, worded as kubectl's;
// too_large; bad_request for no URL. Source: k8s.io/cli-runtime pkg/resource/visitor.go, readHttpWithRetries.
Result<std::string> download(const std::string& url, size_t bytes_max, const Attempts& attempts = {});

// As it may be shown: without "USER:PASSWORD@". Pure.
std::string without_user(const std::string& url);

}  // namespace coracle
