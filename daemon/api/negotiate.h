// SPDX-License-Identifier: Apache-2.0
// Content negotiation: the media types of a client's request and of the response. Pure. Source: RFC 9110 section 12 (Accept);
// apiserver handlers/negotiation; Kubernetes API concepts ("Alternate representations").
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/api/head.h"
#include "runtime/base/result.h"

namespace coracle::api {

enum class Encoding { json, yaml, protobuf };
enum class As { itself, table, partial, partial_list };  // ;as=Table;g=meta.k8s.io;v=v1

struct Wanted {
  Encoding encoding = Encoding::json;
  As as = As::itself;
  std::string version = "v1";  // of the representation's group
  bool pretty = false;
  std::string_view media_type() const;
};

struct MediaType {
  std::string type;  // lower case, "application/json"
  std::vector<std::pair<std::string, std::string>> parameters;
  double quality = 1;
  std::string_view parameter(std::string_view name) const;
};
// Best first, otherwise in the given order; wildcards after exact types of the same quality.
std::vector<MediaType> parse_accept(std::string_view field);
std::vector<MediaType> accepted_by(const Head& head);  // of all its Accept headers

// What an endpoint can respond with: plain values; objects with their Tables and metadata; a stream of those (no YAML).
enum class Offer { value, object, stream };
// All acceptable forms, best first. If a response does not exist in one form (some have no protobuf), the next one is used.
// Errors: not_acceptable, with the list of available types.
Result<std::vector<Wanted>> negotiate_all(const Head& head, Offer offer);
// The first of them.
Result<Wanted> negotiate(const Head& head, Offer offer);
// The encoding of a request body; an absent content type means JSON. Errors: unsupported.
Result<Encoding> body_encoding(std::string_view content_type);

}  // namespace coracle::api
