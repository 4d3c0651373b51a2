// SPDX-License-Identifier: Apache-2.0
// Image references as people write them, and as they are stored: docker's grammar and docker's normalisation. Pure.
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
  std::string tag;         // "" only where there is a digest
  std::optional<Digest> digest;

  std::string name() const { return registry + "/" + repository; }
  std::string tagged() const { return name() + ":" + tag; }
  std::string text() const;  // all of it, normalised
};

// Fills in what docker fills in: docker.io, library/, and :latest where there is neither tag nor digest.
// Errors: invalid, saying what is wrong with which part.
Result<Reference> parse_reference(std::string_view text);

}  // namespace coracle::image
