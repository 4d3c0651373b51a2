// SPDX-License-Identifier: Apache-2.0
// Image references as users write them and in normalised form, by docker's grammar. Pure.
//   nginx            → docker.io/library/nginx:latest
//   localhost/x@sha256:…
// Source: distribution/reference (grammar in its regexp.go), which Kubernetes uses.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/image/digest.h"

namespace coracle::image {

constexpr size_t kReferenceNameMax = 255;  // registry and repository together
constexpr size_t kTagMax = 128;

struct Reference {
  std::string registry;    // "docker.io", "localhost:5000", "[::1]:5000"
  std::string repository;  // "library/nginx"
  std::string tag;         // "" only with a digest
  std::optional<Digest> digest;

  std::string name() const { return registry + "/" + repository; }
  std::string tagged() const { return name() + ":" + tag; }
  std::string text() const;  // the complete reference, normalised
};

// Adds docker's defaults: docker.io, library/, and :latest without tag and digest. Errors: invalid, with the invalid part.
Result<Reference> parse_reference(std::string_view text);

}  // namespace coracle::image
